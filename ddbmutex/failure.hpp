// What went wrong in a call: the Error that leaves it, or its code alone.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_FAILURE_HPP
#define DDBMUTEX_FAILURE_HPP

#include <pthread.h>

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>

#include "../ddbmutex.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/system.hpp"
#include "answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Null if nothing went wrong.
using Failure = std::unique_ptr<const Error>;

// `doing`: "cannot lock".  `more`: than the code says; may be empty.
Failure failed(std::error_code code, const std::string& doing,
               std::string_view more = {}, std::string_view request_id = {});
// `endpoint`: who answered, or did not; empty if it is not known.  `remark`:
// what stands behind DynamoDB's words, with a blank before it; null: what there
// is to say where nothing but the lock's own table is asked.
Failure failure_of(const dynamodb::Answer& answer, const std::string& doing,
                   const std::string& endpoint, const char* remark = nullptr);

// With the whole text.
Failure failure(std::error_code code, const std::string& text,
                std::string_view field = {}, std::string_view request_id = {});

// An option, and why it is bad; "" if it is not.  `value`: what it is, if that
// is text that may be shown, which no secret may.
struct Checked {
  const char* field;
  const char* why;
  std::string_view value{};
};
Failure bad_option(const Checked& option);
// The first that is bad.
Failure check_all(std::initializer_list<Checked> options);
// Why that cannot be sent as text of at most so many bytes; empty if it can.
const char* not_text(const std::string& text, std::size_t most,
                     const char* too_long);

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

// How the calls of one object end.
class Calls {
 public:
  // Throws, calls fail_handler or sets `ec`, as the caller wants it; clears
  // that if there is no error.
  void end(const Error* error, std::error_code& ec);
  // The same where there was no memory for the call, or to say how it ended:
  // std::bad_alloc or std::errc::not_enough_memory.
  static void end_without_memory(std::error_code& ec);
  void remember(const Error& error);
  std::string last_error() const;
  // Ends the constructor of an object that is owned by `self`.  Without
  // exceptions the first call tells what is bad.
  void made(const std::shared_ptr<void>& self);

  Failure bad;  // Why no call can succeed; set by a constructor.

  // While this is there, so is the object.
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

// A call, unless none can succeed, on what a destructor may end meanwhile.
void run(Calls& calls, std::error_code& ec,
         Failure (*call)(Calls& calls, const void* context),
         const void* context);
template <class Impl, class Call>
void run(const std::shared_ptr<Impl>& impl, std::error_code& ec,
         const Call& call) {
  detail::run(
      *impl, ec,
      [](Calls& calls, const void* context) -> Failure {
        return (*static_cast<const Call*>(context))(static_cast<Impl&>(calls));
      },
      &call);
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_FAILURE_HPP
