// Holds many locks of one Table, and looks at what that takes:
//
//   many LOCKS TTL_S SECONDS
//
// TTL_S: tens of seconds.  The server grants all; for a sixth of a lease, in
// the middle, it does not answer.  That leaves those whose renewals are due a
// quarter of the lease, however slow the machine is.
//
// The status is 0 if none was lost, they took no more than two threads beside
// the caller's and 4 KiB of heap each, and their renewals were spread over
// time.
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/bench/constant_server.hpp"
#include "tests/support/spread.hpp"
#include "tests/support/true_clock.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr long kThreads = 2;
// What the table has for all its renewals is little beside that of so many.
constexpr std::size_t kHeapOfOne = 4096, kHeapOfAll = 128 * 1024, kMany = 5000;
constexpr milliseconds kLook(100);  // How often renewals are counted.

long threads() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"),
                       fs::directory_iterator());
}

// Bound, and nobody listens: a server beside it may.
class ReservedPort {
 public:
  ReservedPort() : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const int on = 1;
    setsockopt(fd_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* generic = reinterpret_cast<sockaddr*>(&address_);
    if (bind(fd_, generic, size) != 0 ||
        getsockname(fd_, generic, &size) != 0) {
      bench::give_up("a port");
    }
  }
  ~ReservedPort() { close(fd_); }
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;

  unsigned short number() const { return ntohs(address_.sin_port); }

 private:
  const int fd_;
  sockaddr_in address_{};
};

class Holder {
 public:
  Holder(std::size_t locks, seconds ttl) : ttl_(ttl), locks_(locks) {
    tests::Whereabouts where;
    where.url = server_->url();
    where.table = "locks";
    table_ = table_at(where);
  }

  bool succeeds(seconds time) {
    std::thread([] {}).join();  // A sanitizer starts its own with the first.
    const long threads_before = threads();
    if (!lock_all()) return false;
    watch(time, threads_before);
    const std::size_t held = count_held();
    const auto stats = table_->stats();
    return judge(time, held, stats.update_item) && release_all() &&
           table_->stats().delete_item == locks_;
  }

 private:
  void start() { server_.emplace(nullptr, port_.number()); }
  // The requests that it has seen.
  std::uint64_t sent() {
    return server_ ? server_->tally().requests.load() : 0;
  }

  // The first one brings what the table has for all.
  bool lock_all() {
    ddbmutex::Options options;
    options.table = table_;
    options.ttl = ttl_;
    options.on_lost = [this](ddbmutex::Loss) { ++lost_; };
    const std::string prefix = "many-" + ddbmutex::lock::fresh_uuid() + "-";
    mutexes_.reserve(locks_);
    std::size_t heap_before = 0;
    for (std::size_t i = 0; i < locks_; ++i) {
      mutexes_.push_back(
          std::make_unique<DdbMutex>(prefix + std::to_string(i), options));
      std::error_code ec;
      mutexes_.back()->lock(ec);
      if (ec) {
        std::printf("%s\n", mutexes_.back()->last_error().c_str());
        return false;
      }
      if (i == 0) heap_before = mallinfo2().uordblks;
    }
    heap_ = mallinfo2().uordblks - heap_before;
    return true;
  }

  // A window's renewals are those that were sent until it was looked at; a
  // look that comes late makes the next window short.
  void watch(seconds time, long threads_before) {
    const BootTime begin = BootClock::now();
    const BootTime gone = begin + time / 2, back = gone + ttl_ / 6;
    std::uint64_t before = sent();
    for (BootTime end = begin + kLook; end <= begin + time; end += kLook) {
      const auto left = end - BootClock::now();
      if (left.count() > 0) std::this_thread::sleep_for(left);
      looks_.push_back(sent() - before);
      before += looks_.back();
      most_threads_ = std::max(most_threads_, threads() - threads_before);
      if (server_.has_value() != (end >= gone && end < back)) continue;
      server_ ? server_.reset() : start();
      before = 0;
    }
  }

  // In hundredths of a lease.
  std::vector<std::uint64_t> windows() const {
    const auto looks =
        static_cast<std::size_t>(ttl_ / kLook) / tests::kWindowsPerLease;
    std::vector<std::uint64_t> windows(looks_.size() / looks);
    for (std::size_t i = 0; i < windows.size() * looks; ++i) {
      windows[i / looks] += looks_[i];
    }
    return windows;
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
    const std::size_t for_all = locks_ < kMany ? kHeapOfAll : 0;
    // Each comes within half a lease of the one before, and a moment late.
    const auto least =
        mutexes_.size() * static_cast<std::size_t>(2 * time / ttl_ - 1);
    const std::uint64_t busiest = tests::busiest_percent(windows(), locks_ / 2);
    std::printf(
        "%zu of %zu held, %d lost, %ld threads beside the caller's, %zu bytes "
        "of heap each (at most %zu, and %zu for all), %" PRIu64
        " renewals (at least %zu), %" PRIu64
        " %% of a period's in its three busiest hundredths of a lease (at most "
        "%" PRIu64 "), %.1f times the mean in the busiest %lld ms\n",
        held, mutexes_.size(), lost_.load(), most_threads_, heap_ / locks_,
        kHeapOfOne, for_all, renewals, least, busiest, tests::kMostInBusiest,
        times_mean(), static_cast<long long>(kLook.count()));
    return held == mutexes_.size() && lost_ == 0 && most_threads_ <= kThreads &&
           heap_ <= locks_ * kHeapOfOne + for_all && renewals >= least &&
           busiest <= tests::kMostInBusiest;
  }

  // A look that came late counts too many; nothing is judged by it.
  double times_mean() const {
    const auto all =
        std::accumulate(looks_.begin(), looks_.end(), std::uint64_t{0});
    const auto most = *std::max_element(looks_.begin(), looks_.end());
    return static_cast<double>(most * looks_.size()) / static_cast<double>(all);
  }

  const seconds ttl_;
  const std::size_t locks_;
  const ReservedPort port_;  // Nobody else gets it while the server is away.
  std::optional<bench::ConstantServer> server_{std::in_place, nullptr,
                                               port_.number()};
  std::shared_ptr<ddbmutex::Table> table_;
  std::atomic<int> lost_{0};
  std::vector<std::unique_ptr<DdbMutex>> mutexes_;
  std::vector<std::uint64_t> looks_;  // Renewals between one and the next.
  long most_threads_ = 0;
  std::size_t heap_ = 0;
};

}  // namespace

int main(int argc, char** argv) try {
  const long ttl_s = argc == 4 ? std::stol(argv[2]) : 0;
  if (ttl_s < 10 || ttl_s % 10 != 0) {
    std::fprintf(stderr, "usage: many LOCKS TTL_S SECONDS\n");
    return 2;
  }
  Holder holder(std::stoul(argv[1]), seconds(ttl_s));
  return holder.succeeds(seconds(std::stol(argv[3]))) ? 0 : 1;
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
  return 1;
}
