// Protections of the library that no other test would miss: found by
// tests/mutants, which takes them away one at a time.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "ddbmutex.hpp"
#include "dynamodb/clock.hpp"
#include "lock/protocol.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/party.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Loss;
using ddbmutex::name_of;
using ddbmutex::Options;
using ddbmutex::Table;

namespace {

// Their ids.
std::set<std::string> threads_of_this_process() {
  std::set<std::string> all;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    all.insert(entry.path().filename());
  }
  return all;
}

// False too if there is no such thread.
bool blocks(const std::string& thread, int signal) {
  std::ifstream status("/proc/self/task/" + thread + "/status");
  std::string word;
  while (status >> word) {
    if (word != "SigBlk:") continue;
    status >> word;
    return (std::stoull(word, nullptr, 16) >> (signal - 1) & 1) == 1;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(protections)

// --- Waits -----------------------------------------------------------------

// However short the leases are that the waiter itself takes.
BOOST_AUTO_TEST_CASE(record_is_waited_for_by_the_lease_that_it_names) {
  using namespace ddbmutex::lock;
  Lease lease("ours", 1s);
  Observation observation;
  const ddbmutex::dynamodb::ServiceClock clock;
  const BootTime start(1h);
  lease.next(Call::take, start, clock, calendar(), observation);
  Row theirs;
  theirs.kind = Row::Kind::record;
  theirs.uuid = "theirs";
  theirs.expires = calendar();
  theirs.lease = 60s;
  ddbmutex::lock::Reply refused;
  refused.outcome = ddbmutex::lock::Reply::Outcome::refused;
  refused.row = theirs;
  refused.received = start;
  BOOST_TEST((lease.heard(refused, clock, observation) == Verdict::busy));
  BOOST_TEST((observation.stale_at() == start + waited_for(60s)));
}

// Not even where a connection is at hand that would take it at once.
BOOST_AUTO_TEST_CASE(request_past_its_deadline_is_not_sent) {
  ScriptedServer server;
  PartySettings settings;
  settings.url = server.url();
  Party party(settings);
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.release() == "released");
  party.begin();
  BOOST_TEST(party.run(Party::Call::take, -1ms) == "again");
  BOOST_TEST(party.fault() == "timed_out");
  BOOST_TEST(party.counts() == "Put 1 Update 0 Delete 1 Get 0");
}

// --- Losses ----------------------------------------------------------------

// The thread that sends may be held up by what it calls: libcurl, in a resolver
// of old.  The one that tells never is.
BOOST_AUTO_TEST_CASE(loss_is_told_in_time_while_the_sending_thread_hangs) {
  Engine& engine = Engine::running(any_engine_kind());
  const std::string name = fresh_name();
  BootTime told_at{};
  Told told;
  Options options = on_table(table_at(engine), 3s);
  options.on_lost = [&](Loss loss) {
    told_at = BootClock::now();
    told.add(name_of(loss));
  };
  DdbMutex ours(name, options);
  DdbMutex theirs(name, on_table(table_at(engine), 3s));
  const auto others = threads_by_id();
  ours.lock();
  HeldThread sender(polling_thread(others));
  theirs.lock();
  const BootTime in_at = BootClock::now();
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST((told_at < in_at));
  sender.let_go();
  BOOST_TEST(thrown_by([&] { ours.release(); }) == words(Errc::lease_lost));
  BOOST_TEST(told.text() == "expired");
  BOOST_TEST(theirs.owns_lock());
}

// The lease ended first, and its release finds that it was taken since.
BOOST_AUTO_TEST_CASE(loss_by_expiry_and_then_by_another_is_told_once) {
  Gate gate;
  const std::string name = fresh_name();
  Told told;
  Options options = on_table(table_at(gate), 300ms);
  options.on_lost = [&](Loss loss) { told.add(name_of(loss)); };
  std::optional<DdbMutex> ours(std::in_place, name, options);
  ours->lock();
  gate.always("UpdateItem", Gate::fails());
  BOOST_TEST(told.wait_for(1));
  write_row(gate.engine(), name, live_record());
  BOOST_TEST(thrown_by([&] { ours->release(); }) == words(Errc::lease_lost));
  BOOST_TEST(count_of(gate.server(), "DeleteItem") == 1);
  ours.reset();  // Waits for what is to be told.
  BOOST_TEST(told.text() == "expired");
  BOOST_TEST(row_of(gate.engine(), name).uuid == "theirs");
}

// A table both of whose threads are held up, the one that tells by a callback:
// nobody can say that a lease is over.  It has a lock that is held for a
// second, and no longer.
struct HeldUp {
  HeldUp() {
    Options options = on_table(table, 400ms);
    options.on_lost = [this](Loss) {
      slow.set();
      go_on.wait();
    };
    first.emplace(fresh_name(), options);
    options.ttl = 1s;
    options.on_lost = [this](Loss loss) { told.add(name_of(loss)); };
    second.emplace(fresh_name(), options);
    const auto others = threads_by_id();
    first->lock();
    delete_row(engine, first->name());
    BOOST_TEST(slow.wait());
    second->lock();
    sender.emplace(polling_thread(others));
    BOOST_TEST(eventually([&] { return !second->owns_lock(); }, kPlenty / 2));
  }
  ~HeldUp() { let_go(); }
  void let_go() {
    sender.reset();
    go_on.set();
  }

  Engine& engine = Engine::running(any_engine_kind());
  const std::shared_ptr<Table> table = table_at(engine);
  std::optional<HeldThread> sender;
  Event slow, go_on;
  Told told;
  std::optional<DdbMutex> first, second;
};

BOOST_AUTO_TEST_CASE(lock_is_owned_until_its_end_by_the_clock_alone) {
  HeldUp x;
  BOOST_TEST(!x.second->owns_lock());
  BOOST_TEST(x.second->remaining().count() == 0);
}

BOOST_AUTO_TEST_CASE(release_of_an_expired_lock_says_so_before_it_was_told) {
  HeldUp x;
  BOOST_TEST(thrown_by([&] { x.second->release(); }) ==
             words(Errc::lease_lost));
  BOOST_TEST(x.told.text() == "");
  x.let_go();
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(x.told.text() == "expired");
}

// The loser may still be at work on what the lock protects, in this process
// too.
BOOST_AUTO_TEST_CASE(
    lost_lock_is_had_by_no_other_thread_before_it_is_unlocked) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto table = table_at(engine);
  Told told;
  Options options = on_table(table, 600ms);
  options.on_lost = [&](Loss loss) { told.add(name_of(loss)); };
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  delete_row(engine, mutex.name());
  BOOST_TEST(told.wait_for(1));
  std::atomic<bool> got_in{true};
  const auto attempt = [&] {
    got_in = mutex.try_lock();
    if (got_in) mutex.unlock();
  };
  BOOST_TEST(Aside(attempt).thrown() == "none");
  BOOST_TEST(!got_in);
  BOOST_TEST(table->stats().put_item == 1u);
  mutex.unlock();
  BOOST_TEST(Aside(attempt).thrown() == "none");
  BOOST_TEST(got_in);
}

