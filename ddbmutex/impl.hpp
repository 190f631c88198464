// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The inside of a Table and of a DdbMutex: their options, and what each process
// makes of them on first use.  The extras reach it by detail::Inside.
#ifndef DDBMUTEX_IMPL_HPP
#define DDBMUTEX_IMPL_HPP

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "../ddbmutex.hpp"
#include "../sigv4/boot_clock.hpp"
#include "../sigv4/function_ref.hpp"
#include "../sigv4/log.hpp"
#include "../sigv4/parts.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/thread.hpp"
#include "dynamodb/client.hpp"
#include "dynamodb/endpoint.hpp"
#include "errors.hpp"
#include "lock/mutex.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

constexpr std::size_t kMaxKeyBytes = 2048;  // DynamoDB's, of a partition key.

// Which sources of keys and which endpoints this library knows.
const sigv4::Parts& parts();

struct Inside {
  using TableImpl = Table::Impl;
  using MutexImpl = DdbMutex::Impl;
  // The shared_ptr to its Impl.
  template <class Object>
  static const auto& of(const Object& object) {
    return object.impl_;
  }
};

}  // namespace detail

struct Table::Impl : detail::ErrorReporter {
  explicit Impl(TableOptions&& the_options);
  ~Impl();

  // Made on first use.  A forked child makes its own.
  lock::TableState& get();
  // Null if this process has not made it.
  const lock::TableState* peek() const;
  // What close() says about a lock that it could not release.
  Unreleased unreleased(const lock::Released& lock) const;
  // Where requests go, as far as it is known.
  std::string endpoint() const;
  // Sets the row of the lock with that name.  An empty `sort_value` means the
  // table's own; it is ignored if the table has no sort key.
  void set_row_target(const std::string& name, const std::string& sort_value,
                      lock::RowTarget& row_target) const;
  detail::ErrorPtr check_name(const std::string& name,
                              const std::string& sort_value) const;
  // "host:pid".
  const std::string& usual_owner() const;

  // Only the constructor and the destructor change them.
  TableOptions options;
  const dynamodb::Target target;

 private:
  struct LogStopper {
    ~LogStopper() {
      if (queue != nullptr) sigv4::stop(*queue, stop_by);
    }
    const std::shared_ptr<sigv4::LogQueue> queue;
    BootTime stop_by{};
  };
  struct State {
    State(const dynamodb::ClientOptions& client_options,
          std::shared_ptr<sigv4::LogQueue>&& log_queue)
        : log{std::move(log_queue)}, table(client_options) {}
    // Gives all threads the same time to end.
    ~State();

    LogStopper log;  // Destroyed last, so that everything else can still log.
    lock::TableState table;
  };

  sigv4::PerProcess<State> state_;
  mutable sigv4::PerProcess<std::string> usual_owner_;
};

// --- The inside of a DdbMutex ------------------------------------------------

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
  void on_lost(lock::Verdict why) const override;
  void on_danger() const override;

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

#endif  // DDBMUTEX_IMPL_HPP
