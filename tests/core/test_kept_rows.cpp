// Rows that outlive their locks: fencing tokens, data stored with a lock, and
// attributes that others have written.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;

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
    for (const bool once : {false, true}) {
      DdbMutex mutex(name, keeping(table_at(gate)));
      gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
        engine.forward(request);
        engine.must_call(
            "UpdateItem",
            place_in(engine, "Key", name) +
                R"(},"UpdateExpression":"SET expires = :free",)"
                R"("ExpressionAttributeValues":{":free":{"N":"0"}}})");
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
    options.item = R"({"colour":{"S":"red"}})";
    const auto first = it.mutex(options);
    first->lock();
    BOOST_TEST((first->data() == bytes));
    BOOST_TEST((it.mutex()->data() == std::nullopt));
    first->release();
    BOOST_TEST((first->data() == std::nullopt));
    const auto next = it.mutex();
    next->lock();
    BOOST_TEST((next->data() == bytes));
    BOOST_TEST(next->item() == options.item);
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
    gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
      return failure(400, "TransactionConflictException");
    });
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
