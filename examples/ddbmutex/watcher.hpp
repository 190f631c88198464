// A small process that ends a process group in time, whatever becomes of the
// program that started it: stopped, killed, or hanging.
//
// It is in a session of its own and has all signals blocked, so that only KILL
// and STOP, sent to itself, can keep it from its work, STOP while the program
// lives.  Its name is another one than the program's, for those who kill by
// names.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_WATCHER_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_WATCHER_HPP

#include <sys/types.h>

#include "examples/ddbmutex/deadline.hpp"

namespace command {

class Watcher {
 public:
  enum class News {
    none,
    term,  // It is about to send TERM, or
    kill,  // KILL.
    gone,  // It was killed itself.
  };

  // Starts it, with its first order: it has that even if this program is
  // stopped at once.  Threads may run.  Throws std::system_error.
  explicit Watcher(pid_t group = 0, const Deadline& deadline = {});
  // Ends it.  What it watches then is killed.
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  pid_t pid() const { return pid_; }
  // TERM and then KILL to `group` at these times, if no other order comes
  // before; KILL at once if this program ends.  After TERM, KILL can only be
  // brought forward.  False if it does not take the order: it was stopped, and
  // has many to read.
  bool order(pid_t group, const Deadline& deadline) const;
  // Nothing is watched any more.
  void dismiss() const;

  int fd() const { return fd_; }  // Readable: there is news.
  News read_news() const;         // Does not wait.

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_WATCHER_HPP
