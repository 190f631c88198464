// Contestant: bare libcurl, that sends given requests in turn, as fast as it
// can.
//
//   cycle_libcurl URL REQUEST...
//   cycle_libcurl URL sigv4 REQUEST...
//
// Each REQUEST is a file that holds a whole request as it stands on the wire.
// In the second form libcurl signs each anew, with the keys of the environment.
#include <cstdio>
#include <string_view>

#include "tests/bench/bare_libcurl.hpp"
#include "tests/bench/contestant.hpp"

int main(int argc, char** argv) {
  const bool signs = argc > 2 && std::string_view(argv[2]) == "sigv4";
  const int first = signs ? 3 : 2;
  if (argc <= first) {
    std::fprintf(stderr, "usage: cycle_libcurl URL [sigv4] REQUEST...\n");
    return 2;
  }
  const auto by = signs ? bench::Signed::by_libcurl : bench::Signed::before;
  bench::BareCycle cycle(argv[1],
                         bench::requests_in(argv + first, argc - first, by));
  if (signs) cycle.let_libcurl_sign();
  return bench::Runs(cycle, bench::Timing::each_cycle).serve();
}
