// Contestant: a lock taken and released by this library, below the public
// class: PutItem, DeleteItem, all that stands between a lease and the wire.
//
//   cycle_driver URL
//
// Keys come from the environment.
#include <chrono>
#include <cstdio>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/attempt.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "sigv4/keys/credentials.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/support/given.hpp"

using namespace ddbmutex;

namespace {

// As in mutex_case.hpp.
constexpr std::chrono::minutes kTtl{5};
constexpr std::chrono::minutes kRequestTimeout{1};
constexpr std::chrono::minutes kPatience{2};

dynamodb::ClientOptions client_options(const char* url) {
  dynamodb::ClientOptions options;
  options.target = tests::target_at(url, "eu-west-1");
  options.credentials = tests::given_keys(sigv4::environment_keys().keys);
  return options;
}

class LockCycle : public bench::Contestant {
 public:
  explicit LockCycle(const char* url)
      : client_(client_options(url)),
        holder_(std::make_shared<lock::MutexSettings>(client_, budget_)) {
    holder_->place.table = "locks";
    holder_->place.key = "ddblock-nightly-report";
    holder_->place.owner = "web-17.example:4711";
    holder_->request_timeout = kRequestTimeout;
    holder_->ttl = kTtl;
  }

  bool cycle() override {
    lock::Observation observation;
    const auto held = std::make_shared<lock::HeldLease>(holder_);
    lock::Attempt take(lock::Call::take, *held, &observation);
    if (!run(take, lock::Verdict::ours)) return false;
    lock::Attempt release(lock::Call::release, *held);
    return run(release, lock::Verdict::released);
  }

  std::uint64_t requests() const override {
    std::uint64_t sum = 0;
    for (const std::uint64_t sent : client_.counts().sent) sum += sent;
    return sum;
  }

 private:
  bool run(lock::Attempt& attempt, lock::Verdict wanted) {
    attempt.run(BootClock::now() + kPatience, &waker_);
    if (attempt.verdict() == wanted) return true;
    std::fprintf(
        stderr, "cycle_driver: %s of %s: %s\n", name_of(attempt.answer().fault),
        name_of(attempt.answer().action), attempt.answer().message.c_str());
    return false;
  }

  dynamodb::Client client_;
  dynamodb::RetryBudget budget_;
  const std::shared_ptr<lock::MutexSettings> holder_;
  sigv4::Waker waker_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !sigv4::is_endpoint_url(argv[1])) {
    std::fprintf(stderr, "usage: cycle_driver URL\n");
    return 2;
  }
  LockCycle cycle(argv[1]);
  return bench::Runs(cycle, bench::Timing::each_cycle).serve();
}
