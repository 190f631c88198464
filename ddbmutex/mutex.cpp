#include "mutex.hpp"

#include <algorithm>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::nanoseconds;
using Kind = Result::Kind;

namespace {

Result just(Kind kind) {
  Result result;
  result.kind = kind;
  return result;
}

Result failed(Answer answer) {
  Result result = just(Kind::failed);
  result.answer = std::move(answer);
  return result;
}

// What is stored once that was stored, and changed so.
std::shared_ptr<const dynamodb::Item> changed(dynamodb::Item item,
                                              const Changes& changes) {
  const auto remove = [&](const std::string& name) {
    const auto has_it = [&](const auto& one) { return one.name == name; };
    item.erase(std::remove_if(item.begin(), item.end(), has_it), item.end());
  };
  for (const std::string& name : changes.remove) remove(name);
  for (const auto& attribute : changes.set) {
    remove(attribute.name);
    item.push_back(attribute);
  }
  return std::make_shared<const dynamodb::Item>(std::move(item));
}

}  // namespace

BootTime later(BootTime now, nanoseconds by) {
  return by < BootTime::max() - now ? now + by : BootTime::max();
}

// --- Cancel ------------------------------------------------------------------

// Wakes only under the mutex, so that no wake comes after the call has ended.
void Cancel::cancel() {
  const std::lock_guard<std::mutex> guard(mutex_);
  cancelled_ = true;
  if (waker_ != nullptr) waker_->wake();
}

bool Cancel::cancelled() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return cancelled_;
}

void Cancel::attach(sigv4::Waker* waker) {
  const std::lock_guard<std::mutex> guard(mutex_);
  waker_ = waker;
  if (waker_ != nullptr && cancelled_) waker_->wake();
}

// --- Taking the lock ---------------------------------------------------------

// One call of Mutex::lock().
class Acquisition {
 public:
  // REQUIRES: the waker is none of another wait.
  Acquisition(Mutex& mutex, const Patience& patience, Cancel* cancel,
              sigv4::Waker& waker);
  ~Acquisition();
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  Result run();

 private:
  BootTime end() const;
  bool time_is_up() const {
    const BootTime at = end();  // Before, for it may read the clock itself.
    return BootClock::now() >= at;
  }
  std::optional<Kind> ended() const;
  std::optional<Result> out_of_patience();
  std::optional<Result> wait_for_turn();
  BootTime next_look() const;
  Result take();
  void see_first();
  Limits limits() const;
  void pause();
  Result keep();
  Result undecided(Outcome& outcome) const;
  void end_pending(Outcome& outcome);
  void leave_nothing_behind(Outcome& outcome);

  Mutex& mutex_;
  const Patience& patience_;
  const bool once_;
  const BootTime end_;  // Unless that is on another clock.
  Cancel* const cancel_;
  sigv4::Waker& waker_;
  Queue::Waiter waiter_;
  int round_ = 0;  // Of the mutex's trouble, as it was when the call began.

  Lease lease_;
  // With Patience::past_lease, once a record was seen.
  std::optional<BootTime> past_lease_;
  nanoseconds poll_;
  bool queued_ = false;   // Or has the turn, but has not kept it.
  bool busy_ = false;     // The lock was another's when last told.
  bool unknown_ = false;  // A request may have been applied, or be yet.
};

namespace {

// Of those in line, at what those before them have met.
constexpr std::chrono::milliseconds kShortestLook{100};

// Unless that is told by another clock, or a lease is waited out.
nanoseconds longest_wait(const Mutex& mutex, const Patience& patience,
                         bool once, const dynamodb::ServiceClock& clock) {
  const nanoseconds request = mutex.settings().request_timeout;
  // The first lock of a table has a look to make before.
  if (once) return clock.known() || clock.silent() ? request : 2 * request;
  return patience.past_lease ? std::max(request, patience.within)
                             : patience.within;
}

}  // namespace

