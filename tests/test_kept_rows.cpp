// Rows that outlive their locks, against the engines: fencing tokens, what is
// stored with a lock, what others have written.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"

using namespace std::chrono_literals;

namespace {

using ddbmutex::Attribute;
using ddbmutex::Attributes;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Options;
using tests::Aside;
using tests::Engine;
using tests::EngineKind;
using tests::eventually;
using tests::Gate;
using tests::on_table;
using tests::row_of;
using tests::SeenRequest;
using tests::table_at;
using tests::thrown_by;
using tests::words;

const std::vector<EngineKind> kEngines = {EngineKind::dynoxide,
                                          EngineKind::dynalite};

// Of a lock that stays held.  Each request has all the time that it needs: one
// that is sent twice may cost a number.
Options keeping(const std::shared_ptr<ddbmutex::Table>& table) {
  Options options = on_table(table);
  options.keep_row = true;
  options.request_timeout = 20s;
  return options;
}

// Locks of one name that keep its row, each of a process of its own.
struct Kept {
  explicit Kept(EngineKind kind) : engine(Engine::running(kind)) {}

  Options options() { return keeping(table_at(engine)); }
  std::unique_ptr<DdbMutex> mutex() { return mutex(options()); }
  std::unique_ptr<DdbMutex> mutex(const Options& with) {
    return std::make_unique<DdbMutex>(name, with);
  }
  ddbmutex::lock::Row row() { return row_of(engine, name); }
  // As text; empty if there is none.
  std::string stands(const char* attribute) {
    const auto item = tests::item_of(engine, name);
    const auto* found =
        item ? ddbmutex::dynamodb::find(*item, attribute) : nullptr;
    return found ? found->value : "";
  }

  Engine& engine;
  const std::string name = tests::fresh_name();
};

Attribute text(const std::string& name, const std::string& value) {
  return {name, Attribute::Type::string, value, {}};
}

// What stands before the lock is ever taken.
const char* const kWorkItem = R"("colour":{"S":"red"},"size":{"N":"7"})";

}  // namespace

BOOST_AUTO_TEST_SUITE(kept_rows)

// --- Tokens ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(token_grows_by_one_with_every_acquisition) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const auto one = it.mutex();
    const auto other = it.mutex();
    BOOST_TEST(one->fencing_token() == 0u);
    for (std::uint64_t token = 1; token <= 6; ++token) {
      DdbMutex& mutex = token % 2 == 0 ? *one : *other;
      mutex.lock();
      BOOST_TEST(mutex.fencing_token() == token);
      BOOST_TEST(it.stands("token") == std::to_string(token));
      mutex.release();
      BOOST_TEST(mutex.fencing_token() == 0u);
    }
  }
}

namespace {

// As paulmach/ddblock sends them: it knows of no token.
void lock_and_unlock_by_ddblock(Engine& engine, const std::string& lock) {
  const auto stamp = [](std::chrono::nanoseconds time) {
    return R"({"N":")" + std::to_string(time.count()) + R"("})";
  };
  const std::string name = R"("name":{"S":"ddblock-)" + lock + R"("})";
  const std::string table = R"({"TableName":")" + engine.table() + R"(",)";
  engine.must_call(
      "PutItem",
      table +
          R"json("ConditionExpression":"#name <> :name OR )json"
          R"json((#name = :name AND #exp < :exp)",)json"
          R"("ExpressionAttributeNames":{"#name":"name","#exp":"expires"},)"
          R"("ExpressionAttributeValues":{":)" +
          name.substr(1) + R"(,":exp":)" + stamp(tests::calendar()) +
          R"(},"Item":{)" + name + R"(,"uuid":{"S":"7"},"expires":)" +
          stamp(tests::calendar() + 2s) + "}}");
  engine.must_call(
      "DeleteItem",
      table +
          R"("ConditionExpression":"#name = :name AND #uuid = :uuid",)"
          R"("ExpressionAttributeNames":{"#name":"name","#uuid":"uuid"},)"
          R"("ExpressionAttributeValues":{":)" +
          name.substr(1) + R"(,":uuid":{"S":"7"}},"Key":{)" + name + "}}");
}

}  // namespace

BOOST_AUTO_TEST_CASE(token_begins_anew_once_a_ddblock_had_the_lock) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const auto mutex = it.mutex();
    for (std::uint64_t token = 1; token <= 2; ++token) {
      mutex->lock();
      BOOST_TEST(mutex->fencing_token() == token);
      mutex->release();
    }
    lock_and_unlock_by_ddblock(it.engine, it.name);
    mutex->lock();
    BOOST_TEST(mutex->fencing_token() == 1u);
    mutex->release();
  }
}

