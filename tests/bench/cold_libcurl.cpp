// Contestant: bare libcurl, that sends each of the given requests once,
// measured from its start.
//
//   cold_libcurl URL REQUEST...
//
// Each REQUEST is a file that holds a whole request as it stands on the wire.
#include <cstdio>
#include <cstdlib>

#include "tests/bench/bare_libcurl.hpp"
#include "tests/bench/contestant.hpp"

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: cold_libcurl URL REQUEST...\n");
    return 2;
  }
  bench::BareCycle cycle(argv[1], bench::requests_in(argv + 2, argc - 2));
  const bool told = cycle.cycle() && bench::tell_since_exec(cycle.requests());
  std::_Exit(told ? 0 : 1);  // As cold_mutex does.
}
