// Calls that are sent again blindly, and the pages of Scan and Query: on real
// engines, and where a service fails, loops or has too much to say.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/ask.hpp"
#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/given.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/reader_of.hpp"
#include "tests/support/scripted_server.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace lock = ddbmutex::lock;
namespace sigv4 = ddbmutex::sigv4;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Credentials;
using namespace std::chrono_literals;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Attribute;
using dynamodb::Caller;
using dynamodb::Client;
using dynamodb::Fault;
using dynamodb::Item;
using dynamodb::Selection;
using tests::Ending;
using tests::Engine;
using tests::EngineKind;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;
using Type = Attribute::Type;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

// One that asks.
struct Host {
  explicit Host(const std::string& url, const std::string& region = "us-east-1",
                const Credentials& keys = {"AKIDEXAMPLE", "secret", ""},
                std::size_t max_answer = 1 << 20)
      : client({tests::target_at(url, region),
                tests::given_keys(tests::signing_keys(keys)),
                {},
                {},
                max_answer}) {}
  explicit Host(Engine& engine, std::size_t max_answer = 1 << 20)
      : Host(engine.url(), engine.region(), engine.credentials().value(),
             max_answer) {}
  // A scripted service that has no more to say would else be asked for long.
  explicit Host(const ScriptedServer& server, std::size_t max_answer = 1 << 20)
      : Host(server.url(), "us-east-1", {"AKIDEXAMPLE", "secret", ""},
             max_answer) {
    time = std::chrono::seconds(20);
  }

  Caller caller() { return {client, budget, BootClock::now() + time, &waker}; }
  Answer ask(Action action, const std::string& body,
             bool* maybe_applied = nullptr) {
    return dynamodb::ask(caller(), action, body, maybe_applied,
                         tests::reader_of(action));
  }
  // What is read is added to `items`, as long as the answer is true.
  Answer read(
      const Selection& selection,
      const std::function<bool()>& goes_on = [] { return true; }) {
    dynamodb::Items all(caller(), selection);
    while (const Item* item = all.next()) {
      items.push_back(*item);
      last_is_too_large = all.too_large();
      if (!goes_on()) break;
    }
    Answer told;
    all.answer().tell(told);
    told.too_large = all.answer().too_large;
    return told;
  }
  std::uint64_t sent(Action action) const {
    return client.counts().sent[static_cast<std::size_t>(action)];
  }

  std::chrono::nanoseconds time = std::chrono::minutes(2);
  Client client;
  dynamodb::RetryBudget budget;
  sigv4::Waker waker;
  std::vector<Item> items;
  bool last_is_too_large = false;  // Of these items.
};

Reply refused(const std::string& code, const std::string& more = "") {
  return Reply::error(
      400, R"({"__type":"x#)" + code + R"(","message":"no")" + more + "}");
}

Reply cancelled(const std::string& code) {
  return refused("TransactionCanceledException",
                 R"(,"CancellationReasons":[{"Code":")" + code + "\"}]");
}

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

// --- One call ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(blind_call)

BOOST_AUTO_TEST_CASE(passing_faults_are_asked_past) {
  Reply garbled = Reply::ok("{}");
  garbled.wrong_crc32 = true;
  ScriptedServer server;
  play(server, {Reply::error(500), Reply::gone(Ending::close), garbled,
                refused("TransactionInProgressException"),
                Reply::ok(R"({"Item":{"name":{"S":"a"}}})")});
  Host host(server);
  const Answer answer = host.ask(Action::get_item, "{\"x\":1}");
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(answer.item.has_value());
  BOOST_TEST(server.request_count() == 5);
  for (const SeenRequest& request : server.requests()) {
    BOOST_TEST(request.body == "{\"x\":1}");
  }
  BOOST_TEST(host.budget.retries() == 4u);
}

BOOST_AUTO_TEST_CASE(verdicts_are_told_at_once) {
  const std::pair<Reply, Fault> verdicts[] = {
      {Reply::ok("{}"), Fault::none},
      {refused("ConditionalCheckFailedException"), Fault::condition_failed},
      {refused("ValidationException"), Fault::bad_request},
      {refused("ResourceNotFoundException"), Fault::no_table},
      {refused("AccessDeniedException"), Fault::access_denied}};
  for (const auto& [reply, fault] : verdicts) {
    ScriptedServer server;
    play(server, {reply});
    Host host(server);
    bool maybe_applied = true;
    CHECK_FAULT(host.ask(Action::put_item, "{}", &maybe_applied), fault);
    BOOST_TEST(server.request_count() == 1);
    BOOST_TEST(!maybe_applied);
  }
}

