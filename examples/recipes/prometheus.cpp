// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// What a table's locks cost, for Prometheus.  Needs prometheus-cpp-dev, as
// Debian calls it.
//
//   flags=$(pkg-config --cflags --libs ddbmutex prometheus-cpp-pull)
//   c++ -std=c++17 -o report prometheus.cpp $flags
//   ./report 127.0.0.1:9464
//
// Holds its lock and answers http://127.0.0.1:9464/metrics until it reads a
// line or the end of its input.
#include <prometheus/collectable.h>
#include <prometheus/exposer.h>
#include <prometheus/metric_family.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"

namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;

// A count for each value of a label.
using Counts = std::vector<std::pair<std::string, double>>;

MetricFamily family(MetricType type, const std::string& name,
                    const std::string& help, const std::string& label,
                    const Counts& counts) {
  MetricFamily family{name, help, type, {}};
  for (const auto& [value, count] : counts) {
    prometheus::ClientMetric metric;
    if (!label.empty()) metric.label.push_back({label, value});
    // `type` says which one is used.
    metric.counter.value = metric.gauge.value = count;
    family.metric.push_back(metric);
  }
  return family;
}

// A Table counts by itself.  This only reads its counts when asked.
class TableCounts : public prometheus::Collectable {
 public:
  explicit TableCounts(std::shared_ptr<ddbmutex::Table> table)
      : table_(std::move(table)) {}

  // Called on threads of the exposer.  Any thread may call stats().
  std::vector<MetricFamily> Collect() const override {
    const ddbmutex::Stats stats = table_->stats();
    const auto number = [](auto count) { return static_cast<double>(count); };
    return {
        family(MetricType::Counter, "ddbmutex_requests_total",
               "Requests to DynamoDB.", "action",
               {{"GetItem", number(stats.get_item)},
                {"PutItem", number(stats.put_item)},
                {"UpdateItem", number(stats.update_item)},
                {"DeleteItem", number(stats.delete_item)},
                {"other", number(stats.other)}}),
        family(MetricType::Counter, "ddbmutex_failures_total",
               "Those of them that failed.", "why",
               {{"throttled", number(stats.throttled)},
                {"other", number(stats.failed)}}),
        family(MetricType::Counter, "ddbmutex_retries_total",
               "Those that were sent because one before had failed.", "",
               {{"", number(stats.retries)}}),
        family(MetricType::Gauge, "ddbmutex_locks_held",
               "Locks that are held now.", "", {{"", number(stats.held)}}),
    };
  }

 private:
  const std::shared_ptr<ddbmutex::Table> table_;
};

void report(const std::string& address) {
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>();
  // The exposer has only a weak pointer to the collectable.
  const auto counts = std::make_shared<TableCounts>(options.table);
  prometheus::Exposer exposer(address);
  exposer.RegisterCollectable(counts);

  ddbmutex::DdbMutex mutex("nightly-report", options);
  const std::lock_guard<ddbmutex::DdbMutex> guard(mutex);
  std::printf("port %d\n", exposer.GetListeningPorts().at(0));
  std::fflush(stdout);
  std::getchar();  // The work.
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: report HOST:PORT\n");
    return 2;
  }
  try {
    report(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "report: %s\n", error.what());
    return 1;
  }
}
