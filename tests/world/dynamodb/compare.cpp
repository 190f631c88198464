// Sends random requests to the simulated DynamoDB and to engine A, and compares
// what they answer: status, error type and content.
//
//   compare COUNT [SEED]
//
// Messages for people are not compared.  The differences on purpose are listed
// below; DynamoDB's own documentation says what ours does.  The status is 0 if
// there is no other difference.
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"
#include "sigv4/url.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/world/dynamodb/random_requests.hpp"
#include "tests/world/dynamodb/service.hpp"

namespace {

using rapidjson::Document;
using Json = rapidjson::Value;
using world::Reply;
using world::dynamodb::RandomRequest;
namespace sigv4 = ddbmutex::sigv4;

constexpr int kMostShown = 20;
constexpr std::chrono::seconds kAnswerTime{30};

// --- Answers -----------------------------------------------------------------

std::string compact(const Json& json) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  json.Accept(writer);
  return buffer.GetString();
}

std::string joined(std::vector<std::string> members, bool sorted) {
  if (sorted) std::sort(members.begin(), members.end());
  std::string text;
  for (const std::string& member : members) text += member + ",";
  return text;
}

// Answers that mean the same become the same text: members and sets are sorted,
// and messages for people left out.
std::string normal(const Json& json, const std::string& name = "") {
  std::vector<std::string> members;
  if (json.IsArray()) {
    for (const Json& one : json.GetArray()) members.push_back(normal(one));
    const bool is_set = name == "SS" || name == "NS" || name == "BS";
    return "[" + joined(members, is_set) + "]";
  }
  if (!json.IsObject()) return compact(json);
  for (const auto& [key, value] : json.GetObject()) {
    const std::string its_name = key.GetString();
    const bool is_message = its_name == "message" || its_name == "Message";
    if (is_message && value.IsString()) continue;
    members.push_back(its_name + ":" + normal(value, its_name));
  }
  return "{" + joined(members, true) + "}";
}

std::string text_in(const Json& object, const char* name) {
  const auto found = object.FindMember(name);
  const bool there = found != object.MemberEnd() && found->value.IsString();
  return there ? found->value.GetString() : "";
}

struct Answer {
  int status = 0;
  std::string type;  // "ValidationException"; empty with 200.
  std::string content{};
  std::string message{};  // For people.
};

Answer answer_of(const Reply& reply) {
  Document json;
  json.Parse(reply.body.data(), reply.body.size());
  if (json.HasParseError() || !json.IsObject()) {
    return {reply.status, "no JSON", reply.body};
  }
  const std::string type = text_in(json, "__type");
  return {reply.status, type.substr(type.find('#') + 1), normal(json),
          text_in(json, "message")};
}

using Call =
    std::function<Reply(const std::string& operation, const std::string& body)>;

// Each service scans in an order of its own, so all pages of a scan count as
// one answer.
Answer ask(const Call& call, const RandomRequest& request) {
  const auto& [operation, body] = request;
  if (operation != "Scan" || body.empty() || body.back() != '}') {
    return answer_of(call(operation, body));
  }
  std::vector<std::string> items;
  std::int64_t scanned = 0, count = 0;
  std::string start;
  for (int page = 0; page < 100; ++page) {
    const Reply reply =
        call(operation, body.substr(0, body.size() - 1) + start + "}");
    Document json;
    json.Parse(reply.body.data(), reply.body.size());
    if (reply.status != 200 || json.HasParseError()) return answer_of(reply);
    for (const Json& item : json["Items"].GetArray()) {
      items.push_back(normal(item));
    }
    scanned += json["ScannedCount"].GetInt64();
    count += json["Count"].GetInt64();
    if (!json.HasMember("LastEvaluatedKey")) break;
    start = R"(,"ExclusiveStartKey":)" + compact(json["LastEvaluatedKey"]);
  }
  return {200, "",
          joined(items, true) + std::to_string(scanned) + " " +
              std::to_string(count)};
}

// One connection for all requests.
class EngineA {
 public:
  Reply call(const std::string& operation, const std::string& body) {
    tests::start(exchange_, url_,
                 "Content-Type: application/x-amz-json-1.0\n"
                 "X-Amz-Target: DynamoDB_20120810." +
                     operation +
                     "\nX-Amz-Date: 20260101T000000Z\n"
                     "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/"
                     "20260101/us-east-1/dynamodb/aws4_request, "
                     "SignedHeaders=host, Signature=00\n",
                 body);
    sigv4::Exchange* const driven = &exchange_;
    sigv4::drive(&driven, 1, ddbmutex::BootClock::now() + kAnswerTime, nullptr);
    exchange_.end(sigv4::Transport::timed_out);
    if (exchange_.answer().status == 0) {
      throw std::runtime_error("no answer: " + exchange_.answer().error);
    }
    return {exchange_.answer().status, exchange_.answer().body};
  }

 private:
  tests::Engine engine_{tests::EngineKind::dynoxide};
  const std::string url_ = sigv4::normal_url(engine_.url());
  sigv4::Exchange exchange_{sigv4::HttpOptions{}};
};

