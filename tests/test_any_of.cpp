// A lock on any one of many items, against the engines: which it is, whose it
// is, how it is waited for.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/any_of.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;

namespace {

using ddbmutex::AnyOf;
using ddbmutex::AnyOfOptions;
using ddbmutex::Attribute;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using tests::Aside;
using tests::Engine;
using tests::EngineKind;
using tests::Gate;
using tests::Reply;
using tests::SeenRequest;
using tests::table_at;
using tests::thrown_by;
using tests::words;
using Mutex = std::unique_ptr<DdbMutex>;

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());

// Of items that stay held.  Each request has all the time that it needs.
Options unhurried(std::shared_ptr<ddbmutex::Table> table) {
  Options options = tests::on_table(std::move(table));
  options.request_timeout = 20s;
  return options;
}

// Items of a name that is this test's own, and those who want any of them, each
// as a process of its own.
struct Items {
  explicit Items(int count, EngineKind kind = tests::any_engine_kind(),
                 const std::string& attributes = R"("colour":{"S":"red"})")
      : engine(Engine::running(kind)) {
    for (int i = 0; i < count; ++i) {
      names.push_back(prefix + std::to_string(i));
      tests::write_row(engine, names.back(), attributes);
    }
  }

  AnyOfOptions options(std::shared_ptr<ddbmutex::Table> table) const {
    AnyOfOptions options;
    options.each = unhurried(std::move(table));
    options.prefix = prefix;
    options.first_pause = 1ms;
    options.longest_pause = 20ms;
    return options;
  }
  AnyOfOptions options() const { return options(table_at(engine)); }
  std::string stands(const std::string& name, const char* attribute) {
    const auto item = tests::item_of(engine, name);
    const auto* found =
        item ? ddbmutex::dynamodb::find(*item, attribute) : nullptr;
    return found ? found->value : "";
  }

  Engine& engine;
  const std::string prefix = tests::fresh_name() + "-";
  std::vector<std::string> names;
};

std::string colour_of(const ddbmutex::Attributes& attributes) {
  for (const Attribute& one : attributes) {
    if (one.name == "colour") return one.value;
  }
  return "";
}

Changes painted(const std::string& colour) {
  Changes changes;
  changes.attributes = {{"colour", Attribute::Type::string, colour, {}}};
  return changes;
}

// Wants those of that colour.
AnyOfOptions of_colour(AnyOfOptions options, const std::string& colour) {
  options.read = {"colour"};
  options.accept = [colour](const LockInfo& item) {
    return colour_of(item.attributes) == colour;
  };
  return options;
}

