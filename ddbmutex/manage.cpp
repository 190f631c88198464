#ifndef DDBMUTEX_NO_MANAGE
// What a Table can be asked about itself and the locks in it.  All of that may
// be sent blindly again, but for force_unlock(), which looks at what came of
// it.
#include <algorithm>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../sigv4/text.hpp"
#include "ask.hpp"
#include "attributes.hpp"
#include "failure.hpp"
#include "layouts.hpp"
#include "listing.hpp"
#include "mutex.hpp"
#include "protocol.hpp"
#include "queue.hpp"
#include "record.hpp"
#include "table.hpp"
#include "table_setup.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::cannot;
using detail::failed;
using detail::Failure;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Fault;
using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr milliseconds kCreationPatience{60000};

// A call under way, which ends when the table is closed.
class Call {
 public:
  Call(lock::Table& table, milliseconds patience, std::string doing)
      : table_(table),
        patience_(detail::nanoseconds_of(patience)),
        doing_(std::move(doing)),
        wait_(table.waits) {}

  bool may_begin() const { return wait_.waker() != nullptr; }
  Failure closed() const { return failed(Errc::closed, doing_); }
  Failure bad_record(const std::string& problem) const {
    return failed(Errc::bad_record, doing_, problem);
  }
  // A call that was woken, was woken by close().
  Failure failure_of(const Answer& answer) const {
    if (answer.fault == Fault::none) return nullptr;
    if (answer.fault == Fault::cancelled) return closed();
    return detail::failure_of(answer, doing_, client().endpoint());
  }

  Answer ask(const lock::Place& place, const lock::Request& request,
             bool* maybe_applied = nullptr) const {
    sigv4::Text body;
    lock::write_request(place, request, body);
    return dynamodb::ask(client(), budget(),
                         lock::action_of(request.verb, place.use), body.take(),
                         waiting(), maybe_applied);
  }
  // The row as it stands.
  Answer look(const lock::Place& place, Row& row) const {
    lock::Request look;
    look.consistent = true;
    Answer answer = ask(place, look);
    if (answer.item) lock::read_row(*answer.item, *place.layout, row);
    return answer;
  }

  dynamodb::Client& client() const { return table_.client; }
  dynamodb::RetryBudget& budget() const { return table_.budget; }
  dynamodb::Waiting waiting() const {
    return {lock::later(BootClock::now(), patience_), wait_.waker()};
  }

 private:
  lock::Table& table_;
  const nanoseconds patience_;
  const std::string doing_;
  const lock::Waits::One wait_;
};

std::string about_table(const char* what, const TableOptions& options) {
  return sigv4::format("cannot %s table \"%s\"", what, options.name);
}

// --- What stands in it -------------------------------------------------------

Failure list_selected(lock::Table& table, const TableOptions& options,
                      const dynamodb::Selection& selection,
                      const std::function<bool(const LockInfo&)>& each) {
  const Call call(table, options.patience, about_table("list", options));
  if (!call.may_begin()) return call.closed();
  return call.failure_of(
      detail::tell_all(table, options, selection, call.waiting(), each));
}

// Whether the row is as our forced write leaves it.  Some engines do not tell
// the row when they refuse.
Failure look_for_ours(const Call& call, const lock::Place& place,
                      const std::string& uuid, bool& ours) {
  Row row;
  const Answer answer = call.look(place, row);
  if (answer.fault != Fault::none) return call.failure_of(answer);
  ours = place.use.keep ? row.kind == Row::Kind::record && row.uuid == uuid &&
                              row.expires == nanoseconds::zero()
                        : row.kind == Row::Kind::absent;
  return nullptr;
}

}  // namespace

// --- The calls ---------------------------------------------------------------

void Table::create(std::error_code& ec) { create({}, ec); }

namespace {

// Of tags and units DynamoDB checks what else there is.
Failure check_creation(const Creation& how) {
  bool utf8 = true;
  for (const auto& [key, value] : how.tags) {
    utf8 = utf8 && lock::is_utf8(key) && lock::is_utf8(value);
  }
  const bool no_unit = how.throughput && (how.throughput->read_units == 0 ||
                                          how.throughput->write_units == 0);
  return detail::check_all({{"tags", utf8 ? "" : "not UTF-8"},
                            {"throughput", no_unit ? "less than a unit" : ""}});
}

}  // namespace

