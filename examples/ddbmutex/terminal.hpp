// The terminal, if there is one, and which group may read from it now.
//
// Our own group keeps it, and hands on the signals of its keys, until the
// command asks for it: so a pipe to a pager works, and a command that is a
// pager.  REQUIRES: SIGTTOU is blocked.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_TERMINAL_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_TERMINAL_HPP

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace command {

// Lines on this terminal can be written anew.
inline bool can_redraw(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) != 0 && term != nullptr && *term != '\0' &&
         std::strcmp(term, "dumb") != 0;
}

class Terminal {
 public:
  Terminal() : fd_(open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)) {}
  ~Terminal() {
    if (exists()) close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool exists() const { return fd_ >= 0; }
  // False if it was not ours to give.
  bool give_to(pid_t group) const { return pass(getpgrp(), group); }
  // False if the group did not have it.
  bool take_from(pid_t group) const { return pass(group, getpgrp()); }

 private:
  bool pass(pid_t from, pid_t to) const {
    return exists() && tcgetpgrp(fd_) == from && tcsetpgrp(fd_, to) == 0;
  }

  const int fd_;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_TERMINAL_HPP
