// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The items of a table, page by page, as Scan and Query return them.
//
//   Items items(context, selection);
//   while (const Item* item = items.next()) show(*item);
//
// Thread safety: one thread at a time may use an Items.
#ifndef DDBMUTEX_PAGES_HPP
#define DDBMUTEX_PAGES_HPP

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "../ddbmutex/dynamodb/ask.hpp"
#include "../ddbmutex/dynamodb/item.hpp"
#include "../sigv4/boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// The most values in all items of a page, members included.  Limits the memory
// of a parsed page.
constexpr std::size_t kMostValuesInPage = 5 * kMostOthers;

// The Reader of Scan and Query.  A page with more values is `too_large`.
void read_page(Value body, const Wanted& wanted, Answer& answer);

// Which items of a table to read.
struct Selection {
  std::string_view table;
  // The attributes to read, each once; those of the key come first.
  std::vector<std::string> attributes;
  std::string prefix{};    // What the key of an item begins with.
  bool exact_key = false;  // It is the whole key: a Query instead of a Scan.
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

#endif  // DDBMUTEX_PAGES_HPP
