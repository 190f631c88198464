// Where the library says what it does, to who wants to know.
#ifndef DDBMUTEX_SIGV4_LOG_HPP
#define DDBMUTEX_SIGV4_LOG_HPP

#include <functional>
#include <string>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

enum class LogLevel {
  debug,    // Each request that failed and is tried again.
  info,     // Keys that were found, a clock that was corrected.
  warning,  // What may become an error.
  error,    // What is lost.
};

// Called by any thread, with no mutex held.  Empty: nobody wants to know.
// Must not throw.  No text holds a secret, a token or a signature.
using Log = std::function<void(LogLevel level, const std::string& text)>;

inline void say(const Log& log, LogLevel level, const std::string& text) {
  if (log) log(level, text);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_LOG_HPP
