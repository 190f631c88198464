// The program whose cost is measured: takes a lock and gives it back, as its
// users do, and holds others.
//
//   mutex URL CYCLES HELD
//
// Keys come from the environment.  Says "ready" when it has locked and unlocked
// CYCLES times and holds HELD locks more, and stays until the end of its input.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ddbmutex.hpp"

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: mutex URL CYCLES HELD\n");
    return 2;
  }
  ddbmutex::TableOptions where;
  where.endpoint = argv[1];
  where.region = "eu-west-1";
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(where);
  // However slow the machine is, nothing is renewed or sent again.
  options.ttl = std::chrono::hours(1);
  options.request_timeout = std::chrono::minutes(5);

  ddbmutex::DdbMutex mutex("nightly-report", options);
  for (int cycles = std::atoi(argv[2]); cycles > 0; --cycles) {
    std::lock_guard guard(mutex);
  }
  std::vector<std::unique_ptr<ddbmutex::DdbMutex>> held;
  for (int left = std::atoi(argv[3]); left > 0; --left) {
    const std::string name = "order-" + std::to_string(1'000'000 + left);
    held.push_back(std::make_unique<ddbmutex::DdbMutex>(name, options));
    held.back()->lock();
  }
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
}
