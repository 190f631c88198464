// Writes that DynamoDB carries out only while the lock is held: what it
// refuses, what is sent again, and that it is carried out once.
#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/transact.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

// A name, since the compiler wants one of what the cases' templates capture.
namespace guarding {

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using ddbmutex::dynamodb::problem_of_writes;
using std::chrono::milliseconds;

const std::string kTransact = "TransactWriteItems";

// Those that have transactions.
std::vector<EngineKind> able_kinds() {
  std::vector<EngineKind> kinds = engine_kinds();
  kinds.erase(std::remove(kinds.begin(), kinds.end(), EngineKind::dynalite),
              kinds.end());
  return kinds;
}
const auto kAble = boost::unit_test::data::make(able_kinds());
// Whether the lock's row is kept.
const auto kKept = boost::unit_test::data::make({false, true});

// A lock that is held, on a gate before an engine, and an item to write.
struct Held {
  explicit Held(EngineKind kind, bool keep = false, milliseconds ttl = 60s)
      : Held(kind, [keep, ttl](Options& options) {
          options.keep_row = keep;
          options.ttl = ttl;
        }) {}
  template <class Change>
  Held(EngineKind kind, const Change& change)
      : gate(kind), table(table_at(gate)) {
    Options options = on_table(table);
    change(options);
    // What is asked for once is sent once, unless the lease is too short.
    if (options.ttl >= 1min && !options.request_timeout) {
      options.request_timeout = 20s;
    }
    mutex = std::make_unique<DdbMutex>(fresh_name(), options);
    mutex->lock();
  }

  Engine& engine() { return gate.engine(); }

  // {"Update":{...}}: counts in the item of that name, if `condition` holds.
  std::string count_up(const std::string& name,
                       const std::string& condition = {}) {
    std::string text = R"({"Update":)" + place_in(engine(), "Key", name) +
                       R"(},"UpdateExpression":"ADD n :one",)"
                       R"("ExpressionAttributeValues":{":one":{"N":"1"}})";
    if (!condition.empty()) {
      text += R"(,"ConditionExpression":")" + condition + "\"";
    }
    return text + "}}";
  }
  std::string one_write() { return "[" + count_up(item) + "]"; }

  // How often it was written; -1: never.
  int written(const std::string& name) {
    const auto found = item_of(engine(), name);
    if (!found) return -1;
    return std::stoi(ddbmutex::dynamodb::find(*found, "n")->value);
  }
  int written() { return written(item); }

  // What guarded_write() throws, in words.
  std::string write() {
    return thrown_by([this] { mutex->guarded_write(one_write()); });
  }

  // The bodies of all guarded writes.
  std::vector<std::string> sent() {
    std::vector<std::string> bodies;
    for (const SeenRequest& request : gate.server().requests()) {
      if (action_of(request) == kTransact) bodies.push_back(request.body);
    }
    return bodies;
  }

  Gate gate;
  std::shared_ptr<Table> table;
  const std::string item = fresh_name();
  std::unique_ptr<DdbMutex> mutex;
};

// Not carried out, for those reasons; JSON.
Gate::Rule cancelled(const std::string& reasons) {
  return [reasons](Engine&, const SeenRequest&) {
    return failure(400, "TransactionCanceledException",
                   R"(,"CancellationReasons":[)" + reasons + "]");
  };
}

Gate::Rule refused(const std::string& code) {
  return [code](Engine&, const SeenRequest&) { return failure(400, code); };
}

const std::string kConflict =
    R"({"Code":"TransactionConflict","Message":"ongoing"})";
const std::string kNone = R"({"Code":"None"})";

}  // namespace guarding

using namespace guarding;

BOOST_AUTO_TEST_SUITE(guard)

// --- While the lock is held --------------------------------------------------

BOOST_DATA_TEST_CASE(write_under_the_lock_is_carried_out, kAble* kKept, kind,
                     keep) {
  Held x(kind, keep);
  const std::string other = fresh_name();
  BOOST_TEST(x.write() == "none");
  x.mutex->guarded_write(" [ " + x.count_up(x.item) + "\n,\t" +
                         x.count_up(other) + " ] ");
  BOOST_TEST(x.written() == 2);
  BOOST_TEST(x.written(other) == 1);
  BOOST_TEST(x.table->stats().other == 2u);
  // The lock's own row is as it was.
  x.mutex->release();
  BOOST_TEST(is_free(x.engine(), x.mutex->name()) == !keep);
}

