// What holders are told, and when: on_danger and on_lost, and what they may do.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/thread.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

const auto kEngines = boost::unit_test::data::make(tests::engine_kinds());
const std::string kLost = words(Errc::lease_lost);

// What is written to stderr while this exists.
class Stderr {
 public:
  Stderr() : copy_(dup(STDERR_FILENO)), file_(memfd_create("stderr", 0)) {
    BOOST_REQUIRE(copy_ >= 0 && file_ >= 0);
    std::fflush(stderr);
    dup2(file_, STDERR_FILENO);
  }
  ~Stderr() {
    std::fflush(stderr);
    dup2(copy_, STDERR_FILENO);
    close(copy_);
    close(file_);
  }
  Stderr(const Stderr&) = delete;
  Stderr& operator=(const Stderr&) = delete;

  std::string text() const {
    std::string text(4096, '\0');
    const ssize_t size = pread(file_, text.data(), text.size(), 0);
    text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
    return text;
  }

 private:
  const int copy_;
  const int file_;
};

// Of a lock that stays held and is renewed often.
Options lasting(const std::shared_ptr<Table>& table) {
  Options options = on_table(table);
  options.renew_after = 50ms;
  options.request_timeout = 20s;
  return options;
}

// Of one that is in danger, unless it is renewed, 2 s after it was taken, and
// over as long after that: long enough for either to be told in its time on a
// machine that stalls.
constexpr milliseconds kEndingLease = 5s;
constexpr milliseconds kEndingSafeTime = 2300ms;
void let_end(Options& options) {
  options.ttl = kEndingLease;
  options.safe_time = kEndingSafeTime;
  options.request_timeout = 1800ms;
}

// Those that were not there before.
std::ptrdiff_t threads_since(const std::set<pid_t>& before) {
  const std::set<pid_t> now = threads_by_id();
  return std::count_if(now.begin(), now.end(),
                       [&](pid_t thread) { return before.count(thread) == 0; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(callbacks)

// A lock behind a gate that tells what happens to it.  Unless told otherwise it
// stays held, and is renewed so often that what becomes of its row is found at
// once.
struct Telling {
  explicit Telling(EngineKind kind = any_engine_kind())
      : gate(kind), table(table_at(gate)), options(lasting(table)) {
    options.on_lost = [this](Loss loss) {
      owned_when_told = owned_when_told || mutex->owns_lock() ||
                        mutex->remaining() > nanoseconds::zero();
      told.add(name_of(loss));
    };
    options.on_danger = [this] { told.add("danger"); };
  }
  // With the options as they are by then.
  void lock() {
    mutex.emplace(name, options);
    mutex->lock();
  }
  Engine& engine() { return gate.engine(); }

  Gate gate;
  const std::string name = fresh_name();
  Told told;
  std::atomic<bool> owned_when_told{false};
  std::shared_ptr<Table> table;
  Options options;
  std::optional<DdbMutex> mutex;  // Last: it waits for its callbacks.
};

// --- Why a lock is lost ----------------------------------------------------

BOOST_DATA_TEST_CASE(row_of_another_is_told_as_taken_once, kEngines, kind) {
  Telling x(kind);
  x.options.on_danger = nullptr;
  x.lock();
  write_row(x.engine(), x.name, live_record());
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(x.mutex->remaining().count() == 0);
  BOOST_TEST(thrown_by([&] { x.mutex->require(0s); }) == kLost);
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == words(Errc::not_held));
  BOOST_TEST(count_of(x.gate.server(), "DeleteItem") == 0);
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "taken");
  BOOST_TEST(!x.owned_when_told);
  BOOST_TEST(row_of(x.engine(), x.name).uuid == "theirs");
}

BOOST_DATA_TEST_CASE(row_that_is_gone_is_told_as_deleted_once, kEngines, kind) {
  Telling x(kind);
  x.options.on_danger = nullptr;
  x.lock();
  delete_row(x.engine(), x.name);
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
  BOOST_TEST(count_of(x.gate.server(), "DeleteItem") == 0);
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "deleted");
  BOOST_TEST(!x.owned_when_told);
}

