// One call of an AnyOf: it decides what to do next, does it, and begins again,
// until it has an item, its time is up, or nothing is free.
#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "../sigv4/memory.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/waiting.hpp"
#include "any_of_impl.hpp"
#include "listing.hpp"

namespace ddbmutex {
inline namespace v0 {

using any_of::Candidate;
using any_of::LeaseJudge;
using any_of::Pass;
using any_of::SeenRows;
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
// How often a wait looks at the caller's own clock, which may be set.
constexpr std::chrono::seconds kLookAtClock{1};

bool is_transient(std::error_code ec) {
  constexpr Errc kTransient[] = {Errc::unreachable, Errc::disconnected,
                                 Errc::timed_out,   Errc::throttled,
                                 Errc::unavailable, Errc::bad_answer};
  return std::find(std::begin(kTransient), std::end(kTransient), ec) !=
         std::end(kTransient);
}

}  // namespace

// --- Calls under way ---------------------------------------------------------

AnyOf::Impl::Call::Call(Impl& impl, const detail::Deadline& deadline,
                        const std::atomic<bool>* stopped)
    : impl_(impl),
      shared_(impl.get()),
      patience_{deadline.within, deadline.left, deadline.at},
      once_(patience_.now() <= nanoseconds::zero()),
      end_(lock::later(BootClock::now(),
                       once_ ? impl.request_timeout() : patience_.now())),
      stopped_(stopped),
      wait_(shared_.table.waits),
      most_refused_(kRefusedInARow) {
  if (wait_.waker() == nullptr) return;  // The table was closed.
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  std::vector<Call*>& calls = shared_.calls;
  nested_ = std::any_of(calls.begin(), calls.end(), [&](const Call* call) {
    return call->thread_ == thread_;
  });
  if (calls.empty()) shared_.pause = shared_.first_pause;
  calls.push_back(this);
  begun_before_ = shared_.passes_begun;
  cancelled_ = stopped_ != nullptr && *stopped_;
}

AnyOf::Impl::Call::~Call() {
  // If `accept` has thrown, a pass or a try is unfinished.
  if (reading_ != nullptr) end_pass();
  if (trial_.pass != nullptr) end_try(Tried::unknown);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  std::vector<Call*>& calls = shared_.calls;
  calls.erase(std::remove(calls.begin(), calls.end(), this), calls.end());
}

void AnyOf::Impl::Shared::cancel(const std::atomic<bool>* stopped) {
  const std::lock_guard<sigv4::Mutex> guard(mutex);
  for (Call* call : calls) {
    if (stopped != nullptr && call->stopped_ != stopped) continue;
    call->cancelled_ = true;
    if (call->trying_ != nullptr) call->trying_->cancel();
    call->wait_.waker()->wake();
  }
}

void AnyOf::Impl::Shared::wake_waiting_calls() {
  for (Call* call : calls) {
    if (call->waits_) call->wait_.waker()->wake();
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
    wait_.waker()->clear();  // Before it looks for what it was woken for.
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
  if (once_) return error_of(Errc::timed_out);
  return std::move(last_failed_try_);
}

// --- What to do next ---------------------------------------------------------

BootTime AnyOf::Impl::Call::deadline() const {
  if (once_ || patience_.left == nullptr) return end_;
  return lock::later(BootClock::now(), patience_.now());
}

BootTime AnyOf::Impl::Call::last_pass_begin(BootTime end) const {
  if (patience_.forever()) return BootTime::max();
  return end - 2 * shared_.pass_takes;
}

AnyOf::Impl::Call::Step AnyOf::Impl::Call::next_step() {
  const BootTime end = deadline();  // May read the caller's clock: no mutex.
  const BootTime now = BootClock::now();
  const bool just_read = std::exchange(just_read_, false);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  const Pass& last = *shared_.last_pass;
  if (last.number > begun_before_) {
    had_own_ = true;
    if (once_ && own_ == nullptr) own_ = shared_.last_pass;
  }
  if (own_ != nullptr) return next_step_in_own_pass();
  if (!once_ && now >= end && !just_read) return Step::give_up;
  const bool serves =
      now - last.ended <= kServesFor && last.refused_in_a_row < kRefusedInARow;
  if (serves && begin_try(shared_.last_pass)) return Step::try_item;
  if (now >= end) return Step::give_up;
  BootTime until{};
  if (had_own_) {
    until = shared_.passes_under_way > 0 ? end
                                         : std::min(shared_.next_pass_at, end);
  } else if (shared_.passes_under_way > 0) {
    // Another thread's pass may do.  If not, there is time for one of its own.
    until = last_pass_begin(end);
  }
  return now < until ? begin_wait(until) : begin_pass();
}

// try_lock(), which may say that nothing is free once all candidates of its own
// pass were tried.  Others may have got most of them by then.  So that it does
// not try all in vain, it reads again after 5 refusals in a row, after 10 of
// the next pass, and so on, as long as there is time for that.
AnyOf::Impl::Call::Step AnyOf::Impl::Call::next_step_in_own_pass() {
  const BootTime now = BootClock::now();
  const Pass& own = *own_;
  const bool can_read = unread_ == nullptr && now < last_pass_begin(end_);
  const bool useless = own.refused_in_a_row >= most_refused_ &&
                       own.has_candidates() && shared_.passes_under_way == 0;
  if (useless && can_read) {
    most_refused_ *= 2;
    return begin_pass();
  }
  if (begin_try(own_)) return Step::try_item;
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
  while (pass->has_candidates()) {
    trial_.item = pass->take_one(shared_.table.budget);
    if (!shared_.is_due(trial_.item, trial_.mutex)) continue;
    ++pass->being_tried;
    trial_.pass = pass;
    return true;
  }
  return false;
}

AnyOf::Impl::Call::Step AnyOf::Impl::Call::begin_pass() {
  reading_ = std::make_shared<Pass>(++shared_.passes_begun, shared_.seen);
  ++shared_.passes_under_way;
  return Step::read_table;
}

AnyOf::Impl::Call::Step AnyOf::Impl::Call::begin_wait(BootTime until) {
  wait_until_ = until;
  waits_ = true;
  return Step::wait;
}

void AnyOf::Impl::Call::wait() {
  BootTime until = wait_until_;
  if (patience_.left != nullptr) {
    until = std::min(until, BootClock::now() + kLookAtClock);
  }
  sigv4::drive(nullptr, 0, until, wait_.waker());
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  waits_ = false;
}

// --- Reading the table -------------------------------------------------------

ErrorPtr AnyOf::Impl::Call::read_table() {
  const TableOptions& table = impl_.table().options;
  dynamodb::Selection selection =
      detail::selection_of(table, impl_.options.read);
  selection.prefix += impl_.options.prefix;
  dynamodb::Caller caller{shared_.table.client, shared_.table.budget,
                          BootTime::max(), wait_.waker(),
                          impl_.request_timeout()};
  const bool forever = patience_.forever();
  if (!forever) caller.moving_deadline = [this] { return deadline(); };
  dynamodb::Items items(caller, selection,
                        forever ? nanoseconds_of(impl_.options.each.patience)
                                : nanoseconds::max());
  const LeaseJudge leases(shared_.table.client,
                          table.calendar_margin.value_or(milliseconds(0)),
                          impl_.options.each.ttl);
  bool time_is_up = false;  // `accept` may be slow.
  while (!time_is_up && !wait_.waker()->woken()) {
    LockInfo item;
    if (!detail::tell_next(items, table, item)) break;
    if (is_wanted(item)) reading_->see(item, leases, shared_.table.budget);
    time_is_up = BootClock::now() >= deadline();
  }
  return judge_reading(items, time_is_up);
}

bool AnyOf::Impl::Call::is_wanted(const LockInfo& item) const {
  return item.problem.empty() &&
         sigv4::begins_with(item.name, impl_.options.prefix) &&
         !impl_.table().check_name(item.name, item.sort_value) &&
         (!impl_.options.accept || impl_.options.accept(item));
}

// Null if the call goes on.
ErrorPtr AnyOf::Impl::Call::judge_reading(const dynamodb::Items& items,
                                          bool time_is_up) {
  const Answer& answer = items.answer();
  if (answer.fault == Fault::cancelled || wait_.waker()->woken()) {
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
               : detail::error_of(answer, impl_.cannot_lock(),
                                  impl_.table().endpoint());
  if (!no_fault && (patience_.forever() || !is_passing(answer.fault))) {
    return why;
  }
  reading_->extent = Pass::Extent::part;
  // If the time is up, or too short for another request, that tells nothing
  // new: an earlier answer or error counts.
  const bool only_time =
      no_fault || (answer.fault == Fault::timed_out && items.cut_short());
  const bool knows_more = was_answered_ || unread_ != nullptr;
  if (once_ || !only_time || !knows_more) unread_ = std::move(why);
  return nullptr;
}

void AnyOf::Impl::Call::end_pass() {
  const std::shared_ptr<Pass> pass = std::move(reading_);
  std::shared_ptr<const SeenRows> seen;
  std::vector<Shared::Watched> unneeded;  // Destroyed without the mutex.
  // Other calls wait for the end of this pass.  Without memory it counts as one
  // that has read nothing.
  sigv4::has_memory_for([&] {
    unneeded.reserve(Shared::kMostWatched);
    if (pass->extent != Pass::Extent::nothing) seen = pass->end();
  });
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  --shared_.passes_under_way;
  const BootTime now = BootClock::now();
  shared_.plan_next_pass(now, nanoseconds_of(impl_.options.longest_pause));
  if (seen != nullptr) {
    pass->ended = now;
    had_own_ = true;
    just_read_ = true;
    if (once_ &&
        (own_ == nullptr || !own_->is_complete() || pass->is_complete())) {
      own_ = pass;
      awaits_tries_until_.reset();
    }
    shared_.publish(pass, std::move(seen), unneeded);
  }
  shared_.wake_waiting_calls();
}

// --- Trying an item ----------------------------------------------------------

ErrorPtr AnyOf::Impl::Call::try_item(std::unique_ptr<DdbMutex>& locked) {
  Candidate& item = trial_.item;
  std::unique_ptr<DdbMutex>& mutex = trial_.mutex;
  if (mutex == nullptr) {
    mutex = std::make_unique<DdbMutex>(item.name, impl_.each(item.sort_value));
  }
  set_trying(mutex.get());
  std::error_code ec;
  const bool got = mutex->try_lock(ec);
  set_trying(nullptr);
  ErrorPtr error;
  if (ec) {
    error = judge_error(ec);
  } else if (got && is_still_wanted()) {
    end_try(Tried::got);
    locked = std::move(mutex);
  } else {
    was_answered_ = true;
    failing_since_ = BootTime::max();
    last_failed_try_.reset();
    end_try(Tried::refused);
    if (got) {
      mutex->unlock();
    } else if (item.watch_for > nanoseconds::zero()) {
      const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
      shared_.watch(std::move(item), std::move(mutex));
    }
  }
  mutex.reset();
  return error;
}

// Null if the call goes on.
ErrorPtr AnyOf::Impl::Call::judge_error(std::error_code ec) {
  // The item is not as the pass saw it: gone, or no lock record any more.
  const bool gone = ec == Errc::no_row || ec == Errc::bad_record;
  ErrorPtr error;
  if (!gone && ec != Errc::cancelled) {
    error = detail::make_error(ec, trial_.mutex->last_error());
  }
  end_try(gone ? Tried::refused : Tried::unknown);
  if (error == nullptr || once_ || !is_transient(ec)) return error;
  const BootTime now = BootClock::now();
  failing_since_ = std::min(failing_since_, now);
  const nanoseconds patience = nanoseconds_of(impl_.options.each.patience);
  if (patience_.forever() && now >= lock::later(failing_since_, patience)) {
    return error;
  }
  last_failed_try_ = std::move(error);
  return nullptr;
}

// Others may have had the item since it was read.
bool AnyOf::Impl::Call::is_still_wanted() const {
  if (!impl_.options.accept) return true;
  const DdbMutex& mutex = *trial_.mutex;
  LockInfo item;
  item.name = trial_.item.name;
  item.sort_value = trial_.item.sort_value;
  item.exists = true;
  item.owner = mutex.owner();
  item.lease = impl_.options.each.ttl;
  item.token = mutex.fencing_token();
  item.data = mutex.data();
  item.attributes = mutex.attributes();
  return impl_.options.accept(item);
}

void AnyOf::Impl::Call::set_trying(DdbMutex* mutex) {
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  trying_ = mutex;
}

void AnyOf::Impl::Call::end_try(Tried how) {
  const std::shared_ptr<Pass> pass = std::move(trial_.pass);
  const std::lock_guard<sigv4::Mutex> guard(shared_.mutex);
  switch (how) {
    case Tried::got:
      pass->refused_in_a_row = 0;
      shared_.pause = shared_.first_pause;
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