BOOST_AUTO_TEST_CASE(lock_and_unlock_are_two_requests) {
  Gate gate(EngineKind::dynoxide);
  Options options = keeping(table_at(gate));
  options.auto_renew = false;
  DdbMutex mutex(tests::fresh_name(), options);
  mutex.lock();
  mutex.release();
  mutex.lock();
  mutex.release();
  BOOST_TEST(tests::actions(gate.server()) ==
             "UpdateItem UpdateItem UpdateItem UpdateItem");
}

BOOST_AUTO_TEST_CASE(released_row_stays_marked_as_free_without_clean_up) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const auto mutex = it.mutex();
    mutex->lock();
    const std::string uuid = it.row().uuid;
    BOOST_TEST(it.stands("ttl") == "");
    mutex->release();
    BOOST_TEST(it.stands("expires") == "0");
    BOOST_TEST(it.stands("uuid") == uuid);
    BOOST_TEST(it.stands("ttl") == "");
  }
}

BOOST_AUTO_TEST_CASE(token_is_kept_after_a_loss_until_unlocked) {
  Kept it(EngineKind::dynoxide);
  Options options = it.options();
  options.ttl = 4s;
  options.request_timeout = 1900ms;
  options.auto_renew = false;
  const auto mutex = it.mutex(options);
  mutex->lock();
  const auto next = it.mutex();
  next->lock();
  BOOST_TEST(!mutex->owns_lock());
  BOOST_TEST(mutex->fencing_token() == 1u);
  BOOST_TEST(next->fencing_token() == 2u);
  mutex->unlock();
  BOOST_TEST(mutex->fencing_token() == 0u);
}

BOOST_AUTO_TEST_CASE(row_of_a_dead_holder_that_was_not_kept_begins_at_one) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    write_row(it.engine, it.name,
              tests::record("dead", 1s) + R"(,"ttl":{"N":"5"})");
    const auto mutex = it.mutex();
    mutex->lock();
    BOOST_TEST(mutex->fencing_token() == 1u);
    BOOST_TEST(it.stands("ttl") == "");
  }
}

BOOST_AUTO_TEST_CASE(kept_row_is_never_taken_by_one_that_does_not_keep_it) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const auto renewer = it.mutex();
    renewer->lock();
    DdbMutex other(it.name, on_table(table_at(it.engine)));
    const auto refused = [&] {
      return thrown_by([&] { (void)other.try_lock_for(tests::kPlenty); }) ==
             words(Errc::kept_row);
    };
    BOOST_TEST(refused());
    renewer->unlock();
    BOOST_TEST(refused());
    BOOST_TEST(it.stands("token") == "1");
    // However long it has stood so: held, the holder being dead, or free.
    for (const std::chrono::nanoseconds expires :
         {tests::calendar() + 1h, std::chrono::nanoseconds(0)}) {
      write_row(
          it.engine, it.name,
          tests::record("theirs", expires, 100ms) + R"(,"token":{"N":"7"})");
      BOOST_TEST(refused());
      tests::pause(250ms);  // Two leases: longer makes it no more ours.
      BOOST_TEST(refused());
      BOOST_TEST(it.stands("uuid") == "theirs");
      BOOST_TEST(it.stands("token") == "7");
    }
  }
}

BOOST_AUTO_TEST_CASE(token_that_is_no_count_is_a_bad_record_left_alone) {
  for (const EngineKind kind : kEngines) {
    for (const char* token :
         {R"({"S":"7"})", R"({"N":"-1"})", R"({"N":"9000000000000000000"})"}) {
      Kept it(kind);
      write_row(it.engine, it.name,
                tests::record("dead", 1s) + R"(,"token":)" + token);
      const std::string before = tests::raw_row(it.engine, it.name);
      const auto mutex = it.mutex();
      BOOST_TEST(thrown_by([&] { mutex->lock(); }) == words(Errc::bad_record));
      BOOST_TEST(tests::raw_row(it.engine, it.name) == before);
    }
  }
}

// What DynamoDB cannot be asked: it is seen in the answer, and given back.
BOOST_AUTO_TEST_CASE(token_with_a_fraction_is_a_bad_record_given_back) {
  Kept it(EngineKind::dynoxide);
  write_row(it.engine, it.name,
            tests::record("free", 0s) + R"(,"token":{"N":"1.5"})");
  const auto mutex = it.mutex();
  BOOST_TEST(thrown_by([&] { mutex->lock(); }) == words(Errc::bad_record));
  BOOST_TEST(!mutex->owns_lock());
  BOOST_TEST(it.stands("token") == "2.5");
  BOOST_TEST(eventually([&] { return it.stands("expires") == "0"; }));
}

// --- Answers that are lost ---------------------------------------------------

