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

#include <semaphore.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "tests/support/mutex_kit.hpp"

namespace tests {

inline std::set<pid_t> threads_by_id() {
  std::set<pid_t> all;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    all.insert(std::stoi(entry.path().filename()));
  }
  return all;
}

#ifdef SYS_poll
constexpr long kPoll = SYS_poll;
#else  // Not every architecture has it.
constexpr long kPoll = SYS_ppoll;
#endif

inline std::string thread_name(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

// The thread of that name, of those that there were not before; usually the one
// that sends a table's renewals.  Waits until it rests in poll(2).
inline pid_t polling_thread(const std::set<pid_t>& before,
                            const std::string& name = "ddbmutex-sender") {
  pid_t polling = 0;
  BOOST_TEST_REQUIRE(eventually([&] {
    for (const pid_t thread : threads_by_id()) {
      const std::string id = std::to_string(thread);
      if (before.count(thread) != 0 || thread_name(id) != name) continue;
      std::ifstream file("/proc/self/task/" + id + "/syscall");
      long number = -1;
      file >> number;
      if (number == kPoll || number == SYS_ppoll) polling = thread;
    }
    return polling != 0;
  }));
  return polling;
}

class HeldThread {
 public:
  explicit HeldThread(pid_t thread) {
    sem_init(&held(), 0, 0);
    sem_init(&go_on(), 0, 0);
    struct sigaction action = {};
    action.sa_handler = [](int) {
      const int saved = errno;
      sem_post(&held());
      while (sem_wait(&go_on()) != 0) {
      }
      errno = saved;
    };
    sigaction(SIGTRAP, &action, &old_);
    BOOST_TEST_REQUIRE(syscall(SYS_tgkill, getpid(), thread, SIGTRAP) == 0);
    while (sem_wait(&held()) != 0) {
    }
  }
  ~HeldThread() { let_go(); }
  HeldThread(const HeldThread&) = delete;
  HeldThread& operator=(const HeldThread&) = delete;

  void let_go() {
    if (!holds_) return;
    holds_ = false;
    sem_post(&go_on());
    sigaction(SIGTRAP, &old_, nullptr);
  }

 private:
  static sem_t& held() {
    static sem_t semaphore;
    return semaphore;
  }
  static sem_t& go_on() {
    static sem_t semaphore;
    return semaphore;
  }

  struct sigaction old_ = {};
  bool holds_ = true;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_HELD_THREAD_HPP
