// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The sender: the thread of a table that sends all requests.  It takes, renews
// and releases locks, sends what other calls wait for, and finishes what
// callers abandoned.
//
// Limits, besides those of lines.hpp:
// - 16 abandoned takes are awaited.  The request of one more is ended at once,
//   and it is released without an answer.
// - 1,000 releases wait.  Beyond that, an abandoned take is not released.
// - Nothing is sent after its deadline.
#ifndef DDBMUTEX_SENDER_HPP
#define DDBMUTEX_SENDER_HPP

#include <atomic>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/thread.hpp"
#include "../dynamodb/client.hpp"
#include "hold.hpp"
#include "holds.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// A call that waits for the answer to a request that is sent as it is.  It is
// shared, because the call may leave while the request is in flight.
struct Errand {
  Errand(dynamodb::PlainRequest&& its_request, const sigv4::CallWaker& waker)
      : request(std::move(its_request)), bell(waker.bell()) {}

  bool is_over() const { return pending == nullptr || !pending->under_way(); }

  const dynamodb::PlainRequest request;
  // GUARDED_BY(Holds::mutex).  Null: the call has left, or was told.
  sigv4::BellPtr bell;
  std::atomic<bool> over{false};
  dynamodb::Answer answer{};  // Set before it is over.
  // Used only by the sender.
  std::unique_ptr<dynamodb::Client::Pending> pending{};
};
using Errands = std::list<std::shared_ptr<Errand>>;

class Sender {
 public:
  explicit Sender(Holds& holds) : holds_(holds) {}

  // The thread's main function.  Returns once the table is destroyed or exit()
  // was called, and each abandoned request was tried once more.  libcurl may
  // block it.
  void run();

  // For these the mutex is held.
  //
  // Sends the one request of the list.  The caller wakes the sender.
  void ask(Errands& one) { asked_.splice(asked_.end(), one); }
  // run() returns and sends nothing any more.
  bool has_ended() const { return ended_; }

 private:
  enum class Begun { yes, not_wanted, no_memory };  // From good to bad.

  bool send_round();
  void pause_for_memory();
  void end_all();

  // For these the mutex is held.
  bool collect(BootTime& next);
  bool look_at_flights(BootTime now);
  void line_up(BootTime now);
  void choose(BootTime now, BootTime& next);
  bool may_begin(Hold& hold, const Flight& flight, BootTime now);
  void refuse(Hold& hold);
  void abandon(Hold& hold);
  static sigv4::BellPtr give_back(Hold& hold);

  Begun begin_all();
  void leave_renewal(const HoldPtr& hold);
  Begun begin(Hold& hold);
  bool stamp(Hold& hold, Flight& flight, Request& request);
  void unstamp(Hold& hold, const Flight& flight);
  void retry_with_memory(Hold& hold);
  void begin_errands();
  void await_any(BootTime until);
  void conclude_all();
  void forget_ended();
  void conclude(Hold& hold, bool given_up);
  void conclude_errands();
  void end_errand(Errand& errand, sigv4::Transport why);

  // What an answer means.  For these the mutex is held.
  sigv4::BellPtr taken(Hold& hold, bool given_up);
  void renewed(Hold& hold);
  void retry_renewal(Hold& hold);
  void released(Hold& hold, BootTime stamped_at);
  void tell_of_release(Hold& hold, bool for_good);

  Holds& holds_;
  // All used only by the sender's thread.
  std::vector<HoldPtr> chosen_;     // Their requests are to begin.
  std::vector<HoldPtr> in_flight_;  // Their requests are in flight.
  // Renewals in flight of locks that were unlocked meanwhile.
  std::vector<Flight> left_;
  Errands errands_;
  // GUARDED_BY(Holds::mutex)
  Errands asked_;
  bool ended_ = false;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SENDER_HPP
