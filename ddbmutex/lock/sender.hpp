// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sender: the thread of a table that sends all requests.  It takes, renews
// and releases locks, sends what other calls wait for, and finishes what
// callers abandoned.
//
// Limits, besides those of lines.hpp:
// - At most 16 abandoned takes are awaited.  Others are ended at once, and
// their
//   releases are sent without knowing the answers.
// - Nothing is sent after its deadline.
#ifndef DDBMUTEX_SENDER_HPP
#define DDBMUTEX_SENDER_HPP

#include <atomic>
#include <list>
#include <memory>
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
  // GUARDED_BY(Holds::mutex).  Null once the call has left, or was told.
  sigv4::BellPtr bell;
  std::atomic<bool> over{false};
  dynamodb::Answer answer{};  // Set before it is over.
};
using Errands = std::list<std::shared_ptr<Errand>>;

class Sender {
 public:
  explicit Sender(Holds& holds) : holds_(holds) {}

  // The thread's main function.  Once Keeper::tell_to_stop() was called, it
  // tries each abandoned request once more, and returns: by Holds::stop_by, or
  // later if libcurl blocks it.
  void run();

  // REQUIRES for these: the mutex is held.

  // Adds an errand.  It comes as the node of a list, so this allocates nothing.
  // The caller wakes the sender.
  void enqueue(Errands&& node) { queued_.splice(queued_.end(), node); }
  // Whether the sender will send nothing any more.
  bool has_ended() const { return ended_; }

 private:
  using Flights = std::list<Flight>;

  void send_round();
  Errands begin_round();
  BootTime plan_sleep();
  void pause_for_memory();
  void end_all();

  // Requests begin.
  void begin_errands(Errands&& errands);
  bool begin_next();
  bool stamp_next(Flight& flight, Request& request);
  void postpone(const Flight* flight);

  // Requests end.
  void await_any(BootTime until);
  void conclude_all();
  void conclude(Flight& flight, bool call_leaves);
  void answer_errand(Errand& errand, dynamodb::Answer&& answer);

  // REQUIRES for all that follow: the mutex is held.

  Lines::Due line_up_next(BootTime now);
  void line_up(BootTime now);
  bool may_begin(const Hold& hold, const Flight& flight, BootTime now) const;
  void end_unsent(Hold& hold);
  void retry_with_memory(Hold& hold);
  void abandon(Hold& hold);
  static sigv4::BellPtr tell_take(Hold& hold);

  // An answer has come.
  sigv4::BellPtr on_take(Hold& hold, bool call_leaves);
  sigv4::BellPtr retry_take(Hold& hold);
  void on_renewal(Hold& hold, BootTime stamped_at);
  void retry_renewal(Hold& hold);
  void on_release(Hold& hold, BootTime stamped_at);
  static void tell_release_failed(Hold& hold);
  static void end_release(Hold& hold);

  Holds& holds_;
  Flights flights_;  // Used only by the sender's thread.
  // GUARDED_BY(Holds::mutex)
  Errands queued_;
  bool ended_ = false;  // Written only by the sender's thread.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SENDER_HPP