BOOST_DATA_TEST_CASE(table_that_is_gone_is_told_as_deleted, kEngines, kind) {
  Telling x(kind);
  x.options.on_danger = nullptr;
  TableOptions options = table_options(x.engine());
  options.name = x.engine().create_table();
  x.options.table = std::make_shared<Table>(options);
  x.lock();
  x.engine().delete_table(options.name);
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(Errc::no_table));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "deleted");
}

BOOST_DATA_TEST_CASE(row_spoilt_by_hand_is_told_as_taken, kEngines, kind) {
  Telling x(kind);
  x.options.on_danger = nullptr;
  x.lock();
  write_row(x.engine(), x.name, R"("uuid":{"BOOL":true})");
  BOOST_TEST(x.told.wait_for(1));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "taken");
  const auto item = item_of(x.engine(), x.name);
  BOOST_REQUIRE(item.has_value());
  BOOST_TEST(item->size() == 2u);  // As it was written.
}

// --- The end of a lease ----------------------------------------------------

// Empty, unless another got in before the holder was told.
static std::string expiry_is_told_and_another_gets_in() {
  Telling x;
  x.options.ttl = 2s;
  x.options.renew_after.reset();
  x.options.request_timeout = 900ms;
  x.options.on_danger = nullptr;
  BootTime told_at{};
  x.options.on_lost = [&, on_lost = x.options.on_lost](Loss loss) {
    told_at = BootClock::now();
    on_lost(loss);
  };
  DdbMutex theirs(x.name, on_table(table_at(x.engine())));
  x.lock();
  x.gate.always("UpdateItem", Gate::fails());
  const BootTime end = BootClock::now() + x.mutex->remaining();
  BootTime in_at{};
  Aside waiter([&] {
    theirs.lock();
    in_at = BootClock::now();
  });
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(waiter.thrown() == "none");
  BOOST_TEST(x.told.text() == "expired");
  BOOST_TEST(!x.owned_when_told);
  BOOST_TEST((told_at >= end));
  BOOST_TEST((in_at > end));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(theirs.owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
  BOOST_TEST(theirs.owns_lock());
  return in_at > told_at ? "" : "another got in before the holder was told";
}

// Between the two lie 2 % of the lease.
BOOST_AUTO_TEST_CASE(expiry_is_told_at_the_holders_end_before_others_get_in) {
  BOOST_TEST(undisturbed(20ms, expiry_is_told_and_another_gets_in) == "");
}

// A lock of an engine that is about to go.
struct Leaving {
  static constexpr milliseconds kRequestTimeout = 1s;

  explicit Leaving(const std::string& host) {
    Options options = on_table(
        table_at("http://" + host + ":" + std::to_string(server.port()) + "/"));
    let_end(options);
    options.request_timeout = kRequestTimeout;
    options.on_danger = [this] { told.add("danger"); };
    options.on_lost = [this](Loss loss) { told.add(name_of(loss)); };
    mutex.emplace("x", std::move(options));
    mutex->lock();
    end = BootClock::now() + mutex->remaining();
  }
  void must_end() {
    BOOST_TEST(told.wait_for(2));
    BOOST_TEST(told.text() == "danger expired");
    BOOST_TEST((BootClock::now() >= end));
    BOOST_TEST(!mutex->owns_lock());
  }

  ScriptedServer server;
  Told told;
  BootTime end{};
  std::optional<DdbMutex> mutex;  // Last: it waits for its callbacks.
};

// Side by side.
BOOST_AUTO_TEST_CASE(
    unreachable_engine_or_hanging_resolver_is_danger_and_then_the_end) {
  std::optional<FakeNames> names(std::vector<std::string>{"127.0.0.1"});
  Leaving resolved("somewhere.test");
  names.reset();
  const FakeNames hanging(FakeNames::hanging);
  Leaving unreachable("127.0.0.1");
  for (Leaving* x : {&resolved, &unreachable}) x->server.stop();
  for (Leaving* x : {&resolved, &unreachable}) x->must_end();
  BOOST_TEST(returns_within(Leaving::kRequestTimeout, [&] {
    BOOST_TEST(thrown_by([&] { unreachable.mutex->release(); }) == kLost);
  }));
  // Its table goes with it, and waits for its threads.
  BOOST_TEST(returns_within(Leaving::kRequestTimeout +
                                ddbmutex::sigv4::kStopWithin +
                                ddbmutex::sigv4::kStopGrace,
                            [&] { resolved.mutex.reset(); }));
}

// Two ways to hang, side by side.
BOOST_AUTO_TEST_CASE(engine_that_hangs_is_danger_and_then_the_end) {
  std::list<Telling> all;
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    Telling& x = all.emplace_back();
    let_end(x.options);
    x.lock();
    x.gate.always("UpdateItem", rule);
  }
  for (Telling& x : all) {
    BOOST_TEST(x.told.wait_for(2));
    // What is answered now comes too late.
    x.gate.open();
    x.gate.server().release();
    BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
    BOOST_TEST(!x.mutex->owns_lock());
    BOOST_TEST(eventually([&] { return is_free(x.engine(), x.name); }));
    x.mutex.reset();
    BOOST_TEST(x.told.text() == "danger expired");
  }
}

