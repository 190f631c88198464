#include "dynamodb/table.hpp"

#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using std::chrono::nanoseconds;

namespace {

// For one request.  DynamoDB takes longer over tables than over items.
constexpr std::chrono::seconds kRequestTime{10};

// Between two looks at a table that is changing.
constexpr std::chrono::milliseconds kFirstPause{25};
constexpr std::chrono::milliseconds kLongestPause{2000};

// --- Requests --------------------------------------------------------------

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void write_string(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write_pair(Writer& writer, std::string_view name, std::string_view value) {
  write_string(writer, name);
  write_string(writer, value);
}

// "list":[{"AttributeName":"name","other":"value"}]
void write_attribute_list(Writer& writer, std::string_view list,
                          std::string_view name, std::string_view other,
                          std::string_view value) {
  write_string(writer, list);
  writer.StartArray();
  writer.StartObject();
  write_pair(writer, "AttributeName", name);
  write_pair(writer, other, value);
  writer.EndObject();
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
  write_pair(writer, "BillingMode", "PAY_PER_REQUEST");
  write_attribute_list(writer, "AttributeDefinitions", schema.key,
                       "AttributeType", "S");
  write_attribute_list(writer, "KeySchema", schema.key, "KeyType", "HASH");
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
        retry_(budget, Retry::Urgency::waits),
        deadline_(deadline),
        waker_(waker != nullptr ? *waker : own_waker_) {}

  // Until an answer is no passing fault, or there is no time for another.
  Answer ask(Action action, const std::string& body);
  // Before the next look at what is changing; the longer it takes, the longer.
  // False if deadline or waker came first.
  bool pause();
  // What to say then.
  Answer gave_up(Answer last) const;

 private:
  bool wait(nanoseconds time);

  Client& client_;
  RetryBudget& budget_;
  Retry retry_;
  const BootTime deadline_;
  sigv4::Waker own_waker_;  // Before waker_, which may refer to it.
  sigv4::Waker& waker_;
  nanoseconds longest_pause_ = kFirstPause;
};

Answer Talk::ask(Action action, const std::string& body) {
  for (;;) {
    const BootTime now = BootClock::now();
    if (waker_.woken() || now >= deadline_) {
      Answer unsent;
      unsent.action = action;
      unsent.sent_at = unsent.received_at = now;
      return gave_up(std::move(unsent));
    }
    Answer answer = client_.call(
        action, body, std::min(deadline_, now + kRequestTime), waker_);
    if (answer.fault == Fault::none) {
      retry_.success();
      return answer;
    }
    if (answer.fault == Fault::cancelled) return answer;
    const auto delay = retry_.after(answer);
    if (!delay || deadline_ - BootClock::now() <= *delay) return answer;
    wait(*delay);
  }
}

bool Talk::pause() {
  const nanoseconds time = budget_.jitter(longest_pause_);
  longest_pause_ = std::min<nanoseconds>(2 * longest_pause_, kLongestPause);
  return wait(time);
}

bool Talk::wait(nanoseconds time) {
  const BootTime now = BootClock::now();
  sigv4::drive(nullptr, 0, std::min(deadline_, now + time), &waker_);
  return !waker_.woken() && BootClock::now() < deadline_;
}

Answer Talk::gave_up(Answer last) const {
  const bool woken = waker_.woken();
  last.fault = woken ? Fault::cancelled : Fault::timed_out;
  last.message = woken ? "woken before another request was sent"
                       : "the deadline has passed";
  if (last.table) last.message += "; the table is " + last.table->status;
  return last;
}

// --- What is made of several -----------------------------------------------

Answer without_fault(Answer answer) {
  answer.fault = Fault::none;
  answer.code.clear();
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

bool is_on_already(const Answer& answer) {
  return answer.fault == Fault::bad_request &&
         answer.code == "ValidationException" &&
         answer.message == "TimeToLive is already enabled";
}

Answer switch_ttl_on(Talk& talk, const TableSchema& schema) {
  const std::string body = write_time_to_live(schema);
  for (;;) {
    Answer answer = talk.ask(Action::update_time_to_live, body);
    if (answer.fault == Fault::unknown_action || is_on_already(answer)) {
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

bool is_keyed_by(const TableDescription& table, const std::string& key) {
  using Key = TableDescription::Key;
  return table.keys.size() == 1 && table.keys[0].name == key &&
         table.keys[0].role == Key::Role::partition &&
         table.keys[0].type == Attribute::Type::string;
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
  if (!is_keyed_by(*active.table, schema.key)) return active;
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
  std::optional<TableDescription> deleted;  // Once DynamoDB has agreed.
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
