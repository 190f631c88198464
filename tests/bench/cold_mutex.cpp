// Contestant: a program that takes one lock, measured from its start.  It sends
// the look that tells DynamoDB's clock, and takes the lock.
//
//   cold_mutex URL
//
// Keys come from the environment.
#include <cstdio>
#include <cstdlib>

#include "ddbmutex.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/mutex_case.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cold_mutex URL\n");
    return 2;
  }
  const auto table = bench::new_table_at(argv[1]);
  ddbmutex::DdbMutex mutex("nightly-report", bench::options_on(table));
  bench::lock_or_exit(mutex);
  const bool told = bench::tell_since_exec(table->stats().requests());
  std::_Exit(told ? 0 : 1);  // The release would be a request more.
}
