// Holds many locks of one Table, on an engine of its own, and looks at what
// that takes:
//
//   many LOCKS TTL_MS SECONDS
//
// The status is 0 if none was lost, they took no more than two threads beside
// the caller's, and their renewals were spread over time.
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/record.hpp"
#include "tests/claims/spread.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/true_clock.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr long kThreads = 2;

long threads() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"),
                       fs::directory_iterator());
}

class Holder {
 public:
  Holder(std::size_t locks, milliseconds ttl,
         std::shared_ptr<ddbmutex::Table> table)
      : ttl_(ttl), table_(std::move(table)) {
    ddbmutex::Options options;
    options.table = table_;
    options.ttl = ttl;
    options.on_lost = [this](ddbmutex::Loss) { ++lost_; };
    const std::string prefix = "many-" + ddbmutex::lock::fresh_uuid() + "-";
    for (std::size_t i = 0; i < locks; ++i) {
      mutexes_.push_back(
          std::make_unique<DdbMutex>(prefix + std::to_string(i), options));
    }
  }

  bool succeeds(seconds time) {
    std::thread([] {}).join();  // A sanitizer starts its own with the first.
    const long threads_before = threads();
    if (!lock_all()) return false;
    watch(time, threads_before);
    const std::size_t held = count_held();
    const auto stats = table_->stats();
    const bool well = release_all() && judge(time, held, stats.update_item);
    return well && table_->stats().delete_item == mutexes_.size();
  }

 private:
  bool lock_all() {
    for (const auto& mutex : mutexes_) {
      std::error_code ec;
      mutex->lock(ec);
      if (!ec) continue;
      std::printf("%s\n", mutex->last_error().c_str());
      return false;
    }
    return true;
  }

  // A window's renewals are those that were sent until it was looked at; a
  // look that comes late makes the next window short.
  void watch(seconds time, long threads_before) {
    const auto window = ttl_ / static_cast<int>(claims::kWindowsPerLease);
    std::uint64_t before = table_->stats().update_item;
    const BootTime begin = BootClock::now();
    for (int i = 1; begin + i * window <= begin + time; ++i) {
      const auto left = begin + i * window - BootClock::now();
      if (left.count() > 0) std::this_thread::sleep_for(left);
      const std::uint64_t now = table_->stats().update_item;
      windows_.push_back(now - before);
      before = now;
      most_threads_ = std::max(most_threads_, threads() - threads_before);
    }
  }

  std::size_t count_held() const {
    std::size_t held = 0;
    for (const auto& mutex : mutexes_) held += mutex->owns_lock();
    return held;
  }

  bool release_all() {
    for (const auto& mutex : mutexes_) {
      std::error_code ec;
      mutex->release(ec);
      if (!ec) continue;
      std::printf("%s\n", mutex->last_error().c_str());
      return false;
    }
    return true;
  }

  bool judge(seconds time, std::size_t held, std::uint64_t renewals) const {
    // Each comes within half a lease of the one before, and a moment late.
    const auto least =
        mutexes_.size() * static_cast<std::size_t>(time / (ttl_ / 2) - 1);
    const std::uint64_t busiest = claims::busiest_percent(windows_);
    std::printf(
        "%zu of %zu held, %d lost, %ld threads beside the caller's, "
        "%" PRIu64 " renewals (at least %zu), %" PRIu64
        " %% of a period's in its three busiest hundredths of a "
        "lease (at most %" PRIu64 ")\n",
        held, mutexes_.size(), lost_.load(), most_threads_, renewals, least,
        busiest, claims::kMostInBusiest);
    return held == mutexes_.size() && lost_ == 0 && most_threads_ <= kThreads &&
           renewals >= least && busiest <= claims::kMostInBusiest;
  }

  const milliseconds ttl_;
  const std::shared_ptr<ddbmutex::Table> table_;
  std::atomic<int> lost_{0};
  std::vector<std::unique_ptr<DdbMutex>> mutexes_;
  std::vector<std::uint64_t> windows_;
  long most_threads_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 4) {
    std::fprintf(stderr, "usage: many LOCKS TTL_MS SECONDS\n");
    return 2;
  }
  tests::Engine engine(tests::any_engine_kind());
  Holder holder(std::stoul(argv[1]), milliseconds(std::stol(argv[2])),
                table_at(at(engine)));
  return holder.succeeds(seconds(std::stol(argv[3]))) ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
