// Protections of the library that no other test would miss: found by
// tests/mutants, which takes them away one at a time, and by the fuzzers.
#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/clock.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/hold.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/keys.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/given.hpp"
#include "tests/support/held_thread.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/party.hpp"
#include "tests/support/scripted_server.hpp"

namespace fs = std::filesystem;
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

BOOST_AUTO_TEST_SUITE(protections)

namespace {

// Their ids.
std::set<std::string> threads_of_this_process() {
  std::set<std::string> all;
  for (const auto& entry : fs::directory_iterator("/proc/self/task")) {
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

// A lease that no stall ends.
constexpr std::chrono::minutes kLong{10};

// How many renewals of that lock have reached the server.
int renewals_of(const Gate& gate, const std::string& name) {
  int count = 0;
  for (const SeenRequest& request : gate.server().requests()) {
    const bool its = request.body.find(name) != std::string::npos;
    if (its && action_of(request) == "UpdateItem") ++count;
  }
  return count;
}

// Returns when another lock of the table has been renewed three times: the
// sending thread has had the time, and the turns, for all else that was to be
// sent by then.
void let_pass(Gate& gate, const std::shared_ptr<Table>& table) {
  Options options = on_table(table, kLong);
  options.renew_after = 300ms;
  options.request_timeout = kPlenty;  // Each request is sent once.
  DdbMutex other(fresh_name(), options);
  other.lock();
  BOOST_TEST(eventually([&] { return renewals_of(gate, other.name()) >= 3; }));
}

}  // namespace

// --- Waits -----------------------------------------------------------------

// A machine that was stopped: DynamoDB's clock may be as far on as the answer
// says that contradicts the earlier one.
BOOST_AUTO_TEST_CASE(clock_in_doubt_is_as_late_as_the_later_story_has_it) {
  using ddbmutex::dynamodb::kFirstBelievable;
  ddbmutex::dynamodb::ServiceClock clock;
  const BootTime start(1h);
  clock.receive(start, start, kFirstBelievable);
  clock.receive(start + 1s, start + 1s, kFirstBelievable + 1h);
  BOOST_TEST(clock.in_doubt());
  BOOST_TEST((clock.latest(start + 1s) >= kFirstBelievable + 1h));
}

// Not even where a connection is at hand that would take it at once.
BOOST_AUTO_TEST_CASE(request_past_its_deadline_is_not_sent) {
  ScriptedServer server;
  PartySettings settings;
  settings.url = server.url();
  Party party(settings);
  BOOST_TEST(party.take() == "ours");
  BOOST_TEST(party.release() == "released");
  BOOST_TEST(party.take(1ns) == "again");
  BOOST_TEST(party.fault() == "timed_out");
  party.ask_the_time();  // The sender is past that take.
  BOOST_TEST(actions(server) == "PutItem DeleteItem");
}

// The answers themselves call for the next request.
BOOST_AUTO_TEST_CASE(engine_that_contradicts_itself_is_soon_asked_with_pauses) {
  ddbmutex::dynamodb::RetryBudget budget;
  ddbmutex::lock::Series series(budget, ddbmutex::lock::Call::release);
  int at_once = 0;
  for (int i = 0; i < 50; ++i) {
    const auto delay = series.next_delay(ddbmutex::dynamodb::Answer(), 1h);
    BOOST_TEST_REQUIRE(delay.has_value());
    if (delay->count() == 0) ++at_once;
  }
  BOOST_TEST(at_once == 4);
}

// A refusal that tells no row is followed by a look.  An engine that then shows
// none is asked again at once twice; before the look that would follow the
// third refusal there is a pause, for which there is no time.
BOOST_AUTO_TEST_CASE(time_that_is_up_after_a_refusal_tells_no_refusal) {
  ScriptedServer server([](const SeenRequest& request) {
    return action_of(request) == "PutItem"
               ? failure(400, "ConditionalCheckFailedException")
               : Reply::ok("{}");
  });
  const auto table = table_at(server);
  for (int i = 0; i < 40; ++i) {
    DdbMutex mutex("x", on_table(table));
    std::error_code ec;
    BOOST_TEST(!mutex.try_lock_for(48ms, ec));
    BOOST_TEST((!ec || ec == Errc::timed_out), ec.message());
  }
}

// --- Losses ----------------------------------------------------------------

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
  const std::set<pid_t> others = threads_by_id();
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

// --- Unlocking -------------------------------------------------------------

// A thread that only tries does not get it, nor does the one that had it.
BOOST_AUTO_TEST_CASE(lock_is_nobodys_until_its_release_is_over) {
  Gate gate;
  const auto table = table_at(gate);
  Options options = on_table(table);
  options.request_timeout = 25s;
  DdbMutex mutex(fresh_name(), options);
  mutex.lock();
  gate.once("DeleteItem", Gate::answered_late());
  Aside unlocking([&] { mutex.release(); });
  BOOST_TEST(
      eventually([&] { return count_of(gate.server(), "DeleteItem") == 1; }));
  std::atomic<bool> got_in{false};
  const auto attempt = [&] { got_in = got_in || mutex.try_lock(); };
  BOOST_TEST(thrown_by(attempt) == "none");
  BOOST_TEST(Aside(attempt).thrown() == "none");
  BOOST_TEST(!got_in);
  BOOST_TEST(table->stats().put_item == 1u);
  BOOST_TEST(eventually([&] {
    gate.server().release();
    return unlocking.done();
  }));
  BOOST_TEST(unlocking.thrown() == "none");
}

// Another thread unlocks it meanwhile.
BOOST_AUTO_TEST_CASE(thread_that_had_the_lock_waits_for_its_release) {
  Gate gate;
  Options options = on_table(table_at(gate));
  options.request_timeout = 25s;
  DdbMutex mutex(fresh_name(), options);
  Event locked, again;
  Aside first([&] {
    mutex.lock();
    locked.set();
    again.wait();
    mutex.lock();
  });
  BOOST_TEST(locked.wait());
  gate.once("DeleteItem", Gate::answered_late());
  Aside unlocking([&] { mutex.release(); });
  BOOST_TEST(
      eventually([&] { return count_of(gate.server(), "DeleteItem") == 1; }));
  again.set();
  BOOST_TEST(first.rests());
  BOOST_TEST(eventually([&] {
    gate.server().release();
    return unlocking.done();
  }));
  BOOST_TEST(first.thrown() == "none");
  BOOST_TEST(unlocking.thrown() == "none");
}

// The connection that is there is taken by another wait.
BOOST_AUTO_TEST_CASE(unlock_returns_although_the_resolver_hangs) {
  ScriptedServer server([](const SeenRequest& request) {
    const bool second =
        request.body.find("ddblock-second") != std::string::npos;
    return second && action_of(request) == "PutItem" ? hanging() : Reply{};
  });
  std::optional<FakeNames> names(std::in_place,
                                 std::vector<std::string>{"127.0.0.1"});
  const auto table =
      table_at("http://somewhere.test:" + std::to_string(server.port()) + "/");
  Options options = on_table(table, kLong);
  options.request_timeout = 250ms;
  options.auto_renew = false;
  DdbMutex mutex("first", options);
  DdbMutex other("second", on_table(table));
  mutex.lock();
  names.reset();
  names.emplace(FakeNames::hanging);
  Aside waiting([&] { other.lock(); });
  BOOST_TEST(eventually([&] {
    const auto all = server.requests();
    return all.back().body.find("ddblock-second") != std::string::npos;
  }));
  Aside unlocking([&] { mutex.unlock(); });
  BOOST_TEST(unlocking.ends());
  // The release, or another one after it, goes to the last address.
  BOOST_TEST(eventually([&] { return count_of(server, "DeleteItem") >= 1; }));
  other.cancel();
  names.reset();
  server.release();
  BOOST_TEST(waiting.ends());
}

// --- What is left ----------------------------------------------------------

// The answer may say that the lock was had: only then is there anything to take
// back, and a release that came before would find nothing.
BOOST_AUTO_TEST_CASE(take_under_way_is_awaited_before_it_is_taken_back) {
  Gate gate;
  const auto table = table_at(gate);
  Options options = on_table(table, kLong);
  options.request_timeout = kPlenty;
  DdbMutex mutex(fresh_name(), options);
  gate.once("PutItem", Gate::held());
  Aside waiting([&] { mutex.lock(); });
  BOOST_TEST(gate.server().wait_for_requests(1));
  mutex.cancel();
  BOOST_TEST(waiting.ends());
  let_pass(gate, table);
  BOOST_TEST(table->stats().delete_item == 1u);  // The other lock's.
  BOOST_TEST(eventually([&] {
    gate.server().release();
    return table->stats().delete_item >= 2u;
  }));
  BOOST_TEST(eventually([&] { return is_free(gate.engine(), mutex.name()); }));
}

// Left by an unlock() that had no more time for it.  The sending thread finds
// that the table is to end, and that the way to DynamoDB is free, at once.
// Null if the thread had sent the release before it was held, so that the round
// says nothing.
std::optional<std::string> finished_before_the_table_goes() {
  Gate gate;
  const auto others = threads_by_id();
  auto table = table_at(gate);
  Options options = on_table(table);
  options.request_timeout = 200ms;
  std::optional<DdbMutex> mutex(std::in_place, fresh_name(), options);
  const std::string name = mutex->name();
  mutex->lock();
  gate.always("DeleteItem", Gate::held());
  mutex->unlock();
  if (is_free(gate.engine(), name)) return "there is nothing left";
  HeldThread sender(polling_thread(others));
  gate.open();
  mutex.reset();
  options.table.reset();
  Aside going([&] { table.reset(); });
  BOOST_TEST(going.rests());
  const bool sent = is_free(gate.engine(), name);
  sender.let_go();
  BOOST_TEST(going.thrown() == "none");
  if (sent) return std::nullopt;
  return is_free(gate.engine(), name) ? "" : "it was left";
}

BOOST_AUTO_TEST_CASE(table_finishes_what_is_left_before_it_goes) {
  BOOST_TEST(undisturbed(500ms, [] {
               std::optional<std::string> said;
               while (!said) said = finished_before_the_table_goes();
               return *said;
             }) == "");
}

// ... but not for as long as a request may take.
BOOST_AUTO_TEST_CASE(table_that_cannot_finish_goes_all_the_same) {
  Gate gate;
  auto table = table_at(gate);
  Options options = on_table(table, 10min);
  options.request_timeout = 4min;
  std::optional<DdbMutex> mutex(std::in_place, fresh_name(), options);
  gate.always("PutItem", Gate::held());
  Aside waiting([&] { mutex->lock(); });
  BOOST_TEST(gate.server().wait_for_requests(1));
  mutex->cancel();
  BOOST_TEST(waiting.ends());
  mutex.reset();
  options.table.reset();
  Aside going([&] { table.reset(); });
  BOOST_TEST(going.ends());
}

// --- Threads ---------------------------------------------------------------

// A program's handlers run in its own threads, and sigwait() gets what it waits
// for.
BOOST_AUTO_TEST_CASE(threads_of_a_table_take_none_of_the_programs_signals) {
  Engine& engine = Engine::running(any_engine_kind());
  const auto before = threads_of_this_process();
  DdbMutex mutex(fresh_name(), on_table(table_at(engine)));
  mutex.lock();
  int ours = 0;
  for (const std::string& thread : threads_of_this_process()) {
    if (before.count(thread) != 0) continue;
    ++ours;
    // Until it has begun the C library blocks all.
    BOOST_TEST(eventually([&] { return !blocks(thread, SIGSEGV); }));
    // A blocked signal of seccomp's would kill the process.
    BOOST_TEST(!blocks(thread, SIGSYS));
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) {
      BOOST_TEST(blocks(thread, signal));
    }
  }
  BOOST_TEST(ours == 2);
  mutex.unlock();
}

// --- Keys ------------------------------------------------------------------

// However often they are needed, about once a second.
BOOST_AUTO_TEST_CASE(
    source_that_has_no_keys_is_not_asked_by_each_who_needs_some) {
  namespace sigv4 = ddbmutex::sigv4;
  const auto asked = std::make_shared<std::atomic<int>>(0);
  const Stopwatch watch;
  sigv4::Keys keys(tests::source_of([asked](const sigv4::Fetch&) {
                     ++*asked;
                     return sigv4::no_keys({"none here"});
                   }),
                   tests::kNoClock);
  sigv4::CallWaker nobody;
  for (int i = 0; i < 300; ++i) {
    keys.await(BootClock::now() + kPlenty, nobody);
  }
  BOOST_TEST(*asked >= 1);
  BOOST_TEST(*asked <= 2 + watch.ms() / 1000);
}

BOOST_AUTO_TEST_SUITE_END()

// --- What fuzzers found ------------------------------------------------------

// What the fuzzers of tests/fuzz start from and have found, through every
// target in the ordinary build: no input breaks a promise, none takes long.
BOOST_AUTO_TEST_SUITE(fuzz)

namespace {

using tests::fuzz::Bytes;
using tests::fuzz::kTargets;
using tests::fuzz::Target;

const fs::path kHome = "tests/fuzz";

// "date/leap-second" and what it holds.
using Corpus = std::map<std::string, std::string>;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(project() / folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Corpus corpus_of(const std::string& target) {
  Corpus corpus;
  for (const std::string& name : names_in(kHome / "corpus" / target)) {
    corpus[target + "/" + name] = read_file(kHome / "corpus" / target / name);
  }
  return corpus;
}

Corpus whole_corpus() {
  Corpus corpus;
  for (const Target& target : kTargets) corpus.merge(corpus_of(target.name));
  return corpus;
}

// Of computing; more with what a sanitizer adds, above all where the mutants
// have the library unoptimized (1.4 s in TSan, for objects a thousand deep).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::clock_t kLongSeconds = 30;
#else
constexpr std::clock_t kLongSeconds = 1;
#endif

// What is wrong with a target's run; empty if nothing is.
std::string wrong_with(const Target& target, Bytes input) {
  const std::clock_t begin = std::clock();
  try {
    target.run(input);
  } catch (const std::exception& broken) {
    return broken.what();
  }
  const bool quick = std::clock() - begin < kLongSeconds * CLOCKS_PER_SEC;
  return quick ? "" : "took too long";
}

void check(const Target& target, const std::string& name, Bytes input) {
  const std::string wrong = wrong_with(target, input);
  BOOST_TEST(wrong.empty(), target.name << " with " << name << ": " << wrong);
}

}  // namespace

BOOST_AUTO_TEST_CASE(kept_inputs_break_no_promise_of_any_target) {
  const Corpus corpus = whole_corpus();
  for (const Target& target : kTargets) {
    for (const auto& [name, input] : corpus) check(target, name, input);
  }
}

BOOST_AUTO_TEST_CASE(kept_inputs_cut_anywhere_break_no_promise) {
  for (const Target& target : kTargets) {
    for (const auto& [name, input] : corpus_of(target.name)) {
      const std::size_t step = input.size() / 16 + 1;
      for (std::size_t size = 0; size < input.size(); size += step) {
        check(target, name + " cut to " + std::to_string(size),
              Bytes(input).substr(0, size));
      }
    }
  }
}

// Also where assert() is compiled out.
BOOST_AUTO_TEST_CASE(broken_promise_is_told) {
  const Target breaks = {"breaks", [](Bytes bytes) {
                           tests::fuzz::claim(bytes.empty(), "empty");
                         }};
  BOOST_TEST(wrong_with(breaks, "") == "");
  BOOST_TEST(wrong_with(breaks, "x") == "empty");
}

BOOST_AUTO_TEST_SUITE_END()
