// A program of ours that a test runs, and the lines they say to each other.
//
//   Process process({{"build/x/agent", "locks"}, clean_environment()});
//   process.channel().say("lock a");
//   process.channel().line();  // "true"
//
// What goes wrong throws std::runtime_error with what the program complained
// of.
#ifndef DDBMUTEX_TESTS_SUPPORT_PROCESS_HPP
#define DDBMUTEX_TESTS_SUPPORT_PROCESS_HPP

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/waiting.hpp"

namespace tests {

// One end of a stream socket, used by one thread.  Owns it.
class Channel {
 public:
  explicit Channel(int fd) : fd_(fd) {}
  Channel(Channel&& other) noexcept;
  ~Channel();
  Channel& operator=(const Channel&) = delete;

  void say(const std::string& line);
  // The next line, without its end.
  std::string line(std::chrono::nanoseconds within = kPlenty);
  // No more will be said: the other end reads an end of file.
  void hang_up();

 private:
  void receive(std::chrono::nanoseconds within);

  int fd_;
  std::string received_;
};

// Where forked children of a program call back: a socket in the file system.
class Reception {
 public:
  Reception();
  ~Reception();
  Reception(const Reception&) = delete;
  Reception& operator=(const Reception&) = delete;

  const std::string& path() const { return path_; }
  Channel accept();

 private:
  int fd_ = -1;
  std::string directory_;
  std::string path_;
};

// Our environment, NAME=VALUE each.
std::vector<std::string> whole_environment();
// The same without what it says of AWS and of our terminal and without other
// preloaded libraries.
std::vector<std::string> clean_environment();

// The program of this very build: tests/run says where that is.
std::string program_path(const std::string& name);

struct ProcessSettings {
  std::vector<std::string> command;
  std::vector<std::string> environment;
};

// Its stdin and stdout are one socket, its stderr is kept in memory.  Start it
// from a thread that outlives it: the kernel kills it when that one ends.
class Process {
 public:
  explicit Process(const ProcessSettings& settings);
  ~Process();  // Kills and reaps it if it still runs.
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  Channel& channel() { return *channel_; }
  void signal(int number) const;
  // Its exit status, or 128 and the signal's number, as a shell has it.
  int wait(std::chrono::nanoseconds within = kPlenty);
  bool has_ended();
  // Waits until it has been stopped by a signal.
  void wait_until_stopped() const;
  std::string complaints() const;

 private:
  int complaints_;
  std::optional<Channel> channel_;
  pid_t pid_ = -1;
  int status_ = -1;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PROCESS_HPP
