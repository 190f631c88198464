// Guarded writes, which DynamoDB applies only while the lock is held: which are
// refused, which are retried, and that each is applied once.  Also rows that
// outlive their locks: fencing tokens, data stored with a lock, and attributes
// that others have written.
#include <algorithm>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "extras/admin.hpp"
#include "extras/guarded_write.hpp"
#include "extras/stored.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::Attribute;
using ddbmutex::Attributes;
using ddbmutex::attributes_of;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::to_item;
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
  BOOST_TEST(has(error->what(), "(Table::create() creates it)"), error->what());
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

BOOST_AUTO_TEST_SUITE_END()

// === Rows that outlive their locks ===========================================

namespace {

const std::vector<EngineKind> kEngines = {EngineKind::dynoxide,
                                          EngineKind::dynalite};

// For a lock that stays held.
Options keeping(const std::shared_ptr<Table>& table) {
  Options options = on_table(table);
  options.keep_row = true;
  return options;
}

// Locks of one name that keep its row.  Each acts as a process of its own.
struct Kept {
  explicit Kept(EngineKind kind) : engine(Engine::running(kind)) {}

  Options options() { return keeping(table_at(engine)); }
  std::unique_ptr<DdbMutex> mutex() { return mutex(options()); }
  std::unique_ptr<DdbMutex> mutex(const Options& with) {
    return std::make_unique<DdbMutex>(name, with);
  }
  ddbmutex::lock::Row row() { return row_of(engine, name); }
  // The attribute's value as text; empty if there is none.
  std::string stored(const char* attribute) {
    const auto item = item_of(engine, name);
    const auto* found =
        item ? ddbmutex::dynamodb::find(*item, attribute) : nullptr;
    return found ? found->value : "";
  }

  Engine& engine;
  const std::string name = fresh_name();
};

Attribute text(const std::string& name, const std::string& value) {
  return {name, Attribute::Type::string, value, {}};
}

// A row as it is before the lock is ever taken.
const char* const kWorkItem = R"("colour":{"S":"red"},"size":{"N":"7"})";

}  // namespace

BOOST_AUTO_TEST_SUITE(kept_rows)

// --- Tokens ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(kept_row_is_never_taken_by_one_that_does_not_keep_it) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const auto renewer = it.mutex();
    renewer->lock();
    DdbMutex other(it.name, on_table(table_at(it.engine)));
    const auto refused = [&] {
      return thrown_by([&] { (void)other.try_lock_for(kPlenty); }) ==
             words(Errc::kept_row);
    };
    BOOST_TEST(refused());
    renewer->unlock();
    BOOST_TEST(refused());
    BOOST_TEST(it.stored("token") == "1");
  }
}

// --- Answers that are lost ---------------------------------------------------

// A take was applied, its answer is lost, and somebody frees the row by force.
// A late copy of that take must not lock the row again, so the waiter needs a
// new lease.  An earlier version waited for ever.
BOOST_AUTO_TEST_CASE(row_freed_by_force_before_the_answer_came_is_taken_anew) {
  for (const EngineKind kind : kEngines) {
    Gate gate(kind);
    const std::string name = fresh_name();
    const auto others = table_at(gate.engine());
    for (const bool once : {false, true}) {
      DdbMutex mutex(name, keeping(table_at(gate)));
      gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
        engine.forward(request);
        BOOST_TEST(force_unlock(*others, others->inspect(name)));
        return Reply::gone(Ending::reset);
      });
      BOOST_TEST((once ? mutex.try_lock() : mutex.try_lock_for(kPlenty)));
      BOOST_TEST(mutex.owns_lock());
      BOOST_TEST(row_of(gate.engine(), name).token ==
                 static_cast<std::int64_t>(mutex.fencing_token()));
      mutex.release();
    }
  }
}

// --- What others have written ------------------------------------------------

BOOST_AUTO_TEST_CASE(row_that_must_exist_is_not_made) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    Options options = it.options();
    options.only_if_exists = true;
    const auto mutex = it.mutex(options);
    BOOST_TEST(thrown_by([&] { mutex->lock(); }) == words(Errc::no_row));
    BOOST_TEST(thrown_by([&] { (void)mutex->try_lock(); }) ==
               words(Errc::no_row));
    BOOST_TEST((it.row().kind == ddbmutex::lock::Row::Kind::absent));
    write_row(it.engine, it.name, kWorkItem);
    BOOST_TEST(mutex->try_lock());
    mutex->release();
    BOOST_TEST(mutex->try_lock());
    BOOST_TEST(mutex->fencing_token() == 2u);
  }
}

// --- Data --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(data_and_attributes_are_found_by_the_next_holder) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const std::string bytes("\0\xff\n data", 8);
    Options options = it.options();
    options.data = bytes;
    options.item = to_item({text("colour", "red")});
    const auto first = it.mutex(options);
    first->lock();
    BOOST_TEST((first->data() == bytes));
    BOOST_TEST((it.mutex()->data() == std::nullopt));
    first->release();
    BOOST_TEST((first->data() == std::nullopt));
    const auto next = it.mutex();
    next->lock();
    BOOST_TEST((next->data() == bytes));
    BOOST_TEST(
        (attributes_of(next->item()) == Attributes{text("colour", "red")}));
  }
}

namespace {

// Returns what is wrong.
std::string late_release(bool conflict) {
  Gate gate(EngineKind::dynoxide);
  Options options = keeping(table_at(gate));
  options.ttl = 4s;
  options.auto_renew = false;
  options.request_timeout = 1900ms;
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  const BootTime end = BootClock::now() + mutex.remaining();
  if (conflict) {
    gate.once("UpdateItem", fails_with("TransactionConflictException"));
  }
  // May outlast the mutex, if the release is given up.
  const auto rule = [end, name = mutex.name()](Engine& engine,
                                               const SeenRequest& request) {
    while (BootClock::now() <= end) pause(10ms);
    write_row(engine, name,
              record("theirs", calendar() + 60s) + R"(,"token":{"N":"7"})");
    return engine.forward(request);
  };
  gate.once("UpdateItem", rule);
  while (mutex.remaining() > 400ms) pause(10ms);
  Changes changes;
  changes.data = "done";
  std::error_code ec;
  mutex.release(changes, ec);
  if (ec != Errc::lease_lost) return ec.message();
  const bool stored = options.table->inspect(mutex.name()).data.has_value();
  return stored ? "the data is stored" : "";
}

}  // namespace

// The lease ends and another takes the row while the release is in flight.  The
// release reports lease_lost, because its data is not stored.  With `conflict`,
// an earlier attempt was refused for a transaction and stored nothing either.
BOOST_DATA_TEST_CASE(release_that_comes_too_late_to_store_says_so,
                     boost::unit_test::data::make({false, true}), conflict) {
  BOOST_TEST(undisturbed(200ms, [&] { return late_release(conflict); }) == "");
}

BOOST_AUTO_TEST_SUITE_END()