// --- Unlocking -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(next_thread_asks_for_the_lock_once_it_is_released) {
  Gate gate;
  DdbMutex mutex(fresh_name(), on_table(table_at(gate)));
  mutex.lock();
  gate.once("DeleteItem", Gate::answered_late());
  Aside next([&] { mutex.lock(); });
  BOOST_TEST(next.rests());
  Aside unlocking([&] { mutex.release(); });
  BOOST_TEST(
      eventually([&] { return count_of(gate.server(), "DeleteItem") == 1; }));
  BOOST_TEST(next.rests());
  BOOST_TEST(!mutex.owns_lock());
  BOOST_TEST(count_of(gate.server(), "PutItem") == 1);
  BOOST_TEST(eventually([&] {
    gate.server().release();
    return unlocking.done();
  }));
  BOOST_TEST(unlocking.thrown() == "none");
  BOOST_TEST(next.thrown() == "none");
  BOOST_TEST(mutex.owns_lock());
  mutex.unlock();
}

// Left by an unlock() that had no more time for it.
BOOST_AUTO_TEST_CASE(table_finishes_what_is_left_before_it_goes) {
  Gate gate;
  auto table = table_at(gate);
  Options options = on_table(table);
  options.request_timeout = 200ms;
  std::optional<DdbMutex> mutex(std::in_place, fresh_name(), options);
  const std::string name = mutex->name();
  mutex->lock();
  gate.always("DeleteItem", Gate::held());
  mutex->unlock();
  BOOST_TEST(!is_free(gate.engine(), name));
  gate.open();
  mutex.reset();
  options.table.reset();
  table.reset();
  BOOST_TEST(is_free(gate.engine(), name));
}

