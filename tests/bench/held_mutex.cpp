// Contestant: many locks of one Table, held: what it costs to renew them.  A
// cycle is a second, in which the caller's thread sleeps.
//
//   held_mutex URL COUNT TTL_SECONDS
//
// Keys come from the environment.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "ddbmutex.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/mutex_case.hpp"

namespace {

class Held : public bench::Contestant {
 public:
  Held(const char* url, unsigned count, std::chrono::seconds ttl)
      : table_(bench::table_at(url)) {
    ddbmutex::Options options = bench::options_on(table_);
    options.ttl = ttl;
    options.on_lost = [this](ddbmutex::Loss) { ++lost_; };
    mutexes_ = bench::held(count, options);
  }

  bool cycle() override {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    return none_lost();
  }

  // Renewals; it is an error if there is anything else during a run.
  std::uint64_t requests() const override {
    return table_->stats().update_item;
  }

  bool none_lost() const {
    if (lost_ == 0) return true;
    std::fprintf(stderr, "held_mutex: %u locks were lost\n", lost_.load());
    return false;
  }

  // More than a look at a number: not for a run.
  bool holds_all() const {
    for (const auto& mutex : mutexes_) {
      if (mutex->owns_lock()) continue;
      std::fprintf(stderr, "held_mutex: %s is not held\n",
                   mutex->name().c_str());
      return false;
    }
    return none_lost();
  }

 private:
  std::atomic<unsigned> lost_{0};
  const std::shared_ptr<ddbmutex::Table> table_;
  bench::Mutexes mutexes_;
};

}  // namespace

int main(int argc, char** argv) {
  const int count = argc == 4 ? std::atoi(argv[2]) : 0;
  const int ttl = argc == 4 ? std::atoi(argv[3]) : 0;
  if (count < 1 || ttl < 1) {
    std::fprintf(stderr, "usage: held_mutex URL COUNT TTL_SECONDS\n");
    return 2;
  }
  Held held(argv[1], static_cast<unsigned>(count), std::chrono::seconds(ttl));
  const int status = bench::Runs(held, bench::Timing::whole_run).serve();
  return status == 0 && held.holds_all() ? 0 : 1;
}
