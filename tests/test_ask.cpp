// Calls that are sent again blindly, and the pages of Scan and Query, where a
// service fails, loops or has too much to say.
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/ask.hpp"
#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "tests/support/check_fault.hpp"
#include "tests/support/given.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/reader_of.hpp"
#include "tests/support/scripted_server.hpp"

namespace dynamodb = ddbmutex::dynamodb;
namespace sigv4 = ddbmutex::sigv4;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using namespace std::chrono_literals;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Attribute;
using dynamodb::CallContext;
using dynamodb::Client;
using dynamodb::Fault;
using dynamodb::Item;
using dynamodb::Selection;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

namespace {

// One that asks.
struct Host {
  explicit Host(const ScriptedServer& server, std::size_t max_answer = 1 << 20)
      : client({tests::target_at(server.url(), "us-east-1"),
                tests::given_keys(
                    tests::signing_keys({"AKIDEXAMPLE", "secret", ""})),
                {},
                {},
                max_answer}) {}

  CallContext context() {
    return {client, budget, BootClock::now() + time, &waker};
  }
  Answer ask(Action action, const std::string& body,
             bool* maybe_applied = nullptr) {
    return dynamodb::ask(context(), action, body, maybe_applied,
                         tests::reader_of(action));
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

// --- Pages ------------------------------------------------------------------

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
    dynamodb::Items all(host.context(), kAll, 1s);
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
    CallContext context = host.context();
    context.deadline = BootTime::max();
    context.moving_deadline = [&server] {
      return server.request_count() < 3 ? BootTime::max() : BootTime();
    };
    dynamodb::Items all(context, kAll);
    while (all.next() != nullptr) continue;
    CHECK_FAULT(all.answer(), fails ? Fault::server_failure : Fault::timed_out);
    BOOST_TEST(server.request_count() == 3);
  }
}

BOOST_AUTO_TEST_SUITE_END()
