// One of the processes of `throttling`: its threads want a lock each, once.
//
//   throttled_worker TABLE PREFIX WAITERS HELD HOLD_MS PATIENCE_MS SEED
//
// Endpoint, region and keys are the environment's.  The names are PREFIX and a
// number; with a PREFIX that ends in "=", they are all PREFIX itself, and each
// thread has a mutex of its own.  HELD more are locked before the rest and kept
// through renewals of a lease of 10 s.
//
// It says, a line each: "ready"; once it was told to go, "taken N" (when, in
// nanoseconds of the boot clock) or "failed ..." for each thread, and "done";
// once it was told to end, "held N".
#include <atomic>
#include <chrono>
#include <cstdio>
#include <exception>
#include <iostream>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/boot_clock.hpp"

namespace {

using ddbmutex::BootClock;
using ddbmutex::DdbMutex;
using std::chrono::milliseconds;
using Mutexes = std::vector<std::unique_ptr<DdbMutex>>;

constexpr milliseconds kHeldTtl{10000};
constexpr int kLongestStart = 100;  // Milliseconds until a thread begins.

struct Plan {
  std::string table;
  std::string prefix;
  int waiters;
  int held;
  milliseconds hold;
  milliseconds patience;
  unsigned seed;
};

void say(const std::string& line) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> guard(mutex);
  std::cout << line << std::endl;
}

class Worker {
 public:
  explicit Worker(const Plan& plan) : plan_(plan) {
    ddbmutex::TableOptions table;
    table.name = plan.table;
    options_.table = std::make_shared<ddbmutex::Table>(table);
    options_.patience = plan.patience;
    const bool same = plan.prefix.back() == '=';
    for (int i = 0; i < plan.waiters; ++i) {
      const std::string number = same ? "" : std::to_string(i);
      wanted_.push_back(
          std::make_unique<DdbMutex>(plan.prefix + number, options_));
    }
    options_.ttl = kHeldTtl;
    for (int i = 0; i < plan.held; ++i) {
      const std::string name = plan.prefix + "held-" + std::to_string(i);
      held_.push_back(std::make_unique<DdbMutex>(name, options_));
    }
  }

  void hold_some() {
    for (const auto& mutex : held_) mutex->lock();
  }

  void want_all() {
    std::mt19937 random(plan_.seed);
    std::uniform_int_distribution<int> start(0, kLongestStart);
    std::vector<std::thread> threads;
    for (const auto& mutex : wanted_) {
      threads.emplace_back([this, &mutex, pause = milliseconds(start(random))] {
        std::this_thread::sleep_for(pause);
        want(*mutex);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  int still_held() const {
    int held = 0;
    for (const auto& mutex : held_) held += mutex->owns_lock() ? 1 : 0;
    return held;
  }

 private:
  void want(DdbMutex& mutex) const {
    std::error_code ec;
    mutex.lock(ec);
    if (ec) return say("failed " + mutex.last_error());
    const auto taken = BootClock::now().time_since_epoch();
    std::this_thread::sleep_for(plan_.hold);
    const bool ours = mutex.owns_lock();
    mutex.unlock();  // What it cannot say in time goes on behind.
    say(ours ? "taken " + std::to_string(taken.count()) : "failed lost it");
  }

  const Plan plan_;
  ddbmutex::Options options_;
  Mutexes wanted_;
  Mutexes held_;
};

void expect(const std::string& word) {
  std::string line;
  if (!std::getline(std::cin, line) || line != word) std::exit(3);
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 8) {
    std::cerr << "usage: throttled_worker TABLE PREFIX WAITERS HELD HOLD_MS "
                 "PATIENCE_MS SEED\n";
    return 2;
  }
  Worker worker({argv[1], argv[2], std::stoi(argv[3]), std::stoi(argv[4]),
                 milliseconds(std::stol(argv[5])),
                 milliseconds(std::stol(argv[6])),
                 static_cast<unsigned>(std::stoul(argv[7]))});
  worker.hold_some();
  say("ready");
  expect("go");
  worker.want_all();
  say("done");
  expect("end");
  say("held " + std::to_string(worker.still_held()));
} catch (const std::exception& problem) {
  std::cerr << problem.what() << "\n";
  return 1;
}
