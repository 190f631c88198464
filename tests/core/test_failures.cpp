// Failures of the service and of the network, seen through the public API:
// answers that are lost; servers that fail, hang, refuse or have another time;
// requests that are left over when a call has returned or an object is gone;
// and what a logger is told.
#include <algorithm>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/blackhole.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/late_readings.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LogLevel;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::seconds;

namespace {

// For a lock that stays held and is renewed often.
Options lasting(const std::shared_ptr<Table>& table) {
  Options options = on_table(table);
  options.renew_after = 50ms;
  return options;
}

}  // namespace

// === Failures of the service and of the network ==============================

// Real engines are behind the gateway, which checks each signature.
BOOST_AUTO_TEST_SUITE(failure_table)

// --- Applied, but the answer is lost -----------------------------------------

BOOST_DATA_TEST_CASE(take_applied_and_unanswered_is_one_acquisition,
                     boost::unit_test::data::make(lost_answers()), loss) {
  Front front;
  Watched x(front, 1min);
  x.options.request_timeout = time_for(loss);
  x.make();
  front.gateway.add(losing("PutItem", loss));
  // Waiting for the end of the unanswered lease would take longer than this.
  BOOST_TEST(x.mutex->try_lock_for(kPlenty));
  BOOST_TEST(x.mutex->owns_lock());
  BOOST_TEST(front.gateway.counts().faults(loss) == 1);
  // The bad answer was not believed, although the take had been applied.
  BOOST_TEST(front.gateway.counts().requests("PutItem") >= 2);
  DdbMutex rival(x.name, on_table(table_at(front.engine)));
  BOOST_TEST(!rival.try_lock());
  BOOST_TEST(thrown_by([&] { x.mutex->unlock(); }) == "none");
  front.let_go();
  BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
  BOOST_TEST(x.told.text() == "");
}

// --- Another time ------------------------------------------------------------

BOOST_DATA_TEST_CASE(clock_too_far_out_is_corrected_and_asked_again_once,
                     boost::unit_test::data::make({-11 * 3600, 400}), offset) {
  Front front;
  front.gateway.clock_offset(seconds(offset));
  Watched x(front, 1min);
  Watched other(front.table(), 1min, x.name);
  x.lock();
  const Gateway::Counts counts = front.gateway.counts();
  BOOST_TEST(counts.bad_signatures() == 0);
  BOOST_TEST(counts.early_signatures() == (offset > 0 ? 1 : 0));
  BOOST_TEST(counts.late_signatures() == (offset < 0 ? 1 : 0));
  BOOST_TEST(counts.good_signatures() >= 1);
  other.make();
  BOOST_TEST(!other.mutex->try_lock());
  BOOST_TEST(x.released() == "none");
}

BOOST_AUTO_TEST_CASE(clock_too_far_out_without_a_date_is_an_error_at_once) {
  Front front;
  front.gateway.clock_offset(3h);
  front.gateway.dates(false);
  Watched x(front, 1min);
  x.make();
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(Errc::bad_keys));
  BOOST_TEST(front.gateway.counts().early_signatures() == 1);
  BOOST_TEST(!x.mutex->owns_lock());
}

// --- Refused -----------------------------------------------------------------

namespace {

struct Mistake {
  const char* what;
  Errc code;
  int requests;
  std::function<void(TableOptions&)> make;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.what;
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kAll = {
      {"wrong secret", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.secret_access_key += "x";
       }},
      {"unknown keys", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.access_key_id = "AKIDNOBODY";
       }},
      {"a token that is none", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.session_token = "token";
       }},
      {"no keys", Errc::no_keys, 0,
       [](TableOptions& options) {
         options.credentials_source = [] { return std::nullopt; };
       }},
      {"no such table", Errc::no_table, 1,
       [](TableOptions& options) { options.name = "no-such-table"; }}};
  return kAll;
}

}  // namespace

BOOST_DATA_TEST_CASE(mistake_is_told_at_once_and_is_no_lock,
                     boost::unit_test::data::make(mistakes()), mistake) {
  Front front;
  TableOptions options = front.table_options();
  mistake.make(options);
  Watched x(std::make_shared<Table>(options), 1min);
  x.make();
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(mistake.code));
  BOOST_TEST(front.gateway.counts().all_requests() == mistake.requests);
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(front.is_free(x.name));
  BOOST_TEST(thrown_by([&] { BOOST_TEST(!x.mutex->try_lock()); }) ==
             words(mistake.code));
}

