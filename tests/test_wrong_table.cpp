// Tables whose key is not the one that the options name: nobody gets in, and
// nothing is written.  A PutItem names no key, so where the key is another
// attribute of the record, each would make an item of its own.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/keyed_table.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using ddbmutex::Table;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

const std::vector<KeyPart> kRightKey = {{"name", "S"}};

// Of a record as the options below make it.
const std::vector<KeyPart> kAttributes = {
    {"uuid", "S"}, {"owner", "S"}, {"expires", "N"}, {"lease", "N"},
    {"ttl", "N"},  {"data", "B"},  {"mine", "S"}};

// Each of them as partition key, and as sort key of the right one.
std::vector<std::vector<KeyPart>> wrong_keys() {
  std::vector<std::vector<KeyPart>> all = {{{"name", "N"}}, {{"id", "S"}}};
  for (const KeyPart& attribute : kAttributes) {
    all.push_back({attribute});
    all.push_back({attribute, {"name", "S"}});
    all.push_back({{"name", "S"}, attribute});
  }
  return all;
}

Options all_attributes(std::shared_ptr<Table> table) {
  Options options = unhurried(std::move(table));
  options.data = "bytes";
  options.attributes = {{"mine", ddbmutex::Attribute::Type::string, "x", {}}};
  return options;
}

// A host that calls in any order.
class Host {
 public:
  Host(const KeyedTable& keyed, std::mt19937& random)
      : random_(random), table_(keyed.new_table()) {
    Options options = all_attributes(table_);
    if (random_() % 4 == 0) options.keep_row = true;
    mutex_ = std::make_unique<DdbMutex>("x", options);
    if (random_() % 2 == 0) list();
  }

  // Calls for the lock fail, and so does all that needs it.
  void call_something() {
    std::error_code ec;
    const auto call = random_() % 9;
    switch (call) {
      case 0:
        BOOST_TEST(!mutex_->try_lock_for(0s, ec));
        break;
      case 1:
        BOOST_TEST(!mutex_->try_lock(ec));
        break;
      case 2:
        BOOST_TEST(!mutex_->try_lock_for(5s, ec));
        break;
      case 3:
        BOOST_TEST(!mutex_->try_lock_past_lease(5s, ec));
        break;
      case 4:
        mutex_->renew(ec);
        BOOST_TEST((ec == Errc::not_held), ec.message());
        break;
      case 5:
        mutex_->release(ec);
        BOOST_TEST((ec == Errc::not_held), ec.message());
        break;
      case 6:
        mutex_->unlock();
        break;
      case 7:
        table_->inspect("x", ec);
        BOOST_TEST((ec == Errc::wrong_table), ec.message());
        break;
      case 8:
        list();
        break;
    }
    if (call <= 3) BOOST_TEST((ec == Errc::wrong_table), ec.message());
  }
  const DdbMutex& mutex() const { return *mutex_; }

 private:
  // A Scan names no key, and tells what time it is.
  void list() {
    std::error_code ec;
    table_->list([](const ddbmutex::LockInfo&) { return true; }, ec);
    BOOST_TEST((!ec || ec == Errc::wrong_table), ec.message());
  }

  std::mt19937& random_;
  std::shared_ptr<Table> table_;
  std::unique_ptr<DdbMutex> mutex_;
};

