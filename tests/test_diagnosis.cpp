// What the library tells of what it does: the lines that a logger gets, the
// counters of a Table against those of the gateway that it went through, and
// the words of errors.
#include <atomic>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/agent.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stage.hpp"

using namespace std::chrono_literals;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LogLevel;
using ddbmutex::Stats;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using tests::eventually;
using tests::Front;
using tests::has;
using tests::on_table;
using tests::SeenRequest;
using tests::thrown_by;

namespace {

// What a logger was told.
class Lines {
 public:
  std::function<void(LogLevel, const std::string&)> logger() const {
    return [told = told_](LogLevel level, const std::string& text) {
      const std::lock_guard<std::mutex> guard(told->mutex);
      told->lines.push_back(std::string(name_of(level)) + ": " + text);
    };
  }
  // With that beginning ("debug: PutItem") and that part.
  int count(const std::string& beginning, const std::string& part = {}) const {
    const std::lock_guard<std::mutex> guard(told_->mutex);
    return static_cast<int>(std::count_if(
        told_->lines.begin(), told_->lines.end(), [&](const auto& line) {
          return line.compare(0, beginning.size(), beginning) == 0 &&
                 has(line, part);
        }));
  }
  std::vector<std::string> all() const {
    const std::lock_guard<std::mutex> guard(told_->mutex);
    return told_->lines;
  }
  std::string text() const {
    std::string text;
    for (const std::string& line : all()) text += line + "\n";
    return text;
  }

 private:
  struct All {
    std::mutex mutex;
    std::vector<std::string> lines;  // GUARDED_BY(mutex)
  };
  std::shared_ptr<All> told_ = std::make_shared<All>();
};

// A table before which all can go wrong, and what it tells.
struct Logged {
  Logged() : Logged(nullptr) {}
  explicit Logged(const std::function<void(TableOptions&)>& change) {
    TableOptions options = front.table_options();
    options.logger = lines.logger();
    if (change) change(options);
    endpoint = options.endpoint;
    table = tests::with_clock(std::make_shared<Table>(options));
  }

  Front front;
  Lines lines;
  std::string endpoint;
  std::shared_ptr<Table> table;
  const std::string name = tests::fresh_name();
};

// The lease is long, and renewals come soon all the same.
ddbmutex::Options renewed_soon(const std::shared_ptr<Table>& table) {
  ddbmutex::Options options = on_table(table);
  options.renew_after = 200ms;
  return options;
}

// A lease that is soon over, and long in danger before: a machine that stands
// still in that time takes nothing away.
ddbmutex::Options soon_over(const std::shared_ptr<Table>& table) {
  ddbmutex::Options options = on_table(table, 4s);
  options.safe_time = 1900ms;
  options.request_timeout = 1900ms;
  return options;
}

// No renewal comes through.
void keep_from_renewing(const Front& front) {
  front.gateway.add(tests::always("UpdateItem", "drop"));
}

template <class Call>
std::string text_of(const Call& call) {
  const auto error = tests::error_of(call);
  return error ? error->what() : "";
}

std::string lock_line(const Logged& it, const std::string& rest) {
  return "lock \"" + it.name + "\" " + rest;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(diagnosis)

// --- The logger --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(levels_have_names) {
  BOOST_TEST(name_of(LogLevel::debug) == std::string("debug"));
  BOOST_TEST(name_of(LogLevel::info) == std::string("info"));
  BOOST_TEST(name_of(LogLevel::warning) == std::string("warning"));
  BOOST_TEST(name_of(LogLevel::error) == std::string("error"));
}

BOOST_AUTO_TEST_CASE(keys_that_are_found_are_told_once_with_their_source) {
  Logged it;
  DdbMutex mutex(it.name, tests::unhurried(it.table));
  mutex.lock();
  mutex.unlock();
  BOOST_TEST(eventually([&] { return it.lines.text() != ""; }));
  BOOST_TEST(it.lines.text() == "info: keys found: the options\n");
}

BOOST_AUTO_TEST_CASE(request_that_failed_and_is_tried_again_is_told_to_debug) {
  Logged it;
  it.front.gateway.fault("PutItem", "500", 2);
  it.front.gateway.fault("DeleteItem", "throttle");
  const ddbmutex::Options options = tests::unhurried(it.table);
  DdbMutex mutex(it.name, options);
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  const std::string at = " at " + it.endpoint + ": ";
  BOOST_TEST(eventually([&] {
               return it.lines.count("debug: PutItem" + at + "server_failure",
                                     "") == 2;
             }),
             it.lines.text());
  BOOST_TEST(it.lines.count("debug: PutItem", "(request ") == 2,
             it.lines.text());
  BOOST_TEST(eventually([&] {
               return it.lines.count("debug: DeleteItem" + at + "throttled") ==
                      1;
             }),
             it.lines.text());
  BOOST_TEST(eventually([&] { return it.lines.count("debug: ") == 3; }),
             it.lines.text());
  BOOST_TEST(it.lines.count("warning: ") == 0, it.lines.text());
  BOOST_TEST(it.lines.count("error: ") == 0, it.lines.text());
}

BOOST_AUTO_TEST_CASE(request_that_failed_for_good_is_a_warning) {
  Front front;
  Lines lines;
  TableOptions options = front.table_options();
  options.name = "no-such-table";
  options.logger = lines.logger();
  DdbMutex mutex("a", tests::unhurried(std::make_shared<Table>(options)));
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == tests::words(Errc::no_table));
  BOOST_TEST(eventually([&] {
               return lines.count("warning: GetItem at " + options.endpoint +
                                  ": no_table") == 1;
             }),
             lines.text());
}

