// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Log lines on their way to the user's logger.
#ifndef DDBMUTEX_SIGV4_LOG_HPP
#define DDBMUTEX_SIGV4_LOG_HPP

#include <pthread.h>

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <string>

#include "boot_clock.hpp"
#include "system.hpp"
#include "text.hpp"
#include "thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

enum class LogLevel {
  debug,    // A request that failed and is retried.
  info,     // Keys that were found.
  warning,  // Something that may become an error.
  error,    // A lock that is lost, a callback that threw.
};

// Any thread may add lines, also those that renew leases and report losses.
class Log {
 public:
  virtual ~Log() = default;
  // Must not wait or throw.  No line contains a secret, a token or a signature.
  virtual void add(LogLevel level, const std::string& line) = 0;
};
using LogPtr = std::shared_ptr<Log>;  // Null: nothing is logged.

// Logs the text as one line, so that text from elsewhere cannot forge a line of
// the log.
inline void say(const LogPtr& log, LogLevel level, const std::string& text) {
  if (log) log->add(level, one_line(text));
}

// Writes its lines in a thread of its own, one at a time, in order.  While a
// thousand lines wait, new lines are left out.  REQUIRES: a shared_ptr owns it.
//
// Thread safety: any thread may call any member.
class LogQueue : public Log,
                 public Stoppable,
                 public std::enable_shared_from_this<LogQueue> {
 public:
  LogQueue() = default;
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  void add(LogLevel level, const std::string& line) override;

  // Lines that wait are still written until `by`.  No line is added any more.
  void tell_to_stop(BootTime by) override;
  void await_stop() override;

 private:
  struct Line {
    LogLevel level;
    std::string text;
  };

  void run();
  void write_line(const Line& line);
  // Writes one line.  Exceptions are ignored.
  virtual void write(LogLevel level, const std::string& text) = 0;
  // Nothing if the thread must end.  REQUIRES: the mutex is held.
  std::optional<Line> take();

  Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  Condition changed_;
  std::list<Line> lines_;
  std::int64_t left_out_ = 0;
  bool started_ = false;
  bool registered_ = false;  // exit() stops the thread.
  bool ended_ = false;
  bool stopping_ = false;
  BootTime stop_by_{};
  pthread_t thread_{};
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_LOG_HPP
