#include "mutex.hpp"

#include <algorithm>
#include <utility>

#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;
using Kind = Result::Kind;

BootTime later(BootTime now, nanoseconds by) {
  return by < BootTime::max() - now ? now + by : BootTime::max();
}

namespace {

// --- Taking the lock ---------------------------------------------------------

// One call of Mutex::lock(), which ends as `result` says.
class Acquisition : private Attempt::Caller {
 public:
  // REQUIRES: the waker is none of another wait.
  Acquisition(Mutex& mutex, const Patience& patience, Cancel* cancel,
              sigv4::Waker& waker, Result& result);
  // The caller's clock, or an allocation, may throw.  What was taken by then,
  // or handed over, nobody would unlock.
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
    return later(BootClock::now(), patience_.now());
  }
  bool time_is_up() const {
    const BootTime at = end();  // Before, for it may read the clock itself.
    return BootClock::now() >= at;
  }
  bool end_as(Kind kind) {
    result_.kind = kind;
    return true;
  }
  // These are true if the call ends.
  bool ended();
  bool out_of_patience();
  bool leave_queue();
  // Past already, once that was told; BootTime::max() while nothing goes wrong.
  // REQUIRES: the mutex is held.
  BootTime patience_ends() const {
    return mutex_.rounds_ != round_
               ? BootTime()
               : later(mutex_.trouble_.since, holder_.patience);
  }
  // Who waits in line sleeps until its time is up, or its patience; while
  // nothing goes wrong, for ever: hear() wakes it.
  BootTime next_look() const {
    if (!patience_.forever()) return end();
    const Mutex::Guard guard(mutex_.mutex_);
    return patience_ends();
  }
  void see_first();
  BootTime hear(const Answer& answer, BootTime begun);
  bool paused_in_vain(bool failing);
  void judge();
  void keep();
  void leave_nothing_behind();

  Mutex& mutex_;
  const MutexSettings& holder_;
  const Patience& patience_;
  Result& result_;
  const bool once_;
  bool past_lease_;  // Of a record that is yet to be seen.
  BootTime end_;     // Unless that is on another clock.
  sigv4::Waker& waker_;
  Queue::Waiter waiter_;
  int round_ = 0;  // Of the mutex's trouble, as it was when the call began.

  Attempts attempt_;  // One, until what became of it is settled.
  nanoseconds poll_;
  bool queued_ = false;  // Or has the turn, but has not kept it.
  bool busy_ = false;    // The lock was another's when last told.
};

// Unless that is told by another clock, or a lease is waited out.
nanoseconds longest_wait(const MutexSettings& holder, const Patience& patience,
                         bool once) {
  const nanoseconds request = holder.request_timeout;
  if (once) {
    const bool looks_first =
        !holder.client.key_is_right() ||
        !knows_the_time(holder.client.clock(), BootClock::now());
    return looks_first ? 2 * request : request;
  }
  return patience.past_lease ? std::max(request, patience.within)
                             : patience.within;
}

Acquisition::Acquisition(Mutex& mutex, const Patience& patience, Cancel* cancel,
                         sigv4::Waker& waker, Result& result)
    : Attempt::Caller{[](Attempt::Caller& self, const Answer& answer,
                         BootTime begun) {
        return static_cast<Acquisition&>(self).hear(answer, begun);
      }},
      mutex_(mutex),
      holder_(mutex.holder()),
      patience_(patience),
      result_(result),
      once_(!patience.past_lease && patience.now() <= nanoseconds::zero()),
      past_lease_(patience.past_lease),
      end_(later(BootClock::now(), longest_wait(holder_, patience, once_))),
      waker_(waker),
      waiter_(waker, cancel),
      poll_(holder_.first_poll) {}

