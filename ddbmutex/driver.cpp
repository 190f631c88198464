#include "driver.hpp"

#include <algorithm>
#include <utility>

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

bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}

// The row went with its table; or there is none by that name in a table whose
// key is another (PutItem wrote one for each taker if it is one of our other
// attributes: nobody has been kept out).
bool no_row_possible(Fault fault) {
  return fault == Fault::no_table || fault == Fault::wrong_key;
}

Answer no_answer(Fault why, const char* message) {
  Answer answer;
  answer.fault = why;
  answer.message = message;
  return answer;
}

constexpr char kTimeIsUp[] = "the deadline has passed";

Answer no_turn() {
  return no_answer(Fault::throttled,
                   "DynamoDB asks for fewer requests, and the turn of this one "
                   "has not come");
}

// `failure`: what the request before has failed of, if it has: that is the
// reason, and not that its time was up.
Outcome nothing_sent(Fault why, const std::optional<Answer>& failure,
                     bool unknown) {
  Outcome outcome;
  outcome.unknown = unknown;
  outcome.given_up = !failure;
  if (why == Fault::cancelled) {
    outcome.answer = no_answer(why, "woken before another request was sent");
  } else if (failure) {
    outcome.answer = *failure;
  } else if (why == Fault::throttled) {
    outcome.answer = no_turn();
  } else {
    outcome.answer = no_answer(why, kTimeIsUp);
  }
  return outcome;
}

// What the requests of a run have failed of, one after another.
struct Failures {
  void heard(Answer& answer);

  std::optional<Answer> last;
  std::optional<Answer> told;  // The last that a server or the system told.
};

// That time was up, or keys were not there, says little of why: what was told
// before goes with it.
void Failures::heard(Answer& answer) {
  if (answered(answer.fault)) {
    last.reset();
    told.reset();
    return;
  }
  const bool says_little =
      answer.fault == Fault::timed_out || answer.fault == Fault::keys_awaited;
  if (!says_little) {
    told = answer;
  } else if (told) {
    if (!answer.message.empty()) answer.message += "; ";
    answer.message += std::string("before that: ") + name_of(told->fault);
    if (!told->message.empty()) answer.message += ": " + told->message;
  }
  last = answer;
}

// A run that ends undecided: of a renewal this may be the end of the lease.
Outcome at_deadline(Call call, const Lease& lease, Outcome outcome) {
  if (call == Call::renew && BootClock::now() >= lease.claim_end()) {
    outcome.verdict = Verdict::expired;
  }
  return outcome;
}

}  // namespace

