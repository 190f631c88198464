// The simulated world (tests/world): lives with fixed seeds, and of the seeds
// that have found a defect.  `make world` lives other seeds.  And its DynamoDB:
// next to an engine on random requests, and by itself where that engine is
// wrong.
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/engine.hpp"
#include "tests/support/process.hpp"
#include "tests/support/shell.hpp"
#include "tests/world/dynamodb/random_requests.hpp"
#include "tests/world/dynamodb/service.hpp"

using rapidjson::Document;
using tests::Ran;
using tests::shell;
using world::Reply;
using world::dynamodb::RandomRequest;
using Json = rapidjson::Value;

// === Lives ===================================================================

namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr const char* kLives = "20";
#else
constexpr const char* kLives = "100";
#endif

Ran run_world(const std::string& words) {
  return shell(tests::program_path("world/world") + " " + words);
}

// Lives that once went wrong.  What a seed draws changes with plan.cpp and the
// programs' steps: then `tests/mutants/run world` says which seed finds it.
struct Found {
  const char* seed;
  const char* mutant;  // It takes the remedy away.
  const char* what;
};
constexpr Found kFound[] = {
    {"19", "freed-by-force-for-ever",
     "who was freed by force before it heard of its take waited for ever"},
    {"6", "written-before-the-key-was-read",
     "a table with another key let two in"},
    {"2", "holder-no-pause-margin",
     "a lease was counted on while the machine stood still"},
    {"33", "stamped-after-a-long-silence",
     "a lease that was stored after a long silence ended minutes late"},
    {"30", "any-of-no-deadline", "a large table was read for too long"},
    {"1050", "refused-write-waits-for-a-renewal",
     "a lock was owned that a guarded write had found lost"},
    {"2", "callback-waits-for-itself", "a callback waited for its own process"},
};

}  // namespace

BOOST_AUTO_TEST_SUITE(simulated_world)

BOOST_AUTO_TEST_CASE(nothing_goes_wrong_in_lives_of_fixed_seeds) {
  const Ran ran = run_world(std::string("lives ") + kLives + " 1");
  BOOST_TEST(ran.status == 0, ran.said);
  BOOST_TEST(ran.said.find("\n" + std::string(kLives) + " lives, ") !=
             ran.said.npos);
  BOOST_TEST(ran.said.find(" faults, 0 wrong\n") != ran.said.npos);
}

BOOST_AUTO_TEST_CASE(nothing_goes_wrong_in_lives_that_found_a_defect) {
  for (const Found& found : kFound) {
    const Ran ran = run_world(std::string("seed ") + found.seed);
    BOOST_TEST(ran.status == 0,
               found.mutant << ": " << found.what << ": " << ran.said);
  }
}

// Connections that grow old or idle need no other, and those that break need no
// name.
BOOST_AUTO_TEST_CASE(locks_are_held_for_half_an_hour_without_name_resolution) {
  for (const char* life : {"names 1", "names 2", "refused 1", "refused 2"}) {
    const Ran ran = run_world(life);
    BOOST_TEST(ran.said == "all locks were held\n");
    BOOST_TEST(ran.status == 0);
  }
}

BOOST_AUTO_TEST_CASE(same_seed_tells_the_same_story) {
  const Ran once = run_world("stories 5 1");
  BOOST_TEST(once.status == 0, once.said);
  BOOST_TEST(run_world("stories 5 1").said == once.said);
  BOOST_TEST(std::count(once.said.begin(), once.said.end(), '\n') == 5);
}

BOOST_AUTO_TEST_SUITE_END()

// === The simulated DynamoDB ==================================================

namespace {

struct Fixture {
  Fixture() { service.create_table("locks", {"name", ""}); }

  // Its status, and what it says behind the type's name.
  std::string call(const char* operation, const std::string& body) {
    const world::Reply reply =
        service.call(operation, R"({"TableName":"locks",)" + body + "}");
    return std::to_string(reply.status) + " " +
           reply.body.substr(reply.body.find('#') + 1);
  }
  std::string update(const std::string& expression, const std::string& values,
                     const std::string& more = "") {
    return call("UpdateItem",
                R"("Key":{"name":{"S":"a"}},"UpdateExpression":")" +
                    expression + "\"" +
                    (values.empty()
                         ? ""
                         : R"(,"ExpressionAttributeValues":{)" + values + "}") +
                    more);
  }
  world::Service service;
};

bool begins(const std::string& text, const std::string& with) {
  return text.compare(0, with.size(), with) == 0;
}

// --- Next to an engine -------------------------------------------------------

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
    // Each service scans in an order of its own.
    const bool is_set =
        name == "SS" || name == "NS" || name == "BS" || name == "Items";
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
};

struct Difference {
  const char* what;
  const char* documentation;
  bool (*is)(const Case& one);
};