// That there is none yet is what create() finds, and no line's matter.
BOOST_AUTO_TEST_CASE(table_that_is_created_is_told_to_nobody) {
  tests::Engine& engine = tests::Engine::running(tests::any_engine_kind());
  Lines lines;
  TableOptions options = tests::table_options(engine);
  options.name = "ddbmutex-test-" + tests::fresh_name();
  options.logger = lines.logger();
  Table table(options);
  BOOST_TEST(!table.exists());
  BOOST_TEST(thrown_by([&] { table.create(); }) == "none");
  BOOST_TEST(thrown_by([&] { table.create(); }) == "none");
  engine.delete_table(options.name);
  // Lines come in their order, and this is worth one.
  BOOST_TEST(thrown_by([&] { table.inspect("x"); }) ==
             tests::words(Errc::no_table));
  BOOST_TEST(eventually([&] { return lines.count("warning: GetItem") == 1; }),
             lines.text());
  BOOST_TEST(lines.count("warning: ") == 1, lines.text());
  BOOST_TEST(lines.count("error: ") == 0, lines.text());
}

// That somebody else holds a lock is not worth a line.
BOOST_AUTO_TEST_CASE(lock_that_another_holds_is_told_to_nobody) {
  Logged it;
  DdbMutex theirs(it.name, tests::unhurried(it.front.table()));
  theirs.lock();
  DdbMutex mutex(it.name, tests::unhurried(it.table));
  // A wait that is given up amid a request would be worth one.
  tests::Aside waiter([&] { mutex.lock(); });
  BOOST_TEST(eventually([&] { return it.table->stats().get_item >= 4; }));
  theirs.unlock();
  BOOST_TEST(waiter.thrown() == "none");
  BOOST_TEST(eventually([&] { return it.lines.text() != ""; }));
  BOOST_TEST(it.lines.text() == "info: keys found: the options\n");
}

BOOST_AUTO_TEST_CASE(lock_that_is_deleted_is_an_error_that_names_it) {
  Logged it;
  DdbMutex mutex(it.name, renewed_soon(it.table));
  mutex.lock();
  tests::delete_row(it.front.engine, it.name);
  const std::string line =
      "error: " + lock_line(it, "is lost: its item is gone");
  BOOST_TEST(eventually([&] { return it.lines.count(line) == 1; }),
             it.lines.text());
  BOOST_TEST(!mutex.owns_lock());
}

BOOST_AUTO_TEST_CASE(lock_that_is_taken_is_an_error_that_names_it) {
  Logged it;
  DdbMutex mutex(it.name, renewed_soon(it.table));
  mutex.lock();
  tests::write_row(it.front.engine, it.name, tests::live_record());
  const std::string line = "error: " + lock_line(it, "is lost: another has it");
  BOOST_TEST(eventually([&] { return it.lines.count(line) == 1; }),
             it.lines.text());
}

