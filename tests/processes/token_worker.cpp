// Takes and releases kept locks of many names by several threads, and logs the
// fencing tokens that it is given (tests/claims/tokens.hpp), until its stdin is
// at its end or something goes wrong:
//
//   token_worker TABLE LOCKS THREADS TTL_MS SEED LOG COUNT
//
// COUNT is a file to count the acquisitions in (tests/claims/shared_count.hpp).
// The names are "token-0" and so on.  Endpoint, region and keys are the
// environment's.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/claims/witness.hpp"

namespace {

using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kLongestHold{500};

struct Settings {
  int locks;
  int threads;
  milliseconds ttl;
  unsigned seed;
};

class Worker {
 public:
  Worker(std::shared_ptr<ddbmutex::Table> table, const Settings& settings,
         const std::string& log, const std::string& count)
      : settings_(settings), log_(log), count_(count) {
    ddbmutex::Options options;
    options.table = std::move(table);
    options.ttl = settings.ttl;
    options.keep_row = true;
    options.only_if_exists = true;
    options.patience = std::chrono::minutes(30);  // The run has its own.
    options.first_poll = milliseconds(2);
    options.longest_poll = milliseconds(20);
    for (int i = 0; i < settings.locks; ++i) {
      mutexes_.push_back(
          std::make_unique<DdbMutex>("token-" + std::to_string(i), options));
    }
  }

  bool work() {
    std::vector<std::thread> threads;
    running_ = settings_.threads;
    for (int i = 0; i < settings_.threads; ++i) {
      const unsigned seed = settings_.seed + static_cast<unsigned>(i);
      threads.emplace_back([this, seed] {
        take_and_release(seed);
        --running_;
      });
    }
    constexpr int kLookEachMs = 100;
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (!failed_ && poll(&input, 1, kLookEachMs) <= 0) {
    }
    end_ = true;
    while (running_ > 0) {  // A wait may be about to begin.
      for (const auto& mutex : mutexes_) mutex->cancel();
      std::this_thread::sleep_for(milliseconds(5));
    }
    for (std::thread& thread : threads) thread.join();
    return !failed_;
  }

 private:
  void take_and_release(unsigned seed) {
    std::mt19937 random(seed);
    std::uniform_int_distribution<int> lock(0, settings_.locks - 1);
    std::uniform_int_distribution<long> hold(0, kLongestHold.count());
    while (!end_ && !failed_) {
      const int which = lock(random);
      DdbMutex& mutex = *mutexes_[static_cast<std::size_t>(which)];
      std::error_code ec;
      mutex.lock(ec);
      if (ec == Errc::cancelled) continue;
      if (ec) {
        failed_ = true;
        log_.failed(mutex.last_error());
        return;
      }
      const microseconds time(hold(random));
      const auto held = claims::hold(mutex, which, time, log_, count_);
      if (held == claims::Held::badly) failed_ = true;
      mutex.unlock();
    }
  }

  const Settings settings_;
  claims::TokenLog log_;
  claims::SharedCount count_;
  std::vector<std::unique_ptr<DdbMutex>> mutexes_;
  std::atomic<bool> end_{false};
  std::atomic<bool> failed_{false};
  std::atomic<int> running_{0};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(
        stderr, "usage: token_worker TABLE LOCKS THREADS TTL SEED LOG COUNT\n");
    return 2;
  }
  ddbmutex::TableOptions table;
  table.name = argv[1];
  const Settings settings = {std::stoi(argv[2]), std::stoi(argv[3]),
                             milliseconds(std::stol(argv[4])),
                             static_cast<unsigned>(std::stoul(argv[5]))};
  Worker worker(std::make_shared<ddbmutex::Table>(table), settings, argv[6],
                argv[7]);
  return worker.work() ? 0 : 1;
}
