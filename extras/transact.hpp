// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A transaction that makes a user's writes only if a condition holds: that the
// lock is still held.
//
//   const std::string problem = problem_of_writes(writes);
//   if (!problem.empty()) return bad(problem);
//   const sigv4::Text body = write_transaction(check, writes, token);
//
// Pure functions; any thread may call them.
#ifndef DDBMUTEX_TRANSACT_HPP
#define DDBMUTEX_TRANSACT_HPP

#include <string>
#include <string_view>

#include "../ddbmutex/dynamodb/answer.hpp"
#include "../ddbmutex/dynamodb/item.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Why the text is not a JSON array of 1 to 99 objects; empty if it is one.  (A
// transaction takes 100, and one is the condition.)  DynamoDB checks what the
// objects contain.
std::string problem_of_writes(std::string_view writes);

// The body of a TransactWriteItems.  `check` is a ConditionCheck as JSON; the
// elements of `writes` follow it.  `token` has 1 to 36 hexadecimal digits and
// '-'.  DynamoDB applies bodies with the same token only once.  REQUIRES:
// problem_of_writes() finds none.
sigv4::Text write_transaction(std::string_view check, std::string_view writes,
                              std::string_view token);

// The Reader of TransactWriteItems.
void read_cancellation(Value body, const Wanted&, Answer& answer);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TRANSACT_HPP
