// Holds up one thread of this process, wherever it is, until it is let go: it
// waits in the handler of a signal.
//
//   const std::set<pid_t> before = threads_by_id();
//   mutex.lock();  // Starts threads.
//   HeldThread sender(polling_thread(before));
//   ...
//   sender.let_go();
//
// The signal is SIGTRAP, which the library's threads leave alone.  Only a
// thread that waits in a system call with no mutex held may be held up, or
// others would wait for it.  One at a time.
#ifndef DDBMUTEX_TESTS_SUPPORT_HELD_THREAD_HPP
#define DDBMUTEX_TESTS_SUPPORT_HELD_THREAD_HPP

#include <signal.h>
#include <sys/types.h>

#include <set>
#include <string>

namespace tests {

std::set<pid_t> threads_by_id();

// Of this process; `thread` is its ID.
std::string thread_name(const std::string& thread);

// The thread of that name, of those that there were not before; usually the one
// that sends a table's renewals.  Waits until it rests in poll(2).
pid_t polling_thread(const std::set<pid_t>& before,
                     const std::string& name = "ddbmutex-sender");

class HeldThread {
 public:
  explicit HeldThread(pid_t thread);
  ~HeldThread();
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  void let_go();

 private:
  struct sigaction old_ = {};
  bool holds_ = true;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_HELD_THREAD_HPP
