// What a Table is inside: what it was told, and what it makes of that in this
// process.
#ifndef DDBMUTEX_TABLE_HPP
#define DDBMUTEX_TABLE_HPP

#include <cstddef>
#include <memory>
#include <string>

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

  // Told to the end: what is made of it is destroyed before it.
  struct Lines {
    ~Lines() {
      if (queue != nullptr) sigv4::stop(*queue, end_by);
    }
    const std::shared_ptr<sigv4::LogQueue> queue;
    BootTime end_by{};
  };

  // All that a forked child must make anew.
  struct State : Lines, lock::Table {
    State(const dynamodb::ClientOptions& client_options,
          std::shared_ptr<sigv4::LogQueue>&& lines)
        : Lines{std::move(lines)}, lock::Table(client_options) {}
    // All threads end together.
    ~State();
  };

  State& get();
  // As close() tells of it.
  Unreleased unreleased(const lock::Unreleased& lock) const;
  // Where requests go, as far as it is known.
  std::string endpoint() const;
  // Where the lock of that name is, or is to be.  `sort_value` is ignored
  // where the table has no sort key; empty: the table's own.
  void put_place(const std::string& name, const std::string& sort_value,
                 lock::RowTarget& place) const;
  detail::ErrorPtr check_name(const std::string& name,
                              const std::string& sort_value) const;
  // "host:pid".
  const std::string& usual_owner() const;
  TableOptions options;  // Changed by constructor and destructor alone.
  const dynamodb::Target target;
  sigv4::PerProcess<State> state;

 private:
  mutable sigv4::PerProcess<std::string> usual_owner_;
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TABLE_HPP
