// What went wrong in a call, on its way to becoming an Error or an error code.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_FAILURE_HPP
#define DDBMUTEX_FAILURE_HPP

#include <pthread.h>

#include <string>
#include <system_error>

#include "../ddbmutex.hpp"
#include "answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// An Error to be.
struct Failure {
  std::error_code code;
  std::string text;
  std::string field;
  std::string request_id;
  explicit operator bool() const { return bool(code); }
};

// Throws it; without exceptions, calls fail_handler.
[[noreturn]] void raise(const Failure& failure);

// `doing`: "cannot lock".  `more`: than the code says; may be empty.
Failure failed(std::error_code code, const std::string& doing,
               const std::string& more = {});
Failure bad_option(const std::string& field, const std::string& why);
// `endpoint`: who answered, or did not; empty if it is not known.
Failure failure_of(const dynamodb::Answer& answer, const std::string& doing,
                   const std::string& endpoint);

std::string quoted(const std::string& text);
// How an error about a lock begins.
std::string cannot(const char* what, const std::string& name,
                   const std::string& table);

// For as long as it lives the thread cannot be cancelled.  Calls are no points
// of cancellation: a thread that vanished amid one would leave a lock behind
// that nobody can unlock.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_); }
  ~NoCancellation() { pthread_setcancelstate(old_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int old_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_FAILURE_HPP
