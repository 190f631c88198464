// Where the library says what it does, to who wants to know.
#ifndef DDBMUTEX_SIGV4_LOG_HPP
#define DDBMUTEX_SIGV4_LOG_HPP

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "boot_clock.hpp"
#include "thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

enum class LogLevel {
  debug,    // Each request that failed and is tried again.
  info,     // Keys that were found.
  warning,  // What may become an error.
  error,    // What is lost.
};

// Called by any thread, also by those that renew leases and tell of losses: it
// must not wait for anything, nor throw.  Empty: nobody wants to know.  No text
// holds a secret, a token or a signature.
using Log = std::function<void(LogLevel level, const std::string& text)>;

inline void say(const Log& log, LogLevel level, const std::string& text) {
  if (log) log(level, text);
}

// Hands lines on to a log that may wait: by a thread of its own, one at a time,
// in their order.  Lines that come while a thousand wait are left out.
//
// To be owned by a shared_ptr.  Thread safety: any thread may call any member.
class LogQueue final : public Stoppable,
                       public std::enable_shared_from_this<LogQueue> {
 public:
  explicit LogQueue(Log sink);
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  void add(LogLevel level, const std::string& text);

  // What waits is still told, until then; afterwards nothing is.
  void tell_to_stop(BootTime by) override;
  void await_stop() override;

 private:
  struct Line {
    LogLevel level;
    std::string text;
  };

  void run();
  bool take(Line& line);  // REQUIRES: the mutex, and a line.

  const Log sink_;
  std::mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  std::condition_variable changed_;
  std::vector<Line> lines_;
  std::int64_t left_out_ = 0;
  bool started_ = false;
  bool ended_ = false;
  bool stopping_ = false;
  bool awaited_ = false;
  BootTime stop_by_{};
  pthread_t thread_{};
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_LOG_HPP
