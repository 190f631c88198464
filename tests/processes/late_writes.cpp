// Holders that write too late: each is stopped past its lease, while another
// process takes the lock and writes.  Does the guard refuse them?
//
//   late_writes [NAME=NUMBER ...]
//
//   rounds=1000  one late write each
//   pairs=12     of a holder and a rival, processes of their own, at a time
//   ttl=1000     milliseconds that a lease lasts; a request has almost half
//
// In half of the rounds the holder stops itself (SIGSTOP) after it has seen
// that the lock is its own, and before it calls the guard; in the others it is
// stopped while its guarded write is under way, held by a server before the
// engine that lets it through once the rival has written, so that nobody but
// DynamoDB can refuse it.  In half of each the rows are kept; in half of those
// the rival has given the lock back by then.  Once it goes on (SIGCONT), the
// holder also writes what it was to write without the guard.
//
// Status 0 if all guarded writes of holders were refused with lease_lost by the
// engine, all unguarded ones went through, and the table says so too.
//
// The same program is holder and rival: "late_writes actor TABLE TTL_MS".
#include <rapidjson/document.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/client.hpp"
#include "ddbmutex/endpoint.hpp"
#include "ddbmutex/record.hpp"
#include "sigv4/keys.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/given.hpp"
#include "tests/support/numbers.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using ddbmutex::BootClock;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using std::chrono::milliseconds;
using tests::Engine;
using tests::Gate;
using tests::Numbers;
using tests::Process;

constexpr const char* kGuarded = "guarded-";
constexpr const char* kPlain = "plain-";

// {"TableName":"t","Item":{"name":{"S":"guarded-x"},"by":{"S":"rival"}}}
std::string put(const std::string& table, const std::string& key,
                const std::string& by) {
  return R"({"TableName":")" + table + R"(","Item":{"name":{"S":")" + key +
         R"("},"by":{"S":")" + by + R"("}}})";
}

// --- Holder and rival --------------------------------------------------------

struct Order {
  std::string role;  // "holder", "rival"
  std::string name;
  bool keep = false;
  // Holder: stops itself before the guard.  Rival: gives the lock back.
  bool flag = false;
};

class Actor {
 public:
  Actor(std::string table, milliseconds ttl)
      : name_(std::move(table)), ttl_(ttl) {
    ddbmutex::TableOptions options;
    options.name = name_;
    table_ = std::make_shared<ddbmutex::Table>(options);
  }

  void act(const Order& order) {
    ddbmutex::Options options;
    options.table = table_;
    options.ttl = ttl_;
    options.request_timeout =
        ttl_ * 9 / 20;  // On a busy machine it takes long.
    options.keep_row = order.keep;
    DdbMutex mutex(order.name, options);
    if (order.role == "holder") {
      hold(mutex, order);
    } else {
      rival(mutex, order);
    }
    mutex.unlock();
    say("done");
  }

 private:
  static void say(const std::string& line) { std::cout << line << std::endl; }

  std::string writes(const Order& order) const {
    return R"([{"Put":)" + put(name_, kGuarded + order.name, order.role) + "}]";
  }

  void hold(DdbMutex& mutex, const Order& order) {
    do {  // On a busy machine the lease may be over before it is looked at.
      mutex.unlock();
      mutex.lock();
    } while (!mutex.owns_lock());
    say("holds " + std::to_string(mutex.fencing_token()));
    if (order.flag) raise(SIGSTOP);
    std::error_code error;
    mutex.guarded_write(writes(order), error);
    say("guarded " + (error ? error.message() : "written"));
    say("plain " + write_unguarded(order));
  }

  // Until it has written while the lock was its own.
  void rival(DdbMutex& mutex, const Order& order) {
    std::error_code error;
    do {
      mutex.unlock();
      mutex.lock();
      mutex.guarded_write(writes(order), error);
    } while (error == Errc::lease_lost);
    if (error) throw std::runtime_error(mutex.last_error());
    const std::uint64_t token = mutex.fencing_token();
    write_unguarded(order);
    if (order.flag) mutex.unlock();
    say("wrote " + std::to_string(token));
    std::string line;
    std::getline(std::cin, line);
  }

  std::string write_unguarded(const Order& order) {
    using namespace ddbmutex::dynamodb;
    const Answer answer = plain_.call(
        Action::put_item, put(name_, kPlain + order.name, order.role),
        BootClock::now() + std::chrono::seconds(30), waker_);
    return answer.fault == Fault::none ? "written" : answer.message;
  }

