// Takes one lock over and over and logs its claims (claims.hpp), until its
// stdin is at its end:
//
//   worker TABLE NAME LOG SEED TTL_MS HOLD_MS LONGEST_PAUSE_MS
//
// Endpoint, region and keys are the environment's.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"
#include "tests/claims/claims.hpp"
#include "tests/support/true_clock.hpp"

namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

nanoseconds now() { return tests::true_time(CLOCK_BOOTTIME); }

// Waits for the end of what is said to us, and ends the waits of a mutex then.
class End {
 public:
  explicit End(ddbmutex::DdbMutex& mutex)
      : mutex_(mutex), watcher_([this] { watch(); }) {}
  ~End() {  // Waits until it has come.
    done_ = true;
    watcher_.join();
  }
  End(const End&) = delete;
  End& operator=(const End&) = delete;

  bool has_come() const { return has_come_; }

 private:
  void watch() {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    while (poll(&input, 1, -1) < 0) {
    }
    has_come_ = true;
    while (!done_) {  // A wait may be about to begin.
      mutex_.cancel();
      std::this_thread::sleep_for(milliseconds(5));
    }
  }

  ddbmutex::DdbMutex& mutex_;
  std::atomic<bool> has_come_{false};
  std::atomic<bool> done_{false};
  std::thread watcher_;  // Last: it uses the others.
};

class Worker {
 public:
  Worker(ddbmutex::DdbMutex& mutex, claims::LogWriter& log, milliseconds hold,
         milliseconds longest_pause, unsigned seed)
      : mutex_(mutex),
        log_(log),
        hold_(hold),
        pause_(0, microseconds(longest_pause).count()),
        random_(seed) {}

  bool work() {
    const End end(mutex_);
    while (!end.has_come()) {
      std::error_code ec;
      mutex_.lock(ec);
      if (ec == ddbmutex::Errc::cancelled) continue;
      if (ec) {
        log_.failed(mutex_.last_error());
        return false;
      }
      if (!hold()) return false;
      mutex_.unlock();
      std::this_thread::sleep_for(microseconds(pause_(random_)));
    }
    return true;
  }

 private:
  // Each time the clock first: what is asked after it was true then too, since
  // a lock that is lost does not come back.
  bool hold() {
    const nanoseconds acquired = now();
    const nanoseconds lease_end = acquired + mutex_.remaining();
    if (lease_end == acquired) return true;  // Lost before it was begun.
    if (!log_.acquired(acquired)) return false;
    std::this_thread::sleep_for(hold_);
    const nanoseconds ended = now();
    const bool still_ours = mutex_.owns_lock();
    return log_.ended(still_ours ? ended : std::min(ended, lease_end));
  }

  ddbmutex::DdbMutex& mutex_;
  claims::LogWriter& log_;
  const milliseconds hold_;
  std::uniform_int_distribution<long> pause_;
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr, "usage: worker TABLE NAME LOG SEED TTL HOLD PAUSE\n");
    return 2;
  }
  claims::LogWriter log(argv[3]);
  log.clocks(tests::calendar_offset(), tests::boot_clock_offset());
  ddbmutex::TableOptions table;
  table.name = argv[1];
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(table);
  options.ttl = milliseconds(std::stol(argv[5]));
  ddbmutex::DdbMutex mutex(argv[2], options);
  Worker worker(mutex, log, milliseconds(std::stol(argv[6])),
                milliseconds(std::stol(argv[7])),
                static_cast<unsigned>(std::stoul(argv[4])));
  return worker.work() ? 0 : 1;
}
