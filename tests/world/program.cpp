#include "tests/world/program.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>
#include <utility>

#include "extras/admin.hpp"
#include "tests/support/layouts.hpp"
#include "tests/world/odd_rows.hpp"
#include "tests/world/steps.hpp"

namespace world {

using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Loss;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Layout;

namespace {

// The number of the thread that runs callbacks; -1 is no thread.
constexpr int kCallback = -2;

// Each part of a program draws from a stream of its own.
enum Part : std::uint64_t {
  kOfProgram = 1,
  kOfTables,
  kOfMutexes,
  kOfSteps,
  kOfCallbacks,
  kOfKeys,
};

// The last Table's destructor waits for two seconds at most, and then 100 ms
// for threads that are about to end.
constexpr nanoseconds kLastTable = milliseconds(2100);
// So long after the end of a program nothing of the library may be left: a
// callback that destroys another mutex takes its request_timeout more.
constexpr nanoseconds kLeftBehind = milliseconds(2100 + 2000);

constexpr const char* kSessionToken = "FwoGZXIvYXdzEXAMPLESESSIONTOKEN";

constexpr milliseconds kLongestTtl = hours(366 * 24);

milliseconds least_ttl(const Plan& plan) {
  const bool versions =
      plan.layout == Layout::dynamolock || plan.layout == Layout::awslabs;
  return milliseconds(versions ? 1000 : 100);
}

// In proportion to holds and leases, so that nobody looks a million times at a
// lease of a year.
milliseconds longest_poll(const Plan& plan, nanoseconds ttl) {
  return std::max(
      {milliseconds(225), ms(plan.longest_hold / 300), ms(ttl / 300)});
}

}  // namespace

const char kDone[] = "done";

TableOptions table_options(const Plan& plan) {
  TableOptions options;
  options.name = "locks";
  options.region = "eu-west-1";
  options.endpoint = "https://dynamodb.eu-west-1.amazonaws.com";
  options.credentials.access_key_id = "AKIDEXAMPLE";
  options.credentials.secret_access_key =
      "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
  options.rows = tests::rows_of(plan.layout);
  options.key = tests::key_of(plan.layout);
  options.sort_key = plan.sort_key;
  if (!plan.sort_key.empty()) options.sort_value = "s";
  const bool others =
      std::any_of(plan.programs.begin(), plan.programs.end(),
                  [](const ProgramPlan& program) { return program.rival; });
  if (others && plan.layout == Layout::ddblock) {
    options.calendar_margin = seconds(2);
  }
  return options;
}

void run_program(const Plan& plan, const ProgramPlan& own, Judge& judge) {
  // On the heap: if the process is killed, its other threads still have it.
  const auto program = std::make_unique<Program>(plan, own, judge);
  program->run();
}

Program::Program(const Plan& plan, const ProgramPlan& own, Judge& judge)
    : plan_(plan), own_(own), judge_(judge), threads_(own.threads) {
  Random random(own.seed, kOfProgram);
  tables_.resize(random.chance(0.3) ? 2 : 1);
  slots_.resize(1 + random.below(3));
  forks_ = random.chance(0.2);
  if (!plan.loops) return;
  tables_.resize(1);
  slots_.resize(1);
  forks_ = false;
  makes_anew_ = random.chance(0.5);
}

// --- Threads -----------------------------------------------------------------

void Program::run() {
  World& world = World::the();
  Process* process = &world.process();
  const std::int64_t bytes = process->bytes;
  std::vector<pthread_t> threads;
  for (int i = 1; i < threads_; i++) {
    threads.push_back(world.start_thread("thread " + std::to_string(i), false,
                                         [this, i] { run_thread(i); }));
  }
  run_thread(0);
  if (!forked_) {
    for (const pthread_t thread : threads) world.join(thread);
  }
  finish();
  process = &world.process();
  const Stopwatch since = Stopwatch::start(*process);
  // The library's threads may need longer if they are held up.
  for (int i = 0; i < 20 && since.run() < kLeftBehind; i++) {
    world.sleep(milliseconds(300));
  }
  const std::uint64_t requests = process->requests;
  world.sleep(seconds(1));
  judge_.process_over(*process);
  // After a fork, objects of the threads that it ended are never destroyed, be
  // they the library's.
  if (forked_) return;
  judge_.program_over(*process, bytes, requests);
}

void Program::run_thread(int thread) {
  for (const int number : own_.steps) {
    if (number % threads_ != thread) continue;
    if (World::the().now() >= plan_.calm) break;
    take_step(thread, number);
  }
  unlock_all(thread);
}

// No thread waits for ever while it holds a lock: two might wait for each
// other.
void Program::unlock_all(int thread) {
  const auto all = all_;
  for (const OwnMutexPtr& mutex : all) {
    if (mutex->holder != thread) continue;
    Turn turn{thread, Random(0), false, mutex};
    while (usable(mutex) && mutex->holder == thread)
      Steps(*this, turn).unlock();
  }
}

void Program::take_step(int thread, int number) {
  Turn turn{thread,
            Random(own_.seed, kOfSteps, static_cast<std::uint64_t>(number))};
  const std::size_t slot = turn.random.below(slots_.size());
  if (slots_[slot] == nullptr || !usable(slots_[slot])) {
    slots_[slot] = make_mutex(slot);
  }
  turn.mutex = slots_[slot];
  if (turn.mutex != nullptr) Steps(*this, turn).take();
}

void Program::rest(nanoseconds time) {
  World& world = World::the();
  const nanoseconds left = plan_.calm - world.now();
  world.sleep(std::max(nanoseconds(1), std::min(time, left)));
}

void Program::finish() {
  for (OwnMutexPtr& mutex : slots_) {
    if (mutex != nullptr && usable(mutex)) destroy(mutex);
  }
  for (const OwnMutexPtr& mutex : all_) {
    if (usable(mutex)) destroy(mutex);
  }
  for (std::size_t i = 0; i < tables_.size(); i++) destroy_table(i);
}

// --- Tables ------------------------------------------------------------------

OwnTable& Program::table(std::size_t number) {
  OwnTable& own = tables_[number % tables_.size()];
  if (own.table != nullptr) return own;
  Random random(own_.seed, kOfTables, made_++);
  WatchedTable& watched = judge_.watch_table();
  watched.only = tables_.size() == 1;
  const TableOptions options = draw_table(random, watched);
  Call call;
  call.what = "Table()";
  call.table = &watched;
  std::shared_ptr<Table> made;
  const Result result = this->call(call, true, [&](std::error_code&) {
    made = std::make_shared<Table>(options);
    return true;
  });
  // While that call was under way, another thread may have made one.
  if (result.code || own.table != nullptr) return own;
  own = {made, &watched};
  return own;
}

namespace {

// What a credentials_source returns: it may take its time, and fail.
std::optional<ddbmutex::Credentials> draw_keys(Random random,
                                               ddbmutex::Credentials keys,
                                               bool may_fail) {
  if (random.chance(0.3)) {
    World::the().sleep(random.spread(milliseconds(1), seconds(1)));
  }
  if (may_fail && random.chance(0.2)) throw std::runtime_error("no keys now");
  if (may_fail && random.chance(0.1)) return std::nullopt;
  keys.access_key_id += std::to_string(random.below(3));
  if (random.chance(0.5)) keys.session_token = kSessionToken;
  return keys;
}

}  // namespace

TableOptions Program::draw_table(Random& random, WatchedTable& watched) {
  TableOptions options = table_options(plan_);
  if (random.chance(0.3)) options.endpoint = "http://dynamodb.local:8000";
  options.patience = ms(random.spread(milliseconds(100), seconds(30)));
  watched.patience = options.patience;
  if (random.chance(0.2)) {
    options.logger = [this](ddbmutex::LogLevel, const std::string& text) {
      const Outside outside;
      check_secrets(text);
      World& world = World::the();
      if (world.tells()) world.tell("log: " + text);
    };
  }
  if (plan_.loops || !random.chance(0.25)) return options;
  const bool bad_keys = random.chance(0.4);
  watched.slow_keys = true;
  watched.bad_keys = bad_keys;
  options.credentials_source = [keys = options.credentials, bad_keys,
                                seed = random.next(),
                                calls = std::uint64_t{0}]() mutable {
    const Outside outside;
    return draw_keys(Random(seed, kOfKeys, calls++), keys, bad_keys);
  };
  options.credentials = {};
  return options;
}

void Program::destroy_table(std::size_t number) {
  OwnTable own = std::move(tables_[number]);
  tables_[number] = {};
  if (own.table == nullptr) return;
  Call call;
  call.what = "~Table()";
  call.table = own.watched;
  call.limit = kLastTable;
  call.after_callbacks = true;
  this->call(call, true, [&](std::error_code&) {
    own.any.reset();
    own.each.table.reset();
    own.table.reset();
    return true;
  });
}

// --- Any one of many ---------------------------------------------------------

void Program::make_any_of(OwnTable& own, const Options& like) {
  Random random(own_.seed, kOfTables, made_++);
  Options each = like;
  each.on_lost = nullptr;
  each.on_danger = nullptr;
  each.table = own.table;
  each.keep_row = true;
  ddbmutex::AnyOfOptions options;
  options.each = each;
  options.prefix = "lock-";
  options.longest_pause = ms(random.spread(milliseconds(100), seconds(5)));
  const bool is_choosy = plan_.jobs && random.chance(0.6);
  const auto any = std::make_shared<std::weak_ptr<ddbmutex::AnyOf>>();
  if (is_choosy) {
    options.read = {"data"};
    options.accept = [this, any,
                      random](const ddbmutex::LockInfo& item) mutable {
      const Outside outside;
      const auto all = any->lock();
      return all == nullptr || wants(*all, random, item);
    };
  }
  Call call;
  call.what = "AnyOf()";
  call.table = own.watched;
  this->call(call, true, [&](std::error_code&) {
    const auto made = std::make_shared<ddbmutex::AnyOf>(std::move(options));
    // Another thread may have replaced the table, or may make one, too.
    if (own.table != each.table) return true;
    own.any = made;
    own.each = each;
    own.is_choosy = is_choosy;
    *any = made;
    return true;
  });
}

// The `accept` of an AnyOf.  Now and then it takes its time, or calls the AnyOf
// itself, which is refused.
bool Program::wants(ddbmutex::AnyOf& any, Random& random,
                    const ddbmutex::LockInfo& item) {
  if (random.chance(0.02)) {
    World::the().sleep(random.spread(milliseconds(1), kSlowAccept));
  }
  if (random.chance(0.02)) {
    const Inside inside;
    std::error_code ec;
    const auto none = any.try_lock(ec);
    if (ec != std::errc::resource_deadlock_would_occur && ec != Errc::closed &&
        ec != std::errc::not_enough_memory) {
      const Outside outside;
      judge_.wrong("a call out of accept is not refused", item.name);
    }
  }
  return item.data != kDone;
}

// --- Mutexes -----------------------------------------------------------------

Options Program::draw_options(Random& random) {
  Options options;
  if (plan_.loops) {
    options.ttl = plan_.ttl;
    options.keep_row = plan_.keep_row;
    return options;
  }
  nanoseconds ttl = plan_.ttl;
  if (random.chance(0.2)) ttl = random.spread(ttl / 4, 4 * ttl);
  options.ttl = ms(std::clamp<nanoseconds>(ttl, least_ttl(plan_), kLongestTtl));
  draw_times(random, options);
  if (plan_.layout == Layout::ddblock || plan_.keep_row) {
    options.keep_row = plan_.keep_row;
  }
  if (random.chance(0.2)) {
    options.data = "data of program " + std::to_string(own_.number);
  }
  if (random.chance(0.1)) {
    options.item =
        R"({"shoe":{"N":")" + std::to_string(random.below(50)) + R"("}})";
  }
  if (random.chance(0.1)) options.keep_data = random.chance(0.5);
  options.owner = "program " + std::to_string(own_.number);
  return options;
}

void Program::draw_times(Random& random, Options& options) {
  const nanoseconds ttl = options.ttl;
  const nanoseconds least = milliseconds(1);
  // Most requests should be answered in time.
  const nanoseconds half = ttl / 2 - least;
  const nanoseconds answered =
      4 * plan_.hosts[static_cast<std::size_t>(own_.host)].latency + least;
  if (answered > ttl / 4 || random.chance(0.3)) {
    options.request_timeout =
        ms(std::min(half, random.spread(answered, answered + seconds(10))));
  }
  if (random.chance(0.5)) {
    options.patience = ms(random.spread(least, seconds(60)));
  }
  if (plan_.patience) options.patience = *plan_.patience;
  options.longest_poll = longest_poll(plan_, options.ttl);
  if (random.chance(0.3)) {
    options.longest_poll = std::max(
        options.longest_poll,
        ms(random.spread(milliseconds(30), ttl / 5 + 2 * milliseconds(30))));
  }
  if (random.chance(0.15)) {
    options.auto_renew = false;
    return;
  }
  if (random.chance(0.2)) {
    options.renew_after =
        std::max(milliseconds(1), ms(random.spread(ttl / 10, ttl / 2)));
  }
  if (random.chance(0.1))
    options.max_hold =
        std::max(milliseconds(1), ms(random.spread(ttl / 10, 5 * ttl)));
  if (random.chance(0.2))
    options.safe_time = ms(random.between({}, ttl / 2 - least));
}

OwnMutexPtr Program::make_mutex(std::size_t slot) {
  Random random(own_.seed, kOfMutexes, made_++);
  OwnTable own_table = table(slot);
  if (own_table.table == nullptr) return nullptr;
  auto own = std::make_shared<OwnMutex>();
  own->table = own_table.table;
  own->watched_table = own_table.watched;
  Options options = draw_options(random);
  draw_callbacks(random, options, own);
  own->options = options;
  options.table = own_table.table;
  std::string name =
      "lock-" +
      std::to_string(random.below(static_cast<std::uint64_t>(plan_.locks)));
  if (plan_.odd_row && random.chance(0.1)) {
    name = kOddLock;
    options.only_if_exists = plan_.odd_row->empty();
  }
  Call call;
  call.what = "DdbMutex(" + name + ", ttl " +
              std::to_string(options.ttl.count()) + " ms)";
  call.table = own->watched_table;
  std::unique_ptr<DdbMutex> made;
  const Result result = this->call(call, true, [&](std::error_code&) {
    made = std::make_unique<DdbMutex>(name, options);
    return true;
  });
  if (result.code) return nullptr;
  own->watched = &judge_.watch(*made, options, *own->watched_table);
  own->mutex = std::move(made);
  all_.push_back(own);
  return own;
}

OwnMutexPtr Program::adopt(std::unique_ptr<DdbMutex> mutex,
                           const Options& options, OwnTable& table,
                           Time asked_for) {
  auto own = std::make_shared<OwnMutex>();
  own->table = table.table;
  own->watched_table = table.watched;
  own->options = options;
  own->options.table = nullptr;
  own->watched = &judge_.watch(*mutex, options, *table.watched, asked_for);
  own->mutex = std::move(mutex);
  all_.push_back(own);
  return own;
}

void Program::destroy(const OwnMutexPtr& own) {
  std::unique_ptr<DdbMutex> mutex = std::move(own->mutex);
  if (mutex == nullptr) return;
  World& world = World::the();
  // Other calls than waits must have ended.
  while (own->calls > 0) {
    world.wait({own.get()}, ddbmutex::BootTime::max());
  }
  Call call;
  call.what = "~DdbMutex(" + own->watched->lock + ")";
  call.table = own->watched_table;
  // It may also be the one that destroys the Table.
  call.limit = own->watched->request_timeout + kLastTable;
  judge_.forget(*own->watched);
  own->locked = 0;
  call.after_callbacks = true;
  this->call(call, true, [&](std::error_code&) {
    mutex.reset();
    own->table.reset();
    return true;
  });
  judge_.destroyed(*own->watched);
}

OwnMutexPtr Program::pointer_to(OwnMutex* mutex) const {
  for (const OwnMutexPtr& one : all_) {
    if (one.get() == mutex) return one;
  }
  return nullptr;
}

// --- Callbacks ---------------------------------------------------------------

void Program::draw_callbacks(Random& random, Options& options,
                             const OwnMutexPtr& own) {
  OwnMutex* mutex = own.get();
  if (!random.chance(0.2)) {
    options.on_lost = [this, mutex](Loss why) { told(why, mutex); };
  }
  if (random.chance(0.2)) {
    options.on_danger = [this, mutex] { in_danger(mutex); };
  }
}

namespace {

// Tells the judge that a callback runs, however it ends.
class InCallback {
 public:
  InCallback(Judge& judge, WatchedMutex& mutex) : judge_(judge), mutex_(mutex) {
    judge_.callback_begins(mutex_);
  }
  ~InCallback() { judge_.callback_ends(mutex_); }
  InCallback(const InCallback&) = delete;
  InCallback& operator=(const InCallback&) = delete;

