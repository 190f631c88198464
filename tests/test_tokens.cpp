// Kept rows over processes: what a token, a row and a guarded write are to one
// process after another was killed or stopped.  Then the tokens that processes
// are given while they are killed: first whether the judge judges well, then a
// short run (`make soak` has the long one).
#include <stdlib.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/support/agent.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using claims::Grant;
using claims::judge_tokens;
using claims::nanoseconds;
using claims::Token;
using claims::TokenRecord;
using std::chrono::milliseconds;

Grant granted(int process, Token token, int begin, int end, int lock = 7) {
  return {process, lock, token,
          claims::Claim{process, milliseconds(begin), milliseconds(end)}};
}

// What was wrong, a line each.
std::string wrong(const std::vector<Grant>& grants) {
  std::string text;
  for (const std::string& one : judge_tokens(grants).wrong) text += one + "\n";
  return text;
}

TokenRecord read(const std::string& text) {
  std::istringstream in(text);
  return claims::TokenReader(3).read(in);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(tokens_judge)

BOOST_AUTO_TEST_CASE(tokens_that_grow_in_the_order_of_acquisitions_are_right) {
  BOOST_TEST(wrong({granted(2, 5, 20, 30), granted(1, 1, 0, 10),
                    granted(1, 2, 10, 20), granted(2, 6, 30, 40)}) == "");
  BOOST_TEST(wrong({}) == "");
}

BOOST_AUTO_TEST_CASE(token_given_twice_is_found) {
  BOOST_TEST(wrong({granted(1, 4, 0, 10), granted(2, 4, 20, 30)}) ==
             "lock 7: gave 4 to process 1 and 4 to process 2\n"
             "lock 7: gave 4 to process 1, then 4 to process 2\n");
}

BOOST_AUTO_TEST_CASE(token_given_twice_is_found_where_one_was_lost_at_once) {
  Grant lost = granted(1, 4, 0, 0);
  lost.claim.reset();
  BOOST_TEST(wrong({lost, granted(2, 4, 20, 30)}) ==
             "lock 7: gave 4 to process 1 and 4 to process 2\n");
}

BOOST_AUTO_TEST_CASE(token_lower_than_that_of_the_one_before_is_found) {
  BOOST_TEST(wrong({granted(1, 5, 0, 10), granted(2, 4, 20, 30),
                    granted(2, 6, 40, 50)}) ==
             "lock 7: gave 5 to process 1, then 4 to process 2\n");
}

BOOST_AUTO_TEST_CASE(token_of_nothing_is_found) {
  BOOST_TEST(wrong({granted(1, 0, 0, 10)}) == "lock 7: gave 0 to process 1\n");
}

BOOST_AUTO_TEST_CASE(claims_that_overlap_are_found) {
  BOOST_TEST(wrong({granted(1, 1, 0, 11), granted(2, 2, 10, 30)}) ==
             "lock 7: was held at once by process 1 [0, 11000000) and process "
             "2 [10000000, 30000000)\n");
}

BOOST_AUTO_TEST_CASE(each_lock_counts_for_itself) {
  BOOST_TEST(wrong({granted(1, 5, 0, 10, 1), granted(2, 5, 0, 10, 2)}) == "");
  const auto found =
      judge_tokens({granted(1, 5, 0, 10, 1), granted(2, 6, 20, 30, 1),
                    granted(2, 3, 0, 10, 2)});
  BOOST_TEST(found.all == 3u);
  BOOST_TEST(found.grants.at(1) == 2u);
  BOOST_TEST(found.highest.at(1) == 6u);
  BOOST_TEST(found.hand_overs == 1);
}

BOOST_AUTO_TEST_CASE(row_counts_no_less_than_was_given) {
  const auto found = judge_tokens(
      {granted(1, 2, 0, 10), granted(2, 5, 20, 30), granted(2, 9, 0, 10, 2)});
  using claims::row_problem;
  BOOST_TEST(row_problem(found, 7, 5) == "");
  BOOST_TEST(row_problem(found, 7, 8) == "");
  BOOST_TEST(row_problem(found, 7, 4) ==
             "lock 7: its row says 4, but 5 was given");
  BOOST_TEST(row_problem(found, 7, 1) ==
             "lock 7: its row says 1 after 2 acquisitions");
  BOOST_TEST(row_problem(found, 8, 0) == "");
}

BOOST_AUTO_TEST_CASE(log_is_read_as_grants) {
  const TokenRecord record = read(
      "granted 4 1 10 310\ngiven 5 8\ngranted 6 2 20 320\nended 4 1 15\n"
      "granted 4 3 30 330\nended 4 3 400\ngranted 4 4 50");
  BOOST_TEST(record.problem == "");
  BOOST_TEST_REQUIRE(record.grants.size() == 4u);
  BOOST_TEST(record.grants[0].claim->end.count() == 15);
  BOOST_TEST(!record.grants[1].claim.has_value());
  BOOST_TEST(record.grants[2].claim->end.count() == 320);
  BOOST_TEST(record.grants[3].claim->end.count() == 400);
  BOOST_TEST(record.grants[3].token == 3u);
  BOOST_TEST(record.grants[3].process == 3);
}

BOOST_AUTO_TEST_CASE(log_that_makes_no_sense_is_a_problem) {
  for (const char* text :
       {"nonsense 1 2\n", "\n", "granted 1 2\n", "granted 1 2 10 10\n",
        "granted 1 2 10 x\n", "given 1\n", "failed to lock\n", "ended 1 2 3\n",
        "given 1 2\nended 1 2 3\n", "granted 1 2 10 20\nended 1 3 15\n",
        "granted 1 2 10 20\nended 1 2 9\n",
        "granted 1 2 10 20\nended 1 2 15\nended 1 2 16\n"}) {
    BOOST_TEST(read(text).problem != "", text);
  }
}

BOOST_AUTO_TEST_CASE(log_that_is_written_is_read_alike) {
  char directory[] = "/tmp/ddbmutex-tokens-XXXXXX";
  BOOST_TEST_REQUIRE(mkdtemp(directory) != nullptr);
  const std::string file = std::string(directory) + "/3";
  claims::TokenLog log(file);
  BOOST_TEST(log.granted(1, 2, nanoseconds(10), nanoseconds(300)));
  BOOST_TEST(log.given(4, 5));
  BOOST_TEST(log.ended(1, 2, nanoseconds(20)));
  BOOST_TEST(log.failed("for a reason"));
  std::ifstream in(file);
  const TokenRecord record = claims::TokenReader(3).read(in);
  BOOST_TEST_REQUIRE(record.grants.size() == 2u);
  BOOST_TEST(record.grants[0].claim->end.count() == 20);
  BOOST_TEST(record.grants[1].lock == 4);
  BOOST_TEST(record.problem == "unexpected 'failed for a reason'");
  std::filesystem::remove_all(directory);
}

BOOST_AUTO_TEST_CASE(what_one_has_counted_another_sees) {
  char directory[] = "/tmp/ddbmutex-tokens-XXXXXX";
  BOOST_TEST_REQUIRE(mkdtemp(directory) != nullptr);
  const std::string file = std::string(directory) + "/count";
  {
    claims::SharedCount ours(file);
    claims::SharedCount theirs(file);
    ours.add();
    theirs.add();
    BOOST_TEST(ours.now() == 2u);
  }
  BOOST_TEST(claims::SharedCount(file).now() == 2u);
  std::filesystem::remove_all(directory);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tokens_processes)

namespace {

using ddbmutex::Errc;
using tests::Agent;
using tests::Engine;
using tests::EngineKind;
using tests::fresh_name;
using tests::refused;
namespace data = boost::unit_test::data;

// Two processes and a lock whose row is kept.
struct Kept {
  explicit Kept(EngineKind kind, const std::string& ttl = "60000")
      : engine(Engine::running(kind)) {
    one.make("a", name, "keep_row=1 ttl=" + ttl);
    two.make("a", name, "keep_row=1");
  }

  // One item beside the lock's, by its holder alone.
  std::string put(const std::string& value) const {
    return R"([{"Put":{"TableName":")" + engine.table() +
           R"(","Item":{"name":{"S":")" + other + R"("},"value":{"S":")" +
           value + R"("}}}}])";
  }
  // The same by a transaction of the program's own.
  long status_of(const std::string& check, const std::string& value) {
    const std::string body = R"({"TransactItems":[{"ConditionCheck":)" + check +
                             "}," + put(value).substr(1) + "}";
    return engine.call("TransactWriteItems", body).status;
  }
  std::string value() {
    const std::string answer = engine.must_call(
        "GetItem", R"({"TableName":")" + engine.table() +
                       R"(","ConsistentRead":true,"Key":{"name":{"S":")" +
                       other + R"("}}})");
    const std::string begin = R"("value":{"S":")";
    const auto at = answer.find(begin);
    if (at == answer.npos) return "";
    const auto from = at + begin.size();
    return answer.substr(from, answer.find('"', from) - from);
  }

  Engine& engine;
  const std::string name = fresh_name();
  const std::string other = fresh_name();
  Agent one{at(engine)};
  Agent two{at(engine)};
};

}  // namespace

