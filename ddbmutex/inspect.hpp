// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Calls about a table: how they are sent, and how an item is described to users
// as a LockInfo.
//
//   const Call call(impl.get(), impl.options, "inspect", &name);
//   Answer answer = call.look(target, info);
//   return call.error_of(answer);
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_INSPECT_HPP
#define DDBMUTEX_INSPECT_HPP

#include <chrono>
#include <string>
#include <string_view>

#include "../ddbmutex.hpp"
#include "../sigv4/boot_clock.hpp"
#include "dynamodb/answer.hpp"
#include "dynamodb/ask.hpp"
#include "dynamodb/client.hpp"
#include "errors.hpp"
#include "lock/mutex.hpp"
#include "lock/queue.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Describes an item, without its name and sort value.  If the item is not
// understood, only `problem` is set.
LockInfo describe(dynamodb::Item&& item, const TableOptions& options,
                  const dynamodb::Client& client);

// A call under way, which ends when the table is closed.  It retries transient
// faults for TableOptions::patience.
class Call {
 public:
  // `what`: how errors call it, such as "list".  `name`: of the lock; null: the
  // call is about the table itself.  All arguments must outlive the Call.
  Call(lock::TableState& table, const TableOptions& options, const char* what,
       const std::string* name = nullptr);

  ErrorPtr error_of(Errc why, std::string_view more = {}) const;
  // Only close() cancels a call.
  ErrorPtr error_of(const dynamodb::Answer& answer) const;

  dynamodb::Answer ask(const lock::RowTarget& target,
                       const lock::Request& request,
                       bool* maybe_applied = nullptr) const;
  // The item as it stands, if there is one.
  dynamodb::Answer look(const lock::RowTarget& target, LockInfo& info) const;
  // What a request of this call needs.  If the table was closed before, the
  // time is up already.
  dynamodb::CallContext context(std::chrono::milliseconds patience) const;
  dynamodb::CallContext context() const { return context(options_.patience); }

 private:
  std::string cannot() const;

  lock::TableState& table_;
  const TableOptions& options_;
  const char* const what_;
  const std::string* const name_;
  const lock::Waits::One wait_;
  const BootTime end_;  // When TableOptions::patience is over.
};

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_INSPECT_HPP
