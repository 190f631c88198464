// AnyOf, a lock on any one of many items, on the engines: which item it gets,
// which items it leaves alone, how it waits, and what that costs.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "extras/any_of.hpp"
#include "extras/stored.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;

namespace {

using ddbmutex::AnyOf;
using ddbmutex::AnyOfOptions;
using ddbmutex::Attribute;
using ddbmutex::attributes_of;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using ddbmutex::to_item;
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

// An item that nobody has locked yet.
const std::string kFree = R"("colour":{"S":"red"})";

// Items that no other test sees: their names have a prefix of their own.
struct Items {
  explicit Items(int count, EngineKind kind = tests::any_engine_kind(),
                 const std::string& attributes = kFree)
      : engine(Engine::running(kind)) {
    for (int i = 0; i < count; ++i) {
      names.push_back(prefix + std::to_string(i));
      tests::write_row(engine, names.back(), attributes);
    }
  }

  AnyOfOptions options(std::shared_ptr<ddbmutex::Table> table) const {
    AnyOfOptions options;
    options.each = tests::on_table(std::move(table));
    options.prefix = prefix;
    options.first_pause = 1ms;
    options.longest_pause = 20ms;
    return options;
  }
  AnyOfOptions options() const { return options(table_at(engine)); }
  std::string stored(const std::string& name, const char* attribute) {
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
  changes.item = to_item({{"colour", Attribute::Type::string, colour, {}}});
  return changes;
}

// Accepts only items of that colour.
AnyOfOptions of_colour(AnyOfOptions options, const std::string& colour) {
  options.read = {"colour"};
  options.accept = [colour](const LockInfo& item) {
    return colour_of(attributes_of(item.item)) == colour;
  };
  return options;
}

// Items in a table of their own.  Each page of it has two items at most, and
// takes `each_page` to come.
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

// A pass reads the table once; a try asks for one item.
int passes(const Gate& gate) { return count_of(gate.server(), "Scan"); }
int tries(const Gate& gate) { return count_of(gate.server(), "UpdateItem"); }

// The item is locked by another.
Reply locked_by_another() { return tests::refusal(tests::live_record()); }
Gate::Rule locked_by_another_after(std::chrono::milliseconds delay) {
  return [delay](Engine&, const SeenRequest&) {
    Reply reply = locked_by_another();
    reply.delay = delay;
    return reply;
  };
}

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
  BOOST_TEST(colour_of(attributes_of(item->item())) == "red");
  BOOST_TEST(any.accepted().value() == 1u);
  item->release(painted("blue"));
  BOOST_TEST(items.stored(items.names[0], "expires") == "0");
  BOOST_TEST(items.stored(items.names[0], "colour") == "blue");
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

// Between the pass and the take another process gets the item and changes it,
// so that it is not acceptable any more.
BOOST_AUTO_TEST_CASE(item_that_became_unacceptable_is_released) {
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
  BOOST_TEST(items.stored(items.names[0], "token") == "2");
  BOOST_TEST(items.stored(items.names[0], "expires") == "0");
  BOOST_TEST(items.stored(items.names[0], "colour") == "blue");
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

// Once others have taken the items of a pass, the rest of it is not tried.
BOOST_AUTO_TEST_CASE(stale_list_is_not_tried_to_its_end) {
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

// A new AnyOf goes by the tokens in the rows.  The quarter of the items with
// the lowest tokens gets more than half of the turns; by chance it would get a
// quarter.  The bound lies so far from both that one run in a million is wrong.
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

// Items with lower tokens are always available.
BOOST_AUTO_TEST_CASE(item_with_a_high_token_does_not_wait_for_ever) {
  Items items(40);
  const std::string& old = items.names[0];
  tests::write_row(items.engine, old,
                   tests::record("theirs", 0ns) + R"(,"token":{"N":"1000"})");
  const auto table = table_at(items.engine);
  // It gets one turn in 128.
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

// An AnyOf that has made passes goes by what it has seen, not by tokens.  16
// items are unchanged, and others have had 64 since the last pass.  The 16 get
// more than half of the tries; by tokens they would get a tenth, by chance a
// fifth.  The bound lies so far from these that one run in a million is wrong.
BOOST_AUTO_TEST_CASE(
    items_that_stand_longest_come_first_whatever_their_tokens) {
  Items items(80);
  // 16 items, because DynamoDB accepts no more than 25 in one request.
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
  int to_count = 0;  // The first tries of each call: those preferred.
  int at_those = 0, at_all = 0;
  gate.always("UpdateItem", [&](Engine&, const SeenRequest& request) {
    if (to_count > 0) {
      --to_count;
      ++at_all;
      for (std::size_t i = 0; i < 16; ++i) {
        at_those += tests::has(request.body, items.names[i] + "\"");
      }
    }
    return locked_by_another();
  });
  AnyOf any(items.options(table_at(gate)));
  int round = 0;
  while (at_all < 100) {
    BOOST_TEST_REQUIRE(++round <= 200);
    for (const std::size_t first : {16u, 32u, 48u, 64u}) {
      write(first, first + 16, "1");
    }
    BOOST_TEST((any.try_lock() == nullptr));
    to_count = 5;  // From the second pass on.
  }
  BOOST_TEST(at_those * 100 >= at_all * 38,
             at_those << " of " << at_all << " tries");
}

// The order of the items is the same for all takers.
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
    return locked_by_another();
  });
  const auto table = table_at(gate);
  for (int i = 0; i < 160; ++i) {
    first = true;
    AnyOf any(items.options(table));
    BOOST_TEST((any.try_lock() == nullptr));
  }
  // About 40 by chance, and 115 if each began with the best.  (One item in
  // eight is put before it at random.)
  BOOST_TEST(at_the_best < 80);
}

// --- Holders that died -------------------------------------------------------

// Without a Date nobody knows DynamoDB's time.
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
  BOOST_TEST(tries(gate) <= 3);
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
  // The cancel() does not affect later calls.
  BOOST_TEST((any.try_lock() == nullptr));
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
    // In the first pass, and for the item that the second call has locked.
    if (++asked == 1 || asked == 3) throw std::runtime_error("not now");
    return true;
  };
  AnyOf any(options);
  BOOST_CHECK_THROW((void)any.lock(), std::runtime_error);
  BOOST_CHECK_THROW((void)any.lock(), std::runtime_error);
  BOOST_TEST(items.stored(items.names[0], "expires") == "0");
  BOOST_TEST(any.lock()->fencing_token() == 2u);
}