std::string error_of_lock(DdbMutex& mutex) {
  std::error_code ec;
  mutex.lock(ec);
  return ec ? ec.message() : "none";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(wrong_table)

BOOST_DATA_TEST_CASE(nobody_gets_in_in_any_order_of_calls, kEngines, kind) {
  Engine& engine = Engine::running(kind);
  const char* given = std::getenv("DDBMUTEX_SEED");
  const auto seed =
      static_cast<unsigned>(given != nullptr ? std::atoll(given) : 1);
  std::mt19937 random(seed);
  for (const std::vector<KeyPart>& key : wrong_keys()) {
    BOOST_TEST_CONTEXT("key " << key[0].name << " " << key.back().name
                              << ", seed " << seed) {
      const KeyedTable keyed(engine, key);
      Host one(keyed, random), other(keyed, random);
      for (int i = 0; i < 20; ++i) {
        (random() % 2 == 0 ? one : other).call_something();
        BOOST_TEST(!one.mutex().owns_lock());
        BOOST_TEST(!other.mutex().owns_lock());
      }
      BOOST_TEST(has(keyed.items(), R"("Count":0)"), keyed.items());
    }
  }
}

BOOST_DATA_TEST_CASE(wrong_key_is_remembered_until_it_is_found_right, kEngines,
                     kind) {
  Engine& engine = Engine::running(kind);
  for (const bool by_creation : {false, true}) {
    KeyedTable keyed(engine, {{"uuid", "S"}});
    const auto table = keyed.new_table();
    DdbMutex mutex("x", unhurried(table)), other("y", unhurried(table));
    BOOST_TEST(error_of_lock(mutex) == words(Errc::wrong_table));
    const auto sent = table->stats().requests();
    for (DdbMutex* each : {&mutex, &other, &mutex}) {
      BOOST_TEST(error_of_lock(*each) == words(Errc::wrong_table));
      BOOST_TEST(has(each->last_error(), "key"), each->last_error());
    }
    keyed.remove();
    keyed.make(kRightKey);
    BOOST_TEST(error_of_lock(mutex) == words(Errc::wrong_table));
    BOOST_TEST(table->stats().requests() == sent);
    if (by_creation) {
      table->create();
    } else {
      BOOST_TEST(table->exists());
    }
    BOOST_TEST(error_of_lock(mutex) == "none");
    BOOST_TEST(mutex.owns_lock());
  }
}

BOOST_DATA_TEST_CASE(look_at_the_table_that_finds_it_wrong_is_remembered,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  for (const bool by_creation : {false, true}) {
    const KeyedTable keyed(engine, {{"owner", "S"}});
    const auto table = keyed.new_table();
    std::error_code ec;
    if (by_creation) {
      table->create(ec);
    } else {
      table->exists(ec);
    }
    BOOST_TEST((ec == Errc::wrong_table));
    const auto sent = table->stats().requests();
    DdbMutex mutex("x", unhurried(table));
    BOOST_TEST(error_of_lock(mutex) == words(Errc::wrong_table));
    BOOST_TEST(has(mutex.last_error(), "\"name\" alone"), mutex.last_error());
    BOOST_TEST(table->stats().requests() == sent);
  }
}

// A table is deleted and made anew while its locks are in use.
BOOST_DATA_TEST_CASE(table_that_comes_back_with_another_key_lets_nobody_in,
                     kEngines, kind) {
  Engine& engine = Engine::running(kind);
  KeyedTable keyed(engine, kRightKey);
  const auto ours = keyed.new_table(), theirs = keyed.new_table();
  DdbMutex one("x", unhurried(ours)), other("x", unhurried(theirs));
  for (DdbMutex* each : {&one, &other}) {
    BOOST_TEST(error_of_lock(*each) == "none");
    each->unlock();
  }
  keyed.remove();
  for (DdbMutex* each : {&one, &other}) {
    BOOST_TEST(error_of_lock(*each) == words(Errc::no_table));
  }
  keyed.make({{"uuid", "S"}});
  for (DdbMutex* each : {&one, &other, &one, &other}) {
    BOOST_TEST(error_of_lock(*each) == words(Errc::wrong_table));
    BOOST_TEST(!each->owns_lock());
  }
  BOOST_TEST(has(keyed.items(), R"("Count":0)"), keyed.items());
}

// One odd answer to a renewal loses that lock, and no other.
BOOST_AUTO_TEST_CASE(wrong_key_told_to_a_renewal_is_not_the_tables) {
  Gate gate;
  const auto table = table_at(gate);
  DdbMutex one(fresh_name(), unhurried(table));
  DdbMutex other(fresh_name(), unhurried(table));
  DdbMutex third(fresh_name(), unhurried(table));
  one.lock();
  other.lock();
  gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
    return Reply::error(
        400,
        R"({"__type":"com.amazon.coral.validate#ValidationException",)"
        R"("message":"The provided key element does not match the schema"})");
  });
  std::error_code ec;
  one.renew(ec);
  BOOST_TEST((ec == Errc::lease_lost), ec.message());
  BOOST_TEST(thrown_by([&] { other.renew(); }) == "none");
  BOOST_TEST(thrown_by([&] { other.release(); }) == "none");
  BOOST_TEST(is_free(gate.engine(), other.name()));
  BOOST_TEST(error_of_lock(third) == "none");
}

BOOST_AUTO_TEST_SUITE_END()