Acquisition::Acquisition(Mutex& mutex, const Patience& patience, Cancel* cancel,
                         sigv4::Waker& waker)
    : mutex_(mutex),
      patience_(patience),
      once_(!patience.past_lease && patience.now() <= nanoseconds::zero()),
      end_(later(BootClock::now(), longest_wait(mutex, patience, once_,
                                                mutex.table_.client->clock()))),
      cancel_(cancel),
      waker_(waker),
      waiter_(waker),
      lease_(fresh_uuid(), mutex.holder_->terms.ttl,
             mutex.settings().place.use),
      poll_(mutex.waiting_.first_poll) {
  if (cancel_ != nullptr) cancel_->attach(&waker_);
}

Acquisition::~Acquisition() {
  if (queued_) mutex_.queue_.leave(waiter_);
  if (cancel_ != nullptr) cancel_->attach(nullptr);
}

Result Acquisition::run() {
  const Queue::Entry entry = mutex_.queue_.enter(waiter_, !once_);
  if (entry == Queue::Entry::refused) {
    return just(once_ ? Kind::busy : Kind::cancelled);
  }
  queued_ = true;
  const bool alone = entry == Queue::Entry::turn;
  round_ = mutex_.begin_to_wait(alone);
  if (!alone) {
    busy_ = true;
    if (auto in_vain = wait_for_turn()) return std::move(*in_vain);
  }
  return take();
}

BootTime Acquisition::end() const {
  if (past_lease_) return *past_lease_;
  if (once_ || patience_.left == nullptr) return end_;
  return later(BootClock::now(), patience_.now());
}

// By another thread.
std::optional<Kind> Acquisition::ended() const {
  if (mutex_.table_.waits.closed()) return Kind::closed;
  const bool cancelled = mutex_.queue_.cancelled(waiter_) ||
                         (cancel_ != nullptr && cancel_->cancelled());
  if (cancelled) return Kind::cancelled;
  return std::nullopt;
}

std::optional<Result> Acquisition::out_of_patience() {
  if (!patience_.forever()) return std::nullopt;
  return mutex_.out_of_patience(round_);
}

std::optional<Result> Acquisition::wait_for_turn() {
  for (;;) {
    sigv4::drive(nullptr, 0, next_look(), &waker_);
    waker_.clear();  // Before the look at what it may have been for.
    const bool has_turn = mutex_.queue_.has_turn(waiter_);
    if (has_turn) waker_.clear();  // The wake for the turn has come by now.
    if (const auto why = ended()) return just(*why);
    if (auto why = out_of_patience()) return why;
    if (has_turn) return std::nullopt;
    if (time_is_up()) return just(Kind::busy);
  }
}

// Who waits in line sleeps until its time is up, or its patience may be: errors
// that have not begun yet last no longer than those that begin now.
BootTime Acquisition::next_look() const {
  if (!patience_.forever()) return end();
  const BootTime known = mutex_.patience_ends(round_);
  if (known != BootTime::max()) return known;
  return later(BootClock::now(),
               std::max<nanoseconds>(mutex_.waiting_.patience, kShortestLook));
}

Result Acquisition::take() {
  for (;;) {
    Outcome outcome = mutex_.holder_->driver.run(
        Call::take, lease_, mutex_.observation_, limits(), &waker_);
    if (outcome.verdict == Verdict::ours) return keep();
    unknown_ = unknown_ || outcome.unknown || lease_.stands();
    // A refusal that was to be followed by a look is one too.
    busy_ = busy_ || outcome.verdict == Verdict::busy ||
            outcome.answer.fault == Fault::condition_failed;
    if (patience_.past_lease && !past_lease_) see_first();
    Result result = undecided(outcome);
    const bool failing = patience_.left != nullptr &&
                         result.kind == Kind::failed &&
                         is_passing(result.answer.fault);
    if ((result.kind == Kind::busy || failing) && !once_) {
      pause();
      const auto why = ended();
      if (!why && !time_is_up()) {
        end_pending(outcome);  // The caller's clock may have been set back.
        continue;
      }
      if (why || !failing) result = just(why.value_or(Kind::busy));
    }
    if (result.kind == Kind::failed) out_of_patience();  // If so, of all.
    leave_nothing_behind(outcome);
    return result;
  }
}