BOOST_AUTO_TEST_SUITE_END()

// === What is left over =======================================================

// Releases that go on in the background when the call has returned or the mutex
// is gone, how many of them are kept, and what becomes of them with the table.
BOOST_AUTO_TEST_SUITE(leftovers)

// --- How many there may be ---------------------------------------------------

namespace {

bool is_about(const SeenRequest& request, const std::string& name) {
  return request.body.find("ddblock-" + name) != std::string::npos;
}

// A server that answers at once, except requests of the hanging actions for
// names that begin with "stuck": those it never answers.
struct Stuck {
  explicit Stuck(const std::string& hanging_actions)
      : server([=](const SeenRequest& request) {
          const bool hangs =
              is_about(request, "stuck") &&
              hanging_actions.find(action_of(request)) != std::string::npos;
          if (hangs && action_of(request) == "PutItem") ++stuck_takes;
          return hangs ? hanging() : answer(request);
        }),
        table(table_at(server)) {}
  virtual ~Stuck() { server.release(); }
  virtual Reply answer(const SeenRequest&) { return {}; }

  // For locks whose requests do not time out while a test waits.
  Options patient() const {
    Options options = on_table(table, 4min);
    options.request_timeout = kPlenty + 30s;
    return options;
  }
  // Makes waits that are cancelled while their takes are in flight.
  void give_up(int waits) {
    for (int i = 0; i < waits; ++i) {
      const std::string name = "stuck " + std::to_string(i) + ".";
      DdbMutex mutex(name, patient());
      const int before = stuck_takes;
      Aside waiter([&] { mutex.lock(); });
      BOOST_TEST_REQUIRE(eventually([&] { return stuck_takes == before + 1; }));
      mutex.cancel();
      BOOST_TEST_REQUIRE(waiter.ends());
    }
  }
  int count(const std::string& action, const std::string& name) const {
    const auto all = server.requests();
    return static_cast<int>(
        std::count_if(all.begin(), all.end(), [&](const SeenRequest& request) {
          return action_of(request) == action && is_about(request, name);
        }));
  }

  std::atomic<int> stuck_takes{0};
  mutable ScriptedServer server;
  std::shared_ptr<Table> table;
};

// The library's limits for one Table.
constexpr int kAwaited = 16;    // Takes in flight that their callers have left.
constexpr int kReleasing = 32;  // Releases in flight.
constexpr int kRenewing = 128;  // Renewals in flight.
constexpr int kKept = 1000;     // Releases that wait.

}  // namespace

BOOST_AUTO_TEST_CASE(renewals_go_on_whatever_is_left_over) {
  Stuck x("PutItem DeleteItem");
  Options often = lasting(x.table);
  DdbMutex mutex("well", often);
  mutex.lock();
  x.give_up(kAwaited + kReleasing + 2);
  const auto before = x.table->stats().update_item;
  BOOST_TEST(
      eventually([&] { return x.table->stats().update_item >= before + 2; }));
}

// Takes that were left and releases in flight are bounded.  Beyond the bounds a
// take is ended, and a release waits.
BOOST_AUTO_TEST_CASE(requests_that_are_left_over_are_bounded) {
  Stuck x("PutItem DeleteItem");
  x.give_up(kAwaited + kReleasing + 10);
  BOOST_TEST(
      eventually([&] { return x.count("DeleteItem", "stuck") == kReleasing; }));
  // Two renewals of this lock show that the sending thread is past all that.
  DdbMutex mutex("well", lasting(x.table));
  mutex.lock();
  BOOST_TEST(eventually([&] { return x.table->stats().update_item >= 2; }));
  BOOST_TEST(x.count("DeleteItem", "stuck") == kReleasing);
}

BOOST_AUTO_TEST_CASE(unlock_does_not_wait_for_releases_that_hang) {
  Stuck x("PutItem DeleteItem");
  x.give_up(kAwaited + kReleasing + 1);
  BOOST_TEST_REQUIRE(
      eventually([&] { return x.count("DeleteItem", "stuck") == kReleasing; }));
  Options options = x.patient();
  options.request_timeout = kPlenty / 2;
  DdbMutex mutex("well", options);
  mutex.lock();
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  BOOST_TEST(x.count("DeleteItem", "well") == 1);
}