bool Acquisition::stand_in_line() {
  {
    const Mutex::Guard guard(mutex_.mutex_);
    // Who is to unlock may wait for a callback that comes after this one.
    const bool holds_up_callbacks =
        patience_.forever() && mutex_.table_.renewer->calls_back_here();
    const bool waits = !once_ && !holds_up_callbacks;
    const Queue::Entry entry = mutex_.queue_.enter(waiter_, waits);
    if (entry == Queue::Entry::refused) {
      result_.kind = once_                ? Kind::busy
                     : holds_up_callbacks ? Kind::deadlock_of_callback
                                          : Kind::cancelled;
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
    waker_.clear();  // Before the look at what it may have been for.
    bool has_turn, has_lock;
    {
      const Mutex::Guard guard(mutex_.mutex_);
      has_turn = waiter_.has_turn();
      has_lock = waiter_.has_lock();
    }
    if (has_turn) waker_.clear();  // The wake for the turn has come by now.
    const bool over = has_lock || ended() || out_of_patience();
    if (has_turn && !over) {
      busy_ = false;  // A thread of ours had it; DynamoDB has said nothing.
      return true;
    }
    if (!over && !time_is_up()) continue;
    if (!over) end_as(Kind::busy);
    leave_queue();
    return false;
  }
}

// True if the lock was handed over to this call, which ends so, whatever else
// may have ended it; unless the mutex is being destroyed, which gives it back.
bool Acquisition::leave_queue() {
  const Mutex::Guard guard(mutex_.mutex_);
  queued_ = false;
  const bool kept = waiter_.has_lock() && mutex_.queue_.keep(waiter_);
  if (!kept) mutex_.queue_.leave(waiter_);
  if (waiter_.has_lock()) result_.kind = kept ? Kind::done : Kind::cancelled;
  return kept;
}

// By another thread.
bool Acquisition::ended() {
  if (mutex_.table_.waits.closed()) return end_as(Kind::closed);
  const Mutex::Guard guard(mutex_.mutex_);
  return waiter_.cancelled() && end_as(Kind::cancelled);
}

// What had gone wrong for so long is told to all who wait by now.
bool Acquisition::out_of_patience() {
  if (!patience_.forever()) return false;
  const Mutex::Guard guard(mutex_.mutex_);
  Mutex::Trouble& trouble = mutex_.trouble_;
  if (mutex_.rounds_ == round_) {
    if (!mutex_.out_of_patience()) return false;
    trouble.since = BootTime::max();
    trouble.anew = BootClock::now();
    ++mutex_.rounds_;
  }
  trouble.last->tell(result_.answer);
  return end_as(Kind::failed);
}

// Begins an attempt with a new lease.
void Acquisition::begin() {
  const Handle held(new HeldLease(mutex_.holder_));
  attempt_.push_back(std::make_unique<Attempt>(Call::take, *held));
  attempt_.front()->observation = &mutex_.observation_;
  attempt_.front()->keeps_pending = true;
}

void Acquisition::take() {
  begin();
  for (;;) {
    Attempt& attempt = *attempt_.front();
    attempt.deadline = end();
    attempt.run(&waker_, this);
    if (attempt.verdict == Verdict::ours) return keep();
    attempt.unknown = attempt.unknown || attempt.held->lease.stands();
    // A refusal that was to be followed by a look is one too.
    busy_ = busy_ || attempt.verdict == Verdict::busy ||
            attempt.answer.fault == Fault::condition_failed;
    if (attempt.held->lease.is_barred()) {
      leave_nothing_behind();
      begin();
      continue;
    }
    if (past_lease_) see_first();
    judge();
    const bool failing = patience_.left != nullptr &&
                         result_.kind == Kind::failed &&
                         is_passing(attempt.answer.fault);
    const bool waits = !once_ && (result_.kind == Kind::busy || failing);
    if (!waits || paused_in_vain(failing)) break;
    // By the caller's clock there is time left: it is slow, or was set back.
    if (attempt.pending != nullptr) {
      leave_nothing_behind();
      begin();
    }
  }
  if (result_.kind == Kind::failed) {
    out_of_patience();  // If so, of all.
    attempt_.front()->answer.tell(result_.answer);
  }
  leave_nothing_behind();
}

// The lease of the record that stands there first is waited out.
void Acquisition::see_first() {
  if (!mutex_.observation_.seen()) return;
  past_lease_ = false;
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at == BootTime::max()) return;
  end_ = std::max(end_, later(stale_at, patience_.within));
}

