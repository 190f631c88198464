// What a DdbMutex is inside.
#ifndef DDBMUTEX_FACE_HPP
#define DDBMUTEX_FACE_HPP

#include <chrono>
#include <mutex>
#include <string>
#include <system_error>

#include "../ddbmutex.hpp"
#include "../sigv4/process.hpp"
#include "failure.hpp"
#include "mutex.hpp"

namespace ddbmutex {
inline namespace v0 {

struct DdbMutex::Impl {
  Impl(std::string the_name, Options the_options);

  // All that a forked child must make anew, each on first use: that an error
  // can be stored makes no client.
  using State = lock::Mutex;
  struct LastError {
    std::mutex mutex;
    std::string text;  // GUARDED_BY(mutex)
  };

  State& get();
  const std::string& owner() const;
  // `what`: "lock".
  detail::Failure failure_of(lock::Result& result, const char* what) const;
  detail::Failure lock(const lock::Patience& patience, detail::Wait* wait,
                       bool& locked);
  detail::Failure renew(const Changes& changes);
  detail::Failure ensure(std::chrono::nanoseconds min_remaining);
  detail::Failure release(const Changes& changes);
  detail::Failure of_this(detail::Failure bad_one) const;
  detail::Failure require(std::chrono::nanoseconds min_remaining) const;
  std::chrono::nanoseconds remaining() const;
  // Ends a call: throws, or tells `ec` if that is not null.
  void finish(const detail::Failure& failure, std::error_code* ec);
  void remember(const detail::Failure& failure);

  const std::string name;
  const Options options;
  detail::Failure bad;  // If no operation can succeed.
  mutable sigv4::PerProcess<std::string> usual_owner;
  sigv4::PerProcess<LastError> last_error;
  sigv4::PerProcess<State> state;
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_FACE_HPP