// Many releases of takes that perhaps never succeeded wait before it.
BOOST_AUTO_TEST_CASE(lock_that_was_held_is_released_before_what_perhaps_was) {
  Stuck x("PutItem DeleteItem");
  DdbMutex mutex("well", x.patient());
  mutex.lock();
  x.give_up(kAwaited + 4 * kReleasing);
  BOOST_TEST_REQUIRE(
      eventually([&] { return x.count("DeleteItem", "stuck") == kReleasing; }));
  Aside closing([&] { x.table->close(kPlenty); });
  BOOST_TEST(closing.rests());
  x.server.release();
  BOOST_TEST(closing.ends());
  BOOST_TEST(x.count("DeleteItem", "well") == 1);
  int before = 0;
  for (const SeenRequest& request : x.server.requests()) {
    if (action_of(request) != "DeleteItem") continue;
    if (is_about(request, "well")) break;
    ++before;
  }
  BOOST_TEST(before <= 2 * kReleasing);
}

// It is not sent at all: once there is room, its lease is over.
BOOST_AUTO_TEST_CASE(close_reports_a_release_that_was_never_sent) {
  Stuck x("PutItem DeleteItem");
  Options options = on_table(x.table, 6s);
  options.auto_renew = false;
  DdbMutex mutex("late", options);
  x.give_up(kAwaited + kReleasing);
  BOOST_TEST_REQUIRE(
      eventually([&] { return x.count("DeleteItem", "stuck") == kReleasing; }));
  mutex.lock();
  const Stopwatch watch;
  const auto bad = x.table->close(kPlenty);
  BOOST_TEST((watch.time() < kPlenty));
  BOOST_TEST_REQUIRE(bad.size() == 1u);
  BOOST_TEST(bad[0].name == "late");
  BOOST_TEST(x.count("DeleteItem", "late") == 0);
}

// Its release waits for those of others.  Meanwhile a renewal is answered.
BOOST_AUTO_TEST_CASE(renewal_answered_after_close_has_begun_renews_nothing) {
  struct Slow : Stuck {
    using Stuck::Stuck;
    Reply answer(const SeenRequest& request) override {
      Reply reply;
      if (action_of(request) == "UpdateItem") reply.delay = 1s;
      return reply;
    }
  };
  Slow x("PutItem DeleteItem");
  x.give_up(kAwaited + kReleasing);
  BOOST_TEST_REQUIRE(
      eventually([&] { return x.count("DeleteItem", "stuck") == kReleasing; }));
  Options options = x.patient();
  options.renew_after = 50ms;
  DdbMutex mutex("well", options);
  mutex.lock();
  BOOST_TEST(eventually([&] { return x.count("UpdateItem", "well") == 1; }));
  std::size_t left = 1;
  Aside closing([&] { left = x.table->close(kPlenty).size(); });
  BOOST_TEST(eventually([&] { return x.table->stats().update_item == 1; }));
  BOOST_TEST(!mutex.owns_lock());
  x.server.release();
  BOOST_TEST(closing.ends());
  BOOST_TEST(left == 0U);
  BOOST_TEST(x.count("DeleteItem", "well") == 1);
}

namespace {

// Locks whose renewals become due all at once, because the clock jumps.
struct Due {
  // DynamoDB's clock goes on in a suspend.
  struct Dated : Stuck {
    using Stuck::Stuck;
    Reply answer(const SeenRequest&) override {
      return with_header(Reply::ok("{}"), "Date", http_date(ahead.load()));
    }
    std::atomic<std::chrono::seconds> ahead{std::chrono::seconds(0)};
  };

  explicit Due(const std::string& hanging_actions) : x(hanging_actions) {}
  void lock(const std::string& name, std::chrono::milliseconds ttl) {
    Options options = x.patient();
    options.ttl = ttl;
    options.renew_after = kRenewAfter;
    options.request_timeout = std::min(*options.request_timeout, ttl / 4);
    all.push_back(std::make_unique<DdbMutex>(name, options));
    all.back()->lock();
  }
  void become_due() {
    x.ahead = kRenewAfter;
    suspends.jump(kRenewAfter);
    x.table->inspect("x");  // The sender looks at the clock.
  }

  // Soon enough for DynamoDB's time to be known without a look.
  static constexpr std::chrono::seconds kRenewAfter{40};
  Suspends suspends;
  Dated x;
  std::vector<std::unique_ptr<DdbMutex>> all;
};

}  // namespace