BOOST_AUTO_TEST_CASE(lock_in_danger_is_a_warning_before_it_is_lost) {
  Logged it;
  keep_from_renewing(it.front);
  DdbMutex mutex(it.name, soon_over(it.table));
  mutex.lock();
  const std::string line =
      "error: " + lock_line(it, "is lost: its lease has ended");
  BOOST_TEST(eventually([&] { return it.lines.count(line) == 1; }),
             it.lines.text());
  const std::string danger = "warning: " + lock_line(it, "is in danger");
  BOOST_TEST(eventually([&] { return it.lines.count(danger) == 1; }),
             it.lines.text());
  const std::string all = it.lines.text();
  BOOST_TEST(all.find(danger) < all.find(line), all);
}

BOOST_AUTO_TEST_CASE(callback_that_throws_is_an_error_with_its_words) {
  Logged it;
  keep_from_renewing(it.front);
  ddbmutex::Options options = soon_over(it.table);
  options.on_danger = [] { throw std::runtime_error("of the danger"); };
  options.on_lost = [](ddbmutex::Loss) { throw 7; };
  DdbMutex mutex(it.name, options);
  mutex.lock();
  const std::string of = " of \"" + it.name + "\" threw";
  BOOST_TEST(
      eventually([&] { return it.lines.count("error: on_lost" + of) == 1; }),
      it.lines.text());
  BOOST_TEST(
      eventually([&] {
        return it.lines.count("error: on_danger" + of + ": of the danger") == 1;
      }),
      it.lines.text());
}

