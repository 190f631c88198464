// One call of lock() is an Acquisition: it waits for its turn among the threads
// of the process, then asks DynamoDB until the lock is ours or its time is up.
#include "mutex.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "../../sigv4/backoff.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;

BootTime add_saturating(BootTime now, nanoseconds by) {
  return by < BootTime::max() - now ? now + by : BootTime::max();
}

// --- Taking the lock ---------------------------------------------------------

class Mutex::Acquisition {
 public:
  // REQUIRES: no other wait uses the waker.
  Acquisition(Mutex& mutex, const Patience& patience, Cancel* cancel,
              sigv4::Waker& waker, Result& result);
  // The caller's clock, or an allocation, may throw.  Nobody would unlock what
  // was taken or handed over by then.
  ~Acquisition() {
    if (!attempt_.empty()) leave_nothing_behind();
    if (queued_ && leave_queue()) mutex_.release();
  }
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  // False: the call has ended without the turn.
  bool stand_in_line();
  void begin();
  void take();

 private:
  BootTime end() const {
    if (once_ || patience_.left == nullptr) return end_;
    return add_saturating(BootClock::now(), patience_.time_left());
  }
  bool time_is_up() const {
    const BootTime at = end();  // First, because it may read the clock itself.
    return BootClock::now() >= at;
  }
  bool end_as(Verdict verdict) {
    result_.verdict = verdict;
    return true;
  }
  // These are true if the call ends.
  bool ended();
  bool out_of_patience();
  bool leave_queue();
  // In the past once it has been reported; BootTime::max() while nothing fails.
  // REQUIRES: the mutex is held.
  BootTime patience_ends() const {
    return mutex_.rounds_ != round_
               ? BootTime()
               : add_saturating(mutex_.outage_.since, settings_.patience);
  }
  // A waiter in line sleeps until its deadline, or until its patience ends;
  // while nothing fails, until receive() wakes it.
  BootTime next_look() const {
    if (!patience_.forever()) return end();
    const Guard guard(mutex_.mutex_);
    return patience_ends();
  }
  void see_first();
  BootTime receive(const Answer& answer, BootTime begun);
  bool paused_in_vain(bool failing);
  void judge();
  void become_holder();
  void leave_nothing_behind();

  Mutex& mutex_;
  const MutexSettings& settings_;
  const Patience& patience_;
  Result& result_;
  const bool once_;
  bool past_lease_;  // The record that is there at first was not seen yet.
  BootTime end_;     // Unless the caller's clock decides.
  sigv4::Waker& waker_;
  Queue::Waiter waiter_;
  int round_ = 0;  // Of the mutex's trouble, as it was when the call began.

  OneAttempt attempt_;  // None once it is clear what became of it.
  sigv4::Backoff polls_;
  bool queued_ = false;  // In line, or has the turn and is not the holder yet.
  bool busy_ = false;    // The lock was another's when last told.
};

namespace {

// Unless the caller's clock decides, or a lease is waited out.
nanoseconds longest_wait(const MutexSettings& settings,
                         const Patience& patience, bool once) {
  const nanoseconds request = settings.request_timeout;
  if (once) {
    const bool looks_first =
        !settings.client.key_is_right() ||
        !knows_the_time(settings.client.clock(), BootClock::now());
    return looks_first ? 2 * request : request;
  }
  return patience.past_lease ? std::max(request, patience.within)
                             : patience.within;
}

// What is stored after these changes.
dynamodb::Item applied(const dynamodb::Item& to, const ChangesPtr& changes) {
  dynamodb::Item item;
  for (const dynamodb::Attribute& old : to) {
    bool stays = dynamodb::find(changes->set, old.name) == nullptr;
    for (const std::string& name : changes->remove) {
      stays = stays && name != old.name;
    }
    if (stays) item.push_back(old);
  }
  for (const dynamodb::Attribute& one : changes->set) item.push_back(one);
  return item;
}

}  // namespace

