// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Table::inspect(), and what it shares with the extras: a call about a table,
// and the description of an item.  An item that is not understood is described
// by a problem.
#include "inspect.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "../sigv4/text.hpp"
#include "../sigv4/thread.hpp"
#include "dynamodb/clock.hpp"
#include "impl.hpp"
#include "lock/protocol.hpp"
#include "lock/requests.hpp"
#include "lock/row_format.hpp"
#include "stored.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::Call;
using detail::ErrorPtr;
using dynamodb::Answer;
using dynamodb::Fault;
using lock::Row;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// --- A call ------------------------------------------------------------------

Call::Call(lock::TableState& table, const TableOptions& options,
           const char* what, const std::string* name)
    : table_(table),
      options_(options),
      what_(what),
      name_(name),
      wait_(table.waits),
      end_(lock::add_saturating(BootClock::now(),
                                detail::nanoseconds_of(options.patience))) {}

std::string Call::cannot() const {
  return name_ != nullptr ? detail::cannot_text(what_, *name_, options_.name)
                          : sigv4::join({"cannot ", what_, " table ",
                                         sigv4::in_quotes(options_.name)});
}

ErrorPtr Call::error_of(Errc why, std::string_view more) const {
  return detail::error_of(why, cannot(), more);
}

ErrorPtr Call::error_of(const Answer& answer) const {
  if (answer.fault == Fault::none) return nullptr;
  if (answer.fault == Fault::cancelled || !wait_.is_registered()) {
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

Answer Call::ask(const lock::RowTarget& target, const lock::Request& request,
                 bool* maybe_applied) const {
  sigv4::Text body;
  lock::write_request(target, request, body);
  const bool looks = request.verb == lock::Request::Verb::look;
  return dynamodb::ask(context(), lock::action_of(request.verb, target.policy),
                       body, maybe_applied, nullptr,
                       lock::wanted_of(*target.format, looks));
}

Answer Call::look(const lock::RowTarget& target, LockInfo& info) const {
  lock::Request look;
  look.consistent = true;
  Answer answer = ask(target, look);
  if (answer.item) {
    info = detail::describe(std::move(*answer.item), options_, table_.client);
  }
  return answer;
}

dynamodb::CallContext Call::context(milliseconds patience) const {
  return {*table_.keeper, table_.client, table_.budget,
          wait_.is_registered()
              ? lock::add_saturating(BootClock::now(),
                                     detail::nanoseconds_of(patience))
              : BootTime(),
          &wait_.waker()};
}

// --- An item -----------------------------------------------------------------

namespace {

void describe_record(const Row& row, const TableOptions& options,
                     const dynamodb::Client& client, LockInfo& info) {
  info.exists = true;
  info.released = row.expires == nanoseconds::zero();
  info.uuid = row.uuid;
  info.owner = row.owner;
  info.lease = row.lease.value_or(milliseconds::zero());
  info.expires = row.expires;
  info.token = static_cast<std::uint64_t>(row.token);
  const dynamodb::ServiceClock clock = client.clock();
  if (info.released || !clock.known() ||
      row.expires >= lock::kBeyondAllClocks) {
    return;  // Nothing says when the lease ends.
  }
  const BootTime now = BootClock::now();
  const milliseconds margin =
      options.calendar_margin.value_or(milliseconds::zero());
  info.expired = lock::is_over_for_newcomers(row.expires, margin, clock, now);
  // Programs of other libraries store no lease, and add no margin to the end.
  const nanoseconds end =
      row.expires - (row.lease ? margin : milliseconds::zero());
  const auto left =
      std::chrono::duration_cast<milliseconds>(end - clock.middle(now));
  info.left = left;
  if (row.lease) info.age = std::max(*row.lease - left, milliseconds::zero());
}

}  // namespace

LockInfo detail::describe(dynamodb::Item&& item, const TableOptions& options,
                          const dynamodb::Client& client) {
  const Row row = lock::read_row(std::move(item), *options.rows);
  LockInfo info;
  if (row.kind == Row::Kind::unknown) {
    info.problem = row.problem;
    return info;
  }
  info.keep_row = row.has_token || row.kind == Row::Kind::bare;
  info.data = data_of(row.others);
  info.item = item_text(row.others, options);
  if (!row.unread.empty()) {
    info.problem = sigv4::join(
        {sigv4::in_quotes(row.unread), " was not read: more than ",
         sigv4::Digits(dynamodb::kMostOthers),
         " values are stored, or they are nested more than 32 deep"});
  }
  if (row.kind == Row::Kind::record) {
    describe_record(row, options, client, info);
  }
  return info;
}

// --- The calls ---------------------------------------------------------------

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

}  // namespace v0
}  // namespace ddbmutex