// In a table of their own, of which an answer has two at the most, and comes
// after a while.
struct SlowItems {
  SlowItems(int count, const std::string& attributes,
            std::chrono::milliseconds each_page)
      : table(gate.engine().create_table()) {
    for (int i = 0; i < count; ++i) {
      gate.engine().must_call(
          "PutItem", R"({"TableName":")" + table +
                         R"(","Item":{"name":{"S":"ddblock-)" +
                         std::to_string(i) + "\"}," + attributes + "}}");
    }
    gate.always("Scan", [each_page](Engine& engine, const SeenRequest& asked) {
      Reply reply = page(engine, asked);
      reply.delay = each_page;
      return reply;
    });
  }
  ~SlowItems() {
    gate.open();
    gate.engine().delete_table(table);
  }
  SlowItems(const SlowItems&) = delete;
  SlowItems& operator=(const SlowItems&) = delete;

  static Reply page(Engine& engine, SeenRequest asked) {
    const std::string limit = R"("Limit":200)";
    asked.body.replace(asked.body.find(limit), limit.size(), R"("Limit":2)");
    return engine.forward(asked);
  }

  AnyOfOptions options(std::chrono::milliseconds request_timeout) const {
    ddbmutex::TableOptions where = tests::table_options(gate);
    where.name = table;
    AnyOfOptions options;
    options.each = tests::on_table(std::make_shared<ddbmutex::Table>(where));
    options.each.request_timeout = request_timeout;
    return options;
  }

  Gate gate;
  const std::string table;
};

const std::string kFree = R"("colour":{"S":"red"})";

int passes(const Gate& gate) { return count_of(gate.server(), "Scan"); }
int tries(const Gate& gate) { return count_of(gate.server(), "UpdateItem"); }

Reply without_date(Engine& engine, const SeenRequest& request) {
  Reply reply = engine.forward(request);
  reply.headers = {{"Date", ""}};
  return reply;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(any_of)

// --- What is got -------------------------------------------------------------

BOOST_DATA_TEST_CASE(item_that_nobody_has_is_got_with_its_attributes, kEngines,
                     kind) {
  Items items(1, kind);
  AnyOf any(items.options());
  BOOST_TEST(!any.accepted().has_value());
  const Mutex item = any.lock();
  BOOST_TEST_REQUIRE((item != nullptr));
  BOOST_TEST(item->name() == items.names[0]);
  BOOST_TEST(item->owns_lock());
  BOOST_TEST(item->fencing_token() == 1u);
  BOOST_TEST(colour_of(item->attributes()) == "red");
  BOOST_TEST(any.accepted().value() == 1u);
  item->release(painted("blue"));
  BOOST_TEST(items.stands(items.names[0], "expires") == "0");
  BOOST_TEST(items.stands(items.names[0], "colour") == "blue");
}

// --- Which items -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(what_is_no_lock_record_is_never_taken) {
  Items items(2);
  tests::write_row(items.engine, items.names[0],
                   R"("uuid":{"N":"1"},"expires":{"N":"0"})");
  const std::string before = tests::raw_row(items.engine, items.names[0]);
  AnyOf any(items.options());
  const Mutex item = any.lock();
  BOOST_TEST(item->name() == items.names[1]);
  BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(any.accepted().value() == 1u);
  BOOST_TEST(tests::raw_row(items.engine, items.names[0]) == before);
}

// Between the pass and the take another has it, and does what there is to do.
BOOST_AUTO_TEST_CASE(what_was_done_meanwhile_is_given_back) {
  Items items(1);
  Gate gate(items.engine.kind());
  AnyOfOptions options = of_colour(items.options(table_at(gate)), "red");
  gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
    AnyOf(of_colour(items.options(), "red")).lock()->release(painted("blue"));
    return engine.forward(request);
  });
  AnyOf any(options);
  BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(tries(gate) == 2);  // Taken, and released.
  BOOST_TEST(items.stands(items.names[0], "token") == "2");
  BOOST_TEST(items.stands(items.names[0], "expires") == "0");
  BOOST_TEST(items.stands(items.names[0], "colour") == "blue");
}

BOOST_AUTO_TEST_CASE(item_that_is_gone_meanwhile_is_not_made_anew) {
  Items items(1);
  Gate gate(items.engine.kind());
  gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
    tests::delete_row(engine, items.names[0]);
    return engine.forward(request);
  });
  AnyOf any(items.options(table_at(gate)));
  BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(tests::raw_row(items.engine, items.names[0]) == "");
}

// --- What it costs -----------------------------------------------------------

// A list that others have emptied is not tried to its end.
BOOST_AUTO_TEST_CASE(list_that_is_of_no_use_is_left) {
  Items items(20);
  Gate gate(items.engine.kind());
  AnyOf rival(items.options());
  std::vector<Mutex> theirs;
  gate.once("UpdateItem", [&](Engine& engine, const SeenRequest& request) {
    while (Mutex item = rival.try_lock()) theirs.push_back(std::move(item));
    return engine.forward(request);
  });
  AnyOf any(items.options(table_at(gate)));
  BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(theirs.size() == 20u);
  BOOST_TEST(tries(gate) == 5);
}