BOOST_DATA_TEST_CASE(write_goes_on_while_the_lease_is_renewed, kAble* kKept,
                     kind, keep) {
  Held x(kind, [keep](Options& options) {
    options.keep_row = keep;
    options.renew_after = 100ms;
  });
  const auto renewals = x.table->stats().update_item;
  int writes = 0;
  while (x.table->stats().update_item < renewals + 5) {
    x.mutex->guarded_write(x.one_write());
    ++writes;
  }
  BOOST_TEST(x.written() == writes);
}

BOOST_DATA_TEST_CASE(write_is_carried_out_if_only_our_clock_says_it_is_late,
                     kAble* kKept, kind, keep) {
  Held x(kind, [keep](Options& options) {
    options.keep_row = keep;
    options.ttl = 2s;
    options.auto_renew = false;
  });
  BOOST_TEST(eventually([&] { return !x.mutex->owns_lock(); }));
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.written() == 1);
}

// --- Who has lost it ---------------------------------------------------------

BOOST_DATA_TEST_CASE(write_is_refused_once_another_has_the_lock, kAble* kKept,
                     kind, keep) {
  Held x(kind, keep, 1h);
  const std::string token = keep ? R"(,"token":{"N":"1"})" : "";
  write_row(x.engine(), x.mutex->name(), live_record() + token);
  BOOST_TEST(x.mutex->owns_lock());  // It has not heard of it.
  const auto error = error_of([&] { x.mutex->guarded_write(x.one_write()); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::lease_lost));
  BOOST_TEST(has(error->what(), "cannot write under"), error->what());
  BOOST_TEST(has(error->what(), x.mutex->name()), error->what());
  BOOST_TEST(error->request_id() != "");
  BOOST_TEST(x.written() == -1);
  BOOST_TEST(!x.mutex->owns_lock());  // Now it has.
}

BOOST_DATA_TEST_CASE(write_is_refused_once_the_row_is_gone, kAble* kKept, kind,
                     keep) {
  Held x(kind, keep, 1h);
  delete_row(x.engine(), x.mutex->name());
  BOOST_TEST(x.write() == words(Errc::lease_lost));
  BOOST_TEST(x.written() == -1);
  BOOST_TEST(!x.mutex->owns_lock());
}

BOOST_DATA_TEST_CASE(write_is_refused_once_the_lock_was_freed_by_force,
                     kAble* kKept, kind, keep) {
  Held x(kind, keep, 1h);
  BOOST_TEST(x.table->force_unlock(x.table->inspect(x.mutex->name())));
  BOOST_TEST(x.write() == words(Errc::lease_lost));
  BOOST_TEST(x.written() == -1);
  BOOST_TEST(!x.mutex->owns_lock());
}

// DynamoDB has said that the lock is not ours: that a renewal tells nothing of
// it changes nothing.
BOOST_DATA_TEST_CASE(refused_write_ends_the_hold_though_no_renewal_is_answered,
                     kAble* kKept, kind, keep) {
  Told told;
  Held x(kind, [&](Options& options) {
    options.keep_row = keep;
    options.request_timeout = 1s;
    options.on_lost = [&](ddbmutex::Loss why) { told.add(name_of(why)); };
  });
  x.gate.always("UpdateItem", Gate::fails_late());
  x.gate.once("TransactWriteItems", [](Engine&, const SeenRequest&) {
    return failure(400, "TransactionCanceledException",
                   R"(,"CancellationReasons":[)"
                   R"({"Code":"ConditionalCheckFailed"},{"Code":"None"}])");
  });
  BOOST_TEST(x.write() == words(Errc::lease_lost));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "taken");
  x.gate.server().release();
}

// A write that is refused for another reason is no loss.
BOOST_DATA_TEST_CASE(write_refused_for_its_own_condition_leaves_the_lock_held,
                     kAble, kind) {
  Held x(kind, false, 1h);
  const auto renewals = count_of(x.gate.server(), "UpdateItem");
  BOOST_TEST(thrown_by([&] {
               x.mutex->guarded_write(
                   "[" + x.count_up(x.item, "attribute_exists(n)") + "]");
             }) == words(Errc::condition_failed));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(count_of(x.gate.server(), "UpdateItem") == renewals);
}