Reply reply_to(const Request& request, const Answer& answer) {
  Reply reply;
  reply.received = BootClock::now();
  if (answer.fault == Fault::none) {
    reply.outcome = Reply::Outcome::done;
    if (answer.item) {
      reply.row = read_row(*answer.item);
    } else if (request.verb == Verb::look) {
      reply.row = Row{};
    }
  } else if (answer.fault == Fault::condition_failed) {
    reply.outcome = Reply::Outcome::refused;
    if (answer.item) reply.row = read_row(*answer.item);
  } else if (no_row_possible(answer.fault) && request.verb != Verb::take) {
    reply.outcome = Reply::Outcome::refused;
    reply.row = Row{};
  } else if (answer.outcome_unknown()) {
    reply.outcome = Reply::Outcome::unknown;
  }
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

// Why no other request is to be sent; nothing if one is.
std::optional<Fault> over(const Pace& pace, BootTime deadline,
                          BootTime retry_until, sigv4::Waker* waker) {
  if (waker != nullptr && waker->woken()) return Fault::cancelled;
  const BootTime now = BootClock::now();
  if (pace.awaits_turn() && now >= std::min(deadline, retry_until)) {
    return Fault::throttled;
  }
  if (now >= deadline) return Fault::timed_out;
  return std::nullopt;
}

BootTime retry_until_of(const Limits& limits, const Answer& answer,
                        BootTime begun) {
  return limits.heard ? limits.heard(answer, begun) : BootTime::max();
}

// No time is left for another attempt.  Refused for its time alone is not yet
// refused for its keys; a look that was to be followed by a write is no fault.
Outcome told_late(Call call, const Lease& lease, Outcome outcome) {
  if (outcome.answer.fault == Fault::none) {
    outcome.answer = no_answer(Fault::timed_out, kTimeIsUp);
  } else if (outcome.answer.fault == Fault::skewed_time) {
    outcome.answer = no_answer(Fault::timed_out,
                               "no time was left to sign for the right time");
  }
  return at_deadline(call, lease, std::move(outcome));
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

Driver::Driver(dynamodb::Client& client, dynamodb::RetryBudget& budget,
               Settings settings)
    : client_(client), budget_(budget), settings_(std::move(settings)) {}

Outcome Driver::run(Call call, Lease& lease, Observation& observation,
                    const Limits& limits, sigv4::Waker* waker) const {
  Pace pace(budget_, call);
  Limits now_limits = limits;
  BootTime& deadline = now_limits.deadline;
  BootTime retry_until = BootTime::max();
  bool unknown = false;
  Failures failures;
  for (;;) {
    // A renewal is worth nothing once the lease has ended.
    if (call == Call::renew) deadline = std::min(deadline, lease.claim_end());
    const BootTime begun = BootClock::now();
    // Before a request is stamped: its lease counts from there.
    const bool keys = client_.await_keys(
        std::min(deadline, begun + settings_.request_timeout), waker);
    const auto why = over(pace, deadline, retry_until, waker);
    // Without keys nothing is sent either, and it is told that they lack.
    if (why && (keys || *why == Fault::cancelled)) {
      Outcome outcome = nothing_sent(*why, failures.last, unknown);
      if (*why == Fault::cancelled) return outcome;
      return at_deadline(call, lease, std::move(outcome));
    }
    if (!why && waited_for_turn(pace, std::min(deadline, retry_until), waker)) {
      retry_until =
          retry_until_of(limits, failures.last.value_or(no_turn()), begun);
      continue;
    }
    Outcome outcome = attempt(call, lease, observation, now_limits, waker);
    outcome.unknown = unknown = unknown || outcome.unknown;
    const bool given_up = outcome.given_up;
    if (failures.last) outcome.given_up = false;
    failures.heard(outcome.answer);
    if (given_up) return at_deadline(call, lease, std::move(outcome));
    pace.heard(outcome.answer);
    retry_until = retry_until_of(limits, outcome.answer, begun);
    if (outcome.verdict != Verdict::again) return outcome;
    const BootTime now = BootClock::now();
    const BootTime end =
        failures.last ? std::min(deadline, retry_until) : deadline;
    const auto delay =
        pace.delay(outcome.answer, std::max(end, BootTime{}) - now);
    if (!delay) return at_deadline(call, lease, std::move(outcome));
    if (now + *delay >= (*delay > nanoseconds::zero() ? end : deadline)) {
      if (call == Call::take) sigv4::drive(nullptr, 0, end, waker);
      if (!failures.last) outcome.given_up = true;
      return told_late(call, lease, std::move(outcome));
    }
    sigv4::drive(nullptr, 0, now + *delay, waker);
  }
}

Outcome Driver::attempt(Call call, Lease& lease, Observation& observation,
                        const Limits& limits, sigv4::Waker* waker) const {
  const BootTime now = BootClock::now();
  Outcome outcome;
  outcome.request = lease.next(call, now, client_.clock(), observation);
  auto pending = begin(outcome.request);
  sigv4::Exchange* exchange = pending->exchange();
  const BootTime until =
      std::min(limits.deadline, now + settings_.request_timeout);
  if (pending->under_way()) sigv4::drive(&exchange, 1, until, waker);

  const BootTime later = BootClock::now();
  const bool late = later >= until;
  outcome.given_up =
      pending->under_way() && (!late || later >= limits.deadline);
  const bool writes = outcome.request.verb != Verb::look;
  if (outcome.given_up && limits.keep_pending && writes && exchange->sent()) {
    outcome.answer =
        no_answer(late ? Fault::timed_out : Fault::cancelled, "no answer yet");
    outcome.pending = std::move(pending);
    return outcome;
  }
  outcome.answer =
      client_.finish(std::move(pending), late ? sigv4::Transport::timed_out
                                              : sigv4::Transport::cancelled);
  outcome.unknown = writes && outcome.answer.outcome_unknown();
  outcome.verdict = lease.heard(reply_to(outcome.request, outcome.answer),
                                client_.clock(), observation);
  return outcome;
}

std::unique_ptr<dynamodb::Client::Pending> Driver::begin(
    const Request& request) const {
  auto pending = client_.begin(action_of(request.verb, settings_.place.use),
                               write_request(settings_.place, request));
  if (pending->exchange() != nullptr) {
    pending->exchange()->connect_within(settings_.request_timeout);
  }
  return pending;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