Mutex::Acquisition::Acquisition(Mutex& mutex, const Patience& patience,
                                Cancel* cancel, sigv4::Waker& waker,
                                Result& result)
    : mutex_(mutex),
      settings_(mutex.settings()),
      patience_(patience),
      result_(result),
      once_(!patience.past_lease &&
            patience.time_left() <= nanoseconds::zero()),
      past_lease_(patience.past_lease),
      end_(add_saturating(BootClock::now(),
                          longest_wait(settings_, patience, once_))),
      waker_(waker),
      waiter_(waker, cancel) {}

bool Mutex::Acquisition::stand_in_line() {
  {
    const Guard guard(mutex_.mutex_);
    // Whoever is to unlock may wait for a callback that comes after this one.
    const bool holds_up_callbacks =
        patience_.forever() && mutex_.table_.renewer->calls_back_here();
    const bool waits = !once_ && !holds_up_callbacks;
    const Queue::Entry entry = mutex_.queue_.enter(waiter_, waits);
    if (entry == Queue::Entry::refused) {
      result_.verdict = once_                ? Verdict::busy
                        : holds_up_callbacks ? Verdict::deadlock_of_callback
                                             : Verdict::cancelled;
      return false;
    }
    queued_ = true;
    busy_ = entry == Queue::Entry::line;
    mutex_.begin_to_wait(!busy_);
    round_ = mutex_.rounds_;
    if (!busy_) return true;
  }
  for (;;) {
    sigv4::drive(nullptr, 0, next_look(), &waker_);
    waker_.clear();  // Before it looks for what has woken it.
    bool has_turn, has_lock;
    {
      const Guard guard(mutex_.mutex_);
      has_turn = waiter_.has_turn();
      has_lock = waiter_.has_lock();
    }
    if (has_turn) waker_.clear();  // The wake for the turn has come by now.
    const bool over = has_lock || ended() || out_of_patience();
    if (has_turn && !over) {
      busy_ = false;  // A thread of ours had it, not another host.
      return true;
    }
    if (!over && !time_is_up()) continue;
    if (!over) end_as(Verdict::busy);
    leave_queue();
    return false;
  }
}

// True if the lock was handed over to this call.  Then it has succeeded,
// whatever else may have ended it, unless the mutex is being destroyed, which
// gives the lock back.
bool Mutex::Acquisition::leave_queue() {
  const Guard guard(mutex_.mutex_);
  queued_ = false;
  const bool has_lock = waiter_.has_lock();
  const bool holds = has_lock && mutex_.queue_.become_holder(waiter_);
  if (!holds) mutex_.queue_.leave(waiter_);
  if (has_lock) result_.verdict = holds ? Verdict::ours : Verdict::cancelled;
  return holds;
}

// Whether another thread has ended the call.
bool Mutex::Acquisition::ended() {
  if (mutex_.table_.waits.closed()) return end_as(Verdict::closed);
  const Guard guard(mutex_.mutex_);
  return waiter_.cancelled() && end_as(Verdict::cancelled);
}

// Errors that have lasted this long end every call that waits by now.
bool Mutex::Acquisition::out_of_patience() {
  if (!patience_.forever()) return false;
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  if (mutex_.rounds_ == round_) {
    if (!mutex_.out_of_patience()) return false;
    outage.since = BootTime::max();
    outage.reported_until = BootClock::now();
    ++mutex_.rounds_;
  }
  outage.last->copy_fault_to(result_.answer);
  return end_as(Verdict::again);
}

// Begins an attempt with a new lease.
void Mutex::Acquisition::begin() {
  const auto held = std::make_shared<HeldLease>(mutex_.settings_);
  attempt_.emplace_back(Call::take, *held, &mutex_.observation_);
}

void Mutex::Acquisition::take() {
  begin();
  for (;;) {
    Attempt& attempt = attempt_.front();
    attempt.run(end(), &waker_, [this](const Answer& answer, BootTime begun) {
      return receive(answer, begun);
    });
    if (attempt.verdict() == Verdict::ours) return become_holder();
    // A refusal means that too, even if there was no time for the look.
    busy_ = busy_ || attempt.verdict() == Verdict::busy ||
            attempt.answer().fault == Fault::condition_failed;
    if (attempt.held().lease.is_barred()) {
      leave_nothing_behind();
      begin();
      continue;
    }
    if (past_lease_) see_first();
    judge();
    const bool failing = patience_.left != nullptr &&
                         result_.verdict == Verdict::again &&
                         is_transient(attempt.answer().fault);
    const bool waits = !once_ && (result_.verdict == Verdict::busy || failing);
    if (!waits || paused_in_vain(failing)) break;
    // By the caller's clock there is time left: it is slow, or was set back.
    if (attempt.has_request()) {
      leave_nothing_behind();
      begin();
    }
  }
  if (result_.verdict == Verdict::again) {
    out_of_patience();  // Then all calls that wait have the same error.
    attempt_.front().answer().copy_fault_to(result_.answer);
  }
  leave_nothing_behind();
}

