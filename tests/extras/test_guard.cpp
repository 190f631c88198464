// Guarded writes, which DynamoDB applies only while the lock is held: which are
// refused, which are retried, and that each is applied once.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "extras/guarded_write.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using std::chrono::milliseconds;

namespace {

Gate::Rule fails_with(const std::string& code) {
  return [code](Engine&, const SeenRequest&) { return failure(400, code); };
}

}  // namespace

// === Guarded writes ==========================================================

BOOST_AUTO_TEST_SUITE(guard)

// Not in an unnamed namespace, because the templates of the cases capture them.

const std::string kTransact = "TransactWriteItems";

// The engines that have transactions.
std::vector<EngineKind> able_kinds() {
  std::vector<EngineKind> kinds = engine_kinds();
  kinds.erase(std::remove(kinds.begin(), kinds.end(), EngineKind::dynalite),
              kinds.end());
  return kinds;
}
const auto kAble = boost::unit_test::data::make(able_kinds());
// Whether the lock's row is kept.
const auto kKept = boost::unit_test::data::make({false, true});

// A held lock behind a gate, and an item to write.
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

  // How often the item was written; -1 if it does not exist.
  int written(const std::string& name) {
    const auto found = item_of(engine(), name);
    if (!found) return -1;
    return std::stoi(ddbmutex::dynamodb::find(*found, "n")->value);
  }
  int written() { return written(item); }

  // What guarded_write() throws, in words.
  std::string write() {
    return thrown_by([this] { guarded_write(*mutex, one_write()); });
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

// --- While the lock is held --------------------------------------------------

BOOST_DATA_TEST_CASE(write_under_the_lock_is_carried_out, kAble* kKept, kind,
                     keep) {
  Held x(kind, keep);
  const std::string other = fresh_name();
  BOOST_TEST(x.write() == "none");
  guarded_write(*x.mutex, " [ " + x.count_up(x.item) + "\n,\t" +
                              x.count_up(other) + " ] ");
  BOOST_TEST(x.written() == 2);
  BOOST_TEST(x.written(other) == 1);
  BOOST_TEST(x.table->stats().other == 2u);
  // The writes have left the lock's own row as it was.
  x.mutex->release();
  BOOST_TEST(is_free(x.engine(), x.mutex->name()) == !keep);
}

// --- After the lock was lost -------------------------------------------------

// DynamoDB's refusal alone shows that the lock is lost.  No renewal is
// answered.
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

// --- The writes' own conditions ----------------------------------------------

BOOST_DATA_TEST_CASE(condition_of_a_write_that_does_not_hold_is_told,
                     kAble* kKept, kind, keep) {
  Held x(kind, keep);
  const std::string other = fresh_name();
  const std::string writes = "[" + x.count_up(x.item) + "," +
                             x.count_up(other, "attribute_exists(n)") + "]";
  const auto error = error_of([&] { guarded_write(*x.mutex, writes); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::condition_failed));
  BOOST_TEST(has(error->what(), "part 2: ConditionalCheckFailed"),
             error->what());
  BOOST_TEST(error->request_id() != "");
  BOOST_TEST(x.written() == -1);  // None of them.
  BOOST_TEST(x.mutex->owns_lock());
  std::error_code ec;
  guarded_write(*x.mutex, writes, ec);
  BOOST_TEST((ec == Errc::condition_failed));
  BOOST_TEST(has(x.mutex->last_error(), "part 2"), x.mutex->last_error());
}

// DynamoDB refuses some writes before it looks at their parts.  Such an error
// has no part number, and may be about the write or about the lock's table.
BOOST_AUTO_TEST_CASE(refusal_without_a_part_number_does_not_blame_the_lock) {
  Held x(any_engine_kind());
  const auto told = [&x](const char* code, const char* message) {
    x.gate.once(kTransact, [=](Engine&, const SeenRequest&) {
      return Reply::error(400, std::string(R"({"__type":"x#)") + code +
                                   R"(","message":")" + message + "\"}");
    });
    const auto error =
        error_of([&] { guarded_write(*x.mutex, x.one_write()); });
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
  // Only if the lock's table alone is asked, the error suggests to create it.
  x.gate.once("GetItem", fails_with("ResourceNotFoundException"));
  const auto error = error_of([&] { x.table->inspect("any"); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), "(create_table() creates it)"), error->what());
}

// --- Retries ------------------------------------------------------

BOOST_DATA_TEST_CASE(write_whose_answer_is_lost_is_made_once, kAble* kKept,
                     kind, keep) {
  Held x(kind, keep);
  x.gate.once(kTransact, Gate::answer_lost());
  x.gate.once(kTransact, Gate::fails());
  x.gate.once(kTransact, Gate::answer_lost());
  BOOST_TEST(x.write() == "none");
  BOOST_TEST(x.sent().size() == 4u);
  BOOST_TEST(x.written() == 1);
  // The next write is not taken for a retry.
  BOOST_TEST(x.write() == "none");
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
           {"[", "not JSON"},
           {R"([{"Put":{}}] x)", "not JSON at byte 13"},
           {"[{\"a\":\"\xff\"}]", "not JSON"},
           {std::string("[{}]\0", 5), "not JSON"},
           {"{}", "not an array"},
           {"[]", "no elements"},
           {"[{},null]", "not an object"}}) {
    const std::string& given = items;  // A lambda cannot capture `items`.
    const auto error = error_of([&] { guarded_write(*x.mutex, given); });
    BOOST_TEST_REQUIRE(error.has_value(), items);
    BOOST_TEST((error->code() == Errc::bad_option));
    BOOST_TEST(error->field() == "items");
    BOOST_TEST(has(error->what(), why), items << ": " << error->what());
  }
  BOOST_TEST(x.sent().empty());
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
  const std::string check = condition_check(*x.mutex);
  BOOST_TEST(transact(check).status == 200);
  write_row(x.engine(), x.mutex->name(), live_record());
  const auto answer = transact(check);
  BOOST_TEST(answer.status == 400);
  BOOST_TEST(has(answer.body, "ConditionalCheckFailed"), answer.body);
  BOOST_TEST(x.written() == 1);
  // The mutex has not noticed the loss.
  BOOST_TEST(condition_check(*x.mutex) == check);
}

