#include "attempt.hpp"

#include <algorithm>
#include <cassert>
#include <utility>

#include "../../sigv4/http.hpp"
#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"
#include "renewer.hpp"
#include "requests.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Answer;
using dynamodb::Fault;
using dynamodb::Retry;
using std::chrono::nanoseconds;
using Verb = Request::Verb;

namespace {

// Requests that answers called for at once, before a pause: more than the
// protocol needs, so only an engine that contradicts itself gets here.
constexpr int kAtOnce = 4;
constexpr std::chrono::milliseconds kPause{500};

constexpr std::chrono::milliseconds kShortestDelay{5};
// Of a release that was throttled, which goes on in the background.
constexpr std::chrono::milliseconds kShortestThrottledDelay{400};
// Renewals that may come often although they were throttled.
constexpr int kFew = 8;

// What the last attempt of a take has for its two round trips: where none was
// measured, and where what was measured is a request that hung.
constexpr std::chrono::milliseconds kShortestLast{50};
constexpr std::chrono::milliseconds kLongestLast{500};

// The row went with its table; or there is none by that name in a table whose
// key is another (PutItem wrote one for each taker if it is one of our other
// attributes: nobody has been kept out).
bool no_row_possible(Fault fault) {
  return fault == Fault::no_table || fault == Fault::wrong_key;
}

// There is no answer.
void fail(Answer& answer, Fault why, const char* message) {
  answer = Answer();
  answer.fault = why;
  sigv4::has_memory_for([&] { answer.message = message; });
}

constexpr char kTimeIsUp[] = "the deadline has passed";
constexpr char kNoTurn[] =
    "DynamoDB is throttling, and this request was held back for too long";

}  // namespace

Reply reply_to(Verb verb, Answer& answer, const Layout& layout) {
  Reply reply;
  reply.received = BootClock::now();
  const bool done = answer.fault == Fault::none;
  const bool gone = no_row_possible(answer.fault) && verb != Verb::take;
  if (done) {
    reply.outcome = Reply::Outcome::done;
  } else if (gone || answer.fault == Fault::condition_failed) {
    reply.outcome = Reply::Outcome::refused;
  } else if (answer.outcome_unknown()) {
    reply.outcome = Reply::Outcome::unknown;
  }
  const bool told = answered(answer.fault) && answer.item;
  if (told || gone || (done && verb == Verb::look)) {
    // Without memory the row is not told: a look follows.
    sigv4::has_memory_for([&] {
      auto row = std::make_unique<Row>();
      if (told) read_row(std::move(*answer.item), layout, *row);
      reply.row = std::move(row);
    });
  }
  answer.item.reset();  // Nobody else reads it, and it may be large.
  return reply;
}

Pace::Pace(dynamodb::RetryBudget& budget, Call call)
    : budget_(budget),
      call_(call),
      turn_(budget.throttle()),
      retry_(budget, call == Call::take ? Retry::Urgency::waits
                                        : Retry::Urgency::presses) {}

nanoseconds Pace::turn() {
  const bool waits =
      call_ == Call::take && (budget_.throttle().limits() || turn_.waits());
  return waits ? turn_.wait(BootClock::now()) : nanoseconds::zero();
}

void Pace::heard(const Answer& answer) {
  dynamodb::Throttle& throttle = budget_.throttle();
  if (answered(answer.fault)) {
    if (throttle.count()) throttle.answered(BootClock::now());
    retry_.success();
    press(false);
  } else if (answer.fault == Fault::throttled) {
    throttle.refused(BootClock::now());
    press(call_ == Call::renew);
  }
}

void Pace::press(bool pressing) {
  if (std::exchange(pressing_, pressing) == pressing) return;
  budget_.throttle().press(pressing ? 1 : -1);
}

