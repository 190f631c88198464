// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads DynamoDB's answers: the item or the table in them, or the fault.
//
// Pure functions.  No content of an answer is trusted: JSON is parsed without
// recursion, every access checks the type, checksums are verified.
#ifndef DDBMUTEX_ANSWER_HPP
#define DDBMUTEX_ANSWER_HPP

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../../sigv4/http_answer.hpp"
#include "clock.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

enum class Action {
  get_item,
  put_item,
  update_item,
  delete_item,
  describe_table,
  create_table,
  update_time_to_live,
  delete_table,
  scan,
  query,
  transact_write_items,
};
constexpr std::size_t kActions = 11;
const char* name_of(Action action);  // "GetItem"
// Whether the action reads or writes one item, by its key.
bool is_of_an_item(Action action);

// How a call failed.
enum class Fault {
  none,
  condition_failed,  // The write's condition did not hold.

  // Final: the same call will fail again.
  no_keys,          // There are no credentials to sign with.
  no_target,        // The region or the URL is not known.
  bad_keys,         // Unknown or wrong keys, or a bad signature.
  expired_keys,     // Temporary keys that have expired.
  access_denied,    // These keys may not do this.
  no_table,         // The table does not exist, or not yet.
  table_in_use,     // The table exists already, or is being changed.
  wrong_key,        // The key in the request is not the table's.
  bad_request,      // DynamoDB does not accept the request.
  unknown_action,   // This engine does not have the action.
  bad_certificate,  // The server's certificate is not trusted.
  no_thread,        // The thread that sends cannot be started.

  // Transient: worth another attempt.
  keys_awaited,    // Credentials are being fetched, or will be soon.
  no_memory,       // For the request, or to read its answer.
  unreachable,     // No connection could be made.
  disconnected,    // The connection broke before the answer was whole.
  timed_out,       // No answer by the deadline.
  throttled,       // DynamoDB asks for fewer requests.
  server_failure,  // DynamoDB or something before it failed (5xx).
  conflict,        // A transaction or another region is writing the item.
  bad_answer,      // Not an answer that DynamoDB gives.
  skewed_time,     // Signed for a wrong time; DynamoDB's is known now.

  cancelled,  // By the caller.
};
const char* name_of(Fault fault);
// Whether DynamoDB processed the request.
inline bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}
// Whether the fault is one of the transient ones above, from keys_awaited on.
inline bool is_transient(Fault fault) {
  return fault >= Fault::keys_awaited && fault <= Fault::skewed_time;
}

struct TableDescription;  // description.hpp

// The outcome of a call.
struct Answer {
  Action action = Action::get_item;
  Fault fault = Fault::none;
  // False only if DynamoDB certainly did not receive the request.
  bool sent = false;
  // The answer was longer than the client accepts.  The fault is bad_answer.
  bool too_large = false;
  std::size_t bytes = 0;  // Of the body.
  // The keys were refused, but there may be newer ones.
  bool other_keys = false;
  // The number, from 0 on, of the part of a TransactWriteItems that made
  // DynamoDB cancel it.  -1: DynamoDB names none.  If it names several, this is
  // the first with a failed condition, or else the first.  `fault` and
  // `message` belong to it.
  int part = -1;
  std::chrono::milliseconds retry_after{0};  // As the service asks.
  BootTime sent_at{};                        // Before the request left.
  BootTime received_at{};                    // After the answer arrived.
  // The answer's Date, if it is DynamoDB's own and plausible.
  std::optional<ServiceTime> date;
  // GetItem: the item.  UpdateItem and DeleteItem: what ReturnValues asked for.
  // A write whose condition failed: the item in the table.  Empty if there is
  // none, or the engine does not send it.  Scan and Query: the key at which the
  // next page begins; empty after the last page.
  std::optional<Item> item;
  std::vector<Item> items;  // Scan and Query: a page.
  // DescribeTable, CreateTable and DeleteTable without a fault.
  std::shared_ptr<const TableDescription> table;
  // The rest describes a fault.  The message is DynamoDB's, or ours.
  std::string message;
  std::string request_id;   // DynamoDB's, to quote to its support.
  const char* option = "";  // The option that is wrong, or empty.

  // Whether the write may have been applied, or may be applied later.
  bool outcome_unknown() const;
  // These leave out the text if memory runs out.
  void set_fault(Fault the_fault, const char* the_message) noexcept;
  // Copies what describes the fault, and nothing else.
  void copy_fault_to(Answer& to) const noexcept;
};

// Sets the fault to bad_answer.
void bad_answer(Answer& answer, std::string_view message);

// Reads the parts of a body that only some actions have.  The readers are
// read_page(), read_table() and read_cancellation().  The caller passes one, so
// that a program without such calls does not link it.
using Reader = void (*)(Value body, const Wanted& wanted, Answer& answer);

// What is known of an answer before it is read: whether and when the request
// was sent, and when the answer arrived.
Answer unread_answer(Action action, const sigv4::HttpAnswer& http);

// Reads an answer to a request that was signed for `signed_at`.  The body is
// parsed in place.
Answer read_answer(Action action, sigv4::HttpAnswer&& http,
                   ServiceTime signed_at, Reader reader = nullptr,
                   const Wanted& wanted = {});

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANSWER_HPP
