// The row formats by name, so that tests can go through all of them.
#ifndef DDBMUTEX_TESTS_SUPPORT_LAYOUTS_HPP
#define DDBMUTEX_TESTS_SUPPORT_LAYOUTS_HPP

#include "ddbmutex.hpp"
#include "extras/layouts.hpp"

namespace tests {

enum class Layout { ddblock, lockclient, lease, dynamolock, awslabs };

inline const char* name_of(Layout layout) {
  constexpr const char* kNames[] = {"ddblock", "lockclient", "lease",
                                    "dynamolock", "awslabs"};
  return kNames[static_cast<int>(layout)];
}

// The attribute that is the key of their tables, as recorded.
inline const char* key_of(Layout layout) {
  return layout == Layout::ddblock ? "name"
         : layout == Layout::lease ? "LockHashKeyName"
                                   : "key";
}

// For TableOptions::rows.
inline const ddbmutex::lock::RowFormat* rows_of(Layout layout) {
  namespace layouts = ddbmutex::layouts;
  switch (layout) {
    case Layout::lockclient:
      return &layouts::lockclient;
    case Layout::lease:
      return &layouts::lease;
    case Layout::dynamolock:
      return &layouts::dynamolock;
    case Layout::awslabs:
      return &layouts::awslabs;
    default:
      return nullptr;
  }
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_LAYOUTS_HPP