// --- Differences on purpose --------------------------------------------------

struct Case {
  const RandomRequest& request;
  const Answer& ours;
  const Answer& engines;

  bool is(const char* operation) const {
    return request.operation == operation;
  }
  bool has(const char* text) const {
    return request.body.find(text) != std::string::npos;
  }
  // We refuse it as not valid, with this text.
  bool we_say(const char* text) const {
    return ours.type == "ValidationException" &&
           ours.message.find(text) != std::string::npos;
  }
  // The engine looked at the item, or at all items of a transaction, first.
  bool engine_went_on() const {
    return engines.type == "ConditionalCheckFailedException" ||
           engines.type == "TransactionCanceledException";
  }
};

// An update names an attribute of the key.
bool changes_key(const std::string& body) {
  for (const char* key : {"#na", "name"}) {
    for (const char* before : {"SET ", "remove ", ", ", "ADD "}) {
      if (body.find(std::string(before) + key) != body.npos) return true;
    }
  }
  return false;
}

struct Difference {
  const char* what;
  const char* documentation;
  bool (*is)(const Case& one);
};

const Difference kDifferences[] = {
    {"what no client sends is refused here, so that nothing misspelt goes "
     "unseen",
     "API reference, of each action: no such parameter; or it is not simulated",
     [](const Case& one) { return one.ours.type == "NotSimulated"; }},
    {"the engine looks for the table before it looks at the rest",
     "API reference, Common Errors, ValidationError: what fails to satisfy the "
     "constraints has no effect; there is no table either way",
     [](const Case& one) {
       return one.ours.type == "ValidationException" && one.has("nowhere") &&
              one.engines.type == "ResourceNotFoundException";
     }},
    {"the engine evaluates a condition before it looks for names and values "
     "that are unused or not defined",
     "Developer guide, Expression attribute names (aliases) in DynamoDB: what "
     "is defined must be used; it is no matter of the item",
     [](const Case& one) {
       return (one.we_say("unused in expressions") ||
               one.we_say("not defined")) &&
              (one.engine_went_on() ||
               (one.is("UpdateItem") && !one.has("UpdateExpression")));
     }},
    {"the engine does not look at operands that are wrong whatever the item is",
     "Developer guide, Comparison operator and function reference: BETWEEN has "
     "a lower and an upper bound, attribute_type one of the types listed, "
     "begins_with a string; Using update expressions in DynamoDB: ADD supports "
     "number and set.  That the service wants distinct operands is told by "
     "itself only",
     [](const Case& one) {
       return one.we_say("The BETWEEN operator") ||
              one.we_say("Invalid attribute type name") ||
              one.we_say("Incorrect operand type") ||
              one.we_say("must be distinct");
     }},
    {"the engine cancels a transaction that is not valid whatever the items "
     "are",
     "API reference, TransactWriteItems, Cancellation reason codes: what "
     "ValidationError may mean; none of it can be told without the items",
     [](const Case& one) {
       return one.is("TransactWriteItems") && !one.we_say("Transaction ") &&
              one.ours.type == "ValidationException" &&
              one.engines.type == "TransactionCanceledException";
     }},
    {"the engine takes a path twice in an update of a transaction",
     "API reference, TransactWriteItems, Update: its UpdateExpression is that "
     "of UpdateItem, with which the engine refuses it",
     [](const Case& one) {
       return one.is("TransactWriteItems") && one.we_say("paths overlap");
     }},
    {"the engine takes an empty set, or one with duplicates, inside of a value "
     "or in a transaction's condition",
     "Developer guide, Supported data types and naming rules, Sets: empty sets "
     "are not supported, and each value must be unique",
     [](const Case& one) {
       return one.we_say("may not be empty") ||
              one.we_say("contains duplicates");
     }},
    {"the engine lets a transaction change a key, or evaluates the condition "
     "first",
     "API reference, UpdateItem, Key and UpdateExpression: you cannot update "
     "the primary key attributes",
     [](const Case& one) {
       return (one.is("TransactWriteItems") || one.we_say("part of the key")) &&
              changes_key(one.request.body);
     }},
    {"the engine tells an empty or a wrong key in a transaction as not valid, "
     "or looks for two writes of one item first",
     "API reference, TransactWriteItems, Cancellation reason codes: "
     "ValidationError, One or more parameter values were invalid",
     [](const Case& one) {
       return one.is("TransactWriteItems") &&
              (one.has(R"({"S":""})") || one.has(R"("other":)")) &&
              one.ours.content.find("ValidationError") != std::string::npos &&
              one.engines.type == "ValidationException";
     }},
    {"the engine looks for two writes of one item before it looks for a later "
     "one's table",
     "API reference, TransactWriteItems, Errors: both are told of; the request "
     "is refused either way",
     [](const Case& one) {
       return one.is("TransactWriteItems") && one.has("nowhere") &&
              one.ours.type == "ResourceNotFoundException" &&
              one.engines.type == "ValidationException";
     }},
    {"the engine looks at the token before it looks at the rest",
     "API reference, TransactWriteItems, ClientRequestToken: it is of requests "
     "that have been carried out; this one could not be",
     [](const Case& one) {
       return (one.ours.type == "ValidationException" ||
               one.ours.type == "ResourceNotFoundException") &&
              one.engines.type == "IdempotentParameterMismatchException";
     }},
    {"the engine takes JSON of a wrong type for a value that is not valid, or "
     "tells another fault of the request",
     "Developer guide, DynamoDB low-level API: each attribute value is an "
     "object; no order of the checks is documented",
     [](const Case& one) {
       const std::string& ours = one.ours.type;
       const std::string& engines = one.engines.type;
       const std::string json = "SerializationException";
       const std::string valid = "ValidationException";
       return (ours == json && (engines == valid || one.has(R"(:"true")"))) ||
              (ours == valid && engines == json);
     }},
    {"the engine takes any ReturnValuesOnConditionCheckFailure",
     "API reference, PutItem: Valid Values: ALL_OLD | NONE",
     [](const Case& one) {
       return one.we_say("enum value set") &&
              one.has(R"("ReturnValuesOnConditionCheckFailure":"ALL")");
     }},
    {"the engine tells the key as ALL_OLD of an item that was not there",
     "API reference, UpdateItem, ReturnValues: all of the attributes of the "
     "item, as they appeared before the UpdateItem operation",
     [](const Case& one) {
       return one.is("UpdateItem") && one.has(R"("ReturnValues":"ALL_OLD")") &&
              one.ours.content == "{}" && one.engines.status == 200;
     }},
    {"the engine looks for a partition that no key can have",
     "Developer guide, Key condition expressions for the Query operation: a "
     "value is of the key's type; Supported data types and naming rules, "
     "String: empty strings are not allowed in a key",
     [](const Case& one) {
       return one.is("Query") && one.we_say("One or more parameter values");
     }},
};

