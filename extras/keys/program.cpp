// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// How a program is started, read and ended, in this order.
#include "program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "../../sigv4/keys/from_json.hpp"
#include "../../sigv4/secret.hpp"
#include "../../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;

namespace {

// How many bytes of its stderr are kept.
constexpr std::size_t kMostComplaints = 8192;
// From SIGTERM to SIGKILL.
constexpr milliseconds kGrace{200};
// A process that was killed ends at once, unless it waits for a device.
constexpr milliseconds kKilledPatience{1000};
// How often we look whether it has ended.  SIGCHLD is no use: the program that
// contains this library may handle or ignore it.
constexpr milliseconds kFirstLook{1};
constexpr milliseconds kLongestLook{20};
// More than a pipe holds, in reads of half of kMostComplaints.  A program that
// writes without end must not keep us from looking at the time.
constexpr int kMostReads = 64;

// --- Starting ----------------------------------------------------------------

// As exec(3) takes them.  `texts`: each with a NUL behind it.
std::vector<char*> pointers_to(std::string& texts) {
  std::vector<char*> pointers;
  char* const end = texts.data() + texts.size();
  for (char* next = texts.data(); next < end; next += strlen(next) + 1) {
    pointers.push_back(next);
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The environment of the program if this process ignores its own.
std::string safe_environment() {
  constexpr std::string_view kNul{"\0", 1};
  const std::string home = process_environment("HOME");
  return join({"PATH=/usr/bin:/bin", kNul, if_any("HOME=", home, kNul)});
}

// The settings, and the variables of this process that they do not replace.
std::vector<char*> variables_with(std::string& settings) {
  std::vector<char*> all = pointers_to(settings);
  if (ignores_environment()) return all;
  const std::vector<char*> own(all.begin(), all.end() - 1);
  all.pop_back();
  for (char** variable = environ; *variable != nullptr; ++variable) {
    std::string_view rest = *variable;
    const std::string name = join({sigv4::cut(rest, '='), "="});
    const auto replaces = [&](const char* setting) {
      return sigv4::begins_with(setting, name);
    };
    if (std::none_of(own.begin(), own.end(), replaces)) {
      all.push_back(*variable);
    }
  }
  all.push_back(nullptr);
  return all;
}

// Returns an errno, 0 if it runs.  `output` becomes its stdout, `complaints`
// its stderr.  Both are above 2, so no step closes what a later one needs.
int spawn(char* const* arguments, char* const* variables, int output,
          int complaints, pid_t& pid) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, complaints, 2);
  }
  if (error == 0 && isatty(0) != 1) {
    error =
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  }
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
  // Our own descriptors are closed by exec.  Those of the program that contains
  // this library may not be.
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  if (error == 0) {
    error = posix_spawnp(&pid, arguments[0], &actions, &attributes, arguments,
                         variables);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// --- Reading -----------------------------------------------------------------

// A pipe and what came through it, which is wiped because it may hold secrets.
class Pipe {
 public:
  enum class Keeps { beginning, end };
  Pipe(std::size_t most_bytes, Keeps keeps)
      : keeps_(keeps), text_(most_bytes, '\0') {}
  ~Pipe() {
    if (fd_ >= 0) close(fd_);
    wipe(text_);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // Returns the end to write to, a descriptor above 2; -1 and errno on failure.
  int open();
  // Reads what has arrived, without waiting.
  void read_all();
  int fd() const { return fd_; }
  bool is_full() const { return size_ == text_.size(); }
  std::string_view text() const {
    return std::string_view(text_).substr(0, size_);
  }

 private:
  void drop_first_half();

  const Keeps keeps_;
  int fd_ = -1;
  std::string text_;  // Large enough from the start: leaves no copies.
  std::size_t size_ = 0;
};

int Pipe::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fd_ = ends[0];
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  const int write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  const int error = errno;
  close(ends[1]);
  errno = error;
  return write_end;
}

// And the rest of the word at its end: a secret that was cut in the middle
// would not be recognised.
void Pipe::drop_first_half() {
  const std::size_t dropped =
      std::min(text_.find_first_of(" \n", size_ / 2), size_);
  text_.erase(0, dropped).resize(text_.size() + dropped);
  size_ -= dropped;
}

void Pipe::read_all() {
  for (int i = 0; i < kMostReads && fd_ >= 0; ++i) {
    if (is_full() && keeps_ == Keeps::beginning) return;
    if (is_full()) drop_first_half();
    const ssize_t got = read(fd_, &text_[size_], text_.size() - size_);
    if (got > 0) {
      size_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      close(std::exchange(fd_, -1));
    } else if (errno != EINTR) {
      return;
    }
  }
}

// --- From its start to its end -----------------------------------------------

class Program {
 public:
  Program() = default;
  ~Program();  // Ends it.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Returns an errno, 0 if it runs.
  int start(std::string& words, std::string& settings);
  // Returns when it has ended, or is to be ended.  REQUIRES: it was started.
  ProgramResult wait(const Fetch& fetch);

 private:
  bool has_ended();
  std::string why_to_give_up(const Fetch& fetch, BootTime began) const;
  void judge(ProgramResult& result) const;

  pid_t pid_ = -1;
  bool ended_ = true;  // Or it was not started.
  // As of waitpid(2).  Nothing if others have reaped it, or SIGCHLD is ignored.
  std::optional<int> status_{};
  Pipe output_{kMaxJsonBytes + 1, Pipe::Keeps::beginning};
  Pipe complaints_{kMostComplaints, Pipe::Keeps::end};
};

int Program::start(std::string& words, std::string& settings) {
  // These may throw, so they come before the descriptors are opened.
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> variables = variables_with(settings);
  const int output = output_.open();
  const int complaints = output < 0 ? -1 : complaints_.open();
  int error = complaints < 0 ? errno : 0;
  if (error == 0) {
    error = spawn(arguments.data(), variables.data(), output, complaints, pid_);
  }
  if (output >= 0) close(output);
  if (complaints >= 0) close(complaints);
  ended_ = error != 0;
  return error;
}

bool Program::has_ended() {
  if (ended_) return true;
  int status = 0;
  pid_t pid;
  do {
    pid = waitpid(pid_, &status, WNOHANG);
  } while (pid < 0 && errno == EINTR);
  ended_ = pid != 0;
  if (pid == pid_) status_ = status;
  return ended_;
}

std::string Program::why_to_give_up(const Fetch& fetch, BootTime began) const {
  const BootTime now = BootClock::now();
  if (now >= fetch.deadline) {
    return join({"the program did not end in ",
                 Digits((now - began) / milliseconds(1)), " ms"});
  }
  if (fetch.stop.woken()) {
    return "given up, because nobody waits for it any more";
  }
  return "";
}

ProgramResult Program::wait(const Fetch& fetch) {
  ProgramResult result;
  const BootTime began = BootClock::now();
  milliseconds look = kFirstLook;
  for (;;) {
    const bool ended = has_ended();
    // After has_ended(), so that nothing it wrote is missed.
    output_.read_all();
    complaints_.read_all();
    if (ended || output_.is_full()) break;
    result.failure = why_to_give_up(fetch, began);
    if (!result.failure.empty()) break;
    pollfd fds[] = {{output_.fd(), POLLIN, 0},
                    {complaints_.fd(), POLLIN, 0},
                    {fetch.stop.fd(), POLLIN, 0}};
    poll(fds, 3, static_cast<int>(look.count()));
    look = std::min(look * 2, kLongestLook);
  }
  if (result.failure.empty()) judge(result);
  result.output = output_.text();
  result.complaints = complaints_.text();
  return result;
}

void Program::judge(ProgramResult& result) const {
  if (output_.is_full()) {
    result.failure = "the program wrote more than 64 KiB";
    result.is_final = true;
  } else if (status_ && WIFSIGNALED(*status_)) {
    result.failure =
        join({"the program was ended by signal ", Digits(WTERMSIG(*status_))});
  } else if (status_ && WEXITSTATUS(*status_) != 0) {
    result.status = WEXITSTATUS(*status_);
    result.failure =
        join({"the program ended with exit status ", Digits(result.status)});
    // With these a shell says that a command cannot be executed or found.
    result.is_final = result.status == 126 || result.status == 127;
  }
}

Program::~Program() {
  for (const auto& [signal, patience] :
       {std::pair(SIGTERM, kGrace), std::pair(SIGKILL, kKilledPatience)}) {
    if (has_ended()) return;
    kill(pid_, signal);
    const BootTime until = BootClock::now() + patience;
    while (!has_ended() && BootClock::now() < until) poll(nullptr, 0, 2);
  }
}

}  // namespace

ProgramResult run_program(std::string words, std::string settings,
                          const Fetch& fetch) {
  if (ignores_environment()) settings = safe_environment();
  Program program;
  const int error = program.start(words, settings);
  if (error == 0) return program.wait(fetch);
  ProgramResult result;
  result.failure = join({"the program cannot be started: ",
                         std::generic_category().message(error)});
  result.is_final = error != EAGAIN && error != ENOMEM && error != EMFILE &&
                    error != ENFILE && error != ETXTBSY;
  result.not_found = error == ENOENT;
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