// The lease of the record that is there at first is waited out.
void Mutex::Acquisition::see_first() {
  if (!mutex_.observation_.seen()) return;
  past_lease_ = false;
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at == BootTime::max()) return;
  end_ = std::max(end_, add_saturating(stale_at, patience_.within));
}

// Returns until when transient errors are retried.
BootTime Mutex::Acquisition::receive(const Answer& answer, BootTime begun) {
  const Guard guard(mutex_.mutex_);
  Outage& outage = mutex_.outage_;
  // A request that was signed for a wrong time is signed again at once, so it
  // costs nobody any patience.
  const bool says_nothing =
      answer.fault == Fault::skewed_time || answer.fault == Fault::cancelled;
  if (is_transient(answer.fault) && !says_nothing) {
    // An error that there is no memory to remember could not be reported.
    const bool remembered = sigv4::try_with_memory([&] {
      if (!outage.last) outage.last = std::make_unique<Answer>();
      answer.copy_fault_to(*outage.last);
    });
    if (!remembered) return BootTime::max();
    if (outage.since == BootTime::max()) mutex_.queue_.wake_line();
    outage.since =
        std::min(outage.since, std::max(begun, outage.reported_until));
  } else if (answered(answer.fault)) {
    outage.since = BootTime::max();
  }
  return patience_.forever() ? patience_ends() : BootTime::max();
}

// Waits until the next look, or until the record seen becomes stale.  True if
// there is no time left for a look, or the call was ended.
bool Mutex::Acquisition::paused_in_vain(bool failing) {
  const BootTime now = BootClock::now();
  BootTime until = add_saturating(
      now, polls_.next({settings_.first_poll, settings_.longest_poll, 0.5},
                       settings_.budget.random_share()));
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at > now) until = std::min(until, stale_at);
  sigv4::drive(nullptr, 0, std::min(until, end()), &waker_);
  return ended() || (time_is_up() && (failing || end_as(Verdict::busy)));
}

// What a run that did not win says of the lock.
void Mutex::Acquisition::judge() {
  const Attempt& attempt = attempt_.front();
  result_.verdict = attempt.verdict();
  if (result_.verdict == Verdict::bad_record) {
    result_.answer.message = attempt.held().lease.row().problem;
  }
  if (result_.verdict != Verdict::again || ended()) return;
  // Only the time was up, so an earlier answer holds.  To a call without a
  // deadline it is its patience that ended.
  const bool impatient =
      patience_.forever() && attempt.answer().fault == Fault::throttled;
  if (attempt.given_up() && busy_ && !impatient) end_as(Verdict::busy);
}

void Mutex::Acquisition::become_holder() {
  const HeldLeasePtr held = attempt_.front().held().shared_from_this();
  bool kept;
  {
    const Guard guard(mutex_.mutex_);
    std::unique_ptr<const Row> told = held->lease.take_row();
    const std::int64_t token = held->lease.token();
    kept = mutex_.table_.renewer->keep(*held);
    if (kept) {
      attempt_.clear();
      mutex_.held_ = held;
      if (settings_.place.policy.takes_by_update()) {
        mutex_.stored_row_ = std::move(told);
      }
      mutex_.locked_again_ = 0;
      mutex_.token_.store(token, std::memory_order_release);
      queued_ = !mutex_.queue_.become_holder(waiter_);
      result_.verdict = Verdict::ours;
      if (!queued_) return;
    }
  }
  if (kept) {  // The mutex is being destroyed.
    mutex_.release();
    result_.verdict = Verdict::cancelled;
    return;
  }
  leave_nothing_behind();
  result_.verdict =
      mutex_.table_.waits.closed() ? Verdict::closed : Verdict::no_thread;
}

