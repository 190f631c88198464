// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A Hold is one acquisition, from its first look to the end of its release:
//
//   taking --granted--> held --unlock--> releasing --> over
//
// README.md has the whole picture.  A Hold knows what to send next, when to
// send it again, and what an answer means.  The sender (sender.hpp) sends it.
#ifndef DDBMUTEX_HOLD_HPP
#define DDBMUTEX_HOLD_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "order.hpp"
#include "protocol.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// `now + by`, but at most BootTime::max().
inline BootTime add_saturating(BootTime now, std::chrono::nanoseconds by) {
  return by < BootTime::max() - now ? now + by : BootTime::max();
}

// The rank of a loss in the order of reports.  Everything else has rank 0, so
// losses come first.
constexpr int kLossRank = -1;

// The notifier calls it, one call at a time, without Holds::mutex.
class Listener {
 public:
  virtual void on_lost(Verdict why) const = 0;
  virtual void on_danger() const = 0;

 protected:
  ~Listener() = default;
};

// Transient errors of the takes of a mutex, since the last answer.
struct Outage {
  std::optional<BootTime> since;  // Not set: nothing is failing.
  bool warned = false;            // It has been logged.
  // Null before the first error, and if memory ran out.  By pointer, because
  // most locks have none.
  std::unique_ptr<dynamodb::Answer> last;
};

// What all Holds of a mutex share.  First what the mutex sets once, and then
// what changes.  It may outlive the mutex, but not the client.
struct MutexSettings {
  MutexSettings(dynamodb::Client& its_client, dynamodb::RetryBudget& its_budget)
      : client(its_client), budget(its_budget) {}

  dynamodb::Client& client;
  dynamodb::RetryBudget& budget;
  RowTarget place;
  // For one request.  After that its outcome is unknown.
  std::chrono::nanoseconds request_timeout = dynamodb::kLockRequestTimeout;
  std::chrono::milliseconds ttl{};
  // A lock is in danger this long before the end of its claim.
  std::chrono::nanoseconds safe_time{};
  // The age at which a lease is renewed; zero: only by the user's calls.
  std::chrono::nanoseconds renew_after{};
  // A lock that has been held this long is only renewed by the user's calls.
  std::chrono::nanoseconds max_hold = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds first_poll{};  // Doubles up to the longest.
  std::chrono::nanoseconds longest_poll{};
  // Calls without a deadline retry transient errors for this long, counted from
  // the first of them.
  std::chrono::nanoseconds patience{};
  // What the listener is called for.
  bool hears_losses = false, hears_dangers = false;
  unsigned prefix_bytes = 0;  // Of the key, before the mutex's name.

  std::string_view name() const {  // For people.
    return std::string_view(place.key).substr(prefix_bytes);
  }

  // --- What changes.  --------------------------------------------------------

  // Until when the lock is held, on the boot clock; BootTime::min() while it is
  // not.  Only Holds writes it.
  std::atomic<BootTime> claim_end{BootTime::min()};
  // All below: GUARDED_BY(Holds::mutex)
  // What its takes have seen of the row.
  Observation observation;
  Outage outage;
  // Owned by the mutex until it is silenced, and by the notifier during a call.
  std::weak_ptr<const Listener> listener;
  bool silenced = false;  // Its listener is not called any more.
};
using MutexSettingsPtr = std::shared_ptr<MutexSettings>;

// How a call of a mutex ended.
struct Result {
  Verdict verdict = Verdict::again;
  // Says why the verdict is `again` or `bad_record`.  While a call waits for a
  // release: why it has failed so far.
  dynamodb::Answer answer{};
  // After a loss: when the claim ended (`expired`), or when the loss was found.
  std::optional<BootTime> lost_at{};
};

// A call that waits for a Hold.  It is on its caller's stack.
// GUARDED_BY(Holds::mutex), but for what is atomic.
struct Wait {
  const BootTime begun = BootClock::now();
  // Of a take: when its last request was answered; at first, when it began.
  BootTime answered_at = begun;
  std::atomic<bool> over{false};
  Result result{};
  // Of a take: rings when the wait is over.  Others wait for Hold::told.
  sigv4::BellPtr bell{};
  // Of a take without a deadline: when its caller began to wait.
  std::optional<BootTime> patient_since{};
  bool logs_outage = true;  // Of a take.
  // Of a take: set when a request has a transient error, and the one before had
  // none.
  std::atomic<bool> outage_began{false};
  // Of a take whose last request got no answer: the request before it had no
  // error, or it was the first.
  bool no_request_failed = false;
  // Of a renewal or release: it is sent first, and beyond all limits.
  bool goes_first = false;
  bool host_waits = false;  // See Lease::waited_for().
};

// Requests for the same purpose, one after another: how long to pause between
// them.
class Series {
 public:
  // `until`: no request is sent after it.
  Series(dynamodb::RetryBudget& budget, Call call, BootTime until = kNever);

  Call call() const { return call_; }
  BootTime until() const { return until_; }
  // Must be called for every answer.
  void receive(const dynamodb::Answer& answer);
  // The pause after an answer that decided nothing.  No value if its fault is
  // final.  `left` is the time left.  A pause of `left` or more means that the
  // next request would come too late.
  // Call it once for each such answer.
  std::optional<std::chrono::nanoseconds> next_delay(
      const dynamodb::Answer& answer, std::chrono::nanoseconds left);

