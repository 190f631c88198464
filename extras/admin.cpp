// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The calls of a Table: creating and checking the table itself; inspecting,
// listing and freeing the locks in it.  Each request may be sent again without
// harm.  After a retry, force_unlock() looks whether an attempt was applied.
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../ddbmutex/attributes.hpp"
#include "../ddbmutex/dynamodb/ask.hpp"
#include "../ddbmutex/errors.hpp"
#include "../ddbmutex/layout_options.hpp"
#include "../ddbmutex/listing.hpp"
#include "../ddbmutex/lock/mutex.hpp"
#include "../ddbmutex/lock/protocol.hpp"
#include "../ddbmutex/lock/queue.hpp"
#include "../ddbmutex/lock/requests.hpp"
#include "../ddbmutex/lock/row.hpp"
#include "../ddbmutex/table.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/waiting.hpp"
#include "table_setup.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::ErrorPtr;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kCreationPatience{60000};

// A call under way, which ends when the table is closed.
class Call {
 public:
  // `what`: how errors call it, such as "list".  `name`: of the lock; null: the
  // call is about the table itself.  All arguments must outlive the Call.
  Call(lock::TableState& table, const TableOptions& options, const char* what,
       const std::string* name = nullptr)
      : table_(table),
        options_(options),
        what_(what),
        name_(name),
        wait_(table.waits),
        end_(lock::add_saturating(BootClock::now(),
                                  detail::nanoseconds_of(options.patience))) {}

  ErrorPtr error_of(Errc why, std::string_view more = {}) const {
    return detail::error_of(why, cannot(), more);
  }
  // Only close() wakes a call.  Without a waker, the table was closed before.
  ErrorPtr error_of(const Answer& answer) const {
    if (answer.fault == Fault::none) return nullptr;
    if (answer.fault == Fault::cancelled || wait_.waker() == nullptr) {
      return error_of(Errc::closed);
    }
    Answer explained;
    answer.copy_fault_to(explained);
    dynamodb::CallContext until_end = context();
    until_end.deadline = std::min(until_end.deadline, end_);
    dynamodb::explain_wrong_key(until_end, options_.name, options_.key,
                                options_.sort_key, explained);
    return detail::error_of(explained, cannot(), table_.client.endpoint());
  }
  // The same, or why locks cannot live in the table that the answer describes.
  // Remembers whether the key is wrong.
  ErrorPtr error_of_table(const Answer& answer) const {
    using TableKey = dynamodb::Client::TableKey;
    if (answer.fault == Fault::no_table) {
      table_.client.set_table_key(TableKey::unknown);
    }
    if (ErrorPtr error = error_of(answer)) return error;
    std::string wrong =
        dynamodb::wrong_key(*answer.table, options_.key, options_.sort_key);
    table_.client.set_table_key(
        wrong.empty() ? TableKey::unknown : TableKey::wrong, std::move(wrong));
    return detail::unfit(*answer.table, options_);
  }

  Answer ask(const lock::RowTarget& target, const lock::Request& request,
             bool* maybe_applied = nullptr) const {
    sigv4::Text body;
    lock::write_request(target, request, body);
    const bool looks = request.verb == lock::Request::Verb::look;
    return dynamodb::ask(
        context(), lock::action_of(request.verb, target.policy), body,
        maybe_applied, nullptr, lock::wanted_of(*target.layout, looks));
  }
  // The item as it stands, if there is one.
  Answer look(const lock::RowTarget& target, LockInfo& info) const {
    lock::Request look;
    look.consistent = true;
    Answer answer = ask(target, look);
    if (answer.item) {
      info = detail::describe(std::move(*answer.item), options_, table_.client);
    }
    return answer;
  }
  dynamodb::CallContext context() const { return context(options_.patience); }
  // If the table was closed before, the time is up already.
  dynamodb::CallContext context(milliseconds patience) const {
    sigv4::Waker* const waker = wait_.waker();
    return {table_.client, table_.budget,
            waker != nullptr
                ? lock::add_saturating(BootClock::now(),
                                       detail::nanoseconds_of(patience))
                : BootTime(),
            waker};
  }

