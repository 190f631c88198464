// Loses the answers of takes, renewals and releases that DynamoDB has applied,
// so many of each, in every way an answer can be lost, and shows that nobody
// notices:
//
//   lost_answers COUNT [SEED]
//
// Eight gateways stand before an engine of our own, half of them with TLS; to
// the library each is a host of its own with sixteen locks: on rows that are
// deleted for four of the hosts, on rows that are kept for the others.  Four
// locks of a host are taken and released all the time, the others held through
// renewals.  At one gateway one answer is lost at a time, so that it is known
// whose it is.  The ways come in an order of the seed's.
//
// A lease lasts for longer than any machine stands still, and is renewed while
// it is young.  Where an answer never comes, a lock has to give up its request
// soon, or this took hours; all others bear with a slow machine.
//
// Status 0 if so many answers of each action were lost, of either policy, no
// lock was, no call failed, and nobody waited for a row of its own; if no row
// to be deleted is left in the end, all that are kept are, each with what
// somebody else had stored there, and their tokens grew with each take.
#include <rapidjson/document.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/record.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/interrupted.hpp"
#include "tests/support/waiting.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using tests::Engine;
using tests::EngineKind;
using tests::Gateway;
using tests::pause;

constexpr int kHosts = 8;
constexpr int kKeptHosts = 4;  // Of them.
constexpr int kTakers = 4;     // Locks of a host that are taken and released,
constexpr int kHolders = 12;   // and that are held.
constexpr auto kTtl = 60s;     // So long that no machine loses one.
constexpr auto kRenewAfter = 3000ms;
constexpr auto kLate = 500ms;  // A renewal that is due for so long is overdue.
// For one request: of those whose answer comes or fails,
constexpr auto kPatient = 20s;
// and of those whose answer may never come.
constexpr auto kHasty = 1500ms;
constexpr const char* kUnheard = "drop-answer";
// Between those whose answers are lost: DynamoDB's successes pay for retries.
// With fewer, the Table's budget would be spent, and a take that fails then
// waits five seconds before it is tried again.
constexpr int kCleanCycles = 20;
constexpr auto kGivenUpAfter = 120s;

// What loses its answers, and by what a gateway knows it.
struct Action {
  const char* name;
  const char* deleted;  // Where rows are deleted,
  const char* kept;     // and where they are kept.
};
constexpr Action kTake = {"takes", "PutItem", "UpdateItem ADD #k"};
constexpr Action kRenew = {"renewals", "UpdateItem", "UpdateItem SET #e = :e"};
constexpr Action kRelease = {"releases", "DeleteItem",
                             "UpdateItem SET #e = :z"};
constexpr const char* kNote = "a row has more than its lock";

const std::vector<std::string> kKinds = {
    "reset-answer", "drop-answer", "half-close-answer",
    "truncate",     "corrupt",     "garbage",
    "500-after",    "503-after",   "throttle-after"};

// "" if it does not.
std::string says(const rapidjson::Value& item, const char* attribute,
                 const char* type) {
  return item.HasMember(attribute) && item[attribute].HasMember(type)
             ? item[attribute][type].GetString()
             : "";
}

// What a user would have noticed.
class Noticed {
 public:
  std::atomic<int> losses{0};
  std::atomic<int> errors{0};

  void error(const std::string& what) {
    ++errors;
    say(what);
  }
  void loss(const std::string& what) {
    ++losses;
    say(what);
  }

 private:
  void say(const std::string& what) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (++said_ <= 20) std::fprintf(stderr, "lost_answers: %s\n", what.c_str());
  }

  std::mutex mutex_;
  int said_ = 0;  // GUARDED_BY(mutex_)
};

// How often answers were lost, in each way.
using Lost = std::map<std::string, int>;

// The answers of one action that are to be lost at one gateway.
class Losing {
 public:
  Losing(const Action& action, bool kept, int goal, unsigned seed)
      : action_(kept ? action.kept : action.deleted),
        goal_(goal),
        random_(seed) {}

  // Held for as long as a request of that action is made, so that no other
  // one is hit.
  std::mutex turn;