// Nobody was told before: the write itself finds it.
BOOST_AUTO_TEST_CASE(write_that_finds_the_loss_says_why) {
  Held x(EngineKind::dynoxide,
         [](Options& options) { options.auto_renew = false; });
  delete_row(x.engine(), x.mutex->name());
  const auto error = error_of([&] { guarded_write(*x.mutex, x.one_write()); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(
      all_matches(error->what(), ": (found deleted \\d+ ms ago)$").size() == 1u,
      error->what());
}

// --- Beside other calls ------------------------------------------------------

// With config=tsan this looks for data races.  Some requests fail, and some
// find the lock taken.
BOOST_AUTO_TEST_CASE(random_calls_of_six_threads_agree) {
  const char* const seed = std::getenv("DDBMUTEX_SEED");
  ScriptedServer server([](const SeenRequest& request) {
    if (request.number % 19 == 0) return server_failure();
    const bool taken =
        request.number % 17 == 0 && action_of(request) != "TransactWriteItems";
    return taken ? refusal(live_record()) : Reply{};
  });
  DdbMutex mutex("m", on_table(table_at(server)));
  const std::function<void(std::error_code&)> calls[] = {
      [&](std::error_code& ec) { (void)mutex.try_lock_for(5ms, ec); },
      [&](std::error_code& ec) { mutex.release(ec); },
      [&](std::error_code& ec) { mutex.renew(ec); },
      [&](std::error_code& ec) { mutex.ensure(1h, ec); },
      [&](std::error_code& ec) {
        guarded_write(mutex, R"([{"Put": {}}])", ec);
      },
      [&](std::error_code& ec) {
        mutex.renew(Changes{"x", {}, {}}, ec);
      },
      [&](std::error_code& ec) { mutex.require(1s, ec); },
      [&](std::error_code& ec) { (void)condition_check(mutex, ec); }};
  const Errc expected[] = {Errc::not_held, Errc::ends_too_soon,
                           Errc::lease_lost, Errc::timed_out,
                           Errc::unavailable};
  std::list<Aside> threads;
  for (unsigned i = 0; i < 6; ++i) {
    threads.emplace_back(
        [&, random = std::mt19937(
                seed == nullptr ? i : std::stoul(seed) + i)]() mutable {
          for (int step = 0; step < 1200; ++step) {
            std::error_code ec;
            calls[random() % std::size(calls)](ec);
            const bool good = !ec || std::count(std::begin(expected),
                                                std::end(expected), ec) != 0;
            if (!good) throw std::system_error(ec, mutex.last_error());
            (void)mutex.remaining();
            (void)mutex.data();
          }
        });
  }
  for (Aside& thread : threads) BOOST_TEST(thread.thrown() == "none");
}

BOOST_AUTO_TEST_SUITE_END()
