// Contestant: bare libcurl, that sends given requests in turn, as fast as it
// can.
//
//   cycle_libcurl URL REQUEST...
//
// Each REQUEST is a file that holds a whole request as it stands on the wire.
#include <cstdio>

#include "tests/bench/bare_libcurl.hpp"
#include "tests/bench/contestant.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: cycle_libcurl URL REQUEST...\n");
    return 2;
  }
  bench::BareCycle cycle(argv[1], bench::requests_in(argv + 2, argc - 2));
  return bench::Runs(cycle, bench::Timing::each_cycle).serve();
}