// A take was applied, its answer is lost, and somebody frees the row by force.
// A late copy of that take must not get it again, so the waiter needs a new
// lease; once, it waited for ever.
BOOST_AUTO_TEST_CASE(row_freed_by_force_before_the_answer_came_is_taken_anew) {
  for (const EngineKind kind : kEngines) {
    Gate gate(kind);
    const std::string name = tests::fresh_name();
    const auto others = table_at(gate.engine());
    for (const bool once : {false, true}) {
      DdbMutex mutex(name, keeping(table_at(gate)));
      gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
        engine.forward(request);
        BOOST_TEST(others->force_unlock(others->inspect(name)));
        return tests::Reply::gone(tests::Ending::reset);
      });
      BOOST_TEST(
          (once ? mutex.try_lock() : mutex.try_lock_for(tests::kPlenty)));
      BOOST_TEST(mutex.owns_lock());
      BOOST_TEST(row_of(gate.engine(), name).token ==
                 static_cast<std::int64_t>(mutex.fencing_token()));
      mutex.release();
    }
  }
}

// --- What others have written ------------------------------------------------

BOOST_AUTO_TEST_CASE(row_of_foreign_attributes_is_free_and_keeps_them) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    write_row(it.engine, it.name, kWorkItem);
    const auto mutex = it.mutex();
    mutex->lock();
    const Attributes all = mutex->attributes();
    BOOST_TEST(all.size() == 2u);
    mutex->release();
    BOOST_TEST(it.stands("colour") == "red");
    BOOST_TEST(it.stands("size") == "7");
  }
}

// What others have by a name of the record's would be lost.
BOOST_AUTO_TEST_CASE(row_with_a_name_of_ours_and_no_uuid_is_left_alone) {
  for (const EngineKind kind : kEngines) {
    for (const char* theirs :
         {R"("owner":{"S":"me"})", R"("ttl":{"N":"5"})",
          R"("expires":{"N":"0"})", R"("lease":{"N":"1000"})"}) {
      Kept it(kind);
      write_row(it.engine, it.name, theirs);
      const std::string before = tests::raw_row(it.engine, it.name);
      const auto mutex = it.mutex();
      BOOST_TEST(thrown_by([&] { mutex->lock(); }) == words(Errc::bad_record));
      BOOST_TEST(tests::raw_row(it.engine, it.name) == before);
    }
  }
}

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
    options.attributes = {text("colour", "red")};
    const auto first = it.mutex(options);
    first->lock();
    BOOST_TEST((first->data() == bytes));
    BOOST_TEST((it.mutex()->data() == std::nullopt));
    first->release();
    BOOST_TEST((first->data() == std::nullopt));
    const auto next = it.mutex();
    next->lock();
    BOOST_TEST((next->data() == bytes));
    BOOST_TEST((next->attributes() == Attributes{text("colour", "red")}));
  }
}

BOOST_AUTO_TEST_CASE(hundred_attributes_are_stored_and_no_more_promised) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    Options options = it.options();
    for (int i = 0; i < 100; ++i) {
      options.attributes.push_back(text("attribute" + std::to_string(i), "x"));
    }
    const auto mutex = it.mutex(options);
    mutex->lock();
    BOOST_TEST(mutex->attributes().size() == 100u);
    Changes changes;
    changes.attributes = options.attributes;
    mutex->renew(changes);
    mutex->release(changes);
    changes.remove = {"another"};
    options.attributes.push_back(text("another", "x"));
    const auto too_many = tests::error_of([&] { it.mutex(options); });
    BOOST_REQUIRE(too_many.has_value());
    BOOST_TEST(too_many->field() == "attributes");
    mutex->lock();
    BOOST_TEST(thrown_by([&] { mutex->renew(changes); }) ==
               words(Errc::bad_option));
  }
}

BOOST_AUTO_TEST_CASE(data_is_replaced_dropped_or_kept_as_the_taker_says) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    Options options = it.options();
    options.data = "one";
    options.attributes = {text("colour", "red")};
    it.mutex(options)->lock();  // And releases it.
    options.data = "two";
    options.attributes = {text("colour", "blue")};
    const auto replacing = it.mutex(options);
    replacing->lock();
    BOOST_TEST((replacing->data() == std::string("two")));
    replacing->release();
    options = it.options();
    options.keep_data = false;
    const auto dropping = it.mutex(options);
    dropping->lock();
    BOOST_TEST((dropping->data() == std::nullopt));
    BOOST_TEST(it.stands("colour") == "blue");
    dropping->release();
    options.data = "";
    const auto emptying = it.mutex(options);
    emptying->lock();
    BOOST_TEST((emptying->data() == std::string()));
  }
}

