#include "lock/driver.hpp"

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

bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}

Outcome nothing_sent(Fault why, bool unknown) {
  Outcome outcome;
  outcome.unknown = unknown;
  outcome.answer.fault = why;
  outcome.answer.message = why == Fault::cancelled
                               ? "woken before another request was sent"
                               : "the deadline has passed";
  return outcome;
}

// A run that ends undecided: of a renewal this may be the end of the lease.
Outcome at_deadline(Call call, const Lease& lease, Outcome outcome) {
  if (call == Call::renew && BootClock::now() >= lease.claim_end()) {
    outcome.verdict = Verdict::expired;
  }
  return outcome;
}

// What presses is not held back until it is too late: half of what is left is
// for another attempt, down to where there is no time for one.
nanoseconds fitted(nanoseconds delay, nanoseconds left) {
  return std::min(delay, std::max<nanoseconds>(left / 2, kShortestDelay));
}

}  // namespace

dynamodb::Action action_of(Verb verb) {
  switch (verb) {
    case Verb::take:
      return dynamodb::Action::put_item;
    case Verb::renew:
      return dynamodb::Action::update_item;
    case Verb::release:
      return dynamodb::Action::delete_item;
    case Verb::look:
      break;
  }
  return dynamodb::Action::get_item;
}

Reply reply_to(const Request& request, const Answer& answer) {
  Reply reply;
  reply.received = BootClock::now();
  if (answer.fault == Fault::none) {
    reply.outcome = Reply::Outcome::done;
    if (request.verb == Verb::look) {
      reply.row = answer.item ? read_row(*answer.item) : Row{};
    }
  } else if (answer.fault == Fault::condition_failed) {
    reply.outcome = Reply::Outcome::refused;
    if (answer.item) reply.row = read_row(*answer.item);
  } else if (answer.fault == Fault::no_table && request.verb != Verb::take) {
    reply.outcome = Reply::Outcome::refused;  // The row went with its table.
    reply.row = Row{};
  } else if (answer.outcome_unknown()) {
    reply.outcome = Reply::Outcome::unknown;
  }
  return reply;
}

Driver::Driver(dynamodb::Client& client, dynamodb::RetryBudget& budget,
               Settings settings)
    : client_(client), budget_(budget), settings_(std::move(settings)) {}

Outcome Driver::run(Call call, Lease& lease, Observation& observation,
                    BootTime deadline, sigv4::Waker& waker) {
  Retry retry(budget_, call == Call::take ? Retry::Urgency::waits
                                          : Retry::Urgency::presses);
  int at_once = 0;
  bool unknown = false;
  for (;;) {
    // A renewal is worth nothing once the lease has ended.
    if (call == Call::renew) deadline = std::min(deadline, lease.claim_end());
    if (waker.woken()) return nothing_sent(Fault::cancelled, unknown);
    if (BootClock::now() >= deadline) {
      return at_deadline(call, lease, nothing_sent(Fault::timed_out, unknown));
    }
    Outcome outcome = attempt(call, lease, observation, deadline, waker);
    unknown = unknown || outcome.answer.outcome_unknown();
    outcome.unknown = unknown;
    const Fault fault = outcome.answer.fault;
    if (answered(fault)) retry.success();
    if (outcome.verdict != Verdict::again) return outcome;

    std::optional<nanoseconds> delay = nanoseconds::zero();
    if (!answered(fault)) {
      delay = retry.after(outcome.answer);
    } else if (++at_once > kAtOnce) {
      delay = budget_.jitter(kPause);
    }
    if (!delay) return at_deadline(call, lease, std::move(outcome));
    const BootTime now = BootClock::now();
    if (call != Call::take) delay = fitted(*delay, deadline - now);
    if (now + *delay >= deadline) {
      return at_deadline(call, lease, std::move(outcome));
    }
    sigv4::drive(nullptr, 0, now + *delay, &waker);
  }
}

Outcome Driver::attempt(Call call, Lease& lease, Observation& observation,
                        BootTime deadline, sigv4::Waker& waker) {
  const BootTime now = BootClock::now();
  const Request request = lease.next(call, now, client_.clock(),
                                     dynamodb::Client::calendar(), observation);
  Outcome outcome;
  outcome.answer = client_.call(
      action_of(request.verb), write_request(settings_.place, request),
      std::min(deadline, now + settings_.request_timeout), waker);
  outcome.verdict = lease.heard(reply_to(request, outcome.answer),
                                client_.clock(), observation);
  return outcome;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