BOOST_DATA_TEST_CASE(write_is_refused_for_another_token_alone, kAble, kind) {
  Held x(kind, true, 1h);
  x.engine().must_call(
      "UpdateItem", place_in(x.engine(), "Key", x.mutex->name()) +
                        R"(},"UpdateExpression":"ADD #t :one",)"
                        R"("ExpressionAttributeNames":{"#t":"token"},)"
                        R"("ExpressionAttributeValues":{":one":{"N":"1"}}})");
  BOOST_TEST(x.write() == words(Errc::lease_lost));
  BOOST_TEST(x.written() == -1);
}

BOOST_DATA_TEST_CASE(write_after_a_loss_that_was_told_is_refused_by_the_table,
                     kAble* kKept, kind, keep) {
  Held x(kind, [keep](Options& options) {
    options.keep_row = keep;
    options.ttl = 4s;
    options.request_timeout = 1900ms;
  });
  Options options = on_table(table_at(x.engine()), 1h);
  options.keep_row = keep;
  DdbMutex next(x.mutex->name(), options);
  x.gate.always("UpdateItem", Gate::fails());
  next.lock();
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(x.write() == words(Errc::lease_lost));
  const std::size_t sent = x.sent().size();
  BOOST_TEST(sent >= 1u);
  // Without a lock it is not even asked.
  x.mutex->unlock();
  BOOST_TEST(x.write() == words(Errc::not_held));
  BOOST_TEST(x.sent().size() == sent);
  BOOST_TEST(x.written() == -1);
}

BOOST_AUTO_TEST_CASE(write_without_a_lock_is_not_sent) {
  ScriptedServer server;
  DdbMutex mutex("x", on_table(table_at(server)));
  std::error_code ec;
  const std::string items = R"([{"Put":{}}])";
  mutex.guarded_write(items, ec);
  BOOST_TEST((ec == Errc::not_held));
  BOOST_TEST(has(mutex.last_error(), "cannot write under \"x\""));
  BOOST_TEST(thrown_by([&] { mutex.guarded_write(items); }) ==
             words(Errc::not_held));
  BOOST_TEST(mutex.condition_check(ec) == "");
  BOOST_TEST((ec == Errc::not_held));
  BOOST_TEST(thrown_by([&] { mutex.condition_check(); }) ==
             words(Errc::not_held));
  BOOST_TEST(server.request_count() == 0);
}

// --- The writes' own conditions ----------------------------------------------

BOOST_DATA_TEST_CASE(condition_of_a_write_that_does_not_hold_is_told,
                     kAble* kKept, kind, keep) {
  Held x(kind, keep);
  const std::string other = fresh_name();
  const std::string writes = "[" + x.count_up(x.item) + "," +
                             x.count_up(other, "attribute_exists(n)") + "]";
  const auto error = error_of([&] { x.mutex->guarded_write(writes); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::condition_failed));
  BOOST_TEST(has(error->what(), "part 2: ConditionalCheckFailed"),
             error->what());
  BOOST_TEST(error->request_id() != "");
  BOOST_TEST(x.written() == -1);  // None of them.
  BOOST_TEST(x.mutex->owns_lock());
  std::error_code ec;
  x.mutex->guarded_write(writes, ec);
  BOOST_TEST((ec == Errc::condition_failed));
  BOOST_TEST(has(x.mutex->last_error(), "part 2"), x.mutex->last_error());
}

BOOST_DATA_TEST_CASE(loss_is_told_though_another_condition_fails_too, kAble,
                     kind) {
  Held x(kind, false, 1h);
  delete_row(x.engine(), x.mutex->name());
  BOOST_TEST(thrown_by([&] {
               x.mutex->guarded_write(
                   "[" + x.count_up(x.item, "attribute_exists(n)") + "]");
             }) == words(Errc::lease_lost));
}

BOOST_DATA_TEST_CASE(write_that_makes_no_sense_is_refused_by_the_table, kAble,
                     kind) {
  Held x(kind);
  for (const std::string& items :
       {std::string(R"([{}])"), std::string(R"([{"Put":{"no":1}}])"),
        "[" + x.count_up(x.item) + "," + x.count_up(x.item) + "]"}) {
    BOOST_TEST(thrown_by([&] { x.mutex->guarded_write(items); }) ==
                   words(Errc::bad_request),
               items);
  }
  BOOST_TEST(x.mutex->owns_lock());
}

