// Carries the requests of a Lease to DynamoDB and the answers back, on the
// calling thread, until they have decided something.
//
// Thread safety: any thread may call run(); one Lease is driven by one at a
// time.
#ifndef DDBMUTEX_LOCK_DRIVER_HPP
#define DDBMUTEX_LOCK_DRIVER_HPP

#include <chrono>

#include "dynamodb/answer.hpp"
#include "dynamodb/client.hpp"
#include "dynamodb/retry.hpp"
#include "lock/protocol.hpp"
#include "lock/record.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

dynamodb::Action action_of(Request::Verb verb);

// What a finished call means to the protocol, which is to be told at once.
Reply reply_to(const Request& request, const dynamodb::Answer& answer);

struct Outcome {
  // `again` if nothing was decided; then `answer` tells why: a final fault,
  // the last passing one before the deadline, or cancelled.
  Verdict verdict = Verdict::again;
  dynamodb::Answer answer;  // The last one.
  // The outcome of some request of the run, not only of the last, is unknown:
  // of a take that was not decided, a release is to follow.
  bool unknown = false;
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
  // other than `again`, a final fault, `deadline`, or until `waker` is woken.
  // A renewal's deadline is no later than the end of the claim; nothing is sent
  // past a deadline or once woken.  A take that ended undecided may have been
  // applied, or be yet: a release takes back what has been.
  Outcome run(Call call, Lease& lease, Observation& observation,
              BootTime deadline, sigv4::Waker& waker);

 private:
  Outcome attempt(Call call, Lease& lease, Observation& observation,
                  BootTime deadline, sigv4::Waker& waker);

  dynamodb::Client& client_;
  dynamodb::RetryBudget& budget_;
  const Settings settings_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LOCK_DRIVER_HPP