BOOST_AUTO_TEST_CASE(attempt_of_unknown_outcome_before_the_last_is_told) {
  const Reply gone = Reply::gone(Ending::close);
  const Reply done = Reply::ok("{}");
  const Reply failed = cancelled("ConditionalCheckFailed");
  struct Case {
    std::vector<Reply> replies;
    Fault fault;
    bool maybe_applied;
  };
  const Case cases[] = {
      {{gone, done}, Fault::none, true},
      {{gone, failed}, Fault::condition_failed, true},
      {{Reply::error(500), cancelled("TransactionConflict"), done},
       Fault::none,
       true},
      // Those were certainly not applied.
      {{cancelled("TransactionConflict"), done}, Fault::none, false},
      {{cancelled("ThrottlingError"), failed}, Fault::condition_failed, false},
  };
  for (const Case& c : cases) {
    ScriptedServer server;
    play(server, c.replies);
    Host host(server);
    bool maybe_applied = !c.maybe_applied;
    CHECK_FAULT(host.ask(Action::transact_write_items, "{}", &maybe_applied),
                c.fault);
    BOOST_TEST(maybe_applied == c.maybe_applied);
    BOOST_TEST(server.request_count() == static_cast<int>(c.replies.size()));
  }
}

// The answer itself says that of the last attempt.
BOOST_AUTO_TEST_CASE(last_attempt_of_unknown_outcome_is_not_one_before_it) {
  ScriptedServer server;
  Reply reply = Reply::error(503);
  reply.headers.emplace_back("x-amz-retry-after", "60000");
  play(server, {reply});
  Host host(server);
  host.time = 4s;  // Less than is waited for such a service.
  bool maybe_applied = true;
  const Answer answer = host.ask(Action::put_item, "{}", &maybe_applied);
  CHECK_FAULT(answer, Fault::server_failure);
  BOOST_TEST(answer.outcome_unknown());
  BOOST_TEST(!maybe_applied);
}

