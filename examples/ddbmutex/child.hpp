// The command that runs under the lock: a child in a process group of its own.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_CHILD_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_CHILD_HPP

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "examples/ddbmutex/signals.hpp"

namespace command {

// How a command ended.
struct Ending {
  int signal = 0;  // The one that ended it; 0: it exited, with `status`.
  int status = 0;

  // As a shell sees it.
  int exit_status() const { return signal != 0 ? 128 + signal : status; }
};

class Child {
 public:
  using Words = std::vector<std::string>;

  // Forks a child that becomes the command at go(), and never if this program
  // ends before that.  The command gets the signals as this program found them,
  // and of our open files only `files`, in ascending order.  Variables of
  // systemd that name this process are changed to name the command's.  Other
  // threads may be running.  Throws std::system_error.  REQUIRES: all calls are
  // made by the thread that runs main().
  Child(const Words& command, Words environment, const Signals& signals,
        const std::vector<int>& files);
  ~Child();  // A command that does not run yet never does.
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  pid_t group() const { return pid_; }
  // Runs the command.  Returns 0, or the errno that says why it cannot be run.
  int go();

  void signal(int number) const;  // To all of the group, and to the command.

  // Looks at what has ended, and reaps all of it except the command, whose
  // process id nobody else may get yet (see bury()), and except `watcher`.
  // Returns the signal that has stopped the command since the last call; 0 if
  // none has, or if the command goes on again.
  int reap(pid_t watcher);
  // Reaps what the command and its descendants have left, of any group.
  void reap_orphans(pid_t watcher) const;
  // Nothing while the command runs.
  const std::optional<Ending>& ending() const { return ending_; }
  // The last reap() found that the command has ended, and so has all that it
  // left in its group.
  bool is_gone() const { return is_gone_; }
  // Reaps the command.  REQUIRES: it has ended, and nobody will signal it or
  // its group any more.
  void bury();

 private:
  int look_at_command();
  void reap_hidden_orphans(pid_t watcher) const;

  pid_t pid_ = -1;
  int gate_ = -1;  // Our end of the socket where the child waits for go().
  std::optional<Ending> ending_;
  bool is_gone_ = false;
  bool is_buried_ = false;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_CHILD_HPP
