// The errors of the public calls: how an Error is made of what went wrong, and
// how it leaves a call, by exception, by std::error_code or by fail_handler.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_ERRORS_HPP
#define DDBMUTEX_ERRORS_HPP

#include <pthread.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "../ddbmutex.hpp"
#include "../sigv4/function_ref.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/system.hpp"
#include "dynamodb/answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Null if nothing went wrong.
using ErrorPtr = std::unique_ptr<const Error>;

// `text`: all of what().
ErrorPtr make_error(std::error_code code, const std::string& text,
                    std::string_view field = {},
                    std::string_view request_id = {});

// The error of a call.  `doing` is how its text begins: cannot("lock", ...).
// `details` may be empty.
ErrorPtr error_of(std::error_code code, const std::string& doing,
                  std::string_view details = {},
                  std::string_view request_id = {});
// The same for an answer with a fault.  `endpoint`: who answered, or should
// have; empty if unknown.  `remark`: follows DynamoDB's words, begins with a
// blank; null: the usual one for requests to the lock's own table.
ErrorPtr error_of(const dynamodb::Answer& answer, const std::string& doing,
                  const std::string& endpoint, const char* remark = nullptr);

// How the text of an error begins: `cannot lock "name" in table "table"`.
std::string cannot(const char* what, const std::string& name,
                   const std::string& table);

// An option, and why it is bad; "" if it is good.
struct Checked {
  const char* field;
  const char* why;
  // Shown in the error.  Empty for secrets, and for what is not text.
  std::string_view value{};
};
ErrorPtr bad_option(const Checked& option);
// The error of the first bad one.
ErrorPtr check_all(std::initializer_list<Checked> options);
// Why `text` cannot be sent as a string of at most `most` bytes; "" if it can.
const char* text_problem(const std::string& text, std::size_t most,
                         const char* too_long);

// While it exists, its thread cannot be cancelled.  A thread that vanished in
// the middle of a call would leave behind a lock that nobody can unlock.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_); }
  ~NoCancellation() { pthread_setcancelstate(old_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int old_ = PTHREAD_CANCEL_ENABLE;
};

// Reports how each call of one object ended, and remembers the last error.
class ErrorReporter {
 public:
  // Throws, calls fail_handler or sets `ec`, as the caller wants it.  Clears
  // `ec` if there is no error.
  void report(const Error* error, std::error_code& ec);
  // The same where there was no memory for the call or for its error:
  // std::bad_alloc or std::errc::not_enough_memory.
  static void report_no_memory(std::error_code& ec);
  void remember(const Error& error);
  std::string last_error() const;
  // Ends the constructor of the object that `self` owns: throws if it is
  // unusable.  Without exceptions, its first call reports that.
  void finish_construction(const std::shared_ptr<void>& self);

  ErrorPtr unusable;  // Why no call can succeed; set by a constructor.

  // Keeps the object alive.
  std::shared_ptr<void> hold() const { return self_.lock(); }

 private:
  // A forked child makes its own, on first use.
  struct Last {
    sigv4::Mutex mutex;
    std::string text;  // GUARDED_BY(mutex)
  };
  sigv4::PerProcess<Last> last_;
  std::weak_ptr<void> self_;
};

// Makes a call and reports how it ended; does not make it if the object is
// unusable.  A callback in the call may destroy the object.
void run(ErrorReporter& reporter, std::error_code& ec,
         sigv4::FunctionRef<ErrorPtr()> call);
template <class Impl, class Call>
void run(const std::shared_ptr<Impl>& impl, std::error_code& ec,
         const Call& call) {
  Impl& object = *impl;
  detail::run(object, ec, [&]() -> ErrorPtr { return call(object); });
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ERRORS_HPP
