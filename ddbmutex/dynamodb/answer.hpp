// Reads DynamoDB's answers: the item or the table they carry, or the fault.
//
// Pure functions.  Nothing an answer holds is trusted: JSON is parsed without
// recursion, every access is type-checked, checksums are verified.
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
// Whether it reads or writes one item, by its key.
bool is_of_an_item(Action action);

// How a call failed; what DynamoDB said, in one word.
enum class Fault {
  none,
  condition_failed,  // The write's condition did not hold.

  // Final: the same call will fail again.
  no_keys,          // There are no credentials to sign with.
  no_target,        // It is not known which region or URL is meant.
  bad_keys,         // Unknown or wrong keys, or a bad signature.
  expired_keys,     // Temporary keys that have run out.
  access_denied,    // These keys may not do this.
  no_table,         // No such table, or it is not there yet.
  table_in_use,     // The table is there already, or being changed.
  wrong_key,        // The table's key is another than the call's.
  bad_request,      // DynamoDB does not accept what the call says.
  unknown_action,   // This engine has no such action.
  bad_certificate,  // The server's certificate is not trusted.

  // Transient: worth another attempt.
  keys_awaited,    // There are no credentials yet, but may be soon.
  no_memory,       // For the request, or to read its answer.
  unreachable,     // No connection came about.
  disconnected,    // The connection broke before the answer was whole.
  timed_out,       // No answer by the deadline.
  throttled,       // DynamoDB asks for fewer requests.
  server_failure,  // DynamoDB or something before it failed (5xx).
  conflict,        // A transaction or another region has the item.
  bad_answer,      // Not an answer that DynamoDB gives.
  skewed_time,     // Signed for a wrong time; DynamoDB's is known now.

  cancelled,  // The caller gave up.
};
const char* name_of(Fault fault);
// DynamoDB answered, and nothing is wrong.
inline bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}
inline bool is_passing(Fault fault) {
  return fault >= Fault::keys_awaited && fault <= Fault::skewed_time;
}

struct TableDescription;  // description.hpp

// The outcome of a call.
struct Answer {
  // Out of line, because it is large and many functions pass it on.
  Answer();
  Answer(Answer&&) noexcept;
  Answer& operator=(Answer&&) noexcept;
  ~Answer();

  Action action = Action::get_item;
  Fault fault = Fault::none;
  // False only if DynamoDB certainly did not get the request.
  bool sent = false;
  // The answer was longer than the client takes: a bad one.
  bool too_large = false;
  std::size_t bytes = 0;  // Of its body.
  // The keys were refused, but there may be others.
  bool other_keys = false;
  // The part for which DynamoDB cancelled a TransactWriteItems, counted from 0;
  // the first of them if several were refused, but one whose condition did not
  // hold before all others.  `fault` and `message` are that part's.  -1 if
  // DynamoDB names none.
  int part = -1;
  std::chrono::milliseconds retry_after{0};  // As the service asks.
  BootTime sent_at{};                        // Before the request left.
  BootTime received_at{};                    // After the answer came.
  // Its Date, if that is DynamoDB's own and plausible.
  std::optional<ServiceTime> date;
  // GetItem: the item.  UpdateItem: the new item, if requested.  A write whose
  // condition failed: the item that is there.  Nothing if there is none, or the
  // engine does not send it.  Scan and Query: the key at which the next page
  // begins; nothing at the end.
  std::optional<Item> item;
  std::vector<Item> items;  // Of Scan and Query: a page.
  // Of DescribeTable, CreateTable and DeleteTable, if there is no fault.
  std::shared_ptr<const TableDescription> table;
  // These describe a fault.  For people: DynamoDB's words, or what went wrong.
  std::string message;
  std::string request_id;   // DynamoDB's, to quote to its support.
  const char* option = "";  // The option that is wrong; empty if none is.

  // Whether the write may have been applied, or may yet be.
  bool outcome_unknown() const;
  // Copies what there is to tell of a failure.  (All of it, with items, would
  // be half a kilobyte of code.)
  void tell(Answer& to) const;
};

void bad_answer(Answer& answer, const char* why);

// Reads what only some actions answer with: read_page(), read_table() and
// read_cancellation().  The caller passes it, so that a program that makes no
// such calls does not link it.
using Reader = void (*)(Value body, const Wanted& wanted, Answer& answer);

// Reads an answer to a request that was signed for `signed_at`.  The body is
// parsed in place.
Answer read_answer(Action action, sigv4::HttpAnswer&& http,
                   ServiceTime signed_at, Reader reader = nullptr,
                   const Wanted& wanted = {});

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANSWER_HPP
