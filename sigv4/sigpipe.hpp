// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keeps SIGPIPE away from a program while libcurl may write.
#ifndef DDBMUTEX_SIGV4_SIGPIPE_HPP
#define DDBMUTEX_SIGV4_SIGPIPE_HPP

#include <pthread.h>
#include <signal.h>
#include <time.h>

#include <cerrno>

#include "http.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// With CURLOPT_NOSIGNAL, libcurl does not ignore SIGPIPE.  So this thread
// blocks the signal while libcurl may write, and then removes one that was
// raised meanwhile.
class SigpipeGuard {
 public:
  SigpipeGuard() {
    if (!active_) return;
    sigset_t waiting;
    sigemptyset(&sigpipe_);
    sigaddset(&sigpipe_, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &sigpipe_, &old_);
    // A signal that was pending before must stay.  It can be pending only if
    // this thread had blocked it.
    had_one_ = sigismember(&old_, SIGPIPE) == 1 && sigpending(&waiting) == 0 &&
               sigismember(&waiting, SIGPIPE) == 1;
  }
  ~SigpipeGuard() {
    if (!active_) return;
    const int saved = errno;
    const timespec no_wait = {0, 0};
    while (!had_one_ && sigtimedwait(&sigpipe_, nullptr, &no_wait) == -1 &&
           errno == EINTR) {
    }
    pthread_sigmask(SIG_SETMASK, &old_, nullptr);
    errno = saved;
  }
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;

 private:
  const bool active_ = init_http();
  sigset_t sigpipe_;
  sigset_t old_;
  bool had_one_;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SIGPIPE_HPP
