// What a program must do that forks while it has threads, and whose children
// start threads, so that it can run under the sanitizers too, and leaves no
// child behind that hangs.
#ifndef DDBMUTEX_TESTS_SUPPORT_FORKED_CHILD_HPP
#define DDBMUTEX_TESTS_SUPPORT_FORKED_CHILD_HPP

#include <pthread.h>
#include <unistd.h>

#include <cstddef>

namespace tests {

inline bool is_forked_child = false;

}  // namespace tests

// ThreadSanitizer takes such children for a mistake, unless told otherwise.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() { return "die_after_fork=0"; }

// What only the parent's other threads knew of is lost in a child, and no leak.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return tests::is_forked_child; }

namespace tests {

// Longer than any child lives that is well; then it is killed.
constexpr unsigned kChildSeconds = 60;

// Call it in the child.  ThreadSanitizer goes on believing in the parent's
// threads, and knows a thread by the address of its stack, which the C library
// gives to the next thread of the child.  Not to one that wants a larger one.
inline void begin_as_child() {
  is_forked_child = true;
  alarm(kChildSeconds);
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define DDBMUTEX_TESTS_WITH_TSAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__) || defined(DDBMUTEX_TESTS_WITH_TSAN)
  pthread_attr_t attributes;
  std::size_t size = 0;
  pthread_getattr_default_np(&attributes);
  pthread_attr_getstacksize(&attributes, &size);
  pthread_attr_setstacksize(&attributes, size + (1 << 20));
  pthread_setattr_default_np(&attributes);
  pthread_attr_destroy(&attributes);
#endif
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_FORKED_CHILD_HPP
