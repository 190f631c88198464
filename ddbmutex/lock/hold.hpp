// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A Hold is one acquisition, from its first look to the end of its release:
//
//   taking --granted--> held --unlock--> releasing --> over
//
// README.md has the whole picture.  A Hold knows what to send next, when to
// send it again, and what an answer means.  The sender (sender.hpp) sends it.
#ifndef DDBMUTEX_HOLD_HPP
#define DDBMUTEX_HOLD_HPP

#include <atomic>
#include <chrono>
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

// What the notifier reports of a lock.
enum class News { none, loss, danger };

// Called by one thread for all mutexes of a table, one call at a time, with no
// mutex held.
class Listener {
 public:
  // Reports a loss and its reason, or danger.
  virtual void notify(News news, Verdict loss) const = 0;

 protected:
  ~Listener() = default;
};

// One mutex as its Holds know it.  Constant once it is filled in, except for
// the last members.  It may outlive the mutex, but not the client.
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

  // Until when the lock is held, on the boot clock; BootTime::min() while it is
  // not.  Only Holds writes it.
  std::atomic<BootTime> claim_end{BootTime::min()};
  // All below: GUARDED_BY(Holds::mutex)
  // What its takes have seen of the row.
  Observation observation;
  // The mutex owns it until it is silenced.  It also lives while it is called.
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
// GUARDED_BY(Holds::mutex), but `over` may be read without it.
struct Wait {
  BootTime begun = BootClock::now();
  // Of a take: rings when the wait is over.  Others wait for Hold::told.
  sigv4::BellPtr bell{};
  std::atomic<bool> over{false};
  // Of a take:
  enum class End {
    answered,
    unsent,     // It was too late for the request.
    timed_out,  // The request was ended at the call's deadline.
    left,       // The request goes on, and the Hold is the sender's.
  };
  End end = End::answered;
  // Of a release: it is sent before those that nobody waits for.
  bool goes_first = false;
  bool host_waits = false;  // See Lease::waited_for().
  Result result{};
};

// Requests for the same purpose, one after another: how long to pause between
// them.
class Series {
 public:
  // `until`: another request is of no use from then on.
  Series(dynamodb::RetryBudget& budget, Call call,
         BootTime until = BootTime::max());

  Call call() const { return call_; }
  BootTime until() const { return until_; }
  // Must be called for every answer.
  void receive(const dynamodb::Answer& answer);
  // How long to wait after an answer that decided nothing; no value if its
  // fault is final.  If the result is `left` or more, another request would
  // come too late.
  std::optional<std::chrono::nanoseconds> delay(const dynamodb::Answer& answer,
                                                std::chrono::nanoseconds left);

 private:
  std::chrono::nanoseconds fitted(std::chrono::nanoseconds delay,
                                  std::chrono::nanoseconds left,
                                  const dynamodb::Answer& answer) const;
  std::chrono::nanoseconds shortened(std::chrono::nanoseconds delay,
                                     std::chrono::nanoseconds left,
                                     bool throttled) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  const BootTime until_;
  dynamodb::Retry retry_;
  int at_once_ = 0;  // Answers that called for another request.
};

// A request that the sender has begun.
struct Flight {
  bool under_way() const { return pending->under_way(); }
  // DynamoDB may apply it.
  bool may_be_applied() const {
    return under_way() && verb != Request::Verb::look &&
           pending->exchange().sent();
  }
  // When the sender must act on it, even without an answer.
  BootTime ends_at() const { return std::min(timeout_at, answer_by); }

  std::unique_ptr<dynamodb::Client::Pending> pending{};
  Call call = Call::take;
  Request::Verb verb = Request::Verb::look;
  BootTime stamped_at{};
  BootTime timeout_at{};
  BootTime answer_by = BootTime::max();  // When the caller of a take goes.
};

struct Hold : std::enable_shared_from_this<Hold> {
  enum class Phase {
    taking,
    held,
    lost,  // Its claim has ended, and unlock() was not called yet.
    // A take in flight whose caller has gone is in this phase, too.
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

  // What its next request is for.
  Call call() const;
  // Whether the sender may renew it at that time.
  bool is_renewed_at(BootTime when) const;
  // Its next request is planned, or waits in line.
  bool is_planned() const { return send.key().when != BootTime::max(); }
  // Its loss is still to be reported.
  bool has_loss_to_tell() const { return report.key().when == BootTime::min(); }
  // It was never granted, so perhaps there is nothing to release.
  bool is_doubtful() const { return !held_since; }
  // The last request had an error, or no answer.
  bool failing() const { return !answered(answer.fault); }
  bool unanswered() const { return answer.fault == dynamodb::Fault::timed_out; }
  // A take that did not win: the row may be ours, or may yet become it.
  bool needs_release() const { return outcome_unknown || lease.row_is_ours(); }
  // `not_held`, or how it was lost.
  Result outcome() const;
  // When another request of this phase is of no use.
  BootTime useful_until() const;

  // --- One request.  The sender calls these, in this order.  -----------------
  // REQUIRES: the Holds' mutex is held, but for note_failure().

  // Stamps the next request.  REQUIRES: may be sent at that time.
  Request stamp(Flight& its_flight, BootTime now);
  // Undoes stamp(): the request cannot be sent.
  void unstamp(BootTime now);
  // Completes the answer with what failed before.
  void note_failure(dynamodb::Answer& its_answer);
  void receive(const Flight& its_flight, dynamodb::Answer&& its_answer,
               Reply&& reply);

  // --- The next one.  --------------------------------------------------------

  enum class Next { when_due, too_late, never };
  // After an answer that decided nothing: sets `due`.  A take retries errors
  // until `retry_until`.  never: the fault is final.
  Next plan_next(BootTime retry_until = BootTime::max());
  // The next request is the first of a series.
  void begin_series();
  // Sets `answer` and `verdict` for a request that got no answer.
  void fail(dynamodb::Fault why, const char* message);

  const MutexSettingsPtr settings;

  // GUARDED_BY(Holds::mutex).  Between two requests of a take, only the call
  // that takes the lock uses these, without the mutex.
  Lease lease;
  Phase phase = Phase::taking;
  // The deadline of whoever wants the next request; of a release, the end of
  // the lease.
  BootTime until = BootTime::max();
  std::optional<BootTime> held_since;
  std::optional<Loss> loss;
  bool stops_renewing = false;  // From now on only the user renews it.
  bool in_danger = false;       // Reported since it was renewed.
  // A take may have been applied, or may yet be, whatever later answers said.
  // Once the lock is released: the same of a release.
  bool outcome_unknown = false;
  Wait* wait = nullptr;   // The call that waits for it.
  sigv4::Condition told;  // Notified after answers, and when a wait is over.
  Place send;             // When its next request is due.
  Place report;           // When something must be said of it.

  // Used by the sender, and between two requests by the call that takes.
  std::optional<Flight> flight;
  std::optional<Series> series;
  Verdict verdict = Verdict::again;  // Of the last answer.
  dynamodb::Answer answer;           // The last.
  std::string last_failures;  // The last that a server or the system reported.
  BootTime due{};             // Set by plan_next().
};

// What an answer means to the protocol.  Moves the item out of the answer.
Reply reply_to(Request::Verb verb, dynamodb::Answer& answer,
               const RowFormat& layout = kDdblock);

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_HOLD_HPP
