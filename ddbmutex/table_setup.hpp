// A table as a whole: whether locks can live there, and its making.
//
// Each call blocks.  Passing faults are tried again, and slow changes waited
// for, until the deadline or until the waker is woken; the answer then tells
// the last passing fault, else timed_out or cancelled.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_TABLE_SETUP_HPP
#define DDBMUTEX_TABLE_SETUP_HPP

#include <string>

#include "../ddbmutex.hpp"
#include "dynamodb/answer.hpp"
#include "dynamodb/ask.hpp"
#include "dynamodb/description.hpp"
#include "errors.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

// Why that is not the key that the options name; empty if it is.
std::string wrong_key(const dynamodb::TableDescription& table,
                      const TableOptions& options);
// Why locks cannot live there: other keys than the options name, or replicas.
ErrorPtr unfit(const dynamodb::TableDescription& table,
               const TableOptions& options);

// One answer: the table, or no_table.
dynamodb::Answer describe_table(const dynamodb::Caller& caller,
                                const TableOptions& options);

// Makes a table as the options say unless there is one of that name, waits
// until it is ACTIVE and then switches on its TTL, where that is wanted and the
// engine has such a thing.  Without a fault the answer has the table, which is
// to be looked at: one that was there may be unfit; nothing of it is changed
// then.  Does not send CreateTable where the table can be described.
//
// A fault with action update_time_to_live comes after all the rest: the table
// can be used, but DynamoDB will not delete what is over.
dynamodb::Answer create_table(const dynamodb::Caller& caller,
                              const TableOptions& options, const Creation& how);

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_TABLE_SETUP_HPP
