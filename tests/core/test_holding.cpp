// While a lock is held: how its lease is renewed, automatically or by hand, how
// it is lost, when on_danger and on_lost report that, and what these callbacks
// may do.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/home.hpp"
#include "tests/support/late_readings.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Changes;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// === Leases that are renewed =================================================

namespace {

// A lock behind a gate.
struct Held {
  explicit Held(std::chrono::milliseconds ttl = 1min)
      : options(on_table(table_at(gate), ttl)) {}

  DdbMutex& make() {
    mutex = std::make_unique<DdbMutex>(fresh_name(), options);
    return *mutex;
  }
  int renewals() const { return count_of(gate.server(), "UpdateItem"); }

  Gate gate;
  Options options;
  std::unique_ptr<DdbMutex> mutex;
};

// When the lease ends, accurate to a millisecond.
BootTime end_of(const DdbMutex& mutex) {
  for (;;) {
    const BootTime now = BootClock::now();
    const auto remaining = mutex.remaining();
    if (BootClock::now() - now < 1ms) return now + remaining;
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(renewing)

// --- By hand -----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(danger_is_reported_without_on_lost) {
  Held it(5s);
  it.options.auto_renew = false;
  it.options.safe_time = 2400ms;
  Event told;
  it.options.on_danger = [&] { told.set(); };
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(told.wait());
  mutex.unlock();
}

BOOST_AUTO_TEST_CASE(changes_are_made_once) {
  Held it;
  it.options.renew_after = 50ms;
  DdbMutex& mutex = it.make();
  mutex.lock();
  Changes changes;
  changes.data = "changed";
  mutex.renew(changes);
  const int before = it.renewals();
  BOOST_TEST(eventually([&] { return it.renewals() > before + 2; }));
  const std::string last = it.gate.server().requests().back().body;
  BOOST_TEST(last.find("data") == std::string::npos, last);
  BOOST_TEST((mutex.data() == std::string("changed")));
}

// An earlier renewal is refused while renew() waits.  That says nothing about
// the request of renew() itself.
BOOST_AUTO_TEST_CASE(refusal_of_an_earlier_renewal_is_no_error_of_the_call) {
  Held it;
  it.options.renew_after = 50ms;
  it.gate.once("UpdateItem", [](Engine&, const SeenRequest&) {
    Reply late = failure(400, "AccessDeniedException");
    late.hangs = true;
    return late;
  });
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST_REQUIRE(eventually([&] { return it.renewals() == 1; }));
  Changes changes;
  changes.data = "changed";
  Aside renews([&] { mutex.renew(changes); });
  BOOST_TEST(renews.rests());
  it.gate.server().release();
  BOOST_TEST(renews.thrown() == "none");
  BOOST_TEST((mutex.data() == std::string("changed")));
}

// --- Automatically -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(renewal_that_hangs_is_given_up_in_time_for_another) {
  Held it;
  it.options.renew_after = 50ms;
  it.options.request_timeout = 200ms;
  it.gate.once("UpdateItem", Gate::held());
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() >= 2; }));
  it.gate.server().release();
}

// The first is due after 12 hours, the second 5 minutes later.  A third, which
// is renewed all the time, has the Table look what is due.
// DynamoDB's clock goes on while the machine is suspended.
BOOST_AUTO_TEST_CASE(renewal_that_is_nearly_due_goes_along_with_one_that_is) {
  tests::Suspends machine;
  std::atomic<std::int64_t> ahead{0};  // Of the engine's clock, in seconds.
  const auto dated = [&](Engine& engine, const SeenRequest& request) {
    Reply reply = engine.forward(request);
    reply.headers = {{"Date", http_date(ahead.load() * 1s)}};
    return reply;
  };
  const auto jump = [&](std::chrono::seconds time) {
    ahead += time.count();
    machine.jump(time);
  };
  Held it(24h);
  it.gate.always("UpdateItem", dated);
  it.gate.always("GetItem", dated);
  it.options.renew_after = 50ms;
  DdbMutex third(fresh_name(), it.options);
  it.options.renew_after = 12h;
  DdbMutex first(fresh_name(), it.options);
  DdbMutex& second = it.make();
  for (DdbMutex* mutex : {&first, &second, &third}) mutex->lock();
  first.renew();
  jump(5min);
  second.renew();
  const BootTime end = end_of(second);
  jump(12h - 5min);
  BOOST_TEST_REQUIRE(eventually([&] { return end_of(second) > end + 1h; }));
  BOOST_TEST((end_of(second) - end < 12h));
}

