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

// {"AttributeName":"name","other":"value"}
void write_of_key(Writer& writer, std::string_view name, std::string_view other,
                  std::string_view value) {
  writer.StartObject();
  write_pair(writer, "AttributeName", name);
  write_pair(writer, other, value);
  writer.EndObject();
}

void write_keys(Writer& writer, const TableSchema& schema) {
  const bool sorted = !schema.sort_key.empty();
  write_string(writer, "AttributeDefinitions");
  writer.StartArray();
  write_of_key(writer, schema.key, "AttributeType", "S");
  if (sorted) write_of_key(writer, schema.sort_key, "AttributeType", "S");
  writer.EndArray();
  write_string(writer, "KeySchema");
  writer.StartArray();
  write_of_key(writer, schema.key, "KeyType", "HASH");
  if (sorted) write_of_key(writer, schema.sort_key, "KeyType", "RANGE");
  writer.EndArray();
}

void write_billing(Writer& writer, const TableSchema& schema) {
  write_pair(writer, "BillingMode",
             schema.throughput ? "PROVISIONED" : "PAY_PER_REQUEST");
  if (!schema.throughput) return;
  write_string(writer, "ProvisionedThroughput");
  writer.StartObject();
  write_string(writer, "ReadCapacityUnits");
  writer.Uint64(schema.throughput->read_units);
  write_string(writer, "WriteCapacityUnits");
  writer.Uint64(schema.throughput->write_units);
  writer.EndObject();
}

void write_tags(Writer& writer, const TableSchema& schema) {
  if (schema.tags.empty()) return;
  write_string(writer, "Tags");
  writer.StartArray();
  for (const auto& [key, value] : schema.tags) {
    writer.StartObject();
    write_pair(writer, "Key", key);
    write_pair(writer, "Value", value);
    writer.EndObject();
  }
  writer.EndArray();
}

std::string write_name(const std::string& table) {
  rapidjson::StringBuffer body;
  Writer writer(body);
  writer.StartObject();
  write_pair(writer, "TableName", table);
  writer.EndObject();
  return body.GetString();
}

std::string write_creation(const TableSchema& schema) {
  rapidjson::StringBuffer body;
  Writer writer(body);
  writer.StartObject();
  write_pair(writer, "TableName", schema.table);
  write_billing(writer, schema);
  write_keys(writer, schema);
  write_tags(writer, schema);
  writer.EndObject();
  return body.GetString();
}

std::string write_time_to_live(const TableSchema& schema) {
  rapidjson::StringBuffer body;
  Writer writer(body);
  writer.StartObject();
  write_pair(writer, "TableName", schema.table);
  write_string(writer, "TimeToLiveSpecification");
  writer.StartObject();
  write_pair(writer, "AttributeName", schema.ttl);
  write_string(writer, "Enabled");
  writer.Bool(true);
  writer.EndObject();
  writer.EndObject();
  return body.GetString();
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
