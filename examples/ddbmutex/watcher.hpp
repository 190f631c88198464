// A small process that ends a command and its process group in time, whatever
// becomes of the program that started both: stopped, killed, or hanging.
//
// It is in a session of its own and blocks all signals, so only a KILL or a
// STOP that is sent to it can keep it from its work, and a STOP only while the
// program lives.  Its name differs from the program's, for those who kill by
// name.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_WATCHER_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_WATCHER_HPP

#include <sys/types.h>

#include "examples/ddbmutex/deadline.hpp"

namespace command {

class Watcher {
 public:
  enum class News {
    none,
    term,  // It is about to send TERM.
    kill,  // It is about to send KILL.
    over,  // There is nothing to end: the command and all of its group had
           // ended before the lease did.
    late,  // There is nothing to end, but that may have ended after the lease.
    gone,  // It was killed itself.
  };

  // Starts it with its first order, so that it has one even if this program is
  // stopped right then.  Other threads may be running.  Throws
  // std::system_error.
  explicit Watcher(pid_t command = 0, const Deadline& deadline = {});
  // Ends it.  It kills what it still watches: see dismiss().
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  pid_t pid() const { return pid_; }
  // Has it send TERM and then KILL at these times, unless another order comes
  // first, and KILL at once if this program ends.  After TERM, an order can
  // only bring KILL forward.  REQUIRES: the command is not reaped before the
  // watcher is dismissed.  False if the order cannot be sent: the watcher is
  // gone, or is stopped and has read none for long.
  bool order(pid_t command, const Deadline& deadline) const;
  // Ends it without any signal to what it watches.  No signal of the watcher's
  // can come after this.
  void dismiss();

  int fd() const { return fd_; }  // Readable: there is news.
  News read_news() const;         // Does not wait.

 private:
  int fd_ = -1;
  pid_t pid_ = -1;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_WATCHER_HPP