// A take that waits has another attempt, as late as its answer can still come:
// one that is given up while it is under way leaves something to clean up.  It
// has none where the service is in such trouble that it is asked less.
nanoseconds Pace::fitted(nanoseconds delay, nanoseconds left,
                         const Answer& answer) const {
  if (call_ != Call::take) {
    return pressed(delay, left, answer.fault == Fault::throttled);
  }
  const nanoseconds needed = std::clamp<nanoseconds>(
      2 * (answer.received_at - answer.sent_at), kShortestLast, kLongestLast);
  if (delay <= left - needed) return delay;
  if (left <= needed || retry_.held_back()) return std::max(delay, left);
  return std::max<nanoseconds>(left - needed, answer.retry_after);
}

// What presses is not held back until it is too late: half of what is left is
// for another attempt, down to where there is no time for one.  While a table
// is throttled only some of its requests come through.  Few renewals that are
// refused then come often (one alone has a hundred attempts or so), many as
// seldom as after other faults; a release need not be said in the end.
nanoseconds Pace::pressed(nanoseconds delay, nanoseconds left,
                          bool throttled) const {
  nanoseconds longest = left / 2;
  nanoseconds shortest = kShortestDelay;
  if (pressing_) {
    // With more than that many, half of what is left is less, and the product
    // for a lease of a year might be more than 64 bits hold.
    const int others = std::min(budget_.throttle().pressing() - 1, 7 * kFew);
    longest = std::min(longest, left * (kFew + others) / (16 * kFew));
  } else if (throttled) {
    shortest = kShortestThrottledDelay;
  }
  return std::min(delay, std::max(longest, shortest));
}

std::optional<nanoseconds> Pace::delay(const Answer& answer, nanoseconds left) {
  std::optional<nanoseconds> delay = nanoseconds::zero();
  if (!answered(answer.fault)) {
    delay = retry_.after(answer);
  } else if (++at_once_ > kAtOnce) {
    delay = budget_.jitter(kPause);
  }
  // At once is at once: what was wrong has been put right.
  const bool waits = delay && *delay > nanoseconds::zero();
  return waits ? fitted(*delay, left, answer) : delay;
}

namespace {

// Why no other request is to be sent; `none` if one is.
Fault over(const Pace& pace, BootTime now, BootTime deadline,
           BootTime retry_until, sigv4::Waker* waker) {
  if (waker != nullptr && waker->woken()) return Fault::cancelled;
  if (pace.awaits_turn() && now >= std::min(deadline, retry_until)) {
    return Fault::throttled;
  }
  if (now >= deadline) return Fault::timed_out;
  return Fault::none;
}

// False if it is the turn of a request now.  True after a wait, at the end of
// which it may be.
bool waited_for_turn(Pace& pace, BootTime until, sigv4::Waker* waker) {
  const nanoseconds left = pace.turn();
  if (left <= nanoseconds::zero()) return false;
  sigv4::drive(nullptr, 0, std::min(BootClock::now() + left, until), waker);
  return true;
}

}  // namespace

// --- Attempt
// ------------------------------------------------------------------

HeldLease::HeldLease(std::shared_ptr<MutexSettings> whose)
    : holder(std::move(whose)),
      lease(fresh_uuid(), holder->ttl, holder->place.policy) {}

HeldLease::~HeldLease() {
  assert(!renewal.planned() && !danger.planned() && !end.planned());
}

Handle::Handle(HeldLease* held) : held_(held) {
  if (held_ != nullptr) ++held_->owners;
}

Handle::~Handle() {
  if (held_ != nullptr && --held_->owners == 0) delete held_;
}

Attempt::Attempt(Call what, HeldLease& whose)
    : call(what), held(&whose), holder(*whose.holder) {
  begin_anew();
}

Attempt::~Attempt() = default;

// No request is under way, and none has failed.
void Attempt::begin_anew() { pace_.emplace(holder.budget, call); }

bool Attempt::failing() const { return !answered(answer.fault); }

// A renewal is worth nothing once the lease has ended.
BootTime Attempt::end() const {
  return call == Call::renew ? std::min(deadline, held->lease.claim_end())
                             : deadline;
}

