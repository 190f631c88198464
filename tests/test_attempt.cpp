// A lock's requests over a real connection, against a server
// that answers by script.
#include <rapidjson/document.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <string>

#include "ddbmutex/lock/attempt.hpp"
#include "ddbmutex/lock/leases.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/party.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/words.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using dynamodb::Answer;
using dynamodb::Fault;
using lock::Call;
using lock::Request;
using std::chrono::nanoseconds;
using tests::actions;
using tests::failure;
using tests::http_date;
using tests::kPlenty;
using tests::Party;
using tests::PartySettings;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;
using tests::Stopwatch;
using tests::with_header;
using tests::word;
using Verb = Request::Verb;

namespace {

PartySettings at(const ScriptedServer& server) {
  PartySettings settings;
  settings.url = server.url();
  return settings;
}

// That has not heard from DynamoDB yet.
PartySettings new_at(const ScriptedServer& server) {
  PartySettings settings = at(server);
  settings.knows_the_time = false;
  return settings;
}

rapidjson::Document json(const std::string& body) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseIterativeFlag>(body.data(), body.size());
  BOOST_REQUIRE(document.IsObject());
  return document;
}

std::int64_t number(const rapidjson::Value& value) {
  return std::stoll(value["N"].GetString());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt)

BOOST_AUTO_TEST_CASE(fault_after_sending_is_unknown_only_if_it_may_be_applied) {
  std::map<Fault, const char*> outcomes = {
      {Fault::none, "done"}, {Fault::condition_failed, "refused"}};
  for (const Fault fault :
       {Fault::no_keys, Fault::bad_keys, Fault::expired_keys,
        Fault::access_denied, Fault::no_table, Fault::table_in_use,
        Fault::wrong_key, Fault::bad_request, Fault::unknown_action,
        Fault::bad_certificate, Fault::unreachable, Fault::conflict,
        Fault::skewed_time}) {
    outcomes[fault] = "unsent";
  }
  for (const Fault fault :
       {Fault::disconnected, Fault::timed_out, Fault::throttled,
        Fault::server_failure, Fault::bad_answer, Fault::cancelled}) {
    outcomes[fault] = "unknown";
  }
  for (const auto& [fault, outcome] : outcomes) {
    BOOST_TEST_CONTEXT(name_of(fault)) {
      Request take;
      take.verb = Verb::take;
      Answer answer;
      answer.fault = fault;
      answer.sent = true;
      BOOST_TEST(word(lock::reply_to(take.verb, answer).outcome) == outcome);
      answer.sent = false;
      if (fault == Fault::none || fault == Fault::condition_failed) continue;
      BOOST_TEST(word(lock::reply_to(take.verb, answer).outcome) == "unsent");
    }
  }
}

BOOST_AUTO_TEST_CASE(table_that_is_gone_or_of_another_key_has_no_row_of_ours) {
  Answer answer;
  answer.sent = true;
  Request request;
  for (const Fault fault : {Fault::no_table, Fault::wrong_key}) {
    answer.fault = fault;
    for (const Verb verb : {Verb::renew, Verb::release, Verb::look}) {
      request.verb = verb;
      const auto reply = lock::reply_to(request.verb, answer);
      BOOST_TEST(word(reply.outcome) == "refused");
      BOOST_REQUIRE((reply.row != nullptr));
      BOOST_TEST(word(reply.row->kind) == "absent");
    }
  }
}

// --- Faults ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(empty_budget_holds_back_a_take) {
  ScriptedServer server;
  Party party(at(server));
  while (party.budget.draw(Fault::server_failure)) {
  }
  server.script(failure(500, "InternalServerError"));
  const Stopwatch watch;
  BOOST_TEST(party.run(Call::take, 2s) == "again");
  BOOST_TEST(watch.ms() >= 2000);  // It has that time, and so it is no sooner.
  BOOST_TEST(actions(server) == "PutItem");
}