// A line break would begin a line that looks like one of ours, and terminals
// obey what is behind an escape character.
BOOST_AUTO_TEST_CASE(text_of_others_cannot_forge_a_line) {
  const std::string hostile = "\"\nERROR\x1b[2J\x7f\xc2\x9b\xe2\x80\xae";
  const std::string shown = R"(\"\nERROR\x1b[2J\x7f\x9b\u202e)";
  Logged it;
  keep_from_renewing(it.front);
  ddbmutex::Options options = soon_over(it.table);
  options.on_danger = [&] { throw std::runtime_error(hostile); };
  DdbMutex mutex(it.name + hostile, options);
  std::vector<std::string> texts = {
      text_of([&] { mutex.require(1ms); }),
      text_of([&] { it.table->inspect(it.name, hostile); }),
      text_of([&] { DdbMutex(hostile + "\xff", options); })};
  for (const std::string& text : texts) BOOST_TEST(has(text, shown), text);
  std::error_code ec;
  mutex.require(1ms, ec);
  texts.push_back(mutex.last_error());
  mutex.lock();
  const std::string of = " of \"" + it.name + shown + "\" threw: ";
  BOOST_TEST(eventually([&] {
               return it.lines.count("error: on_danger" + of,
                                     R"(: "\nERROR\x1b[2J)") == 1;
             }),
             it.lines.text());
  for (const std::string& line : it.lines.all()) texts.push_back(line);
  for (const std::string& text : texts) {
    BOOST_TEST(text.find_first_of("\n\x1b\x7f") == text.npos, text);
    BOOST_TEST(!has(text, "\xc2\x9b"), text);
    BOOST_TEST(!has(text, "\xe2\x80\xae"), text);
  }
}

BOOST_AUTO_TEST_CASE(source_of_keys_that_throws_cannot_forge_a_line) {
  const Front front;
  const Lines lines;
  TableOptions options = front.table_options();
  options.logger = lines.logger();
  options.credentials = {};
  options.credentials_source = []() -> std::optional<ddbmutex::Credentials> {
    throw std::runtime_error("no\nsuch \x1bkeys");
  };
  Table table(options);
  const std::string shown = R"(threw: no\nsuch \x1bkeys)";
  const std::string told = text_of([&] { table.inspect("x"); });
  BOOST_TEST(has(told, shown), told);
  BOOST_TEST(eventually([&] { return has(lines.text(), shown); }));
  for (const std::string& line : lines.all()) {
    BOOST_TEST(line.find_first_of("\n\x1b") == line.npos, line);
  }
}

// Of each kind of line: keys, passing and final failures, danger, losses,
// callbacks that throw.
BOOST_AUTO_TEST_CASE(logger_that_throws_harms_nobody) {
  std::atomic<int> calls{0};
  Logged it([&](TableOptions& options) {
    options.logger = [&](LogLevel, const std::string&) {
      ++calls;
      throw std::runtime_error("full disk");
    };
  });
  tests::Told told;
  ddbmutex::Options options = soon_over(it.table);
  options.on_danger = [&] {
    told.add("danger");
    throw 7;
  };
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex mutex(it.name, options);
  it.front.gateway.fault("PutItem", "500", 2);
  keep_from_renewing(it.front);
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(told.wait_for(2));
  BOOST_TEST(told.text() == "danger expired");
  it.front.gateway.clear();
  mutex.unlock();
  DdbMutex next(it.name, tests::unhurried(it.table));
  BOOST_TEST(thrown_by([&] { next.lock(); }) == "none");
  BOOST_TEST(thrown_by([&] { next.release(); }) == "none");
  BOOST_TEST(eventually([&] { return calls >= 6; }));
}

namespace {

// Asks all that may be asked of a table and its mutex.
struct Curious {
  void look() {
    ++looks;
    if (const std::shared_ptr<Table> at = table.lock()) {
      requests = at->stats().requests();
      at->last_error();
    }
    const std::lock_guard<std::mutex> guard(gate);
    DdbMutex* const one = mutex;
    if (one == nullptr) return;
    if (one->owns_lock()) ++owned;
    one->remaining();
    one->last_error();
    std::error_code ec;
    one->require(0ns, ec);
  }

  void watch(DdbMutex* one) {
    const std::lock_guard<std::mutex> guard(gate);
    mutex = one;
  }

  std::weak_ptr<Table> table;  // Set before there is anything to be told.
  std::mutex gate;
  DdbMutex* mutex = nullptr;  // GUARDED_BY(gate)
  std::atomic<int> looks{0};
  std::atomic<int> owned{0};
  std::atomic<std::uint64_t> requests{0};
};

}  // namespace

BOOST_AUTO_TEST_CASE(logger_may_ask_the_table_and_the_mutex) {
  Front front;
  Curious curious;
  TableOptions table_options = front.table_options();
  table_options.logger = [&](LogLevel, const std::string&) { curious.look(); };
  const auto table = std::make_shared<Table>(table_options);
  curious.table = table;
  tests::with_clock(table);
  ddbmutex::Options options = soon_over(table);
  options.renew_after = 200ms;
  options.on_danger = [] { throw 7; };
  tests::Told told;
  options.on_lost = [&](ddbmutex::Loss loss) {
    told.add(name_of(loss));
    throw 7;
  };
  {
    DdbMutex mutex(tests::fresh_name(), options);
    curious.watch(&mutex);
    front.gateway.fault("PutItem", "500", 2);
    front.gateway.fault("PutItem", "throttle", 1);
    tests::Aside taken([&] { mutex.lock(); });
    BOOST_TEST_REQUIRE(taken.ends());  // It does not wait for itself.
    BOOST_TEST(taken.thrown() == "none");
    front.gateway.fault("UpdateItem", "500", 1);
    BOOST_TEST(eventually([&] { return curious.owned >= 1; }));
    front.gateway.mode("hang");
    BOOST_TEST_REQUIRE(told.wait_for(1));
    front.gateway.mode("open");
    tests::Aside again([&] {
      mutex.unlock();
      mutex.lock();
      front.gateway.fault("DeleteItem", "500", 1);
      mutex.release();
    });
    BOOST_TEST_REQUIRE(again.ends());
    BOOST_TEST(again.thrown() == "none");
    curious.watch(nullptr);
  }
  BOOST_TEST(eventually([&] { return curious.looks >= 8; }));
  BOOST_TEST(curious.requests >= 6u);
}

BOOST_AUTO_TEST_CASE(logger_that_hangs_delays_neither_losses_nor_renewals) {
  const auto go_on = std::make_shared<tests::Event>();
  Logged it([&](TableOptions& options) {
    options.logger = [go_on](LogLevel, const std::string&) { go_on->wait(); };
  });
  tests::Told told;
  ddbmutex::Options options = soon_over(it.table);
  options.renew_after = 200ms;
  options.on_danger = [&] { told.add("danger"); };
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex mutex(it.name, options);
  mutex.lock();
  it.front.gateway.fault("UpdateItem", "500", 2);
  const auto before = it.table->stats().update_item;
  BOOST_TEST(eventually([&] {
    return it.table->stats().update_item >= before + 4 && mutex.owns_lock();
  }));
  it.front.gateway.mode("hang");
  // While the logger has still not returned.
  BOOST_TEST(eventually([&] { return has(told.text(), "danger expired"); }),
             told.text());
  it.front.gateway.mode("open");
  go_on->set();
}

// What a logger refers to may go with the table.
BOOST_AUTO_TEST_CASE(nothing_is_told_once_the_table_is_gone) {
  Front front;
  Lines lines;
  TableOptions options = front.table_options();
  options.logger = lines.logger();
  auto table = tests::with_clock(std::make_shared<Table>(options));
  auto held =
      std::make_unique<DdbMutex>(tests::fresh_name(), renewed_soon(table));
  auto waited =
      std::make_unique<DdbMutex>(tests::fresh_name(), renewed_soon(table));
  held->lock();
  front.gateway.mode("hang");
  tests::Aside waiting([&waited] { waited->lock(); });
  BOOST_TEST(
      eventually([&] { return front.gateway.counts().under_way() >= 2; }));
  waited.reset();
  BOOST_TEST(waiting.ends());
  held.reset();
  table.reset();
  const std::string told = lines.text();
  front.gateway.mode("open");
  front.gateway.wait_until_quiet();
  tests::pause(100ms);  // No stall makes it more.
  BOOST_TEST(lines.text() == told);
}

// --- Keys --------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(
    fetch_of_keys_that_fails_is_a_warning_while_old_ones_serve) {
  tests::Stage it;
  it.web_identity();
  it.aws.lifetime(6s);
  tests::Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), "ttl=60000 renew_after=500");
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  it.aws.fault({"sts", "*", "refuse", 0});
  BOOST_TEST(eventually([&] { return has(it.log(), "warning: no keys: "); }),
             it.log());
  it.aws.clear();
  const auto found = [&] {
    const std::string log = it.log();
    return log.find("info: keys found", log.find("warning: no keys: ")) !=
           log.npos;
  };
  BOOST_TEST(eventually(found), it.log());
  BOOST_TEST(agent.ask("losses a") == "");
  BOOST_TEST(agent.ask("release a") == "true");
  const std::string log = it.log();
  BOOST_TEST(
      has(log, "warning: no keys: role \"" + std::string(tests::Stage::kRole)),
      log);
  BOOST_TEST(has(log, it.aws.url("sts")), log);
  BOOST_TEST(it.secret_in(log) == "");
}

