// What an answer of DynamoDB's means: its item or its table, or its failure by
// name.
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

#include "../sigv4/http_answer.hpp"
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

// Whether there are the parts "manage", which sends those of tables, and
// "guard", which sends transactions.
#ifdef DDBMUTEX_NO_MANAGE
constexpr bool kManages = false;
#else
constexpr bool kManages = true;
#endif
#ifdef DDBMUTEX_NO_GUARD
constexpr bool kTransacts = false;
#else
constexpr bool kTransacts = true;
#endif

// How a call failed.
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
  bad_certificate,  // The server is not who it should be.

  // Passing: worth another attempt.
  keys_awaited,    // There are no credentials yet, but may be soon.
  no_memory,       // For the request, or to read its answer.
  unreachable,     // No connection came about.
  disconnected,    // The connection broke before the answer was whole.
  timed_out,       // No answer by the deadline.
  throttled,       // DynamoDB asks for fewer requests.
  server_failure,  // DynamoDB or something before it failed (5xx).
  conflict,        // A transaction or another region has the item.
  bad_answer,      // Not an answer that DynamoDB gives.
  skewed_time,     // Signed for another time; DynamoDB's is known now.

  cancelled,  // The caller gave up.
};
const char* name_of(Fault fault);
// By DynamoDB, as a call may be when all is well.
inline bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}
inline bool is_passing(Fault fault) {
  return fault >= Fault::keys_awaited && fault <= Fault::skewed_time;
}

// The sizes of types depend on the parts.  It is in the names of the functions
// that take it, so that files compiled with different macros do not link.
template <bool... kThere>
struct Parts {};
using TheseParts = Parts<kManages,
#ifndef DDBMUTEX_NO_ANY_OF
                         true,
#endif
#ifndef DDBMUTEX_NO_LAYOUTS
                         false,
#endif
                         kReadsMembers>;

struct TableDescription;  // description.hpp

// What became of a call.
struct Answer {
  // Out of line, since many carry answers about and few look into them.
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
  // These keys will not do, but there may be others.
  bool other_keys = false;
  // Of a TransactWriteItems that DynamoDB cancelled: the first of its parts, by
  // place, of those that weigh most (a condition that did not hold does).  The
  // fault and the message are that part's.  -1 if DynamoDB tells of none.
  int part = -1;
  std::chrono::milliseconds retry_after{0};  // As the service asks.
  BootTime sent_at{};                        // Before the request left.
  BootTime received_at{};                    // After the answer came.
  // Its Date, if that is DynamoDB's own and to be believed.
  std::optional<ServiceTime> date;
  // GetItem's item; of an UpdateItem, the item as it is then, if that was asked
  // for; of a write whose condition failed, the item as it is.  Nothing if
  // there is none, or the engine does not tell.  Of Scan and Query: where the
  // next page begins; nothing at the end.
  std::optional<Item> item;
#if !defined(DDBMUTEX_NO_MANAGE) || !defined(DDBMUTEX_NO_ANY_OF)
  std::vector<Item> items;  // Of Scan and Query: a page.
#endif
#ifndef DDBMUTEX_NO_MANAGE
  // Of DescribeTable, CreateTable and DeleteTable, if there is no fault.
  std::shared_ptr<const TableDescription> table;
#endif
  // Of faults alone.  For people: DynamoDB's words, or what went wrong.
  std::string message;
  std::string request_id;   // DynamoDB's, to quote to its support.
  const char* option = "";  // Which one would mend it; empty if none would.

  // May the write have been applied, or be yet?
  bool outcome_unknown() const;
  // Copies what there is to tell of a failure.  (All of it, with items, would
  // be half a kilobyte of code.)
  void tell(Answer& to) const;
};

void bad_answer(Answer& answer, const char* why);

// Reads what the answer to such a call holds beside an item: all of it, where
// all went well; of a transaction, why it was cancelled.  Given by those who
// make such calls (read_page(), read_table(), read_cancellation()), so that a
// program without them carries none of it.
using Reader = void (*)(Value body, const Wanted& wanted, Answer& answer);

// What an answer's body and headers mean; pure.  `signed_at` is the time that
// the request was signed for, `wanted` says what is read of items.  The body is
// parsed in place.
Answer read_answer(Action action, sigv4::HttpAnswer&& http,
                   ServiceTime signed_at, Reader reader = nullptr,
                   const Wanted& wanted = {}, TheseParts = {});

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANSWER_HPP
