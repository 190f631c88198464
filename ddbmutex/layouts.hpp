// How other programs write their locks, so that a table can be shared with
// them: as they know it, a lock of ours is one of theirs.
//
//   place.layout = find_layout(table_options);  // Null: not in this build.
//   suit(place.use, options, table_options);
//
// A layout is a row of a table in layouts.cpp: which attribute plays which part
// of the record, in what type and unit, and so which conditions hold for a lock
// that is free, over, stale or ours.  There are two families:
//
//   lockclient, lease     The row says when the lease ends, by the calendar of
//                         whoever wrote it.
//   dynamolock, awslabs   The row says how long the lease is, and has a version
//                         that is new with each renewal: whoever has seen it
//                         unchanged for so long may take the lock.
//
// A part that may be left out: then there is `ddblock` alone, and for programs
// of ours alone.
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_LAYOUTS_HPP
#define DDBMUTEX_LAYOUTS_HPP

#include <optional>

#include "../ddbmutex.hpp"
#include "failure.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

#ifdef DDBMUTEX_NO_LAYOUTS

inline const lock::Layout* find_layout(const TableOptions& table) {
  return table.layout == Layout::ddblock ? &lock::kDdblock : nullptr;
}
inline void set_layout(lock::Place&, const TableOptions&) {}
inline void suit(TableOptions&) {}
inline Failure check_layout(const TableOptions& table) {
  constexpr const char* kNo = "not in this build";
  return check_all({{"calendar_margin", table.calendar_margin ? kNo : ""},
                    {"lease_as_found", table.lease_as_found ? kNo : ""}});
}
inline bool keeps_rows(std::optional<bool> keep_row, const TableOptions&) {
  return keep_row.value_or(false);
}
inline Failure check_shared(const Options&, const TableOptions&) {
  return nullptr;
}
inline void suit(lock::RowUse&, const Options&, const TableOptions&) {}

#else

const lock::Layout* find_layout(const TableOptions& table);
inline void set_layout(lock::Place& place, const TableOptions& table) {
  place.layout = find_layout(table);
}
// What the layout has in the place of defaults that are ddblock's.
void suit(TableOptions& table);
Failure check_layout(const TableOptions& table);

// Whether a release leaves the row, by Options::keep_row.
bool keeps_rows(std::optional<bool> keep_row, const TableOptions& table);
// What there cannot be in a layout that others share.
Failure check_shared(const Options& options, const TableOptions& table);
// What of the use of rows is as in ddblock, to what the layout has.
void suit(lock::RowUse& use, const Options& options, const TableOptions& table);

#endif

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LAYOUTS_HPP
