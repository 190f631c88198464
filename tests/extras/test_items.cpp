// The pages of Scan and Query, where a service fails, loops or has too much to
// say; and what the answers to them and to transactions mean.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "extras/pages.hpp"
#include "extras/transact.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/given.hpp"
#include "tests/support/reader_of.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace sigv4 = ddbmutex::sigv4;
using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Attribute;
using dynamodb::CallContext;
using dynamodb::Client;
using dynamodb::Fault;
using dynamodb::Item;
using dynamodb::Selection;
using dynamodb::ServiceTime;
using sigv4::HttpAnswer;
using sigv4::Transport;

namespace {

constexpr const char* kRegion = "eu-west-1";

sigv4::Credentials keys() {
  return {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
}

// One that asks.
struct Host {
  explicit Host(const ScriptedServer& server, std::size_t max_answer = 1 << 20)
      : table({target_at(server.url(), kRegion),
               given_keys(keys()),
               {},
               {},
               max_answer}) {}

  CallContext context() {
    return {*table.keeper, table.client, table.budget, BootClock::now() + time,
            &waker};
  }
  // What is read is added to `items`, as long as the answer is true.
  Answer read(
      const Selection& selection,
      const std::function<bool()>& goes_on = [] { return true; }) {
    dynamodb::Items all(context(), selection);
    while (const Item* item = all.next()) {
      items.push_back(*item);
      last_is_too_large = all.too_large();
      if (!goes_on()) break;
    }
    Answer told;
    all.answer().copy_fault_to(told);
    told.too_large = all.answer().too_large;
    return told;
  }
  // A service that has no more to say would else be asked for long.
  std::chrono::nanoseconds time = 20s;
  ddbmutex::lock::TableState table;
  sigv4::CallWaker waker;
  std::vector<Item> items;
  bool last_is_too_large = false;  // Of these items.
};

void play(ScriptedServer& server, std::vector<Reply> replies) {
  for (Reply& reply : replies) server.script(std::move(reply));
}

std::string text_of(const Item& item, std::string_view name) {
  const Attribute* attribute = find(item, name);
  return attribute != nullptr ? attribute->value : "(none)";
}

// "a b c": of the partition keys, in order.
std::string names_of(const std::vector<Item>& items) {
  std::string all;
  for (const Item& item : items) {
    all += (all.empty() ? "" : " ") + text_of(item, "name");
  }
  return all;
}

// With items of these names, and where the next page begins.
Reply page_of(const std::vector<std::string>& names,
              const std::string& next = "") {
  std::string list;
  for (const std::string& name : names) {
    list += (list.empty() ? "" : ",") + (R"({"name":{"S":")" + name + "\"}}");
  }
  return Reply::ok(R"({"Items":[)" + list + "]" +
                   (next.empty() ? "" : R"(,"LastEvaluatedKey":)" + next) +
                   "}");
}

std::string key_of(const std::string& name) {
  return R"({"name":{"S":")" + name + "\"}}";
}

// Of a request.
std::size_t limit_of(const std::string& body) {
  const std::string before = "\"Limit\":";
  const std::size_t at = body.find(before);
  BOOST_REQUIRE(at != body.npos);
  return std::stoul(body.substr(at + before.size()));
}

const Selection kAll = {"locks", {"name"}};

}  // namespace

BOOST_AUTO_TEST_SUITE(pages_of_a_scripted_service)

BOOST_AUTO_TEST_CASE(page_that_ends_where_it_began_is_a_bad_answer) {
  const std::string key = R"({"name":{"S":"a"},"sort":{"N":"1"}})";
  for (const char* same : {R"({"name":{"S":"a"},"sort":{"N":"1"}})",
                           R"({"sort":{"N":"1"},"name":{"S":"a"}})"}) {
    ScriptedServer server;
    play(server, {page_of({"a"}, key), page_of({"b"}, same)});
    Host host(server);
    const Answer answer = host.read(kAll);
    CHECK_FAULT(answer, Fault::bad_answer);
    BOOST_TEST(answer.message != "");
    BOOST_TEST(names_of(host.items) == "a");
    BOOST_TEST(server.request_count() == 2);
  }
}

BOOST_AUTO_TEST_CASE(page_too_large_is_asked_for_in_parts) {
  std::vector<std::size_t> limits;  // Handlers are called one at a time.
  ScriptedServer server([&](const SeenRequest& request) {
    limits.push_back(limit_of(request.body));
    if (limits.back() > 30) return Reply::ok(std::string(5000, ' '));
    const bool first =
        request.body.find("ExclusiveStartKey") == std::string::npos;
    return first ? page_of({"a"}, key_of("a")) : page_of({"b"});
  });
  Host host(server, 4096);
  CHECK_FAULT(host.read(kAll), Fault::none);
  BOOST_TEST(names_of(host.items) == "a b");
  // A short page says that twice as many will fit.
  const std::vector<std::size_t> expected = {200, 100, 50, 25, 50, 25};
  BOOST_TEST(limits == expected, boost::test_tools::per_element());
  // It was no failure of the service's.
  BOOST_TEST(host.table.budget.retries() == 0u);
  BOOST_TEST(host.table.budget.tokens() == 500);
}

