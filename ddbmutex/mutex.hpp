// What a DdbMutex is inside.
#ifndef DDBMUTEX_DDBMUTEX_MUTEX_HPP
#define DDBMUTEX_DDBMUTEX_MUTEX_HPP

#include <chrono>
#include <mutex>
#include <string>
#include <system_error>

#include "ddbmutex.hpp"
#include "ddbmutex/failure.hpp"
#include "lock/mutex.hpp"
#include "sigv4/process.hpp"

namespace ddbmutex {
inline namespace v0 {

struct DdbMutex::Impl {
  Impl(std::string the_name, Options the_options);

  // All that a forked child must make anew.
  struct State : lock::Mutex {
    using lock::Mutex::Mutex;
    std::mutex error_mutex;
    std::string last_error;  // GUARDED_BY(error_mutex)
  };

  State& get();
  // `what`: "lock".
  detail::Failure failure_of(lock::Result& result, const char* what) const;
  detail::Failure lock(const lock::Patience& patience, detail::Wait* wait,
                       bool& locked);
  detail::Failure renew(const Changes& changes);
  detail::Failure ensure(std::chrono::nanoseconds min_remaining);
  detail::Failure release(const Changes& changes);
  detail::Failure require(std::chrono::nanoseconds min_remaining) const;
  std::chrono::nanoseconds remaining() const;
  // Ends a call: throws, or tells `ec` if that is not null.
  void finish(const detail::Failure& failure, std::error_code* ec);
  void remember(const detail::Failure& failure);

  const std::string name;
  const Options options;
  detail::Failure bad;  // If no operation can succeed.
  sigv4::PerProcess<State> state;
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_DDBMUTEX_MUTEX_HPP