BOOST_DATA_TEST_CASE(released_row_hands_token_and_data_to_the_next_process,
                     data::make(tests::engine_kinds()), kind) {
  Kept kept(kind);
  BOOST_TEST(kept.one.ask("lock a") == "true");
  BOOST_TEST(kept.one.ask("token a") == "1");
  BOOST_TEST(kept.one.ask("renew a set.colour=blue") == "true");
  BOOST_TEST(kept.one.ask("release a data=job-7") == "true");
  BOOST_TEST(kept.two.ask("lock a") == "true");
  BOOST_TEST(kept.two.ask("token a") == "2");
  BOOST_TEST(kept.two.ask("data a") == "job-7");
  BOOST_TEST(kept.two.ask("attribute a colour") == "blue");
  BOOST_TEST(kept.two.ask("release a remove=colour remove=data") == "true");
  BOOST_TEST(kept.one.ask("lock a") == "true");
  BOOST_TEST(kept.one.ask("token a") == "3");
  BOOST_TEST(kept.one.ask("data a") == "-");
  BOOST_TEST(kept.one.ask("attribute a colour") == "-");
}

BOOST_DATA_TEST_CASE(killed_holder_leaves_its_number_to_nobody,
                     data::make(tests::engine_kinds()), kind) {
  Kept kept(kind);
  kept.one.make("b", kept.name, "keep_row=1 ttl=2000 data=half-done");
  BOOST_TEST(kept.one.ask("lock b") == "true");
  BOOST_TEST(kept.one.ask("token b") == "1");
  kept.one.kill();
  BOOST_TEST(kept.two.ask("lock a") == "true");
  BOOST_TEST(kept.two.ask("token a") == "2");
  BOOST_TEST(kept.two.ask("data a") == "half-done");
}