BOOST_AUTO_TEST_CASE(danger_is_told_safe_time_before_the_end) {
  Telling x;
  let_end(x.options);
  nanoseconds left{};
  x.options.on_danger = [&] {
    left = x.mutex->remaining();
    x.told.add("danger");
  };
  x.lock();
  x.gate.always("UpdateItem", Gate::fails());
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(x.told.wait_for(2));
  BOOST_TEST(x.told.text() == "danger expired");
  BOOST_TEST((left <= kEndingSafeTime));
  BOOST_TEST((left > 0ms));
}

// A renewal that hangs comes through as soon as it is let go.
BOOST_AUTO_TEST_CASE(danger_is_told_again_after_a_renewal_came_through) {
  Telling x;
  let_end(x.options);
  x.options.request_timeout = 1s;
  x.lock();
  for (const char* told : {"danger", "danger danger"}) {
    x.gate.always("UpdateItem", Gate::held());
    BOOST_TEST(eventually([&] { return x.told.text() == told; }));
    x.gate.open();
    x.gate.server().release();
    BOOST_TEST(
        eventually([&] { return x.mutex->remaining() > kEndingSafeTime; }));
  }
  BOOST_TEST(x.told.text() == "danger danger");
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
}

// For longer than the lease that it began with.
BOOST_AUTO_TEST_CASE(lock_that_is_renewed_in_time_is_never_in_danger) {
  Telling x;
  let_end(x.options);
  x.options.renew_after = 200ms;
  const Stopwatch watch;
  x.lock();
  BOOST_TEST(eventually([&] {
    return x.table->stats().update_item >= 3 && watch.time() > kEndingLease;
  }));
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "");
}

// Every second, an eighth of the lease.
BOOST_AUTO_TEST_CASE(renewal_that_is_refused_is_tried_again_in_its_lease) {
  Telling x;
  x.options.ttl = 8s;
  x.options.request_timeout = 3s;
  for (int i = 0; i < 2; ++i) {
    x.gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
      return failure(400, "AccessDeniedException");
    });
  }
  x.lock();
  BOOST_TEST(eventually([&] { return x.table->stats().update_item >= 3; }));
  BOOST_TEST(eventually([&] { return x.mutex->remaining() > 6500ms; }));
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
  x.mutex.reset();
  BOOST_TEST(!has(x.told.text(), "expired"), x.told.text());
}

BOOST_AUTO_TEST_CASE(renewal_whose_answer_is_lost_loses_nothing) {
  Telling x;
  for (int i = 0; i < 2; ++i) x.gate.once("UpdateItem", Gate::answer_lost());
  x.lock();
  BOOST_TEST(eventually([&] { return x.table->stats().update_item >= 4; }));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
  BOOST_TEST(is_free(x.engine(), x.name));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "");
}