BootTime Acquisition::hear(const Answer& answer, BootTime begun) {
  const Mutex::Guard guard(mutex_.mutex_);
  Mutex::Trouble& trouble = mutex_.trouble_;
  // A request that was signed for a wrong time is signed anew at once, so it
  // costs nobody any patience.
  const bool says_nothing =
      answer.fault == Fault::skewed_time || answer.fault == Fault::cancelled;
  if (is_passing(answer.fault) && !says_nothing) {
    // What there is no memory to remember is no trouble that could be told.
    const bool remembered = sigv4::has_memory_for([&] {
      if (!trouble.last) trouble.last = std::make_unique<Answer>();
      answer.tell(*trouble.last);
    });
    if (!remembered) return BootTime::max();
    if (trouble.since == BootTime::max()) mutex_.queue_.wake_line();
    trouble.since = std::min(trouble.since, std::max(begun, trouble.anew));
  } else if (answered(answer.fault)) {
    trouble.since = BootTime::max();
  }
  return patience_.forever() ? patience_ends() : BootTime::max();
}

// Until the next look, or the moment that the record seen becomes stale.  True
// if there is no time left for one, or the call was ended.
bool Acquisition::paused_in_vain(bool failing) {
  const BootTime now = BootClock::now();
  BootTime until = later(now, poll_ / 2 + holder_.budget.jitter(poll_ / 2));
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at > now) until = std::min(until, stale_at);
  sigv4::drive(nullptr, 0, std::min(until, end()), &waker_);
  const nanoseconds longest = holder_.longest_poll;
  poll_ = poll_ < longest / 2 ? 2 * poll_ : longest;
  return ended() || (time_is_up() && (failing || end_as(Kind::busy)));
}

Kind kind_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::busy:
      return Kind::busy;
    case Verdict::bad_record:
      return Kind::bad_record;
    case Verdict::kept_row:
      return Kind::kept_row;
    case Verdict::no_row:
      return Kind::no_row;
    case Verdict::no_date:
      return Kind::no_date;
    default:
      return Kind::failed;
  }
}

// What a run that did not win says of the lock.
void Acquisition::judge() {
  const Attempt& attempt = *attempt_.front();
  result_.kind = kind_of(attempt.verdict);
  if (result_.kind == Kind::bad_record) {
    result_.answer.message = attempt.held->lease.row().problem;
  }
  if (result_.kind != Kind::failed || ended()) return;
  // Only the time was up: what was heard before holds.  For who waits for ever
  // it is his patience.
  const bool impatient =
      patience_.forever() && attempt.answer.fault == Fault::throttled;
  result_.kind =
      attempt.given_up && busy_ && !impatient ? Kind::busy : Kind::failed;
}

void Acquisition::keep() {
  const Handle held = attempt_.front()->held;
  bool kept;
  {
    const Mutex::Guard guard(mutex_.mutex_);
    std::unique_ptr<const Row> told = held->lease.take_row();
    const std::int64_t token = held->lease.token();
    kept = mutex_.table_.renewer->keep(*held);
    if (kept) {
      attempt_.clear();
      mutex_.held_ = held;
      if (holder_.place.policy.takes_by_update()) {
        mutex_.told_ = std::move(told);
      }
      mutex_.locked_again_ = 0;
      mutex_.token_.store(token, std::memory_order_release);
      queued_ = !mutex_.queue_.keep(waiter_);
      result_.kind = Kind::done;
      if (!queued_) return;
    }
  }
  if (kept) {  // The mutex is being destroyed.
    mutex_.release();
    result_.kind = Kind::cancelled;
    return;
  }
  leave_nothing_behind();
  result_.kind = mutex_.table_.waits.closed() ? Kind::closed : Kind::no_thread;
}

