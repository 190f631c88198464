#include "table_setup.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>

#include "ask.hpp"
#include "json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::nanoseconds;

namespace {

// Between two looks at a table that is changing.
constexpr std::chrono::milliseconds kFirstPause{25};
constexpr std::chrono::milliseconds kLongestPause{2000};

// --- Requests --------------------------------------------------------------

std::string write_name(const std::string& table) {
  std::string body;
  append_form(body, R"({"TableName":$})", {table});
  return body;
}

std::string write_creation(const TableSchema& schema) {
  std::string body;
  append_form(body, R"({"TableName":$,"BillingMode":)", {schema.table});
  if (const auto& units = schema.throughput) {
    append_form(body,
                R"("PROVISIONED","ProvisionedThroughput":)"
                R"({"ReadCapacityUnits":%,"WriteCapacityUnits":%})",
                {std::to_string(units->read_units),
                 std::to_string(units->write_units)});
  } else {
    body += R"("PAY_PER_REQUEST")";
  }
  const bool sorted = !schema.sort_key.empty();
  append_form(body,
              R"(,"AttributeDefinitions":[)"
              R"({"AttributeName":$,"AttributeType":"S"})",
              {schema.key});
  if (sorted) {
    append_form(body, R"(,{"AttributeName":$,"AttributeType":"S"})",
                {schema.sort_key});
  }
  append_form(body, R"(],"KeySchema":[{"AttributeName":$,"KeyType":"HASH"})",
              {schema.key});
  if (sorted) {
    append_form(body, R"(,{"AttributeName":$,"KeyType":"RANGE"})",
                {schema.sort_key});
  }
  const char* form = R"(],"Tags":[{"Key":$,"Value":$})";
  for (const auto& [key, value] : schema.tags) {
    append_form(body, form, {key, value});
    form = R"(,{"Key":$,"Value":$})";
  }
  return body += "]}";
}

std::string write_time_to_live(const TableSchema& schema) {
  std::string body;
  append_form(body,
              R"({"TableName":$,"TimeToLiveSpecification":)"
              R"({"AttributeName":$,"Enabled":true}})",
              {schema.table, schema.ttl});
  return body;
}

// --- One request after the other -------------------------------------------

class Talk {
 public:
  Talk(Client& client, RetryBudget& budget, BootTime deadline,
       sigv4::Waker* waker)
      : client_(client),
        budget_(budget),
        waiting_{deadline, waker != nullptr ? waker : &own_waker_} {}
  Talk(const Talk&) = delete;
  Talk& operator=(const Talk&) = delete;

  Answer ask(Action action, const std::string& body) {
    return dynamodb::ask(client_, budget_, action, body, waiting_);
  }
  // Before the next look at what is changing; the longer it takes, the longer.
  // False if deadline or waker came first.
  bool pause();
  // What to say then.
  Answer gave_up(Answer last) const;

 private:
  Client& client_;
  RetryBudget& budget_;
  sigv4::Waker own_waker_;  // Before waiting_, which may point to it.
  const Waiting waiting_;
  nanoseconds longest_pause_ = kFirstPause;
};

bool Talk::pause() {
  const nanoseconds time = budget_.jitter(longest_pause_);
  longest_pause_ = std::min<nanoseconds>(2 * longest_pause_, kLongestPause);
  const BootTime until = BootClock::now() + time;
  sigv4::drive(nullptr, 0, std::min(waiting_.deadline, until), waiting_.waker);
  return !waiting_.waker->woken() && BootClock::now() < waiting_.deadline;
}

Answer Talk::gave_up(Answer last) const {
  last = dynamodb::gave_up(std::move(last), waiting_.waker->woken());
  if (last.table) last.message += "; the table is " + last.table->status;
  return last;
}

// --- What is made of several -----------------------------------------------

Answer without_fault(Answer answer) {
  answer.fault = Fault::none;
  answer.message.clear();
  return answer;
}

// DescribeTable may lag behind CreateTable, and a table that is being deleted
// is there until it is not: so what is not there is created, however often.
Answer wait_until_active(Talk& talk, const TableSchema& schema) {
  const std::string name = write_name(schema.table);
  const std::string creation = write_creation(schema);
  for (;;) {
    Answer answer = talk.ask(Action::describe_table, name);
    if (answer.fault == Fault::no_table) {
      answer = talk.ask(Action::create_table, creation);
    }
    const bool there = answer.fault == Fault::none;
    if (there && answer.table->status == "ACTIVE") return answer;
    if (!there && answer.fault != Fault::table_in_use) return answer;
    if (!talk.pause()) return talk.gave_up(std::move(answer));
  }
}

Answer switch_ttl_on(Talk& talk, const TableSchema& schema) {
  const std::string body = write_time_to_live(schema);
  for (;;) {
    Answer answer = talk.ask(Action::update_time_to_live, body);
    if (answer.fault == Fault::unknown_action) {
      return without_fault(std::move(answer));
    }
    if (answer.fault != Fault::table_in_use) return answer;
    if (!talk.pause()) return talk.gave_up(std::move(answer));
  }
}

// Both tell their id, and it is not the same.
bool are_different(const TableDescription& one, const TableDescription& other) {
  return !one.id.empty() && !other.id.empty() && one.id != other.id;
}

}  // namespace

bool is_keyed_by(const TableDescription& table, const std::string& key,
                 const std::string& sort_key) {
  return table.of_strings && table.key == key && table.sort_key == sort_key;
}

Answer describe_table(Client& client, RetryBudget& budget,
                      const std::string& table, BootTime deadline,
                      sigv4::Waker* waker) {
  return Talk(client, budget, deadline, waker)
      .ask(Action::describe_table, write_name(table));
}

Answer create_table(Client& client, RetryBudget& budget,
                    const TableSchema& schema, BootTime deadline,
                    sigv4::Waker* waker) {
  Talk talk(client, budget, deadline, waker);
  Answer active = wait_until_active(talk, schema);
  if (active.fault != Fault::none || schema.ttl.empty()) return active;
  // Somebody else's: its items are not to go because of us.
  if (!is_keyed_by(*active.table, schema.key, schema.sort_key)) return active;
  if (active.table->eventual_replicas && !schema.allow_replicas) return active;
  Answer last = switch_ttl_on(talk, schema);
  if (last.fault == Fault::none) return active;
  last.table = std::move(active.table);
  return last;
}

Answer delete_table(Client& client, RetryBudget& budget,
                    const std::string& table, BootTime deadline,
                    sigv4::Waker* waker) {
  Talk talk(client, budget, deadline, waker);
  const std::string name = write_name(table);
  // Once DynamoDB has agreed.
  std::shared_ptr<const TableDescription> deleted;
  for (;;) {
    Answer answer =
        talk.ask(deleted ? Action::describe_table : Action::delete_table, name);
    if (answer.fault == Fault::no_table) {
      return without_fault(std::move(answer));
    }
    if (answer.fault == Fault::none) {
      if (!deleted) deleted = answer.table;
      if (are_different(*deleted, *answer.table)) return answer;
    } else if (answer.fault != Fault::table_in_use) {
      return answer;
    }
    if (!talk.pause()) return talk.gave_up(std::move(answer));
  }
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
