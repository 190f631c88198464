// What the contestants that use the public class have in common: the Table and
// the options of their mutexes.
#ifndef DDBMUTEX_TESTS_BENCH_MUTEX_CASE_HPP
#define DDBMUTEX_TESTS_BENCH_MUTEX_CASE_HPP

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"

namespace bench {

// Keys come from the environment.
inline std::shared_ptr<ddbmutex::Table> table_at(const char* url) {
  ddbmutex::TableOptions options;
  options.endpoint = url;
  options.region = "eu-west-1";
  return std::make_shared<ddbmutex::Table>(std::move(options));
}

inline ddbmutex::Options options_on(std::shared_ptr<ddbmutex::Table> table) {
  ddbmutex::Options options;
  options.table = std::move(table);
  options.owner = "web-17.example:4711";
  return options;
}

using Mutexes = std::vector<std::unique_ptr<ddbmutex::DdbMutex>>;

// So many locks of one Table, held.  Their names are of one length, so that
// their requests are.
inline Mutexes held(unsigned count, const ddbmutex::Options& options) {
  Mutexes mutexes;
  for (unsigned i = 0; i < count; ++i) {
    const std::string name = "order-" + std::to_string(1'000'000 + i);
    mutexes.push_back(std::make_unique<ddbmutex::DdbMutex>(name, options));
    std::error_code ec;
    mutexes.back()->lock(ec);
    if (!ec) continue;
    std::fprintf(stderr, "%s\n", mutexes.back()->last_error().c_str());
    std::exit(1);
  }
  return mutexes;
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_MUTEX_CASE_HPP
