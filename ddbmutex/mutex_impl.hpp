// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The inside of a DdbMutex: its name and options, and the lock::Mutex that each
// process makes of them when it first needs one.
#ifndef DDBMUTEX_MUTEX_IMPL_HPP
#define DDBMUTEX_MUTEX_IMPL_HPP

#include <chrono>
#include <memory>
#include <string>

#include "../ddbmutex.hpp"
#include "../sigv4/function_ref.hpp"
#include "../sigv4/process.hpp"
#include "errors.hpp"
#include "lock/mutex.hpp"

namespace ddbmutex {
inline namespace v0 {

namespace detail {

// The option, or its default.
std::chrono::milliseconds request_timeout_of(const Options& options);

// How the lock was lost, and how long ago; "" if it was not lost.
std::string loss_text(const lock::Result& result);

}  // namespace detail

// The options, and with them the user's callbacks.  Outlives the mutex during a
// callback.  Does not own the Table, because a callback may destroy both.
struct Callbacks final : lock::Listener {
  explicit Callbacks(const Options& all) : options(all) {
    options.table.reset();
  }
  void notify(lock::News news, lock::Verdict loss) const override;

  Options options;  // Without the table.
};

struct DdbMutex::Impl : detail::ErrorReporter {
  // REQUIRES: the options name a table.
  Impl(std::string&& the_name, Options&& the_options);

  lock::Mutex& get();
  const std::string& owner() const;
  // How an error begins.  `what`: "lock", "renew" and so on.
  std::string cannot_text(const char* what) const;
  // Adds the mutex's name to the error of an option; null stays null.
  detail::ErrorPtr with_name(detail::ErrorPtr bad_option) const;
  // Null for a result that is not an error.
  detail::ErrorPtr error_of(const lock::Result& result, const char* what) const;
  // Changes what is stored, too, unless `changes` is null.
  detail::ErrorPtr renew(const lock::ChangesPtr& changes);
  detail::ErrorPtr release(const lock::ChangesPtr& changes);
  detail::ErrorPtr ensure(std::chrono::nanoseconds min_remaining);
  detail::ErrorPtr require(std::chrono::nanoseconds min_remaining) const;
  std::chrono::nanoseconds remaining() const;

  const std::string name;
  const std::shared_ptr<Table> table;
  const std::shared_ptr<const Callbacks> callbacks;
  const Options& options;  // Those of `callbacks`.
  sigv4::PerProcess<lock::Mutex> state;

 private:
  std::shared_ptr<lock::MutexSettings> settings(lock::TableState& shared) const;
  // Fails with not_held if this process has never locked the mutex.
  detail::ErrorPtr call_if_made(
      const char* what, sigv4::FunctionRef<lock::Result(lock::Mutex&)> call);
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_MUTEX_IMPL_HPP
