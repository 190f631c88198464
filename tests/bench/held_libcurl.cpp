// Contestant: bare libcurl, that sends one given request so many times a
// second, evenly: what renewals at that pace cost at least.  A cycle is a
// second.
//
//   held_libcurl URL PER_SECOND REQUEST
//
// REQUEST is a file that holds a whole request as it stands on the wire.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/bench/bare_libcurl.hpp"
#include "tests/bench/contestant.hpp"

namespace {

constexpr std::int64_t kSecond = 1'000'000'000;

void sleep_until(std::int64_t at_ns) {
  const timespec at = {at_ns / kSecond, at_ns % kSecond};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) ==
         EINTR) {
  }
}

class Paced : public bench::Contestant {
 public:
  Paced(bench::BareCycle& bare, unsigned per_second)
      : bare_(bare), per_second_(per_second) {}

  bool cycle() override {
    const std::int64_t begin = bench::now_ns(CLOCK_MONOTONIC);
    for (unsigned i = 1; i <= per_second_; ++i) {
      sleep_until(begin + kSecond * i / per_second_);
      if (!bare_.cycle()) return false;
    }
    return true;
  }

  std::uint64_t requests() const override { return bare_.requests(); }

 private:
  bench::BareCycle& bare_;
  const unsigned per_second_;
};

}  // namespace

int main(int argc, char** argv) {
  const int per_second = argc == 4 ? std::atoi(argv[2]) : 0;
  if (per_second < 1) {
    std::fprintf(stderr, "usage: held_libcurl URL PER_SECOND REQUEST\n");
    return 2;
  }
  bench::BareCycle bare(argv[1], bench::requests_in(argv + 3, 1));
  Paced paced(bare, static_cast<unsigned>(per_second));
  return bench::Runs(paced, bench::Timing::whole_run).serve();
}
