// ddbmutex/answer: whatever an HTTP answer holds, what is made of it is safe to
// act on.
//
// The bytes: one each for the action, the status, the transport, the minutes
// between signature and Date; the header lines; a record separator; the body.
#include "ddbmutex/dynamodb/answer.hpp"

#include <algorithm>
#include <boost/crc.hpp>
#include <string>

#include "ddbmutex/dynamodb/description.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/reader_of.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Fault;
using sigv4::HttpAnswer;
using sigv4::Transport;

struct Case {
  Action action;
  HttpAnswer http;
  dynamodb::ServiceTime signed_at;

  Answer read() const {
    return dynamodb::read_answer(action, HttpAnswer(http), signed_at,
                                 tests::reader_of(action));
  }
};

constexpr Action kActions[16] = {
    Action::get_item,
    Action::put_item,
    Action::update_item,
    Action::delete_item,
    Action::describe_table,
    Action::create_table,
    Action::update_time_to_live,
    Action::delete_table,
    Action::scan,
    Action::query,
    Action::transact_write_items,
    Action::get_item,
    Action::update_item,
    Action::scan,
    Action::query,
    Action::transact_write_items,
};
constexpr int kStatuses[16] = {200, 400, 403, 500, 503, 429, 413, 408,
                               100, 201, 302, 401, 404, 599, 0,   999};
// Mostly complete, or little else would be tried.
constexpr Transport kTransports[16] = {
    Transport::complete,  Transport::complete,    Transport::complete,
    Transport::complete,  Transport::complete,    Transport::complete,
    Transport::complete,  Transport::complete,    Transport::complete,
    Transport::under_way, Transport::unreachable, Transport::bad_certificate,
    Transport::broken,    Transport::too_large,   Transport::timed_out,
    Transport::cancelled,
};

Case case_of(Input input) {
  Case c;
  c.action = kActions[input.choice(16)];
  c.http.status = kStatuses[input.choice(16)];
  c.http.transport = kTransports[input.choice(16)];
  c.http.sent = c.http.transport == Transport::complete ||
                c.http.transport >= Transport::broken;
  c.signed_at =
      std::chrono::seconds(1700000000) + std::chrono::minutes(input.number());
  c.http.headers = input.part();
  c.http.body = input.rest();
  return c;
}

// --- What an answer may say ------------------------------------------------

bool is_of_a_table(Action action) {
  return action == Action::describe_table || action == Action::create_table ||
         action == Action::delete_table;
}

bool is_conditional(Action action) {
  return action == Action::put_item || action == Action::update_item ||
         action == Action::delete_item ||
         action == Action::transact_write_items;
}

bool is_of_pages(Action action) {
  return action == Action::scan || action == Action::query;
}

// Of JSON's blanks.
Bytes trimmed(Bytes json) {
  constexpr Bytes kBlanks = " \t\r\n";
  json.remove_prefix(std::min(json.find_first_not_of(kBlanks), json.size()));
  return json.substr(0, json.find_last_not_of(kBlanks) + 1);
}

void check_success(const Case& c, const Answer& answer) {
  claim(c.http.transport == Transport::complete && c.http.status == 200,
        "success is a whole answer of status 200");
  const Bytes type = c.http.header("content-type");
  claim(c.http.header("x-amzn-RequestId").data() != nullptr ||
            type.find("x-amz-json") != type.npos,
        "success says that it is DynamoDB's");
  const Bytes body = trimmed(c.http.body);
  claim(!body.empty() && body.front() == '{' && body.back() == '}' &&
            body.find('\0') == body.npos,
        "success is a JSON object");
  claim((answer.table != nullptr) == is_of_a_table(c.action),
        "a table is told by the actions that tell it");
  claim(!answer.item || c.action == Action::get_item ||
            c.action == Action::update_item || is_of_pages(c.action),
        "an item is told by GetItem and UpdateItem, a key by pages");
  claim(answer.items.empty() || is_of_pages(c.action),
        "a page is told by Scan and Query");
  claim(!answer.item || !answer.item->empty() || !is_of_pages(c.action),
        "a page begins with some key");
  claim(answer.part < 0, "success needs no reason");
  claim(answer.message.empty() && answer.request_id.empty(),
        "success has no words");
}

// Why a transaction was not carried out.
void check_part(const Case& c, const Answer& answer) {
  const bool transaction = c.action == Action::transact_write_items;
  if (answer.part >= 0) {
    claim(transaction && c.http.status >= 400 && c.http.status < 500,
          "a part is one of a transaction that was refused");
    claim(!answer.outcome_unknown(), "what has a reason was not done");
  }
  claim(!transaction || answer.fault != Fault::condition_failed ||
            answer.part >= 0,
        "a transaction's condition failed in one of its parts");
}

