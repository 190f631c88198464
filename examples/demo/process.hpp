// Processes of ours, and a folder for the time that the demo runs.
#ifndef DDBMUTEX_EXAMPLES_DEMO_PROCESS_HPP
#define DDBMUTEX_EXAMPLES_DEMO_PROCESS_HPP

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace demo {

// An open file that is closed with this object.
class Fd {
 public:
  explicit Fd(int fd) : fd_(fd) {}
  ~Fd();
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

// No child inherits its ends but as one of its standard files.
class Pipe {
 public:
  Pipe() : Pipe(make()) {}
  const Fd out, in;  // What is written into `in` is read out of `out`.

 private:
  struct Ends {
    int out, in;
  };
  static Ends make();
  explicit Pipe(Ends ends) : out(ends.out), in(ends.in) {}
};

// A child.  It is in a process group of its own, so that a terminal's Ctrl-C
// does not reach it, and is killed with this object; the kernel kills it if we
// end in any other way.
class Process {
 public:
  // What becomes its standard input, output and error; -1: ours.
  struct Files {
    int in = -1;
    int out = -1;
    int error = -1;
  };
  Process(const std::vector<std::string>& command, const Files& files);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal);  // Not if it has ended.
  void stop();            // SIGSTOP, and waits until it has.
  // Its status as of waitpid(); nothing while it runs.
  std::optional<int> ended();

 private:
  void wait(int options);
  const pid_t pid_;
  std::optional<int> status_;
};

std::string described(int status);  // "ended with status 1"

// Deleted with all that is in it.
class Folder {
 public:
  Folder();
  ~Folder();
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string path(const std::string& file) const { return path_ + "/" + file; }

 private:
  std::string path_;
};

// SIGINT, SIGTERM and SIGHUP are remembered from now on.
void remember_signals();
int remembered_signal();  // 0: none so far.

// Thrown where the demo cannot go on because of one.
struct Interrupted {};
inline void stop_if_interrupted() {
  if (remembered_signal() != 0) throw Interrupted{};
}

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_PROCESS_HPP
