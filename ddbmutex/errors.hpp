// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Errors of public calls: builds an Error, and reports it by an exception, a
// std::error_code or fail_handler.
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

// `text` becomes what().
ErrorPtr make_error(std::error_code code, const std::string& text,
                    std::string_view field = {},
                    std::string_view request_id = {});

// The error of a failed call.  `cannot` begins the text: what cannot_text()
// returns.  `details` may be empty.
ErrorPtr error_of(std::error_code code, const std::string& cannot,
                  std::string_view details = {},
                  std::string_view request_id = {});
// The same for an answer with a fault, to a request to the lock's own table.
// An empty `endpoint` is left out.
ErrorPtr error_of(const dynamodb::Answer& answer, const std::string& cannot,
                  const std::string& endpoint);
// The same for any other request.  `remark` is appended; it is empty or begins
// with a space.
ErrorPtr error_of(const dynamodb::Answer& answer, const std::string& cannot,
                  const std::string& endpoint, const char* remark);

// `cannot lock "name" in table "table"`; `what` is "lock".
std::string cannot_text(const char* what, const std::string& name,
                        const std::string& table);

struct CheckedOption {
  const char* field;
  const char* problem;  // "" if the option is good.
  // Shown in the error.  Left out for secrets and for options that are not
  // text.
  std::string_view value{};
};
ErrorPtr bad_option(const CheckedOption& option);
// The error of the first bad option; null if all are good.
ErrorPtr check_all(std::initializer_list<CheckedOption> options);
// Why `text` cannot be sent as a string of at most `most` bytes; "" if it can.
// `too_long` is returned if it is longer.
const char* text_problem(const std::string& text, std::size_t most,
                         const char* too_long);

// Prevents the thread from being cancelled while this exists.  A thread that
// vanished in the middle of a call could leave a lock that nobody can unlock.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_); }
  ~NoCancellation() { pthread_setcancelstate(old_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int old_ = PTHREAD_CANCEL_ENABLE;
};

// Reports how each call of a DdbMutex, Table or AnyOf ended, and remembers the
// last error.  Their Impl classes derive from it.
class ErrorReporter {
 public:
  // If `ec` is the object that throws() returns, throws the error (or calls
  // fail_handler).  Otherwise sets `ec`, or clears it if `error` is null.
  void report(const Error* error, std::error_code& ec);
  // Reports that memory ran out, as std::bad_alloc or
  // std::errc::not_enough_memory.
  static void report_no_memory(std::error_code& ec);
  void remember(const Error& error);
  std::string last_error() const;
  // Called last in the constructor of the object that `self` owns.  Throws
  // `unusable` if it is set; without exceptions, the first call reports it.
  void finish_construction(const std::shared_ptr<void>& self);

  ErrorPtr unusable;  // Why no call can succeed; set by a constructor.

  // The object exists at least as long as the result.
  std::shared_ptr<void> keep_alive() const { return self_.lock(); }

 private:
  struct LastError {
    sigv4::Mutex mutex;
    std::string text;  // GUARDED_BY(mutex)
  };
  sigv4::PerProcess<LastError> last_error_;  // A forked child has its own.
  std::weak_ptr<void> self_;
};

// Makes a call, unless the object is unusable, and reports how it ended.  A
// callback in the call may destroy the object.
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