// As when a session is ended before its time.
BOOST_AUTO_TEST_CASE(keys_that_are_replaced_when_refused_are_told_to_debug) {
  tests::Stage it;
  it.web_identity();
  it.aws.lifetime(10s);  // Not over before the lock is taken.
  tests::AwsFault wrong{"sts", "*", "alter"};
  wrong.set = {{"Expiration", "2099-01-01T00:00:00Z"}};
  it.aws.fault(wrong);
  tests::Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(),
             "ttl=60000 renew_after=500 request_timeout=25000");
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  it.aws.lifetime(1h);
  const std::string line = ": expired_keys: ";
  BOOST_TEST(eventually([&] { return has(it.log(), line); }), it.log());
  BOOST_TEST(agent.ask("release a") == "true");
  const std::string log = it.log();
  BOOST_TEST(log.find(line) > log.find("debug: UpdateItem at "), log);
  BOOST_TEST(!has(log, "warning: "), log);
}

// --- Counters ----------------------------------------------------------------

namespace {

std::string by_action(const Stats& stats) {
  return "Get " + std::to_string(stats.get_item) + " Put " +
         std::to_string(stats.put_item) + " Update " +
         std::to_string(stats.update_item) + " Delete " +
         std::to_string(stats.delete_item) + " other " +
         std::to_string(stats.other);
}

std::string by_action(const tests::GatewayCounts& counts) {
  return "Get " + std::to_string(counts.requests("GetItem")) + " Put " +
         std::to_string(counts.requests("PutItem")) + " Update " +
         std::to_string(counts.requests("UpdateItem")) + " Delete " +
         std::to_string(counts.requests("DeleteItem")) + " other " +
         std::to_string(counts.requests("DescribeTable"));
}

}  // namespace