// --- What a release finds --------------------------------------------------

BOOST_DATA_TEST_CASE(loss_that_the_release_finds_is_told_once, kEngines, kind) {
  for (const bool taken : {false, true}) {
    for (const bool quietly : {false, true}) {
      Telling x(kind);
      x.options.auto_renew = false;
      x.options.renew_after.reset();
      x.lock();
      if (taken) {
        write_row(x.engine(), x.name, live_record());
      } else {
        delete_row(x.engine(), x.name);
      }
      BOOST_TEST(x.mutex->owns_lock());  // Nobody could know.
      if (quietly) {
        x.mutex->unlock();
        BOOST_TEST(has(x.mutex->last_error(), kLost), x.mutex->last_error());
      } else {
        BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
      }
      BOOST_TEST(!x.mutex->owns_lock());
      BOOST_TEST(x.told.wait_for(1));
      x.mutex.reset();
      BOOST_TEST(x.told.text() == (taken ? "taken" : "deleted"));
      BOOST_TEST(is_free(x.engine(), x.name) == !taken);
    }
  }
}

BOOST_AUTO_TEST_CASE(each_acquisition_has_its_own_loss) {
  Telling x;
  x.lock();
  delete_row(x.engine(), x.name);
  BOOST_TEST(x.told.wait_for(1));
  x.mutex->unlock();
  x.mutex->lock();
  BOOST_TEST(x.mutex->owns_lock());
  write_row(x.engine(), x.name, live_record());
  BOOST_TEST(x.told.wait_for(2));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "deleted taken");
}

// Whatever watched it yet would have come before what is told of another.
BOOST_AUTO_TEST_CASE(unlocked_lock_is_told_nothing) {
  Telling x;
  x.lock();
  x.mutex->unlock();
  write_row(x.engine(), x.name, live_record());
  Told later;
  Options options = lasting(x.table);
  options.on_lost = [&later](Loss loss) { later.add(name_of(loss)); };
  DdbMutex other(fresh_name(), options);
  other.lock();
  const auto renewals = x.table->stats().update_item;
  BOOST_TEST(
      eventually([&] { return x.table->stats().update_item >= renewals + 6; }));
  delete_row(x.engine(), other.name());
  BOOST_TEST(later.wait_for(1));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "");
}

// --- One at a time ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(callbacks_of_a_table_are_called_one_at_a_time) {
  constexpr std::size_t kLocks = 4;
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = table_at(engine);
  Told told;
  std::atomic<int> inside{0};
  std::atomic<int> most{0};
  Options options = lasting(table);
  options.on_lost = [&](Loss loss) {
    most = std::max(most.load(), ++inside);
    pause(30ms);  // Long enough to meet another.
    --inside;
    told.add(name_of(loss));
  };
  std::vector<std::unique_ptr<DdbMutex>> locks;
  for (std::size_t i = 0; i < kLocks; ++i) {
    locks.push_back(std::make_unique<DdbMutex>(fresh_name(), options));
    locks.back()->lock();
  }
  for (const auto& lock : locks) delete_row(engine, lock->name());
  BOOST_TEST(told.wait_for(kLocks));
  locks.clear();
  BOOST_TEST(told.text() == "deleted deleted deleted deleted");
  BOOST_TEST(most == 1);
}

BOOST_AUTO_TEST_CASE(slow_callback_delays_no_renewal_and_no_unlock) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = table_at(engine);
  Event called;
  Event go_on;
  Options slow = lasting(table);
  slow.on_lost = [&](Loss) {
    called.set();
    go_on.wait();
  };
  DdbMutex lost(fresh_name(), slow);
  DdbMutex renewed(fresh_name(), lasting(table));
  DdbMutex late(fresh_name(), lasting(table));
  lost.lock();
  renewed.lock();
  delete_row(engine, lost.name());
  BOOST_TEST(called.wait());
  late.lock();  // Also what is locked meanwhile.
  const auto updates = table->stats().update_item;
  BOOST_TEST(
      eventually([&] { return table->stats().update_item >= updates + 6; }));
  BOOST_TEST(renewed.owns_lock());
  BOOST_TEST(late.owns_lock());
  BOOST_TEST(thrown_by([&] { renewed.release(); }) == "none");
  BOOST_TEST(thrown_by([&] { late.release(); }) == "none");
  lost.unlock();
  go_on.set();
}

