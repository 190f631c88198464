// Where the library says what it does, to who wants to know.
#ifndef DDBMUTEX_SIGV4_LOG_HPP
#define DDBMUTEX_SIGV4_LOG_HPP

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "boot_clock.hpp"
#include "system.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

enum class LogLevel {
  debug,    // Each request that failed and is tried again.
  info,     // Keys that were found.
  warning,  // What may become an error.
  error,    // What is lost.
};

// Who is told; null: nobody wants to know.  Called by any thread, also by those
// that renew leases and tell of losses: it must not wait for anything, nor
// throw.  No text holds a secret, a token or a signature.
struct Log {
  explicit operator bool() const { return who != nullptr; }

  std::shared_ptr<void> who{};
  void (*tell)(const std::shared_ptr<void>& who, LogLevel level,
               const std::string& text) = nullptr;
};

// Logs the text as one line, so that text from elsewhere cannot forge a line of
// the log.
inline void say(const Log& log, LogLevel level, const std::string& text) {
  if (log) log.tell(log.who, level, one_line(text));
}

// Hands lines on to who may wait: by a thread of its own, one at a time, in
// their order.  Lines that come while a thousand wait are left out.
//
// Thread safety: any thread may call any member.
class LogQueue {
 public:
  using Tell = void (*)(LogQueue& self, LogLevel level,
                        const std::string& text);
  explicit LogQueue(Tell tell) : tell_(tell) {}
  ~LogQueue() { drop_lines(); }
  LogQueue(const LogQueue&) = delete;
  LogQueue& operator=(const LogQueue&) = delete;

  // What adds to the queue; to nobody if that is null.
  static Log log(const std::shared_ptr<LogQueue>& queue) {
    return {queue, add};
  }

  // What waits is still told, until then; afterwards nothing is.
  void tell_to_stop(BootTime by);
  void await_stop();

 private:
  struct Line {
    LogLevel level;
    std::string text;
    std::unique_ptr<Line> next;
  };

  static void add(const std::shared_ptr<void>& queue, LogLevel level,
                  const std::string& text);
  void run();
  void drop_lines();
  std::unique_ptr<Line> take();  // REQUIRES: the mutex.  Null: none is told.

  const Tell tell_;
  Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  Condition changed_;
  std::unique_ptr<Line> first_;
  std::unique_ptr<Line>* end_ = &first_;
  std::size_t waiting_ = 0;
  std::int64_t left_out_ = 0;
  bool started_ = false;
  bool registered_ = false;  // For exit().
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