BOOST_AUTO_TEST_CASE(held_items_cost_no_try) {
  Items items(3);
  AnyOf rival(items.options());
  std::vector<Mutex> theirs;
  while (Mutex item = rival.try_lock()) theirs.push_back(std::move(item));
  Gate gate(items.engine.kind());
  AnyOf any(items.options(table_at(gate)));
  for (int i = 0; i < 10; ++i) BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(passes(gate) == 10);
  BOOST_TEST(tries(gate) == 0);
}

// --- Order -------------------------------------------------------------------

// Whoever comes anew knows of the rows what is in them.  A quarter of them has
// more than half of the turns, and a quarter by chance alone; it is one of
// these two but for once in a million.
BOOST_AUTO_TEST_CASE(items_that_were_got_least_often_come_first) {
  Items items(120);
  for (std::size_t i = 0; i < 90; ++i) {
    tests::write_row(items.engine, items.names[i],
                     tests::record("theirs", 0ns) + R"(,"token":{"N":"7"})");
  }
  const auto table = table_at(items.engine);
  int fresh = 0;
  for (int i = 0; i < 150; ++i) {
    const Mutex item = AnyOf(items.options(table)).lock();
    if (item->fencing_token() > 1) continue;
    ++fresh;
    item->unlock();
    tests::write_row(items.engine, item->name(), R"("colour":{"S":"new"})");
  }
  BOOST_TEST(fresh >= 65);
}

// Though others, which were got less often, are always there.
BOOST_AUTO_TEST_CASE(item_that_was_got_often_does_not_wait_for_ever) {
  Items items(40);
  const std::string& old = items.names[0];
  tests::write_row(items.engine, old,
                   tests::record("theirs", 0ns) + R"(,"token":{"N":"1000"})");
  const auto table = table_at(items.engine);
  // One of 128 is what it gets.
  int turns = 0;
  for (bool got = false; !got; ++turns) {
    BOOST_TEST_REQUIRE(turns < 3000);
    const Mutex item = AnyOf(items.options(table)).lock();
    got = item->name() == old;
    item->unlock();
    if (got) continue;
    tests::write_row(items.engine, item->name(), R"("colour":{"S":"new"})");
  }
}

// Whoever stays goes by what it has seen, and not by tokens: 16 that stand as
// they did, among 64 that others have had since the last pass.  The former have
// more than half of the tries, a tenth by tokens alone, and a fifth by chance;
// it is one of these others but for once in a million.
BOOST_AUTO_TEST_CASE(
    items_that_stand_longest_come_first_whatever_their_tokens) {
  Items items(80);
  // No more than DynamoDB takes at once.
  const auto write = [&](std::size_t first, std::size_t end,
                         const char* token) {
    std::string puts;
    for (std::size_t i = first; i < end; ++i) {
      puts += (puts.empty() ? "" : ",") +
              (R"({"PutRequest":{"Item":{"name":{"S":"ddblock-)" +
               items.names[i] + R"("},"token":{"N":")" + token + R"("},)" +
               tests::record(tests::fresh_name().c_str(), 0ns) + "}}}");
    }
    items.engine.must_call(
        "BatchWriteItem",
        R"({"RequestItems":{")" + items.engine.table() + "\":[" + puts + "]}}");
  };
  write(0, 16, "1000");
  Gate gate(items.engine.kind());
  int to_count = 0;  // Tries of a call, the first of which are the best.
  int at_those = 0, at_all = 0;
  gate.always("UpdateItem", [&](Engine&, const SeenRequest& request) {
    if (to_count > 0) {
      --to_count;
      ++at_all;
      for (std::size_t i = 0; i < 16; ++i) {
        at_those += tests::has(request.body, items.names[i] + "\"");
      }
    }
    return tests::refusal(tests::live_record());
  });
  AnyOf any(items.options(table_at(gate)));
  int round = 0;
  while (at_all < 100) {
    BOOST_TEST_REQUIRE(++round <= 200);
    for (const std::size_t first : {16, 32, 48, 64}) {
      write(first, first + 16, "1");
    }
    BOOST_TEST((any.try_lock() == nullptr));
    to_count = 5;  // It has made a pass by now.
  }
  BOOST_TEST(at_those * 100 >= at_all * 38,
             at_those << " of " << at_all << " tries");
}