BOOST_AUTO_TEST_CASE(lease_that_ends_first_is_renewed_first) {
  Due due("UpdateItem");
  for (int i = 0; i < kRenewing + 1; ++i) {
    due.lock("stuck" + std::to_string(i), 10min);
  }
  due.lock("well", 4min);  // After all others.
  due.become_due();
  BOOST_TEST(
      eventually([&] { return due.x.count("UpdateItem", "well") >= 1; }));
}

BOOST_AUTO_TEST_CASE(renewal_that_a_call_waits_for_goes_first) {
  Due due("UpdateItem");
  for (int i = 0; i < kRenewing + 1; ++i) {
    due.lock("stuck" + std::to_string(i), 4min);
  }
  due.lock("well", 10min);  // Its lease ends last.
  due.become_due();
  due.all.back()->renew();
  BOOST_TEST(due.x.count("UpdateItem", "well") >= 1);
}

// Renewals come at 100 a second and a few at once.  Unlimited, as many would
// come at once as may be in flight.
BOOST_AUTO_TEST_CASE(renewals_that_have_piled_up_do_not_come_all_at_once) {
  constexpr int kLocks = 300;
  Due due("");
  for (int i = 0; i < kLocks; ++i) due.lock("due" + std::to_string(i), 10min);
  const Stopwatch watch;
  due.become_due();
  int renewed = 0;
  BOOST_TEST(eventually([&] {
    renewed = static_cast<int>(due.x.table->stats().update_item);
    const auto time = watch.time() - Due::kRenewAfter;  // Without the jump.
    const double s = std::chrono::duration<double>(time).count();
    BOOST_TEST(renewed <= 20 + 130 * s);
    return renewed >= kLocks;
  }));
}

namespace {

// Takes of "vain" locks fail.  All releases fail until `going_on` is set.
struct Failing : Stuck {
  using Stuck::Stuck;
  Reply answer(const SeenRequest& request) override {
    if (action_of(request) != "DeleteItem") {
      return is_about(request, "vain") ? server_failure() : Reply{};
    }
    if (!going_on) return server_failure();
    ++(is_about(request, "held") ? held : vain);
    return {};
  }
  std::atomic<bool> going_on{false};
  std::atomic<int> held{0}, vain{0};
};

// Leaves a release that waits, with no request in flight.
void leave_release(const std::string& name, const Options& options) {
  DdbMutex mutex(name, options);
  std::error_code ec;
  mutex.lock(ec);
  BOOST_TEST(ec == Errc::unavailable, ec.message());
}

}  // namespace

// Those in flight are kept, too.
BOOST_AUTO_TEST_CASE(releases_that_are_left_over_are_bounded) {
  Failing x("");
  Options options = x.patient();
  options.auto_renew = false;
  options.patience = 0ms;
  {
    Options hasty = options;
    hasty.request_timeout = 50ms;
    DdbMutex held("held", hasty);
    held.lock();
    held.unlock();
  }
  for (int i = 0; i < kKept + 2 * kReleasing; ++i) {
    leave_release("vain" + std::to_string(i), options);
  }
  x.going_on = true;
  BOOST_TEST(eventually([&] { return x.vain >= kKept - 1; }));
  leave_release("vain and last", options);
  BOOST_TEST(
      eventually([&] { return x.count("DeleteItem", "vain and last") == 1; }));
  BOOST_TEST(x.vain <= kKept + kReleasing);
  // The only lock that is known to have been taken was not dropped.
  BOOST_TEST(x.held == 1);
}

// Takes that calls gave up in flight leave releases, too.
BOOST_AUTO_TEST_CASE(releases_of_takes_that_were_given_up_are_bounded) {
  Failing x("PutItem");
  x.give_up(kKept + kReleasing);
  x.going_on = true;
  // Those that are awaited count, too.
  BOOST_TEST(eventually([&] { return x.vain >= kKept - kAwaited - 1; }));
  x.table.reset();  // What is left is sent, or dropped.
  BOOST_TEST(x.vain <= kKept + 1);
}

// --- A take that was lost ----------------------------------------------------

