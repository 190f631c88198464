// What an answer of DynamoDB's means: its item or its table, or its failure by
// name.
//
// Pure functions.  Nothing an answer holds is trusted: JSON is parsed without
// recursion, every access is type-checked, checksums are verified.
#ifndef DDBMUTEX_ANSWER_HPP
#define DDBMUTEX_ANSWER_HPP

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "../sigv4/http.hpp"
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
bool is_passing(Fault fault);

// A table as DynamoDB tells it.
struct TableDescription {
  struct Key {
    enum class Role { partition, sort };  // "HASH", "RANGE"
    std::string name;
    Role role = Role::partition;
    Attribute::Type type = Attribute::Type::other;
  };
  // "CREATING", "UPDATING", "DELETING", "ACTIVE", and rarer ones.
  std::string status;
  // Not that of a later table of the same name.  Empty if the engine has none.
  std::string id;
  // In the order told.  Empty only where nothing is told of them, as may be of
  // a table that is being deleted.
  std::vector<Key> keys;
  // There are replicas in other regions that see a write only later, so that a
  // condition which holds here may not hold there.  Those of global tables of
  // the legacy version (2017.11.29) are seen only if DynamoDB tells the version
  // here; DescribeGlobalTable alone is sure to.
  bool eventual_replicas = false;
};

struct Answer {
  Action action = Action::get_item;
  Fault fault = Fault::none;
  // False only if DynamoDB certainly did not get the request.
  bool sent = false;
  int http_status = 0;  // 0 if no answer came.
  // The answer was longer than the client takes: a bad one.
  bool too_large = false;
  // GetItem's item; of an UpdateItem, the item as it is then, if that was asked
  // for; of a write whose condition failed, the item as it is.  Nothing if
  // there is none, or the engine does not tell.
  std::optional<Item> item;
  // Of Scan and Query: a page, and where the next one begins; nothing at the
  // end.
  std::vector<Item> items;
  std::optional<Item> next;
  // Of a TransactWriteItems that was cancelled, for each of its parts: a code,
  // "None" or "ConditionalCheckFailed", say, and DynamoDB's words.  The fault
  // is condition_failed if the condition of one did not hold; of which, this
  // tells.  Empty if DynamoDB cancelled nothing, or does not tell why.
  struct Reason {
    std::string code;
    std::string message;
  };
  std::vector<Reason> reasons;
  // Of DescribeTable, CreateTable and DeleteTable, if there is no fault.
  std::optional<TableDescription> table;
  std::string code;        // "ThrottlingException"; empty if none was told.
  std::string message;     // For people: DynamoDB's words, or what went wrong.
  std::string request_id;  // DynamoDB's, to quote to its support.
  std::chrono::milliseconds retry_after{0};  // As the service asks.
  // Where the keys were from, for people; empty if there is no fault.
  std::string keys_from;
  // Which option would mend it; empty if none would.
  std::string option;
  // These keys will not do, but others are being fetched.
  bool other_keys = false;
  BootTime sent_at{};      // Before the request left.
  BootTime received_at{};  // After the answer came.

  // May the write have been applied, or be yet?
  bool outcome_unknown() const;
};

// What an answer's body and headers mean; pure.  `signed_at` is the time that
// the request was signed for.
Answer read_answer(Action action, const sigv4::HttpAnswer& http,
                   ServiceTime signed_at);
// The Date of an answer if it is DynamoDB's own and to be believed.
std::optional<ServiceTime> date_of(const sigv4::HttpAnswer& http);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANSWER_HPP
