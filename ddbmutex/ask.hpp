// Calls that need not be made anew for every attempt: sent again after passing
// faults, which the protocol's own conditional writes must not be.
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

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/waiting.hpp"
#include "answer.hpp"
#include "client.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Through what to ask, how long to bear with passing faults, and who may end
// the wait.
struct Caller {
  Client& client;
  RetryBudget& budget;
  BootTime deadline;
  sigv4::Waker* waker;  // Not cleared.  Null only if the deadline is past.
  // For one request.
  std::chrono::nanoseconds request_time = std::chrono::seconds(10);
  // A deadline that may move, as that of a calendar does when it is set.  Asked
  // before each request and each wait.  Null: there is none but the above.
  std::function<BootTime()> moving_deadline{};

  BootTime deadline_now() const {
    return moving_deadline ? std::min(deadline, moving_deadline()) : deadline;
  }
};

// Until an answer is no passing fault, or there is no time for another: the
// answer then tells the last passing fault, else timed_out or cancelled.  A
// page that is too large is not requested again here: it would not be shorter.
// `maybe_applied` (may be null): whether an attempt before the last may have
// been applied.
Answer ask(const Caller& caller, Action action, std::string_view body,
           bool* maybe_applied = nullptr, Reader reader = nullptr,
           const Wanted& wanted = {});

// Values in all items of a page that are read: their memory is little beside
// that of an answer which has so many.
constexpr std::size_t kMostInPage = 5 * kMostOthers;

// The Reader of Scan and Query.  A page with more values is `too_large`.
void read_page(Value body, const Wanted& wanted, Answer& answer);

// Makes of `last` what to say where deadline or waker (woken) came first.
void give_up(Answer& last, bool woken);

// Items of a table that are to be read.
struct Selection {
  std::string_view table;
  // Names, each once, the key's first; the others are not read.
  std::vector<std::string> attributes;
  // All items whose key begins with this, by Scan; or whose key is this, by
  // Query.
  std::string prefix{};
  bool whole = false;
  std::size_t keys = 1;  // So many attributes are the key: 1 or 2.
  Wanted wanted{};
};

// All of them, consistently read, one after the other; a page is in memory at a
// time.  The caller's deadline is that of all pages together.
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

  // Good until the one after it is asked for.  Null: there is none, or the last
  // answer has a fault.
  Item* next();
  // Whether the last item was too large to be read: only its key is there.
  bool too_large() const { return keys_only_; }
  const Answer& answer() const { return page_; }  // The last.
  // When the last page was asked for, less than the time of a request was left.
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
