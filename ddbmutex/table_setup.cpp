#include "table_setup.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "../sigv4/text.hpp"
#include "../sigv4/waiting.hpp"
#include "dynamodb/item.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::append_form;
using dynamodb::Caller;
using dynamodb::Fault;
using std::chrono::nanoseconds;

namespace {

// Between two looks at a table that is changing.
constexpr std::chrono::milliseconds kFirstPause{25};
constexpr std::chrono::milliseconds kLongestPause{2000};

// --- Requests ----------------------------------------------------------------

// {"TableName":"locks", and what the caller adds.
sigv4::Text about(const TableOptions& options) {
  sigv4::Text body;
  append_form(body, R"({"TableName":$)", {options.name});
  return body;
}

sigv4::Text creation_of(const TableOptions& options, const Creation& how) {
  sigv4::Text body = about(options);
  if (how.throughput) {
    append_form(body,
                R"(,"BillingMode":"PROVISIONED","ProvisionedThroughput":)"
                R"({"ReadCapacityUnits":%,"WriteCapacityUnits":%})",
                {sigv4::Digits(how.throughput->read_units),
                 sigv4::Digits(how.throughput->write_units)});
  } else {
    body += R"(,"BillingMode":"PAY_PER_REQUEST")";
  }
  const std::string& key = options.key;
  const std::string& sort_key = options.sort_key;
  if (sort_key.empty()) {
    append_form(body,
                R"(,"AttributeDefinitions":[)"
                R"({"AttributeName":$,"AttributeType":"S"}],"KeySchema":[)"
                R"({"AttributeName":$,"KeyType":"HASH"}])",
                {key, key});
  } else {
    append_form(body,
                R"(,"AttributeDefinitions":[)"
                R"({"AttributeName":$,"AttributeType":"S"},)"
                R"({"AttributeName":$,"AttributeType":"S"}],"KeySchema":[)"
                R"({"AttributeName":$,"KeyType":"HASH"},)"
                R"({"AttributeName":$,"KeyType":"RANGE"}])",
                {key, sort_key, key, sort_key});
  }
  const char* before = R"(,"Tags":[)";
  for (const auto& [name, value] : how.tags) {
    append_form(body, R"(%{"Key":$,"Value":$})", {before, name, value});
    before = ",";
  }
  body += how.tags.empty() ? "}" : "]}";
  return body;
}

// --- One request after the other ---------------------------------------------

// Waits for a table that is changing.
struct Pauses {
  const Caller& caller;
  nanoseconds longest = kFirstPause;

  // Before the next look; the longer it takes, the longer.  If deadline or
  // waker comes first, false, and `last` says that.
  bool pause(Answer& last) {
    const BootTime until = BootClock::now() + caller.budget.jitter(longest);
    longest = std::min<nanoseconds>(2 * longest, kLongestPause);
    sigv4::drive(nullptr, 0, std::min(caller.deadline, until), caller.waker);
    const bool woken = caller.waker->woken();
    if (!woken && BootClock::now() < caller.deadline) return true;
    dynamodb::give_up(last, woken);
    if (last.table) {
      sigv4::append(last.message, {"; the table is ", last.table->status});
    }
    return false;
  }
};

// Whether an engine has no clean-up of its own: it refuses the action as
// unknown or as invalid.  DynamoDB itself refuses it as invalid if the table
// has a clean-up by another attribute: "TimeToLive is active on a different
// ...".
bool has_no_clean_up(const Answer& answer) {
  const bool invalid = answer.fault == Fault::bad_request &&
                       !sigv4::begins_with(answer.message, "TimeToLive is ");
  return invalid || answer.fault == Fault::unknown_action;
}

}  // namespace

std::string wrong_key(const dynamodb::TableDescription& table,
                      const TableOptions& options) {
  if (table.of_strings && table.key == options.key &&
      table.sort_key == options.sort_key) {
    return {};
  }
  return sigv4::format("its key is not the string %q%s%[ with the string %q%]",
                       options.key, options.sort_key.empty() ? " alone" : "",
                       options.sort_key);
}

ErrorPtr unfit(const dynamodb::TableDescription& table,
               const TableOptions& options) {
  const std::string doing = sigv4::format("cannot use table %q", options.name);
  const std::string wrong = wrong_key(table, options);
  if (!wrong.empty()) return error_of(Errc::wrong_table, doing, wrong);
  if (!table.eventual_replicas || options.allow_replicas) return nullptr;
  return error_of(Errc::replicated_table, doing,
                  "a lock that is held in one region is free in another");
}

Answer describe_table(const Caller& caller, const TableOptions& options) {
  sigv4::Text body = about(options);
  body += '}';
  return dynamodb::ask(caller, Action::describe_table, body, nullptr,
                       dynamodb::read_table);
}

Answer create_table(const Caller& caller, const TableOptions& options,
                    const Creation& how) {
  Pauses changing{caller};
  Answer answer;
  // DescribeTable may lag behind CreateTable, and a table that is being deleted
  // is there until it is not: so what is not there is created, however often.
  do {
    answer = describe_table(caller, options);
    if (answer.fault == Fault::no_table) {
      answer =
          dynamodb::ask(caller, Action::create_table, creation_of(options, how),
                        nullptr, dynamodb::read_table);
    }
    const bool there = answer.fault == Fault::none;
    if (there && answer.table->status == "ACTIVE") break;
    if (!there && answer.fault != Fault::table_in_use) break;
  } while (changing.pause(answer));
  // `ttl` is an attribute of ddblock's alone.  And in somebody else's table no
  // items are to go because of us.
  if (answer.fault != Fault::none || !how.clean_up ||
      options.layout != Layout::ddblock || unfit(*answer.table, options)) {
    return answer;
  }
  const auto table = std::move(answer.table);
  sigv4::Text body = about(options);
  append_form(
      body, R"(,"TimeToLiveSpecification":{"AttributeName":$,"Enabled":true}})",
      {lock::kTtlAttribute});
  do {
    answer = dynamodb::ask(caller, Action::update_time_to_live, body);
  } while (answer.fault == Fault::table_in_use && changing.pause(answer));
  if (has_no_clean_up(answer)) {
    answer.fault = Fault::none;
    answer.message.clear();
  }
  if (answer.fault != Fault::none) {
    answer.message = sigv4::format(
        "the table is there, but its clean-up (Creation::clean_up) is not "
        "on%[: %s%]",
        answer.message);
  }
  answer.table = table;
  return answer;
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