  const std::string name_;
  const milliseconds ttl_;
  std::shared_ptr<ddbmutex::Table> table_;
  ddbmutex::sigv4::Waker waker_;
  ddbmutex::dynamodb::Client plain_{
      {ddbmutex::dynamodb::find_target({}),
       tests::given_keys(ddbmutex::sigv4::environment_keys().keys),
       {}}};
};

int act(const std::string& table, milliseconds ttl) {
  Actor actor(table, ttl);
  Order order;
  while (std::cin >> order.role >> order.name >> order.keep >> order.flag) {
    std::string rest;
    std::getline(std::cin, rest);
    actor.act(order);
  }
  return 0;
}

// --- Rounds ------------------------------------------------------------------

struct Counts {
  std::atomic<int> refused{0};    // As they should be.
  std::atomic<int> unguarded{0};  // That went through, likewise.
  std::atomic<int> by_engine{0};  // Rounds whose late write it has seen.
  std::atomic<int> ended{0};
  std::mutex mutex;
  std::vector<std::string> wrong;  // GUARDED_BY(mutex)

  void complain(const std::string& text) {
    const std::lock_guard<std::mutex> guard(mutex);
    wrong.push_back(text);
  }
};

// Of a line "WORD REST".
std::string rest_of(const std::string& line, const std::string& word) {
  if (line.compare(0, word.size() + 1, word + " ") != 0) {
    throw std::runtime_error("instead of \"" + word + "\": " + line);
  }
  return line.substr(word.size() + 1);
}

// A holder that talks through a gate, and a rival that does not.
class Pair {
 public:
  Pair(Engine& engine, long ttl)
      : gate_(engine.kind()),
        holder_({command(engine, ttl), environment(gate_.server().url())}),
        rival_({command(engine, ttl), environment(engine.url())}) {}

  // One late write.
  void play(long number, const std::string& name, Counts& counts) {
    const bool before = number % 2 == 0;
    const bool keep = number / 2 % 2 == 0;
    const bool gives_back = number / 4 % 2 == 0;
    const int sent = guarded();
    if (!before) gate_.always("TransactWriteItems", Gate::held());
    say(holder_, {"holder", name, keep, before});
    const std::string token = rest_of(holder_.channel().line(), "holds");
    if (!before) stop_amid_its_write(sent);
    holder_.wait_until_stopped();
    say(rival_, {"rival", name, keep, gives_back});
    const std::string later = rest_of(rival_.channel().line(), "wrote");
    const bool in_order =
        keep ? std::stoll(later) > std::stoll(token) : later == token;
    if (!in_order)
      counts.complain(name + ": token " + later + " after " + token);
    gate_.open();
    gate_.server().release();
    holder_.signal(SIGCONT);
    judge(name, counts);
    if (guarded() > sent) ++counts.by_engine;
    rival_.channel().say("end");
    expect_done(holder_);
    expect_done(rival_);
  }

 private:
  static std::vector<std::string> command(const Engine& engine, long ttl) {
    return {tests::program_path("processes/late_writes"), "actor",
            engine.table(), std::to_string(ttl)};
  }

  std::vector<std::string> environment(const std::string& url) const {
    tests::Whereabouts where = tests::at(gate_.engine());
    where.url = url;
    return tests::environment_of(where);
  }

  int guarded() const {
    return tests::count_of(gate_.server(), "TransactWriteItems");
  }

  static void say(Process& process, const Order& order) {
    std::ostringstream line;
    line << order.role << " " << order.name << " " << order.keep << " "
         << order.flag;
    process.channel().say(line.str());
  }

  static void expect_done(Process& process) {
    const std::string line = process.channel().line();
    if (line != "done") throw std::runtime_error("not done: " + line);
  }

  // Once the request is held.
  void stop_amid_its_write(int sent) {
    const auto end = BootClock::now() + tests::kPlenty;
    while (guarded() == sent) {
      if (BootClock::now() > end) throw std::runtime_error("no guarded write");
      std::this_thread::sleep_for(milliseconds(1));
    }
    holder_.signal(SIGSTOP);
  }