void check_failure(const Case& c, const Answer& answer) {
  claim(!answer.table, "no table without success");
  claim(answer.items.empty(), "no page without success");
  check_part(c, answer);
  if (answer.fault == Fault::condition_failed) {
    claim(is_conditional(c.action), "only a write has a condition to fail");
    claim(c.http.status >= 400 && c.http.status < 500,
          "a condition fails with status 4xx");
  } else {
    claim(!answer.item, "no item but of a failed condition");
  }
  if (answer.fault == Fault::skewed_time) {
    const auto date = answer.date;
    claim(date && (*date - c.signed_at >= std::chrono::minutes(4) ||
                   c.signed_at - *date >= std::chrono::minutes(4)),
          "skewed time is shown by a Date to be believed");
  }
}

// What decides whether a write is tried again or taken for not applied.
void check_certainty(const Case& c, const Answer& answer) {
  claim(answer.sent == c.http.sent, "sent is what the transport says");
  claim(!answer.outcome_unknown() || answer.sent,
        "what was not sent has no outcome");
  if (c.http.transport != Transport::complete) {
    claim(answer.fault != Fault::none && answer.fault != Fault::bad_request,
          "no answer is no verdict");
    return;
  }
  if (c.http.status >= 500) {
    claim(dynamodb::is_transient(answer.fault), "status 5xx is passing");
  }
  const bool refused = c.http.status >= 400 && c.http.status < 500;
  if (!refused && answer.fault != Fault::none) {
    claim(answer.outcome_unknown() || answer.fault == Fault::skewed_time,
          "neither success nor refusal: the outcome is unknown");
  }
}

// --- What its parts hold ---------------------------------------------------

// No value of a type that nobody knows.
bool knows_all_of(const dynamodb::Item& item) {
  return std::all_of(item.begin(), item.end(), [](const auto& attribute) {
    return attribute.type != dynamodb::Attribute::Type::other &&
           knows_all_of(attribute.members);
  });
}

std::string written(const dynamodb::Item& item) {
  sigv4::Text text;
  sigv4::JsonWriter json(text);
  dynamodb::write_item(json, item);
  return text.take();
}

bool has_text(dynamodb::Attribute::Type type) {
  return type <= dynamodb::Attribute::Type::boolean;
}

bool has_members(dynamodb::Attribute::Type type) {
  return type >= dynamodb::Attribute::Type::string_set &&
         type <= dynamodb::Attribute::Type::map;
}

void check_item(const dynamodb::Item& item, int levels) {
  claim(levels >= 0, "an item is nested within bounds");
  for (const dynamodb::Attribute& attribute : item) {
    claim(ddbmutex::sigv4::is_utf8(attribute.name) &&
              ddbmutex::sigv4::is_utf8(attribute.value),
          "an item is of UTF-8");
    claim(has_text(attribute.type) || attribute.value.empty(),
          "no value but of the types that have one");
    claim(has_members(attribute.type) || attribute.members.empty(),
          "no members but of the types that have some");
    claim(find(item, attribute.name) != nullptr, "what is there is found");
    check_item(attribute.members, levels - 1);
  }
}

// What was read can be written, and is then read as the same.
void check_item(const dynamodb::Item& item) {
  check_item(item, 34);
  if (!knows_all_of(item)) return;
  const std::string json = written(item);
  const dynamodb::Document document{std::string(json)};
  claim(document.is_json(), "what is written is JSON");
  dynamodb::Item back;
  claim(dynamodb::read_item(document.root(), back) && written(back) == json,
        "what is written can be read back");
}

void check_table(const dynamodb::TableDescription& table) {
  claim(!table.status.empty(), "a table has a status");
  claim(!table.key.empty() || table.status == "DELETING",
        "a table that is not going has a key");
}

void check_texts(const Case& c, const Answer& answer) {
  claim(answer.retry_after.count() >= 0 &&
            answer.retry_after <= std::chrono::hours(1),
        "nobody waits longer than an hour");
  claim(answer.request_id == c.http.header("x-amzn-requestid") ||
            c.http.transport != Transport::complete ||
            answer.fault == Fault::none,
        "the request id is the header's");
  claim(answer.fault == Fault::none || name_of(answer.fault)[0] != '\0',
        "a fault has a name");
}

void check_checksum(const Case& c) {
  if (c.http.transport != Transport::complete) return;
  if (c.http.header("x-amz-crc32").data() != nullptr) return;
  boost::crc_32_type crc;
  crc.process_bytes(c.http.body.data(), c.http.body.size());
  Case wrong = c;
  wrong.http.headers.insert(
      0, "x-amz-crc32: " + std::to_string(crc.checksum() ^ 1u) + "\n");
  claim(wrong.read().fault == Fault::bad_answer,
        "a wrong checksum is a bad answer");
}

}  // namespace

void answer(Bytes bytes) {
  const Case c = case_of(Input(bytes));
  const Answer answer = c.read();
  if (answer.fault == Fault::none) {
    check_success(c, answer);
  } else {
    check_failure(c, answer);
  }
  check_certainty(c, answer);
  if (answer.item) check_item(*answer.item);
  for (const dynamodb::Item& item : answer.items) check_item(item);
  if (answer.table) check_table(*answer.table);
  check_texts(c, answer);
  check_checksum(c);
}

}  // namespace fuzz
}  // namespace tests
