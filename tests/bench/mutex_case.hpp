// What the contestants that use the public class have in common: the Table and
// the options of their mutexes.
#ifndef DDBMUTEX_TESTS_BENCH_MUTEX_CASE_HPP
#define DDBMUTEX_TESTS_BENCH_MUTEX_CASE_HPP

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"

namespace bench {

// Such that none is lost, and no request given up, because the machine stalls:
// that would be other work than what is measured.
constexpr std::chrono::minutes kLease{5};
constexpr std::chrono::minutes kRequestTimeout{1};

inline ddbmutex::Options options_on(std::shared_ptr<ddbmutex::Table> table) {
  ddbmutex::Options options;
  options.table = std::move(table);
  options.owner = "web-17.example:4711";
  options.ttl = kLease;
  options.request_timeout = kRequestTimeout;
  return options;
}

inline void lock_or_exit(ddbmutex::DdbMutex& mutex) {
  std::error_code ec;
  mutex.lock(ec);
  if (!ec) return;
  std::fprintf(stderr, "%s\n", mutex.last_error().c_str());
  std::exit(1);
}

// Knows DynamoDB's clock: the first lock of one that does not sends a request
// more.  Keys come from the environment.
inline std::shared_ptr<ddbmutex::Table> table_at(const char* url) {
  ddbmutex::TableOptions where;
  where.endpoint = url;
  where.region = "eu-west-1";
  auto table = std::make_shared<ddbmutex::Table>(std::move(where));
  table->inspect("first");
  return table;
}

using Mutexes = std::vector<std::unique_ptr<ddbmutex::DdbMutex>>;

// So many locks of one Table, held.  Their names are of one length, so that
// their requests are.
inline Mutexes held(unsigned count, const ddbmutex::Options& options) {
  Mutexes mutexes;
  for (unsigned i = 0; i < count; ++i) {
    const std::string name = "order-" + std::to_string(1'000'000 + i);
    mutexes.push_back(std::make_unique<ddbmutex::DdbMutex>(name, options));
    lock_or_exit(*mutexes.back());
  }
  return mutexes;
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_MUTEX_CASE_HPP
