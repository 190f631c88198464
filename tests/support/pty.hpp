// A shell, or another program, in a pseudo-terminal, at which a test types.
//
//   Pty shell({"/bin/bash", "--norc", "-i"}, environment);
//   shell.type("echo $((1 + 1))\n");
//   shell.says("2\r\n");
//   shell.type(Pty::kCtrlC);
#ifndef DDBMUTEX_TESTS_SUPPORT_PTY_HPP
#define DDBMUTEX_TESTS_SUPPORT_PTY_HPP

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/support/waiting.hpp"

namespace tests {

class Pty {
 public:
  static constexpr const char* kCtrlC = "\x03";
  static constexpr const char* kCtrlZ = "\x1a";

  Pty(const std::vector<std::string>& command,
      const std::vector<std::string>& environment, int lines = 24,
      int columns = 80)
      : fd_(posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    const std::vector<char*> words = pointers(command);
    const std::vector<char*> variables = pointers(environment);
    if (fd_ < 0 || grantpt(fd_) != 0 || unlockpt(fd_) != 0) {
      throw std::runtime_error("no pseudo-terminal");
    }
    winsize size = {};
    size.ws_row = static_cast<unsigned short>(lines);
    size.ws_col = static_cast<unsigned short>(columns);
    ioctl(fd_, TIOCSWINSZ, &size);
    const std::string name = ptsname(fd_);
    pid_ = fork();
    if (pid_ == 0) become(name.c_str(), words.data(), variables.data());
    if (pid_ < 0) throw std::runtime_error("cannot fork");
  }
  // As when its window is closed.
  ~Pty() {
    close(fd_);
    if (pid_ < 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;

  void type(const std::string& keys) {
    if (write(fd_, keys.data(), keys.size()) < 0) {
      throw std::runtime_error("nobody reads the terminal");
    }
  }
  // Does it say that after what it was last seen to say, or in time?
  bool says(const std::string& text, std::chrono::seconds within = kPlenty) {
    const ddbmutex::BootTime end = ddbmutex::BootClock::now() + within;
    for (;;) {
      const auto at = text_.find(text, seen_);
      if (at != text_.npos) {
        seen_ = at + text.size();
        return true;
      }
      if (!read_more(end)) return false;
    }
  }
  // Waits until all have closed the terminal, and tells the exit status, or 128
  // and the signal's number; -1 if that takes too long.
  int end(std::chrono::seconds within = kPlenty) {
    const ddbmutex::BootTime end = ddbmutex::BootClock::now() + within;
    while (read_more(end)) continue;
    if (ddbmutex::BootClock::now() >= end) return -1;
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }
  // All that it has said.
  const std::string& text() const { return text_; }

 private:
  static std::vector<char*> pointers(const std::vector<std::string>& words) {
    std::vector<char*> all;
    for (const std::string& word : words) {
      all.push_back(const_cast<char*>(word.c_str()));
    }
    all.push_back(nullptr);
    return all;
  }

  // In the child: only calls that are safe after a fork.
  [[noreturn]] static void become(const char* terminal, char* const* command,
                                  char* const* environment) {
    setsid();
    const int fd = open(terminal, O_RDWR);
    ioctl(fd, TIOCSCTTY, 0);
    for (int standard = 0; standard <= 2; ++standard) dup2(fd, standard);
    if (fd > 2) close(fd);
    execve(command[0], command, environment);
    _exit(127);
  }

  bool read_more(ddbmutex::BootTime end) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        end - ddbmutex::BootClock::now());
    pollfd output = {fd_, POLLIN, 0};
    if (left.count() <= 0 ||
        poll(&output, 1, static_cast<int>(left.count())) <= 0) {
      return false;
    }
    std::array<char, 4096> bytes;
    const ssize_t count = read(fd_, bytes.data(), bytes.size());
    if (count > 0) text_.append(bytes.data(), static_cast<std::size_t>(count));
    return count > 0;
  }

  const int fd_;
  pid_t pid_ = -1;
  std::string text_;
  std::size_t seen_ = 0;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PTY_HPP