BOOST_AUTO_TEST_CASE(lost_take_is_released_when_its_call_fails) {
  Gate gate;
  const auto refused = [](Engine&, const SeenRequest&) {
    return failure(400, "AccessDeniedException");
  };
  gate.once("PutItem", Gate::answer_lost());
  gate.always("PutItem", refused);
  DdbMutex mutex(fresh_name(), on_table(table_at(gate)));
  gate.always("GetItem", [&](Engine& engine, const SeenRequest& request) {
    return count_of(gate.server(), "PutItem") == 0 ? engine.forward(request)
                                                   : refused(engine, request);
  });
  BOOST_TEST(thrown_by([&] { mutex.lock(); }) == words(Errc::access_denied));
  BOOST_TEST(eventually([&] { return is_free(gate.engine(), mutex.name()); }));
}

// --- A take that comes after its release -------------------------------------

namespace {

// A take that has timed out, and is held back by the gate.  Its release has
// come first and found nothing.
struct Late {
  explicit Late(std::chrono::milliseconds ttl) : table(table_at(gate)) {
    Options options = on_table(table, ttl);
    options.request_timeout = 200ms;
    gate.once("PutItem", Gate::held());
    DdbMutex mutex(name, options);
    BOOST_TEST(thrown_by([&] { (void)mutex.try_lock(); }) ==
               words(Errc::timed_out));
    BOOST_TEST_REQUIRE(eventually([&] { return releases() == 1; }));
  }
  int releases() const { return count_of(gate.server(), "DeleteItem"); }

  Gate gate;
  const std::string name = fresh_name();
  std::shared_ptr<Table> table;
};

// The take has to arrive within its lease.
std::string released_when_it_comes() {
  Late x(3s);
  x.gate.server().release();
  if (!eventually([&] { return !is_free(x.gate.engine(), x.name); })) {
    return "it did not come";
  }
  return eventually([&] { return is_free(x.gate.engine(), x.name); })
             ? ""
             : "it stands";
}

}  // namespace

BOOST_AUTO_TEST_CASE(take_that_comes_after_its_release_is_released_too) {
  BOOST_TEST(undisturbed(500ms, released_when_it_comes) == "");
}

BOOST_AUTO_TEST_CASE(table_does_not_wait_for_what_may_come_yet) {
  Late x(1min);
  // Two renewals of this lock show that the first release is over.
  {
    DdbMutex later(fresh_name(), lasting(x.table));
    later.lock();
    BOOST_TEST(eventually([&] { return x.table->stats().update_item >= 2; }));
  }
  const int before = x.releases();
  BOOST_TEST(returns_within(0ms, [&] { x.table.reset(); }));
  BOOST_TEST(x.releases() == before);
  x.gate.server().release();
}

// --- The end of a table with something left ----------------------------------

namespace {

// A table with a release that has failed, and is not retried for some seconds.
struct Leaving {
  Leaving()
      : server([this](const SeenRequest& request) {
          if (action_of(request) != "DeleteItem") return Reply{};
          if (++releases == 1) return hanging();
          Reply busy = with_header(server_failure(), "x-amz-retry-after",
                                   ending ? "0" : "5000");
          return ending && mended ? Reply{} : busy;
        }),
        table(table_at(server)) {
    Options options = on_table(table);
    options.auto_renew = false;
    options.request_timeout = 200ms;
    DdbMutex mutex("left", options);
    mutex.lock();
    mutex.unlock();
    // One by unlock(), one in the background.
    BOOST_TEST_REQUIRE(eventually([&] { return releases == 2; }));
  }

  std::atomic<bool> ending{false};
  std::atomic<bool> mended{false};
  std::atomic<int> releases{0};
  ScriptedServer server;
  std::shared_ptr<Table> table;
};

}  // namespace

BOOST_AUTO_TEST_CASE(release_that_waits_is_sent_before_the_table_goes) {
  Leaving x;
  x.mended = x.ending = true;
  BOOST_TEST(returns_within(0ms, [&] { x.table.reset(); }));
  BOOST_TEST(x.releases == 3);
}

BOOST_AUTO_TEST_CASE(table_goes_once_all_was_tried_in_vain) {
  Leaving x;
  x.ending = true;
  BOOST_TEST(returns_within(0ms, [&] { x.table.reset(); }));
  BOOST_TEST(x.releases == 3);
}

// --- Addresses and endpoints -------------------------------------------------