// owns_lock() is right although nobody could be told.
BOOST_AUTO_TEST_CASE(slow_callback_delays_what_is_told_but_not_the_end) {
  Event called;
  Event go_on;
  Telling x;
  Options slow = lasting(x.table);
  slow.on_lost = [&](Loss) {
    called.set();
    go_on.wait();
  };
  DdbMutex blocking(fresh_name(), slow);
  blocking.lock();
  delete_row(x.engine(), blocking.name());
  BOOST_TEST(called.wait());
  x.options.on_danger = nullptr;
  x.options.ttl = 2s;
  x.options.request_timeout = 900ms;
  x.lock();
  x.gate.always("UpdateItem", Gate::fails());
  BOOST_TEST(eventually([&] { return !x.mutex->owns_lock(); }));
  BOOST_TEST(x.told.text() == "");
  go_on.set();
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(x.told.text() == "expired");
}

// ... also if they were due first.
BOOST_AUTO_TEST_CASE(loss_is_told_before_questions_that_wait) {
  Event called;
  Event go_on;
  Told told;
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = table_at(engine);
  Options slow = lasting(table);
  slow.on_lost = [&](Loss) {
    called.set();
    go_on.wait();
  };
  DdbMutex blocking(fresh_name(), slow);
  blocking.lock();
  delete_row(engine, blocking.name());
  BOOST_TEST(called.wait());
  Options asked = lasting(table);
  asked.alive = [&] {
    told.add("alive");
    return true;
  };
  DdbMutex lasts(fresh_name(), asked);
  lasts.lock();
  Options ending = on_table(table, 2s);
  ending.auto_renew = false;
  ending.on_lost = [&](Loss loss) { told.add(name_of(loss)); };
  DdbMutex ends(fresh_name(), ending);
  ends.lock();
  BOOST_TEST(eventually([&] { return !ends.owns_lock(); }));
  go_on.set();
  BOOST_TEST(told.wait_for(2));
  BOOST_TEST(told.text().substr(0, 13) == "expired alive");
}

BOOST_AUTO_TEST_CASE(destructor_waits_for_the_callback_that_runs) {
  Event called;
  Event go_on;
  std::atomic<bool> ended{false};
  Engine& engine = Engine::running(any_engine_kind());
  Options options = lasting(table_at(engine));
  options.on_lost = [&](Loss) {
    called.set();
    go_on.wait();
    ended = true;
  };
  auto mutex = std::make_unique<DdbMutex>(fresh_name(), options);
  mutex->lock();
  delete_row(engine, mutex->name());
  BOOST_TEST(called.wait());
  Aside aside([&] { mutex.reset(); });
  BOOST_TEST(aside.rests());
  BOOST_TEST(!aside.done());
  go_on.set();
  BOOST_TEST(aside.thrown() == "none");
  BOOST_TEST(ended.load());
}

// --- What a callback may do ------------------------------------------------

BOOST_AUTO_TEST_CASE(exception_out_of_a_callback_is_written_down_and_no_more) {
  const Stderr err;
  Telling x;
  let_end(x.options);
  x.options.on_danger = [&] {
    x.told.add("danger");
    throw std::runtime_error("no\nsuch \x1b[2Jluck");
  };
  x.options.on_lost = [&](Loss loss) {
    x.told.add(name_of(loss));
    throw 7;
  };
  x.lock();
  x.gate.always("UpdateItem", Gate::fails());
  BOOST_TEST(x.told.wait_for(2));
  x.gate.open();
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == kLost);
  x.mutex->lock();  // All goes on.
  delete_row(x.engine(), x.name);
  BOOST_TEST(x.told.wait_for(3));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "danger expired deleted");
  const std::string threw = " of \"" + x.name + "\" threw";
  BOOST_TEST(err.text() == "ddbmutex: on_danger" + threw +
                               ": no\\nsuch \\x1b[2Jluck\n" +
                               "ddbmutex: on_lost" + threw + "\n" +
                               "ddbmutex: on_lost" + threw + "\n");
}

