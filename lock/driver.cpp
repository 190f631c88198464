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

bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}

// False if woken.
bool pause(BootTime until, sigv4::Waker& waker) {
  sigv4::drive(nullptr, 0, until, &waker);
  return BootClock::now() >= until;
}

Outcome too_late(Call call, const Lease& lease, BootTime now) {
  Outcome outcome;
  outcome.answer.fault = Fault::timed_out;
  outcome.answer.message = "the deadline has passed";
  if (call == Call::renew && now >= lease.claim_end()) {
    outcome.verdict = Verdict::expired;
  }
  return outcome;
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
  } else if (answer.fault == Fault::no_table &&
             (request.verb == Verb::renew || request.verb == Verb::release)) {
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
  for (;;) {
    const BootTime now = BootClock::now();
    // A renewal is worth nothing once the lease has ended.
    if (call == Call::renew) deadline = std::min(deadline, lease.claim_end());
    if (now >= deadline) return too_late(call, lease, now);
    Outcome outcome;
    const Request request = lease.next(
        call, now, client_.clock(), dynamodb::Client::calendar(), observation);
    outcome.answer = client_.call(
        action_of(request.verb), write_request(settings_.place, request),
        std::min(deadline, now + settings_.request_timeout), waker);
    const Fault fault = outcome.answer.fault;
    outcome.verdict = lease.heard(reply_to(request, outcome.answer),
                                  client_.clock(), observation);
    if (answered(fault)) retry.success();
    if (outcome.verdict != Verdict::again) return outcome;
    if (fault == Fault::cancelled) return outcome;

    std::optional<nanoseconds> delay = nanoseconds::zero();
    if (!answered(fault)) {
      delay = retry.after(outcome.answer);
    } else if (++at_once > kAtOnce) {
      delay = budget_.jitter(kPause);
    }
    if (!delay || BootClock::now() + *delay >= deadline) return outcome;
    if (!pause(BootClock::now() + *delay, waker)) {
      outcome.answer.fault = Fault::cancelled;
      return outcome;
    }
  }
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