BOOST_AUTO_TEST_CASE(
    requests_and_their_faults_are_counted_as_the_gateway_does) {
  Front front;
  const auto table = tests::with_clock(front.table());
  BOOST_TEST(table->exists());
  tests::Gateway& gateway = front.gateway;
  gateway.fault("PutItem", "500", 2);
  gateway.fault("PutItem", "throttle", 1);
  gateway.fault("PutItem", "reset-answer", 1);
  gateway.fault("UpdateItem", "503", 1);
  gateway.fault("UpdateItem", "throttle-after", 1);
  gateway.fault("DeleteItem", "truncate", 1);
  gateway.fault("GetItem", "garbage", 2);
  ddbmutex::Options options = renewed_soon(table);
  options.request_timeout = 25s;
  DdbMutex mutex(tests::fresh_name(), options);
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(eventually([&] { return table->stats().update_item >= 4; }));
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  BOOST_TEST(!table->inspect(mutex.name()).exists);
  gateway.wait_until_quiet();
  // A last renewal may have been under way at the release.
  BOOST_TEST(eventually([&] {
    return by_action(table->stats()) == by_action(gateway.counts());
  }));
  const Stats stats = table->stats();
  const auto counts = gateway.counts();
  BOOST_TEST(by_action(stats) == by_action(counts));
  BOOST_TEST(stats.requests() ==
             static_cast<std::uint64_t>(counts.all_requests()));
  BOOST_TEST(stats.throttled == 2u);
  BOOST_TEST(stats.failed == 7u);
  BOOST_TEST(counts.all_faults() == 9);
  BOOST_TEST(stats.retries == 9u);  // Each was sent again.
}

BOOST_AUTO_TEST_CASE(lock_that_another_holds_is_no_failure) {
  Front front;
  const std::string name = tests::fresh_name();
  DdbMutex theirs(name, tests::unhurried(tests::with_clock(front.table())));
  theirs.lock();
  const auto table = tests::with_clock(front.table());
  DdbMutex mutex(name, tests::unhurried(table));
  BOOST_TEST(!mutex.try_lock());
  const Stats stats = table->stats();
  BOOST_TEST(stats.put_item == 1u);
  BOOST_TEST(stats.failed == 0u);
  BOOST_TEST(stats.throttled == 0u);
  BOOST_TEST(stats.retries == 0u);
}

namespace {

// As it went over the wire.
std::size_t size_of(const SeenRequest& request) {
  std::size_t size =
      (request.method + " " + request.path + " HTTP/1.1\r\n").size() + 2 +
      request.body.size();
  for (const auto& [name, value] : request.headers) {
    // Behind a colon only libcurl puts a blank.
    const bool libcurls = name == "Content-Length" || name == "Host";
    const std::size_t blank = libcurls ? 1 : 0;
    size += name.size() + 1 + blank + value.size() + 2;
  }
  return size;
}

// An answer whose every byte is known.
tests::Reply exactly(int status, const std::string& body) {
  tests::Reply reply;
  reply.status = status;
  reply.raw = "HTTP/1.1 " + std::to_string(status) +
              " As It Is\r\nContent-Type: application/x-amz-json-1.0\r\n"
              "Content-Length: " +
              std::to_string(body.size()) + "\r\n\r\n" + body;
  return reply;
}

// A service that has all go well, but for what is scripted; and what it sees.
struct Measured {
  explicit Measured(std::function<tests::Reply(const SeenRequest&)> answer)
      : server([this, answer](const SeenRequest& request) {
          tests::Reply reply = answer(request);
          received += reply.raw.size();
          return reply;
        }),
        table(tests::table_at(server)),
        before(table->stats()) {}

  std::size_t sent() const {
    std::size_t size = 0;
    for (const SeenRequest& request : server.requests()) {
      size += size_of(request);
    }
    return size;
  }

  std::atomic<std::size_t> received{0};
  tests::ScriptedServer server;
  std::shared_ptr<Table> table;
  const Stats before;
};

}  // namespace

BOOST_AUTO_TEST_CASE(bytes_are_those_that_the_service_saw) {
  int puts = 0;
  Measured it([&](const SeenRequest& request) {
    const bool first = tests::action_of(request) == "PutItem" && puts++ == 0;
    return first ? exactly(500, R"({"__type":"x#InternalServerError"})")
                 : exactly(200, "{}");
  });
  ddbmutex::Options options = tests::unhurried(it.table);
  options.auto_renew = false;  // Nothing is under way when it is counted.
  options.owner = std::string(2000, 'o');
  DdbMutex mutex(std::string(1500, 'n'), options);
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == "none");
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  it.table->inspect("a");
  const Stats stats = it.table->stats();
  BOOST_TEST(stats.requests() - it.before.requests() ==
             static_cast<std::uint64_t>(it.server.request_count()));
  BOOST_TEST(it.server.request_count() >= 4);
  BOOST_TEST(stats.bytes_sent - it.before.bytes_sent == it.sent());
  BOOST_TEST(stats.bytes_received - it.before.bytes_received == it.received);
}

