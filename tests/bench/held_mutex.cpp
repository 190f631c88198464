// Contestant: many locks of one Table, held: what it costs to renew them.  A
// cycle is a second, in which the caller's thread sleeps.
//
//   held_mutex URL COUNT MILLISECONDS
//
// Each is renewed once it is so old.  Keys come from the environment.
#include <time.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/mutex_case.hpp"

namespace {

class Held : public bench::Contestant {
 public:
  Held(const char* url, unsigned count, std::chrono::milliseconds renew_after)
      : table_(bench::table_at(url)) {
    ddbmutex::Options options = bench::options_on(table_);
    options.renew_after = renew_after;
    options.on_lost = [this](ddbmutex::Loss) { ++lost_; };
    mutexes_ = bench::held(count, options);
    ends_ = ends();
    const ddbmutex::Stats stats = table_->stats();
    takes_ = stats.requests() - stats.update_item;
  }

  bool cycle() override {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return none_lost() && only_renewals();
  }

  // The first renewals come sooner than others.
  bool settle() override {
    return std::exchange(settled_, true) || all_are_renewed();
  }

  // Whoever is no longer renewed would be noticed here.
  bool finish() override {
    if (!all_are_renewed()) return false;
    mutexes_.clear();
    return none_lost();
  }

  std::uint64_t requests() const override { return table_->stats().requests(); }

 private:
  bool none_lost() const {
    if (lost_ == 0) return true;
    std::fprintf(stderr, "held_mutex: %u locks were lost\n", lost_.load());
    return false;
  }

  bool only_renewals() const {
    const ddbmutex::Stats stats = table_->stats();
    if (stats.requests() - stats.update_item == takes_) return true;
    std::fprintf(stderr, "held_mutex: something else than renewals was sent\n");
    return false;
  }

  // When each lease ends, by the boot clock; rather too late than too early.
  std::vector<std::int64_t> ends() const {
    std::vector<std::int64_t> ends;
    for (const auto& mutex : mutexes_) {
      const std::int64_t remaining = mutex->remaining().count();
      ends.push_back(remaining + bench::now_ns(CLOCK_BOOTTIME));
    }
    return ends;
  }

  bool is_renewed(std::size_t i) const {
    constexpr std::int64_t kLeast = 50'000'000;  // No renewal adds less.
    const std::int64_t now = bench::now_ns(CLOCK_BOOTTIME);
    return now + mutexes_[i]->remaining().count() > ends_[i] + kLeast;
  }

  // Waits until each has been since this was asked before, or one is lost.
  bool all_are_renewed() {
    for (std::size_t i = 0; i < mutexes_.size(); ++i) {
      while (!is_renewed(i)) {
        if (!none_lost()) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
      }
    }
    ends_ = ends();
    return none_lost();
  }

  std::atomic<unsigned> lost_{0};
  const std::shared_ptr<ddbmutex::Table> table_;
  bench::Mutexes mutexes_;
  std::vector<std::int64_t> ends_;
  std::uint64_t takes_ = 0;  // And what else is no renewal.
  bool settled_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 4 ? std::atoi(argv[2]) : 0;
  const int renew_after = argc == 4 ? std::atoi(argv[3]) : 0;
  if (count < 1 || renew_after < 100) {
    std::fprintf(stderr, "usage: held_mutex URL COUNT MILLISECONDS\n");
    return 2;
  }
  Held held(argv[1], static_cast<unsigned>(count),
            std::chrono::milliseconds(renew_after));
  return bench::Runs(held, bench::Timing::whole_run).serve();
}
