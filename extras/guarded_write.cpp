// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Guarded writes: DynamoDB carries them out only while the lock is ours.  They
// are sent in one transaction together with a ConditionCheck of the lock's row.
#include "guarded_write.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>

#include "../ddbmutex/dynamodb/ask.hpp"
#include "../ddbmutex/errors.hpp"
#include "../ddbmutex/impl.hpp"
#include "../ddbmutex/lock/keeper.hpp"
#include "../ddbmutex/lock/mutex.hpp"
#include "../ddbmutex/lock/queue.hpp"
#include "../ddbmutex/lock/requests.hpp"
#include "../ddbmutex/lock/row.hpp"
#include "transact.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::ErrorPtr;
using detail::Inside;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// Writes a ConditionCheck that fails unless we hold the lock, and sets `held`
// to our lease.  Our own clock does not matter here, because DynamoDB decides.
// `mutex` is null if nobody has locked it in this process.
ErrorPtr check_of(const lock::Mutex* mutex, const std::string& cannot,
                  lock::HoldPtr& held, sigv4::Text& check) {
  if (mutex != nullptr) held = mutex->held();
  if (held == nullptr) return detail::error_of(Errc::not_held, cannot);
  lock::Request request;
  request.verb = lock::Request::Verb::check;
  request.uuid = held->lease.uuid();
  request.token = held->lease.token();
  lock::write_request(mutex->settings().place, request, check);
  return nullptr;
}

// The lock's ConditionCheck is the first part of the transaction.
bool lock_check_failed(const Answer& answer) {
  return answer.fault == Fault::condition_failed && answer.part == 0;
}

// A transaction names the user's tables and items as well as the lock's.  Only
// DynamoDB's message, or the number of the part, says which of them it means.
const char* remark_on(const Answer& answer) {
  switch (answer.fault) {
    case Fault::no_table:
    case Fault::access_denied:
      return " (it may be any table of the write, or the lock's)";
    case Fault::bad_request:
      // -1: DynamoDB names no part, so the request itself is wrong.  The lock's
      // part is ours, so it is the write.
      return answer.part < 0 ? " (of the write, not of the lock)" : "";
    default:
      return "";
  }
}

// Null if the writes were made.  `loss`: how the lock was lost, if it was.
ErrorPtr error_of_write(const Answer& answer, const std::string& cannot,
                        const std::string& endpoint, std::string_view loss) {
  switch (answer.fault) {
    case Fault::none:
      return nullptr;
    case Fault::cancelled:
      return detail::error_of(Errc::closed, cannot);
    case Fault::condition_failed:
      if (lock_check_failed(answer)) {
        return detail::error_of(Errc::lease_lost, cannot, loss,
                                answer.request_id);
      }
      return detail::error_of(Errc::condition_failed, cannot, answer.message,
                              answer.request_id);
    default:
      return detail::error_of(answer, cannot, endpoint, remark_on(answer));
  }
}

// DynamoDB forgets a ClientRequestToken after ten minutes (its API reference,
// TransactWriteItems).  A later retry could make the writes twice.
constexpr std::chrono::minutes kRetryWritesFor{9};

}  // namespace

void guarded_write(DdbMutex& object, const std::string& items,
                   std::error_code& ec) {
  detail::run(Inside::of(object), ec, [&](auto& impl) -> ErrorPtr {
    const std::string problem = dynamodb::problem_of_writes(items);
    if (!problem.empty()) return detail::bad_option({"items", problem.c_str()});
    const std::string cannot = impl.cannot_text("write under");
    const lock::Mutex* mutex = impl.state.peek();
    lock::HoldPtr held;
    sigv4::Text check;
    if (ErrorPtr error = check_of(mutex, cannot, held, check)) return error;
    auto& table_impl = *Inside::of(*impl.table);
    lock::TableState& table = table_impl.get();
    const lock::Waits::One wait(table.waits);
    if (!wait.is_registered()) return detail::error_of(Errc::closed, cannot);
    const nanoseconds request_timeout = mutex->settings().request_timeout;
    const nanoseconds patience = std::max(
        request_timeout,
        std::min<nanoseconds>(mutex->settings().patience, kRetryWritesFor));
    // Every attempt sends the same body with the same token, so that DynamoDB
    // makes the writes only once.
    const Answer answer = dynamodb::ask(
        {*table.keeper, table.client, table.budget,
         lock::add_saturating(BootClock::now(), patience), &wait.waker(),
         request_timeout},
        dynamodb::Action::transact_write_items,
        dynamodb::write_transaction(check, items, lock::fresh_uuid()), nullptr,
        dynamodb::read_cancellation);
    std::string loss;
    if (lock_check_failed(answer)) {
      // The lock is lost.  A renewal finds out how, and the loss is reported.
      loss = detail::loss_text(table.keeper->confirm_loss(
          *held, lock::add_saturating(BootClock::now(), request_timeout)));
    }
    return error_of_write(answer, cannot, table_impl.endpoint(), loss);
  });
}

std::string condition_check(const DdbMutex& object, std::error_code& ec) {
  sigv4::Text check;
  detail::run(Inside::of(object), ec, [&](auto& impl) {
    lock::HoldPtr held;
    return check_of(impl.state.peek(), impl.cannot_text("make a condition of"),
                    held, check);
  });
  return check.take();
}

}  // namespace v0
}  // namespace ddbmutex