// Both items are in one pass.  One call is refused the first item, and waits
// while another tries the second.  That try ends: the second is free again.
BOOST_AUTO_TEST_CASE(try_that_accept_ends_with_an_exception_is_over_for_all) {
  bool in_one_pass = false;
  tests::eventually([&] {
    Items items(2);
    Gate gate(items.engine.kind());
    gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
      Reply refusal = locked_by_another();
      refusal.hangs = true;
      return refusal;
    });
    AnyOfOptions options = items.options(table_at(gate));
    const std::thread::id here = std::this_thread::get_id();
    options.accept = [here](const LockInfo&) {
      if (std::this_thread::get_id() == here) throw std::runtime_error("no");
      return true;
    };
    AnyOf any(options);
    Mutex got;
    Aside waiter([&] { got = any.try_lock(); });
    BOOST_TEST(tests::eventually([&] { return tries(gate) == 1; }));
    const int before = passes(gate);
    BOOST_CHECK_THROW((void)any.lock(), std::runtime_error);
    // A pass that ended a second ago serves no other call: the exception then
    // came from a pass of its own.
    in_one_pass = passes(gate) == before;
    gate.server().release();
    BOOST_TEST(waiter.thrown() == "none");
    BOOST_TEST((got != nullptr));
    return in_one_pass;
  });
  BOOST_TEST(in_one_pass);
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
    return locked_by_another();
  });
  AnyOf any(items.options(table_at(gate)));
  BOOST_TEST((any.try_lock() == nullptr));
  BOOST_TEST(tried.size() == items.names.size());
}