// The lease of the record that stands there first is waited out.
void Acquisition::see_first() {
  if (!mutex_.observation_.seen()) return;
  const BootTime stale_at = mutex_.observation_.stale_at();
  const BootTime end = later(stale_at, patience_.within);
  past_lease_ = stale_at == BootTime::max() ? end_ : std::max(end_, end);
}

Limits Acquisition::limits() const {
  Limits limits{end()};
  limits.keep_pending = true;
  limits.heard = [this](const Answer& answer, BootTime begun) {
    mutex_.heard(answer, begun);
    return patience_.forever() ? mutex_.patience_ends(round_) : BootTime::max();
  };
  return limits;
}

// Until the next look, or the moment that the record seen becomes stale.
void Acquisition::pause() {
  const BootTime now = BootClock::now();
  BootTime until = later(now, mutex_.table_.budget->jitter(poll_));
  const BootTime stale_at = mutex_.observation_.stale_at();
  if (stale_at > now) until = std::min(until, stale_at);
  sigv4::drive(nullptr, 0, std::min(until, end()), &waker_);
  const nanoseconds longest = mutex_.waiting_.longest_poll;
  poll_ = poll_ < longest / 2 ? 2 * poll_ : longest;
}

// What a run that did not win says of the lock.
Result Acquisition::undecided(Outcome& outcome) const {
  switch (outcome.verdict) {
    case Verdict::busy:
      return just(Kind::busy);
    case Verdict::bad_record: {
      Result result = just(Kind::bad_record);
      result.problem = lease_.row().problem;
      return result;
    }
    case Verdict::kept_row:
      return just(Kind::kept_row);
    case Verdict::no_row:
      return just(Kind::no_row);
    default:
      break;
  }
  if (const auto why = ended()) return just(*why);
  // Only the time was up: what was heard before holds.  For who waits for ever
  // it is his patience.
  const bool impatient =
      patience_.forever() && outcome.answer.fault == Fault::throttled;
  if (outcome.given_up && busy_ && !impatient) return just(Kind::busy);
  return failed(std::move(outcome.answer));
}

Result Acquisition::keep() {
  Renewer::Handle held;
  {
    const std::lock_guard<std::mutex> guard(mutex_.mutex_);
    Mutex::Possession possession{lease_.uuid(), lease_.token(),
                                 mutex_.stored_by(lease_.row())};
    held = mutex_.table_.renewer.keep(lease_, mutex_.holder_);
    if (held != nullptr) {
      mutex_.held_ = held;
      mutex_.possession_ = std::move(possession);
      mutex_.locked_again_ = 0;
      mutex_.token_.store(mutex_.possession_.token, std::memory_order_release);
      queued_ = !mutex_.queue_.keep(waiter_);
      if (!queued_) return just(Kind::done);
    }
  }
  if (held != nullptr) {  // The mutex is being destroyed.
    mutex_.release();
    return just(Kind::cancelled);
  }
  unknown_ = true;
  Outcome nothing;
  leave_nothing_behind(nothing);
  return just(mutex_.table_.waits.closed() ? Kind::closed : Kind::no_thread);
}

// What is under way of a run ends without an answer.
void Acquisition::end_pending(Outcome& outcome) {
  if (outcome.pending == nullptr) return;
  dynamodb::Client& client = mutex_.holder_->driver.client();
  const Answer answer =
      client.finish(std::move(outcome.pending), sigv4::Transport::timed_out);
  lease_.heard(reply_to(outcome.request, answer), client.clock(),
               mutex_.observation_);
  unknown_ = true;
}