  // Lets the next one be hit, in one of all the ways; which one it is.  Empty
  // once enough have been lost.  REQUIRES: the turn.
  std::string lose_next(Gateway& gateway) {
    if (lost_ >= goal_) return "";
    const std::string way = next();
    ways_.pop_back();
    gateway.fault(action_, way);
    ++lost_;
    ++by_way_[way];
    return way;
  }
  // The way that comes next.  REQUIRES: nobody else loses.
  const std::string& next() {
    if (ways_.empty()) {
      ways_ = kKinds;
      std::shuffle(ways_.begin(), ways_.end(), random_);
    }
    return ways_.back();
  }
  int lost() const { return lost_; }
  // REQUIRES: nobody loses any more.
  const Lost& by_way() const { return by_way_; }
  bool enough() const { return lost_ >= goal_; }

 private:
  const std::string action_;
  const int goal_;
  std::mt19937 random_;
  std::vector<std::string> ways_;  // Those to come.
  std::atomic<int> lost_{0};
  Lost by_way_;
};

// --- A host ------------------------------------------------------------------

// One Table behind a gateway of its own, its locks, and a thread for each.
class Host {
 public:
  struct Plan {
    int number;
    bool kept;
    int count;
    unsigned seed;
  };

  Host(Engine& engine, const Plan& plan, Noticed& noticed);
  ~Host() { end(); }
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;

  void start();
  // Waits; no lock is held then, and nothing is under way.
  void join();
  // Of the gateway too; all faults are in its file then.
  void end();

  std::array<int, 3> lost() const {
    return {takes_.lost(), renewals_.lost(), releases_.lost()};
  }
  std::array<Lost, 3> ways() const {
    return {takes_.by_way(), renewals_.by_way(), releases_.by_way()};
  }
  bool kept() const { return plan_.kept; }
  long cycles() const { return cycles_; }
  // By lock; of kept rows.
  const std::map<std::string, std::uint64_t>& tokens() const { return tokens_; }
  bool done() const { return running_ == 0; }
  // What is wrong by the gateway's counts; empty if nothing.
  std::string complaint() const;

 private:
  std::string fresh_name(int lock);
  Options options(int lock, std::chrono::milliseconds request_timeout);
  void run_aside(std::function<void()> work);
  bool take(DdbMutex& mutex, bool lossy);
  void check_token(const DdbMutex& mutex);
  void release(DdbMutex& mutex, bool lossy);
  void unlock(DdbMutex& mutex, bool lossy);
  bool is_free(const std::string& name);
  void cycle(DdbMutex& mutex, bool lossy);
  void hasty_cycle(DdbMutex& mutex, bool lossy);
  void lossy_cycle(int lock);
  void take_and_release(int lock);
  void hold(DdbMutex& mutex, unsigned seed);
  void lose_renewals();
  bool all_are_renewed() const;

  const Plan plan_;
  Engine& engine_;
  Noticed& noticed_;
  std::unique_ptr<Gateway> gateway_;
  std::shared_ptr<Table> table_;
  Losing takes_, renewals_, releases_;
  // Held by who has answers lost, until they were: the gateway's count says
  // then that it was these.  Locked before any turn, which holders need too, so
  // that there are renewals to be lost.
  std::mutex losing_;
  std::map<std::string, std::uint64_t> tokens_;  // GUARDED_BY(takes_.turn)
  std::vector<std::unique_ptr<DdbMutex>> mutexes_;
  std::vector<std::thread> threads_;
  std::atomic<int> running_{0};
  std::atomic<long> cycles_{0};
  std::atomic<bool> renewed_{false};  // Enough, and all went on.
};

tests::GatewaySettings settings_for(const Engine& engine,
                                    const Host::Plan& plan) {
  tests::GatewaySettings settings;
  settings.tls = plan.number % 2 == 0;
  settings.sign = engine.kind() == EngineKind::given;
  settings.seed = plan.seed;
  if (const auto keys = engine.credentials()) {
    settings.keys = {keys->access_key_id, keys->secret_access_key,
                     keys->session_token};
  }
  return settings;
}

