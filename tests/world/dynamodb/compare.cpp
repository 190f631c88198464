// Sends random requests to the simulated DynamoDB and to engine A, and compares
// what they answer: status, error type and content.
//
//   compare COUNT [SEED]
//
// Messages for people are not compared.  Where the two differ on purpose, the
// difference is listed below, with DynamoDB's own documentation on our side.
// Ends with 0 if there is no other difference.
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
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

std::string_view text_of(const Json& json) {
  return {json.GetString(), json.GetStringLength()};
}

std::string in_brackets(std::vector<std::string> members, bool sorted,
                        const char* brackets) {
  if (sorted) std::sort(members.begin(), members.end());
  std::string text(1, brackets[0]);
  for (const std::string& member : members) text += member + ",";
  return text + brackets[1];
}

std::string compact(const Json& json) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  json.Accept(writer);
  return buffer.GetString();
}

// The same text for answers that say the same: objects and sets have no order,
// nor have a scan's items, and a message is for people.
std::string normal(const Json& json, std::string_view name = {}) {
  std::vector<std::string> members;
  if (json.IsArray()) {
    for (const Json& member : json.GetArray()) {
      members.push_back(normal(member));
    }
    const bool is_set = name == "SS" || name == "NS" || name == "BS";
    return in_brackets(std::move(members), is_set, "[]");
  }
  if (!json.IsObject()) return compact(json);
  for (const auto& [member, value] : json.GetObject()) {
    const std::string_view its_name = text_of(member);
    if (value.IsString() && (its_name == "message" || its_name == "Message")) {
      continue;
    }
    members.push_back(compact(member) + ":" + normal(value, its_name));
  }
  return in_brackets(std::move(members), true, "{}");
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
  Answer answer{reply.status, "", normal(json)};
  const auto type = json.FindMember("__type");
  if (type != json.MemberEnd() && type->value.IsString()) {
    const std::string_view whole = text_of(type->value);
    answer.type = whole.substr(whole.find('#') + 1);
  }
  const auto message = json.FindMember("message");
  if (message != json.MemberEnd()) answer.message = text_of(message->value);
  return answer;
}

// --- The two -----------------------------------------------------------------

// What answers a request, one after the other.
class Answering {
 public:
  virtual ~Answering() = default;
  virtual Reply call(const std::string& operation, const std::string& body) = 0;
  Answer ask(const RandomRequest& request);
  void create_table(const std::string& table);

 private:
  Answer all_pages(const RandomRequest& request);
};

// The order of a scan is up to whoever scans, so all of its pages are told as
// one answer.
Answer Answering::all_pages(const RandomRequest& request) {
  std::vector<std::string> items;
  std::int64_t scanned = 0, count = 0;
  std::string start;
  for (int page = 0; page < 100; ++page) {
    const Reply reply = call(
        "Scan", request.body.substr(0, request.body.size() - 1) + start + "}");
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
          in_brackets(std::move(items), true, "[]") + std::to_string(scanned) +
              " " + std::to_string(count)};
}

Answer Answering::ask(const RandomRequest& request) {
  if (request.operation == "Scan" && !request.body.empty() &&
      request.body.back() == '}') {
    return all_pages(request);
  }
  return answer_of(call(request.operation, request.body));
}

void Answering::create_table(const std::string& table) {
  tests::TableKey key = {{"name"}};
  if (table == "sorted") key.push_back({"part"});
  call("CreateTable", R"({"TableName":")" + table +
                          R"(","BillingMode":"PAY_PER_REQUEST",)" +
                          tests::schema_of(key) + "}");
}

class Simulated : public Answering {
 public:
  Reply call(const std::string& operation, const std::string& body) override {
    return service_.call(operation, body);
  }

 private:
  world::Service service_;
};

// One connection for all requests.
class EngineA : public Answering {
 public:
  EngineA()
      : engine_(tests::EngineKind::dynoxide),
        url_(sigv4::normal_url(engine_.url())),
        exchange_(sigv4::HttpOptions{}) {}