// --- After stop_renewing() ---------------------------------------------------

BOOST_AUTO_TEST_CASE(lease_is_not_renewed_after_stop_renewing_and_expires) {
  Held it(8s);
  it.options.renew_after = 50ms;
  it.options.safe_time = 3500ms;
  Told told;
  it.options.on_danger = [&] { told.add("danger"); };
  it.options.on_lost = [&](Loss why) { told.add(name_of(why)); };
  DdbMutex& mutex = it.make();
  mutex.stop_renewing();  // Nothing is held, so this is forgotten.
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() > 2; }));
  mutex.stop_renewing();
  mutex.renew();  // After the renewal that may have been in flight.
  const int before = it.renewals();
  BOOST_TEST(told.wait_for(2));
  BOOST_TEST(told.text() == "danger expired");
  BOOST_TEST(it.renewals() == before);
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == words(Errc::lease_lost));
  // The next lease is renewed.
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() > before + 2; }));
  it.mutex.reset();  // While `told` is there.
}

BOOST_AUTO_TEST_CASE(renewal_that_failed_is_not_retried_after_stop_renewing) {
  Held it;
  it.options.renew_after = 50ms;
  it.gate.always("UpdateItem", [](Engine&, const SeenRequest&) {
    Reply reply = hanging();
    reply.then = [](const SeenRequest&) { return server_failure(); };
    return reply;
  });
  DdbMutex& mutex = it.make();
  mutex.lock();
  BOOST_TEST(eventually([&] { return it.renewals() == 1; }));
  mutex.stop_renewing();
  it.gate.server().release();
  pause(1s);  // A retry would be sent in that time.
  BOOST_TEST(it.renewals() == 1);
  BOOST_TEST(mutex.owns_lock());
}

// --- While the caller's thread stalls ----------------------------------------

BOOST_AUTO_TEST_CASE(lock_that_is_renewed_during_a_stall_is_owned) {
  for (const bool requires_it : {false, true}) {
    Held it;
    DdbMutex& mutex = it.make();
    mutex.lock();
    const auto remaining = mutex.remaining();
    const BootTime end = BootClock::now() + remaining;
    const auto has_new_end = [&] {
      const BootTime now = BootClock::now();
      return now + mutex.remaining() > end;
    };
    const LateReadings late(1, [&] {
      do {
        mutex.renew();
      } while (!has_new_end());
      return end;
    });
    if (requires_it) {
      BOOST_TEST(thrown_by([&] { mutex.require(1ns); }) == "none");
    } else {
      BOOST_TEST(mutex.owns_lock());
    }
  }
}

BOOST_AUTO_TEST_CASE(lock_that_is_reported_as_lost_stays_lost) {
  Held it;
  Told told;
  it.options.on_lost = [&](Loss why) { told.add(name_of(why)); };
  DdbMutex& mutex = it.make();
  mutex.lock();
  {
    const LateReadings late(100, [] { return BootClock::now() + 1h; });
    BOOST_TEST(thrown_by([&] { mutex.require(1ns); }) ==
               words(Errc::lease_lost));
  }
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.renew(); }) == words(Errc::lease_lost));
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
  it.mutex.reset();  // While `told` is there.
}

BOOST_AUTO_TEST_SUITE_END()

// === What a holder is told ===================================================

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());
const std::string kLost = words(Errc::lease_lost);

// Captures what is written to stderr during its lifetime.
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