// Though the order is the same for all.
BOOST_AUTO_TEST_CASE(takers_begin_at_another_place_each) {
  Items items(4);
  for (std::size_t i = 0; i < 4; ++i) {
    tests::write_row(items.engine, items.names[i],
                     tests::record("theirs", 0ns) + R"(,"token":{"N":")" +
                         std::to_string(i + 1) + R"("})");
  }
  Gate gate(items.engine.kind());
  const std::string best = "ddblock-" + items.names[0] + "\"";
  bool first = false;
  int at_the_best = 0;
  gate.always("UpdateItem", [&](Engine&, const SeenRequest& request) {
    if (std::exchange(first, false)) {
      at_the_best += request.body.find(best) != std::string::npos;
    }
    return tests::refusal(tests::live_record());
  });
  const auto table = table_at(gate);
  for (int i = 0; i < 160; ++i) {
    first = true;
    AnyOf any(items.options(table));
    BOOST_TEST((any.try_lock() == nullptr));
  }
  // 40 by chance.  115 if all began with the best, which one in eight items
  // precedes for a while.
  BOOST_TEST(at_the_best < 80);
}

// --- The dead ----------------------------------------------------------------

// Where nothing tells what time it is by DynamoDB's clock.
BOOST_AUTO_TEST_CASE(dead_holder_is_waited_out_where_answers_have_no_date) {
  Items items(2);
  const std::string record =
      tests::record("dead", tests::calendar() - 1h, 1000ms) +
      R"(,"token":{"N":"3"})";
  tests::write_row(items.engine, items.names[0], record);
  tests::write_row(items.engine, items.names[1], tests::live_record());
  Gate gate(items.engine.kind());
  for (const char* action : {"Scan", "UpdateItem", "GetItem"}) {
    gate.always(action, without_date);
  }
  AnyOf any(items.options(tests::new_table_at(gate)));
  const tests::Stopwatch watch;
  const Mutex item = any.lock();
  BOOST_TEST(item->name() == items.names[0]);
  BOOST_TEST(item->fencing_token() == 4u);
  BOOST_TEST((watch.time() >= 2s));
  BOOST_TEST(tries(gate) <= 3);  // Seen by the mutex, and taken.
}

// --- Ends and errors ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(waits_end_as_they_are_told_to) {
  Items items(0);
  const auto table = table_at(items.engine);
  AnyOf any(items.options(table));
  const auto waits = [&] { return any.accepted().has_value(); };
  {
    Aside waiter([&] { (void)any.lock(); });
    BOOST_TEST(tests::eventually(waits));
    any.cancel();
    BOOST_TEST(waiter.thrown() == words(Errc::cancelled));
  }
  BOOST_TEST((any.try_lock() == nullptr));  // It is not remembered.
  Aside waiter([&] { (void)any.lock(); });
  table->close();
  BOOST_TEST(waiter.thrown() == words(Errc::closed));
  BOOST_TEST(thrown_by([&] { (void)any.try_lock(); }) == words(Errc::closed));
  std::error_code ec;
  BOOST_TEST((any.lock(ec) == nullptr));
  BOOST_TEST(ec == Errc::closed);
  BOOST_TEST(any.last_error().find("cannot lock any of") == 0u,
             any.last_error());
}

BOOST_AUTO_TEST_CASE(what_accept_throws_leaves_nothing_behind) {
  Items items(1);
  AnyOfOptions options = items.options();
  int asked = 0;
  options.accept = [&](const LockInfo&) {
    // In the pass, and of what was got by the next.
    if (++asked == 1 || asked == 3) throw std::runtime_error("not now");
    return true;
  };
  AnyOf any(options);
  BOOST_CHECK_THROW((void)any.lock(), std::runtime_error);
  BOOST_CHECK_THROW((void)any.lock(), std::runtime_error);
  BOOST_TEST(items.stands(items.names[0], "expires") == "0");
  BOOST_TEST(any.lock()->fencing_token() == 2u);
}