bool Attempt::stamp(BootTime now) {
  if (call == Call::renew && now >= held->lease.claim_end()) {
    verdict = Verdict::expired;
    return false;
  }
  if (call == Call::take && !holder.client.key_is_right()) {
    held->lease.look_first();
  }
  const Request request =
      held->lease.next(call, now, pending->clock(), *observation);
  verb = request.verb;
  stamped_at_ = now;
  const bool written = sigv4::has_memory_for(
      [&] { write_request(holder.place, request, pending->body()); });
  if (!written) {
    unstamp();
    sigv4::no_memory();
  }
  end_at_ = end();
  until = std::min(now + holder.request_timeout, end_at_);
  return true;
}

void Attempt::unstamp() {
  Reply unsent;
  unsent.received = stamped_at_;
  held->lease.heard(std::move(unsent), holder.client.clock(), *observation);
}

Attempt::Begun Attempt::begin(Renewer* renewer, BootTime now) {
  used_ = true;
  bool stamped = false;
  const bool had_memory = sigv4::has_memory_for([&] {
    pending = holder.client.prepare(now);
    stamped = renewer != nullptr ? renewer->stamp(*this) : stamp(now);
    if (!stamped) return;
    if (call == Call::take) holder.client.answer_if_key_is_wrong(*pending);
    // A refused renewal or release is answered with the whole row, which may be
    // somebody else's and large.  Only its record is needed.
    const bool others =
        call == Call::take && holder.place.policy.takes_by_update();
    holder.client.begin(*pending, action_of(verb, holder.place.policy),
                        stamped_at_, nullptr,
                        wanted_of(*holder.place.layout, others));
    pending->exchange().connect_within(holder.request_timeout);
  });
  if (had_memory && stamped) return Begun::yes;
  pending.reset();
  if (!had_memory && stamped) {
    renewer != nullptr ? renewer->unstamp(*this) : unstamp();
  }
  return had_memory ? Begun::too_late_or_unwanted : Begun::no_memory;
}

void Attempt::conclude(sigv4::Transport why) {
  answer = holder.client.finish(std::move(pending), why);
  return by_hand != nullptr ? by_hand->hear(*this) : hear();
}

void Attempt::hear() {
  const bool writes = verb != Verb::look;
  unknown = unknown || (writes && answer.outcome_unknown());
  verdict = held->lease.heard(reply_to(verb, answer, *holder.place.layout),
                              holder.client.clock(), *observation);
  pace_->heard(answer);
  end_at_ = end();
}

bool Attempt::goes_on(BootTime retry_until) {
  const BootTime now = BootClock::now();
  const BootTime end = failing() ? std::min(end_at_, retry_until) : end_at_;
  const auto delay = pace_->delay(answer, std::max(end, BootTime{}) - now);
  if (!delay) {
    due = BootTime::max();
    return false;
  }
  due = now + *delay;
  return due < (*delay > nanoseconds::zero() ? end : end_at_);
}

void Attempt::release_instead(BootTime give_up_at) {
  of_take = call == Call::take;
  awaits_take = of_take && pending != nullptr;
  take_unknown = unknown;
  call = Call::release;
  begin_anew();
  observation = &none_;
  keeps_pending = false;
  deadline = give_up_at;
  end_at_ = deadline;
  until = std::min(BootClock::now() + holder.request_timeout, deadline);
}