Host::Host(Engine& engine, const Plan& plan, Noticed& noticed)
    : plan_(plan),
      engine_(engine),
      noticed_(noticed),
      gateway_(
          std::make_unique<Gateway>(engine.url(), settings_for(engine, plan))),
      takes_(kTake, plan.kept, plan.count, plan.seed),
      renewals_(kRenew, plan.kept, plan.count, plan.seed + 1),
      // In the same order as takes: both answers of a cycle are lost alike.
      releases_(kRelease, plan.kept, plan.count, plan.seed) {
  TableOptions table = gateway_->table_options(engine.table());
  table.region = engine.region();
  table_ = std::make_shared<Table>(table);
  table_->inspect("nobody's");  // Else the first lock would begin with a look.
  for (int i = 0; i < kTakers + kHolders; ++i) {
    mutexes_.push_back(std::make_unique<DdbMutex>(
        fresh_name(i), options(i, i < kTakers ? kPatient : kHasty)));
  }
}

// A row that is kept is there before its lock is.
std::string Host::fresh_name(int lock) {
  const std::string name =
      (plan_.kept ? "kept-" : "deleted-") + std::to_string(plan_.number) + "-" +
      std::to_string(lock) + "-" + ddbmutex::lock::fresh_uuid();
  if (plan_.kept) {
    engine_.must_call("PutItem", R"({"TableName":")" + engine_.table() +
                                     R"(","Item":{"name":{"S":"ddblock-)" +
                                     name + R"("},"note":{"S":")" + kNote +
                                     R"("}}})");
  }
  return name;
}

Options Host::options(int lock, std::chrono::milliseconds request_timeout) {
  Options options;
  options.table = table_;
  options.ttl = kTtl;
  options.renew_after = kRenewAfter;
  options.request_timeout = request_timeout;
  options.keep_row = plan_.kept;
  options.only_if_exists = plan_.kept && lock % 2 == 0;
  const std::string who = "lock " + std::to_string(lock) + " of host " +
                          std::to_string(plan_.number);
  options.on_lost = [this, who](ddbmutex::Loss loss) {
    noticed_.loss(who + " is lost: " + name_of(loss));
  };
  return options;
}

void Host::run_aside(std::function<void()> work) {
  ++running_;
  threads_.emplace_back([this, work = std::move(work)] {
    try {
      work();
    } catch (const std::exception& e) {
      noticed_.error(e.what());
    }
    --running_;
  });
}

void Host::start() {
  run_aside([this] { lose_renewals(); });
  for (int i = 0; i < kTakers + kHolders; ++i) {
    DdbMutex& mutex = *mutexes_[static_cast<std::size_t>(i)];
    const unsigned seed = plan_.seed + static_cast<unsigned>(i);
    run_aside([this, i, seed, &mutex] {
      i < kTakers ? take_and_release(i) : hold(mutex, seed);
    });
  }
}

void Host::join() {
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  gateway_->clear();
}

void Host::end() {
  mutexes_.clear();
  table_.reset();
  gateway_.reset();
}

std::string Host::complaint() const {
  const auto counts = gateway_->counts();
  if (counts.refused_signatures() != 0) return "signatures were refused";
  if (counts.without_engine() != 0) return "the engine did not answer";
  if (counts.all_faults() != 3 * plan_.count) {
    return std::to_string(counts.all_faults()) + " faults were done, not " +
           std::to_string(3 * plan_.count);
  }
  // A look at a row is what a waiter does.  (An engine that does not tell the
  // row that refused a write is asked for it.)
  const bool tells_rows = engine_.kind() == EngineKind::dynoxide;
  if (tells_rows && counts.requests("GetItem") != 1) {
    return "its own row was taken for another's";
  }
  return "";
}

// --- What its threads do -----------------------------------------------------

// REQUIRES: losing_, if the answer is to be lost; here and below.
bool Host::take(DdbMutex& mutex, bool lossy) {
  const std::lock_guard<std::mutex> turn(takes_.turn);
  if (lossy) takes_.lose_next(*gateway_);
  std::error_code ec;
  mutex.lock(ec);
  if (ec) noticed_.error(mutex.last_error());
  if (!ec && plan_.kept) check_token(mutex);
  return !ec;
}

void Host::check_token(const DdbMutex& mutex) {
  const std::uint64_t token = mutex.fencing_token();
  std::uint64_t& last = tokens_[mutex.name()];
  if (token <= last) {
    noticed_.error("the token " + std::to_string(token) + " came after " +
                   std::to_string(last));
  }
  last = token;
}