// The pass is older by then than one that may serve another call.
BOOST_AUTO_TEST_CASE(next_is_tried_though_each_try_takes_long) {
  Items items(4);
  Gate gate(items.engine.kind());
  for (int i = 0; i < 2; ++i) {
    gate.once("UpdateItem", locked_by_another_after(1200ms));
  }
  AnyOf any(items.options(table_at(gate)));
  BOOST_TEST((any.try_lock() != nullptr));
}

// Slow tries do not shorten the time for a new pass either, where the first
// pass was an earlier call's.
BOOST_AUTO_TEST_CASE(tries_take_none_of_the_time_for_reading) {
  const std::string wrong = tests::undisturbed(200ms, [] {
    Items items(6);
    Gate gate(items.engine.kind());
    AnyOfOptions options = items.options(table_at(gate));
    options.each.request_timeout = 2s;
    AnyOf any(options);
    const Mutex first = any.try_lock();
    for (const auto delay : {700ms, 1500ms}) {
      gate.once("UpdateItem", locked_by_another_after(delay));
    }
    Mutex got;
    const std::string told = thrown_by([&] { got = any.try_lock(); });
    return told != "none" ? told : got == nullptr ? "none was got" : "";
  });
  BOOST_TEST(wrong == "");
}

// Two calls share a pass.  One tries the only item and gets an error.  The
// other must not conclude that the item is held.
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
  // These two share the next pass.
  Mutex got[2];
  Aside one([&] { got[0] = any.try_lock(); });
  Aside other([&] { got[1] = any.try_lock(); });
  BOOST_TEST((one.rests() && other.rests()));
  gate.server().release();
  BOOST_TEST(first.thrown() == "none");
  BOOST_TEST((none == nullptr));
  BOOST_TEST(tests::eventually([&] { return tries(gate) == 1; }));
  // Neither call returns while the try is in flight.
  tests::pause(200ms);
  BOOST_TEST((!one.done() && !other.done()));
  gate.server().release();
  const std::string told = one.thrown() + ", " + other.thrown();
  BOOST_TEST((told == "none, access denied" || told == "access denied, none"),
             told);
  BOOST_TEST(((got[0] != nullptr) != (got[1] != nullptr)));
}

// --- When null is no error ---------------------------------------------------

namespace {

// One thread's pass hangs.
struct HangingPass {
  explicit HangingPass(const std::string& attributes)
      : items(2, tests::any_engine_kind(), attributes) {
    gate.once("Scan", Gate::held());
    reader.emplace([this] { (void)any.lock(); });
    BOOST_TEST(tests::eventually([this] { return passes(gate) == 1; }));
  }
  ~HangingPass() {
    any.cancel();
    gate.server().release();
  }

  AnyOfOptions options() {
    AnyOfOptions options = items.options(table_at(gate));
    options.each.request_timeout = 2s;  // So a pass may take half a second.
    return options;
  }

  Items items;
  Gate gate{items.engine.kind()};
  AnyOf any{options()};
  std::optional<Aside> reader;
};

}  // namespace

// Neither the pass of the other thread nor its own is answered.
BOOST_AUTO_TEST_CASE(time_that_is_up_before_any_answer_is_an_error) {
  HangingPass it(kFree);
  it.gate.always("Scan", Gate::held());
  BOOST_TEST(thrown_by([&] { (void)it.any.try_lock_for(300ms); }) ==
             words(Errc::timed_out));
}

// While the call waits for the pass that hangs, a third thread reads the whole
// table: nothing is free.
BOOST_AUTO_TEST_CASE(pass_of_another_thread_shows_that_nothing_is_free) {
  const std::string wrong = tests::undisturbed(1s, []() -> std::string {
    HangingPass it(tests::live_record());
    Aside waiter([&] { (void)it.any.try_lock_for(4s); });
    BOOST_TEST_REQUIRE(waiter.rests());
    // It has no time to wait for the pass that hangs.
    Aside other([&] { (void)it.any.try_lock_for(500ms); });
    if (other.thrown() != "none") return "the third: " + other.thrown();
    it.gate.always("Scan", Gate::held());
    return waiter.thrown() == "none" ? "" : "the waiter: " + waiter.thrown();
  });
  BOOST_TEST(wrong == "");
}

