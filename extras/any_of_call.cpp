// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// One call of an AnyOf: it decides what to do next, does it, and begins again,
// until it has an item, its time is up, or nothing is free.
#include <algorithm>
#include <mutex>
#include <optional>
#include <utility>

#include "../ddbmutex/dynamodb/clock.hpp"
#include "../ddbmutex/lock/protocol.hpp"
#include "../sigv4/text.hpp"
#include "any_of_impl.hpp"
#include "listing.hpp"

namespace ddbmutex {
inline namespace v0 {

using any_of::Pass;
using detail::ErrorPtr;
using detail::nanoseconds_of;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// After so many refusals in a row, others have probably got most of a pass.
constexpr int kRefusedInARow = 5;
// How long a pass that has ended is used by all calls.
constexpr std::chrono::seconds kServesFor{1};

// A lease must have been over for this long, in addition to what a DdbMutex
// allows for clocks that differ.  Usually that is more than the uncertainty of
// DynamoDB's clock; if it is not, the try is refused.
constexpr milliseconds kOverBy{1000};

bool is_transient(std::error_code ec) {
  for (const Errc transient :
       {Errc::unreachable, Errc::disconnected, Errc::timed_out, Errc::throttled,
        Errc::unavailable, Errc::bad_answer}) {
    if (ec == transient) return true;
  }
  return false;
}

}  // namespace

// --- Calls under way ---------------------------------------------------------

AnyOf::Impl::Call::Call(Impl& impl, nanoseconds time,
                        const std::atomic<bool>* stopped)
    : impl_(impl),
      shared_(impl.get()),
      once_(time <= nanoseconds::zero()),
      forever_(time == detail::kForEver),
      end_(lock::add_saturating(BootClock::now(),
                                once_ ? impl.request_timeout() : time)),
      stopped_(stopped),
      wait_(shared_.table.waits),
      most_refused_(kRefusedInARow) {
  if (!wait_.is_registered()) return;  // The table was closed.
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  for (const Call* call : shared_.calls) {
    if (call->thread_ == thread_) nested_ = true;
  }
  if (shared_.calls.empty()) shared_.backoff.reset();
  shared_.calls.push_back(this);
  begun_before_ = shared_.passes_begun;
  cancelled_ = stopped_ != nullptr && *stopped_;
}

AnyOf::Impl::Call::~Call() {
  // If `accept` has thrown, a pass or a try is unfinished.
  if (reading_ != nullptr) end_pass();
  if (trying_from_ != nullptr) end_try(Tried::unknown);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  shared_.calls.remove(this);
}

void AnyOf::Impl::Shared::cancel(const std::atomic<bool>* stopped) {
  const std::lock_guard<sigv4::Mutex> guard(mutex);
  for (Call* call : calls) {
    if (stopped != nullptr && call->stopped_ != stopped) continue;
    call->cancelled_ = true;
    if (call->trying_ != nullptr) call->trying_->cancel();
    call->wait_.waker().wake();
  }
}

void AnyOf::Impl::Shared::wake_waiting_calls() {
  for (Call* call : calls) {
    if (call->waits_) call->wait_.waker().wake();
  }
}

ErrorPtr AnyOf::Impl::Call::run(std::unique_ptr<DdbMutex>& locked) {
  if (nested_) {
    return error_of(
        std::make_error_code(std::errc::resource_deadlock_would_occur));
  }
  for (;;) {
    ErrorPtr error = ended_by_others();
    if (error) return error;
    const BootTime begun = BootClock::now();
    switch (next_step()) {
      case Step::try_item:
        error = try_item(locked);
        if (once_) end_ += BootClock::now() - begun;
        break;
      case Step::read_table:
        error = read_table();
        end_pass();
        break;
      case Step::wait:
        wait();
        break;
      case Step::none_is_free:
        return nullptr;
      case Step::give_up:
        return why_given_up();
    }
    if (error || locked != nullptr) return error;
    wait_.waker().clear();  // Before it looks why it was woken.
  }
}

ErrorPtr AnyOf::Impl::Call::error_of(std::error_code why) const {
  return detail::error_of(why, impl_.cannot_lock());
}

ErrorPtr AnyOf::Impl::Call::ended_by_others() const {
  if (shared_.table.waits.closed()) return error_of(Errc::closed);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  return cancelled_ ? error_of(Errc::cancelled) : nullptr;
}

ErrorPtr AnyOf::Impl::Call::why_given_up() {
  if (unread_ != nullptr) return std::move(unread_);
  if (last_failed_try_ != nullptr) return std::move(last_failed_try_);
  if (was_answered_ && !once_) return nullptr;
  return cut_short_ ? std::move(cut_short_) : error_of(Errc::timed_out);
}

// --- What to do next ---------------------------------------------------------

BootTime AnyOf::Impl::Call::last_pass_begin() const {
  return forever_ ? BootTime::max() : end_ - 2 * shared_.pass_takes;
}

AnyOf::Impl::Call::Step AnyOf::Impl::Call::next_step() {
  const BootTime now = BootClock::now();
  const bool just_read = std::exchange(just_read_, false);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  const Pass& last = *shared_.last_pass;
  if (last.number > begun_before_) {
    had_own_ = true;
    if (last.extent == Pass::Extent::all) was_answered_ = true;
    if (once_ && own_pass_ == nullptr) own_pass_ = shared_.last_pass;
  }
  if (own_pass_ != nullptr) return next_step_in_own_pass();
  if (!once_ && now >= end_ && !just_read) return Step::give_up;
  const bool serves =
      now - last.ended <= kServesFor && last.refused_in_a_row < kRefusedInARow;
  if (serves && begin_try(shared_.last_pass)) return Step::try_item;
  if (now >= end_) return Step::give_up;
  BootTime until{};
  if (had_own_) {
    until = shared_.passes_under_way > 0 ? end_
                                         : std::min(shared_.next_pass_at, end_);
  } else if (shared_.passes_under_way > 0) {
    // The pass of another thread may find an item.  If it does not, there is
    // still time for one by this call.
    until = last_pass_begin();
  }
  return now < until ? begin_wait(until) : begin_pass();
}

// For try_lock(), which may report that nothing is free once all candidates of
// its own pass were tried.  Others may have got most of them by then.  So it
// reads again after 5 refusals in a row, then after 10, and so on, as long as
// there is time for another pass.
AnyOf::Impl::Call::Step AnyOf::Impl::Call::next_step_in_own_pass() {
  const BootTime now = BootClock::now();
  const Pass& own = *own_pass_;
  const bool can_read = unread_ == nullptr && now < last_pass_begin();
  const bool useless = own.refused_in_a_row >= most_refused_ &&
                       !own.candidates.empty() && shared_.passes_under_way == 0;
  if (useless && can_read) {
    most_refused_ *= 2;
    return begin_pass();
  }
  if (begin_try(own_pass_)) return Step::try_item;
  if (own.being_tried > 0) {
    // By other threads; each of their tries ends within request_timeout.
    if (!awaits_tries_until_) {
      awaits_tries_until_ = now + impl_.request_timeout();
    }
    const bool can_wait = now < *awaits_tries_until_;
    return can_wait ? begin_wait(*awaits_tries_until_) : Step::give_up;
  }
  if (own.is_complete()) return Step::none_is_free;
  return can_read ? begin_pass() : Step::give_up;
}

bool AnyOf::Impl::Call::begin_try(const std::shared_ptr<Pass>& pass) {
  while (!pass->candidates.empty()) {
    item_ = pass->take_one(shared_.table.budget);
    if (!shared_.is_due(item_, mutex_)) continue;
    ++pass->being_tried;
    trying_from_ = pass;
    return true;
  }
  return false;
}

AnyOf::Impl::Call::Step AnyOf::Impl::Call::begin_pass() {
  reading_ = std::make_shared<Pass>(++shared_.passes_begun, shared_.last_rows);
  ++shared_.passes_under_way;
  return Step::read_table;
}

AnyOf::Impl::Call::Step AnyOf::Impl::Call::begin_wait(BootTime until) {
  wait_until_ = until;
  waits_ = true;
  return Step::wait;
}

void AnyOf::Impl::Call::wait() {
  wait_.waker().wait_until(wait_until_);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  waits_ = false;
}

// --- Reading the table -------------------------------------------------------

ErrorPtr AnyOf::Impl::Call::read_table() {
  const TableOptions& table = impl_.table().options;
  dynamodb::Selection selection =
      detail::selection_of(table, impl_.options.read);
  selection.prefix += impl_.options.prefix;
  const dynamodb::CallContext context{
      *shared_.table.keeper, shared_.table.client,   shared_.table.budget, end_,
      &wait_.waker(),        impl_.request_timeout()};
  dynamodb::Items items(context, selection,
                        forever_ ? nanoseconds_of(impl_.options.each.patience)
                                 : nanoseconds::max());
  bool time_is_up = false;  // `accept` may be slow.
  while (!time_is_up && !wait_.waker().woken()) {
    const std::optional<LockInfo> item = detail::describe_next(items, table);
    if (!item) break;
    if (is_wanted(*item)) {
      reading_->see(*item, wait_for_lease(*item), shared_.table.budget);
    }
    time_is_up = BootClock::now() >= end_;
  }
  return judge_reading(items, time_is_up);
}

bool AnyOf::Impl::Call::is_wanted(const LockInfo& item) const {
  return item.problem.empty() &&
         sigv4::begins_with(item.name, impl_.options.prefix) &&
         !impl_.table().check_name(item.name, item.sort_value) &&
         (!impl_.options.accept || impl_.options.accept(item));
}

// Judges by the row alone whether the lease is over: see Pass::see().
std::optional<nanoseconds> AnyOf::Impl::Call::wait_for_lease(
    const LockInfo& item) const {
  if (!item.exists || item.released) return nanoseconds::zero();
  const dynamodb::ServiceClock clock = shared_.table.client.clock();
  if (clock.known() && item.expires < lock::kBeyondAllClocks) {
    const auto margin =
        impl_.table().options.calendar_margin.value_or(milliseconds::zero());
    const nanoseconds over_by =
        std::max<nanoseconds>(lock::kFrontEndSkew, margin) + kOverBy;
    if (clock.middle(BootClock::now()) - item.expires < over_by) return {};
    return nanoseconds::zero();
  }
  const bool has_lease = item.lease > milliseconds::zero();
  return lock::waited_for(has_lease ? item.lease : impl_.options.each.ttl);
}

ErrorPtr AnyOf::Impl::Call::error_of_reading(const Answer& answer) const {
  const nanoseconds time = impl_.request_timeout();
  const dynamodb::CallContext context{
      *shared_.table.keeper, shared_.table.client,
      shared_.table.budget,  std::min(end_, BootClock::now() + time),
      &wait_.waker(),        time};
  Answer explained;
  answer.copy_fault_to(explained);
  const TableOptions& table = impl_.table().options;
  dynamodb::explain_wrong_key(context, table.name, table.key, table.sort_key,
                              explained);
  return detail::error_of(explained, impl_.cannot_lock(),
                          impl_.table().endpoint());
}

// Null if the call goes on.
ErrorPtr AnyOf::Impl::Call::judge_reading(const dynamodb::Items& items,
                                          bool time_is_up) {
  const Answer& answer = items.answer();
  if (answer.fault == Fault::cancelled || wait_.waker().woken()) {
    return nullptr;
  }
  const bool no_fault = answer.fault == Fault::none;
  if (no_fault && !time_is_up) {
    reading_->extent = Pass::Extent::all;
    was_answered_ = true;
    unread_.reset();
    return nullptr;
  }
  ErrorPtr why =
      no_fault ? detail::error_of(Errc::timed_out, impl_.cannot_lock(),
                                  "the table has not been read to its end")
               : error_of_reading(answer);
  if (!no_fault && (forever_ || !is_transient(answer.fault))) {
    return why;
  }
  reading_->keep_rows_before();
  reading_->extent = Pass::Extent::part;
  const bool only_time =
      no_fault || (answer.fault == Fault::timed_out && items.cut_short());
  ErrorPtr& kept = only_time && !once_ ? cut_short_ : unread_;
  kept = std::move(why);
  return nullptr;
}

void AnyOf::Impl::Call::end_pass() {
  const std::shared_ptr<Pass> pass = std::move(reading_);
  // Both are destroyed without the mutex.
  const std::shared_ptr<const Pass> before = std::move(pass->rows_before);
  std::list<Shared::Watched> unneeded;
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  --shared_.passes_under_way;
  const BootTime now = BootClock::now();
  shared_.plan_next_pass(now, nanoseconds_of(impl_.options.longest_pause));
  if (pass->extent != Pass::Extent::nothing) {
    pass->ended = now;
    had_own_ = true;
    just_read_ = true;
    if (once_ && (own_pass_ == nullptr || !own_pass_->is_complete() ||
                  pass->is_complete())) {
      own_pass_ = pass;
      awaits_tries_until_.reset();
    }
    unneeded = shared_.publish(pass);
  }
  shared_.wake_waiting_calls();
}

// --- Trying an item ----------------------------------------------------------

ErrorPtr AnyOf::Impl::Call::try_item(std::unique_ptr<DdbMutex>& locked) {
  if (mutex_ == nullptr) {
    mutex_.reset(new DdbMutex(item_.name, impl_.each(item_.sort_value)));
  }
  set_trying(mutex_.get());
  std::error_code ec;
  const bool got = mutex_->try_lock(ec);
  set_trying(nullptr);
  ErrorPtr error;
  if (ec) {
    error = judge_error(ec);
  } else if (got && is_still_wanted()) {
    end_try(Tried::got);
    locked = std::move(mutex_);
  } else {
    was_answered_ = true;
    failing_since_ = BootTime::max();
    last_failed_try_.reset();
    end_try(Tried::refused);
    if (got) {
      mutex_->unlock();
    } else if (item_.has_to_be_watched()) {
      const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
      shared_.watch(item_, mutex_);
    }
  }
  mutex_.reset();
  return error;
}

// Null if the call goes on.
ErrorPtr AnyOf::Impl::Call::judge_error(std::error_code ec) {
  // The item is not as the pass saw it: gone, or no lock record any more.
  const bool gone = ec == Errc::no_row || ec == Errc::bad_record;
  ErrorPtr error;
  if (!gone && ec != Errc::cancelled) {
    error = detail::make_error(ec, mutex_->last_error());
  }
  end_try(gone ? Tried::refused : Tried::unknown);
  if (error == nullptr || once_ || !is_transient(ec)) return error;
  const BootTime now = BootClock::now();
  failing_since_ = std::min(failing_since_, now);
  const nanoseconds patience = nanoseconds_of(impl_.options.each.patience);
  if (forever_ && now >= lock::add_saturating(failing_since_, patience)) {
    return error;
  }
  last_failed_try_ = std::move(error);
  return nullptr;
}

// Others may have had the item since it was read.
bool AnyOf::Impl::Call::is_still_wanted() const {
  if (!impl_.options.accept) return true;
  LockInfo item;
  item.name = item_.name;
  item.sort_value = item_.sort_value;
  item.exists = true;
  item.owner = mutex_->owner();
  item.lease = impl_.options.each.ttl;
  item.token = mutex_->fencing_token();
  item.data = mutex_->data();
  item.item = mutex_->item();
  return impl_.options.accept(item);
}

void AnyOf::Impl::Call::set_trying(DdbMutex* mutex) {
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  trying_ = mutex;
}

void AnyOf::Impl::Call::end_try(Tried how) {
  const std::shared_ptr<Pass> pass = std::move(trying_from_);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  switch (how) {
    case Tried::got:
      pass->refused_in_a_row = 0;
      shared_.backoff.reset();
      break;
    case Tried::refused:
      ++pass->refused_in_a_row;
      break;
    case Tried::unknown:
      pass->left_out = true;
      break;
  }
  if (--pass->being_tried == 0) shared_.wake_waiting_calls();
}

}  // namespace v0
}  // namespace ddbmutex
