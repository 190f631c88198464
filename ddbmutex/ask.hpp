// Calls that need not be made anew for every attempt: sent again after passing
// faults, which the protocol's own conditional writes must not be.
//
//   const Answer answer = ask(client, budget, Action::get_item, body,
//                             {BootClock::now() + std::chrono::seconds(5)});
//
//   read_all(client, budget, {"locks", "name", "job-"}, waiting,
//            [&](Item&& item) { return show(item); });
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_ASK_HPP
#define DDBMUTEX_ASK_HPP

#include <chrono>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/http.hpp"
#include "answer.hpp"
#include "client.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// How long to bear with passing faults, and who may end the wait.
struct Waiting {
  BootTime deadline;
  sigv4::Waker* waker = nullptr;  // May be null.  Not cleared.
  // For one request.
  std::chrono::nanoseconds request_time = std::chrono::seconds(10);
};

// Until an answer is no passing fault, or there is no time for another: the
// answer then tells the last passing fault, else timed_out or cancelled.  A
// page that is too large is not asked for again: it would be no shorter.
// `maybe_applied` (may be null): whether an attempt before the last may have
// been applied.
Answer ask(Client& client, RetryBudget& budget, Action action,
           const std::string& body, const Waiting& waiting,
           bool* maybe_applied = nullptr, Reader reader = nullptr);

// The Reader of Scan and Query.
void read_page(Value body, Answer& answer);

// Makes of `last` what to say where deadline or waker (woken) came first.
void give_up(Answer& last, bool woken);

// Items of a table that are to be read.
struct Selection {
  std::string_view table;
  std::string_view key_name;  // The partition key's.
  // All items whose key begins with this, by Scan; or whose key is this, by
  // Query.
  std::string prefix{};
  bool whole = false;
  // Names, each once; the others are not read.  None: all are.
  std::vector<std::string_view> attributes{};
};

// Calls `each` for all of them, consistently read, until it returns false; one
// page is in memory at a time.  The last answer, or the one that failed; its
// `items` are gone.  Each page has the time until the deadline anew: neither a
// large table nor a slow `each` is a fault.
Answer read_all(Client& client, RetryBudget& budget, const Selection& selection,
                const Waiting& waiting,
                const std::function<bool(Item&&)>& each);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ASK_HPP