BOOST_AUTO_TEST_CASE(locks_and_the_hours_of_holding_are_added_up) {
  Front front;
  const auto table = tests::with_clock(front.table());
  BOOST_TEST(table->stats().held == 0u);
  BOOST_TEST(table->stats().held_hours == 0.0);
  const tests::Stopwatch watch;
  DdbMutex one(tests::fresh_name(), tests::unhurried(table));
  DdbMutex two(tests::fresh_name(), tests::unhurried(table));
  one.lock();
  two.lock();
  const tests::Stopwatch both;
  BOOST_TEST(table->stats().held == 2u);
  tests::pause(200ms);
  const double least_ms = 2 * static_cast<double>(both.ms());
  const double held_ms = table->stats().held_hours * 3600e3;
  BOOST_TEST(held_ms >= least_ms);
  two.unlock();
  BOOST_TEST(table->stats().held == 1u);
  one.unlock();
  const Stats stats = table->stats();
  BOOST_TEST(stats.held == 0u);
  const double most_ms = 2 * static_cast<double>(watch.ms() + 1);
  BOOST_TEST(stats.held_hours * 3600e3 >= held_ms);
  BOOST_TEST(stats.held_hours * 3600e3 <= most_ms);
  tests::pause(20ms);
  BOOST_TEST(table->stats().held_hours == stats.held_hours);
}

BOOST_AUTO_TEST_CASE(lock_that_is_lost_is_not_counted_as_held) {
  Front front;
  const auto table = tests::with_clock(front.table());
  DdbMutex mutex(tests::fresh_name(), renewed_soon(table));
  mutex.lock();
  BOOST_TEST(table->stats().held == 1u);
  tests::delete_row(front.engine, mutex.name());
  BOOST_TEST(eventually([&] { return table->stats().held == 0; }));
  const double held = table->stats().held_hours;
  BOOST_TEST(held > 0);
  mutex.unlock();
  BOOST_TEST(table->stats().held == 0u);
  BOOST_TEST(table->stats().held_hours == held);
}

// --- Errors ------------------------------------------------------------------

namespace {

struct Refusal {
  const char* code;
  Errc means;
};

std::ostream& operator<<(std::ostream& out, const Refusal& refusal) {
  return out << refusal.code;
}

const std::vector<Refusal> kRefusals = {
    {"UnrecognizedClientException", Errc::bad_keys},
    {"InvalidSignatureException", Errc::bad_keys},
    {"ExpiredTokenException", Errc::expired_keys},
    {"AccessDeniedException", Errc::access_denied}};

}  // namespace

BOOST_DATA_TEST_CASE(refused_keys_are_told_with_source_endpoint_and_request,
                     kRefusals, refusal) {
  tests::ScriptedServer server([&](const SeenRequest&) {
    return tests::with_header(tests::failure(400, refusal.code),
                              "x-amzn-RequestId", "REQUEST7");
  });
  Lines lines;
  TableOptions options = tests::table_options(server);
  options.credentials.secret_access_key = "not-to-be-told-anywhere";
  options.credentials.session_token = "a-token-not-to-be-told";
  options.logger = lines.logger();
  DdbMutex mutex("a", tests::unhurried(std::make_shared<Table>(options)));
  const auto error = tests::error_of([&] { mutex.lock(); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == refusal.means), error->what());
  BOOST_TEST(error->request_id() == "REQUEST7");
  const std::string endpoint = " at " + options.endpoint + ":";
  for (const std::string& part :
       {endpoint, std::string("(keys from the options)"),
        std::string("(request REQUEST7)"), std::string("\"a\"")}) {
    BOOST_TEST(has(error->what(), part), part << " in: " << error->what());
  }
  BOOST_TEST(eventually([&] {
               return lines.count("warning: GetItem" + endpoint, "REQUEST7") >=
                      1;
             }),
             lines.text());
  BOOST_TEST(!has(error->what() + lines.text(), "not-to-be-told"));
}

BOOST_AUTO_TEST_SUITE_END()