void Attempt::run(sigv4::Waker* waker, Caller* caller) {
  if (std::exchange(used_, true)) {
    begin_anew();
    verdict = Verdict::again;
    answer = {};
    told_.clear();
  }
  end_at_ = deadline;
  BootTime retry_until = BootTime::max();
  const auto tell = [&](const Answer& what, BootTime begun) {
    if (caller == nullptr) return;
    retry_until = caller->retry_until(*caller, what, begun);
  };
  for (;;) {
    const BootTime begun = BootClock::now();
    // Before a request is stamped: its lease counts from there.
    bool keys = holder.client.has_keys(begun);
    BootTime now = begun;
    if (!keys) {
      sigv4::has_memory_for([&] {
        keys = holder.client.await_keys(
            std::min(deadline, begun + holder.request_timeout), waker);
      });
      now = BootClock::now();
    }
    const Fault why = over(*pace_, now, deadline, retry_until, waker);
    // Without keys nothing is sent either, and it is told that they lack.
    const bool sends = why == Fault::none;
    if (!sends && (keys || why == Fault::cancelled)) return end_unsent(why);
    if (sends &&
        waited_for_turn(*pace_, std::min(deadline, retry_until), waker)) {
      Answer unsent;
      fail(unsent, Fault::throttled, kNoTurn);
      tell(failing() ? answer : unsent, begun);
      continue;
    }
    const bool failed = failing();
    switch (begin(by_hand, now)) {
      case Begun::yes:
        await_answer(waker);
        break;
      case Begun::too_late_or_unwanted:
        return;
      case Begun::no_memory:
        verdict = Verdict::again;
        given_up = false;
        fail(answer, Fault::no_memory, "");
        break;
    }
    sigv4::has_memory_for([this] { note_failure(); });
    if (given_up) {
      given_up = !failed;
      return;
    }
    tell(answer, begun);
    if (verdict != Verdict::again) return;
    if (!goes_on(retry_until)) return end_undecided(retry_until, waker);
    sigv4::drive(nullptr, 0, due, waker);
  }
}

// One that there is no memory to wait for has an unknown outcome.
void Attempt::await_answer(sigv4::Waker* waker) {
  sigv4::Exchange* exchange = &pending->exchange();
  const bool waited = sigv4::has_memory_for([&] {
    if (pending->under_way()) sigv4::drive(&exchange, 1, until, waker);
  });
  if (waited) return end_request();
  given_up = false;
  conclude(sigv4::Transport::broken);
}

void Attempt::end_request() {
  const bool ended = !pending->under_way();
  const BootTime now = ended ? BootTime::min() : BootClock::now();
  const bool late = now >= until;
  given_up = !ended && (!late || now >= end_at_);
  const bool writes = verb != Verb::look;
  if (given_up && keeps_pending && writes && pending->exchange().sent()) {
    fail(answer, late ? Fault::timed_out : Fault::cancelled, "no answer yet");
  } else {
    conclude(late ? sigv4::Transport::timed_out : sigv4::Transport::cancelled);
  }
}

// What the request before has failed of, if it has, is the reason, and not that
// its time was up.
void Attempt::end_unsent(Fault why) {
  given_up = !failing();
  verdict = Verdict::again;
  if (why == Fault::cancelled) {
    fail(answer, why, "cancelled before another request was sent");
  } else if (given_up) {
    fail(answer, why, why == Fault::throttled ? kNoTurn : kTimeIsUp);
  }
}

// That time was up, or keys were not there, says little of why: what was told
// before goes with it.
void Attempt::note_failure() {
  if (!failing()) return told_.clear();
  const bool says_little =
      answer.fault == Fault::timed_out || answer.fault == Fault::keys_awaited;
  if (!says_little) {
    told_ = sigv4::format("%s%[: %s%]", name_of(answer.fault), answer.message);
  } else if (!told_.empty()) {
    sigv4::format_to(answer.message, "%sbefore that: %s",
                     answer.message.empty() ? "" : "; ", told_);
  }
}

// The fault is final, or no time is left for another request; a take has what
// is left.  Refused for its time alone is not yet refused for its keys; a look
// that was to be followed by a write is no fault.
void Attempt::end_undecided(BootTime retry_until, sigv4::Waker* waker) {
  if (due == BootTime::max()) return;
  given_up = !failing();
  const BootTime end = given_up ? end_at_ : std::min(end_at_, retry_until);
  if (call == Call::take) sigv4::drive(nullptr, 0, end, waker);
  if (answer.fault == Fault::none) {
    fail(answer, Fault::timed_out, kTimeIsUp);
  } else if (answer.fault == Fault::skewed_time) {
    fail(answer, Fault::timed_out,
         "the clock was wrong, and no time was left to sign again");
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
