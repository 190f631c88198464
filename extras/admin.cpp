// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Each request may be sent again without harm.  After a retry, force_unlock()
// looks whether an attempt was applied.
#include "admin.hpp"

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "../ddbmutex/dynamodb/ask.hpp"
#include "../ddbmutex/dynamodb/description.hpp"
#include "../ddbmutex/errors.hpp"
#include "../ddbmutex/impl.hpp"
#include "../ddbmutex/inspect.hpp"
#include "../ddbmutex/lock/row.hpp"
#include "../ddbmutex/row_options.hpp"
#include "../sigv4/text.hpp"
#include "listing.hpp"
#include "table_setup.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::Call;
using detail::ErrorPtr;
using detail::Inside;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kCreationPatience{60000};

// The error of the answer, or why locks cannot live in the table that it
// describes.  Remembers whether the key is wrong.
ErrorPtr error_of_table(const Call& call, dynamodb::Client& client,
                        const TableOptions& options, Replicas replicas,
                        const Answer& answer) {
  using TableKey = dynamodb::Client::TableKey;
  if (answer.fault == Fault::no_table) client.set_table_key(TableKey::unknown);
  if (ErrorPtr error = call.error_of(answer)) return error;
  std::string wrong =
      dynamodb::wrong_key(*answer.table, options.key, options.sort_key);
  client.set_table_key(wrong.empty() ? TableKey::unknown : TableKey::wrong,
                       std::move(wrong));
  return detail::unfit(*answer.table, options, replicas);
}

// `name`: only the locks of this name, of all sort values; null: all locks.
ErrorPtr list_all(lock::TableState& table, const TableOptions& options,
                  const std::string* name,
                  const std::function<bool(const LockInfo&)>& each) {
  const Call call(table, options, "list");
  dynamodb::Selection selection = detail::selection_of(options);
  if (name != nullptr) {
    selection.prefix += *name;
    selection.exact_key = true;
  }
  // Patience counts for each page, because a large table and a slow `each` are
  // not errors.
  dynamodb::Items items(call.context(milliseconds::max()), selection,
                        detail::nanoseconds_of(options.patience));
  while (const std::optional<LockInfo> info =
             detail::describe_next(items, options)) {
    if (!each(*info)) return nullptr;
  }
  return call.error_of(items.answer());
}

// DynamoDB checks everything else about tags and units.
ErrorPtr check_creation(const Creation& how, const TableOptions& options) {
  for (const auto& [key, value] : how.tags) {
    if (!sigv4::is_utf8(key) || !sigv4::is_utf8(value)) {
      return detail::bad_option({"tags", "not UTF-8", key});
    }
  }
  if (how.clean_up == Creation::CleanUp::always &&
      !detail::is_ddblock(options)) {
    return detail::bad_option({"clean_up", "only layout ddblock has one"});
  }
  const bool no_unit = how.throughput && (how.throughput->read_units == 0 ||
                                          how.throughput->write_units == 0);
  if (!no_unit) return nullptr;
  return detail::bad_option({"throughput", "less than one unit"});
}

// Sets `freed` if the row is as our forced release leaves it.  Some engines do
// not return the row when they refuse a write.
ErrorPtr look_if_freed(const Call& call, const lock::RowTarget& target,
                       const std::string& uuid, bool& freed) {
  LockInfo info;
  const Answer answer = call.look(target, info);
  if (ErrorPtr error = call.error_of(answer)) return error;
  freed = target.policy.keeps_row ? info.released && info.uuid == uuid
                                  : !answer.item;
  return nullptr;
}

}  // namespace

// --- The calls ---------------------------------------------------------------

Created create_table(Table& table, std::error_code& ec) {
  return create_table(table, {}, ec);
}

Created create_table(Table& table, const Creation& how, std::error_code& ec) {
  Created done;
  detail::run(Inside::of(table), ec, [&](auto& impl) -> ErrorPtr {
    const TableOptions& options = impl.options;
    if (ErrorPtr bad = check_creation(how, options)) return bad;
    const Call call(impl.get(), options, "create");
    const detail::CreationOutcome outcome =
        detail::create_table(call.context(kCreationPatience), options, how);
    done = outcome.done;
    return error_of_table(call, impl.get().client, options, how.replicas,
                          outcome.answer);
  });
  return done;
}

bool table_exists(Table& table, std::error_code& ec) {
  return table_exists(table, Replicas::refused, ec);
}

bool table_exists(Table& table, Replicas replicas, std::error_code& ec) {
  bool there = false;
  detail::run(Inside::of(table), ec, [&](auto& impl) -> ErrorPtr {
    const TableOptions& options = impl.options;
    const Call call(impl.get(), options, "look at");
    Answer answer = dynamodb::describe_table(call.context(), options.name);
    const bool is_going = answer.table && answer.table->status == "DELETING";
    if (is_going) answer.fault = Fault::no_table;
    there = answer.fault == Fault::none;
    ErrorPtr error =
        error_of_table(call, impl.get().client, options, replicas, answer);
    return answer.fault == Fault::no_table ? nullptr : std::move(error);
  });
  return there;
}

void list_locks(Table& table, const std::function<bool(const LockInfo&)>& each,
                std::error_code& ec) {
  detail::run(Inside::of(table), ec, [&](auto& impl) {
    return list_all(impl.get(), impl.options, nullptr, each);
  });
}

void list_locks(Table& table, const std::string& name,
                const std::function<bool(const LockInfo&)>& each,
                std::error_code& ec) {
  detail::run(Inside::of(table), ec, [&](auto& impl) {
    // The sort value does not matter here, so a valid one is given.
    ErrorPtr bad = impl.check_name(name, impl.options.sort_key);
    return bad ? std::move(bad)
               : list_all(impl.get(), impl.options, &name, each);
  });
}

bool force_unlock(Table& table, const LockInfo& info, std::error_code& ec) {
  bool freed = false;
  detail::run(Inside::of(table), ec, [&](auto& impl) -> ErrorPtr {
    if (!info.exists || info.released || info.uuid.empty()) {
      return detail::bad_option({"info", "the lock was not held"});
    }
    if (ErrorPtr bad = impl.check_name(info.name, info.sort_value)) return bad;
    const TableOptions& options = impl.options;
    const Call call(impl.get(), options, "free", &info.name);
    lock::RowTarget target;
    impl.set_row_target(info.name, info.sort_value, target);
    // Where other libraries share the table, no row says whether it has to
    // stay.  It may be somebody's work, and a free row serves all of them.
    target.policy.keeps_row =
        info.keep_row || info.token > 0 || !detail::is_ddblock(options);
    bool maybe_applied = false;
    lock::Request force;
    force.verb = lock::Request::Verb::force;
    force.seen = lock::Request::Version{info.uuid, info.expires};
    const Answer answer = call.ask(target, force, &maybe_applied);
    freed = answer.fault == Fault::none;
    if (answer.fault != Fault::condition_failed) return call.error_of(answer);
    if (!maybe_applied) return nullptr;
    return look_if_freed(call, target, info.uuid, freed);
  });
  return freed;
}

}  // namespace v0
}  // namespace ddbmutex
