// Writes that DynamoDB carries out only while the lock is ours.
#include <algorithm>
#include <chrono>
#include <memory>
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
using detail::NoCancellation;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// The condition that the lock is ours, whatever our own clock says: DynamoDB
// decides.  `mutex` may be null: then nobody has locked it in this process.
Failure check_of(const lock::Mutex* mutex, const std::string& doing,
                 std::string& check) {
  if (mutex == nullptr) return failed(Errc::not_held, doing);
  const auto possession = mutex->possession();
  if (!possession) return failed(Errc::not_held, doing);
  check = lock::write_check(mutex->route().place, possession->uuid,
                            possession->token);
  return {};
}

// What an answer of a table's means for a write that was to be guarded.
Failure meaning_of(const Answer& answer, const std::string& doing,
                   const std::string& endpoint) {
  if (answer.fault == Fault::none) return {};
  if (answer.fault == Fault::cancelled) return failed(Errc::closed, doing);
  if (answer.fault != Fault::condition_failed) {
    return detail::failure_of(answer, doing, endpoint);
  }
  Failure failure = answer.part == 0  // Ours.
                        ? failed(Errc::lease_lost, doing)
                        : failed(Errc::condition_failed, doing, answer.message);
  failure.request_id = answer.request_id;
  return failure;
}

// DynamoDB forgets a ClientRequestToken after ten minutes (its API reference,
// TransactWriteItems).
constexpr std::chrono::minutes kTokenLasts{9};

// The same body each time, and so the same token, by which DynamoDB carries it
// out once.
Answer send(lock::Table& table, const lock::Waits::One& wait,
            const std::string& body, nanoseconds patience,
            nanoseconds request_time) {
  const BootTime deadline = lock::later(
      BootClock::now(), std::clamp<nanoseconds>(
                            patience, request_time,
                            std::max<nanoseconds>(request_time, kTokenLasts)));
  return dynamodb::ask(*table.client, *table.budget,
                       dynamodb::Action::transact_write_items, body,
                       {deadline, wait.waker(), request_time});
}

// `Impl` is DdbMutex::Impl and `TableImpl` Table::Impl, whose names are their
// friends' alone.
template <class Impl, class TableImpl>
Failure write(Impl& impl, TableImpl& table, const std::string& items) {
  if (impl.bad) return impl.bad;
  const std::string problem = dynamodb::problem_of_writes(items);
  if (!problem.empty()) return detail::bad_option("items", problem);
  const std::string doing =
      detail::cannot("write under", impl.name, table.options.name);
  const lock::Mutex* mutex = impl.state.peek();
  std::string check;
  if (Failure none = check_of(mutex, doing, check)) return none;
  const lock::Waits::One wait(table.get().waits);
  if (wait.waker() == nullptr) return failed(Errc::closed, doing);
  const Answer answer =
      send(table.get(), wait,
           dynamodb::write_transaction(check, items, lock::fresh_uuid()),
           detail::nanoseconds_of(impl.options.patience),
           mutex->route().request_timeout);
  return meaning_of(answer, doing, table.endpoint());
}

template <class Impl>
Failure condition(Impl& impl, std::string& check) {
  if (impl.bad) return impl.bad;
  return check_of(impl.state.peek(),
                  detail::cannot("make a condition of", impl.name,
                                 impl.options.table->name()),
                  check);
}

}  // namespace

// A destructor may come meanwhile.
void DdbMutex::guarded_write(const std::string& items) {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  impl->finish(write(*impl, *impl->options.table->impl_, items), nullptr);
}

void DdbMutex::guarded_write(const std::string& items, std::error_code& ec) {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  impl->finish(write(*impl, *impl->options.table->impl_, items), &ec);
}

std::string DdbMutex::condition_check() const {
  const NoCancellation guard;
  std::string check;
  impl_->finish(condition(*impl_, check), nullptr);
  return check;
}

std::string DdbMutex::condition_check(std::error_code& ec) const {
  const NoCancellation guard;
  std::string check;
  impl_->finish(condition(*impl_, check), &ec);
  return check;
}

}  // namespace v0
}  // namespace ddbmutex