BOOST_AUTO_TEST_CASE(renewal_changes_what_is_stored) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    write_row(it.engine, it.name, kWorkItem);
    const auto mutex = it.mutex();
    mutex->lock();
    Changes changes;
    changes.data = "half";
    changes.attributes = {text("colour", "green"), text("shape", "round")};
    changes.remove = {"size"};
    mutex->renew(changes);
    BOOST_TEST((mutex->data() == std::string("half")));
    BOOST_TEST(it.stands("colour") == "green");
    BOOST_TEST(it.stands("shape") == "round");
    BOOST_TEST(it.stands("size") == "");
    BOOST_TEST(mutex->attributes().size() == 2u);
    changes = {};
    changes.remove = {"data"};
    mutex->renew(changes);
    BOOST_TEST((mutex->data() == std::nullopt));
    BOOST_TEST(it.stands("data") == "");
    BOOST_TEST(it.stands("shape") == "round");
  }
}

BOOST_AUTO_TEST_CASE(release_leaves_what_it_is_told_to) {
  for (const EngineKind kind : kEngines) {
    Kept it(kind);
    const auto mutex = it.mutex();
    mutex->lock();
    Changes changes;
    changes.data = "done";
    changes.attributes = {text("by", "us")};
    mutex->release(changes);
    BOOST_TEST(it.stands("by") == "us");
    const auto next = it.mutex();
    next->lock();
    BOOST_TEST((next->data() == std::string("done")));
  }
}

// Nothing of it can stay where rows are deleted: an error, and no harm.
BOOST_AUTO_TEST_CASE(release_with_changes_of_a_deleted_row_is_refused) {
  Engine& engine = Engine::running(EngineKind::dynoxide);
  DdbMutex mutex(tests::fresh_name(), on_table(table_at(engine)));
  mutex.lock();
  Changes changes;
  changes.data = "lost?";
  const auto error = tests::error_of([&] { mutex.release(changes); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST(error->code() == Errc::bad_option);
  BOOST_TEST(error->field() == "changes");
  BOOST_TEST(mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(deleted_row_carries_data_while_it_is_held) {
  for (const EngineKind kind : kEngines) {
    Engine& engine = Engine::running(kind);
    Options options = on_table(table_at(engine));
    options.data = "where I am";
    options.attributes = {text("colour", "red")};
    DdbMutex mutex(tests::fresh_name(), options);
    mutex.lock();
    BOOST_TEST((mutex.data() == std::string("where I am")));
    BOOST_TEST((mutex.attributes() == options.attributes));
    const auto info = options.table->inspect(mutex.name());
    BOOST_TEST((info.data == options.data));
    BOOST_TEST((info.attributes == options.attributes));
    mutex.release();
    BOOST_TEST(tests::is_free(engine, mutex.name()));
  }
}

BOOST_AUTO_TEST_CASE(data_of_a_dead_holder_stays_if_that_is_wanted) {
  for (const EngineKind kind : kEngines) {
    for (const bool keep : {true, false}) {
      Engine& engine = Engine::running(kind);
      const std::string name = tests::fresh_name();
      write_row(engine, name,
                tests::record("dead", 1s) +
                    R"(,"data":{"B":"aGFsZg=="},"colour":{"S":"red"})");
      Options options = on_table(table_at(engine));
      options.keep_data = keep;
      DdbMutex mutex(name, options);
      mutex.lock();
      BOOST_TEST((mutex.data() ==
                  (keep ? std::optional<std::string>("half") : std::nullopt)));
      BOOST_TEST(mutex.attributes().size() == (keep ? 1u : 0u));
      mutex.release();
      BOOST_TEST(tests::is_free(engine, name));
    }
  }
}

// The lease ends, and another takes the row, while the release is on its way:
// no loss, but what it was to leave is not stored, and that is said.  Nor has
// an earlier attempt stored it that was refused for a transaction.
BOOST_DATA_TEST_CASE(release_that_comes_too_late_to_store_says_so,
                     boost::unit_test::data::make({false, true}), conflict) {
  Gate gate(EngineKind::dynoxide);
  Options options = keeping(table_at(gate));
  options.ttl = 4s;
  options.auto_renew = false;
  options.request_timeout = 1900ms;
  DdbMutex mutex(tests::fresh_name(), options);
  mutex.lock();
  const BootTime end = BootClock::now() + mutex.remaining();
  if (conflict) {
    gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
      return tests::failure(400, "TransactionConflictException");
    });
  }
  gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
    while (BootClock::now() <= end) tests::pause(10ms);
    write_row(engine, mutex.name(),
              tests::record("theirs", tests::calendar() + 60s) +
                  R"(,"token":{"N":"7"})");
    return engine.forward(request);
  });
  while (mutex.remaining() > 400ms) tests::pause(10ms);
  Changes changes;
  changes.data = "done";
  std::error_code ec;
  mutex.release(changes, ec);
  BOOST_TEST((ec == Errc::lease_lost), ec.message());
  BOOST_TEST((options.table->inspect(mutex.name()).data == std::nullopt));
}

BOOST_AUTO_TEST_SUITE_END()