BOOST_AUTO_TEST_CASE(call_without_time_or_patience_sends_nothing) {
  ScriptedServer server;
  Host host(server);
  for (const bool woken : {false, true}) {
    if (woken) host.waker.wake();
    host.time = woken ? 20s : 0s;
    const Answer answer = host.ask(Action::put_item, "{}");
    CHECK_FAULT(answer, woken ? Fault::cancelled : Fault::timed_out);
    BOOST_TEST((answer.action == Action::put_item));
    BOOST_TEST(!answer.sent);
    BOOST_TEST(answer.message != "");
  }
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(call_that_nobody_wakes_is_asked_to_its_deadline) {
  ScriptedServer server([](const SeenRequest&) { return Reply::error(500); });
  Host host(server);
  const BootTime deadline = BootClock::now() + 3s;
  const Answer answer =
      dynamodb::ask({host.client, host.budget, deadline, &host.waker},
                    Action::get_item, "{}");
  BOOST_TEST((answer.fault == Fault::server_failure ||
              answer.fault == Fault::timed_out));
  BOOST_TEST(server.request_count() >= 1);
}

// That wait would be one of seconds, as the service asks.
BOOST_AUTO_TEST_CASE(waker_ends_the_wait_for_another_attempt) {
  ScriptedServer server;
  Reply reply = Reply::error(503);
  reply.headers.emplace_back("x-amz-retry-after", "5000");
  play(server, {reply});
  Host host(server);
  std::thread other([&] {
    server.wait_for_requests(1);
    host.waker.wake();
  });
  bool maybe_applied = false;
  CHECK_FAULT(host.ask(Action::put_item, "{}", &maybe_applied),
              Fault::cancelled);
  other.join();
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(request_that_hangs_is_given_up_for_another) {
  ScriptedServer server;
  Reply hanging = Reply::ok("{}");
  hanging.hangs = true;
  play(server, {hanging});
  Host host(server);
  Caller caller = host.caller();
  caller.request_timeout = 2s;  // The second is answered in it.
  bool maybe_applied = false;
  const Answer answer =
      dynamodb::ask(caller, Action::put_item, "{}", &maybe_applied);
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(maybe_applied);
  BOOST_TEST(server.request_count() >= 2);
}

// Of one item it cannot be too much: some other server's.
BOOST_AUTO_TEST_CASE(item_too_large_is_asked_for_again) {
  ScriptedServer server;
  play(server, {Reply::ok(std::string(5000, ' ')), Reply::ok("{}")});
  Host host(server, 4096);
  CHECK_FAULT(host.ask(Action::get_item, "{}"), Fault::none);
  BOOST_TEST(server.request_count() == 2);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Pages ------------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(pages_of_a_scripted_service)

BOOST_AUTO_TEST_CASE(requests_are_exactly_what_dynamodb_asks_for) {
  const std::string begin =
      R"({"TableName":"locks","ConsistentRead":true,"Limit":200,)"
      R"("ProjectionExpression":"#0)";
  const std::string values =
      R"(,"ExpressionAttributeValues":{":key":{"S":"jo\"b"}})";
  const std::string names = R"(,"ExpressionAttributeNames":{"#0":"name"})";
  Selection prefix = kAll;
  prefix.prefix = "jo\"b";
  Selection more = prefix;
  more.attributes = {"name", "owner", "ttl"};
  Selection one = prefix;
  one.exact_key = true;
  Selection empty = kAll;
  empty.exact_key = true;
  Selection other = kAll;
  other.attributes = {"LockID", "ttl"};
  const std::string filter = R"x(,"FilterExpression":"begins_with(#0, :key)")x";
  const std::string exactly = R"(,"KeyConditionExpression":"#0 = :key")";
  const std::pair<Selection, std::string> cases[] = {
      {kAll, begin + "\"" + names + "}"},
      {other, begin + R"(, #1","ExpressionAttributeNames":)"
                      R"({"#0":"LockID","#1":"ttl"}})"},
      {prefix, begin + "\"" + names + filter + values + "}"},
      {more, begin +
                 R"(, #1, #2","ExpressionAttributeNames":)"
                 R"({"#0":"name","#1":"owner","#2":"ttl"})" +
                 filter + values + "}"},
      {one, begin + "\"" + names + exactly + values + "}"},
      {empty, begin + "\"" + names + exactly +
                  R"(,"ExpressionAttributeValues":{":key":{"S":""}}})"}};
  for (const auto& [selection, body] : cases) {
    ScriptedServer server;
    play(server, {page_of({})});
    Host host(server);
    CHECK_FAULT(host.read(selection), Fault::none);
    BOOST_REQUIRE(server.request_count() == 1);
    const SeenRequest request = server.requests().front();
    BOOST_TEST(request.body == body);
    BOOST_TEST(request.header("X-Amz-Target").value_or("") ==
               (selection.exact_key ? "DynamoDB_20120810.Query"
                                    : "DynamoDB_20120810.Scan"));
  }
}

BOOST_AUTO_TEST_CASE(each_page_begins_where_the_last_has_ended) {
  const std::string next =
      R"({"name":{"S":"b\u0000"},"n":{"N":"1"},"d":{"B":"AA=="}})";
  ScriptedServer server;
  play(server, {page_of({"a", "b"}, next), page_of({}, key_of("c")),
                page_of({"d"}, key_of("d")), page_of({})});
  Host host(server);
  CHECK_FAULT(host.read(kAll), Fault::none);
  BOOST_TEST(names_of(host.items) == "a b d");
  const auto requests = server.requests();
  BOOST_REQUIRE(requests.size() == 4u);
  const std::string begin =
      R"({"TableName":"locks","ConsistentRead":true,"Limit":200,)"
      R"("ProjectionExpression":"#0","ExpressionAttributeNames":{"#0":"name"})";
  const std::string start = begin + R"(,"ExclusiveStartKey":)";
  BOOST_TEST(requests[0].body == begin + "}");
  BOOST_TEST(requests[1].body == start + next + "}");
  BOOST_TEST(requests[2].body == start + key_of("c") + "}");
  BOOST_TEST(requests[3].body == start + key_of("d") + "}");
}