// For a lock that stays held and is renewed often.
Options lasting(const std::shared_ptr<Table>& table) {
  Options options = on_table(table);
  options.renew_after = 50ms;
  return options;
}

// For a lock that is not renewed: in danger about 2 s after it was taken, and
// expired about 2 s later.  A machine may stall for almost that long without
// changing what is reported.
constexpr milliseconds kEndingLease = 5s;
constexpr milliseconds kEndingSafeTime = 2300ms;
void let_end(Options& options) {
  options.ttl = kEndingLease;
  options.safe_time = kEndingSafeTime;
  options.request_timeout = 1800ms;
}

// The number of threads that did not exist before.
std::ptrdiff_t threads_since(const std::set<pid_t>& before) {
  const std::set<pid_t> now = threads_by_id();
  return std::count_if(now.begin(), now.end(),
                       [&](pid_t thread) { return before.count(thread) == 0; });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(callbacks)

// A lock behind a gate whose callbacks record what they are told.  By default
// it stays held, and is renewed so often that a change of its row is noticed at
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
  // Uses the options as they are at this call.
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

namespace {

// How a lock is lost, and what every call says of it from then on.
struct Losing {
  std::string how;
  std::function<void(Telling&)> lose;
};

std::ostream& operator<<(std::ostream& out, const Losing& losing) {
  return out << losing.how;
}

const std::vector<Losing> kLosing = {
    {"expired", [](Telling& x) { x.gate.always("UpdateItem", Gate::fails()); }},
    {"found taken",
     [](Telling& x) { write_row(x.engine(), x.name, live_record()); }},
    {"found deleted", [](Telling& x) { delete_row(x.engine(), x.name); }}};

// What is wrong with the text of the error of a call after a loss `how`, which
// was told at `told` at the latest.  "" if nothing is.
std::string problem_of(const std::string& how, BootTime told,
                       const std::function<void()>& call) {
  const auto error = error_of(call);
  const auto longest = (BootClock::now() - told) / 1ms;
  if (!error) return "no error";
  const std::string text = error->what();
  const std::string before = words(Errc::lease_lost) + ": " + how + " ";
  const auto at = text.find(before);
  if (at == text.npos) return text;
  std::istringstream rest(text.substr(at + before.size()));
  long long time = -1;
  std::string unit, ago;
  rest >> time >> unit >> ago;
  // It may have been lost a moment before it was told.
  const bool good =
      time >= 300 && time <= longest + 1000 && unit == "ms" && ago == "ago";
  return good ? "" : text + " after " + std::to_string(longest) + " ms";
}

}  // namespace

BOOST_DATA_TEST_CASE(every_call_after_a_loss_says_why_and_how_long_ago,
                     boost::unit_test::data::make(kLosing), losing) {
  const std::string wrong = undisturbed(1s, [&]() -> std::string {
    Telling x;
    x.options.on_danger = nullptr;
    if (losing.how == "expired") let_end(x.options);
    x.lock();
    losing.lose(x);
    BOOST_TEST_REQUIRE(x.told.wait_for(1));
    const BootTime told = BootClock::now();
    pause(300ms);
    DdbMutex& mutex = *x.mutex;
    const std::function<void()> calls[] = {[&] { mutex.renew(); },
                                           [&] {
                                             mutex.renew(Changes{"x", {}, {}});
                                           },
                                           [&] { mutex.ensure(1s); },
                                           [&] { mutex.require(1s); },
                                           [&] { mutex.release(); }};
    std::string wrong_here;
    for (const auto& call : calls) {
      const std::string problem = problem_of(losing.how, told, call);
      if (!problem.empty()) wrong_here += problem + "\n";
    }
    return wrong_here;
  });
  BOOST_TEST(wrong == "");
}

// Nobody was told before: the call itself finds it.
BOOST_AUTO_TEST_CASE(call_that_finds_the_loss_says_why) {
  const auto text_of = [](const std::function<void(Telling&)>& call) {
    Telling x;
    x.options.auto_renew = false;
    x.options.renew_after.reset();
    x.lock();
    delete_row(x.engine(), x.name);
    const auto error = error_of([&] { call(x); });
    BOOST_TEST(x.told.wait_for(1));  // on_lost asks the mutex, which ends here.
    return error ? std::string(error->what()) : "none";
  };
  const std::pair<const char*, std::function<void(Telling&)>> calls[] = {
      {"renew", [](Telling& x) { x.mutex->renew(); }},
      {"release", [](Telling& x) { x.mutex->release(); }}};
  for (const auto& [name, call] : calls) {
    const std::string text = text_of(call);
    const auto at = text.find(": found deleted ");
    BOOST_TEST((at != text.npos && text.substr(text.size() - 7) == " ms ago"),
               name << ": " << text);
  }
}

// --- The end of a lease ----------------------------------------------------

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

// Renewals hang until the gate opens; then the next one succeeds.
BOOST_AUTO_TEST_CASE(danger_is_told_again_after_a_renewal_came_through) {
  constexpr milliseconds kSafeTime = 5500ms;
  Telling x;
  x.options.ttl = 12s;
  x.options.safe_time = kSafeTime;
  x.options.request_timeout = 1s;
  x.lock();
  for (const char* told : {"danger", "danger danger"}) {
    x.gate.always("UpdateItem", Gate::held());
    BOOST_TEST(eventually([&] { return x.told.text() == told; }));
    x.gate.open();
    x.gate.server().release();
    BOOST_TEST(eventually([&] { return x.mutex->remaining() > kSafeTime; }));
  }
  BOOST_TEST(x.told.text() == "danger danger");
  BOOST_TEST(thrown_by([&] { x.mutex->release(); }) == "none");
}

// A refused renewal is retried each second, an eighth of the lease.
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

// --- One at a time ---------------------------------------------------------

// A loss is reported before a danger, even if the danger was due first.
BOOST_AUTO_TEST_CASE(loss_is_told_before_dangers_that_wait) {
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
  // In danger after 3.1 s, and lost after 7 s.
  Options endangered = on_table(table, 8s);
  endangered.auto_renew = false;
  endangered.safe_time = 3900ms;
  endangered.on_danger = [&] { told.add("danger"); };
  DdbMutex lasts(fresh_name(), endangered);
  lasts.lock();
  Options ending = on_table(table, 4s);  // Lost after 3.5 s.
  ending.auto_renew = false;
  ending.on_lost = [&](Loss loss) { told.add(name_of(loss)); };
  DdbMutex ends(fresh_name(), ending);
  ends.lock();
  BOOST_TEST(eventually([&] { return !ends.owns_lock(); }));
  go_on.set();
  BOOST_TEST(told.wait_for(2));
  BOOST_TEST(told.text() == "expired danger");
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
  x.mutex->lock();  // The mutex still works.
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

BOOST_AUTO_TEST_CASE(callback_may_destroy_the_last_of_its_table) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  Told told;
  std::optional<DdbMutex> mutex;
  std::weak_ptr<Table> table;
  const std::set<pid_t> before = threads_by_id();
  {
    Options options = lasting(table_at(engine));
    table = options.table;
    options.on_lost = [&](Loss loss) {
      mutex.reset();
      // Nothing of the table is used after the callback has returned.
      told.add(table.expired() ? "gone" : "there");
      told.add(name_of(loss));
    };
    mutex.emplace(name, std::move(options));
  }
  mutex->lock();
  BOOST_TEST(threads_since(before) >= 2);
  delete_row(engine, name);
  BOOST_TEST(told.wait_for(2));
  BOOST_TEST(eventually([&] { return threads_since(before) == 0; }));
  BOOST_TEST(told.text() == "gone deleted");
}

// The logger went with its table, so the exception is written to stderr.
BOOST_AUTO_TEST_CASE(exception_is_written_to_stderr_if_the_table_is_gone) {
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

BOOST_AUTO_TEST_SUITE_END()