// Of a patient lock: it has the time to succeed.
void Host::release(DdbMutex& mutex, bool lossy) {
  const std::lock_guard<std::mutex> turn(releases_.turn);
  if (!mutex.owns_lock()) noticed_.loss("not owned at its end");
  if (lossy) releases_.lose_next(*gateway_);
  std::error_code ec;
  mutex.release(ec);
  if (ec) noticed_.error(mutex.last_error());
}

// Of a hasty lock.  An answer that never comes takes all of a call's time, and
// release() would say so; unlock() has nobody to say it to.  What goes on
// behind is awaited, for its request should not be hit in place of another's.
void Host::unlock(DdbMutex& mutex, bool lossy) {
  const std::lock_guard<std::mutex> turn(releases_.turn);
  if (!mutex.owns_lock()) noticed_.loss("not owned at its end");
  const std::uint64_t before = table_->stats().retries;
  if (lossy) lossy = !releases_.lose_next(*gateway_).empty();
  mutex.unlock();
  const auto over = [&] {
    return (!lossy || table_->stats().retries > before) &&
           is_free(mutex.name());
  };
  if (!tests::eventually(over)) noticed_.error("not unlocked: " + mutex.name());
}

// Past the gateway.
bool Host::is_free(const std::string& name) {
  const std::string answer = engine_.must_call(
      "GetItem", R"({"TableName":")" + engine_.table() +
                     R"(","ConsistentRead":true,"Key":{"name":{"S":"ddblock-)" +
                     name + R"("}}})");
  rapidjson::Document body;
  body.Parse(answer.data(), answer.size());
  if (!body.IsObject()) throw std::runtime_error("GetItem answers " + answer);
  if (!body.HasMember("Item")) return !plan_.kept;
  return says(body["Item"], "expires", "N") == "0";
}

void Host::cycle(DdbMutex& mutex, bool lossy) {
  if (take(mutex, lossy)) release(mutex, lossy);
  ++cycles_;
}

void Host::hasty_cycle(DdbMutex& mutex, bool lossy) {
  if (take(mutex, lossy)) unlock(mutex, lossy);
  ++cycles_;
}

// By another lock, where the answers never come; taken once more, so that its
// token has to grow.
void Host::lossy_cycle(int lock) {
  const std::lock_guard<std::mutex> losing(losing_);
  if (releases_.next() != kUnheard) {
    return cycle(*mutexes_[static_cast<std::size_t>(lock)], true);
  }
  DdbMutex mutex(fresh_name(lock), options(lock, kHasty));
  hasty_cycle(mutex, true);
  hasty_cycle(mutex, false);
}

void Host::take_and_release(int lock) {
  while (!takes_.enough() || !releases_.enough()) {
    lossy_cycle(lock);
    for (int i = 0; i < kCleanCycles; ++i) {
      cycle(*mutexes_[static_cast<std::size_t>(lock)], false);
    }
  }
}

// Through several renewals, whose answers are lost meanwhile.
void Host::hold(DdbMutex& mutex, unsigned seed) {
  std::mt19937 random(seed);
  while (!renewed_) {
    if (!take(mutex, false)) continue;
    const BootTime end = BootClock::now() + (6 + random() % 10) * kRenewAfter;
    while (BootClock::now() < end && !renewed_) {
      if (!mutex.owns_lock()) break;  // To be noticed at its end.
      pause(20ms);
    }
    unlock(mutex, false);
    ++cycles_;
  }
}

// One after the other, whosesoever the next one is.
void Host::lose_renewals() {
  const std::lock_guard<std::mutex> turn(renewals_.turn);
  while (!renewals_.enough()) {
    {
      const std::lock_guard<std::mutex> losing(losing_);
      const int before = gateway_->counts().all_faults();
      renewals_.lose_next(*gateway_);
      while (gateway_->counts().all_faults() == before) pause(20ms);
    }
    // A lease that is overdue may be the one.
    while (!all_are_renewed()) pause(5ms);
  }
  renewed_ = true;
}