// A take that may have been applied, or may yet be, is released in the
// background; if no thread can be started, here.
void Mutex::Acquisition::leave_nothing_behind() {
  Attempt& attempt = attempt_.front();
  if (attempt.needs_release() && !mutex_.table_.renewer->finish(attempt_)) {
    if (attempt.has_request()) {
      attempt.finish(sigv4::Transport::timed_out);
      attempt.receive();
    }
    const BootTime give_up_at = BootClock::now() + settings_.request_timeout;
    attempt.release_instead(give_up_at);
    sigv4::try_with_memory([&] { attempt.run(give_up_at, nullptr); });
  }
  attempt_.clear();
}

// --- Mutex -------------------------------------------------------------------

// No std::make_shared(): the list of what is stopped at exit has a weak_ptr to
// it, which would keep its memory.
Table::Table(const dynamodb::ClientOptions& options)
    : renewer(new Renewer(options)),
      client(renewer->client()),
      budget(renewer->budget()) {}

void Mutex::cancel() {
  const Guard guard(mutex_);
  queue_.cancel();
}

void Mutex::end() {
  {
    const Guard guard(mutex_);
    queue_.end();
    locked_again_ = 0;
  }
  release();
  table_.renewer->settle(*settings_);
}

Result Mutex::lock(const Patience& patience, Cancel* cancel) {
  Result result;
  if (try_lock_again(patience.forever(), result)) return result;
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) {
    result.verdict = Verdict::closed;
    return result;
  }
  Acquisition call(*this, patience, cancel, *wait.waker(), result);
  if (call.stand_in_line()) call.take();
  return result;
}

// True if this thread has it: it locks it once more, or would wait for itself.
bool Mutex::try_lock_again(bool forever, Result& result) {
  const Guard guard(mutex_);
  if (!queue_.held_by_this_thread()) return false;
  if (!settings_->recursive) {
    result.verdict = Verdict::deadlock;
    return forever;
  }
  if (BootClock::now() < claim_end()) {
    ++locked_again_;
    result.verdict = Verdict::ours;
  } else {
    result.verdict = Verdict::expired;
  }
  return true;
}

bool Mutex::out_of_patience() const {
  return BootClock::now() >= add_saturating(outage_.since, settings_->patience);
}

// Errors from before anyone waited do not count.
void Mutex::begin_to_wait(bool alone) {
  const bool over = out_of_patience();
  if (over) {
    ++rounds_;  // Earlier waiters learn of it when they look.
    outage_.reported_until = BootClock::now();
  }
  if (alone || over) outage_.since = BootTime::max();
}

HeldLeasePtr Mutex::held() const {
  const Guard guard(mutex_);
  return held_;
}

HeldLeasePtr Mutex::held_for_writes() const {
  const Guard guard(mutex_);
  if (held_ != nullptr) held_->tied = true;
  return held_;
}

dynamodb::Item Mutex::stored() const {
  const Guard guard(mutex_);
  return held_ != nullptr ? item() : dynamodb::Item();
}

// The row as a PutItem makes it is not told.
const dynamodb::Item& Mutex::item() const {
  return stored_row_ != nullptr ? stored_row_->others
                                : settings_->place.attributes;
}

std::shared_ptr<void> Mutex::signal_loss(std::shared_ptr<void> (*make)(),
                                         void (*signal)(void*)) {
  const HeldLeasePtr held = this->held();
  return held == nullptr ? nullptr
                         : table_.renewer->signal_loss(*held, make, signal);
}

