// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#ifndef DDBMUTEX_NO_PROFILES
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
#include <system_error>
#include <utility>
#include <vector>

#include "../secret.hpp"
#include "../text.hpp"
#include "from_json.hpp"

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

// --- Starting ----------------------------------------------------------------

// As exec(3) takes them.  `words`: each with a NUL behind it.
std::vector<char*> pointers_to(std::string& words) {
  const auto count = std::count(words.begin(), words.end(), '\0');
  std::vector<char*> pointers(static_cast<std::size_t>(count));
  char* next = words.data();
  for (char*& pointer : pointers) {
    pointer = next;
    next += strlen(next) + 1;
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The environment of the program if this process ignores its own.
std::string safe_environment() {
  constexpr std::string_view kNul{"\0", 1};
  const std::string home = process_environment("HOME");
  std::string variables = join({"PATH=/usr/bin:/bin", kNul});
  if (!home.empty()) append(variables, {"HOME=", home, kNul});
  return variables;
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

struct Start {
  char* const* arguments;
  char* const* variables;
  int output;      // Becomes its stdout.
  int complaints;  // Becomes its stderr.
};

// The default action for every signal, and none of them blocked.
void set_attributes(posix_spawnattr_t& attributes) {
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
}

// Returns an errno.  A pipe's end is above 2 (Pipe::open()), so no step closes
// what a later one needs.
int set_descriptors(posix_spawn_file_actions_t& actions, const Start& start) {
  int error = posix_spawn_file_actions_adddup2(&actions, start.output, 1);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, start.complaints, 2);
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
  return error;
}

// Returns an errno, 0 if it runs.
int spawn(const Start& start, pid_t& pid) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  set_attributes(attributes);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  int error = set_descriptors(actions, start);
  if (error == 0) {
    error = posix_spawnp(&pid, start.arguments[0], &actions, &attributes,
                         start.arguments, start.variables);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

}  // namespace

Program::Program()
    : output_(kMaxJsonBytes + 1, Pipe::Keeps::beginning),
      complaints_(kMostComplaints, Pipe::Keeps::end) {}

Program::Failure Program::start(std::string& words, std::string settings) {
  if (ignores_environment()) settings = safe_environment();
  // These may throw, so they come before the descriptors are opened.
  const std::vector<char*> arguments = pointers_to(words);
  const std::vector<char*> variables = variables_with(settings);
  const int output = output_.open();
  const int complaints = output < 0 ? -1 : complaints_.open();
  int error = complaints < 0 ? errno : 0;
  if (error == 0) {
    error =
        spawn({arguments.data(), variables.data(), output, complaints}, pid_);
  }
  if (output >= 0) close(output);
  if (complaints >= 0) close(complaints);
  if (error == 0) {
    state_ = State::running;
    return {};
  }
  const bool transient = error == EAGAIN || error == ENOMEM ||
                         error == EMFILE || error == ENFILE || error == ETXTBSY;
  return {join({"the program cannot be started: ",
                std::generic_category().message(error)}),
          !transient, error == ENOENT};
}

// --- Reading -----------------------------------------------------------------

Pipe::~Pipe() {
  if (fd_ >= 0) close(fd_);
  wipe(text_);
}

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
  std::copy(text_.begin() + static_cast<std::ptrdiff_t>(dropped),
            text_.begin() + static_cast<std::ptrdiff_t>(size_), text_.begin());
  size_ -= dropped;
}

void Pipe::read_all() {
  while (fd_ >= 0 && (keeps_ == Keeps::end || !is_full())) {
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

// Leaves a zombie, so that its number is not reused.
bool Program::has_ended() {
  siginfo_t info = {};
  int result;
  do {
    result = waitid(P_PID, static_cast<id_t>(pid_), &info,
                    WEXITED | WNOHANG | WNOWAIT);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {  // ECHILD: it was reaped by somebody else.
    state_ = State::lost;
    return true;
  }
  if (info.si_pid != pid_) return false;
  state_ = info.si_code == CLD_EXITED ? State::exited : State::signaled;
  number_ = info.si_status;
  return true;
}

Program::Failure Program::why_to_give_up(const Fetch& fetch,
                                         BootTime began) const {
  const BootTime now = BootClock::now();
  if (now >= fetch.deadline) {
    return {join({"the program did not end in ",
                  Digits((now - began) / milliseconds(1)), " ms"})};
  }
  if (fetch.stop.woken()) {
    return {"given up, because nobody waits for it any more"};
  }
  if (output_.is_full()) return {"the program wrote more than 64 KiB", true};
  return {};
}

Program::Failure Program::wait(const Fetch& fetch) {
  const BootTime began = BootClock::now();
  milliseconds look = kFirstLook;
  for (;;) {
    const bool ended = has_ended();
    // After has_ended(), so that nothing it wrote is missed.
    output_.read_all();
    complaints_.read_all();
    if (ended) return verdict();
    Failure failure = why_to_give_up(fetch, began);
    if (!failure.reason.empty()) {
      end();
      return failure;
    }
    pollfd fds[] = {{output_.fd(), POLLIN, 0},
                    {complaints_.fd(), POLLIN, 0},
                    {fetch.stop.fd(), POLLIN, 0}};
    poll(fds, 3, static_cast<int>(look.count()));
    look = std::min(look * 2, kLongestLook);
  }
}

// REQUIRES: has_ended()
Program::Failure Program::verdict() {
  reap();
  if (output_.is_full()) return {"the program wrote more than 64 KiB", true};
  if (state_ == State::signaled) {
    return {join({"the program was ended by signal ", Digits(number_)})};
  }
  if (state_ == State::lost || number_ == 0) return {};
  // With 126 and 127 a shell says that a command cannot be executed or is not
  // found.
  return {join({"the program ended with exit status ", Digits(number_)}),
          number_ == 126 || number_ == 127, false, number_};
}

// --- Ending ------------------------------------------------------------------

Program::~Program() {
  if (state_ == State::running) end();
}

// REQUIRES: has_ended()
void Program::reap() {
  if (state_ == State::lost) return;
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void Program::end() {
  bool ended = has_ended();
  for (const auto& [signal, patience] :
       {std::pair(SIGTERM, kGrace), std::pair(SIGKILL, kKilledPatience)}) {
    if (ended) break;
    kill(pid_, signal);
    const BootTime until = BootClock::now() + patience;
    while (!(ended = has_ended()) && BootClock::now() < until) {
      poll(nullptr, 0, 2);
    }
  }
  if (ended) reap();
  state_ = State::lost;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
