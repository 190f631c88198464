#ifndef DDBMUTEX_NO_GUARD
// Writes that DynamoDB carries out only while the lock is ours.
#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "ask.hpp"
#include "face.hpp"
#include "failure.hpp"
#include "mutex.hpp"
#include "queue.hpp"
#include "record.hpp"
#include "table.hpp"
#include "transact.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::failed;
using detail::Failure;
using detail::run;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// The condition that the lock is ours, whatever our own clock says: DynamoDB
// decides.  `mutex` may be null: then nobody has locked it in this process.
Failure check_of(const lock::Mutex* mutex, const std::string& doing,
                 sigv4::Text& check) {
  const lock::Handle held = mutex != nullptr ? mutex->tied() : lock::Handle();
  if (held == nullptr) return failed(Errc::not_held, doing);
  lock::Request request;
  request.verb = lock::Request::Verb::check;
  request.uuid = held->lease.uuid();
  request.token = held->lease.token();
  lock::write_request(mutex->holder().place, request, check);
  return nullptr;
}

// What an answer of a table's means for a write that was to be guarded.
Failure meaning_of(const Answer& answer, const std::string& doing,
                   const std::string& endpoint) {
  if (answer.fault == Fault::none) return nullptr;
  if (answer.fault == Fault::cancelled) return failed(Errc::closed, doing);
  if (answer.fault != Fault::condition_failed) {
    return detail::failure_of(answer, doing, endpoint);
  }
  return answer.part == 0  // Ours.
             ? failed(Errc::lease_lost, doing, {}, answer.request_id)
             : failed(Errc::condition_failed, doing, answer.message,
                      answer.request_id);
}

// DynamoDB forgets a ClientRequestToken after ten minutes (its API reference,
// TransactWriteItems).
constexpr std::chrono::minutes kTokenLasts{9};

// The same body each time, and so the same token, by which DynamoDB carries it
// out once.
Answer send(lock::Table& table, sigv4::Waker* waker, std::string_view body,
            nanoseconds patience, nanoseconds request_time) {
  const nanoseconds longest = std::max<nanoseconds>(request_time, kTokenLasts);
  const BootTime deadline = lock::later(
      BootClock::now(), std::clamp(patience, request_time, longest));
  return dynamodb::ask(
      {table.client, table.budget, deadline, waker, request_time},
      dynamodb::Action::transact_write_items, body, nullptr,
      dynamodb::read_cancellation);
}

}  // namespace

void DdbMutex::guarded_write(const std::string& items, std::error_code& ec) {
  run(impl_, ec, [&](Impl& impl) {
    const std::string problem = dynamodb::problem_of_writes(items);
    if (!problem.empty()) return detail::bad_option({"items", problem.c_str()});
    const std::string doing = impl.cannot("write under");
    const lock::Mutex* mutex = impl.state.peek();
    sigv4::Text check;
    if (Failure none = check_of(mutex, doing, check)) return none;
    Table::Impl& table = *impl.table->impl_;
    const lock::Waits::One wait(table.get().waits);
    if (wait.waker() == nullptr) return failed(Errc::closed, doing);
    const Answer answer =
        send(table.get(), wait.waker(),
             dynamodb::write_transaction(check, items, lock::fresh_uuid()),
             detail::nanoseconds_of(impl.options.patience),
             mutex->holder().request_timeout);
    return meaning_of(answer, doing, table.endpoint());
  });
}

std::string DdbMutex::condition_check(std::error_code& ec) const {
  sigv4::Text check;
  run(impl_, ec, [&](Impl& impl) {
    return check_of(impl.state.peek(), impl.cannot("make a condition of"),
                    check);
  });
  return check.take();
}

}  // namespace v0
}  // namespace ddbmutex
#endif