 private:
  std::chrono::nanoseconds delay_of_take(std::chrono::nanoseconds delay,
                                         std::chrono::nanoseconds left,
                                         const dynamodb::Answer& answer) const;
  std::chrono::nanoseconds urgent_delay(std::chrono::nanoseconds delay,
                                        std::chrono::nanoseconds left,
                                        const dynamodb::Answer& answer) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  const BootTime until_;
  dynamodb::Retry retry_;
  int without_pause_ = 0;  // Requests that followed answers at once.
};

struct Errand;

// A request that the sender has begun, for an errand or for a Hold.  When a
// release is stamped, a renewal may still be in flight.  It then has no errand
// and no Hold, and its answer is ignored.
struct Flight {
  bool under_way() const { return pending->under_way(); }
  // DynamoDB may apply it, and that matters to its Hold.
  bool may_be_applied() const {
    return under_way() && hold != nullptr && verb != Request::Verb::look &&
           pending->exchange().sent();
  }
  // When the sender must act on it, even without an answer.
  BootTime ends_at() const { return std::min(timeout_at, answer_by); }

  std::unique_ptr<dynamodb::Client::Pending> pending{};
  BootTime timeout_at{};
  BootTime answer_by = kNever;  // When the caller of a take leaves.
  std::shared_ptr<Errand> errand{};
  HoldPtr hold{};
  // For a Hold:
  Call call = Call::take;
  Request::Verb verb = Request::Verb::look;
  BootTime stamped_at{};
  bool counted = false;  // Lines::count() has counted it.
};

struct Hold : std::enable_shared_from_this<Hold> {
  enum class Phase {
    taking,
    held,
    lost,  // Its claim has ended, and unlock() was not called yet.
    // A take is releasing once its caller has left.  Its request may still be
    // in flight.
    releasing,
    // A take may be applied after its release.  It is released once more near
    // the end of its lease.
    releasing_again,
    over,
  };
  static constexpr std::size_t kPhases =
      static_cast<std::size_t>(Phase::over) + 1;
  struct Loss {
    Verdict why;
    BootTime at;
  };

  explicit Hold(MutexSettingsPtr its_settings);
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  // What its next request is for: `release` in all phases after `held`.
  Call call() const;
  // Whether the sender may renew it at that time.
  bool is_renewed_at(BootTime when) const;
  // Its loss is still to be reported: only its place in the order says so.
  bool has_loss_to_tell() const { return report.key().rank == kLossRank; }
  // If not, there is perhaps nothing to release.
  bool was_granted() const { return held_since.has_value(); }
  // The last request had an error, or no answer.
  bool failing() const { return !answered(answer.fault); }
  bool unanswered() const { return answer.fault == dynamodb::Fault::timed_out; }
  // Of a take that was not granted: the row may be ours, now or later.
  bool needs_release() const { return take_unknown || lease.row_is_ours(); }
  // `not_held`, or how it was lost.
  Result outcome() const;
  // From then on requests of this phase are of no use.
  BootTime useful_until() const;

  // --- One request: stamp(), then unstamp() or receive(), by the sender.  ----
  // REQUIRES: the Holds' mutex is held.

  // Stamps the next request.  REQUIRES: may be sent at that time.
  Request stamp(Flight& its_flight, BootTime now);
  // Undoes stamp(): the request cannot be sent.
  void unstamp(BootTime now);
  void receive(const Flight& its_flight, dynamodb::Answer&& its_answer,
               Reply&& reply);

  // --- The next one.  --------------------------------------------------------

  struct Next {
    enum class Is { due, too_late, never };  // never: the fault is final.
    Is is;
    BootTime at;  // Unless it is never.
  };
  // After an answer that decided nothing.  A take retries errors until
  // `retry_until`.
  Next plan_next(BootTime retry_until = kNever);
  // The next request is the first of a series.
  void begin_series();
  // Sets `answer` and `verdict` for a request that gets no answer.
  void fail(dynamodb::Fault why, const char* message);

  const MutexSettingsPtr settings;  // Before `lease`, which is made of it.

  // GUARDED_BY(Holds::mutex).  Between two takes of a call, only the call uses
  // the lease, without the mutex.
  Lease lease;
  Phase phase = Phase::taking;
  // No request is sent after it.  Of a take, and of a renewal that a call waits
  // for: the call's deadline.  Of a release: the end of the lease.
  BootTime until = kNever;
  std::optional<BootTime> held_since;
  std::optional<Loss> loss;
  bool stops_renewing = false;   // From now on only the user renews it.
  bool danger_reported = false;  // Since it was renewed.
  // A take got no answer, and may be applied, now or later.
  bool take_unknown = false;
  Wait* wait = nullptr;      // The call that waits for it.
  sigv4::Condition told;     // Notified after answers, and when a wait is over.
  Place send;                // When its next request is due.
  Place report;              // When something must be said of it.
  Flight* flight = nullptr;  // Its request in flight.
  std::optional<Series> series;
  Verdict verdict = Verdict::again;  // Of the last answer.
  dynamodb::Answer answer;           // The last.
  std::string last_failure;          // Not a timeout or a lack of AWS keys.

 private:
  void note_failure();
};

// What an answer means to the protocol.  Moves the item out of the answer.
Reply reply_to(Request::Verb verb, dynamodb::Answer& answer,
               const RowFormat& layout = kDdblock);

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_HOLD_HPP
