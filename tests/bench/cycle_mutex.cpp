// Contestant: a lock taken and released through the public class, with all that
// stands in it: the queue of local threads, the errors, the threads that renew.
//
//   cycle_mutex URL
//
// Keys come from the environment.
#include <cstdint>
#include <cstdio>
#include <memory>

#include "ddbmutex.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/mutex_case.hpp"

namespace {

class MutexCycle : public bench::Contestant {
 public:
  explicit MutexCycle(const char* url)
      : table_(bench::table_at(url)),
        mutex_("nightly-report", bench::options_on(table_)) {}

  bool cycle() override {
    std::error_code ec;
    mutex_.lock(ec);
    if (!ec) mutex_.release(ec);
    if (!ec) return true;
    std::fprintf(stderr, "cycle_mutex: %s\n", mutex_.last_error().c_str());
    return false;
  }

  std::uint64_t requests() const override { return table_->stats().requests(); }

 private:
  const std::shared_ptr<ddbmutex::Table> table_;
  ddbmutex::DdbMutex mutex_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: cycle_mutex URL\n");
    return 2;
  }
  MutexCycle cycle(argv[1]);
  return bench::Runs(cycle, bench::Timing::each_cycle).serve();
}