// The time is up after the first item of the pass.
BOOST_AUTO_TEST_CASE(refused_try_is_an_answer_although_the_pass_was_cut_short) {
  const auto round = [](bool free) -> std::string {
    Items items(2, tests::any_engine_kind(),
                free ? kFree : tests::live_record());
    Gate gate(items.engine.kind());
    gate.always("UpdateItem", [](Engine&, const SeenRequest&) {
      return locked_by_another();
    });
    AnyOfOptions options = items.options(table_at(gate));
    options.accept = [](const LockInfo&) {
      tests::pause(1s);
      return true;
    };
    AnyOf any(options);
    const std::string told = thrown_by([&] { (void)any.try_lock_for(900ms); });
    if (any.accepted().has_value()) return "the whole table was read";
    return told + " after " + std::to_string(tries(gate));
  };
  for (const bool free : {true, false}) {
    const std::string expected =
        free ? "none after 1" : words(Errc::timed_out) + " after 0";
    BOOST_TEST(tests::undisturbed(500ms, [&] {
                 const std::string found = round(free);
                 return found == expected ? "" : found;
               }) == "");
  }
}

// --- How long it takes -------------------------------------------------------

BOOST_AUTO_TEST_CASE(large_table_is_read_no_longer_than_there_is_time) {
  SlowItems items(16, tests::live_record(), 600ms);
  AnyOf any(items.options(1s));
  const auto ends = [&](const auto& call) {
    std::string told;
    BOOST_TEST(tests::returns_within(1s, [&] { told = thrown_by(call); }));
    BOOST_TEST(told == words(Errc::timed_out));
    BOOST_TEST(!any.accepted().has_value());  // The pass did not end.
  };
  ends([&] { (void)any.try_lock(); });
  ends([&] { (void)any.try_lock_for(1s); });
  ends(
      [&] { (void)any.try_lock_until(std::chrono::steady_clock::now() + 1s); });
}

// One page is read in time, and its items are tried once.
BOOST_AUTO_TEST_CASE(what_was_found_until_the_time_was_up_is_tried) {
  using Call = Mutex (*)(AnyOf&);
  const Call calls[] = {
      [](AnyOf& any) { return any.try_lock(); },
      [](AnyOf& any) { return any.try_lock_for(1s); },
      [](AnyOf& any) {
        return any.try_lock_until(std::chrono::steady_clock::now() + 1s);
      }};
  const std::string wrong = tests::undisturbed(200ms, [&]() -> std::string {
    SlowItems items(16, kFree, 600ms);
    AnyOf any(items.options(1s));
    for (const Call call : calls) {
      Mutex got;
      std::string told;
      const bool in_time = tests::returns_within(
          2s, [&] { told = thrown_by([&] { got = call(any); }); });
      if (told != "none") return told;
      if (got == nullptr) return "none was got";
      if (!in_time) return "it took too long";
      tests::pause(1100ms);  // The page is too old now for the next call.
    }
    return any.accepted().has_value() ? "the whole table was read" : "";
  });
  BOOST_TEST(wrong == "");
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

// lock() has no deadline, so it reads the table to its end, each page within
// `patience`.
BOOST_AUTO_TEST_CASE(large_table_is_read_to_its_end_by_lock) {
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

// A call waits for another thread's pass, but not for all of its own time.
BOOST_AUTO_TEST_CASE(pass_of_another_thread_that_hangs_is_not_waited_for) {
  const auto round = [](bool once) {
    Items items(2);
    Gate gate(items.engine.kind());
    gate.once("Scan",
              [](Engine&, const SeenRequest&) { return tests::hanging(); });
    AnyOfOptions options = items.options(table_at(gate));
    options.each.request_timeout = 3s;
    AnyOf any(options);
    const tests::Stopwatch watch;
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
    // The pass that hangs goes on after 3 s.
    if (watch.time() >= 2500ms) wrong += " (too late)";
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
