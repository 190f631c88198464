// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The terminal that a program may use to ask a person for a password.
//
// The kernel lets only the foreground process group use a terminal, and stops
// any other process that tries.
//   * If our group is in the foreground, the program stays in it (so in
//     botocore).  The terminal is not handed over to a new group: our own
//     threads may use it meanwhile, and nothing has to be restored if we are
//     killed.  Ctrl-C and Ctrl-Z reach both.
//   * Otherwise the program gets a group of its own and no input.  In our
//     group, the kernel would stop us too.
//
// Thread safety: any thread may use a Terminal of its own.
#ifndef DDBMUTEX_SIGV4_TERMINAL_HPP
#define DDBMUTEX_SIGV4_TERMINAL_HPP

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr const char* kTerminal = "/dev/tty";

// This process's terminal, for as long as one program may use it.
class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // Whether this process was in the foreground there.
  bool is_ours() const { return is_ours_; }
  // Turns the echo on again, which a program leaves off if it is ended while it
  // reads a password.  Happens once no program of another thread is reading
  // one.
  void restore() const;

 private:
  struct Use;

  static Use& use_by_process();
  bool in_foreground() const;

  Use& use_ = use_by_process();  // First: it may throw.
  const int fd_;
  bool is_ours_ = false;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_TERMINAL_HPP