bool Host::all_are_renewed() const {
  return std::all_of(mutexes_.begin(), mutexes_.end(), [](const auto& mutex) {
    const std::chrono::nanoseconds left = mutex->remaining();
    return left.count() == 0 || left > kTtl - kRenewAfter - kLate;
  });
}

// --- The run -----------------------------------------------------------------

class Run {
 public:
  Run(int count, unsigned seed);
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  bool goes_well();

 private:
  int lost_so_far() const;
  [[noreturn]] void give_up(const char* why, int status) const;
  void await_end();
  void show(bool last) const;
  void end();
  void look_at_rows();
  void look_at_kept(const std::string& name, const rapidjson::Value& item);
  void print_table(bool kept) const;
  int lost(bool kept, std::size_t action) const;
  void wrong(const std::string& what);

  const int count_;
  const bool terminal_ = isatty(STDOUT_FILENO) == 1;
  const BootTime start_ = BootClock::now();
  Noticed noticed_;
  Engine engine_;
  std::vector<std::unique_ptr<Host>> hosts_;
  // Of deleted rows, and of kept ones.
  std::array<long, 2> cycles_{};
  std::array<std::array<Lost, 3>, 2> lost_;
  std::map<std::string, std::uint64_t> tokens_;
  int wrong_ = 0;
};

Run::Run(int count, unsigned seed)
    : count_(count), engine_(tests::any_engine_kind()) {
  for (int i = 0; i < kHosts; ++i) {
    const bool kept = i < kKeptHosts;
    const int many = kept ? kKeptHosts : kHosts - kKeptHosts;
    const int which = kept ? i : i - kKeptHosts;
    const int share = count / many + (which < count % many ? 1 : 0);
    const Host::Plan plan = {i, kept, share,
                             seed + 100 * static_cast<unsigned>(i)};
    hosts_.push_back(std::make_unique<Host>(engine_, plan, noticed_));
  }
}

int Run::lost_so_far() const {
  int sum = 0;
  for (const auto& host : hosts_) {
    for (const int lost : host->lost()) sum += lost;
  }
  return sum;
}

// On a terminal a bar that is drawn anew in its place.
void Run::show(bool last) const {
  std::array<int, 3> lost{};
  for (const auto& host : hosts_) {
    for (std::size_t i = 0; i < lost.size(); ++i) lost[i] += host->lost()[i];
  }
  if (terminal_) {
    constexpr int kWidth = 24;
    const int full = kWidth * (lost[0] + lost[1] + lost[2]) / (6 * count_);
    std::printf(
        "\r\033[K[%s%s] ",
        std::string(static_cast<std::size_t>(full), '#').c_str(),
        std::string(static_cast<std::size_t>(kWidth - full), '.').c_str());
  }
  std::printf(
      "%lld s: answers lost of %d takes, %d renewals, %d releases; %d locks "
      "lost, %d errors%s",
      static_cast<long long>((BootClock::now() - start_) / 1s), lost[0],
      lost[1], lost[2], noticed_.losses.load(), noticed_.errors.load(),
      terminal_ && !last ? "" : "\n");
  std::fflush(stdout);
}

// While its threads are at work, which cannot be joined.
void Run::give_up(const char* why, int status) const {
  std::fprintf(stderr, "\nlost_answers: %s\n", why);
  std::_Exit(status);
}

void Run::await_end() {
  const auto interval = terminal_ ? std::chrono::seconds(1) : 10s;
  BootTime shown = BootClock::now();
  BootTime moved = shown;
  int last = -1;
  const auto done = [](const auto& host) { return host->done(); };
  while (!std::all_of(hosts_.begin(), hosts_.end(), done)) {
    pause(50ms);
    if (tests::interrupted != 0) give_up("interrupted", 130);
    const BootTime now = BootClock::now();
    if (now - shown >= interval) {
      show(false);
      shown = now;
    }
    if (std::exchange(last, lost_so_far()) != lost_so_far()) moved = now;
    if (now - moved >= kGivenUpAfter) give_up("hangs", 2);
  }
  show(true);
}

void Run::wrong(const std::string& what) {
  std::printf("%s\n", what.c_str());
  ++wrong_;
}

