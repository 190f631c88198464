// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Calls whose request may be sent again unchanged after a transient fault:
// reads and changes of tables.  (A conditional write of a lock is made anew for
// each attempt; see lock/hold.hpp.)
//
//   sigv4::CallWaker waker;
//   const CallContext context{carrier, client, budget,
//                             BootClock::now() + std::chrono::seconds(5),
//                             &waker};
//   const Answer answer = ask(context, Action::get_item, body);
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_ASK_HPP
#define DDBMUTEX_ASK_HPP

#include <chrono>
#include <string>
#include <string_view>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/thread.hpp"
#include "answer.hpp"
#include "client.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// How requests are sent, how long transient faults are retried, and what ends
// the wait earlier.
struct CallContext {
  Carrier& carrier;
  Client& client;  // The carrier's.
  RetryBudget& budget;
  BootTime deadline;
  // Ends the wait when it is woken; it stays woken.  Null if the table is
  // closed; then the deadline must have passed, and nothing is sent.
  sigv4::CallWaker* waker;
  std::chrono::nanoseconds request_timeout = kTableRequestTimeout;
};

// Sends the request until its answer has no transient fault.  If the deadline
// passes first, the answer has the last transient fault, or timed_out if there
// was none.  If the waker is woken first, the fault is `cancelled`.  A page
// that is too large is not requested again, because it would be as large.
// `maybe_applied` (may be null) is set to whether an attempt before the last
// may have been applied.
Answer ask(const CallContext& context, Action action, std::string_view body,
           bool* maybe_applied = nullptr, Reader reader = nullptr,
           const Wanted& wanted = {});

// The answer has the table, or the fault no_table.
Answer describe_table(const CallContext& context, std::string_view table);

// If the answer is that the table's key is wrong, and nobody has found out yet
// which key it has, asks DescribeTable.  Puts that key into the answer's
// message and into the client's memory.  Leaves the answer as it is if that
// fails.
void explain_wrong_key(const CallContext& context, std::string_view table,
                       const std::string& key, const std::string& sort_key,
                       Answer& answer);

// A signature was refused because of its time.  That says nothing of the keys,
// so the call has timed out, with this text.
inline constexpr char kNoTimeToSignAgain[] =
    "the clock was wrong, and no time was left to sign again";

// Sets the fault `cancelled`, and its message.
void set_cancelled(Answer& answer);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ASK_HPP