BOOST_AUTO_TEST_CASE(refused_signature_of_another_time_is_signed_anew_once) {
  const auto skewed = [] {
    return with_header(failure(400, "InvalidSignatureException"), "Date",
                       http_date(2h));
  };
  ScriptedServer server;
  server.script(skewed());
  for (int i = 0; i < 2; ++i) {
    server.script(with_header(Reply::ok("{}"), "Date", http_date(2h)));
  }
  Party corrected(new_at(server));
  BOOST_TEST(corrected.take() == "ours");
  const auto requests = server.requests();
  BOOST_TEST_REQUIRE(actions(server) == "GetItem GetItem PutItem");
  const auto day_and_hour = [&requests](std::size_t i) {
    return requests[i].header("X-Amz-Date").value_or("").substr(0, 11);
  };
  BOOST_TEST(day_and_hour(0) != day_and_hour(1));
  const auto take = json(requests[2].body);
  BOOST_TEST(!take["ExpressionAttributeValues"].HasMember(":own0"));
  BOOST_TEST(number(take["Item"]["expires"]) >
             nanoseconds(Party(at(server)).client.calendar() + 2h).count());
}

// It has changed nothing, and there is nothing to take back.
BOOST_AUTO_TEST_CASE(look_that_is_given_up_is_ended) {
  ScriptedServer server([](const SeenRequest&) { return tests::hanging(); });
  Party party(new_at(server));
  tests::Limits limits{BootClock::now() + 2s};
  limits.keeps_request = true;
  const int tokens = party.budget.tokens();
  BOOST_TEST(party.run(Call::take, limits) == "again");
  BOOST_TEST(actions(server) == "GetItem");
  BOOST_TEST(party.attempt->given_up());
  BOOST_TEST(!party.attempt->outcome_unknown());
  BOOST_TEST(!party.attempt->has_request());
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(party.budget.tokens() == tokens);  // Nothing is tried again.
}

// --- Waking ----------------------------------------------------------------

// A service that asks for more time than there is gets what there is.
BOOST_AUTO_TEST_CASE(renewal_is_tried_again_although_asked_to_wait_too_long) {
  std::atomic<int> updates{0};
  ScriptedServer server([&](const SeenRequest& request) {
    if (action_of(request) != "UpdateItem" || ++updates > 1) {
      return Reply::ok("{}");
    }
    return with_header(failure(503, "ServiceUnavailable"), "x-amz-retry-after",
                       "60000");
  });
  PartySettings settings = at(server);
  settings.ttl = 3s;
  Party party(settings);
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.renew() == "ours");
  BOOST_TEST(updates == 2);
}

// --- DynamoDB's clock ------------------------------------------------------

BOOST_AUTO_TEST_CASE(date_of_a_captive_portal_is_not_believed) {
  ScriptedServer server;
  server.script(with_header(
      with_header(Reply::ok("<html></html>"), "Date", http_date(5h)),
      "Content-Type", "text/html"));
  Party party(new_at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(actions(server) == "GetItem GetItem PutItem");
  BOOST_TEST(party.client.clock().contradictions() == 0);
  BOOST_TEST(party.client.clock().latest(BootClock::now()).count() <
             nanoseconds(dynamodb::Client::calendar() + 1h).count());
}

// The answer that contradicts the clock may come to any thread.
BOOST_AUTO_TEST_CASE(claims_are_checked_while_no_other_thread_uses_them) {
  ScriptedServer server;
  Party party(at(server));
  lock::Leases leases(party.client, party.budget);
  lock::Leases::Guard guard(leases.mutex);
  tests::Aside checks([&] { leases.check_clock(); });
  BOOST_TEST(checks.rests());
  BOOST_TEST(!checks.done());
  guard.unlock();
  BOOST_TEST(checks.thrown() == "none");
}

// --- One run after another ---------------------------------------------------

BOOST_AUTO_TEST_CASE(what_a_run_came_to_is_forgotten_by_the_next) {
  ScriptedServer server;
  server.script(failure(400, "AccessDeniedException"));
  Party party(at(server));
  lock::Attempt attempt(Call::take, *party.held, &party.observation);
  attempt.run(BootClock::now() + kPlenty, nullptr);
  BOOST_TEST(attempt.failing());
  attempt.run(BootClock::now(), nullptr);
  BOOST_TEST((attempt.answer().fault == Fault::timed_out));
  BOOST_TEST(attempt.answer().message == "the deadline has passed");
  BOOST_TEST(attempt.given_up());
}

BOOST_AUTO_TEST_SUITE_END()
