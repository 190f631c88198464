// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The inside of a Table: its options, and the client, threads and locks that
// each process makes of them on first use.
#ifndef DDBMUTEX_TABLE_HPP
#define DDBMUTEX_TABLE_HPP

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "../ddbmutex.hpp"
#include "../sigv4/boot_clock.hpp"
#include "../sigv4/log.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/thread.hpp"
#include "dynamodb/answer.hpp"
#include "dynamodb/client.hpp"
#include "dynamodb/endpoint.hpp"
#include "errors.hpp"
#include "lock/mutex.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

constexpr std::size_t kMaxKeyBytes = 2048;  // DynamoDB's, of a partition key.

}  // namespace detail

struct Table::Impl : detail::ErrorReporter {
  explicit Impl(TableOptions&& the_options);
  ~Impl();

  // Made on first use.  A forked child makes its own.
  lock::TableState& get();
  // Null if this process has not made it.
  const lock::TableState* peek() const;
  // What close() says about a lock that it could not release.
  Unreleased unreleased(const lock::ReleaseOutcome& lock) const;
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

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TABLE_HPP