BOOST_AUTO_TEST_CASE(who_has_enough_is_given_no_more) {
  ScriptedServer server;
  play(server, {page_of({"a", "b", "c"}, key_of("c"))});
  Host host(server);
  const Answer answer =
      host.read(kAll, [&host] { return host.items.size() < 2; });
  CHECK_FAULT(answer, Fault::none);
  BOOST_TEST(names_of(host.items) == "a b");
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(after_the_last_item_there_is_none_however_often_asked) {
  ScriptedServer server;
  play(server, {page_of({"a"})});
  Host host(server);
  dynamodb::Items all(host.caller(), kAll);
  BOOST_REQUIRE(all.next() != nullptr);
  for (int i = 0; i < 2; ++i) {
    BOOST_TEST((all.next() == nullptr));
    CHECK_FAULT(all.answer(), Fault::none);
  }
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(fault_between_pages_gives_no_item_twice) {
  Reply cut = page_of({"b"}, key_of("b"));
  cut.cut_body_at = 10;
  cut.ending = Ending::close;
  ScriptedServer server;
  play(server, {page_of({"a"}, key_of("a")), Reply::error(500), cut,
                page_of({"b"}, key_of("b")), Reply::gone(Ending::reset),
                page_of({"c"})});
  Host host(server);
  CHECK_FAULT(host.read(kAll), Fault::none);
  BOOST_TEST(names_of(host.items) == "a b c");
  BOOST_TEST(server.request_count() == 6);
}

BOOST_AUTO_TEST_CASE(final_fault_between_pages_is_told) {
  ScriptedServer server;
  play(server,
       {page_of({"a"}, key_of("a")), refused("ResourceNotFoundException")});
  Host host(server);
  CHECK_FAULT(host.read(kAll), Fault::no_table);
  BOOST_TEST(names_of(host.items) == "a");
}

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

BOOST_AUTO_TEST_CASE(key_that_differs_in_anything_is_another) {
  const std::string key = R"({"name":{"S":"a"},"sort":{"N":"1"}})";
  const std::pair<std::string, std::string> pairs[] = {
      {key, R"({"name":{"S":"a"},"sort":{"N":"2"}})"},
      {key, R"({"name":{"S":"a"},"sort":{"S":"1"}})"},
      {key, R"({"name":{"S":"a"},"tros":{"N":"1"}})"},
      {key, key_of("a")},
      {key_of("a"), key}};
  for (const auto& [one, other] : pairs) {
    ScriptedServer server;
    play(server, {page_of({"a"}, one), page_of({"b"}, other), page_of({"c"})});
    Host host(server);
    CHECK_FAULT(host.read(kAll), Fault::none);
    BOOST_TEST(names_of(host.items) == "a b c");
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
  BOOST_TEST(host.budget.retries() == 0u);
  BOOST_TEST(host.budget.tokens() == 500);
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

// Nothing is left to ask for.
BOOST_AUTO_TEST_CASE(key_too_large_alone_is_a_bad_answer) {
  std::vector<std::size_t> limits;
  ScriptedServer server([&](const SeenRequest& request) {
    limits.push_back(limit_of(request.body));
    return Reply::ok(std::string(5000, ' '));
  });
  Host host(server, 4096);
  const Answer answer = host.read(kAll);
  CHECK_FAULT(answer, Fault::bad_answer);
  BOOST_TEST(answer.too_large);
  BOOST_TEST(host.items.empty());
  const std::vector<std::size_t> expected = {200, 100, 50, 25, 12, 6, 3, 1, 1};
  BOOST_TEST(limits == expected, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(waker_woken_between_pages_ends_the_reading) {
  ScriptedServer server;
  play(server, {page_of({"a", "b"}, key_of("b")), page_of({"c"})});
  Host host(server);
  const Answer answer = host.read(kAll, [&host] {
    if (host.items.size() == 2) host.waker.wake();
    return true;
  });
  CHECK_FAULT(answer, Fault::cancelled);
  BOOST_TEST(host.items.size() == 2u);
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(deadline_ends_a_page_that_does_not_come) {
  int page = 0;
  ScriptedServer server([&](const SeenRequest&) {
    Reply reply = page_of({}, key_of(std::to_string(++page)));
    reply.hangs = page == 3;
    return reply;
  });
  Host host(server);
  host.time = 2s;
  CHECK_FAULT(host.read(kAll), Fault::timed_out);
  BOOST_TEST(server.request_count() == 3);
}

// Each of which comes soon.
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
  const std::string wrong = tests::undisturbed(500ms, [] {
    ScriptedServer server;
    Reply late = page_of({"d"});
    late.delay = 3s;
    play(server, {page_of({"a"}, key_of("a")), page_of({"b"}, key_of("b")),
                  page_of({"c"}, key_of("c")), late});
    Host host(server);
    dynamodb::Items all(host.caller(), kAll, 1s);
    std::string read;
    while (const Item* item = all.next()) {
      read += text_of(*item, "name");
      tests::pause(600ms);  // For which no page is to blame.
    }
    if (read != "abc") return read + " were read";
    const Fault fault = all.answer().fault;
    return std::string(fault == Fault::timed_out ? "" : name_of(fault));
  });
  BOOST_TEST(wrong == "");
}

BOOST_AUTO_TEST_CASE(deadline_that_moves_ends_pages_and_retries) {
  for (const bool fails : {false, true}) {
    int page = 0;
    ScriptedServer server([&](const SeenRequest&) {
      const std::string number = std::to_string(++page);
      if (page == 9) return refused("ResourceNotFoundException");
      return fails ? Reply::error(500) : page_of({number}, key_of(number));
    });
    Host host(server);
    Caller caller = host.caller();
    caller.deadline = BootTime::max();
    caller.moving_deadline = [&server] {
      return server.request_count() < 3 ? BootTime::max() : BootTime();
    };
    dynamodb::Items all(caller, kAll);
    while (all.next() != nullptr) continue;
    CHECK_FAULT(all.answer(), fails ? Fault::server_failure : Fault::timed_out);
    BOOST_TEST(server.request_count() == 3);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- On engines -------------------------------------------------------------

namespace {

// A table nobody else has heard of, with a sort key or without; deleted in the
// end.
struct FreshTable {
  explicit FreshTable(EngineKind kind, const std::string& sort_key = "")
      : engine(Engine::running(kind)), host(engine) {
    options.name = "ddbmutex-test-" + lock::fresh_uuid();
    options.sort_key = sort_key;
    ddbmutex::Table(options).create();
  }
  ~FreshTable() { engine.delete_table(options.name); }
  FreshTable(const FreshTable&) = delete;
  FreshTable& operator=(const FreshTable&) = delete;

  std::string named() const {
    return R"({"TableName":")" + options.name + "\"";
  }
  Selection all() const { return {options.name, {"name"}}; }

  // As many as are given, 25 at a time.
  void put(const std::vector<std::string>& items) {
    std::string list;
    for (std::size_t i = 0; i < items.size(); ++i) {
      list += (list.empty() ? "" : ",") +
              (R"({"PutRequest":{"Item":)" + items[i] + "}}");
      if (i % 25 != 24 && i + 1 != items.size()) continue;
      const std::string told = engine.must_call(
          "BatchWriteItem",
          R"({"RequestItems":{")" + options.name + "\":[" + list + "]}}");
      BOOST_REQUIRE(told.find("PutRequest") == told.npos);
      list.clear();
    }
  }

  Engine& engine;
  ddbmutex::TableOptions options = tests::table_options(engine);
  Host host;
};

std::string item_of(const std::string& name, const std::string& more = "") {
  return R"({"name":{"S":")" + name + "\"}" + more + "}";
}

std::set<std::string> texts_of(const std::vector<Item>& items,
                               std::string_view name) {
  std::set<std::string> texts;
  for (const Item& item : items) texts.insert(text_of(item, name));
  return texts;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pages_of_an_engine)

BOOST_DATA_TEST_CASE(
    all_items_of_a_prefix_are_read_and_only_what_is_asked_of_them, kEngines,
    kind) {
  FreshTable table(kind);
  std::vector<std::string> items;
  for (int i = 0; i < 430; ++i) {
    items.push_back(item_of("job-" + std::to_string(i),
                            R"(,"owner":{"S":"me"},"secret":{"S":"no"})"));
  }
  for (const char* other : {"Job-1", "jo", "xjob-1", "job"}) {
    items.push_back(item_of(other));
  }
  table.put(items);
  Host host(table.engine);
  Selection selection = table.all();
  selection.prefix = "job-";
  selection.attributes = {"name", "owner"};
  CHECK_FAULT(host.read(selection), Fault::none);
  BOOST_TEST(host.items.size() == 430u);
  BOOST_TEST(texts_of(host.items, "name").size() == 430u);
  BOOST_TEST(texts_of(host.items, "name").count("job") == 0u);
  for (const Item& item : host.items) {
    BOOST_TEST_REQUIRE(item.size() == 2u);
    BOOST_TEST_REQUIRE(text_of(item, "owner") == "me");
  }
  BOOST_TEST(host.sent(Action::scan) >= 3u);  // By 200.

  Host whole(table.engine);
  selection = table.all();
  selection.attributes = {"name", "secret"};
  CHECK_FAULT(whole.read(selection), Fault::none);
  BOOST_TEST(whole.items.size() == 434u);
  BOOST_TEST(texts_of(whole.items, "secret").count("no") == 1u);
}

BOOST_DATA_TEST_CASE(items_of_one_key_are_read_without_the_others, kEngines,
                     kind) {
  FreshTable table(kind, "sort");
  std::vector<std::string> items;
  for (int i = 0; i < 230; ++i) {
    items.push_back(
        item_of("a", R"(,"sort":{"S":")" + std::to_string(i) + "\"}"));
  }
  for (const char* other : {"a ", "aa", "b"}) {
    items.push_back(item_of(other, R"(,"sort":{"S":"1"})"));
  }
  table.put(items);
  Host host(table.engine);
  Selection selection = table.all();
  selection.prefix = "a";
  selection.exact_key = true;
  selection.attributes = {"name", "sort"};
  CHECK_FAULT(host.read(selection), Fault::none);
  BOOST_TEST(host.items.size() == 230u);
  BOOST_TEST(texts_of(host.items, "sort").size() == 230u);
  BOOST_TEST((texts_of(host.items, "name") == std::set<std::string>{"a"}));
  BOOST_TEST(host.sent(Action::query) >= 2u);

  selection.prefix = "nobody";
  Host none(table.engine);
  CHECK_FAULT(none.read(selection), Fault::none);
  BOOST_TEST(none.items.empty());

  selection.attributes = {"uuid"};
  CHECK_FAULT(none.read(selection), Fault::wrong_key);
}

BOOST_DATA_TEST_CASE(items_too_large_together_are_read_all_the_same, kEngines,
                     kind) {
  FreshTable table(kind);
  std::vector<std::string> items;
  for (int i = 0; i < 20; ++i) {
    items.push_back(
        item_of(std::to_string(i),
                R"(,"data":{"S":")" + std::string(1500, 'x') + "\"}"));
  }
  table.put(items);
  Host host(table.engine, 8192);
  Selection selection = table.all();
  selection.attributes = {"name", "data"};
  CHECK_FAULT(host.read(selection), Fault::none);
  BOOST_TEST(host.items.size() == 20u);
  BOOST_TEST(texts_of(host.items, "name").size() == 20u);
  BOOST_TEST(host.client.counts().failed >= 4u);  // 200, 100, 50, 25, ...
}

BOOST_DATA_TEST_CASE(table_that_is_not_there_has_no_pages, kEngines, kind) {
  Host host(Engine::running(kind));
  CHECK_FAULT(host.read({"ddbmutex-test-" + lock::fresh_uuid(), {"name"}}),
              Fault::no_table);
}

BOOST_DATA_TEST_CASE(item_of_all_types_comes_back_as_it_was_written, kEngines,
                     kind) {
  FreshTable table(kind);
  // One member in each set and map: an engine may have them in any order.
  const Item item = {
      {"a", Type::binary_set, "", {{"", Type::binary, "AAE="}}},
      {"b", Type::binary, "AAEC"},
      {"f", Type::boolean, "false"},
      {"l",
       Type::list,
       "",
       {{"", Type::number, "-1.5"},
        {"", Type::map, "", {{"k", Type::null}}},
        {"", Type::boolean, "true"},
        {"", Type::list}}},
      {"m", Type::map, "", {{"\"\xc3\xa9", Type::string, "\n"}}},
      {"n", Type::null},
      {"name", Type::string, "x"},
      {"s", Type::string_set, "", {{"", Type::string, "one"}}},
      {"u", Type::number_set, "", {{"", Type::number, "7"}}},
  };
  const auto json_of = [](const Item& shown) {
    sigv4::Text text;
    sigv4::JsonWriter json(text);
    dynamodb::write_item(json, shown);
    return text.take();
  };
  CHECK_FAULT(table.host.ask(Action::put_item, table.named() + R"(,"Item":)" +
                                                   json_of(item) + "}"),
              Fault::none);
  Answer answer = table.host.ask(
      Action::get_item, table.named() + R"(,"Key":{"name":{"S":"x"}}})");
  CHECK_FAULT(answer, Fault::none);
  BOOST_REQUIRE(answer.item.has_value());
  std::sort(answer.item->begin(), answer.item->end(),
            [](const Attribute& one, const Attribute& other) {
              return one.name < other.name;
            });
  BOOST_TEST(json_of(*answer.item) == json_of(item));
}

BOOST_DATA_TEST_CASE(update_tells_the_item_as_it_then_is, kEngines, kind) {
  FreshTable table(kind);
  const std::string update =
      table.named() +
      R"(,"Key":{"name":{"S":"x"}},"UpdateExpression":"ADD #n :one",)"
      R"("ExpressionAttributeNames":{"#n":"token"},)"
      R"("ExpressionAttributeValues":{":one":{"N":"1"}})";
  for (const char* expected : {"1", "2"}) {
    const Answer answer = table.host.ask(
        Action::update_item, update + R"(,"ReturnValues":"ALL_NEW"})");
    CHECK_FAULT(answer, Fault::none);
    BOOST_REQUIRE(answer.item.has_value());
    BOOST_TEST(text_of(*answer.item, "name") == "x");
    BOOST_TEST(text_of(*answer.item, "token") == expected);
  }
  const Answer silent = table.host.ask(Action::update_item, update + "}");
  CHECK_FAULT(silent, Fault::none);
  BOOST_TEST(!silent.item.has_value());
}

BOOST_AUTO_TEST_SUITE_END()

// --- Transactions -----------------------------------------------------------

namespace {

// One is added to "counted" if "guard" is as `condition` says.
std::string transaction(const FreshTable& table, const std::string& condition,
                        const std::string& token) {
  const std::string at = table.named() + R"(,"Key":{"name":{"S":)";
  return R"({"TransactItems":[{"ConditionCheck":)" + at + R"("guard"}},)" +
         R"("ConditionExpression":")" + condition + R"("}},{"Update":)" + at +
         R"("counted"}},)" +
         R"("UpdateExpression":"ADD n :one",)"
         R"("ExpressionAttributeValues":{":one":{"N":"1"}}}}],)" +
         R"("ClientRequestToken":")" + token + "\"}";
}

std::string counted(FreshTable& table) {
  const Answer answer = table.host.ask(
      Action::get_item, table.named() + R"(,"Key":{"name":{"S":"counted"}},)"
                                        R"("ConsistentRead":true})");
  return answer.item ? text_of(*answer.item, "n") : "nothing";
}

constexpr const char* kHolds = "attribute_not_exists(nothing)";
constexpr const char* kFails = "attribute_exists(nothing)";

}  // namespace

BOOST_AUTO_TEST_SUITE(transactions_of_an_engine)

BOOST_DATA_TEST_CASE(condition_that_fails_is_told_first_and_nothing_is_written,
                     kEngines, kind) {
  FreshTable table(kind);
  const Answer answer =
      table.host.ask(Action::transact_write_items,
                     transaction(table, kFails, lock::fresh_uuid()));
  if (kind == EngineKind::dynalite) {
    CHECK_FAULT(answer, Fault::unknown_action);
    return;
  }
  CHECK_FAULT(answer, Fault::condition_failed);
  BOOST_TEST(answer.part == 0);
  BOOST_TEST(!answer.outcome_unknown());
  BOOST_TEST(counted(table) == "nothing");
}

BOOST_DATA_TEST_CASE(transaction_sent_twice_with_one_token_is_applied_once,
                     kEngines, kind) {
  FreshTable table(kind);
  const std::string token = lock::fresh_uuid();
  const bool none = kind == EngineKind::dynalite;
  for (int i = 0; i < 2; ++i) {
    CHECK_FAULT(table.host.ask(Action::transact_write_items,
                               transaction(table, kHolds, token)),
                none ? Fault::unknown_action : Fault::none);
    BOOST_TEST(counted(table) == (none ? "nothing" : "1"));
  }
  if (none) return;
  const Answer other = table.host.ask(Action::transact_write_items,
                                      transaction(table, kFails, token));
  CHECK_FAULT(other, Fault::bad_request);
  CHECK_FAULT(table.host.ask(Action::transact_write_items,
                             transaction(table, kHolds, lock::fresh_uuid())),
              Fault::none);
  BOOST_TEST(counted(table) == "2");
}

BOOST_AUTO_TEST_SUITE_END()
