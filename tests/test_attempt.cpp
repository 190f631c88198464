// ddbmutex/attempt: a lock's requests over a real connection, against a server
// that answers by script.
#include <rapidjson/document.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex/lock/attempt.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/party.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/words.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using dynamodb::Action;
using dynamodb::Answer;
using dynamodb::Fault;
using lock::Call;
using lock::Request;
using std::chrono::nanoseconds;
using tests::actions;
using tests::Ending;
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

void pause_until(BootTime deadline) {
  while (BootClock::now() < deadline) tests::pause(1ms);
}

// The condition did not hold; `item` is JSON, empty if it is not told.
Reply refusal(const std::string& item = "") {
  return failure(400, "ConditionalCheckFailedException",
                 item.empty() ? "" : R"(,"Item":)" + item);
}

std::string item(const std::string& uuid, const std::string& expires,
                 const std::string& more = "") {
  return R"({"name":{"S":"ddblock-test"},"uuid":{"S":")" + uuid +
         R"("},"expires":{"N":")" + expires +
         R"("},"lease":{"N":"60000"},"owner":{"S":"holder:7"})" + more + "}";
}

// A lease that has an hour to go.
std::string live_item() {
  const auto end = std::chrono::system_clock::now().time_since_epoch() + 1h;
  return item("theirs", std::to_string(nanoseconds(end).count()));
}

std::string put_item_of(const SeenRequest& request) {
  const auto body = json(request.body);
  const auto& put = body["Item"];
  return item(put["uuid"]["S"].GetString(), put["expires"]["N"].GetString());
}

