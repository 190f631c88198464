// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What to do when memory runs out in a call that must not fail.
//
//   if (!try_with_memory([&] { log(describe(lock)); })) ...  // Not logged.
#ifndef DDBMUTEX_SIGV4_MEMORY_HPP
#define DDBMUTEX_SIGV4_MEMORY_HPP

#include <cstdlib>
#include <new>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Makes the call.  Returns false if it ended early because an allocation
// failed.  (If the library is compiled without exceptions, a failed allocation
// ends the process.)
template <class Call>
bool try_with_memory(const Call& call) {
#ifdef __cpp_exceptions
  try {
    call();
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
#else
  call();
  return true;
#endif
}

// Ends the call like a failed allocation.
[[noreturn]] inline void no_memory() {
#ifdef __cpp_exceptions
  throw std::bad_alloc();
#else
  std::abort();
#endif
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_MEMORY_HPP
