// Carries the requests of a Lease to DynamoDB and the answers back, on the
// calling thread, until they have decided something.
//
// Thread safety: any thread may call run(); one Lease is driven by one at a
// time.
#ifndef DDBMUTEX_DRIVER_HPP
#define DDBMUTEX_DRIVER_HPP

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "answer.hpp"
#include "client.hpp"
#include "protocol.hpp"
#include "record.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// What a finished call means to the protocol, which is to be told at once.
Reply reply_to(const Request& request, const dynamodb::Answer& answer);

struct Outcome {
  // `again` if nothing was decided; then `answer` tells why: a final fault,
  // the last passing one, or that the run was given up.
  Verdict verdict = Verdict::again;
  dynamodb::Answer answer;  // The last one.
  // The outcome of some write of the run, not only of the last, is unknown:
  // of a take that was not decided, a release is to follow.  `pending` is not
  // meant.
  bool unknown = false;
  // At the deadline, or woken, while nothing had gone wrong.
  bool given_up = false;
  // What was under way then, if that was asked for.  The lease is to hear of it
  // before anything else.
  Request request;
  std::unique_ptr<dynamodb::Client::Pending> pending;
};

// When to send the next request of a run.
class Pace {
 public:
  Pace(dynamodb::RetryBudget& budget, Call call);
  ~Pace() { press(false); }
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // How long to wait before the next request, if it can wait and DynamoDB
  // throttles; to be asked until it is zero.
  std::chrono::nanoseconds turn();
  bool awaits_turn() const { return turn_.waits(); }

  // Told of every answer.
  void heard(const dynamodb::Answer& answer);
  // How long to wait after one that decided nothing; nothing if its fault is
  // final.  `left`: until the run is worth nothing.  As long at the least: no
  // other request is worth sending.
  std::optional<std::chrono::nanoseconds> delay(const dynamodb::Answer& answer,
                                                std::chrono::nanoseconds left);

 private:
  void press(bool pressing);
  std::chrono::nanoseconds fitted(std::chrono::nanoseconds delay,
                                  std::chrono::nanoseconds left,
                                  const dynamodb::Answer& answer) const;
  std::chrono::nanoseconds pressed(std::chrono::nanoseconds delay,
                                   std::chrono::nanoseconds left,
                                   bool throttled) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  dynamodb::Throttle::Turn turn_;
  bool pressing_ = false;  // A renewal that was throttled.
  dynamodb::Retry retry_;
  int at_once_ = 0;
};

// How far a run goes.
struct Limits {
  BootTime deadline;  // Nothing is sent past it, nor awaited.
  // Told of each answer, and of each wait for a turn as if it were throttled,
  // and when that attempt began; says until when passing faults are tried
  // again.  Empty: until the deadline.
  std::function<BootTime(const dynamodb::Answer& answer, BootTime begun)>
      heard{};
  // A write that was sent and is under way when the run is given up comes back
  // in Outcome::pending, instead of being ended.
  bool keep_pending = false;
};

class Driver {
 public:
  // How one lock's requests are sent.
  struct Settings {
    Place place;
    // For one request; longer, and its outcome is unknown.
    std::chrono::nanoseconds request_timeout = std::chrono::seconds(2);
  };

  // Borrows both; they must outlive it.
  Driver(dynamodb::Client& client, dynamodb::RetryBudget& budget,
         Settings settings);

  // Sends what the lease says, passing faults tried again, until a verdict
  // other than `again`, a final fault, the deadline, or until `waker` (may be
  // null) is woken.  A renewal's deadline is no later than the end of the
  // claim; nothing is sent past a deadline or once woken.  A take that fails
  // goes on until its time is up, though that were too short for another
  // request, and tells what failed last.  A take that ended
  // undecided may have been applied, or be yet: a release takes back what has
  // been.
  Outcome run(Call call, Lease& lease, Observation& observation,
              const Limits& limits, sigv4::Waker* waker) const;

  // Begins one request by hand; Client::finish() says what became of it.
  std::unique_ptr<dynamodb::Client::Pending> begin(
      const Request& request) const;

  dynamodb::Client& client() const { return client_; }
  dynamodb::RetryBudget& budget() const { return budget_; }
  const Settings& settings() const { return settings_; }

 private:
  Outcome attempt(Call call, Lease& lease, Observation& observation,
                  const Limits& limits, sigv4::Waker* waker) const;

  dynamodb::Client& client_;
  dynamodb::RetryBudget& budget_;
  const Settings settings_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_DRIVER_HPP
