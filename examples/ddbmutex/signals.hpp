// The signals that this program takes as events: those it hands on, those of
// job control, and the end of a child.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_SIGNALS_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_SIGNALS_HPP

#include <signal.h>

namespace command {

class Signals {
 public:
  // Blocks them, for this thread and those that it starts.  Those that are
  // ignored, as by nohup, stay so.  Throws std::system_error.
  Signals();
  // They stay blocked: one that comes when all is done changes nothing.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }  // Readable: there is one.
  int next() const;               // 0: none.  Does not wait.

  // That asks for the end: INT, QUIT, TERM, HUP.
  static bool ends(int signal);

  // In a child, for the command: all is as it was before.  Safe after a fork.
  void restore() const;

  // Whether a terminal's signal could stop this program.  None does if no shell
  // of its session could continue it.
  static bool can_stop();

  // Does what the signal does to a program that does not know it: stops this
  // one, or ends it.  Returns true once it was continued, and false where the
  // signal does nothing: see can_stop().
  static bool suffer(int signal);

 private:
  int fd_ = -1;
  sigset_t before_;
  const bool ignored_children_;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_SIGNALS_HPP