// What may have been taken, or may be yet, is given back in the background; if
// there can be no thread for that, here.
void Acquisition::leave_nothing_behind() {
  Attempt& attempt = *attempt_.front();
  attempt.unknown = attempt.unknown || attempt.held->lease.stands();
  const bool left = attempt.pending != nullptr || attempt.unknown;
  if (left && !mutex_.table_.renewer->finish(attempt_)) {
    if (attempt.pending != nullptr) {
      attempt.conclude(sigv4::Transport::timed_out);
    }
    attempt.release_instead(BootClock::now() + holder_.request_timeout);
    sigv4::has_memory_for([&] { attempt.run(nullptr); });
  }
  attempt_.clear();
}

// What is stored once that was stored, and changed so.
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

// --- Mutex -------------------------------------------------------------------

Table::Table(const dynamodb::ClientOptions& options)
    : renewer(Renewer::create(options)),
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
  table_.renewer->settle(*holder_);
}

Result Mutex::lock(const Patience& patience, Cancel* cancel) {
  Result result;
  if (lock_again(patience.forever(), result)) return result;
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) {
    result.kind = Kind::closed;
    return result;
  }
  Acquisition call(*this, patience, cancel, *wait.waker(), result);
  if (call.stand_in_line()) call.take();
  return result;
}

// True if this thread has it: then it may have it once more, or would wait for
// itself.
bool Mutex::lock_again(bool forever, Result& result) {
  const Guard guard(mutex_);
  if (!queue_.kept_by_this_thread()) return false;
  if (!holder_->recursive) {
    result.kind = Kind::deadlock;
    return forever;
  }
  if (BootClock::now() < claim_end()) {
    ++locked_again_;
  } else {
    result.kind = Kind::lost;
  }
  return true;
}

bool Mutex::out_of_patience() const {
  return BootClock::now() >= later(trouble_.since, holder_->patience);
}

// Errors of before, while nobody waited, are none without a break.
void Mutex::begin_to_wait(bool alone) {
  const bool over = out_of_patience();
  if (over) {
    ++rounds_;  // Who waits since before is told when he looks.
    trouble_.anew = BootClock::now();
  }
  if (alone || over) trouble_.since = BootTime::max();
}

Handle Mutex::held() const {
  const Guard guard(mutex_);
  return held_;
}

Handle Mutex::tied() const {
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
  return told_ != nullptr ? told_->others : holder_->place.attributes;
}

std::shared_ptr<void> Mutex::signal_loss(std::shared_ptr<void> (*make)(),
                                         void (*tell)(void*)) {
  const Handle held = this->held();
  return held == nullptr ? nullptr
                         : table_.renewer->signal_loss(*held, make, tell);
}

Result Mutex::renew(const ChangesPtr& changes) {
  Result result;
  const Waits::One wait(table_.waits);
  const Handle held = changes != nullptr ? tied() : this->held();
  if (wait.waker() == nullptr || held == nullptr) {
    result.kind = wait.waker() == nullptr ? Kind::closed : Kind::not_held;
    return result;
  }
  const nanoseconds patience =
      std::max<nanoseconds>(holder_->patience, holder_->request_timeout);
  table_.renewer->renew(*held, changes, later(BootClock::now(), patience),
                        *wait.waker(), result);
  if (result.kind == Kind::done) {
    const bool remembered = sigv4::has_memory_for([&] {
      const Guard guard(mutex_);
      if (!changes || held != held_) return;
      auto row = std::make_unique<Row>();
      row->others = applied(item(), changes);
      told_ = std::move(row);
    });
    table_.renewer->go_on(*held);
    if (!remembered) sigv4::no_memory();
  }
  const bool undone =
      result.kind == Kind::failed || result.kind == Kind::not_held;
  if (undone && table_.waits.closed()) result.kind = Kind::closed;
  return result;
}

