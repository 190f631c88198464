// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Runs a program and reads what it writes, until it ends or is ended.
//
//   Program program;
//   Program::Failure failure = program.start(words, settings);
//   if (failure.reason.empty()) failure = program.wait(fetch);
//   if (failure.reason.empty()) use(program.output());
//
// The program is in our process group, so it may ask a person something on the
// terminal.  It gets our environment, the default action for every signal, and
// none of our descriptors but stdin, and that only if it is a terminal.  If
// this process ignores its environment (settings.hpp), the program gets PATH
// and HOME alone.
//
// If its time is up, or if nobody waits for it any more, the program gets
// SIGTERM, and soon after SIGKILL.  The processes that it has started get
// neither.
#ifndef DDBMUTEX_SIGV4_PROGRAM_HPP
#define DDBMUTEX_SIGV4_PROGRAM_HPP

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <string_view>

#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// A pipe and what came through it, which is wiped because it may hold secrets.
class Pipe {
 public:
  enum class Keeps { beginning, end };
  Pipe(std::size_t most_bytes, Keeps keeps)
      : keeps_(keeps), text_(most_bytes, '\0') {}
  ~Pipe();
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

class Program {
 public:
  struct Failure {
    std::string reason;      // Empty: there is none.
    bool final = false;      // Another attempt would fail again.
    bool not_found = false;  // There is no such program.
    int status = 0;          // With which it exited.
  };

  Program();
  ~Program();  // Ends it.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  // Both: texts, each with a NUL behind it.  `words`: the command.  `settings`:
  // variables ("NAME=VALUE") that replace those of our environment.
  Failure start(std::string& words, std::string settings);
  // Returns when the program has ended, even if another process still has its
  // stdout open.  REQUIRES: it was started.
  Failure wait(const Fetch& fetch);
  std::string_view output() const { return output_.text(); }
  // The end of its stderr.
  std::string_view complaints() const { return complaints_.text(); }

 private:
  enum class State {
    not_started,
    running,
    exited,    // With `number_` as its status.
    signaled,  // By the signal `number_`.
    // Nobody knows how it ended: others reap it, SIGCHLD is ignored, or it was
    // given up.
    lost,
  };

  bool has_ended();
  Failure why_to_give_up(const Fetch& fetch, BootTime began) const;
  Failure verdict();
  void reap();
  void end();

  State state_ = State::not_started;
  pid_t pid_ = -1;
  int number_ = 0;
  Pipe output_;
  Pipe complaints_;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROGRAM_HPP