// The first address gets half of the time for a connection, and that time is
// no longer than the request timeout.
BOOST_AUTO_TEST_CASE(dead_address_leaves_a_short_request_time_for_the_next) {
  ScriptedServer server;
  const Blackhole blackhole(server.port());
  const FakeNames names({"127.0.0.2", "127.0.0.1"});
  Options options = on_table(new_table_at(
      "http://locks.invalid:" + std::to_string(server.port()) + "/"));
  options.request_timeout = 1s;
  DdbMutex mutex("x", options);
  std::error_code ec;
  BOOST_TEST(mutex.try_lock_for(kPlenty, ec));
  BOOST_TEST(!ec, ec.message());
}

// Also if each connection breaks after its request.
BOOST_AUTO_TEST_CASE(lock_is_held_although_its_host_name_resolves_no_more) {
  ScriptedServer server;
  std::optional<FakeNames> names(std::in_place,
                                 std::vector<std::string>{"127.0.0.1"});
  const auto table =
      table_at("http://locks.invalid:" + std::to_string(server.port()) + "/");
  Told told;
  Options options = lasting(table);
  options.on_lost = [&](ddbmutex::Loss) { told.add("lost"); };
  DdbMutex mutex("x", options);
  mutex.lock();
  for (const bool hangs : {false, true}) {
    names.reset();
    if (hangs) {
      names.emplace(FakeNames::hanging);
    } else {
      names.emplace(std::vector<std::string>{});
    }
    for (int i = 0; i < 5; ++i) {
      server.end_idle(Ending::close);
      const int before = server.request_count();
      BOOST_TEST(server.wait_for_requests(before + 1));
    }
  }
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.unlock(); }) == "none");
  BOOST_TEST(count_of(server, "DeleteItem") == 1);
  BOOST_TEST(told.text() == "");
}

BOOST_AUTO_TEST_SUITE_END()

// === What a logger is told ===================================================

// Also that no logger can harm the library.

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

// Two warnings that say so, and how long requests are repeated.
bool has_twice(const Lines& lines, const std::string& told) {
  int count = 0;
  for (const std::string& line : lines.all()) {
    count += has(line, "warning: failing for ") &&
             has(line, " s more: GetItem at ") && has(line, told);
  }
  return count == 2;
}

// For a lock that soon expires, and is in danger for a long time before, so
// that both are reported on a machine that stalls.
Options soon_over(const std::shared_ptr<Table>& table) {
  Options options = on_table(table, 5s);
  options.safe_time = 2300ms;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(diagnosis)

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
  const auto error = error_of([&] { table.inspect("x"); });
  BOOST_TEST_REQUIRE(error.has_value());
  BOOST_TEST(has(error->what(), shown), error->what());
  BOOST_TEST(eventually([&] { return has(lines.text(), shown); }));
  for (const std::string& line : lines.all()) {
    BOOST_TEST(line.find_first_of("\n\x1b") == line.npos, line);
  }
}

namespace {

// What is at an endpoint, and what is said of it.
struct Elsewhere {
  const char* what;
  Reply reply;
  const char* told;
};
std::ostream& operator<<(std::ostream& out, const Elsewhere& one) {
  return out << one.what;
}

Reply of_type(const char* type, Reply reply) {
  return with_header(std::move(reply), "Content-Type", type);
}

const std::vector<Elsewhere>& elsewhere() {
  static const std::vector<Elsewhere> kAll = {
      {"a web server", of_type("text/html", Reply::error(404, "<html>")),
       "bad_answer: HTTP status 404, and the body is not a JSON object"},
      {"a portal", of_type("text/html", Reply::ok("<html>")),
       "bad_answer: HTTP status 200, and the body is not a JSON object"},
      {"a redirect", of_type("text/html", Reply::error(302, "")),
       "bad_answer: HTTP status 302"},
      {"a load balancer", of_type("text/html", Reply::error(503, "<html>")),
       "server_failure: HTTP status 503"},
      {"a deaf server", hanging(), "timed_out"}};
  return kAll;
}

// Locks and looks at what is there; both are to be warned of.
void check_warnings(const std::string& url, const std::string& told) {
  const Lines lines;
  TableOptions options = table_options(url);
  options.logger = lines.logger();
  options.patience = kPlenty + 30s;
  const auto table = std::make_shared<Table>(options);
  Options patient = on_table(table);
  patient.patience = options.patience;
  DdbMutex mutex("x", patient);
  Aside looking([&] { table->inspect("y"); });
  Aside locking([&] { mutex.lock(); });
  BOOST_TEST(eventually([&] { return has_twice(lines, told); }), lines.text());
  table->close(0ms);
  BOOST_TEST(looking.ends());
  BOOST_TEST(locking.ends());
}

}  // namespace

