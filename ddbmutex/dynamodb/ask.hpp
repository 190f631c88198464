// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Calls whose request may be sent again unchanged after a transient fault:
// reads and changes of tables.  (A conditional write of a lock is made anew for
// each attempt; see lock/attempt.hpp.)
//
//   sigv4::Waker waker;
//   const CallContext context{client, budget,
//                             BootClock::now() + std::chrono::seconds(5),
//                             &waker};
//   const Answer answer = ask(context, Action::get_item, body);
//
//   Items items(context, selection);
//   while (const Item* item = items.next()) show(*item);
//
// Thread safety: any thread may call the functions.  One thread at a time may
// use an Items.
#ifndef DDBMUTEX_ASK_HPP
#define DDBMUTEX_ASK_HPP

#include <chrono>
#include <cstddef>
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

// How requests are sent, how long transient faults are retried, and what ends
// the wait earlier.
struct CallContext {
  Client& client;
  RetryBudget& budget;
  BootTime deadline;
  // Ends the wait when it is woken; it stays woken.  Null if the table is
  // closed; then the deadline must have passed, and nothing is sent.
  sigv4::Waker* waker;
  std::chrono::nanoseconds request_timeout = kTableRequestTimeout;
};

// Sends the request until its answer has no transient fault.  If the deadline
// passes first, the answer has the last transient fault, or timed_out if there
// was none.  If the waker is woken first, it has `cancelled`.  A page that is
// too large is not requested again, because it would be as large.
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

// The most values in all items of a page, members included.  Limits the memory
// of a parsed page.
constexpr std::size_t kMostValuesInPage = 5 * kMostOthers;

// The Reader of Scan and Query.  A page with more values is `too_large`.
void read_page(Value body, const Wanted& wanted, Answer& answer);

// Sets the fault and its message to `cancelled` or timed_out.
void give_up(Answer& answer, bool cancelled);

// Which items of a table to read.
struct Selection {
  std::string_view table;
  // The attributes to read, each once; those of the key come first.
  std::vector<std::string> attributes;
  // Scan reads the items whose key begins with this.  With `exact_key`, Query
  // reads those whose key equals it.
  std::string prefix{};
  bool exact_key = false;
  std::size_t key_attributes = 1;  // How many form the key: 1 or 2.
  // Checks first whether the table has that key, of strings, unless the client
  // knows.  In another table a Scan would find nothing, or the wrong items.
  bool checks_key = false;
  Wanted wanted{};
};

// Iterates over the selected items with consistent reads.  Holds one page in
// memory at a time.  The context's deadline applies to all pages together.
class Items {
 public:
  // `page_time` limits the time for one page with all its retries.  The
  // selection must outlive this object.
  Items(const CallContext& context, const Selection& selection,
        std::chrono::nanoseconds page_time = std::chrono::nanoseconds::max())
      : context_(context),
        deadline_(context.deadline),
        page_time_(page_time),
        selection_(selection) {}

  // The next item, valid until the next call.  Null after the last one, or if
  // the last answer has a fault.
  Item* next();
  // Whether the last item was too large, so that only its key was read.
  bool too_large() const { return keys_only_; }
  const Answer& answer() const { return page_; }
  // Whether less than request_timeout was left for the last page.
  bool cut_short() const { return cut_short_; }
  Client& client() const { return context_.client; }

 private:
  static constexpr int kMostItems = 200;

  void read_next_page();
  bool has_right_key();
  void ask_for_page();

  // How many items to request in a page.  Becomes less if a page is too large
  // for the client: a single item may need all that the client accepts.
  int limit_ = kMostItems;
  bool keys_only_ = false;  // The page contains only the key of one item.
  CallContext context_;     // Its deadline is that of one page.
  const BootTime deadline_;
  const std::chrono::nanoseconds page_time_;
  const Selection& selection_;
  Item start_{};  // The key at which the page begins; empty for the first one.
  bool is_last_ = false;  // No page follows this one.
  bool cut_short_ = false;
  Answer page_;
  std::size_t index_ = 0;  // Of the next item in the page.
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ASK_HPP