// What is told of a write beside the lock's table, which is as it should be.
BOOST_DATA_TEST_CASE(missing_table_of_a_write_is_not_said_to_be_the_locks,
                     kAble* kKept, kind, keep) {
  Held x(kind, keep);
  const std::string none =
      R"({"TableName":")" + Engine::running(kind).missing_table() + '"';
  const std::string put =
      R"({"Put":)" + none + R"(,"Item":{"name":{"S":"a"}}}})";
  for (const std::string& items :
       {"[" + put + "]", "[" + x.count_up(x.item) + "," + put + "]",
        R"([{"Delete":)" + none + R"(,"Key":{"name":{"S":"a"}}}}])"}) {
    const auto error = error_of([&] { x.mutex->guarded_write(items); });
    BOOST_TEST_REQUIRE(error.has_value(), items);
    BOOST_TEST((error->code() == Errc::no_table), error->what());
    BOOST_TEST(!has(error->what(), "Table::create()"), error->what());
    BOOST_TEST(has(error->what(), "any table of the write, or the lock's"),
               error->what());
    BOOST_TEST(error->field() == "");
  }
  BOOST_TEST(x.written() == -1);
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(x.write() == "none");
}

BOOST_DATA_TEST_CASE(wrong_key_of_a_write_is_not_said_to_be_the_locks_tables,
                     kAble, kind) {
  Held x(kind);
  const std::string table = R"("TableName":")" + x.engine().table() + R"(",)";
  const std::string put = R"([{"Put":{)" + table + R"("Item":{)";
  const std::string del = R"([{"Delete":{)" + table + R"("Key":{)";
  const std::string update =
      R"([{"Update":{)" + table + R"("UpdateExpression":"REMOVE a","Key":{)";
  for (const std::string& items :
       {put + R"("other":{"S":"a"}}}}])", put + R"("name":{"N":"1"}}}}])",
        del + R"("other":{"S":"a"}}}}])", del + R"("name":{"N":"1"}}}}])",
        update + R"("name":{"S":"a"},"sort":{"S":"b"}}}}])"}) {
    const auto error = error_of([&] { x.mutex->guarded_write(items); });
    BOOST_TEST_REQUIRE(error.has_value(), items);
    BOOST_TEST((error->code() == Errc::bad_request), error->what());
    BOOST_TEST(has(error->what(), "part 1: ValidationError: "), error->what());
  }
  BOOST_TEST(x.mutex->owns_lock());
}

// As DynamoDB refuses what it looks at before the parts: without their numbers.
BOOST_AUTO_TEST_CASE(
    refusal_of_a_write_that_names_no_part_blames_not_the_lock) {
  Held x(any_engine_kind());
  const auto told = [&x](const char* code, const char* message) {
    x.gate.once(kTransact, [=](Engine&, const SeenRequest&) {
      return Reply::error(400, std::string(R"({"__type":"x#)") + code +
                                   R"(","message":")" + message + "\"}");
    });
    const auto error = error_of([&] { x.mutex->guarded_write(x.one_write()); });
    return error ? error->code().message() + ", " + error->what() : "none";
  };
  const std::string either =
      " (it may be any table of the write, or the lock's)";
  std::string text =
      told("ResourceNotFoundException", "Requested resource not found");
  BOOST_TEST(text.rfind(words(Errc::no_table), 0) == 0u, text);
  BOOST_TEST(has(text, "Requested resource not found" + either), text);
  BOOST_TEST(!has(text, "create()"), text);
  text = told("AccessDeniedException",
              "not authorized to perform: dynamodb:PutItem on resource: t");
  BOOST_TEST(text.rfind(words(Errc::access_denied), 0) == 0u, text);
  BOOST_TEST(has(text, "on resource: t (keys from the options)" + either),
             text);
  for (const char* why :
       {"The provided key element does not match the schema",
        "One or more parameter values were invalid: Missing the key id in the "
        "item",
        "Key column id not found"}) {
    text = told("ValidationException", why);
    BOOST_TEST(text.rfind(words(Errc::bad_request), 0) == 0u, text);
    BOOST_TEST(has(text, why + std::string(" (of the write, not of the lock)")),
               text);
  }
  // Where the lock's table alone is asked there is one to make.
  x.gate.once("GetItem", refused("ResourceNotFoundException"));
  const auto error = error_of([&] { x.table->inspect("any"); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), "(Table::create() creates it)"), error->what());
}

