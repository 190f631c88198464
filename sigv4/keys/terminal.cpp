// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#ifndef DDBMUTEX_NO_PROFILES
// Several threads may each run a program at the terminal.  The first one saves
// the terminal's modes, and the last one restores them if need be.
#include "terminal.hpp"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "../process.hpp"
#include "../system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct Terminal::Use {
  Mutex mutex;
  // All below: GUARDED_BY(mutex)
  int programs = 0;    // Of this process, which use the terminal now.
  termios modes = {};  // Before the first of them.
  bool to_restore = false;
};

// Never destroyed, because other threads may still run when this process exits.
Terminal::Use& Terminal::use_by_process() {
  static auto* const of_process = new PerProcess<Use>;
  return of_process->get();
}

Terminal::Terminal() : fd_(open(kTerminal, O_RDWR | O_NOCTTY | O_CLOEXEC)) {
  if (fd_ < 0 || !in_foreground()) return;
  const std::lock_guard<Mutex> guard(use_.mutex);
  is_ours_ = use_.programs > 0 || tcgetattr(fd_, &use_.modes) == 0;
  if (is_ours_) ++use_.programs;
}

Terminal::~Terminal() {
  if (is_ours_) {
    const std::lock_guard<Mutex> guard(use_.mutex);
    const bool restores = --use_.programs == 0 &&
                          std::exchange(use_.to_restore, false) &&
                          in_foreground();
    // TCSANOW does not wait for pending output, which Ctrl-S may have stopped.
    if (restores) tcsetattr(fd_, TCSANOW, &use_.modes);
  }
  if (fd_ >= 0) close(fd_);
}

void Terminal::restore() const {
  if (!is_ours_) return;
  const std::lock_guard<Mutex> guard(use_.mutex);
  use_.to_restore = true;
}

bool Terminal::in_foreground() const { return tcgetpgrp(fd_) == getpgrp(); }

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
