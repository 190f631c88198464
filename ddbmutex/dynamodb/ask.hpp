// Calls that may simply be sent again after transient faults, unlike the
// conditional writes of the protocol, which are made anew for every attempt.
//
//   const Caller caller{client, budget,
//                       BootClock::now() + std::chrono::seconds(5)};
//   const Answer answer = ask(caller, Action::get_item, body);
//
//   Items items(caller, selection);
//   while (const Item* item = items.next()) show(*item);
//
// Thread safety: any thread may call anything here; Items are of one thread.
#ifndef DDBMUTEX_ASK_HPP
#define DDBMUTEX_ASK_HPP

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/waiting.hpp"
#include "answer.hpp"
#include "client.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// How requests are sent, how long transient faults are retried, and who may end
// the wait.
struct Caller {
  Client& client;
  RetryBudget& budget;
  BootTime deadline;
  sigv4::Waker* waker;  // Not cleared.  Null only if the deadline is past.
  // For one request.
  std::chrono::nanoseconds request_time = std::chrono::seconds(10);
  // A deadline that may move, as one by the wall clock does when that is set.
  // Called before each request and each wait.  Null: `deadline` alone counts.
  std::function<BootTime()> moving_deadline{};

  BootTime deadline_now() const {
    return moving_deadline ? std::min(deadline, moving_deadline()) : deadline;
  }
};

// Sends the request until its answer has no transient fault or the time is up.
// Then the answer has the last transient fault, or timed_out if there was none,
// or cancelled.  A page that is too large is not requested again, because it
// would be as large.  `maybe_applied` (may be null): whether an attempt before
// the last may have been applied.
Answer ask(const Caller& caller, Action action, std::string_view body,
           bool* maybe_applied = nullptr, Reader reader = nullptr,
           const Wanted& wanted = {});

// The most values in all items of a page: they take little memory compared with
// an answer that has so many.
constexpr std::size_t kMostInPage = 5 * kMostOthers;

// The Reader of Scan and Query.  A page with more values is `too_large`.
void read_page(Value body, const Wanted& wanted, Answer& answer);

// Turns `last` into cancelled (`woken`) or timed_out.
void give_up(Answer& last, bool woken);

// Which items of a table to read.
struct Selection {
  std::string_view table;
  // Names, each once, the key's first; the others are not read.
  std::vector<std::string> attributes;
  // The items whose key begins with this are read by Scan; if `whole`, those
  // whose key is this, by Query.
  std::string prefix{};
  bool whole = false;
  std::size_t keys = 1;  // So many attributes are the key: 1 or 2.
  Wanted wanted{};
};

// Iterates over the selected items with consistent reads, one page in memory at
// a time.  The caller's deadline is that of all pages together.
class Items {
 public:
  // `page_time`: for each page, however often it has to be asked for.  The
  // selection must outlive this.
  Items(const Caller& caller, const Selection& selection,
        std::chrono::nanoseconds page_time = std::chrono::nanoseconds::max())
      : client(caller.client),
        caller_(caller),
        deadline_(caller.deadline),
        page_time_(page_time),
        selection_(selection) {}

  // Valid until the next call.  Null: there are no more, or the last answer has
  // a fault.
  Item* next();
  // Whether the last item was too large to be read: only its key is there.
  bool too_large() const { return keys_only_; }
  const Answer& answer() const { return page_; }  // The last.
  // Less than request_time was left when the last page was requested.
  bool cut_short() const { return cut_short_; }

  Client& client;

 private:
  static constexpr int kMostItems = 200;

  void turn();
  void ask_for_page();

  // How many items are requested in a page.  Fewer if such a page is too large
  // for the client: one item may need all that the client accepts.
  int limit_ = kMostItems;
  bool keys_only_ = false;  // The page is the key of one item.
  Caller caller_;           // For one page.
  const BootTime deadline_;
  const std::chrono::nanoseconds page_time_;
  const Selection& selection_;
  Item start_{};
  bool over_ = false;  // That is the last page.
  bool cut_short_ = false;
  Answer page_;
  std::size_t at_ = 0;
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ASK_HPP
