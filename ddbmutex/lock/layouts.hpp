// Layouts: how a lock's row looks as an item, and how each request that changes
// it looks as JSON.
//
//   row.problem = layout.read(item, row);
//   layout.renew(target, request, body);
//
// ddblock is ours (ddblock.cpp).  The others are those of other libraries
// (layouts.cpp), so that a table can be shared with their programs: they take a
// lock of ours for one of their own.
//
// Thread safety: layouts are constants.
#ifndef DDBMUTEX_LAYOUTS_HPP
#define DDBMUTEX_LAYOUTS_HPP

#include <string_view>

#include "../dynamodb/item.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

class RequestBody;

class Layout {
 public:
  // What a lock does unless its options say otherwise.
  struct Habits {
    bool tells_end = true;  // A row says when its lease ends.
    bool keeps_rows = false;
    bool must_exist = false;  // Nobody makes rows, and nobody deletes them.
    RowPolicy::Take take = RowPolicy::Take::usual;
  };

  // Reads an item that is there.  Returns what is not understood; if nothing,
  // "" and the kind of the row is set.
  virtual const char* read(const dynamodb::Item& item, Row& row) const = 0;

  // Each writes one kind of request: its item or update, and its condition.
  virtual void take(const RowTarget& target, const Request& request,
                    RequestBody& body) const = 0;
  virtual void renew(const RowTarget& target, const Request& request,
                     RequestBody& body) const = 0;
  virtual void release(const RowTarget& target, const Request& request,
                       RequestBody& body) const = 0;
  virtual void force(const RowTarget& target, const Request& request,
                     RequestBody& body) const = 0;
  virtual void check(const RowTarget& target, const Request& request,
                     RequestBody& body) const = 0;

  // The attribute that is called "#word" in expressions.
  std::string_view attribute(std::string_view word) const;

  // All attributes of a record, but for the key and `data`.
  const dynamodb::AttributeNames names;
  const Habits habits;

 protected:
  constexpr Layout(dynamodb::AttributeNames the_names, Habits the_habits)
      : names(the_names), habits(the_habits) {}
  ~Layout() = default;
};

// kDdblock is declared in row.hpp.  Without part "layouts" it is the only one.
extern const Layout& kLockclient;
extern const Layout& kLease;
extern const Layout& kDynamolock;
extern const Layout& kAwslabs;

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LAYOUTS_HPP
