// A mutex in its process: shared by real threads, in a forked child, in a
// thread that is cancelled, when its process ends, and when an allocation
// fails.  What depends on the order of events is judged in the simulated world.
#include <openssl/rand.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <ostream>
#include <set>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/process.hpp"
#include "sigv4/system.hpp"
#include "tests/allocations/reach.hpp"
#include "tests/support/agent.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/failure_kit.hpp"
#include "tests/support/forked_child.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/scripted_server.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Error;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using ddbmutex::sigv4::PerProcess;
using ddbmutex::sigv4::this_process;

// === Without the kernel's randomness ========================================

namespace {

// A kernel or a sandbox without getrandom(2), and an OpenSSL without a source.
std::atomic<bool> lacks_getrandom{false}, lacks_openssls{false};

struct WithoutRandomness {
  explicit WithoutRandomness(bool openssls) {
    lacks_getrandom = true;
    lacks_openssls = !openssls;
  }
  ~WithoutRandomness() { lacks_getrandom = lacks_openssls = false; }
};

}  // namespace

// The linker finds these before those of the C library and of libcrypto.
extern "C" int getentropy(void* begin, size_t size) {
  if (lacks_getrandom) {
    errno = ENOSYS;
    return -1;
  }
  const long got = syscall(SYS_getrandom, begin, size, 0);
  return got == static_cast<long>(size) ? 0 : -1;
}

extern "C" int RAND_bytes(unsigned char* begin, int size) {
  if (lacks_openssls) return 0;
  return RAND_bytes_ex(nullptr, begin, static_cast<std::size_t>(size), 0);
}

BOOST_AUTO_TEST_SUITE(randomness)

BOOST_AUTO_TEST_CASE(locks_are_taken_with_openssls_randomness) {
  const WithoutRandomness without(true);
  Gate gate;
  DdbMutex mutex(fresh_name(), on_table(table_at(gate)));
  std::set<std::string> proofs;
  for (int i = 0; i < 3; ++i) {
    mutex.lock();
    proofs.insert(row_of(gate.engine(), mutex.name()).uuid);
    mutex.unlock();
  }
  BOOST_TEST(proofs.size() == 3u);
}

BOOST_AUTO_TEST_CASE(every_byte_is_random) {
  const WithoutRandomness without(true);
  std::array<unsigned char, 256> all{}, some{};
  for (int i = 0; i < 20; ++i) {
    ddbmutex::sigv4::fill_with_randomness(some.data(), some.size());
    for (std::size_t at = 0; at < all.size(); ++at) all[at] |= some[at];
  }
  BOOST_TEST(std::count(all.begin(), all.end(), 0) == 0);
}