 private:
  Judge& judge_;
  WatchedMutex& mutex_;
};

}  // namespace

void Program::told(Loss why, OwnMutex* mutex) {
  const Outside outside;
  say("on_lost of " + mutex->watched->lock + ": " + name_of(why));
  judge_.lost(*mutex->watched, why);
  const InCallback guard(judge_, *mutex->watched);
  react(*mutex, Random(own_.seed, kOfCallbacks, callbacks_++));
}

void Program::in_danger(OwnMutex* mutex) {
  const Outside outside;
  say("on_danger of " + mutex->watched->lock);
  judge_.in_danger(*mutex->watched);
  const InCallback guard(judge_, *mutex->watched);
  react(*mutex, Random(own_.seed, kOfCallbacks, callbacks_++));
}

void Program::react(OwnMutex& mutex, Random random) {
  Turn turn{kCallback, random, true, pointer_to(&mutex)};
  if (turn.mutex != nullptr) Steps(*this, turn).react();
}

// --- Calls -------------------------------------------------------------------

void Program::say(const std::string& text) const {
  World& world = World::the();
  if (world.tells()) world.tell(text);
}

// TableOptions::logger: "A line never has a signature in it, nor a secret or
// token of 16 characters or more."  Nor has the text of an Error.
void Program::check_secrets(const std::string& text) const {
  const bool signed_text = text.find("Signature=") != text.npos &&
                           text.find("Signature=(hidden)") == text.npos;
  if (signed_text || text.find(kSessionToken) != text.npos) {
    judge_.wrong("a secret is told", text);
  }
}

Result Program::call(Call call, bool throws, const Make& make) {
  const std::string what =
      call.what + (call.mutex != nullptr ? " of " + call.mutex->lock : "");
  say(what);
  const Judge::CallPlace place = judge_.begins(std::move(call));
  Result result;
  try {
    const Inside inside;
    result.got = make(throws ? ddbmutex::detail::throws() : result.code);
  } catch (const ddbmutex::Error& error) {
    result.code = error.code();
    result.text = error.what();
    check_secrets(result.text);
  } catch (const std::bad_alloc&) {
    result.code = std::make_error_code(std::errc::not_enough_memory);
  } catch (const std::exception& error) {
    judge_.wrong("an exception of another type", what + ": " + error.what());
  }
  judge_.ends(place, result);
  say(what + ": " +
      (result.code  ? result.code.message()
       : result.got ? "yes"
                    : "no"));
  return result;
}

Result Program::call(Turn& turn, Call call, const MakeOf& make) {
  const OwnMutexPtr own = turn.mutex;
  if (!usable(own)) return {};
  DdbMutex& mutex = *own->mutex;
  call.mutex = own->watched;
  call.in_callback = turn.in_callback;
  call.again = own->holder == turn.thread;
  const bool waits = call.gets_lock;
  if (!waits) own->calls++;
  const bool throws = turn.random.chance(0.3);
  const Result result =
      this->call(std::move(call), throws,
                 [&](std::error_code& ec) { return make(mutex, ec); });
  if (!waits && --own->calls == 0) World::the().notify(own.get());
  return result;
}

// --- The end of a life -------------------------------------------------------

namespace {

// A waiter that knows nothing of a lock gets it when its lease and 1 % are
// over, plus a pause between two looks and some round trips.
nanoseconds longest_wait(const Plan& plan) {
  const nanoseconds lease = 4 * nanoseconds(plan.ttl);
  return lease + lease / 50 + lease / 500 + seconds(6);
}

void check_lock(const Plan& plan, Judge& judge,
                const std::shared_ptr<Table>& table, const std::string& name) {
  Options options;
  options.table = table;
  options.ttl = std::max(plan.ttl, least_ttl(plan));
  options.patience = hours(1);
  options.owner = "final";
  if (plan.layout == Layout::ddblock || plan.keep_row) {
    options.keep_row = plan.keep_row;
  }
  options.longest_poll = longest_poll(plan, options.ttl);
  std::error_code ec;
  bool locked = false;
  std::string text;
  {
    const Inside inside;
    const auto mutex = std::make_unique<DdbMutex>(name, options);
    locked = mutex->try_lock_for(longest_wait(plan), ec);
    if (locked) mutex->release(ec);
    text = ec ? mutex->last_error() : "it is still locked";
  }
  if (plan.has_wrong_key()) {
    if (ec != Errc::wrong_table) {
      judge.wrong("a wrong key is not reported in the end", name + ": " + text);
    }
    return;
  }
  if (!locked)
    judge.wrong("a lock cannot be taken in the end", name + ": " + text);
  if (locked && ec)
    judge.wrong("a lock cannot be released in the end", name + ": " + text);
}

}  // namespace

void free_by_force(const Plan& plan, const std::string& lock, Judge& judge) {
  judge.is_operator(lock);
  const Inside inside;
  std::error_code ec;
  const auto table = std::make_unique<Table>(table_options(plan));
  ddbmutex::LockInfo info = table->inspect(lock, ec);
  if (ec || !info.exists || info.released) return;
  // Half of the operators know only the version that was seen.
  if (info.uuid.front() < '8') info.keep_row = false, info.token = 0;
  (void)force_unlock(*table, info, ec);
}

void run_final_check(const Plan& plan, Judge& judge) {
  World& world = World::the();
  world.calm_down();
  // Late messages may still arrive.
  world.sleep(2 * plan.weather.longest_delay);
  std::shared_ptr<Table> table;
  {
    const Inside inside;
    table = std::make_shared<Table>(table_options(plan));
  }
  for (int i = 0; i < plan.locks; i++) {
    check_lock(plan, judge, table, "lock-" + std::to_string(i));
  }
  const Inside inside;
  table.reset();
}

}  // namespace world