// What may have been taken, or may be yet, is given back in the background; if
// there can be no thread for that, here.
void Acquisition::leave_nothing_behind(Outcome& outcome) {
  if (outcome.pending == nullptr && !unknown_) return;
  outcome.unknown = unknown_;
  Renewer& renewer = mutex_.table_.renewer;
  if (renewer.finish(Call::take, lease_, outcome, mutex_.holder_, nullptr)) {
    return;
  }
  end_pending(outcome);
  const Driver& driver = mutex_.holder_->driver;
  driver.run(Call::release, lease_, mutex_.observation_,
             {BootClock::now() + driver.settings().request_timeout}, nullptr);
}

// --- Mutex -------------------------------------------------------------------

Mutex::Mutex(Table& table, Driver::Settings settings, Holder::Terms terms,
             Holder::Callbacks callbacks, Waiting waiting)
    : table_(table),
      holder_(std::make_shared<Holder>(
          Driver(*table.client, *table.budget, std::move(settings)),
          std::move(terms), std::move(callbacks))),
      waiting_(waiting),
      put_(std::make_shared<const dynamodb::Item>(
          holder_->driver.settings().place.attributes)) {}

Mutex::~Mutex() { end(); }

void Mutex::end() {
  queue_.end();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    locked_again_ = 0;
  }
  release();
  table_.renewer.settle(*holder_);
}

Result Mutex::lock(const Patience& patience, Cancel* cancel) {
  if (queue_.kept_by_this_thread()) {
    if (waiting_.recursive) {
      if (auto again = lock_again()) return std::move(*again);
    } else if (patience.forever()) {
      return just(Kind::deadlock);
    }
  }
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) return just(Kind::closed);
  return Acquisition(*this, patience, cancel, *wait.waker()).run();
}

// Errors of before, while nobody waited, are none without a break.
int Mutex::begin_to_wait(bool alone) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto& since = trouble_.since;
  const bool over =
      since && BootClock::now() >= later(*since, waiting_.patience);
  if (over) ++trouble_.rounds;  // Who waits since before is told when he looks.
  if (alone || over) trouble_.since.reset();
  return trouble_.rounds;
}

void Mutex::heard(const Answer& answer, BootTime begun) {
  if (answer.fault == Fault::cancelled) return;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (!is_passing(answer.fault)) {
    trouble_.since.reset();
    return;
  }
  if (!trouble_.since) trouble_.since = begun;
  trouble_.last = answer;
}

// Of who waits since that round; BootTime::max() while nothing goes wrong.
BootTime Mutex::patience_ends(int round) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (trouble_.rounds != round) return BootTime();
  return trouble_.since ? later(*trouble_.since, waiting_.patience)
                        : BootTime::max();
}

std::optional<Result> Mutex::out_of_patience(int round) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (trouble_.rounds == round) {
    const auto& since = trouble_.since;
    if (!since || BootClock::now() < later(*since, waiting_.patience)) {
      return std::nullopt;
    }
    trouble_.since.reset();
    ++trouble_.rounds;
  }
  return failed(trouble_.last);
}

// The row as a PutItem makes it is not told.
std::shared_ptr<const dynamodb::Item> Mutex::stored_by(const Row& row) const {
  if (!settings().place.use.takes_by_update()) return put_;
  return std::make_shared<const dynamodb::Item>(row.others);
}

// Nothing if another thread has unlocked it by now.
std::optional<Result> Mutex::lock_again() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (held_ == nullptr || !queue_.kept_by_this_thread()) return std::nullopt;
  if (BootClock::now() >= claim_end()) return just(Kind::lost);
  ++locked_again_;
  return Result{};
}

// An inner level is given up once what it leaves is stored.
Result Mutex::release_inner(std::shared_ptr<const Changes> changes) {
  Result result = renew(std::move(changes));
  if (result.kind != Kind::done) return result;
  const std::lock_guard<std::mutex> guard(mutex_);
  if (locked_again_ > 0) --locked_again_;
  return result;
}