BOOST_AUTO_TEST_CASE(callback_may_unlock_and_lock_again) {
  Telling x;
  x.options.on_lost = [&](Loss loss) {
    x.told.add(name_of(loss));
    x.told.add(thrown_by([&] { x.mutex->release(); }));
    x.told.add(thrown_by([&] { x.mutex->lock(); }));
  };
  x.lock();
  delete_row(x.engine(), x.name);
  BOOST_TEST(x.told.wait_for(3));
  BOOST_TEST(x.told.text() == "deleted " + kLost + " none");
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
}

// Who has the lock may unlock once a callback has told it something: one that
// waits for that holds up all that come after it.
BOOST_AUTO_TEST_CASE(callback_that_would_wait_for_callbacks_is_told) {
  const std::string deadlock =
      std::make_error_code(std::errc::resource_deadlock_would_occur).message();
  Telling x;
  DdbMutex others(fresh_name(), lasting(x.table));
  others.lock();
  x.options.on_lost = [&](Loss loss) {
    x.told.add(name_of(loss));
    x.told.add(thrown_by([&] { x.mutex->lock(); }));
    x.told.add(thrown_by([&] { others.lock(); }));
    // A wait that ends by itself is the caller's own business.
    x.told.add(x.mutex->try_lock_for(10ms) ? "locked" : "in time");
    x.told.add(thrown_by([&] { x.mutex->release(); }));
    x.told.add(thrown_by([&] { x.mutex->lock(); }));
  };
  x.lock();
  delete_row(x.engine(), x.name);
  BOOST_TEST(x.told.wait_for(6));
  BOOST_TEST(x.told.text() == "deleted " + deadlock + " " + deadlock +
                                  " in time " + kLost + " none");
  others.unlock();
  // The thread that calls back goes on.
  BOOST_TEST(eventually([&] {
    others.lock();
    others.unlock();
    return x.mutex->owns_lock();
  }));
}

BOOST_AUTO_TEST_CASE(callback_in_danger_may_unlock_in_time) {
  Telling x;
  let_end(x.options);
  x.options.on_danger = [&] {
    x.told.add("danger");
    x.told.add(thrown_by([&] { x.mutex->release(); }));
  };
  x.lock();
  x.gate.always("UpdateItem", Gate::fails());
  BOOST_TEST(x.told.wait_for(2));
  BOOST_TEST(is_free(x.engine(), x.name));
  x.mutex.reset();
  BOOST_TEST(x.told.text() == "danger none");
}

BOOST_AUTO_TEST_CASE(callback_may_lock_another_mutex_and_ask_anything) {
  Telling x;
  DdbMutex other(fresh_name(), lasting(x.table));
  x.options.on_lost = [&](Loss loss) {
    x.mutex->cancel();
    x.told.add(thrown_by([&] { other.lock(); }));
    x.told.add(other.owns_lock() ? "locked" : "not locked");
    x.told.add(x.table->inspect(x.name).exists ? "there" : "gone");
    x.told.add(x.table->stats().put_item == 2 ? "two" : "not two");
    x.told.add(x.mutex->last_error() + x.mutex->name() + x.mutex->owner());
    x.told.add(name_of(loss));
  };
  x.lock();
  delete_row(x.engine(), x.name);
  BOOST_TEST(x.told.wait_for(6));
  BOOST_TEST(x.told.text() ==
             "none locked gone two " + x.name + x.mutex->owner() + " deleted");
}