const Difference kDifferences[] = {
    {"the engine cancels a transaction that is not valid whatever the items "
     "are",
     "API reference, TransactWriteItems, Cancellation reason codes: what "
     "ValidationError may mean; none of it can be told without the items",
     [](const Case& one) {
       return one.is("TransactWriteItems") && !one.we_say("Transaction ") &&
              one.ours.type == "ValidationException" &&
              one.engines.type == "TransactionCanceledException";
     }},
    {"the engine looks at the token before it looks at the rest",
     "API reference, TransactWriteItems, ClientRequestToken: it is of requests "
     "that have been carried out; this one could not be",
     [](const Case& one) {
       return (one.ours.type == "ValidationException" ||
               one.ours.type == "ResourceNotFoundException") &&
              one.engines.type == "IdempotentParameterMismatchException";
     }},
    {"the engine tells the key as ALL_OLD of an item that was not there",
     "API reference, UpdateItem, ReturnValues: all of the attributes of the "
     "item, as they appeared before the UpdateItem operation",
     [](const Case& one) {
       return one.is("UpdateItem") && one.has(R"("ReturnValues":"ALL_OLD")") &&
              one.ours.content == "{}" && one.engines.status == 200;
     }},
};

// Sends each request to both, and says how they differ.
class Comparison {
 public:
  explicit Comparison(unsigned seed) : requests_(seed) { begin_anew(); }

  // Empty: not at all, or on purpose.
  std::string next() {
    const RandomRequest request = requests_.next();
    const Answer ours = answer_of(ours_->call(request.operation, request.body));
    const auto http = engine_.call(request.operation, request.body);
    const Answer engines = answer_of({http.status, http.body});
    if (ours.status == engines.status && ours.content == engines.content) {
      return "";
    }
    const Case one{request, ours, engines};
    const bool is_known =
        std::any_of(std::begin(kDifferences), std::end(kDifferences),
                    [&](const Difference& known) { return known.is(one); });
    begin_anew();
    return is_known ? ""
                    : request.operation + " " + request.body +
                          "\n  here: " + std::to_string(ours.status) + " " +
                          ours.content + " " + ours.message +
                          "\n  engine: " + std::to_string(engines.status) +
                          " " + engines.content;
  }

 private:
  // After a difference, so that no other follows from it.
  void begin_anew() {
    requests_.use_new_tokens();
    ours_.emplace();
    ours_->create_table("locks", {"name", ""});
    ours_->create_table("sorted", {"name", "part"});
    for (const std::string table : {"locks", "sorted"}) {
      tests::TableKey key = {{"name"}};
      if (table == "sorted") key.push_back({"part"});
      engine_.call("DeleteTable", R"({"TableName":")" + table + "\"}");
      engine_.create_table_named(table, key);
    }
  }

  world::dynamodb::RandomRequests requests_;
  std::optional<world::Service> ours_;
  tests::Engine engine_{tests::EngineKind::dynoxide};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(world_dynamodb)

BOOST_AUTO_TEST_CASE(it_answers_random_requests_as_an_engine_does) {
  if (tests::any_engine_kind() != tests::EngineKind::dynoxide) return;
  Comparison comparison(9);
  for (int i = 0; i < 1000; ++i) BOOST_TEST(comparison.next() == "");
}

BOOST_FIXTURE_TEST_CASE(what_no_client_sends_is_refused_as_not_simulated,
                        Fixture) {
  const std::string refused = "501 NotSimulated";
  BOOST_TEST(begins(
      call("GetItem", R"("Key":{"name":{"S":"a"}},"ConsistantRead":true)"),
      refused));
  BOOST_TEST(begins(call("BatchGetItem", R"("Keys":[])"), refused));
  for (const char* expression :
       {"SET x.y = :x", "SET x[1] = :x", "SET x = y", "SET x = x + :x",
        "SET x = if_not_exists(x, :x)", "DELETE x :x"}) {
    const std::string said = update(expression, R"(":x":{"N":"1"})");
    BOOST_TEST(begins(said, refused), expression << ": " << said);
  }
  BOOST_TEST(begins(update("ADD x :x", R"(":x":{"SS":["a"]})"), refused));
  BOOST_TEST(begins(update("SET x = :x", R"(":x":{"N":"1"})",
                           R"(,"ReturnValues":"UPDATED_NEW")"),
                    refused));
  BOOST_TEST(begins(
      call(
          "DeleteItem",
          R"("Key":{"name":{"S":"a"}},"ConditionExpression":)"
          R"x("contains(x, :x)","ExpressionAttributeValues":{":x":{"N":"1"}})x"),
      refused));
  BOOST_TEST(
      begins(call("Query", R"("KeyConditionExpression":"x > :x",)"
                           R"("ExpressionAttributeValues":{":x":{"S":"1"}})"),
             refused));
}

BOOST_AUTO_TEST_SUITE_END()
