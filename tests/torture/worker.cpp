// One process of the torture: two threads that take eight locks, half of them
// on rows that are kept, hold them and give them back, and write down what they
// saw (diary.hpp), until stdin is at its end:
//
//   worker TABLE LOGDIR PROCESS INCARNATION SEED CA_FILE|-
//
// Endpoint, region and keys are the environment's.  The status is 0 whatever
// became of the locks: the logs tell.
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/true_clock.hpp"
#include "tests/torture/diary.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::DdbMutex;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using torture::Diary;
using torture::now;

constexpr milliseconds kShortestLease{300};
constexpr milliseconds kLongestLease{2000};
constexpr milliseconds kLongestHold{10};
constexpr int kHoldsPerLongOne = 20;
constexpr int kLongestOfLeases = 3;  // How long a long hold may be.
constexpr milliseconds kLongestPause{100};
constexpr milliseconds kLongestTry{2000};
// A waiter never gives up: lock() returns with the lock.
constexpr std::chrono::minutes kPatience{30};
constexpr milliseconds kLookEach{5};       // While held.
constexpr milliseconds kLookEachLong{20};  // In a long hold.

// Chances of one thread.
class Chance {
 public:
  explicit Chance(unsigned seed) : engine_(seed) {}

  int up_to(int most) {
    return std::uniform_int_distribution<int>(0, most)(engine_);
  }
  bool one_in(int many) { return up_to(many - 1) == 0; }
  microseconds up_to(milliseconds most) {
    return microseconds(up_to(static_cast<int>(microseconds(most).count())));
  }
  // Short ones more often, so that long ones do not take all the time.
  microseconds mostly_short(milliseconds most) {
    const double part = std::uniform_real_distribution<double>(0, 1)(engine_);
    return microseconds(std::lround(
        part * part * part * static_cast<double>(microseconds(most).count())));
  }

 private:
  std::mt19937 engine_;
};

// A mutex and what is written of it.
class Witnessed {
 public:
  struct Settings {
    std::string name;
    std::string path;  // Of the diary.
    milliseconds lease;
    bool kept;
  };

  Witnessed(const Settings& settings, std::shared_ptr<ddbmutex::Table> table)
      : diary(settings.path),
        ttl(settings.lease),
        kept(settings.kept),
        mutex(settings.name, options(std::move(table))) {
    diary.clocks(tests::calendar_offset(), tests::boot_clock_offset());
    if (kept) diary.kept();
  }

  Diary diary;  // First: callbacks write to it until the mutex is gone.
  const milliseconds ttl;
  const bool kept;
  DdbMutex mutex;

 private:
  ddbmutex::Options options(std::shared_ptr<ddbmutex::Table> table) {
    ddbmutex::Options all;
    all.table = std::move(table);
    all.ttl = ttl;
    all.keep_row = kept;
    all.first_poll = 5ms;
    all.longest_poll = 100ms;
    all.patience = kPatience;
    all.on_lost = [this](ddbmutex::Loss loss) {
      diary.lost(ddbmutex::name_of(loss), now());
    };
    return all;
  }
};

using All = std::vector<std::unique_ptr<Witnessed>>;

class Hand {
 public:
  Hand(int thread, unsigned seed, const All& all, const std::atomic<bool>& end)
      : thread_(thread), chance_(seed), all_(all), end_(end) {}

  void work() {
    while (!end_) {
      const int last = static_cast<int>(all_.size()) - 1;
      Witnessed& one = *all_[static_cast<std::size_t>(chance_.up_to(last))];
      if (takes(one)) {
        if (holds(one)) end_claim(one);
        give_back(one);
      }
      std::this_thread::sleep_for(chance_.mostly_short(kLongestPause));
    }
  }