 private:
  std::string cannot() const {
    return name_ != nullptr ? detail::cannot_text(what_, *name_, options_.name)
                            : sigv4::join({"cannot ", what_, " table ",
                                           sigv4::in_quotes(options_.name)});
  }

  lock::TableState& table_;
  const TableOptions& options_;
  const char* const what_;
  const std::string* const name_;
  const lock::Waits::One wait_;
  const BootTime end_;  // When TableOptions::patience is over.
};

// `name`: only the locks of this name, of all sort values; null: all locks.
ErrorPtr list_locks(lock::TableState& table, const TableOptions& options,
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
ErrorPtr check_creation(const Creation& how, Layout layout) {
  for (const auto& [key, value] : how.tags) {
    if (!sigv4::is_utf8(key) || !sigv4::is_utf8(value)) {
      return detail::bad_option({"tags", "not UTF-8", key});
    }
  }
  if (how.clean_up == Creation::CleanUp::always && layout != Layout::ddblock) {
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

Created Table::create(std::error_code& ec) { return create({}, ec); }

Created Table::create(const Creation& how, std::error_code& ec) {
  Created done;
  detail::run(impl_, ec, [&](Impl& impl) -> ErrorPtr {
    const TableOptions& options = impl.options;
    if (ErrorPtr bad = check_creation(how, options.layout)) return bad;
    const Call call(impl.get(), options, "create");
    const detail::CreationOutcome outcome =
        detail::create_table(call.context(kCreationPatience), options, how);
    done = outcome.done;
    return call.error_of_table(outcome.answer);
  });
  return done;
}

bool Table::exists(std::error_code& ec) {
  bool there = false;
  detail::run(impl_, ec, [&](Impl& impl) -> ErrorPtr {
    const TableOptions& options = impl.options;
    const Call call(impl.get(), options, "look at");
    Answer answer = dynamodb::describe_table(call.context(), options.name);
    const bool is_going = answer.table && answer.table->status == "DELETING";
    if (is_going) answer.fault = Fault::no_table;
    there = answer.fault == Fault::none;
    ErrorPtr error = call.error_of_table(answer);
    return answer.fault == Fault::no_table ? nullptr : std::move(error);
  });
  return there;
}

LockInfo Table::inspect(const std::string& name, std::error_code& ec) {
  return inspect(name, {}, ec);
}

LockInfo Table::inspect(const std::string& name, const std::string& sort_value,
                        std::error_code& ec) {
  LockInfo info;
  detail::run(impl_, ec, [&](Impl& impl) -> ErrorPtr {
    if (ErrorPtr bad = impl.check_name(name, sort_value)) return bad;
    const TableOptions& options = impl.options;
    const Call call(impl.get(), options, "inspect", &name);
    lock::RowTarget target;
    impl.set_row_target(name, sort_value, target);
    if (ErrorPtr error = call.error_of(call.look(target, info))) {
      return error;
    }
    info.name = name;
    info.sort_value = target.sort_value;
    const bool understood = info.exists || info.keep_row;
    if (info.problem.empty() || understood) return nullptr;
    return call.error_of(Errc::bad_record, info.problem);
  });
  return info;
}

void Table::list(const std::function<bool(const LockInfo&)>& each,
                 std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    return list_locks(impl.get(), impl.options, nullptr, each);
  });
}

void Table::list(const std::string& name,
                 const std::function<bool(const LockInfo&)>& each,
                 std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    // The sort value does not matter here, so a valid one is given.
    ErrorPtr bad = impl.check_name(name, impl.options.sort_key);
    return bad ? std::move(bad)
               : list_locks(impl.get(), impl.options, &name, each);
  });
}

bool Table::force_unlock(const LockInfo& info, std::error_code& ec) {
  bool freed = false;
  detail::run(impl_, ec, [&](Impl& impl) -> ErrorPtr {
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
        info.keep_row || info.token > 0 || options.layout != Layout::ddblock;
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
