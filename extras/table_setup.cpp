// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// DescribeTable, CreateTable and UpdateTimeToLive: their requests, their order,
// and the waiting for a table that is changing.
#include "table_setup.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../ddbmutex/dynamodb/item.hpp"
#include "../ddbmutex/lock/row.hpp"
#include "../ddbmutex/row_options.hpp"
#include "../sigv4/backoff.hpp"
#include "../sigv4/log.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/waiting.hpp"

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

  // False if the deadline or the waker ends the pause.  At the deadline `last`
  // stays as it is, because it says what the table's state is.
  bool pause(Answer& last) {
    const BootTime until =
        BootClock::now() + backoff.next(kPauses, context.budget.random_share());
    context.waker->wait_until(std::min(context.deadline, until));
    if (context.waker->woken()) {
      dynamodb::set_cancelled(last);
      return false;
    }
    return BootClock::now() < context.deadline;
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

// Returns the table once its state is a lasting one.  The loop begins anew each
// time because DescribeTable may lag behind CreateTable, and because a table
// that is being deleted still exists for a while.
CreationOutcome find_or_make(Pauses& pauses, const TableOptions& options,
                             const Creation& how) {
  CreationOutcome outcome;
  Answer& answer = outcome.answer;
  // The id of the table that this call has made.  Not set if the answer to
  // CreateTable was lost: then the table may be somebody else's.
  std::optional<std::string> made_id;
  do {
    answer = dynamodb::describe_table(pauses.context, options.name);
    if (answer.fault == Fault::no_table) {
      answer = dynamodb::ask(pauses.context, Action::create_table,
                             create_table_body(options, how), nullptr,
                             dynamodb::read_table);
      if (answer.fault == Fault::none) made_id = answer.table->id;
    }
    const bool there = answer.fault == Fault::none;
    outcome.done.made = there && made_id == answer.table->id;
    if (there && !answer.table->is_passing()) return outcome;
    if (!there && answer.fault != Fault::table_in_use) return outcome;
  } while (pauses.pause(answer));
  return outcome;
}

// Whether create_table() is to turn on the clean-up of the table that it found.
// Says so in the log if it leaves the table as it is.
bool should_clean_up(const CallContext& context, const TableOptions& options,
                     const Creation& how, bool made) {
  using CleanUp = Creation::CleanUp;
  // No other layout has the attribute `ttl`.
  if (!is_ddblock(options) || how.clean_up == CleanUp::never) {
    return false;
  }
  if (made || how.clean_up == CleanUp::always) return true;
  sigv4::say(context.client.log(), sigv4::LogLevel::info,
             sigv4::join({"table ", sigv4::in_quotes(options.name),
                          " was there already, so its clean-up is not turned "
                          "on (Creation::clean_up)"}));
  return false;
}

// Turns on the clean-up of the table that was found.
void turn_on_clean_up(Pauses& pauses, const TableOptions& options,
                      CreationOutcome& outcome) {
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
  outcome.done.cleans_up = answer.fault == Fault::none;
  if (outcome.done.cleans_up || has_no_clean_up(answer)) return;
  answer.message = sigv4::join(
      {"the table is there, but its clean-up (Creation::clean_up) is not on",
       sigv4::if_any(": ", answer.message)});
  answer.table = std::move(outcome.answer.table);
  outcome.answer = std::move(answer);
}

}  // namespace

ErrorPtr unfit(const dynamodb::TableDescription& table,
               const TableOptions& options, Replicas replicas) {
  const std::string cannot =
      "cannot use table " + sigv4::in_quotes(options.name);
  const std::string wrong =
      dynamodb::wrong_key(table, options.key, options.sort_key);
  if (!wrong.empty()) return error_of(Errc::wrong_table, cannot, wrong);
  if (!table.is_usable()) {
    return error_of(Errc::unready_table, cannot,
                    sigv4::join({"it is ", table.status}));
  }
  const bool accepted = replicas == Replicas::accepted;
  if (!table.eventual_replicas || accepted) return nullptr;
  return error_of(Errc::replicated_table, cannot,
                  "a lock that is held in one region is free in another");
}

CreationOutcome create_table(const CallContext& context,
                             const TableOptions& options, const Creation& how) {
  Pauses pauses{context};
  CreationOutcome outcome = find_or_make(pauses, options, how);
  // A table that is unfit is somebody else's.
  if (outcome.answer.fault == Fault::none &&
      !unfit(*outcome.answer.table, options, how.replicas) &&
      should_clean_up(context, options, how, outcome.done.made)) {
    turn_on_clean_up(pauses, options, outcome);
  }
  return outcome;
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