BOOST_AUTO_TEST_CASE(failures_of_a_write_are_told_by_their_names) {
  Held x(any_engine_kind());
  const auto told = [&x](const Gate::Rule& rule) {
    x.gate.once(kTransact, rule);
    return x.write();
  };
  BOOST_TEST(told(refused("ResourceNotFoundException")) ==
             words(Errc::no_table));
  BOOST_TEST(told(refused("AccessDeniedException")) ==
             words(Errc::access_denied));
  BOOST_TEST(told(refused("UnknownOperationException")) ==
             words(Errc::not_supported));
  BOOST_TEST(told(refused("IdempotentParameterMismatchException")) ==
             words(Errc::bad_request));
  BOOST_TEST(told(cancelled(kNone + "," + kNone)) == words(Errc::bad_request));
  x.gate.once(
      kTransact,
      cancelled(kNone + R"(,{"Code":"ValidationError","Message":"w"})"));
  const auto error = error_of([&] { x.mutex->guarded_write(x.one_write()); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::bad_request));
  BOOST_TEST(has(error->what(), "part 1: ValidationError: w"), error->what());
  // A condition weighs more than what stood in the way.
  x.gate.once(kTransact, cancelled(kNone + "," + kConflict +
                                   R"(,{"Code":"ConditionalCheckFailed"})"));
  const auto second = error_of([&] { x.mutex->guarded_write(x.one_write()); });
  BOOST_TEST_REQUIRE(second.has_value());
  BOOST_TEST((second->code() == Errc::condition_failed));
  BOOST_TEST(has(second->what(), "part 2: Cond"), second->what());
  // Reasons that are told in the message alone.
  BOOST_TEST(told([](Engine&, const SeenRequest&) {
               return Reply::error(
                   400,
                   R"({"__type":"TransactionCanceledException","message":)"
                   R"("for specific reasons [ConditionalCheckFailed, None]"})");
             }) == words(Errc::lease_lost));
  BOOST_TEST(x.sent().size() == 8u);  // None was worth another attempt.
}

// --- What is sent again ------------------------------------------------------

BOOST_DATA_TEST_CASE(write_whose_answer_is_lost_is_made_once, kAble* kKept,
                     kind, keep) {
  Held x(kind, keep);
  x.gate.once(kTransact, Gate::answer_lost());
  x.gate.once(kTransact, Gate::fails());
  x.gate.once(kTransact, Gate::answer_lost());
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.sent().size() == 4u);
  BOOST_TEST(x.written() == 1);
  // And the next one is another.
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.written() == 2);
}

// It was carried out while the lock was held, and is told so, though the lock
// is lost by the time of the second attempt.
BOOST_DATA_TEST_CASE(write_made_before_a_loss_is_told_as_made, kAble, kind) {
  Held x(kind, false, 1h);
  const std::string name = x.mutex->name();
  x.gate.once(kTransact, [&name](Engine& engine, const SeenRequest& request) {
    engine.forward(request);
    write_row(engine, name, live_record());
    return Reply::gone(Ending::reset);
  });
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.written() == 1);
}

BOOST_AUTO_TEST_CASE(write_is_sent_again_as_it_was_with_the_same_token) {
  Held x(any_engine_kind());
  for (int i = 0; i < 3; ++i) x.gate.once(kTransact, Gate::fails());
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.write() == "none");
  const auto sent = x.sent();
  BOOST_TEST_REQUIRE(sent.size() == 5u);
  const std::set<std::string> first(sent.begin(), sent.begin() + 4);
  BOOST_TEST(first.size() == 1u);
  BOOST_TEST(first.count(sent[4]) == 0u);
  const std::string token =
      sent[0].substr(sent[0].find("ClientRequestToken") + 21);
  BOOST_TEST(token.size() == 34u, token);  // 32, and what closes the text.
}

BOOST_AUTO_TEST_CASE(write_in_the_way_of_another_is_sent_again) {
  Held x(any_engine_kind());
  x.gate.once(kTransact, cancelled(kConflict + "," + kNone));
  x.gate.once(kTransact, cancelled(kNone + "," + kConflict));
  x.gate.once(kTransact, refused("TransactionInProgressException"));
  x.gate.once(kTransact, refused("ThrottlingException"));
  x.gate.once(kTransact, cancelled(R"({"Code":"ThrottlingError"},)" + kNone));
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.sent().size() == 6u);
  BOOST_TEST(x.written() == 1);
}

