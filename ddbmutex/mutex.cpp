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

Result failed(Answer answer) {
  Result result(Kind::failed);
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
class Acquisition final : private Errand::Watch {
 public:
  // REQUIRES: the waker is none of another wait.
  Acquisition(Mutex& mutex, const Patience& patience, Cancel* cancel,
              sigv4::Waker& waker);
  ~Acquisition();
  Acquisition(const Acquisition&) = delete;
  Acquisition& operator=(const Acquisition&) = delete;

  std::optional<Result> stand_in_line();
  Result take();

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
  void see_first();
  BootTime retry_until(const Answer& answer, BootTime begun) override;
  void pause();
  Result keep();
  Result undecided() const;
  void leave_nothing_behind();

  Mutex& mutex_;
  const Patience& patience_;
  const bool once_;
  const BootTime end_;  // Unless that is on another clock.
  Cancel* const cancel_;
  sigv4::Waker& waker_;
  Queue::Waiter waiter_;
  int round_ = 0;  // Of the mutex's trouble, as it was when the call began.

  ErrandPtr errand_;
  // With Patience::past_lease, once a record was seen.
  std::optional<BootTime> past_lease_;
  nanoseconds poll_;
  bool queued_ = false;  // Or has the turn, but has not kept it.
  bool busy_ = false;    // The lock was another's when last told.
};

namespace {

// Of those in line, at what those before them have met.
constexpr std::chrono::milliseconds kShortestLook{100};

// Unless that is told by another clock, or a lease is waited out.
nanoseconds longest_wait(const Mutex& mutex, const Patience& patience,
                         bool once, const dynamodb::ServiceClock& clock) {
  const nanoseconds request = mutex.route().request_timeout;
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
      errand_(std::make_unique<Errand>(Call::take, mutex.holder_,
                                       mutex.fresh_lease())),
      poll_(mutex.waiting_.first_poll) {
  errand_->observation = &mutex.observation_;
  errand_->keeps_pending = true;
  if (cancel_ != nullptr) cancel_->attach(&waker_);
}

Acquisition::~Acquisition() {
  if (queued_) mutex_.queue_.leave(waiter_);
  if (cancel_ != nullptr) cancel_->attach(nullptr);
}

// Nothing if it has the turn.
std::optional<Result> Acquisition::stand_in_line() {
  const Queue::Entry entry = mutex_.queue_.enter(waiter_, !once_);
  if (entry == Queue::Entry::refused) {
    return once_ ? Kind::busy : Kind::cancelled;
  }
  queued_ = true;
  const bool alone = entry == Queue::Entry::turn;
  round_ = mutex_.begin_to_wait(alone);
  busy_ = !alone;
  return alone ? std::nullopt : wait_for_turn();
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
    if (const auto why = ended()) return *why;
    if (auto why = out_of_patience()) return why;
    if (has_turn) return std::nullopt;
    if (time_is_up()) return Kind::busy;
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
  Errand& errand = *errand_;
  for (;;) {
    errand.deadline = end();
    errand.run(*this, &waker_);
    if (errand.verdict == Verdict::ours) return keep();
    errand.unknown = errand.unknown || errand.lease().stands();
    // A refusal that was to be followed by a look is one too.
    busy_ = busy_ || errand.verdict == Verdict::busy ||
            errand.answer.fault == Fault::condition_failed;
    if (patience_.past_lease && !past_lease_) see_first();
    Result result = undecided();
    const bool failing = patience_.left != nullptr &&
                         result.kind == Kind::failed &&
                         is_passing(result.answer.fault);
    if ((result.kind == Kind::busy || failing) && !once_) {
      pause();
      const auto why = ended();
      if (!why && !time_is_up()) {
        // The caller's clock may have been set back.
        if (errand.pending != nullptr) {
          errand.conclude(*this, sigv4::Transport::timed_out);
        }
        continue;
      }
      if (why || !failing) result = why.value_or(Kind::busy);
    }
    if (result.kind == Kind::failed) out_of_patience();  // If so, of all.
    leave_nothing_behind();
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

BootTime Acquisition::retry_until(const Answer& answer, BootTime begun) {
  mutex_.heard(answer, begun);
  return patience_.forever() ? mutex_.patience_ends(round_) : BootTime::max();
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
Result Acquisition::undecided() const {
  switch (errand_->verdict) {
    case Verdict::busy:
      return Kind::busy;
    case Verdict::bad_record: {
      Result result(Kind::bad_record);
      result.problem = errand_->lease().row().problem;
      return result;
    }
    case Verdict::kept_row:
      return Kind::kept_row;
    case Verdict::no_row:
      return Kind::no_row;
    default:
      break;
  }
  if (const auto why = ended()) return *why;
  // Only the time was up: what was heard before holds.  For who waits for ever
  // it is his patience.
  const bool impatient =
      patience_.forever() && errand_->answer.fault == Fault::throttled;
  if (errand_->given_up && busy_ && !impatient) return Kind::busy;
  return failed(errand_->answer);
}

Result Acquisition::keep() {
  Lease& lease = errand_->lease();
  Handle held;
  {
    const std::lock_guard<std::mutex> guard(mutex_.mutex_);
    Mutex::Possession possession{lease.uuid(), lease.token(),
                                 mutex_.stored_by(lease.row())};
    held = mutex_.table_.keeper->keep(lease, mutex_.holder_);
    if (held != nullptr) {
      mutex_.held_ = held;
      mutex_.possession_ = std::move(possession);
      mutex_.locked_again_ = 0;
      mutex_.token_.store(mutex_.possession_.token, std::memory_order_release);
      queued_ = !mutex_.queue_.keep(waiter_);
      if (!queued_) return Kind::done;
    }
  }
  if (held != nullptr) {  // The mutex is being destroyed.
    mutex_.release();
    return Kind::cancelled;
  }
  errand_->unknown = true;
  leave_nothing_behind();
  return mutex_.table_.waits.closed() ? Kind::closed : Kind::no_thread;
}

// What may have been taken, or may be yet, is given back in the background; if
// there can be no thread for that, here.
void Acquisition::leave_nothing_behind() {
  Errand& errand = *errand_;
  if (errand.pending == nullptr && !errand.unknown) return;
  if (mutex_.table_.keeper->finish(errand_)) return;
  if (errand.pending != nullptr) {
    errand.conclude(*this, sigv4::Transport::timed_out);
  }
  errand.release_instead(BootClock::now() + mutex_.route().request_timeout);
  Errand::Watch nobody;
  errand.run(nobody, nullptr);
}

// --- Mutex -------------------------------------------------------------------

Table::Table(dynamodb::ClientOptions options)
    : client(std::make_shared<dynamodb::Client>(std::move(options))),
      budget(std::make_shared<dynamodb::RetryBudget>()),
      keeper(std::make_shared<Keeper>(client, budget)) {
  client->on_contradiction([weak = std::weak_ptr<Keeper>(keeper)] {
    if (const std::shared_ptr<Keeper> known = weak.lock()) known->check_clock();
  });
}

Mutex::Mutex(Table& table, Place&& place, nanoseconds request_timeout,
             Holder::Terms&& terms, Holder::Callbacks&& callbacks,
             const Waiting& waiting)
    : table_(table),
      holder_(std::make_shared<Holder>(
          Holder::Route{*table.client, *table.budget, std::move(place),
                        request_timeout},
          std::move(terms), std::move(callbacks))),
      waiting_(waiting),
      put_(std::make_shared<const dynamodb::Item>(route().place.attributes)) {}

Mutex::~Mutex() { end(); }

void Mutex::end() {
  queue_.end();
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    locked_again_ = 0;
  }
  release();
  table_.keeper->settle(*holder_);
}

Result Mutex::lock(const Patience& patience, Cancel* cancel) {
  if (queue_.kept_by_this_thread()) {
    if (waiting_.recursive) {
      if (auto again = lock_again()) return std::move(*again);
    } else if (patience.forever()) {
      return Kind::deadlock;
    }
  }
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) return Kind::closed;
  Acquisition call(*this, patience, cancel, *wait.waker());
  if (auto in_vain = call.stand_in_line()) return std::move(*in_vain);
  return call.take();
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
  trouble_.last = std::make_unique<const Answer>(answer);
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
  return failed(*trouble_.last);
}

// The row as a PutItem makes it is not told.
std::shared_ptr<const dynamodb::Item> Mutex::stored_by(const Row& row) const {
  if (!route().place.use.takes_by_update()) return put_;
  return std::make_shared<const dynamodb::Item>(row.others);
}

// Nothing if another thread has unlocked it by now.
std::optional<Result> Mutex::lock_again() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (held_ == nullptr || !queue_.kept_by_this_thread()) return std::nullopt;
  if (BootClock::now() >= claim_end()) return Kind::lost;
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

Lease Mutex::fresh_lease() const {
  return Lease(fresh_uuid(), holder_->terms.ttl, route().place.use);
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

std::shared_ptr<void> Mutex::signal_loss(const std::function<Signal()>& make) {
  Handle held;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    held = held_;
  }
  return held == nullptr ? nullptr : table_.keeper->signal_loss(held, make);
}

Result Mutex::renew(std::shared_ptr<const Changes> changes) {
  const Waits::One wait(table_.waits);
  if (wait.waker() == nullptr) return Kind::closed;
  Handle held;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    held = held_;
  }
  if (held == nullptr) return Kind::not_held;
  const nanoseconds patience =
      std::max<nanoseconds>(waiting_.patience, route().request_timeout);
  Result result = table_.keeper->renew(
      held, changes, later(BootClock::now(), patience), *wait.waker());
  if (result.kind == Kind::done) {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (changes != nullptr && held == held_) {
        possession_.others = changed(*possession_.others, *changes);
      }
    }
    table_.keeper->go_on(held);
  }
  const bool undone =
      result.kind == Kind::failed || result.kind == Kind::not_held;
  return undone && table_.waits.closed() ? Kind::closed : std::move(result);
}

Result Mutex::release(std::shared_ptr<const Changes> changes) {
  Handle held;
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
  if (held == nullptr) return Kind::not_held;
  std::optional<Verdict> lost;
  ErrandPtr errand = table_.keeper->give_back(held, lost);
  Result result(errand != nullptr ? Kind::done : Kind::not_held);
  // Otherwise the row is known not to be ours.
  if (errand != nullptr && (!lost || *lost == Verdict::expired)) {
    errand->lease().carry(std::move(changes));
    result = say_released(std::move(errand));
  }
  if (lost) {
    result.kind = Kind::lost;
    result.loss = *lost;
  }
  queue_.pass();
  return result;
}

Result Mutex::say_released(ErrandPtr errand) {
  errand->deadline = BootClock::now() + route().request_timeout;
  errand->keeps_pending = true;
  Errand::Watch nobody;
  errand->run(nobody, nullptr);
  const Verdict verdict = errand->verdict;
  const Fault fault = errand->answer.fault;
  if (verdict == Verdict::released) {
    // Refused once its lease was over: what it was to leave is not stored.
    const bool stored = fault == Fault::none || errand->unknown;
    return stored || !errand->lease().carries() ? Kind::done : Kind::lost;
  }
  if (verdict != Verdict::again) {
    table_.keeper->lost(errand->held, verdict);
    if (fault == Fault::wrong_key) return failed(std::move(errand->answer));
    Result result(Kind::lost);
    result.loss = verdict;
    return result;
  }
  Result result = failed(errand->answer);
  const bool worth_more =
      errand->unknown || errand->given_up || is_passing(fault);
  if (worth_more) table_.keeper->finish(errand);
  return result;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
