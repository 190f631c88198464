// The signals that this program handles as events: those that it passes on to
// the command, those of job control, and the end of a child.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_SIGNALS_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_SIGNALS_HPP

#include <signal.h>

namespace command {

class Signals {
 public:
  // Blocks them in this thread and those that it starts.  Signals that are
  // ignored, as by nohup, stay ignored.  Throws std::system_error.
  Signals();
  // They stay blocked: a signal that comes at the very end changes nothing.
  ~Signals();
  Signals(const Signals&) = delete;
  Signals& operator=(const Signals&) = delete;

  int fd() const { return fd_; }  // Readable: there is one.
  int next() const;               // 0: none.  Does not wait.

  // Asks for the end: INT, QUIT, TERM, HUP.
  static bool ends(int signal);

  // In a child: the command gets the signals as they were.  Safe after a fork.
  void restore() const;

  // Whether a signal of the terminal could stop this program.  None can if no
  // shell of its session could continue it.
  static bool can_stop();

  // Has the default action of the signal: it stops this program, or ends it.
  // Returns true once the program was continued, and false if the signal did
  // nothing: see can_stop().
  static bool suffer(int signal);

 private:
  int fd_ = -1;
  sigset_t before_;
  const bool ignored_children_;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_SIGNALS_HPP