  void judge(const std::string& name, Counts& counts) {
    const std::string lost = make_error_code(Errc::lease_lost).message();
    const std::string guarded = rest_of(holder_.channel().line(), "guarded");
    const std::string plain = rest_of(holder_.channel().line(), "plain");
    if (guarded == lost) {
      ++counts.refused;
    } else {
      counts.complain(name + ": guarded: " + guarded);
    }
    if (plain == "written") {
      ++counts.unguarded;
    } else {
      counts.complain(name + ": unguarded: " + plain);
    }
  }

  Gate gate_;
  Process holder_;
  Process rival_;
};

class Run {
 public:
  explicit Run(const Numbers& numbers) : rounds_(numbers.at("rounds")) {
    for (long i = 0; i < numbers.at("pairs"); ++i) {
      pairs_.push_back(std::make_unique<Pair>(engine_, numbers.at("ttl")));
    }
  }

  bool goes_well() {
    std::vector<std::thread> threads;
    for (const auto& pair : pairs_) {
      threads.emplace_back([this, &pair] { play_all(*pair); });
    }
    for (std::thread& thread : threads) thread.join();
    look_at_table();
    for (const std::string& text : counts_.wrong) {
      std::printf("%s\n", text.c_str());
    }
    std::printf(
        "%ld late writes: %d refused by their guard, of which the engine saw "
        "%d; %d went through without it\nin the table: %ld of the rivals "
        "behind the guard, %ld of the holders without it\n",
        rounds_, counts_.refused.load(), counts_.by_engine.load(),
        counts_.unguarded.load(), stored_["guarded-rival"],
        stored_["plain-holder"]);
    return counts_.wrong.empty() && counts_.refused == rounds_ &&
           counts_.by_engine == rounds_ && counts_.unguarded == rounds_ &&
           stored_ == std::map<std::string, long>{{"guarded-rival", rounds_},
                                                  {"plain-holder", rounds_}};
  }

 private:
  void play_all(Pair& pair) {
    try {
      for (long number; (number = next_++) < rounds_;) {
        pair.play(number, prefix_ + std::to_string(number), counts_);
        const int ended = ++counts_.ended;
        if (ended % 100 != 0) continue;
        std::printf("late writes: %d of %ld rounds\n", ended, rounds_);
        std::fflush(stdout);
      }
    } catch (const std::exception& problem) {
      counts_.complain(problem.what());
    }
  }

  // What was written by whom, of this run.
  void look_at_table() {
    std::string start;
    do {
      const std::string answer = engine_.must_call(
          "Scan", R"({"TableName":")" + engine_.table() +
                      R"(","ConsistentRead":true)" + start + "}");
      rapidjson::Document page;
      page.Parse(answer.data(), answer.size());
      if (!page.IsObject() || !page.HasMember("Items")) {
        throw std::runtime_error("Scan answers " + answer);
      }
      for (const auto& item : page["Items"].GetArray()) count(item);
      start.clear();
      if (!page.HasMember("LastEvaluatedKey")) continue;
      start = std::string(R"(,"ExclusiveStartKey":{"name":{"S":")") +
              page["LastEvaluatedKey"]["name"]["S"].GetString() + "\"}}";
    } while (!start.empty());
  }

  void count(const rapidjson::Value& item) {
    const std::string name = item["name"]["S"].GetString();
    for (const char* kind : {kGuarded, kPlain}) {
      if (name.rfind(kind + prefix_, 0) != 0) continue;
      ++stored_[std::string(kind) + item["by"]["S"].GetString()];
    }
  }

  const long rounds_;
  const std::string prefix_ = ddbmutex::lock::fresh_uuid() + "-";
  Engine& engine_ = Engine::running(tests::any_engine_kind());
  std::vector<std::unique_ptr<Pair>> pairs_;
  std::atomic<long> next_{0};
  Counts counts_;
  std::map<std::string, long> stored_;
};

Numbers defaults() { return {{"rounds", 1000}, {"pairs", 12}, {"ttl", 1000}}; }

}  // namespace

int main(int argc, char** argv) try {
  if (argc == 4 && argv[1] == std::string("actor")) {
    return act(argv[2], milliseconds(std::stol(argv[3])));
  }
  return Run(tests::numbers_of(argc, argv, defaults())).goes_well() ? 0 : 1;
} catch (const std::exception& error) {
  std::fprintf(stderr, "%s\n", error.what());
  return 1;
}
