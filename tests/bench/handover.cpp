// Contestant: threads of one process that want one lock and hand it on, in the
// order in which they come, without a request.
//
//   handover mutex THREADS URL   a DdbMutex
//   handover std THREADS         std::mutex, a std::condition_variable for each
//
// A cycle is kTurns turns of each thread.  Whoever has the lock keeps it until
// another comes for it, so that there is one to hand it to.  Keys come from the
// environment.
#include <sched.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/mutex_case.hpp"

namespace {

constexpr unsigned kTurns = 200;

class OurLock {
 public:
  explicit OurLock(const char* url)
      : table_(bench::table_at(url)), mutex_("nightly-report", [this] {
          ddbmutex::Options options = bench::options_on(table_);
          options.ttl = std::chrono::hours(24);
          options.handover_limit = std::numeric_limits<int>::max();
          return options;
        }()) {}
  void lock() { bench::lock_or_exit(mutex_); }
  void unlock() { mutex_.unlock(); }
  std::uint64_t requests() const { return table_->stats().requests(); }

 private:
  const std::shared_ptr<ddbmutex::Table> table_;
  ddbmutex::DdbMutex mutex_;
};

// As our queue is: first come, first served, each woken alone.
class StdLock {
 public:
  void lock() {
    std::unique_lock<std::mutex> guard(mutex_);
    if (!locked_) {
      locked_ = true;
      return;
    }
    Waiter own;
    line_.push_back(&own);
    own.changed.wait(guard, [&] { return own.has_lock; });
  }
  void unlock() {
    const std::lock_guard<std::mutex> guard(mutex_);
    locked_ = !line_.empty();
    if (!locked_) return;
    Waiter& heir = *line_.front();
    line_.pop_front();
    heir.has_lock = true;
    heir.changed.notify_one();  // With the mutex, for then it is still there.
  }
  std::uint64_t requests() const { return 0; }

 private:
  struct Waiter {
    std::condition_variable changed;
    bool has_lock = false;
  };
  std::mutex mutex_;
  std::deque<Waiter*> line_;
  bool locked_ = false;
};

// The calling thread is one of them, and has the lock between the cycles.
template <class Lock>
class Crew : public bench::Contestant {
 public:
  template <class... Arguments>
  explicit Crew(unsigned threads, Arguments... arguments)
      : lock_(arguments...) {
    lock_.lock();
    while (threads_.size() + 1 < threads) {
      threads_.emplace_back([this] { work(); });
    }
  }
  ~Crew() override {
    finish();
    begin(kOver);
    for (std::thread& thread : threads_) thread.join();
  }
  Crew(const Crew&) = delete;
  Crew& operator=(const Crew&) = delete;

  bool cycle() override {
    working_ = static_cast<unsigned>(threads_.size());
    begin(round_ + 1);
    while (working_ > 0) {
      if (coming_ == 0) {
        sched_yield();
        continue;
      }
      lock_.unlock();
      take();
    }
    return true;
  }

  bool finish() override {
    if (has_it_) lock_.unlock();
    has_it_ = false;
    return true;
  }

  std::uint64_t requests() const override { return lock_.requests(); }

 private:
  static constexpr unsigned kOver = std::numeric_limits<unsigned>::max();

  void begin(unsigned round) {
    const std::lock_guard<std::mutex> guard(mutex_);
    round_ = round;
    begun_.notify_all();
  }

  void take() {
    ++coming_;
    lock_.lock();
    --coming_;
  }

  void work() {
    for (unsigned round = 1;; ++round) {
      {
        std::unique_lock<std::mutex> guard(mutex_);
        begun_.wait(guard, [&] { return round_ >= round; });
        if (round_ == kOver) return;
      }
      for (unsigned i = 0; i < kTurns; ++i) {
        take();
        if (i + 1 == kTurns) --working_;
        while (coming_ == 0) sched_yield();
        lock_.unlock();
      }
    }
  }

  Lock lock_;
  bool has_it_ = true;
  std::atomic<unsigned> coming_{0};   // Who calls lock().
  std::atomic<unsigned> working_{0};  // Those of threads_ with turns left.
  std::mutex mutex_;
  std::condition_variable begun_;
  unsigned round_ = 0;  // GUARDED_BY(mutex_), but for its writer.
  std::vector<std::thread> threads_;
};

int serve(bench::Contestant&& contestant) {
  return bench::Runs(contestant, bench::Timing::each_cycle).serve();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string which = argc > 2 ? argv[1] : "";
  const unsigned threads =
      argc > 2 ? static_cast<unsigned>(std::atoi(argv[2])) : 0;
  if (which == "mutex" && argc == 4) {
    return serve(Crew<OurLock>(threads, argv[3]));
  }
  if (which == "std" && argc == 3) return serve(Crew<StdLock>(threads));
  std::fprintf(stderr, "usage: handover mutex THREADS URL|std THREADS\n");
  return 2;
}