// What a write that is in the way of others for longer than patience throws,
// and one that fails for as long, unless that is as it should be.
static std::string writes_that_are_given_up() {
  Held x(any_engine_kind(), [](Options& options) {
    options.patience = 2s;
    options.request_timeout = 2s;
  });
  x.gate.always(kTransact, cancelled(kConflict + "," + kNone));
  std::string conflicts;
  BOOST_TEST(returns_within(2s, [&] { conflicts = x.write(); }));
  const std::size_t sent = x.sent().size();
  BOOST_TEST(x.mutex->owns_lock());
  x.gate.always(kTransact, Gate::fails());
  const std::string fails = x.write();
  const std::string right = words(Errc::unavailable);
  if (sent < 2) return "not tried again";
  return conflicts == right && fails == right ? "" : conflicts + ", " + fails;
}

// If the time runs out amid a request, that is what is told.
BOOST_AUTO_TEST_CASE(write_is_given_up_once_patience_is_over) {
  BOOST_TEST(in_some_round(writes_that_are_given_up) == "");
}

BOOST_AUTO_TEST_CASE(write_without_patience_is_tried_once) {
  Held x(any_engine_kind(), [](Options& options) {
    options.patience = 0ms;
    options.request_timeout = 3s;
  });
  x.gate.always(kTransact, Gate::held());
  BOOST_TEST(x.write() == words(Errc::timed_out));
  BOOST_TEST(x.sent().size() == 1u);
  x.gate.open();
  x.gate.server().release();
  BOOST_TEST(eventually([&] { return x.written() == 1; }));
}

BOOST_AUTO_TEST_CASE(write_that_is_not_answered_is_sent_again_in_time) {
  Held x(any_engine_kind(),
         [](Options& options) { options.request_timeout = 1s; });
  x.gate.once(kTransact, Gate::held());
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.sent().size() > 1u);
  x.gate.server().release();  // By now it is done.
  x.mutex->guarded_write(x.one_write());
  BOOST_TEST(x.written() == 2);
}

BOOST_AUTO_TEST_CASE(write_to_an_engine_without_transactions_is_not_supported) {
  Held x(EngineKind::dynalite);
  BOOST_TEST(x.write() == words(Errc::not_supported));
}

// --- The text of the writes --------------------------------------------------

BOOST_AUTO_TEST_CASE(writes_that_are_no_array_of_objects_are_refused_unsent) {
  Held x(any_engine_kind());
  for (const auto& [items, why] :
       std::vector<std::pair<std::string, const char*>>{
           {"", "not JSON"},
           {"  ", "not JSON"},
           {"[", "not JSON"},
           {R"([{"Put":{}})", "not JSON"},
           {R"([{"Put":{}}] x)", "not JSON at byte 13"},
           {"[[[[[[[[", "not JSON at byte 8"},
           {R"([{"Put":{}}],[{}])", "not JSON"},
           {R"([{"Put":{}},])", "not JSON"},
           {R"([{Put:{}}])", "not JSON"},
           {R"([{"a":01}])", "not JSON"},
           {"[{\"a\":\"\xff\"}]", "not JSON"},
           {R"([{"a":"\ud800"}])", "not JSON"},
           {R"([{"a":"\udc00"}])", "not JSON"},
           {std::string("[{}]\0", 5), "not JSON"},
           {"\xef\xbb\xbf[{}]", "not JSON"},
           {"{}", "not an array"},
           {"7", "not an array"},
           {"\"[{}]\"", "not an array"},
           {"null", "not an array"},
           {"[]", "no elements"},
           {"[7]", "not an object"},
           {"[[{}]]", "not an object"},
           {"[{},\"x\"]", "not an object"},
           {"[{},null]", "not an object"}}) {
    const std::string& given = items;  // Else no lambda may have it.
    const auto error = error_of([&] { x.mutex->guarded_write(given); });
    BOOST_TEST_REQUIRE(error.has_value(), items);
    BOOST_TEST((error->code() == Errc::bad_option));
    BOOST_TEST(error->field() == "items");
    BOOST_TEST(has(error->what(), why), items << ": " << error->what());
  }
  BOOST_TEST(x.sent().empty());
}