// Both side by side: that in danger, and that which is lost.
BOOST_AUTO_TEST_CASE(callback_may_destroy_its_mutex_and_hears_no_more) {
  std::list<Telling> all;
  for (const bool in_danger : {true, false}) {
    Telling& x = all.emplace_back();
    let_end(x.options);
    const auto destroy = [&x](const char* why) {
      x.mutex.reset();
      x.told.add(why);
    };
    x.options.on_lost = [destroy](Loss loss) { destroy(name_of(loss)); };
    x.options.on_danger = [destroy, in_danger] {
      if (in_danger) destroy("danger");
    };
    x.lock();
    x.gate.always("UpdateItem", Gate::fails());
  }
  for (Telling& x : all) {
    const bool in_danger = &x == &all.front();
    BOOST_TEST(x.told.wait_for(1));
    BOOST_TEST(x.told.text() == (in_danger ? "danger" : "expired"));
    BOOST_TEST(eventually([&] { return is_free(x.engine(), x.name); }));
    x.options = {};
    // The table's thread is well.  The end of the lease that was in danger,
    // which comes before that of this one, passes in silence.
    Told later;
    Options options = on_table(x.table, in_danger ? 3s : 2s);
    options.on_lost = [&later](Loss loss) { later.add(name_of(loss)); };
    DdbMutex other(fresh_name(), options);
    other.lock();
    BOOST_TEST(later.wait_for(1));
    BOOST_TEST(later.text() == "expired");
    BOOST_TEST(x.told.text() == (in_danger ? "danger" : "expired"));
  }
}

BOOST_AUTO_TEST_CASE(callback_may_destroy_the_last_of_its_table) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Told told;
  std::optional<DdbMutex> mutex;
  std::weak_ptr<Table> table;
  {
    Options options = lasting(table_at(engine));
    table = options.table;
    options.on_lost = [&](Loss loss) {
      mutex.reset();
      // Nothing that belongs to it is called once the callback has returned.
      told.add(table.expired() ? "gone" : "there");
      told.add(name_of(loss));
    };
    mutex.emplace(name, std::move(options));
  }
  const std::set<pid_t> before = threads_by_id();
  mutex->lock();
  BOOST_TEST(threads_since(before) >= 2);
  delete_row(engine, name);
  BOOST_TEST(told.wait_for(2));
  BOOST_TEST(eventually([&] { return threads_since(before) == 0; }));
  BOOST_TEST(told.text() == "gone deleted");
}

// A logger goes with its table.
BOOST_AUTO_TEST_CASE(what_is_thrown_is_told_though_the_table_is_gone) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Told logged;
  bool was_logged = false;
  Event gone;
  std::optional<DdbMutex> mutex;
  {
    TableOptions about = table_options(engine);
    about.logger = [&logged](ddbmutex::LogLevel, const std::string& text) {
      logged.add(text);
    };
    Options options = lasting(with_clock(std::make_shared<Table>(about)));
    options.on_lost = [&](Loss) {
      const std::string lost = "lost: its item is gone";
      was_logged = eventually([&] { return has(logged.text(), lost); });
      mutex.reset();
      gone.set();
      throw std::runtime_error("too late");
    };
    mutex.emplace(name, std::move(options));
  }
  mutex->lock();
  const Stderr told;
  delete_row(engine, name);
  BOOST_TEST(gone.wait());
  BOOST_TEST(was_logged);
  BOOST_TEST(eventually([&] {
    return has(told.text(), "on_lost of \"" + name + "\" threw: too late");
  }));
}

// --- The threads end -------------------------------------------------------

BOOST_AUTO_TEST_CASE(threads_of_a_table_end_with_it) {
  ScriptedServer server;
  const std::set<pid_t> before = threads_by_id();
  {
    const auto table = table_at(server);
    DdbMutex mutex("x", lasting(table));
    mutex.lock();
    // Two, and the server's for the connection.
    BOOST_TEST(threads_since(before) >= 3);
    BOOST_TEST(eventually([&] { return table->stats().update_item >= 1; }));
  }
  BOOST_TEST(eventually([&] {
    return threads_since(before) == 0 && server.open_connections() == 0;
  }));
}

BOOST_AUTO_TEST_SUITE_END()