// --- Until all are refused ---------------------------------------------------

BOOST_AUTO_TEST_CASE(all_that_were_free_are_tried_before_none_is) {
  Items items(30);
  Gate gate(items.engine.kind());
  std::set<std::string> tried;
  gate.always("UpdateItem", [&](Engine&, const SeenRequest& request) {
    for (const std::string& name : items.names) {
      if (tests::has(request.body, name + "\"")) tried.insert(name);
    }
    return tests::refusal(tests::live_record());
  });
  AnyOf any(items.options(table_at(gate)));
  BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(tried.size() == items.names.size());
}

// Although what was read is older than what serves another call.
BOOST_AUTO_TEST_CASE(next_is_tried_though_each_try_takes_long) {
  Items items(4);
  Gate gate(items.engine.kind());
  for (int i = 0; i < 2; ++i) {
    gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
      Reply refusal = tests::refusal(tests::live_record());
      refusal.delay = 1200ms;
      return refusal;
    });
  }
  AnyOf any(items.options(table_at(gate)));
  BOOST_TEST((any.try_lock() != nullptr));
}

// Nor does that leave less for reading anew what another call has read before.
BOOST_AUTO_TEST_CASE(tries_take_none_of_the_time_for_reading) {
  const std::string wrong = tests::undisturbed(200ms, [] {
    Items items(6);
    Gate gate(items.engine.kind());
    AnyOfOptions options = items.options(table_at(gate));
    options.each.request_timeout = 2s;
    AnyOf any(options);
    const Mutex first = any.try_lock();
    for (const auto delay : {700ms, 1500ms}) {
      gate.once("UpdateItem", [delay](Engine&, const SeenRequest&) {
        Reply refusal = tests::refusal(tests::live_record());
        refusal.delay = delay;
        return refusal;
      });
    }
    Mutex got;
    const std::string told = thrown_by([&] { got = any.try_lock(); });
    return told != "none" ? told : got == nullptr ? "none was got" : "";
  });
  BOOST_TEST(wrong == "");
}

// Of two that share a pass one tries the only item, and fails: the other must
// not take it for held.
BOOST_AUTO_TEST_CASE(item_that_another_thread_fails_to_get_is_not_held) {
  Items items(1);
  Gate gate(items.engine.kind());
  gate.once("Scan", [](Engine&, const SeenRequest&) {
    Reply none = Reply::ok(R"({"Items":[]})");
    none.hangs = true;
    return none;
  });
  gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
    Reply late = tests::failure(400, "AccessDeniedException");
    late.hangs = true;
    return late;
  });
  AnyOf any(items.options(table_at(gate)));
  Mutex none;
  Aside first([&] { none = any.try_lock(); });
  BOOST_TEST(tests::eventually([&] { return passes(gate) == 1; }));
  // Theirs is the next pass.
  Mutex got[2];
  Aside one([&] { got[0] = any.try_lock(); });
  Aside other([&] { got[1] = any.try_lock(); });
  BOOST_TEST((one.rests() && other.rests()));
  gate.server().release();
  BOOST_TEST(first.thrown() == "none");
  BOOST_TEST((none == nullptr));
  BOOST_TEST(tests::eventually([&] { return tries(gate) == 1; }));
  // Nothing is told while the try is under way; a stall hides no fault.
  tests::pause(200ms);
  BOOST_TEST((!one.done() && !other.done()));
  gate.server().release();
  const std::string told = one.thrown() + ", " + other.thrown();
  BOOST_TEST((told == "none, access denied" || told == "access denied, none"),
             told);
  BOOST_TEST(((got[0] != nullptr) != (got[1] != nullptr)));
}

// --- How long it takes -------------------------------------------------------