BOOST_AUTO_TEST_CASE(process_without_any_randomness_says_so_and_ends) {
  int pipe_ends[2];
  BOOST_REQUIRE(pipe(pipe_ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    begin_as_child();
    const WithoutRandomness without(false);
    dup2(pipe_ends[1], STDERR_FILENO);
    const rlimit no_files = {0, 0};  // Nor can the device be opened.
    setrlimit(RLIMIT_NOFILE, &no_files);
    signal(SIGABRT, SIG_DFL);
    unsigned char byte;
    ddbmutex::sigv4::fill_with_randomness(&byte, 1);
    _exit(0);
  }
  close(pipe_ends[1]);
  std::string text(200, '\0');
  const ssize_t size = read(pipe_ends[0], text.data(), text.size());
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
  close(pipe_ends[0]);
  int status = 0;
  BOOST_TEST(waitpid(child, &status, 0) == child);
  BOOST_TEST(WIFSIGNALED(status));
  BOOST_TEST(text ==
             "ddbmutex: this system has no random bytes, neither by "
             "getrandom(2) nor by OpenSSL nor in /dev/urandom\n");
}

BOOST_AUTO_TEST_SUITE_END()

// === Shared by threads =======================================================

// Deadlocks, waits that are given up, releases that fail, and what one thread's
// call means for another thread's lock.

namespace {

const std::string kCancelled = words(Errc::cancelled);
const std::string kClosed = words(Errc::closed);

// A lock on an engine, with a gate before it.
struct Gated {
  Gated() : table(table_at(gate)) {
    Options options = on_table(table, 1min);
    options.first_poll = 5ms;
    options.longest_poll = 20ms;
    mutex = std::make_unique<DdbMutex>(name, options);
  }

  int puts() const { return count_of(gate.server(), "PutItem"); }
  bool free() { return is_free(gate.engine(), name); }
  // Releases hanging requests again and again until the condition is true.
  template <class Condition>
  bool released_until(const Condition& condition) {
    return eventually([&] {
      gate.server().release();
      return condition();
    });
  }

  Gate gate;
  const std::string name = fresh_name();
  const std::shared_ptr<Table> table;
  std::unique_ptr<DdbMutex> mutex;
};

// Gives up a request after kHasty.
Options hasty(const std::shared_ptr<Table>& table) {
  Options options = on_table(table);
  options.request_timeout = kHasty;
  return options;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(threads)

// --- Locking twice, unlocking for another ----------------------------------

BOOST_AUTO_TEST_CASE(locking_twice_in_a_thread_is_refused_as_a_deadlock) {
  ScriptedServer server;
  DdbMutex mutex("x", on_table(table_at(server)));
  mutex.lock();
  std::error_code ec;
  mutex.lock(ec);
  BOOST_TEST((ec == std::errc::resource_deadlock_would_occur), ec.message());
  BOOST_CHECK_EXCEPTION(mutex.lock(), Error, [](const Error& error) {
    return error.code() == std::errc::resource_deadlock_would_occur;
  });
  ec = Errc::closed;
  BOOST_TEST(!mutex.try_lock(ec));
  BOOST_TEST(!ec);
  const Stopwatch watch;
  BOOST_TEST(!mutex.try_lock_for(100ms, ec));
  BOOST_TEST(!ec);
  BOOST_TEST(watch.ms() >= 100);
  BOOST_TEST(mutex.owns_lock());
  BOOST_TEST(actions(server) == "PutItem");
  mutex.unlock();
  mutex.lock(ec);  // Now it can be locked again.
  BOOST_TEST(!ec);
}

// --- What given-up waits leave ---------------------------------------------

namespace {

// A way to end a wait whose request is in flight, and what the wait throws.
struct GivingUp {
  const char* what;
  std::function<void(Gated&)> end;
  std::string thrown;
};

std::vector<GivingUp> endings() {
  return {{"cancel", [](Gated& x) { x.mutex->cancel(); }, kCancelled},
          {"close", [](Gated& x) { x.table->close(); }, kClosed},
          {"destructor", [](Gated& x) { x.mutex.reset(); }, kCancelled}};
}

}  // namespace

BOOST_AUTO_TEST_CASE(wait_that_is_ended_takes_back_what_it_is_given_later) {
  for (const auto& rule : {Gate::held(), Gate::answered_late()}) {
    for (const GivingUp& ending : endings()) {
      Gated x;
      x.gate.once("PutItem", rule);
      DdbMutex* mutex = x.mutex.get();
      Aside waiter([mutex] { mutex->lock(); });
      BOOST_TEST(x.gate.server().wait_for_requests(1));
      ending.end(x);
      BOOST_TEST(waiter.ends(), ending.what);
      BOOST_TEST(waiter.thrown() == ending.thrown, ending.what);
      // There must be no release before the answer.  No stall brings one.
      pause(20ms);
      BOOST_TEST(count_of(x.gate.server(), "DeleteItem") == 0);
      BOOST_TEST(x.released_until([&] {
        return count_of(x.gate.server(), "DeleteItem") >= 1;
      }),
                 ending.what);
      BOOST_TEST(eventually([&] { return x.free(); }), ending.what);
      BOOST_TEST(x.puts() == 1);
    }
  }
}

// --- Releases that do not come through -------------------------------------

BOOST_AUTO_TEST_CASE(release_that_fails_is_reported_and_retried_after_it) {
  Gated x;
  DdbMutex mutex(x.name, hasty(x.table));
  mutex.lock();
  x.gate.always("DeleteItem", Gate::fails());
  std::string thrown;
  BOOST_TEST(returns_within(
      kHasty, [&] { thrown = thrown_by([&] { mutex.release(); }); }));
  // The time may be up during a request or between two.
  BOOST_TEST(
      (thrown == words(Errc::unavailable) || thrown == words(Errc::timed_out)),
      thrown);
  BOOST_TEST(!mutex.owns_lock());
  const int deletes = count_of(x.gate.server(), "DeleteItem");
  BOOST_TEST(eventually(
      [&] { return count_of(x.gate.server(), "DeleteItem") > deletes; }));
  x.gate.open();
  BOOST_TEST(eventually([&] { return x.free(); }));
}

BOOST_AUTO_TEST_CASE(unlock_that_hangs_returns_in_time_and_goes_on) {
  Gated x;
  {
    DdbMutex mutex(x.name, hasty(x.table));
    mutex.lock();
    x.gate.once("DeleteItem", Gate::fails_late());
    BOOST_TEST(returns_within(kHasty, [&] { mutex.unlock(); }));
    BOOST_TEST(!mutex.owns_lock());
    BOOST_TEST(mutex.last_error() != "");
  }
  // Also when the mutex is no more.
  BOOST_TEST(x.released_until([&] { return x.free(); }));
}

// --- What one call learns, and what a user's function throws ----------------

BOOST_AUTO_TEST_CASE(what_one_call_hears_of_the_clock_ends_the_claims_of_all) {
  std::atomic<int> minutes{0};  // As if this machine had stood still for them.
  ScriptedServer server([&](const SeenRequest& request) {
    const bool first = request.body.find("ddblock-held") != std::string::npos;
    if (first || minutes == 0) return Reply{};
    return with_header(server_failure(), "Date",
                       http_date(minutes.load() * 60s));
  });
  const auto table = table_at(server);
  Told told;
  Options options = on_table(table, 10min);
  options.auto_renew = false;  // It would be renewed as soon as its age shows.
  options.on_lost = [&](ddbmutex::Loss loss) { told.add(name_of(loss)); };
  DdbMutex held("held", options);
  DdbMutex other("other", on_table(table));
  held.lock();
  BOOST_REQUIRE(held.owns_lock());

  minutes = 5;
  Aside waiter([&] {
    if (other.try_lock_for(1h)) other.unlock();
  });
  BOOST_TEST(eventually([&] { return held.remaining() < 6min; }));
  BOOST_TEST(held.owns_lock());
  minutes = 60;
  // While that call goes on.
  BOOST_TEST(eventually([&] { return !held.owns_lock(); }));
  BOOST_TEST(!waiter.done());
  BOOST_TEST(told.wait_for(1));
  BOOST_TEST(told.text() == "expired");
  other.cancel();
  BOOST_TEST(waiter.ends());
}

BOOST_AUTO_TEST_CASE(source_of_keys_that_throws_has_none) {
  ScriptedServer server;
  TableOptions options = table_options(server);
  options.credentials_source = []() -> std::optional<ddbmutex::Credentials> {
    throw std::runtime_error("the vault is shut");
  };
  Options patient = on_table(std::make_shared<Table>(options));
  patient.patience = 200ms;
  DdbMutex mutex("m", patient);
  const auto error = error_of([&] { mutex.lock(); });
  BOOST_REQUIRE(error.has_value());
  BOOST_TEST((error->code() == Errc::no_keys));
  BOOST_TEST(std::string(error->what()).find("the vault is shut") !=
             std::string::npos);
  BOOST_TEST(server.request_count() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// === State of each process ===================================================

// this_process() and PerProcess, on which the behaviour after a fork is built.

namespace {

// Whether `check` is true in a child of this process.
bool in_a_child(const std::function<bool()>& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  while (waitpid(child, &status, 0) == -1 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

struct Counted {
  explicit Counted(int the_value) : value(the_value) { ++made; }
  ~Counted() { ++destroyed; }
  const int value;
  static int made, destroyed;
};
int Counted::made = 0;
int Counted::destroyed = 0;

}  // namespace

BOOST_AUTO_TEST_SUITE(process)

BOOST_AUTO_TEST_CASE(every_process_has_its_own_number_and_keeps_it) {
  const std::uint64_t parent = this_process();
  BOOST_TEST(parent == this_process());
  BOOST_TEST(in_a_child([parent] {
    const std::uint64_t child = this_process();
    return child != parent && child == this_process() &&
           in_a_child([parent, child] {
             return this_process() != parent && this_process() != child;
           });
  }));
  BOOST_TEST(parent == this_process());
}

BOOST_AUTO_TEST_CASE(child_sees_nothing_of_its_parent_and_destroys_nothing) {
  Counted::made = Counted::destroyed = 0;
  {
    PerProcess<Counted> state;
    BOOST_TEST(state.peek() == nullptr);
    Counted& mine = state.get(1);
    BOOST_TEST(&mine == state.peek());
    BOOST_TEST(&mine == &state.get(2));
    BOOST_TEST(in_a_child([&] {
      return state.peek() == nullptr && state.get(3).value == 3 &&
             state.get(4).value == 3 && Counted::destroyed == 0;
    }));
    BOOST_TEST(state.peek()->value == 1);
  }
  BOOST_TEST(Counted::made == 1);
  BOOST_TEST(Counted::destroyed == 1);
}

BOOST_AUTO_TEST_SUITE_END()

// === Forks, exits, cancelled threads =========================================

namespace {

// Options of a lock that stays held and is renewed often.
const char* const kLasting = "renew_after=50";

// A process that holds "a", ...
struct Parent {
  explicit Parent(Engine& the_engine = Engine::running(any_engine_kind()),
                  const std::string& options = "")
      : engine(the_engine), agent(at(engine)) {
    agent.make("a", name, options);
    BOOST_TEST_REQUIRE(agent.ask("lock a") == "true");
    uuid = row_of(engine, name).uuid;
  }
  // ... and still does, whatever its children did.
  void must_still_hold() {
    BOOST_TEST(agent.ask("owns a") == "true");
    BOOST_TEST(agent.ask("losses a") == "");
    BOOST_TEST(row_of(engine, name).uuid == uuid);
  }

  Engine& engine;
  const std::string name = fresh_name();
  Agent agent;
  std::string uuid;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(forks)

BOOST_AUTO_TEST_CASE(child_holds_nothing_of_its_parents) {
  Parent parent;
  ForkedAgent child(parent.agent, "fork");
  BOOST_TEST(child.ask("owns a") == "false");
  BOOST_TEST(child.ask("remaining a") == "0");
  BOOST_TEST(child.ask("release a") == refused(Errc::not_held));
  BOOST_TEST(child.ask("unlock a") == "done");
  BOOST_TEST(child.ask("try a") == "false");
  parent.must_still_hold();
}

BOOST_AUTO_TEST_CASE(child_that_destroys_its_copy_leaves_the_parents_lock) {
  Gate gate;
  Whereabouts where = at(gate.engine());
  where.url = gate.server().url();
  const std::string name = fresh_name();
  Agent parent(where);
  parent.make("a", name, kLasting);
  BOOST_TEST_REQUIRE(parent.ask("lock a") == "true");
  ForkedAgent one(parent, "fork");
  BOOST_TEST(one.ask("unlock a") == "done");
  BOOST_TEST(one.ask("delete a") == "done");
  BOOST_TEST(one.end() == "0");
  for (const char* how : {"exit 0", "quick_exit 0", "_exit 0"}) {
    ForkedAgent other(parent, "fork");
    BOOST_TEST(other.end_by(how) == "0");
  }
  // The connections that they share still work, for the parent's renewals.
  const int before = count_of(gate.server(), "UpdateItem");
  BOOST_TEST(eventually(
      [&] { return count_of(gate.server(), "UpdateItem") > before + 2; }));
  BOOST_TEST(parent.ask("owns a") == "true");
  BOOST_TEST(parent.ask("losses a") == "");
  BOOST_TEST(count_of(gate.server(), "DeleteItem") == 0);
}

BOOST_AUTO_TEST_CASE(child_waits_for_its_parents_lock) {
  Parent parent;
  ForkedAgent child(parent.agent, "fork");
  child.ask("begin a lock");
  BOOST_TEST(parent.agent.ask("release a") == "true");
  BOOST_TEST(child.ask("join a") == "true");
  BOOST_TEST(child.ask("owns a") == "true");
  const std::string owner = row_of(parent.engine, parent.name).owner;
  BOOST_TEST(has(owner, ":" + std::to_string(child.pid())));
  BOOST_TEST(parent.agent.ask("owns a") == "false");
  BOOST_TEST(parent.agent.ask("try a") == "false");
  BOOST_TEST(child.end() == "0");
  BOOST_TEST(parent.agent.ask("try a") == "true");
}

BOOST_AUTO_TEST_CASE(children_forked_amid_calls_are_well) {
  const Engine& engine = Engine::running(any_engine_kind());
  for (int i = 0; i < 4; ++i) {
    Process storm({{program_path("processes/fork_storm"), engine.table(),
                    fresh_name(), "10"},
                   environment_of(at(engine))});
    BOOST_TEST(storm.wait() == 0);
    BOOST_TEST(storm.complaints() == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(exits)

namespace {

// An engine with a table of the name that Table::standard() uses.
class StandardTable {
 public:
  static StandardTable& only() {
    static StandardTable instance;
    return instance;
  }

  const Whereabouts& where() const { return where_; }
  Engine& engine() { return engine_; }
  bool has_row(const std::string& name) { return table_->inspect(name).exists; }
  void delete_row(const std::string& name) {
    engine_.must_call("DeleteItem",
                      R"({"TableName":"locks","Key":{"name":{"S":"ddblock-)" +
                          name + R"("}}})");
  }

 private:
  StandardTable() : where_(at(engine_)) {
    where_.table = "locks";
    table_ = table_at(where_);
    engine_.must_call(
        "CreateTable",
        R"({"TableName":"locks","BillingMode":"PAY_PER_REQUEST",)"
        R"("KeySchema":[{"AttributeName":"name","KeyType":"HASH"}],)"
        R"("AttributeDefinitions":)"
        R"([{"AttributeName":"name","AttributeType":"S"}]})");
  }

  Engine engine_{any_engine_kind()};
  Whereabouts where_;
  std::shared_ptr<ddbmutex::Table> table_;
};

// What is left of the lock once the process has ended.
enum class Then { anything, row_left, row_gone };

struct ExitCase {
  const char* name;
  Then then;
};

std::ostream& operator<<(std::ostream& out, const ExitCase& exit) {
  return out << exit.name;
}

// See tests/processes/exits.cpp.
const std::vector<ExitCase> kExits = {
    {"return_from_main", Then::row_gone},
    {"locked_before_main", Then::row_gone},
    {"exit_from_a_thread", Then::row_gone},
    {"handler_that_locks", Then::row_gone},
    {"child_exits", Then::row_gone},
    {"destructor_that_locks_too_late", Then::row_gone},
    {"handler_that_locks_too_late", Then::row_gone},
    {"destructor_that_unlocks", Then::row_left},
    {"destructor_that_closes", Then::row_left},
    {"handler_that_closes", Then::row_left},
    {"without_getrandom", Then::row_gone},
    {"without_leave_to_getrandom", Then::row_gone},
    {"leaked_mutex", Then::row_left},
    {"quick_exit", Then::row_left},
    {"with_threads_that_lock", Then::anything},
};

Process started(const std::string& name, const std::string& lock,
                const std::string& other = fresh_name(),
                const Whereabouts& where = StandardTable::only().where()) {
  return Process({{program_path("processes/exits"), name, lock, other},
                  environment_of(where)});
}

// Without a crash, a hang or a sanitizer's report.
void must_end_well(Process& process) {
  BOOST_TEST(process.wait() == 0);
  BOOST_TEST(process.complaints() == "");
}

// For a process whose on_lost callback must be running when it ends.  The
// callback runs because the row of its lock "-observed" is deleted here.
void must_end_well_amid_callbacks(const std::string& name,
                                  const std::string& last_line = "") {
  const std::string lock = fresh_name();
  Process process = started(name, lock);
  BOOST_TEST_REQUIRE(process.channel().line() == "held");
  StandardTable::only().delete_row(lock + "-observed");
  if (!last_line.empty()) {
    BOOST_TEST(process.channel().line() == last_line);
  }
  must_end_well(process);
  BOOST_TEST(!StandardTable::only().has_row(lock));
}

// The process has the address of the standard table behind TLS, too.  Returns
// what it has asked there.
std::string asked_over_tls(const std::string& name) {
  StandardTable& table = StandardTable::only();
  ScriptedServer server(
      [&](const SeenRequest& request) {
        return table.engine().forward(request);
      },
      ScriptedServer::Scheme::https);
  const std::string lock = fresh_name();
  auto environment = environment_of(table.where());
  environment.push_back("EXITS_ENDPOINT=" + server.url());
  environment.push_back("EXITS_CA_FILE=" + server.certificate_file());
  Process process({{program_path("processes/exits"), name, lock, fresh_name()},
                   environment});
  must_end_well(process);
  return actions(server) + (table.has_row(lock) ? ", row left" : "");
}

}  // namespace

BOOST_DATA_TEST_CASE(process_ends_well, boost::unit_test::data::make(kExits),
                     exit) {
  const std::string lock = fresh_name();
  Process process = started(exit.name, lock);
  must_end_well(process);
  if (exit.then == Then::anything) return;
  BOOST_TEST(StandardTable::only().has_row(lock) ==
             (exit.then == Then::row_left));
}

BOOST_AUTO_TEST_CASE(static_destructor_locks_over_tls) {
  BOOST_TEST(asked_over_tls("destructor_that_unlocks_over_tls") ==
             "GetItem PutItem, row left");
  BOOST_TEST(asked_over_tls("tls_in_a_static_destructor") ==
             "GetItem PutItem DeleteItem");
  BOOST_TEST(asked_over_tls("tls_too_late") == "");
}

BOOST_DATA_TEST_CASE(process_ends_while_a_thread_waits,
                     boost::unit_test::data::make(std::vector<std::string>{
                         "while_a_thread_waits",
                         "while_a_thread_waits_for_a_leaked_one"}),
                     name) {
  const std::string other = fresh_name();
  Agent holder(StandardTable::only().where());
  holder.make("a", other);
  BOOST_TEST_REQUIRE(holder.ask("lock a") == "true");
  Process process = started(name, fresh_name(), other);
  must_end_well(process);
  BOOST_TEST(holder.ask("release a") == "true");
  BOOST_TEST(!StandardTable::only().has_row(other));
}

BOOST_AUTO_TEST_CASE(process_ends_while_a_callback_of_a_leaked_mutex_hangs) {
  must_end_well_amid_callbacks("while_a_callback_hangs");
}

BOOST_AUTO_TEST_CASE(callback_ends_the_process) {
  must_end_well_amid_callbacks("exit_from_a_callback");
  must_end_well_amid_callbacks("signal_from_a_callback");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(thread_cancellation)

namespace {

// A thread that locks, and then reaches a point where it can be cancelled.
class ToBeCancelled {
 public:
  explicit ToBeCancelled(DdbMutex& mutex) : mutex_(mutex) {
    BOOST_TEST_REQUIRE(pthread_create(&thread_, nullptr, run, this) == 0);
  }
  ToBeCancelled(const ToBeCancelled&) = delete;
  ToBeCancelled& operator=(const ToBeCancelled&) = delete;

  void cancel() { pthread_cancel(thread_); }
  bool locked() const { return locked_; }
  bool reached_the_end() const { return reached_the_end_; }
  // True if it ended by having been cancelled.
  bool join() {
    void* result = nullptr;
    pthread_join(thread_, &result);
    return result == PTHREAD_CANCELED;
  }

 private:
  static void* run(void* self) {
    static_cast<ToBeCancelled*>(self)->lock_and_be_cancelled();
    return nullptr;
  }
  void lock_and_be_cancelled() {
    const std::lock_guard<DdbMutex> guard(mutex_);
    locked_ = true;
    pthread_testcancel();
    reached_the_end_ = true;
  }

  DdbMutex& mutex_;
  std::atomic<bool> locked_{false};
  std::atomic<bool> reached_the_end_{false};
  pthread_t thread_{};
};

}  // namespace

BOOST_AUTO_TEST_CASE(thread_cancelled_while_it_polls_ends_after_the_call) {
  Parent holder;
  const auto table = table_at(at(holder.engine));
  DdbMutex mutex(holder.name, on_table(table));
  ToBeCancelled thread(mutex);
  BOOST_TEST_REQUIRE(eventually([&] { return table->stats().get_item > 0; }));
  thread.cancel();
  // lock() goes on polling.
  const auto looks = table->stats().get_item;
  BOOST_TEST(eventually([&] { return table->stats().get_item > looks + 2; }));
  BOOST_TEST(!thread.locked());
  BOOST_TEST(holder.agent.ask("release a") == "true");
  BOOST_TEST(thread.join());
  BOOST_TEST(thread.locked());
  BOOST_TEST(!thread.reached_the_end());
  // Unwinding has unlocked.
  BOOST_TEST(is_free(holder.engine, holder.name));
  BOOST_TEST(mutex.try_lock());
}

BOOST_AUTO_TEST_SUITE_END()

// === Allocations that fail ===================================================

// tests/processes/allocations.cpp makes calls in which the n-th allocation
// fails.  Here a part of them, drawn by the seed, and whether it notices
// errors.

namespace {

struct Played {
  int status;
  std::string said;
};

// Does not wait long for what a mistake prevents.
constexpr const char* kImpatient = "DDBMUTEX_TEST_PLENTY=10";

Played play(const std::vector<std::string>& words,
            const std::vector<std::string>& variables = {}) {
  std::vector<std::string> command = {program_path("processes/allocations")};
  command.insert(command.end(), words.begin(), words.end());
  std::vector<std::string> environment = clean_environment();
  environment.insert(environment.end(), variables.begin(), variables.end());
  Process run({command, environment});
  Played played{};
  try {
    for (;;) {
      played.said += "\n  " + run.channel().line(10min);
    }
  } catch (const std::runtime_error&) {  // The end of what it says.
  }
  played.status = run.wait();
  played.said += "\n" + run.complaints();
  return played;
}

std::string seed() {
  const char* given = std::getenv("DDBMUTEX_SEED");
  return given != nullptr ? given : "1";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(allocations)

BOOST_AUTO_TEST_CASE(calls_survive_that_an_allocation_fails) {
  const Played played = play({"step=100", "seed=" + seed()});
  BOOST_TEST_MESSAGE("allocations:" << played.said);
  BOOST_TEST(played.status == 0, played.said);
}

// The most common calls, with every allocation.
BOOST_AUTO_TEST_CASE(common_calls_survive_every_failed_allocation) {
  for (const char* scenario : {"lock_warm", "unlock", "renew", "renewals"}) {
    const Played played = play({std::string("scenario=") + scenario});
    BOOST_TEST(played.status == 0, played.said);
  }
}

BOOST_AUTO_TEST_CASE(renewals_that_fail_are_tried_again_without_memory) {
  const Played played = play({"scenario=failing_renewals"});
  BOOST_TEST(played.status == 0, played.said);
}

BOOST_AUTO_TEST_CASE(program_without_memory_leaves_no_descriptor_open) {
  const Played played = play({"scenario=keys_of_a_program"});
  BOOST_TEST(played.status == 0, played.said);
}

BOOST_AUTO_TEST_CASE(file_without_memory_leaves_no_descriptor_open) {
  const Played played = play({"scenario=keys_of_a_profile"});
  BOOST_TEST(played.status == 0, played.said);
}

// A faulty call of each kind, and what must be reported of it.
const std::map<std::string, std::string> kMistakes = {
    {"mistake_ends_the_process", "terminated by signal 6"},
    {"mistake_hangs", "it hangs"},
    {"mistake_leaks", "memory leak"},
    {"mistake_leaves_a_descriptor_open", "descriptors left open"},
    {"mistake_leaves_it_locked", "the mutex is stuck"},
#ifdef DDBMUTEX_TESTS_FAIL_MALLOC
    {"mistake_forgets_a_handle", "memory leak"},
    {"mistake_forgets_what_is_spared", "memory leak"},
#endif
};

BOOST_AUTO_TEST_CASE(faulty_call_is_reported) {
  const Played played = play({"scenario=mistakes"}, {kImpatient});
  BOOST_TEST(played.status == 1, played.said);
  for (const auto& [mistake, wanted] : kMistakes) {
    const auto begin = played.said.find("WRONG: " + mistake + " n=");
    BOOST_TEST_REQUIRE((begin != std::string::npos), mistake << played.said);
    const auto end = played.said.find('\n', begin);
    const std::string line = played.said.substr(begin, end - begin);
    BOOST_TEST((line.find(wanted) != std::string::npos), line);
  }
}

BOOST_AUTO_TEST_SUITE_END()