void Table::create(const Creation& how, std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) -> Failure {
    const TableOptions& options = impl.options;
    if (Failure bad = check_creation(how)) return bad;
    const Call call(impl.get(), kCreationPatience,
                    about_table("create", options));
    if (!call.may_begin()) return call.closed();
    const Answer answer = detail::create_table(call.client(), call.budget(),
                                               options, how, call.waiting());
    if (answer.fault != Fault::none) return call.failure_of(answer);
    return detail::unfit(*answer.table, options);
  });
}

bool Table::exists(std::error_code& ec) {
  bool there = false;
  detail::run(impl_, ec, [&](Impl& impl) -> Failure {
    const TableOptions& options = impl.options;
    const Call call(impl.get(), options.patience,
                    about_table("look at", options));
    if (!call.may_begin()) return call.closed();
    const Answer answer = detail::describe_table(call.client(), call.budget(),
                                                 options, call.waiting());
    if (answer.fault == Fault::no_table) return nullptr;
    if (answer.fault != Fault::none) return call.failure_of(answer);
    there = true;
    return detail::unfit(*answer.table, options);
  });
  return there;
}

LockInfo Table::inspect(const std::string& name, std::error_code& ec) {
  return inspect(name, {}, ec);
}

LockInfo Table::inspect(const std::string& name, const std::string& sort_value,
                        std::error_code& ec) {
  LockInfo info;
  detail::run(impl_, ec, [&](Impl& impl) -> Failure {
    if (Failure bad = impl.check_name(name, sort_value)) return bad;
    const TableOptions& options = impl.options;
    const Call call(impl.get(), options.patience,
                    cannot("inspect", name, options.name));
    if (!call.may_begin()) return call.closed();
    lock::Place place;
    impl.put_place(name, sort_value, place);
    Row row;
    const Answer answer = call.look(place, row);
    if (answer.fault != Fault::none) return call.failure_of(answer);
    info.name = name;
    info.sort_value = place.sort_value;
    if (!answer.item) return nullptr;
    if (row.kind == Row::Kind::unknown) return call.bad_record(row.problem);
    detail::tell_row(row, options, call.client().clock(), info);
    detail::tell_stored(row.others, options, info);
    return nullptr;
  });
  return info;
}

void Table::list(const std::function<bool(const LockInfo&)>& each,
                 std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    return list_selected(impl.get(), impl.options,
                         detail::selection_of(impl.options), each);
  });
}

void Table::list(const std::string& name,
                 const std::function<bool(const LockInfo&)>& each,
                 std::error_code& ec) {
  detail::run(impl_, ec, [&](Impl& impl) {
    // Any sort value is as good as another here.
    const TableOptions& options = impl.options;
    if (Failure bad = impl.check_name(name, options.sort_key)) return bad;
    dynamodb::Selection selection = detail::selection_of(options);
    selection.prefix += name;
    selection.whole = true;
    return list_selected(impl.get(), options, selection, each);
  });
}

bool Table::force_unlock(const LockInfo& info, std::error_code& ec) {
  bool freed = false;
  detail::run(impl_, ec, [&](Impl& impl) -> Failure {
    if (!info.exists || info.released || info.uuid.empty()) {
      return detail::bad_option({"info", "nothing was held"});
    }
    if (Failure bad = impl.check_name(info.name, info.sort_value)) return bad;
    const Call call(impl.get(), impl.options.patience,
                    cannot("free", info.name, impl.options.name));
    if (!call.may_begin()) return call.closed();
    lock::Place place;
    impl.put_place(info.name, info.sort_value, place);
    place.use.keep = info.token > 0 || detail::keeps_rows({}, impl.options);
    bool maybe_applied = false;
    lock::Request force;
    force.verb = lock::Request::Verb::force;
    force.uuid = info.uuid;
    force.stamp = info.expires;
    const Answer answer = call.ask(place, force, &maybe_applied);
    freed = answer.fault == Fault::none;
    if (answer.fault != Fault::condition_failed) return call.failure_of(answer);
    if (!maybe_applied) return nullptr;
    return look_for_ours(call, place, info.uuid, freed);
  });
  return freed;
}

}  // namespace v0
}  // namespace ddbmutex
#endif