Result Mutex::renew(const ChangesPtr& changes) {
  Result result;
  const Waits::One wait(table_.waits);
  const HeldLeasePtr held =
      changes != nullptr ? held_for_writes() : this->held();
  if (wait.waker() == nullptr || held == nullptr) {
    result.verdict =
        wait.waker() == nullptr ? Verdict::closed : Verdict::not_held;
    return result;
  }
  const nanoseconds patience =
      std::max<nanoseconds>(settings_->patience, settings_->request_timeout);
  result = table_.renewer->renew(*held, changes,
                                 add_saturating(BootClock::now(), patience),
                                 *wait.waker());
  if (result.verdict == Verdict::ours) {
    const bool remembered = sigv4::try_with_memory([&] {
      const Guard guard(mutex_);
      if (!changes || held != held_) return;
      auto row = std::make_unique<Row>();
      row->others = applied(item(), changes);
      stored_row_ = std::move(row);
    });
    table_.renewer->go_on(*held);
    if (!remembered) sigv4::no_memory();
  }
  const bool undone =
      result.verdict == Verdict::again || result.verdict == Verdict::not_held;
  if (undone && table_.waits.closed()) result.verdict = Verdict::closed;
  return result;
}

// In one critical section: in between the lock is free to nobody, and a loss is
// reported to one of the two threads.
bool Mutex::hand_over(Signal& signal) {
  Queue::Waiter* const heir = queue_.heir();
  if (heir == nullptr || held_ == nullptr || held_->tied) return false;
  if (!table_.renewer->hand_over(*held_, signal)) return false;
  queue_.hand_over(*heir);
  return true;
}

Result Mutex::release() {
  Result result;
  release_unless_inner(nullptr, result);
  return result;
}

Result Mutex::release(const ChangesPtr& changes) {
  Result result;
  if (release_unless_inner(changes, result)) return result;
  // An inner level is given up once its changes are stored.
  result = renew(changes);
  if (result.verdict != Verdict::ours) return result;
  result.verdict = Verdict::released;
  const Guard guard(mutex_);
  if (locked_again_ > 0) --locked_again_;
  return result;
}

// False, and nothing is done, if an inner level is to store changes.  Needs no
// memory: the request is repeated, and at last left to the sender.
bool Mutex::release_unless_inner(const ChangesPtr& changes, Result& result) {
  Signal dropped;  // Destroyed without the mutex.
  HeldLeasePtr held;
  {
    // At once: a thread that locks again is let in by what it finds here.
    const Guard guard(mutex_);
    if (queue_.handed_over()) {  // That thread has not left lock() yet.
      result.verdict = Verdict::not_held;
      return true;
    }
    result.verdict = Verdict::released;
    if (locked_again_ > 0) {
      if (changes != nullptr) return false;
      --locked_again_;
      return true;
    }
    if (hand_over(dropped)) return true;
    held.swap(held_);
    // From now on a thread that locks it waits, also the one that had it.
    if (held != nullptr) queue_.let_go();
    stored_row_.reset();
    token_.store(0, std::memory_order_release);
  }
  result.verdict = Verdict::not_held;
  if (held == nullptr) return true;
  std::optional<Verdict> loss;
  OneAttempt attempt = table_.renewer->give_back(*held, loss);
  // After other losses the row is known not to be ours.
  const bool may_be_ours = !loss || loss == Verdict::expired;
  if (!attempt.empty() && may_be_ours) {
    held->lease.carry(changes);
    send_release(attempt, result);
  }
  if (loss) result.verdict = *loss;
  const Guard guard(mutex_);
  queue_.pass();
  return true;
}

void Mutex::send_release(OneAttempt& one, Result& result) {
  Attempt& attempt = one.front();
  const BootTime deadline = BootClock::now() + settings_->request_timeout;
  const bool had_memory =
      sigv4::try_with_memory([&] { attempt.run(deadline, nullptr); });
  const Verdict verdict = attempt.verdict();
  const Fault fault = had_memory ? attempt.answer().fault : Fault::no_memory;
  result.verdict = verdict;
  if (verdict == Verdict::released) {
    // If it was refused because the lease was over, its changes are not stored.
    const bool stored = fault == Fault::none || attempt.outcome_unknown() ||
                        !attempt.held().lease.carries();
    if (!stored) result.verdict = Verdict::expired;
    return;
  }
  sigv4::try_with_memory(
      [&] { attempt.answer().copy_fault_to(result.answer); });
  result.answer.fault = fault;
  if (verdict != Verdict::again) {
    table_.renewer->lost(attempt.held(), verdict);
    if (fault == Fault::wrong_key) result.verdict = Verdict::again;
  } else if (attempt.outcome_unknown() || attempt.given_up() ||
             is_transient(fault)) {
    table_.renewer->finish(one);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