BOOST_DATA_TEST_CASE(server_that_is_not_dynamodb_is_warned_of,
                     boost::unit_test::data::make(elsewhere()), one) {
  ScriptedServer server(
      [reply = one.reply](const SeenRequest&) { return reply; });
  check_warnings(server.url(), one.told);
  server.release();
}

BOOST_AUTO_TEST_CASE(endpoint_that_nobody_is_at_is_warned_of) {
  const ScriptedServer shut(nullptr, ScriptedServer::Scheme::http,
                            ScriptedServer::Door::shut);
  check_warnings(shut.url(), "unreachable: Failed to connect to 127.0.0.1");
  const FakeNames none(std::vector<std::string>{});
  check_warnings("http://locks.invalid/",
                 "unreachable: Could not resolve host: locks.invalid");
}

BOOST_AUTO_TEST_CASE(failure_that_passes_is_nothing_to_warn_of) {
  // A request that takes a second has failed for a second.
  const auto passes = [] {
    Gate gate;
    const Lines lines;
    TableOptions place = table_options(gate);
    place.logger = lines.logger();
    const auto table = with_clock(std::make_shared<Table>(place));
    DdbMutex mutex(fresh_name(), on_table(table));
    gate.once("PutItem", Gate::fails());
    mutex.lock();
    mutex.unlock();
    return has(lines.text(), "warning: ") ? lines.text() : "";
  };
  BOOST_TEST(undisturbed(500ms, passes) == "");
}

BOOST_AUTO_TEST_CASE(logger_that_hangs_delays_neither_losses_nor_renewals) {
  const auto go_on = std::make_shared<Event>();
  const Front front;
  TableOptions place = front.table_options();
  place.logger = [go_on](LogLevel, const std::string&) { go_on->wait(); };
  const auto table = with_clock(std::make_shared<Table>(place));
  Told told;
  Options options = soon_over(table);
  options.renew_after = 200ms;
  options.on_danger = [&] { told.add("danger"); };
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  front.gateway.fault("UpdateItem", "500", 2);
  const auto before = table->stats().update_item;
  BOOST_TEST(eventually([&] {
    return table->stats().update_item >= before + 4 && mutex.owns_lock();
  }));
  front.gateway.mode("hang");
  // The logger has still not returned.
  BOOST_TEST(eventually([&] { return has(told.text(), "danger expired"); }),
             told.text());
  front.gateway.mode("open");
  go_on->set();
}

BOOST_AUTO_TEST_CASE(exception_of_a_logger_is_ignored) {
  Gate gate;
  Told told;
  TableOptions options = table_options(gate);
  options.logger = [&told](LogLevel, const std::string& text) {
    told.add(text);
    throw std::runtime_error("thrown by the logger");
  };
  const auto table = std::make_shared<Table>(options);
  DdbMutex mutex(fresh_name(), on_table(table));
  for (int round = 0; round < 2; ++round) {
    gate.once("PutItem", Gate::fails());
    mutex.lock();
    mutex.unlock();
  }
  BOOST_TEST(told.wait_for(2));  // The second failure is told, too.
}

// What a logger refers to may be destroyed with the table.
BOOST_AUTO_TEST_CASE(nothing_is_told_once_the_table_is_gone) {
  Front front;
  Lines lines;
  TableOptions options = front.table_options();
  options.logger = lines.logger();
  auto table = with_clock(std::make_shared<Table>(options));
  const auto impatient = [&table] {
    Options hasty = lasting(table);
    hasty.request_timeout = 2s;
    return std::make_unique<DdbMutex>(fresh_name(), hasty);
  };
  auto held = impatient(), waited = impatient();
  held->lock();
  front.gateway.mode("hang");
  Aside waiting([&waited] { waited->lock(); });
  BOOST_TEST(
      eventually([&] { return front.gateway.counts().under_way() >= 2; }));
  waited.reset();
  BOOST_TEST(waiting.ends());
  held.reset();
  table.reset();
  const std::string told = lines.text();
  front.gateway.mode("open");
  front.gateway.wait_until_quiet();
  pause(100ms);  // A longer pause adds no line.
  BOOST_TEST(lines.text() == told);
}

BOOST_AUTO_TEST_SUITE_END()
