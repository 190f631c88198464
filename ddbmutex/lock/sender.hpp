// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sender: the thread of a table that sends all requests.  It takes, renews
// and releases locks, sends what other calls wait for, and finishes what
// callers abandoned.
//
// Limits, besides those of lines.hpp:
// - At most 16 abandoned takes are awaited.  The requests of others are ended,
//   and released without their answers.
// - At most 1,000 releases wait.  Beyond that, an abandoned take is not
//   released.
// - Nothing is sent after its deadline.
#ifndef DDBMUTEX_SENDER_HPP
#define DDBMUTEX_SENDER_HPP

#include <atomic>
#include <list>
#include <memory>
#include <optional>
#include <utility>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/client.hpp"
#include "hold.hpp"
#include "holds.hpp"
#include "lines.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// A request that is sent as it is, and the call that waits for its answer.  It
// is shared, because the call may leave while the request is in flight.
struct Errand {
  Errand(dynamodb::PlainRequest&& its_request, const sigv4::CallWaker& waker)
      : request(std::move(its_request)), bell(waker.bell()) {}

  const dynamodb::PlainRequest request;
  // GUARDED_BY(Holds::mutex).  Null: the call has left, or was told.
  sigv4::BellPtr bell;
  std::atomic<bool> over{false};
  dynamodb::Answer answer{};  // Set before it is over.
};
using Errands = std::list<std::shared_ptr<Errand>>;

class Sender {
 public:
  explicit Sender(Holds& holds) : holds_(holds) {}

  // The thread's main function.  Returns once the table is destroyed or exit()
  // was called, and each abandoned request was tried once more.  libcurl may
  // block it.
  void run();

  // REQUIRES for these: the mutex is held.

  // Adds an errand, which comes as a list of one, so this allocates nothing.
  // The caller wakes the sender.
  void enqueue(Errands&& one) { queued_.splice(queued_.end(), one); }
  // Nothing is sent any more.
  bool has_ended() const { return ended_; }

 private:
  using Flights = std::list<Flight>;

  bool send_round();
  void begin_round();
  void pause_for_memory();
  void end_all();

  // What is due.
  Lines::Due next_due(BootTime now);  // The mutex is held.
  void line_up(BootTime now);         // The mutex is held.
  std::optional<BootTime> plan_sleep();

  // Requests begin.
  void begin_errands();
  bool begin_next();
  bool stamp_next(Flight& flight, Request& request);
  void postpone(const Flight* flight);

  // Requests end.
  void await_any(BootTime until);
  void conclude_all();
  void conclude(Flight& flight, bool given_up);
  void answer_errand(Errand& errand, dynamodb::Answer&& answer);

  // For these the mutex is held.
  bool may_begin(const Hold& hold, const Flight& flight, BootTime now) const;
  void refuse(Hold& hold);
  void retry_with_memory(Hold& hold);
  void abandon(Hold& hold);
  static sigv4::BellPtr tell_take(Hold& hold);
  // What an answer means.
  sigv4::BellPtr taken(Hold& hold, bool given_up);
  sigv4::BellPtr retry_take(Hold& hold);
  void renewed(Hold& hold);
  void retry_renewal(Hold& hold);
  void released(Hold& hold, BootTime stamped_at);
  void tell_of_release(Hold& hold, bool for_good);

  Holds& holds_;
  // Used only by the sender's thread.
  Errands errands_;  // Those that begin in this round.
  Flights flights_;
  // GUARDED_BY(Holds::mutex)
  Errands queued_;
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SENDER_HPP