  Reply call(const std::string& operation, const std::string& body) override {
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
  tests::Engine engine_;
  const std::string url_;
  sigv4::Exchange exchange_;
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
  // What we refuse as not valid, and say so.
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
    for (const char* before : {"SET ", "REMOVE ", ", ", "ADD ", "delete "}) {
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
    {"unknown parameters are refused here, so that no misspelt one goes unseen",
     "API reference, of each action: no such parameter",
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
               one.we_say("is not defined")) &&
              (one.engine_went_on() ||
               (one.is("UpdateItem") && !one.has("UpdateExpression")));
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
    {"the engine does not look at the types of values in a transaction",
     "Developer guide, Using update expressions in DynamoDB: ADD and DELETE "
     "support number and set, and set; Comparison operator and function "
     "reference: begins_with and a string",
     [](const Case& one) {
       return one.is("TransactWriteItems") &&
              one.we_say("Incorrect operand type");
     }},
    {"the engine tells JSON of a wrong type in a transaction as not valid, and "
     "elsewhere looks at other things first",
     "Developer guide, DynamoDB low-level API: each attribute value is an "
     "object; it is the same error as in any other request",
     [](const Case& one) {
       return one.ours.type == "SerializationException" &&
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
    {"the engine compares an attribute with itself",
     "Developer guide, Comparison operator and function reference, tells none "
     "of it; the service refuses operands that are not distinct",
     [](const Case& one) { return one.we_say("must be distinct"); }},
    {"the engine takes bounds between which there is nothing",
     "API reference, Condition, BETWEEN: two elements of the same type, and "
     "the "
     "target is greater than, or equal to, the first and less than, or equal "
     "to, the second",
     [](const Case& one) { return one.we_say("The BETWEEN operator"); }},
    {"the engine takes any text for a type",
     "Developer guide, Comparison operator and function reference, "
     "attribute_type: must be one of the following values",
     [](const Case& one) { return one.we_say("Invalid attribute type name"); }},
    {"the engine takes what is inside of an attribute that is not there for "
     "removed",
     "API reference, TransactWriteItems, Cancellation reason codes: the "
     "document path provided in the update expression is invalid for update",
     [](const Case& one) {
       const bool removes = one.has("REMOVE") || one.has("delete");
       return removes &&
              (one.we_say("document path") ||
               (one.is("TransactWriteItems") &&
                one.ours.content.find("ValidationError") != std::string::npos &&
                one.engines.type != "ValidationException"));
     }},
    {"the engine lets a transaction change a key, or evaluates the condition "
     "first",
     "API reference, UpdateItem, Key and UpdateExpression: you cannot update "
     "the primary key attributes",
     [](const Case& one) {
       return (one.is("TransactWriteItems") || one.we_say("part of the key")) &&
              changes_key(one.request.body);
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
    {"the engine looks for two writes of one item before it looks at their "
     "keys",
     "API reference, TransactWriteItems, Cancellation reason codes: "
     "ValidationError; the request is refused either way",
     [](const Case& one) {
       return one.is("TransactWriteItems") && one.has(R"("other":)") &&
              one.ours.content.find("ValidationError") != std::string::npos &&
              one.engines.type == "ValidationException";
     }},
    {"the engine looks for sort keys of another type, and for beginnings that "
     "are numbers",
     "Developer guide, Key condition expressions for the Query operation, and "
     "Comparison operator and function reference, begins_with: a sort key's "
     "value is of its type, and a beginning is a string",
     [](const Case& one) {
       return one.we_say("does not match schema type") ||
              one.we_say("operator or function: begins_with");
     }},
    {"the engine tells the whole list from which an element was removed",
     "API reference, UpdateItem, ReturnValues, UPDATED_OLD: only the updated "
     "attributes",
     [](const Case& one) {
       return one.is("UpdateItem") && one.has("REMOVE") &&
              one.has(R"("ReturnValues":"UPDATED_)") &&
              one.ours.status == 200 && one.engines.status == 200;
     }},
    {"the engine finds nothing inside of a key",
     "Developer guide, Core components of Amazon DynamoDB, Primary key: each "
     "primary key attribute must be a scalar",
     [](const Case& one) {
       return one.we_say("Key attributes must be scalars");
     }},
    {"the engine takes an empty set, or one with duplicates, in a "
     "transaction's "
     "condition",
     "Developer guide, Supported data types and naming rules, Sets: empty sets "
     "are not supported, and each value must be unique",
     [](const Case& one) {
       return one.is("TransactWriteItems") &&
              (one.we_say("may not be empty") ||
               one.we_say("contains duplicates"));
     }},
    {"the engine looks for the partition of an empty key",
     "Developer guide, Supported data types and naming rules, String: empty "
     "strings are not allowed in a key",
     [](const Case& one) {
       return one.is("Query") && one.we_say("empty string value");
     }},
    {"the engine tells an empty key in a transaction as not valid",
     "API reference, TransactWriteItems, Cancellation reason codes: "
     "ValidationError, One or more parameter values were invalid",
     [](const Case& one) {
       return one.is("TransactWriteItems") && one.has(R"({"S":""})") &&
              one.ours.content.find("ValidationError") != std::string::npos &&
              one.engines.type == "ValidationException";
     }},
    {"the engine takes a text for a truth value of NULL",
     "API reference, AttributeValue, NULL: Type: Boolean",
     [](const Case& one) {
       return one.ours.type == "SerializationException" &&
              one.has(R"({"NULL":"true"})");
     }},
};

// --- The comparison ----------------------------------------------------------

class Comparison {
 public:
  explicit Comparison(unsigned seed) : requests_(seed) { begin_anew(); }

  // False if there was a difference that is not listed.
  bool run(int count);

 private:
  void compare(const RandomRequest& request);
  void begin_anew();

  world::dynamodb::RandomRequests requests_;
  Simulated ours_;
  EngineA engine_;
  std::map<std::string, int> listed_;
  int unexpected_ = 0;
};

// After a difference, so that it is the only one.  To delete the row would not
// do, for the engine may have changed its key.
void Comparison::begin_anew() {
  requests_.use_new_tokens();
  for (Answering* one :
       {static_cast<Answering*>(&ours_), static_cast<Answering*>(&engine_)}) {
    for (const char* table : {"locks", "sorted"}) {
      one->call("DeleteTable",
                R"({"TableName":")" + std::string(table) + "\"}");
      one->create_table(table);
    }
  }
}

void Comparison::compare(const RandomRequest& request) {
  const Answer ours = ours_.ask(request);
  const Answer engines = engine_.ask(request);
  if (ours.status == engines.status && ours.content == engines.content) return;
  const Case one{request, ours, engines};
  const auto* found =
      std::find_if(std::begin(kDifferences), std::end(kDifferences),
                   [&](const Difference& known) { return known.is(one); });
  if (found != std::end(kDifferences)) {
    ++listed_[found->what];
  } else if (++unexpected_ <= kMostShown) {
    std::printf("%s %s\n  here:   %d %s\n  engine: %d %s\n",
                request.operation.c_str(), request.body.c_str(), ours.status,
                ours.content.c_str(), engines.status, engines.content.c_str());
  }
  if (!one.is("GetItem") && !one.is("Scan") && !one.is("Query")) begin_anew();
}

bool Comparison::run(int count) {
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
