// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The children of a process, their children and so on, as /proc shows them.
#ifndef DDBMUTEX_SIGV4_DESCENDANTS_HPP
#define DDBMUTEX_SIGV4_DESCENDANTS_HPP

#include <sys/types.h>

#include <vector>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

class Descendants {
 public:
  // Signals all descendants of `ancestor`, but not `ancestor` itself, which
  // must be the same each time.  Includes those found earlier, even if their
  // parent has ended since.
  void signal(pid_t ancestor, int signal);

 private:
  // A number may be reused once its process has ended, so a process is
  // identified by its start time too.
  struct Process {
    pid_t pid = 0;  // 0: there is no such process.
    pid_t parent = 0;
    unsigned long long started = 0;  // In clock ticks since boot.
  };

  static Process find(pid_t pid);
  static std::vector<Process> find_all();
  static bool is_same(const Process& a, const Process& b) {
    return a.pid == b.pid && a.started == b.started;
  }
  bool knows(pid_t pid) const;
  void update(pid_t ancestor);

  std::vector<Process> known_;  // Each once.
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_DESCENDANTS_HPP