BOOST_AUTO_TEST_CASE(writes_may_be_ninety_nine_and_of_any_depth) {
  const auto of = [](int count) {
    std::string text = "[{}";
    for (int i = 1; i < count; ++i) text += ",{}";
    return text + "]";
  };
  BOOST_TEST(problem_of_writes(of(99)) == "");
  BOOST_TEST(has(problem_of_writes(of(100)), "more than 99"));
  const auto deep = [](std::size_t levels) {
    return R"([{"a":)" + std::string(levels - 2, '[') +
           std::string(levels - 2, ']') + "}]";
  };
  BOOST_TEST(problem_of_writes(deep(100)) == "");
  BOOST_TEST(problem_of_writes(deep(1000)) == "");
  BOOST_TEST(has(problem_of_writes(deep(1000000)), "not JSON at byte"));
  BOOST_TEST(problem_of_writes(
                 R"([{"n":-1.5e300,"t":true,"u":null,"s":"]\u0041"}])") == "");
}

BOOST_DATA_TEST_CASE(ninety_nine_writes_are_carried_out_at_once, kAble, kind) {
  Held x(kind);
  std::string items;
  for (int i = 0; i < 99; ++i) {
    items += (i == 0 ? "[" : ",") + x.count_up(x.item + std::to_string(i));
  }
  x.mutex->guarded_write(items + "]");
  BOOST_TEST(x.written(x.item + "0") == 1);
  BOOST_TEST(x.written(x.item + "98") == 1);
}

// --- The condition by itself -------------------------------------------------

BOOST_DATA_TEST_CASE(condition_in_a_transaction_of_the_users_own_guards_it,
                     kAble* kKept, kind, keep) {
  Held x(kind, keep, 1h);
  const auto transact = [&](const std::string& check) {
    return x.engine().call(kTransact,
                           R"({"TransactItems":[)" + x.count_up(x.item) +
                               R"(,{"ConditionCheck":)" + check + "}]}");
  };
  const std::string check = x.mutex->condition_check();
  BOOST_TEST(transact(check).status == 200);
  write_row(x.engine(), x.mutex->name(), live_record());
  const auto answer = transact(check);
  BOOST_TEST(answer.status == 400);
  BOOST_TEST(has(answer.body, "ConditionalCheckFailed"), answer.body);
  BOOST_TEST(x.written() == 1);
  BOOST_TEST(x.mutex->condition_check() == check);  // Not known to be lost.
}

BOOST_DATA_TEST_CASE(condition_of_an_acquisition_is_its_own, kAble* kKept, kind,
                     keep) {
  Held x(kind, keep);
  const std::string first = x.mutex->condition_check();
  x.mutex->release();
  x.mutex->lock();
  BOOST_TEST(x.mutex->condition_check() != first);
  const auto answer = x.engine().call(
      kTransact, R"({"TransactItems":[{"ConditionCheck":)" + first + "}]}");
  BOOST_TEST(has(answer.body, "ConditionalCheckFailed"), answer.body);
}

BOOST_DATA_TEST_CASE(write_is_guarded_by_the_lock_of_its_sort_value,
                     kAble* kKept, kind, keep) {
  Engine& engine = Engine::running(kind);
  TableOptions options = table_options(engine);
  options.name = "ddbmutex-test-" + fresh_name();
  options.key = "pk";
  options.sort_key = "sk";
  const auto table = std::make_shared<Table>(options);
  table->create();
  Options locking = on_table(table, 1h);
  locking.keep_row = keep;
  locking.sort_value = "1";
  DdbMutex one("a", locking);
  locking.sort_value = "2";
  DdbMutex two("a", locking);
  one.lock();
  two.lock();
  const std::string write = R"([{"Put":{"TableName":")" + options.name +
                            R"(","Item":{"pk":{"S":"item"},"sk":{"S":"1"}}}}])";
  BOOST_TEST(table->force_unlock(table->inspect("a", "1")));
  BOOST_TEST(thrown_by([&] { one.guarded_write(write); }) ==
             words(Errc::lease_lost));
  BOOST_TEST(thrown_by([&] { two.guarded_write(write); }) == "none");
  two.unlock();
  engine.delete_table(options.name);
}

BOOST_AUTO_TEST_SUITE_END()
