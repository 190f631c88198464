// The process group of a command, as its parent and the watcher see it.  All of
// this is safe after a fork.
//
// The parent leaves a command that has ended as a zombie: nobody else can then
// get its process id, which is the id of its group too, while the watcher may
// still signal them.  But a group takes signals even if only a zombie is left
// in it, so kill() does not say whether any of it lives; /proc does.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_GROUP_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_GROUP_HPP

#include <sys/types.h>

#include <cstddef>

namespace command {

// Signals all processes of the command's group, and the command itself if it
// has moved to another group.
void signal_all(pid_t command, int number);

// All threads of the process have ended, whether it was reaped or not.
bool has_ended(pid_t pid);

// The processes that /proc shows.
//
//   Processes all;
//   while (const pid_t pid = all.next()) ...
class Processes {
 public:
  Processes();
  ~Processes();
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;

  // False if /proc is not mounted, is that of another namespace, or hides the
  // processes of other users.
  bool are_all() const { return fd_ >= 0; }
  pid_t next();  // 0: there are no more.

 private:
  int fd_ = -1;
  std::size_t at_ = 0, size_ = 0;
  char entries_[4096];
};

enum class Left { none, some, unknown };
// Whether any process of the command's group lives, apart from the command.
Left left_in_group_of(pid_t command);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_GROUP_HPP