// --- The comparison ----------------------------------------------------------

class Comparison {
 public:
  explicit Comparison(unsigned seed) : requests_(seed) { begin_anew(); }

  // False if there was a difference that is not listed.
  bool run(int count) {
    for (int i = 0; i < count; ++i) compare(requests_.next());
    int listed = 0;
    for (const auto& [what, times] : listed_) {
      std::printf("%7d  %s\n", times, what.c_str());
      listed += times;
    }
    std::printf("%d requests, %d differences listed, %d unexpected\n", count,
                listed, unexpected_);
    return unexpected_ == 0;
  }

 private:
  void compare(const RandomRequest& request);
  void begin_anew();

  world::dynamodb::RandomRequests requests_;
  std::optional<world::Service> ours_;
  EngineA engine_;
  std::map<std::string, int> listed_;
  int unexpected_ = 0;
};

// Called after a difference, so that no other follows from it.  It would not be
// enough to delete the row, because the engine may have changed its key.
void Comparison::begin_anew() {
  requests_.use_new_tokens();
  ours_.emplace();
  ours_->create_table("locks", {"name", ""});
  ours_->create_table("sorted", {"name", "part"});
  for (const std::string table : {"locks", "sorted"}) {
    const std::string name = R"({"TableName":")" + table + '"';
    tests::TableKey key = {{"name"}};
    if (table == "sorted") key.push_back({"part"});
    engine_.call("DeleteTable", name + "}");
    engine_.call("CreateTable", name + R"(,"BillingMode":"PAY_PER_REQUEST",)" +
                                    tests::schema_of(key) + "}");
  }
}

void Comparison::compare(const RandomRequest& request) {
  const auto call_ours = [this](const std::string& operation,
                                const std::string& body) {
    return ours_->call(operation, body);
  };
  const auto call_engine = [this](const std::string& operation,
                                  const std::string& body) {
    return engine_.call(operation, body);
  };
  const Answer ours = ask(call_ours, request);
  const Answer engines = ask(call_engine, request);
  if (ours.status == engines.status && ours.content == engines.content) return;
  const Case one{request, ours, engines};
  const auto* found =
      std::find_if(std::begin(kDifferences), std::end(kDifferences),
                   [&](const Difference& known) { return known.is(one); });
  if (found != std::end(kDifferences)) {
    ++listed_[found->what];
  } else if (++unexpected_ <= kMostShown) {
    std::printf("%s %s\n  here:   %d %s %s\n  engine: %d %s\n",
                request.operation.c_str(), request.body.c_str(), ours.status,
                ours.content.c_str(), ours.message.c_str(), engines.status,
                engines.content.c_str());
  }
  if (!one.is("GetItem") && !one.is("Scan") && !one.is("Query")) begin_anew();
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  if (argc < 2 || argc > 3 || count < 1) {
    std::fprintf(stderr, "usage: compare COUNT [SEED]\n");
    return 2;
  }
  const unsigned seed =
      argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10))
               : std::random_device{}() % 1000000;
  std::printf(
      "%d random requests to the simulated DynamoDB and to engine A, "
      "SEED=%u\n",
      count, seed);
  std::fflush(stdout);
  try {
    return Comparison(seed).run(count) ? 0 : 1;
  } catch (const std::exception& fault) {
    std::fprintf(stderr, "compare: %s\n", fault.what());
    return 2;
  }
}
