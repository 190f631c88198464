// The command that runs under the lock: a child in a process group of its own.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_CHILD_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_CHILD_HPP

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "examples/ddbmutex/signals.hpp"

namespace command {

class Child {
 public:
  using Words = std::vector<std::string>;

  // Forks, and waits: the command does not run before go(), and never if this
  // program ends before that.  It has the signals as they were before, and no
  // other files than these of ours, in order.  Threads may run.  Throws
  // std::system_error.
  Child(const Words& command, const Words& environment, const Signals& signals,
        const std::vector<int>& files);
  ~Child();  // If it does not run yet, it never does.
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t group() const { return pid_; }
  // Has the command run; returns the errno for which it cannot, or 0.
  int go();

  void signal(int number) const;  // To all of the group.

  // Reaps what has ended, and tells the last signal by which the command was
  // stopped since; 0: by none.  REQUIRES: is_gone() is false.
  int reap(pid_t but);
  // As waitpid() has it, once the command has ended.
  const std::optional<int>& status() const { return status_; }
  // The command has ended, and so has all that it left in its group.
  bool is_gone() const;

 private:
  void reap_group(int& stopped_by);
  void reap_strangers(pid_t but) const;

  pid_t pid_ = -1;
  int gate_ = -1;
  std::optional<int> status_;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_CHILD_HPP