BOOST_DATA_TEST_CASE(process_that_deletes_rows_leaves_a_kept_one_alone,
                     data::make(tests::engine_kinds()), kind) {
  Kept kept(kind);
  BOOST_TEST(kept.one.ask("lock a") == "true");
  BOOST_TEST(kept.one.ask("release a") == "true");
  const std::string row = tests::raw_row(kept.engine, kept.name);
  kept.two.make("b", kept.name);
  BOOST_TEST(kept.two.ask("try b") == refused(Errc::kept_row));
  BOOST_TEST(tests::raw_row(kept.engine, kept.name) == row);
  BOOST_TEST(row != "");
}

BOOST_DATA_TEST_CASE(row_that_must_exist_is_made_by_no_taker,
                     data::make(tests::engine_kinds()), kind) {
  Kept kept(kind);
  kept.two.make("b", kept.name, "keep_row=1 only_if_exists=1");
  BOOST_TEST(kept.two.ask("try b") == refused(Errc::no_row));
  BOOST_TEST(tests::raw_row(kept.engine, kept.name) == "");
  BOOST_TEST(kept.one.ask("lock a") == "true");
  BOOST_TEST(kept.one.ask("release a") == "true");
  BOOST_TEST(kept.two.ask("try b") == "true");
  BOOST_TEST(kept.two.ask("token b") == "2");
}

