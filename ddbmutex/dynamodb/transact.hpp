// A transaction of a condition of ours and the writes that a user gives as
// JSON.
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

#include "../../sigv4/text.hpp"
#include "answer.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// Why the text is not JSON of an array of 1 to 99 objects, which with our own
// are as many as a transaction takes; empty if it is.  What the objects say is
// left to DynamoDB.
std::string problem_of_writes(std::string_view writes);

// The body of a TransactWriteItems: `check`, JSON of a ConditionCheck, and then
// the elements of `writes`.  Sent again with the same `token`, of 1 to 36
// characters of hexadecimal digits and '-', it is carried out once.
// REQUIRES: problem_of_writes() finds none.
sigv4::Text write_transaction(std::string_view check, std::string_view writes,
                              std::string_view token);

// The Reader of TransactWriteItems.
void read_cancellation(Value body, const Wanted&, Answer& answer);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TRANSACT_HPP
