// Kept rows over processes: what a token, a row and a guarded write are to one
// process after another was killed or stopped.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <string>

#include "tests/support/agent.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/whereabouts.hpp"

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