BOOST_AUTO_TEST_CASE(large_table_is_read_no_longer_than_there_is_time) {
  SlowItems items(16, tests::live_record(), 600ms);
  AnyOf any(items.options(1s));
  const auto ends = [&](const auto& call) {
    std::string told;
    BOOST_TEST(tests::returns_within(1s, [&] { told = thrown_by(call); }));
    BOOST_TEST(told == words(Errc::timed_out));
    BOOST_TEST(!any.accepted().has_value());  // Nobody knows.
  };
  ends([&] { (void)any.try_lock(); });
  ends([&] { (void)any.try_lock_for(1s); });
  ends(
      [&] { (void)any.try_lock_until(std::chrono::steady_clock::now() + 1s); });
}

// One try each.
BOOST_AUTO_TEST_CASE(what_was_found_until_the_time_was_up_is_tried) {
  SlowItems items(16, kFree, 600ms);
  AnyOf any(items.options(1s));
  const auto gets = [&](const auto& call) {
    Mutex got;
    BOOST_TEST(tests::returns_within(2s, [&] { got = call(); }));
    BOOST_TEST((got != nullptr));
    tests::pause(1100ms);  // What was found serves no more.
  };
  gets([&] { return any.try_lock(); });
  gets([&] { return any.try_lock_for(1s); });
  gets([&] {
    return any.try_lock_until(std::chrono::steady_clock::now() + 1s);
  });
  BOOST_TEST(!any.accepted().has_value());
}

BOOST_AUTO_TEST_CASE(slow_accept_takes_no_more_time_than_there_is) {
  Items items(16, tests::any_engine_kind(), tests::live_record());
  AnyOfOptions options = items.options();
  options.each.request_timeout = 1s;
  options.accept = [](const LockInfo&) {
    tests::pause(300ms);
    return true;
  };
  AnyOf any(options);
  for (const bool once : {true, false}) {
    std::string told;
    BOOST_TEST(tests::returns_within(1s, [&] {
      told = thrown_by(
          [&] { (void)(once ? any.try_lock() : any.try_lock_for(1s)); });
    }));
    BOOST_TEST(told == words(Errc::timed_out));
  }
}

// Who has no time of his own to keep reads it to its end, each page within
// `patience`.
BOOST_AUTO_TEST_CASE(large_table_is_read_to_its_end_by_who_waits_for_ever) {
  const std::string wrong = tests::undisturbed(500ms, [] {
    SlowItems items(16, tests::live_record(), 300ms);
    AnyOfOptions options = items.options(1500ms);
    options.each.patience = 1500ms;
    AnyOf any(options);
    Aside waiter([&] { (void)any.lock(); });
    tests::eventually([&] { return any.accepted() || waiter.done(); });
    any.cancel();
    const std::string told = waiter.thrown();
    if (told != words(Errc::cancelled)) return told;
    return std::string(any.accepted() == 16u ? "" : "not all were read");
  });
  BOOST_TEST(wrong == "");
}

// It waits for what another thread reads, but not for all the time it has.
BOOST_AUTO_TEST_CASE(pass_of_another_thread_that_hangs_is_not_waited_for) {
  const auto round = [](bool once) {
    Items items(2);
    Gate gate(items.engine.kind());
    gate.once("Scan",
              [](Engine&, const SeenRequest&) { return tests::hanging(); });
    AnyOfOptions options = items.options(table_at(gate));
    options.each.request_timeout = 3s;
    AnyOf any(options);
    Aside reader([&] { (void)any.lock(); });
    tests::eventually([&] { return passes(gate) == 1; });
    std::string wrong;
    try {
      if ((once ? any.try_lock() : any.try_lock_for(3s)) == nullptr) {
        wrong = "none was got";
      }
    } catch (const ddbmutex::Error& error) {
      wrong = error.what();
    }
    if (reader.done()) wrong += " (and does not hang)";
    any.cancel();
    reader.ends();
    gate.server().release();
    return wrong;
  };
  for (const bool once : {true, false}) {
    BOOST_TEST(tests::undisturbed(500ms, [&] { return round(once); }) == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
