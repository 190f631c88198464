// Which allocations can fail and are counted: all (DDBMUTEX_TESTS_FAIL_MALLOC),
// or only those of `operator new`.  A sanitizer has an allocator of its own:
// under one, and without glibc, malloc() cannot be replaced.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_REACH_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_REACH_HPP

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DDBMUTEX_TESTS_WITH_SANITIZER 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DDBMUTEX_TESTS_WITH_SANITIZER 1
#endif
#if defined(__GLIBC__) && !defined(DDBMUTEX_TESTS_WITH_SANITIZER)
#define DDBMUTEX_TESTS_FAIL_MALLOC 1
#endif

#endif  // DDBMUTEX_TESTS_ALLOCATIONS_REACH_HPP