// ... but not for as long as a lease may last.
BOOST_AUTO_TEST_CASE(table_that_cannot_finish_goes_all_the_same) {
  Gate gate;
  auto table = table_at(gate);
  Options options = on_table(table, 30s);
  options.request_timeout = 200ms;
  std::optional<DdbMutex> mutex(std::in_place, fresh_name(), options);
  mutex->lock();
  gate.always("DeleteItem", Gate::held());
  mutex->unlock();
  const Stopwatch watch;
  mutex.reset();
  options.table.reset();
  table.reset();
  BOOST_TEST(watch.ms() < 20'000);
}

// --- Threads ---------------------------------------------------------------

// A program's handlers run in its own threads, and sigwait() gets what it waits
// for.
BOOST_AUTO_TEST_CASE(threads_of_a_table_take_none_of_the_programs_signals) {
  DdbMutex mutex(fresh_name(),
                 on_table(table_at(Engine::running(any_engine_kind()))));
  const auto before = threads_of_this_process();
  mutex.lock();
  int ours = 0;
  for (const std::string& thread : threads_of_this_process()) {
    if (before.count(thread) != 0) continue;
    ++ours;
    // Until it has begun the C library blocks all.
    BOOST_TEST(eventually([&] { return !blocks(thread, SIGSEGV); }));
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
      BOOST_TEST(blocks(thread, signal));
    }
  }
  BOOST_TEST(ours == 2);
  mutex.unlock();
}

// A TLS library may write to a connection that the server has closed in a way
// that raises SIGPIPE, whose default action ends the process.
BOOST_AUTO_TEST_CASE(thread_in_a_tls_exchange_takes_no_sigpipe) {
  ScriptedServer server(nullptr, ScriptedServer::Scheme::https);
  auto where = table_options(server);
  where.ca_file = server.certificate_file();
  Options options = on_table(std::make_shared<Table>(where));
  options.request_timeout = kPlenty;
  DdbMutex mutex(fresh_name(), options);
  server.script(hanging());
  std::atomic<pid_t> locking{0};
  Aside aside([&] {
    locking = gettid();
    mutex.lock();
  });
  BOOST_TEST_REQUIRE(server.wait_for_requests(1));
  BOOST_TEST(
      eventually([&] { return blocks(std::to_string(locking), SIGPIPE); }));
  BOOST_TEST(eventually([&] {
    server.release();
    return aside.done();
  }));
  BOOST_TEST(aside.thrown() == "none");
  mutex.unlock();
}

// --- Renewals --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(renewal_that_is_not_answered_leaves_time_for_another) {
  Gate gate;
  Told told;
  Options options = on_table(table_at(gate), 2s);
  options.request_timeout = 200ms;
  options.on_lost = [&](Loss loss) { told.add(name_of(loss)); };
  DdbMutex mutex(fresh_name(), options);
  gate.once("UpdateItem", Gate::held());
  mutex.lock();
  const BootTime end = BootClock::now() + 2s;
  BOOST_TEST(eventually([&] { return BootClock::now() > end; }));
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(thrown_by([&] { mutex.release(); }) == "none");
  BOOST_TEST(told.text() == "");
}

BOOST_AUTO_TEST_SUITE_END()