BOOST_AUTO_TEST_CASE(item_too_large_alone_is_told_by_its_key) {
  std::vector<std::size_t> limits;
  std::vector<std::string> keys_asked;
  ScriptedServer server([&](const SeenRequest& request) {
    limits.push_back(limit_of(request.body));
    const bool first =
        request.body.find("ExclusiveStartKey") == std::string::npos;
    if (!first) return page_of({"b"});
    const bool keys = request.body.find(R"("ProjectionExpression":"#0, #1")") !=
                      std::string::npos;
    if (keys) keys_asked.push_back(request.body);
    return keys ? page_of({"a"}, key_of("a"))
                : Reply::ok(std::string(5000, ' '));
  });
  Host host(server, 4096);
  Selection selection = kAll;
  selection.attributes = {"name", "sort", "uuid"};
  selection.key_attributes = 2;
  std::vector<bool> too_large;
  CHECK_FAULT(host.read(selection,
                        [&] {
                          too_large.push_back(host.last_is_too_large);
                          return true;
                        }),
              Fault::none);
  BOOST_TEST(names_of(host.items) == "a b");
  BOOST_TEST((too_large == std::vector<bool>{true, false}));
  const std::vector<std::size_t> expected = {200, 100, 50, 25, 12,
                                             6,   3,   1,  1,  2};
  BOOST_TEST(limits == expected, boost::test_tools::per_element());
  BOOST_TEST_REQUIRE(keys_asked.size() == 1u);
  BOOST_TEST((keys_asked[0].find("uuid") == std::string::npos));
}

// Each page comes soon, but all of them together take too long.
BOOST_AUTO_TEST_CASE(deadline_is_that_of_all_pages_together) {
  int page = 0;
  ScriptedServer server([&](const SeenRequest&) {
    const std::string number = std::to_string(++page);
    Reply reply =
        page < 100 ? page_of({number}, key_of(number)) : page_of({number});
    reply.delay = 100ms;
    return reply;
  });
  Host host(server);
  host.time = 1s;
  CHECK_FAULT(host.read(kAll), Fault::timed_out);
  BOOST_TEST(host.items.size() < 100u);
}

BOOST_AUTO_TEST_CASE(time_of_a_page_begins_anew_with_each) {
  const std::string wrong = undisturbed(500ms, [] {
    ScriptedServer server;
    Reply late = page_of({"d"});
    late.delay = 3s;
    play(server, {page_of({"a"}, key_of("a")), page_of({"b"}, key_of("b")),
                  page_of({"c"}, key_of("c")), late});
    Host host(server);
    dynamodb::Items all(host.context(), kAll, 1s);
    std::string read;
    while (const Item* item = all.next()) {
      read += text_of(*item, "name");
      pause(600ms);  // For which no page is to blame.
    }
    if (read != "abc") return read + " were read";
    const Fault fault = all.answer().fault;
    return std::string(fault == Fault::timed_out ? "" : name_of(fault));
  });
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_SUITE_END()

// === Their answers ===========================================================

BOOST_AUTO_TEST_SUITE(answers_to_extras)

namespace {

constexpr ServiceTime kSigned = std::chrono::seconds(1700000000);

// As DynamoDB answers.
Answer answer_of(Action action, int status, const std::string& body) {
  HttpAnswer http;
  http.transport = Transport::complete;
  http.sent = true;
  http.status = status;
  http.body = body;
  http.sent_at = BootTime(100s);
  http.received_at = BootTime(101s);
  http.headers =
      "Server: Server\r\nDate: Tue, 14 Nov 2023 22:13:20 GMT\r\n"
      "Content-Type: application/x-amz-json-1.0\r\n"
      "x-amzn-RequestId: REQUEST1\r\n";
  return dynamodb::read_answer(action, std::move(http), kSigned,
                               reader_of(action));
}

}  // namespace

// --- Pages ------------------------------------------------------------------

namespace {

Answer page(const std::string& body, Action action = Action::scan) {
  return answer_of(action, 200, body);
}

}  // namespace

BOOST_AUTO_TEST_CASE(page_that_is_not_one_gives_nothing) {
  for (const char* body :
       {"{}", R"({"Count":0})", R"({"Items":null})", R"({"Items":{}})",
        R"({"Items":[7]})", R"({"Items":[{"name":{"S":"a"}},null]})",
        R"({"Items":[{"name":{"S":7}}]})", R"({"Items":[],"Item":{}})",
        R"({"Items":[],"LastEvaluatedKey":{}})",
        R"({"Items":[],"LastEvaluatedKey":{"a":{"S":"a"},"b":{"S":"b"},)"
        R"("c":{"S":"c"},"d":{"S":"d"},"e":{"S":"e"}}})",
        R"({"Items":[{"name":{"S":"a"}}],"LastEvaluatedKey":"a"})",
        R"({"Items":[{"name":{"S":"a"}}],"LastEvaluatedKey":{"name":"a"}})"}) {
    for (const Action action : {Action::scan, Action::query}) {
      const Answer answer = page(body, action);
      BOOST_TEST((answer.fault == Fault::bad_answer), body);
      BOOST_TEST(answer.items.empty(), body);
      BOOST_TEST(!answer.item.has_value(), body);
    }
  }
}

// Of six items with 7,000 values each; or of items that have none.  They take
// many times their JSON in memory.
BOOST_AUTO_TEST_CASE(page_of_too_many_values_is_told_as_too_large) {
  std::string list = R"({"name":{"S":"a"},"note":{"L":[{"S":""})";
  for (int i = 1; i < 7000; ++i) list += R"(,{"S":""})";
  list += "]}}";
  std::string lists = list, none = "{}";
  for (int i = 1; i < 6; ++i) lists += "," + list;
  for (int i = 1; i < 50000; ++i) none += ",{}";
  for (const std::string& items : {lists, none}) {
    const Answer answer = page(R"({"Items":[)" + items + "]}");
    CHECK_FAULT(answer, Fault::bad_answer);
    BOOST_TEST(answer.too_large);
    BOOST_TEST(answer.items.empty());
  }
  lists.resize(5 * list.size() + 4);
  BOOST_TEST(page(R"({"Items":[)" + lists + "]}").items.size() == 5u);
}

// --- Transactions -----------------------------------------------------------

namespace {

Answer transact(int status, const std::string& body) {
  return answer_of(Action::transact_write_items, status, body);
}

// With CancellationReasons, unless that is empty, and with words.
std::string cancelled(const std::string& reasons,
                      const std::string& message = "Transaction cancelled") {
  return R"({"__type":"com.amazonaws.dynamodb.v20120810#)"
         R"(TransactionCanceledException","Message":")" +
         message + "\"" +
         (reasons.empty() ? "" : ",\"CancellationReasons\":" + reasons) + "}";
}

// As DynamoDB words it.
std::string worded(const std::string& codes) {
  return cancelled("",
                   "Transaction cancelled, please refer cancellation reasons "
                   "for specific reasons [" +
                       codes + "]");
}

// [{"Code":"a"},{"Code":"b"}]
std::string listed(const std::vector<std::string>& codes) {
  std::string list;
  for (const std::string& code : codes) {
    list += (list.empty() ? "[" : ",") + ("{\"Code\":\"" + code + "\"}");
  }
  return list + "]";
}

}  // namespace

BOOST_AUTO_TEST_CASE(weightiest_reason_is_the_fault) {
  struct Case {
    std::vector<std::string> codes;
    Fault fault;
    int part;
  };
  const Case cases[] = {
      {{"ConditionalCheckFailed", "None"}, Fault::condition_failed, 0},
      {{"None", "ConditionalCheckFailed"}, Fault::condition_failed, 1},
      {{"TransactionConflict", "ConditionalCheckFailed"},
       Fault::condition_failed,
       1},
      {{"ConditionalCheckFailed", "ThrottlingError"},
       Fault::condition_failed,
       0},
      {{"None", "TransactionConflict"}, Fault::conflict, 1},
      {{"ThrottlingError", "TransactionConflict"}, Fault::conflict, 1},
      {{"None", "ThrottlingError"}, Fault::throttled, 1},
      {{"ProvisionedThroughputExceeded", "None"}, Fault::throttled, 0},
      {{"RequestLimitExceeded", "None"}, Fault::throttled, 0},
      {{"None", "ValidationError"}, Fault::bad_request, 1},
      {{"ItemCollectionSizeLimitExceeded", "None"}, Fault::bad_request, 0},
      {{"None", "None"}, Fault::bad_request, -1},
      {{"Conditional", "conditionalcheckfailed"}, Fault::bad_request, 0},
      {{"ConditionalCheckFailed", "ConditionalCheckFailed"},
       Fault::condition_failed,
       0},
  };
  for (const auto& [codes, fault, part] : cases) {
    const std::string joined = codes[0] + ", " + codes[1];
    for (const std::string& body : {cancelled(listed(codes)), worded(joined)}) {
      BOOST_TEST_CONTEXT(body) {
        const Answer answer = transact(400, body);
        CHECK_FAULT(answer, fault);
        BOOST_TEST(answer.part == part);
        if (part >= 0) {
          BOOST_TEST(answer.message ==
                     "part " + std::to_string(part) + ": " +
                         codes[static_cast<std::size_t>(part)]);
        }
        BOOST_TEST(!answer.outcome_unknown());  // Not even of a conflict.
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
