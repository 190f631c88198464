// Contestant: what costs no request, on a Table that holds 1,000 locks.
//
//   mutex_parts URL make   a DdbMutex made and destroyed
//   mutex_parts URL owns   owns_lock() of a held one
//
// Keys come from the environment.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "ddbmutex.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/mutex_case.hpp"

namespace {

// The lease is such that no renewal falls into a run.
class Parts : public bench::Contestant {
 public:
  explicit Parts(const char* url) : table_(bench::table_at(url)) {
    ddbmutex::Options options = bench::options_on(table_);
    options.ttl = std::chrono::hours(24);
    held_ = bench::held(1000, options);
  }

  bool finish() override {
    held_.clear();
    return true;
  }

  std::uint64_t requests() const override { return table_->stats().requests(); }

 protected:
  const std::shared_ptr<ddbmutex::Table> table_;
  bench::Mutexes held_;
};

class Make : public Parts {
 public:
  using Parts::Parts;

  // As a user writes it, who gives the Table alone.
  bool cycle() override {
    const ddbmutex::DdbMutex mutex(name_, options());
    return !mutex.name().empty();
  }

  // While there is one that was made.
  long threads() const override {
    const ddbmutex::DdbMutex mutex(name_, options());
    return Parts::threads();
  }

 private:
  ddbmutex::Options options() const {
    ddbmutex::Options options;
    options.table = table_;
    return options;
  }

  const std::string name_ = "order-2026-00004711";
};

class Owns : public Parts {
 public:
  using Parts::Parts;
  bool cycle() override { return held_.front()->owns_lock(); }
};

int serve(bench::Contestant&& contestant) {
  return bench::Runs(contestant, bench::Timing::whole_run).serve();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string part = argc == 3 ? argv[2] : "";
  if (part == "make") return serve(Make(argv[1]));
  if (part == "owns") return serve(Owns(argv[1]));
  std::fprintf(stderr, "usage: mutex_parts URL make|owns\n");
  return 2;
}