std::int64_t number(const rapidjson::Value& value) {
  return std::stoll(value["N"].GetString());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(attempt)

// --- What an answer means to the protocol ----------------------------------

BOOST_AUTO_TEST_CASE(each_verb_is_an_action) {
  BOOST_CHECK(lock::action_of(Verb::take, {}) == Action::put_item);
  BOOST_CHECK(lock::action_of(Verb::renew, {}) == Action::update_item);
  BOOST_CHECK(lock::action_of(Verb::release, {}) == Action::delete_item);
  BOOST_CHECK(lock::action_of(Verb::look, {}) == Action::get_item);
  lock::RowPolicy kept;
  kept.keep = true;
  BOOST_CHECK(lock::action_of(Verb::take, kept) == Action::update_item);
  BOOST_CHECK(lock::action_of(Verb::release, kept) == Action::update_item);
}

BOOST_AUTO_TEST_CASE(fault_after_sending_is_unknown_only_if_it_may_be_applied) {
  struct Case {
    Fault fault;
    const char* sent;
  };
  for (const Case& c : std::vector<Case>{{Fault::none, "done"},
                                         {Fault::condition_failed, "refused"},
                                         {Fault::no_keys, "unsent"},
                                         {Fault::bad_keys, "unsent"},
                                         {Fault::expired_keys, "unsent"},
                                         {Fault::access_denied, "unsent"},
                                         {Fault::no_table, "unsent"},
                                         {Fault::table_in_use, "unsent"},
                                         {Fault::wrong_key, "unsent"},
                                         {Fault::bad_request, "unsent"},
                                         {Fault::unknown_action, "unsent"},
                                         {Fault::bad_certificate, "unsent"},
                                         {Fault::unreachable, "unsent"},
                                         {Fault::disconnected, "unknown"},
                                         {Fault::timed_out, "unknown"},
                                         {Fault::throttled, "unknown"},
                                         {Fault::server_failure, "unknown"},
                                         {Fault::conflict, "unsent"},
                                         {Fault::bad_answer, "unknown"},
                                         {Fault::skewed_time, "unsent"},
                                         {Fault::cancelled, "unknown"}}) {
    BOOST_TEST_CONTEXT(name_of(c.fault)) {
      Request take;
      take.verb = Verb::take;
      Answer answer;
      answer.fault = c.fault;
      answer.sent = true;
      BOOST_TEST(word(lock::reply_to(take.verb, answer).outcome) == c.sent);
      answer.sent = false;
      if (c.fault == Fault::none || c.fault == Fault::condition_failed)
        continue;
      BOOST_TEST(word(lock::reply_to(take.verb, answer).outcome) == "unsent");
    }
  }
}

BOOST_AUTO_TEST_CASE(row_is_told_by_a_look_and_by_a_refusal_that_has_it) {
  const dynamodb::Item item{
      {"uuid", dynamodb::Attribute::Type::string, "u"},
      {"expires", dynamodb::Attribute::Type::number, "7"}};
  Answer answer;
  answer.sent = true;
  answer.item = item;
  Request request;
  const auto looked = lock::reply_to(request.verb, answer);
  BOOST_REQUIRE((looked.row != nullptr));
  BOOST_TEST(looked.row->uuid == "u");

  answer.fault = Fault::condition_failed;
  answer.item = item;
  request.verb = Verb::take;
  const auto refused = lock::reply_to(request.verb, answer);
  BOOST_REQUIRE((refused.row != nullptr));
  BOOST_TEST(refused.row->expires.count() == 7);
  // Its item was taken, which may be large.
  BOOST_TEST(!answer.item.has_value());
  BOOST_TEST((lock::reply_to(request.verb, answer).row == nullptr));

  answer.fault = Fault::none;
  request.verb = Verb::look;
  const auto none = lock::reply_to(request.verb, answer);
  BOOST_REQUIRE((none.row != nullptr));
  BOOST_TEST(word(none.row->kind) == "absent");
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

// --- Without faults --------------------------------------------------------

BOOST_AUTO_TEST_CASE(free_lock_costs_one_put_and_one_delete) {
  ScriptedServer server;
  Party party(at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.holds());
  BOOST_TEST(party.release() == "released");
  BOOST_TEST(!party.holds());
  BOOST_TEST(party.counts() == "Put 1 Update 0 Delete 1 Get 0");
  BOOST_TEST(actions(server) == "PutItem DeleteItem");
  BOOST_TEST(server.connection_count() == 1);
}

BOOST_AUTO_TEST_CASE(held_lock_costs_one_put_and_tells_who_holds_it) {
  ScriptedServer server;
  server.script(refusal(live_item()));
  Party party(at(server));
  BOOST_TEST(party.take() == "busy");
  BOOST_TEST(!party.holds());
  BOOST_TEST(party.lease->row().uuid == "theirs");
  BOOST_TEST(party.lease->row().owner == "holder:7");
  BOOST_TEST(actions(server) == "PutItem");
}

BOOST_AUTO_TEST_CASE(refusal_without_a_row_is_followed_by_a_consistent_look) {
  ScriptedServer server;
  server.script(refusal());
  server.script(Reply::ok(R"({"Item":)" + live_item() + "}"));
  Party party(at(server));
  BOOST_TEST(party.take() == "busy");
  BOOST_TEST(party.lease->row().uuid == "theirs");
  BOOST_TEST(actions(server) == "PutItem GetItem");
  BOOST_TEST(json(server.requests()[1].body)["ConsistentRead"].GetBool());
}

BOOST_AUTO_TEST_CASE(dead_lock_costs_a_host_that_knows_no_clock_a_look_more) {
  ScriptedServer server;
  server.script(
      Reply::ok(R"({"Item":)" + item("dead", "1700000000000000000") + "}"));
  Party party(new_at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(actions(server) == "GetItem PutItem");
  BOOST_TEST(json(server.requests()[0].body)["ConsistentRead"].GetBool());
  const auto put = json(server.requests()[1].body);
  BOOST_TEST(number(put["ExpressionAttributeValues"][":earliest"]) >
             1'700'000'000'000'000'000);
}

BOOST_AUTO_TEST_CASE(row_that_is_no_lock_is_left_alone) {
  ScriptedServer server;
  server.script(refusal(R"({"name":{"S":"x"},"uuid":{"N":"7"}})"));
  Party party(at(server));
  BOOST_TEST(party.take() == "bad_record");
  BOOST_TEST(actions(server) == "PutItem");
}

// --- Answers that were lost ------------------------------------------------

// Each way to lose an answer of a request that DynamoDB did get.
std::map<std::string, Reply> losses() {
  std::map<std::string, Reply> all;
  all["closed"] = Reply::gone(Ending::close);
  all["reset"] = Reply::gone(Ending::reset);
  all["500"] = failure(500, "InternalServerError");
  all["503 of a load balancer"] = Reply::error(503, "<html>no</html>");
  all["cut short"] = Reply::ok(R"({"a":"0123456789"})");
  all["cut short"].cut_body_at = 4;
  all["cut short"].ending = Ending::close;
  all["wrong checksum"] = Reply::ok("{}");
  all["wrong checksum"].wrong_crc32 = true;
  all["captive portal"] = with_header(Reply::ok("<html>Log in</html>"),
                                      "Content-Type", "text/html");
  all["empty"] = Reply::ok("");
  all["no HTTP"] = Reply::ok("");
  all["no HTTP"].raw = "hello\r\n";
  all["no HTTP"].ending = Ending::close;
  return all;
}

BOOST_AUTO_TEST_CASE(take_whose_answer_is_lost_is_ours_by_its_own_record) {
  for (const auto& [name, loss] : losses()) {
    BOOST_TEST_CONTEXT(name) {
      std::string row;
      ScriptedServer server([&row, loss = loss](const SeenRequest& request) {
        if (!row.empty()) return refusal(row);
        row = put_item_of(request);
        return loss;
      });
      Party party(at(server));
      const BootTime before = BootClock::now();
      BOOST_TEST(party.take() == "ours");
      BOOST_TEST(actions(server) == "PutItem PutItem");
      const auto first = json(server.requests()[0].body);
      const auto second = json(server.requests()[1].body);
      BOOST_TEST(number(second["ExpressionAttributeValues"][":own0"]) ==
                 number(first["Item"]["expires"]));
      BOOST_TEST(number(second["Item"]["expires"]) !=
                 number(first["Item"]["expires"]));
      // It counts from the first, which the row bears.
      const auto retried = party.answer.sent_at;
      BOOST_CHECK(party.lease->claim_end() >= before + lock::held_for(60s));
      BOOST_CHECK(party.lease->claim_end() < retried + lock::held_for(60s));
    }
  }
}

BOOST_AUTO_TEST_CASE(release_whose_answer_is_lost_is_released) {
  for (const auto& [name, loss] : losses()) {
    BOOST_TEST_CONTEXT(name) {
      ScriptedServer server;
      Party party(at(server));
      BOOST_REQUIRE(party.take() == "ours");
      server.script(loss);
      server.script(refusal());
      BOOST_TEST(party.release() == "released");
      BOOST_TEST(actions(server) == "PutItem DeleteItem DeleteItem");
    }
  }
}

BOOST_AUTO_TEST_CASE(renewal_whose_answer_is_lost_is_ours_by_its_own_record) {
  for (const auto& [name, loss] : losses()) {
    BOOST_TEST_CONTEXT(name) {
      std::string uuid;
      std::string row;
      ScriptedServer server([&, loss = loss](const SeenRequest& request) {
        const auto body = json(request.body);
        if (action_of(request) == "PutItem") {
          uuid = body["Item"]["uuid"]["S"].GetString();
          return Reply::ok("{}");
        }
        if (!row.empty()) return refusal(row);
        row = item(
            uuid,
            body["ExpressionAttributeValues"][":expires"]["N"].GetString());
        return loss;
      });
      Party party(at(server));
      BOOST_REQUIRE(party.take() == "ours");
      BOOST_TEST(party.renew() == "ours");
      BOOST_TEST(party.holds());
      BOOST_TEST(actions(server) == "PutItem UpdateItem UpdateItem");
    }
  }
}

BOOST_AUTO_TEST_CASE(attempt_after_an_unreachable_server_lists_no_stamp) {
  ScriptedServer server;
  Party party(at(server));
  server.stop();  // Nobody listens there any more.
  BOOST_TEST(party.step(Call::take) == "again");
  BOOST_TEST(party.fault() == "unreachable");
  BOOST_TEST(!party.answer.sent);
  BOOST_TEST(party.step(Call::take) == "again");
  BOOST_TEST(party.sent.own.empty());
}

// --- Faults ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(throttled_take_is_tried_again) {
  ScriptedServer server;
  server.script(
      with_header(failure(400, "ProvisionedThroughputExceededException"),
                  "x-amz-retry-after", "10"));
  Party party(at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(actions(server) == "PutItem PutItem");
}

BOOST_AUTO_TEST_CASE(wait_that_the_service_asks_for_is_kept) {
  ScriptedServer server;
  server.script(with_header(failure(503, "ServiceUnavailable"),
                            "x-amz-retry-after", "400"));
  Party party(at(server));
  const Stopwatch watch;
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(watch.ms() >= 400);
}

BOOST_AUTO_TEST_CASE(answer_after_a_failure_gives_the_budget_a_token_back) {
  ScriptedServer server;
  server.script(failure(500, "InternalServerError"));
  Party party(at(server));
  const int before = party.budget.tokens();
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(before - party.budget.tokens() == 14 - 1);
}

BOOST_AUTO_TEST_CASE(empty_budget_holds_back_neither_renewal_nor_release) {
  ScriptedServer server;
  Party party(at(server));
  BOOST_TEST_REQUIRE(party.take() == "ours");
  while (party.budget.draw(Fault::server_failure)) {
  }
  server.script(failure(500, "InternalServerError"));
  // The cap that a take would wait is 5 s.
  BOOST_TEST(tests::returns_within(1s, [&] {
    BOOST_TEST(party.renew() == "ours");
    server.script(failure(500, "InternalServerError"));
    BOOST_TEST(party.release() == "released");
  }));
}

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

BOOST_AUTO_TEST_CASE(final_fault_ends_the_call_at_once) {
  const std::map<std::string, std::string> codes = {
      {"AccessDeniedException", "access_denied"},
      {"UnrecognizedClientException", "bad_keys"},
      {"ExpiredTokenException", "expired_keys"},
      {"ResourceNotFoundException", "no_table"},
      {"ValidationException", "bad_request"}};
  for (const auto& [code, fault] : codes) {
    ScriptedServer server;
    server.script(failure(400, code));
    Party party(at(server));
    BOOST_TEST(party.take() == "again");
    BOOST_TEST(party.fault() == fault);
    BOOST_TEST(!party.holds());
    BOOST_TEST(party.answer.message.rfind("as the test wants", 0) == 0u);
    BOOST_TEST(server.request_count() == 1);
  }
}

BOOST_AUTO_TEST_CASE(party_without_keys_sends_nothing) {
  ScriptedServer server;
  PartySettings settings = at(server);
  settings.keys.reset();
  Party party(settings);
  BOOST_TEST(party.take() == "again");
  BOOST_TEST(party.fault() == "no_keys");
  BOOST_TEST(party.counts() == "Put 0 Update 0 Delete 0 Get 0");
  BOOST_TEST(server.connection_count() == 0);
}

BOOST_AUTO_TEST_CASE(table_gone_while_held_is_a_row_deleted) {
  ScriptedServer server;
  Party renewing(at(server));
  BOOST_REQUIRE(renewing.take() == "ours");
  server.script(failure(400, "ResourceNotFoundException"));
  BOOST_TEST(renewing.renew() == "deleted");
  Party releasing(at(server));
  BOOST_REQUIRE(releasing.take() == "ours");
  server.script(failure(400, "ResourceNotFoundException"));
  BOOST_TEST(releasing.release() == "deleted");
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

BOOST_AUTO_TEST_CASE(signature_that_no_time_mends_is_final) {
  ScriptedServer server([](const SeenRequest& request) {
    // Each answer is another two hours ahead of the one before.
    return with_header(failure(400, "InvalidSignatureException"), "Date",
                       http_date(2h * request.number));
  });
  Party party(new_at(server));
  BOOST_TEST(party.take() == "again");
  BOOST_TEST(server.request_count() == 2);
}

// Unless time runs out amid the last request.
static std::string fault_at_the_deadline() {
  ScriptedServer server(
      [](const SeenRequest&) { return failure(500, "InternalServerError"); });
  Party party(at(server));
  BOOST_TEST(tests::returns_within(
      3s, [&] { BOOST_TEST(party.run(Call::take, 3s) == "again"); }));
  BOOST_TEST(!party.holds());
  if (server.request_count() < 2) return "not tried again";
  return party.fault();
}

BOOST_AUTO_TEST_CASE(retries_end_at_the_deadline_with_the_last_fault) {
  BOOST_TEST(tests::in_some_round([] {
               const std::string fault = fault_at_the_deadline();
               return fault == "server_failure" ? "" : fault;
             }) == "");
}

BOOST_AUTO_TEST_CASE(take_that_is_given_up_stays_in_flight) {
  ScriptedServer server([](const SeenRequest&) {
    Reply late;
    late.hangs = true;
    return late;
  });
  Party party(at(server));
  tests::Limits limits{BootClock::now() + 2s};
  limits.keeps_request = true;
  BOOST_TEST(party.run(Call::take, limits) == "again");
  lock::Attempt& attempt = *party.attempt;
  BOOST_TEST(attempt.given_up());
  BOOST_TEST(!attempt.outcome_unknown());
  BOOST_REQUIRE(attempt.has_request());
  BOOST_REQUIRE(attempt.in_flight());
  BOOST_TEST(party.fault() == "timed_out");

  server.release();
  sigv4::Exchange* exchange = &attempt.exchange();
  sigv4::drive(&exchange, 1, BootClock::now() + kPlenty, nullptr);
  attempt.finish(sigv4::Transport::timed_out);
  attempt.receive();
  BOOST_TEST(word(attempt.verdict()) == "ours");
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

BOOST_AUTO_TEST_CASE(look_that_leaves_no_time_for_the_take_is_a_time_out) {
  ScriptedServer server;
  server.script(refusal(live_item()));
  server.script(with_header(Reply::ok("{}"), "Date", http_date(2h)));
  Party party(at(server));
  BOOST_REQUIRE(party.take() == "busy");
  tests::Limits limits{BootClock::now() + 3s};
  // The row is seen to be gone in time, and then there is none left.
  party.client.on_contradiction([&] { pause_until(limits.deadline); });
  BOOST_TEST(party.run(Call::take, limits) == "again");
  BOOST_TEST(actions(server) == "PutItem GetItem");
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(party.attempt->given_up());
}

BOOST_AUTO_TEST_CASE(request_that_times_out_is_ended) {
  ScriptedServer server([](const SeenRequest&) {
    Reply hanging;
    hanging.hangs = true;
    return hanging;
  });
  PartySettings settings = at(server);
  settings.request_timeout = 2s;  // It is sent in it.
  Party party(settings);
  tests::Limits limits{BootClock::now() + kPlenty};
  limits.keeps_request = true;
  limits.tries_once = true;
  BOOST_TEST(party.run(Call::take, limits) == "again");
  BOOST_TEST(!party.attempt->given_up());
  BOOST_TEST(party.attempt->outcome_unknown());
  BOOST_TEST(!party.attempt->has_request());
}

BOOST_AUTO_TEST_CASE(nothing_is_tried_again_past_the_time_for_retries) {
  ScriptedServer server(
      [](const SeenRequest&) { return failure(500, "InternalServerError"); });
  Party party(at(server));
  tests::Limits limits{BootClock::now() + kPlenty};
  limits.tries_once = true;
  BOOST_TEST(party.run(Call::take, limits) == "again");
  BOOST_TEST(party.fault() == "server_failure");
  BOOST_TEST(!party.attempt->given_up());
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(wrong_time_is_corrected_past_the_time_for_retries) {
  ScriptedServer server([](const SeenRequest& request) {
    if (request.number > 1) return with_header({}, "Date", http_date(2h));
    return with_header(failure(400, "InvalidSignatureException"), "Date",
                       http_date(2h));
  });
  Party party(new_at(server));
  tests::Limits limits{BootClock::now() + kPlenty};
  limits.tries_once = true;
  BOOST_TEST(party.run(Call::take, limits) == "ours");
  BOOST_TEST(actions(server) == "GetItem GetItem PutItem");
}

BOOST_AUTO_TEST_CASE(wrong_time_told_at_the_deadline_says_nothing_of_the_keys) {
  ScriptedServer server;
  Party party(at(server));
  BOOST_REQUIRE(party.take() == "ours");
  server.script(with_header(failure(400, "InvalidSignatureException"), "Date",
                            http_date(2h)));
  tests::Limits limits{BootClock::now() + 3s};
  // The refusal is heard in time, and then there is none left.
  party.client.on_contradiction([&] { pause_until(limits.deadline); });
  BOOST_TEST(party.run(Call::release, limits) == "again");
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(server.request_count() == 2);
}

BOOST_AUTO_TEST_CASE(nothing_is_sent_past_a_deadline) {
  ScriptedServer server;
  Party party(at(server));
  BOOST_TEST(party.run(Call::take, -1ms) == "again");
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(server.request_count() == 0);
}

BOOST_AUTO_TEST_CASE(renewal_goes_on_until_the_claim_ends_and_no_longer) {
  ScriptedServer server;
  PartySettings settings = at(server);
  settings.ttl = 3s;
  Party party(settings);
  BOOST_REQUIRE(party.take() == "ours");
  const BootTime end = party.lease->claim_end();
  server.stop();
  std::string verdict;
  BOOST_TEST(tests::returns_within(end - BootClock::now(),
                                   [&] { verdict = party.renew(); }));
  BOOST_TEST((verdict == "expired" || verdict == "again"));
  BOOST_CHECK(party.lease->claim_end() <= end);
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

BOOST_AUTO_TEST_CASE(waker_once_cleared_lets_the_next_call_through) {
  ScriptedServer server;
  Party party(at(server));
  party.waker.wake();
  BOOST_TEST(party.take() == "again");
  BOOST_TEST(party.fault() == "cancelled");
  BOOST_TEST(!party.answer.sent);
  BOOST_TEST(!party.attempt->outcome_unknown());  // So nothing is to follow.
  BOOST_TEST(server.request_count() == 0);
  party.waker.clear();
  BOOST_TEST(party.take() == "ours");
}

// --- DynamoDB's clock ------------------------------------------------------

BOOST_AUTO_TEST_CASE(first_take_is_stamped_by_dynamodbs_clock_after_a_look) {
  for (const std::chrono::hours ahead : {-1h, 1h}) {
    ScriptedServer server([ahead](const SeenRequest&) {
      return with_header(Reply::ok("{}"), "Date", http_date(ahead));
    });
    Party party(new_at(server));
    const nanoseconds before = dynamodb::Client::calendar() + ahead;
    BOOST_TEST(party.take() == "ours");
    const nanoseconds after = dynamodb::Client::calendar() + ahead;
    BOOST_TEST(actions(server) == "GetItem PutItem");
    const auto put = json(server.requests()[1].body);
    const std::int64_t stamp = number(put["Item"]["expires"]);
    BOOST_TEST(stamp >= (before + 59s).count());
    BOOST_TEST(stamp <= (after + 62s).count());
  }
}

BOOST_AUTO_TEST_CASE(service_without_a_date_is_stamped_beyond_all_clocks) {
  ScriptedServer server([](const SeenRequest&) {
    return with_header(Reply::ok("{}"), "Date", "");
  });
  Party party(new_at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(actions(server) == "GetItem PutItem");
  const auto put = json(server.requests()[1].body);
  BOOST_TEST(number(put["Item"]["expires"]) == 4'000'000'000'000'000'001);
}

// Neither may set the clock: the first is not DynamoDB's, the other a cache's.
BOOST_AUTO_TEST_CASE(date_of_somebody_else_is_not_believed) {
  ScriptedServer server([](const SeenRequest& request) {
    Reply reply = with_header(Reply::ok("{}"), "Date", http_date(1h));
    if (request.number % 2 == 1) {
      return with_header(reply, "x-amzn-RequestId", "");
    }
    return with_header(reply, "Age", "3600");
  });
  Party party(new_at(server));
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(!party.client.clock().known());
  BOOST_TEST(party.client.clock().silent());
}

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

BOOST_AUTO_TEST_CASE(one_answer_of_another_time_ends_what_is_held) {
  ScriptedServer server;
  Party party(at(server));
  BOOST_REQUIRE(party.take() == "ours");
  server.script(with_header(Reply::ok("{}"), "Date", http_date(2h)));
  BOOST_TEST(party.renew() == "expired");
  BOOST_TEST(!party.holds());
}

// --- A service that contradicts itself -------------------------------------

BOOST_AUTO_TEST_CASE(release_refused_by_our_own_row_is_not_sent_in_a_frenzy) {
  std::string row;
  ScriptedServer server([&row](const SeenRequest& request) {
    if (action_of(request) != "PutItem") return refusal(row);
    row = put_item_of(request);
    return Reply::ok("{}");
  });
  Party party(at(server));
  BOOST_REQUIRE(party.take() == "ours");
  BOOST_TEST(party.run(Call::release, 3s) == "again");
  // Five at once, then a pause of a quarter of a second between, on average.
  BOOST_TEST(server.request_count() >= 1 + 5);
  BOOST_TEST(server.request_count() < 60);
}

// Who waits asks again and again by one attempt: what he lost before makes him
// no slower.  (Pauses of a quarter of a second, on average, would add up to 75
// s.)
BOOST_AUTO_TEST_CASE(each_run_of_an_attempt_begins_anew) {
  ScriptedServer server([](const SeenRequest&) {
    return refusal(item("dead", "1700000000000000000"));
  });
  Party party(at(server));
  lock::Attempt attempt(Call::take, *party.held, &party.observation);
  BOOST_TEST(tests::returns_within(30s, [&] {
    for (int run = 0; run < 300; ++run) {
      attempt.run(BootClock::now() + kPlenty, nullptr);
    }
  }));
  BOOST_TEST(word(attempt.verdict()) == "busy");
}

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

BOOST_AUTO_TEST_CASE(take_refused_by_a_row_that_is_free_is_busy_in_the_end) {
  ScriptedServer server([](const SeenRequest&) {
    return refusal(item("dead", "1700000000000000000"));
  });
  Party party(at(server));
  BOOST_TEST(party.take() == "busy");
  BOOST_TEST(server.request_count() == 3);
}

BOOST_AUTO_TEST_SUITE_END()
