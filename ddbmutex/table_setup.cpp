// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// DescribeTable, CreateTable and UpdateTimeToLive: their requests, their order,
// and the waiting for a table that is changing.
#include "table_setup.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sigv4/backoff.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/waiting.hpp"
#include "dynamodb/item.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {

using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::CallContext;
using dynamodb::Fault;
using dynamodb::JsonWriter;

namespace {

// Between two looks at a table that is changing.
constexpr sigv4::Backoff::Limits kPauses{std::chrono::milliseconds(25),
                                         std::chrono::milliseconds(2000)};

// --- Requests ----------------------------------------------------------------

// The names of the attributes that are the table's key.
std::vector<std::string_view> key_names(const TableOptions& options) {
  if (options.sort_key.empty()) return {options.key};
  return {options.key, options.sort_key};
}

void write_billing(JsonWriter& json, const Creation& how) {
  json.name("BillingMode")
      .text(how.throughput ? "PROVISIONED" : "PAY_PER_REQUEST");
  if (!how.throughput) return;
  json.name("ProvisionedThroughput").begin_object();
  json.name("ReadCapacityUnits")
      .json({sigv4::Digits(how.throughput->read_units)});
  json.name("WriteCapacityUnits")
      .json({sigv4::Digits(how.throughput->write_units)});
  json.end_object();
}

// Both attributes of a key are strings.
void write_key(JsonWriter& json, const TableOptions& options) {
  json.name("AttributeDefinitions").begin_list();
  for (const std::string_view name : key_names(options)) {
    json.begin_object();
    json.name("AttributeName").text(name);
    json.name("AttributeType").text("S");
    json.end_object();
  }
  json.end_list();
  json.name("KeySchema").begin_list();
  for (const std::string_view name : key_names(options)) {
    json.begin_object();
    json.name("AttributeName").text(name);
    json.name("KeyType").text(name == options.key ? "HASH" : "RANGE");
    json.end_object();
  }
  json.end_list();
}

sigv4::Text create_table_body(const TableOptions& options,
                              const Creation& how) {
  sigv4::Text body;
  JsonWriter json(body);
  json.begin_object();
  json.name("TableName").text(options.name);
  write_billing(json, how);
  write_key(json, options);
  if (!how.tags.empty()) {
    json.name("Tags").begin_list();
    for (const auto& [name, value] : how.tags) {
      json.begin_object();
      json.name("Key").text(name);
      json.name("Value").text(value);
      json.end_object();
    }
    json.end_list();
  }
  json.end_object();
  return body;
}

// --- One request after the other ---------------------------------------------

// The pauses between two looks at a table that is changing.
struct Pauses {
  const CallContext& context;
  sigv4::Backoff backoff{};

  // False if the deadline or the waker ends the pause; `last` then says so.
  bool pause(Answer& last) {
    const BootTime until =
        BootClock::now() + backoff.next(kPauses, context.budget.random_share());
    sigv4::wait_until(std::min(context.deadline, until), context.waker);
    const bool woken = context.waker->woken();
    if (!woken && BootClock::now() < context.deadline) return true;
    dynamodb::give_up(last, woken);
    if (last.table) {
      sigv4::append(last.message, {"; the table is ", last.table->status});
    }
    return false;
  }
};

// Whether the engine has no clean-up: it refuses UpdateTimeToLive as unknown or
// as invalid.  DynamoDB itself refuses it as invalid only if the table cleans
// up by another attribute: "TimeToLive is active on a different ...".
bool has_no_clean_up(const Answer& answer) {
  const bool invalid = answer.fault == Fault::bad_request &&
                       !sigv4::begins_with(answer.message, "TimeToLive is ");
  return invalid || answer.fault == Fault::unknown_action;
}

// Returns the table once it is ACTIVE.  The loop begins anew each time because
// DescribeTable may lag behind CreateTable, and because a table that is being
// deleted still exists for a while.
Answer wait_until_active(Pauses& pauses, const TableOptions& options,
                         const Creation& how) {
  Answer answer;
  do {
    answer = describe_table(pauses.context, options);
    if (answer.fault == Fault::no_table) {
      answer = dynamodb::ask(pauses.context, Action::create_table,
                             create_table_body(options, how), nullptr,
                             dynamodb::read_table);
    }
    const bool there = answer.fault == Fault::none;
    if (there && answer.table->status == "ACTIVE") return answer;
    if (!there && answer.fault != Fault::table_in_use) return answer;
  } while (pauses.pause(answer));
  return answer;
}

// An answer without a fault if the clean-up is on, or if the engine has none.
Answer turn_on_clean_up(Pauses& pauses, const TableOptions& options) {
  sigv4::Text body;
  JsonWriter json(body);
  json.begin_object();
  json.name("TableName").text(options.name);
  json.name("TimeToLiveSpecification").begin_object();
  json.name("AttributeName").text(lock::kTtlAttribute);
  json.name("Enabled").boolean(true);
  json.end_object();
  json.end_object();
  Answer answer;
  do {
    answer = dynamodb::ask(pauses.context, Action::update_time_to_live, body);
  } while (answer.fault == Fault::table_in_use && pauses.pause(answer));
  if (has_no_clean_up(answer)) return {};
  if (answer.fault != Fault::none) {
    answer.message = sigv4::join(
        {"the table is there, but its clean-up (Creation::clean_up) is not on",
         sigv4::if_any(": ", answer.message)});
  }
  return answer;
}

}  // namespace

std::string wrong_key(const dynamodb::TableDescription& table,
                      const TableOptions& options) {
  if (table.keys_are_strings && table.key == options.key &&
      table.sort_key == options.sort_key) {
    return {};
  }
  return sigv4::join(
      {"its key is not the string ", sigv4::in_quotes(options.key),
       options.sort_key.empty()
           ? std::string(" alone")
           : " with the string " + sigv4::in_quotes(options.sort_key)});
}

ErrorPtr unfit(const dynamodb::TableDescription& table,
               const TableOptions& options) {
  const std::string cannot =
      "cannot use table " + sigv4::in_quotes(options.name);
  const std::string wrong = wrong_key(table, options);
  if (!wrong.empty()) return error_of(Errc::wrong_table, cannot, wrong);
  if (!table.eventual_replicas || options.allow_replicas) return nullptr;
  return error_of(Errc::replicated_table, cannot,
                  "a lock that is held in one region is free in another");
}

Answer describe_table(const CallContext& context, const TableOptions& options) {
  sigv4::Text body;
  JsonWriter json(body);
  json.begin_object();
  json.name("TableName").text(options.name);
  json.end_object();
  return dynamodb::ask(context, Action::describe_table, body, nullptr,
                       dynamodb::read_table);
}

Answer create_table(const CallContext& context, const TableOptions& options,
                    const Creation& how) {
  Pauses pauses{context};
  Answer answer = wait_until_active(pauses, options, how);
  // Only layout ddblock has the attribute `ttl`.  And a table that is unfit is
  // somebody else's: it must not lose items because of us.
  if (answer.fault != Fault::none || !how.clean_up ||
      options.layout != Layout::ddblock || unfit(*answer.table, options)) {
    return answer;
  }
  Answer clean_up = turn_on_clean_up(pauses, options);
  clean_up.table = std::move(answer.table);
  return clean_up;
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