 private:
  bool takes(Witnessed& one) {
    std::error_code ec;
    const int percent = chance_.up_to(99);
    bool taken = false;
    if (percent < 85) {
      one.diary.wants(thread_, now(), "lock");
      one.mutex.lock(ec);
      taken = !ec;
    } else if (percent < 95) {
      const microseconds time = chance_.up_to(kLongestTry);
      one.diary.wants(thread_, now(), "try_for");
      taken = one.mutex.try_lock_for(time, ec);
    } else {
      one.diary.wants(thread_, now(), "try");
      taken = one.mutex.try_lock(ec);
    }
    const nanoseconds time = now();
    if (taken && one.kept) {
      one.diary.acquired(thread_, time, one.mutex.fencing_token());
    } else if (taken) {
      one.diary.acquired(thread_, time);
    } else {
      one.diary.without(thread_, time, why(ec));
    }
    return taken;
  }

  static std::string why(const std::error_code& ec) {
    if (!ec) return "busy";
    return "error " + std::to_string(ec.value()) + "-" + ec.message();
  }

  // False if it was lost meanwhile.
  bool holds(Witnessed& one) {
    const bool is_long = chance_.one_in(kHoldsPerLongOne);
    const nanoseconds time =
        is_long ? chance_.mostly_short(kLongestOfLeases * one.ttl)
                : chance_.up_to(kLongestHold);
    const nanoseconds step = is_long ? kLookEachLong : kLookEach;
    const nanoseconds end = now() + time;
    while (looks(one)) {
      const nanoseconds left = end - now();
      if (left <= 0ns || end_) return looks(one);
      std::this_thread::sleep_for(std::min(step, left));
    }
    return false;
  }

  // The clock first: what is asked after it and is true was true then too,
  // since a lock that is lost does not come back.
  bool looks(Witnessed& one) {
    const nanoseconds time = now();
    const nanoseconds left = one.mutex.remaining();
    if (left > 0ns) {
      one.diary.held(time, time + left);
    } else {
      one.diary.lost_seen(now());
    }
    return left > 0ns;
  }

  void end_claim(Witnessed& one) {
    const nanoseconds time = now();
    if (one.mutex.owns_lock()) {
      one.diary.ended(time);
    } else {
      one.diary.lost_seen(now());
    }
  }

  void give_back(Witnessed& one) {
    std::error_code ec;
    if (chance_.one_in(2)) {
      one.mutex.unlock();
    } else {
      one.mutex.release(ec);
    }
    one.diary.let_go(now(), ec ? ec.message() : "");
  }

  const int thread_;
  Chance chance_;
  const All& all_;
  const std::atomic<bool>& end_;
};

All all_mutexes(const std::string& logs, const torture::Life& life,
                const std::shared_ptr<ddbmutex::Table>& table, Chance& chance) {
  All all;
  for (int i = 0; i < torture::kNames; ++i) {
    const std::string name = torture::lock_name(i);
    const auto lease = kShortestLease +
                       std::chrono::duration_cast<milliseconds>(
                           chance.mostly_short(kLongestLease - kShortestLease));
    all.push_back(std::make_unique<Witnessed>(
        Witnessed::Settings{name, torture::diary_path(logs, life, name), lease,
                            torture::is_kept(i)},
        table));
  }
  return all;
}

void work_until_told(const All& all, unsigned seed) {
  std::atomic<bool> end{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < torture::kThreads; ++i) {
    threads.emplace_back([i, seed, &all, &end] {
      Hand(i, seed + 1 + static_cast<unsigned>(i), all, end).work();
    });
  }
  pollfd input = {STDIN_FILENO, POLLIN, 0};
  while (poll(&input, 1, -1) < 0) {
  }
  end = true;  // Threads that wait now still get the lock.
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 7) {
    std::fprintf(stderr,
                 "usage: worker TABLE LOGDIR PROCESS INCARNATION SEED CA|-\n");
    return 2;
  }
  ddbmutex::TableOptions options;
  options.name = argv[1];
  if (argv[6] != std::string("-")) options.ca_file = argv[6];
  const auto table = std::make_shared<ddbmutex::Table>(options);
  const auto seed = static_cast<unsigned>(std::stoul(argv[5]));
  Chance chance(seed);
  const All all = all_mutexes(argv[2], {std::stoi(argv[3]), std::stoi(argv[4])},
                              table, chance);
  work_until_told(all, seed);
  return 0;
}