// From one thread to the next in one critical section: in between the lock is
// free to nobody, and a loss is told to the one or to the other.
bool Mutex::hand_over(Signal& signal) {
  Queue::Waiter* const heir = queue_.heir();
  if (heir == nullptr || held_ == nullptr || held_->tied) return false;
  if (!table_.renewer->hand_over(*held_, signal)) return false;
  queue_.hand_over(*heir);
  return true;
}

Result Mutex::release() {
  Result result;
  release_outer(nullptr, result);
  return result;
}

Result Mutex::release(const ChangesPtr& changes) {
  Result result;
  if (release_outer(changes, result)) return result;
  // An inner level is given up once what it leaves is stored.
  result = renew(changes);
  if (result.kind != Kind::done) return result;
  const Guard guard(mutex_);
  if (locked_again_ > 0) --locked_again_;
  return result;
}

// False, and nothing is done, if an inner level is to leave changes.  Needs no
// memory: the request is repeated, and at last left to the renewer's thread.
bool Mutex::release_outer(const ChangesPtr& changes, Result& result) {
  Signal signal;  // Dropped only without the mutex.
  Handle held;
  {
    // At once, for a thread that locks again is let in by what it finds here.
    const Guard guard(mutex_);
    if (queue_.handed_over()) {  // To who has not come back from lock() yet.
      result.kind = Kind::not_held;
      return true;
    }
    if (locked_again_ > 0) {
      if (changes != nullptr) return false;
      --locked_again_;
      return true;
    }
    if (hand_over(signal)) return true;
    held.swap(held_);
    // A thread that locks from now on waits, though it be the one that has
    // locked.
    if (held != nullptr) queue_.let_go();
    told_.reset();
    token_.store(0, std::memory_order_release);
  }
  result.kind = Kind::not_held;
  if (held == nullptr) return true;
  Verdict lost;
  Attempts attempt = table_.renewer->give_back(*held, lost);
  // Otherwise the row is known not to be ours.
  const bool worth_saying = lost == Verdict::again || lost == Verdict::expired;
  if (!attempt.empty() && worth_saying) {
    held->lease.carry(changes);
    say_released(attempt, result);
  }
  if (lost != Verdict::again) {
    result.kind = Kind::lost;
    result.loss = lost;
  }
  const Guard guard(mutex_);
  queue_.pass();
  return true;
}

void Mutex::say_released(Attempts& one, Result& result) {
  Attempt& attempt = *one.front();
  attempt.deadline = BootClock::now() + holder_->request_timeout;
  attempt.keeps_pending = true;
  if (!sigv4::has_memory_for([&] { attempt.run(nullptr); })) {
    attempt.answer.fault = Fault::no_memory;
  }
  const Verdict verdict = attempt.verdict;
  const Fault fault = attempt.answer.fault;
  if (verdict == Verdict::released) {
    // Refused once its lease was over: what it was to leave is not stored.
    const bool stored = fault == Fault::none || attempt.unknown ||
                        !attempt.held->lease.carries();
    result.kind = stored ? Kind::done : Kind::lost;
    return;
  }
  sigv4::has_memory_for([&] { attempt.answer.tell(result.answer); });
  if (verdict != Verdict::again) {
    table_.renewer->lost(*attempt.held, verdict);
    result.kind = fault == Fault::wrong_key ? Kind::failed : Kind::lost;
    result.loss = verdict;
  } else {
    result.kind = Kind::failed;
    const bool worth_more =
        attempt.unknown || attempt.given_up || is_passing(fault);
    if (worth_more) table_.renewer->finish(one);
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