void Run::end() {
  for (const auto& host : hosts_) {
    host->join();
    cycles_[host->kept()] += host->cycles();
    const std::array<Lost, 3> ways = host->ways();
    for (std::size_t i = 0; i < ways.size(); ++i) {
      for (const auto& [way, times] : ways[i]) {
        lost_[host->kept()][i][way] += times;
      }
    }
    tokens_.insert(host->tokens().begin(), host->tokens().end());
    const std::string complaint = host->complaint();
    if (!complaint.empty()) wrong("at a gateway: " + complaint);
  }
  hosts_.clear();
}

// None but those that are kept, and all of them.
void Run::look_at_rows() {
  const std::string answer =
      engine_.must_call("Scan", R"({"TableName":")" + engine_.table() +
                                    R"(","ConsistentRead":true})");
  rapidjson::Document body;
  body.Parse(answer.data(), answer.size());
  if (body.HasParseError() || !body.IsObject() || !body.HasMember("Items")) {
    throw std::runtime_error("Scan answers " + answer);
  }
  const std::string prefix = TableOptions().prefix;
  for (const auto& item : body["Items"].GetArray()) {
    const std::string name = item["name"]["S"].GetString();
    look_at_kept(name.substr(prefix.size()), item);
  }
  for (const auto& [name, token] : tokens_) wrong("row gone: " + name);
}

void Run::look_at_kept(const std::string& name, const rapidjson::Value& item) {
  const auto last = tokens_.find(name);
  if (last == tokens_.end()) return wrong("row left: " + name);
  if (says(item, "note", "S") != kNote) wrong("row without its note: " + name);
  if (says(item, "expires", "N") != "0") wrong("row not free: " + name);
  const std::string token = says(item, "token", "N");
  if (token.empty() || std::stoull(token) < last->second) {
    wrong("row with the token '" + token + "' after " +
          std::to_string(last->second) + ": " + name);
  }
  tokens_.erase(last);
}

int Run::lost(bool kept, std::size_t action) const {
  int sum = 0;
  for (const auto& [way, times] : lost_[kept][action]) sum += times;
  return sum;
}

void Run::print_table(bool kept) const {
  std::printf("\n%-20s%10s%10s%10s\n",
              kept ? "of kept rows" : "of deleted rows", kTake.name,
              kRenew.name, kRelease.name);
  for (const std::string& kind : kKinds) {
    std::printf("%-20s", kind.c_str());
    for (const Lost& lost : lost_[kept]) {
      const auto times = lost.find(kind);
      std::printf("%10d", times == lost.end() ? 0 : times->second);
    }
    std::printf("\n");
  }
  std::printf("%-20s%10d%10d%10d\n%-20s%10ld\n", "answers lost", lost(kept, 0),
              lost(kept, 1), lost(kept, 2), "acquisitions", cycles_[kept]);
}

bool Run::goes_well() {
  for (const auto& host : hosts_) host->start();
  await_end();
  end();
  for (const bool kept : {false, true}) {
    print_table(kept);
    for (std::size_t i = 0; i < 3; ++i) {
      if (lost(kept, i) != count_) wrong("not all answers were lost");
    }
  }
  const std::size_t kept = tokens_.size();
  look_at_rows();
  std::printf("\n%-20s%10zu\n%-20s%10d\n%-20s%10d\n%-20s%10d\n", "kept rows",
              kept, "false losses", noticed_.losses.load(), "errors",
              noticed_.errors.load(), "otherwise wrong", wrong_);
  return wrong_ == 0 && noticed_.losses == 0 && noticed_.errors == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 0;
  if (argc < 2 || argc > 3 || count < 1) {
    std::fprintf(stderr, "usage: lost_answers COUNT [SEED]\n");
    return 2;
  }
  const unsigned seed =
      argc > 2 ? static_cast<unsigned>(std::strtoul(argv[2], nullptr, 10))
               : std::random_device{}() % 1000000;
  std::printf(
      "lost answers: %d of takes, renewals and releases each, of deleted rows "
      "and of kept ones, SEED=%u\n",
      count, seed);
  std::fflush(stdout);
  tests::catch_signals();
  try {
    const bool well = Run(count, seed).goes_well();
    std::printf("%s\n", well ? "nobody noticed" : "NOT WELL");
    return well ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "lost_answers: %s\n", e.what());
    return 2;
  }
}
