// What to do where memory runs out amid a call that must not fail for it.
//
//   if (!try_with_memory([&] { log(describe(lock)); })) ...  // Not logged.
#ifndef DDBMUTEX_SIGV4_MEMORY_HPP
#define DDBMUTEX_SIGV4_MEMORY_HPP

#include <cstdlib>
#include <new>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Calls it.  Returns false if the call ended early because an allocation
// failed. (Where the library is compiled without exceptions, a failed
// allocation ends the process.)
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

// Where a C library has had no memory, or a call is to end as if it had not.
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