BOOST_DATA_TEST_CASE(write_of_a_holder_that_was_stopped_too_long_is_refused,
                     data::make(tests::engine_kinds()), kind) {
  Kept kept(kind, "3000");
  BOOST_TEST(kept.one.ask("lock a") == "true");
  const std::string written = kept.one.ask("guard a " + kept.put("one"));
  if (written == refused(Errc::not_supported)) {
    BOOST_TEST_MESSAGE("not checked: " << kind << " has no transactions");
    return;
  }
  BOOST_TEST(written == "true");
  kept.one.stop();
  BOOST_TEST(kept.two.ask("lock a") == "true");
  BOOST_TEST(kept.two.ask("guard a " + kept.put("two")) == "true");
  kept.one.go_on();
  BOOST_TEST(kept.one.ask("guard a " + kept.put("late")) ==
             refused(Errc::lease_lost));
  BOOST_TEST(kept.value() == "two");
}

BOOST_DATA_TEST_CASE(condition_of_an_acquisition_holds_no_longer_than_it,
                     data::make(tests::engine_kinds()), kind) {
  Kept kept(kind);
  BOOST_TEST(kept.one.ask("check a") == refused(Errc::not_held));
  BOOST_TEST(kept.one.ask("lock a") == "true");
  const std::string check = kept.one.ask("check a");
  if (kept.one.ask("guard a " + kept.put("none")) != "true") {
    BOOST_TEST_MESSAGE("not checked: " << kind << " has no transactions");
    return;
  }
  BOOST_TEST(kept.status_of(check, "held") == 200);
  BOOST_TEST(kept.one.ask("release a") == "true");
  BOOST_TEST(kept.status_of(check, "released") == 400);
  BOOST_TEST(kept.two.ask("lock a") == "true");
  BOOST_TEST(kept.status_of(check, "late") == 400);
  BOOST_TEST(kept.value() == "held");
}

BOOST_AUTO_TEST_CASE(hold_ends_with_max_hold_and_another_gets_in) {
  Kept kept(tests::any_engine_kind());
  kept.one.make("b", kept.name,
                "keep_row=1 ttl=2000 renew_after=500 max_hold=2500");
  BOOST_TEST(kept.one.ask("lock b") == "true");
  BOOST_TEST(kept.two.ask("lock a") == "true");
  BOOST_TEST(kept.one.ask("owns b") == "false");
  BOOST_TEST(kept.one.ask("losses b") == "expired");
  BOOST_TEST(kept.two.ask("token a") == "2");
}

BOOST_AUTO_TEST_CASE(lease_that_nobody_renews_goes_to_another) {
  Kept kept(tests::any_engine_kind());
  kept.one.make("b", kept.name, "keep_row=1 ttl=4000 auto_renew=0");
  BOOST_TEST(kept.one.ask("lock b") == "true");
  BOOST_TEST(kept.one.ask("renew b") == "true");
  BOOST_TEST(kept.two.ask("lock a") == "true");
  BOOST_TEST(kept.one.ask("release b") == refused(Errc::lease_lost));
  BOOST_TEST(kept.two.ask("owns a") == "true");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(tokens_run)

BOOST_AUTO_TEST_CASE(no_token_is_given_twice_though_processes_are_killed) {
  const std::string seed = std::to_string(std::random_device()());
  tests::Process run({{tests::program_path("processes/tokens"), "1000", seed},
                      tests::clean_environment()});
  // All it says goes to whoever reads the tests' output: the seed above all.
  std::string said;
  try {
    for (;;) said += "\n  " + run.channel().line();
  } catch (const std::runtime_error&) {  // The end of what it says.
  }
  BOOST_TEST_MESSAGE("tokens:" << said);
  BOOST_TEST(run.wait() == 0, said);
  BOOST_TEST(run.complaints() == "");
}

BOOST_AUTO_TEST_SUITE_END()