std::optional<Mutex::Possession> Mutex::possession() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (held_ == nullptr) return std::nullopt;
  return possession_;
}

bool Mutex::is_locked() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return held_ != nullptr;
}

std::shared_ptr<void> Mutex::signal_loss(
    const std::function<Renewer::Signal()>& make) {
  Renewer::Handle held;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    held = held_;
  }
  return held == nullptr ? nullptr : table_.renewer.signal_loss(held, make);
}

Result Mutex::renew(std::shared_ptr<const Changes> changes) {
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) return just(Kind::closed);
  Renewer::Handle held;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    held = held_;
  }
  if (held == nullptr) return just(Kind::not_held);
  const nanoseconds patience =
      std::max<nanoseconds>(waiting_.patience, settings().request_timeout);
  Renewer::Renewal renewal = table_.renewer.renew(
      held, changes, later(BootClock::now(), patience), *wait.waker(), [&] {
        const std::lock_guard<std::mutex> guard(mutex_);
        if (changes == nullptr || held != held_) return;
        possession_.others = changed(*possession_.others, *changes);
      });
  using End = Renewer::Renewal::Kind;
  Result result;
  result.loss = renewal.loss;
  if (renewal.kind == End::not_held) result.kind = Kind::not_held;
  if (renewal.kind == End::lost) result.kind = Kind::lost;
  if (renewal.kind == End::failed) result = failed(std::move(renewal.answer));
  const bool undone =
      renewal.kind == End::failed || renewal.kind == End::not_held;
  return undone && table_.waits.closed() ? just(Kind::closed) : result;
}

Result Mutex::release(std::shared_ptr<const Changes> changes) {
  Renewer::Handle held;
  bool inner;
  {
    // At once, for a thread that locks again is let in by what it finds here.
    const std::lock_guard<std::mutex> guard(mutex_);
    inner = locked_again_ > 0;
    if (inner && changes == nullptr) {
      --locked_again_;
      return {};
    }
    if (!inner) {
      held.swap(held_);
      // A thread that locks from now on waits, though it be the one that has
      // locked.
      if (held != nullptr) queue_.let_go();
      possession_ = {};
      token_.store(0, std::memory_order_release);
    }
  }
  if (inner) return release_inner(std::move(changes));
  if (held == nullptr) return just(Kind::not_held);
  Renewer::Returned back = table_.renewer.give_back(held);
  Result result = just(back.lease ? Kind::done : Kind::not_held);
  // Otherwise the row is known not to be ours.
  if (back.lease && (!back.lost || *back.lost == Verdict::expired)) {
    back.lease->carry(std::move(changes));
    result = say_released(*back.lease, held);
  }
  if (back.lost) {
    result.kind = Kind::lost;
    result.loss = *back.lost;
  }
  queue_.pass();
  return result;
}

Result Mutex::say_released(Lease& lease, const Renewer::Handle& handle) {
  const Driver& driver = holder_->driver;
  Observation nothing;
  Limits limits{BootClock::now() + driver.settings().request_timeout};
  limits.keep_pending = true;
  Outcome outcome = driver.run(Call::release, lease, nothing, limits, nullptr);
  if (outcome.verdict == Verdict::released) {
    // Refused once its lease was over: what it was to leave is not stored.
    const bool stored = outcome.answer.fault == Fault::none || outcome.unknown;
    if (stored || !lease.carries()) return {};
    return just(Kind::lost);
  }
  if (outcome.verdict != Verdict::again) {
    table_.renewer.lost(handle, outcome.verdict);
    if (outcome.answer.fault == Fault::wrong_key) {
      return failed(std::move(outcome.answer));
    }
    Result result = just(Kind::lost);
    result.loss = outcome.verdict;
    return result;
  }
  const bool worth_more =
      outcome.unknown || outcome.given_up || is_passing(outcome.answer.fault);
  if (worth_more) {
    table_.renewer.finish(Call::release, lease, outcome, holder_, handle);
  }
  return failed(std::move(outcome.answer));
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
