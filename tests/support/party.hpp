// One host that wants a lock: its client, and what it knows and holds.
#ifndef DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
#define DDBMUTEX_TESTS_SUPPORT_PARTY_HPP

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/attempt.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/requests.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/body_of.hpp"
#include "tests/support/given.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/words.hpp"

namespace tests {

struct PartySettings {
  std::string url;
  std::string table = "locks";
  std::string key = "ddblock-test";
  std::string owner = "party:1";
  std::chrono::milliseconds ttl{60000};
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(10);
  std::string region = "us-east-1";
  std::optional<ddbmutex::Credentials> keys =
      ddbmutex::Credentials{"AKIDEXAMPLE", "secret", ""};
  bool knows_the_time = true;  // By DynamoDB's clock, before it begins.
};

// How far a run goes.
struct Limits {
  ddbmutex::BootTime deadline;
  // A take that is given up in flight stays so.
  bool keeps_request = false;
};

class Party {
 public:
  using Call = ddbmutex::lock::Call;

  explicit Party(const PartySettings& settings)
      : client({tests::target_at(settings.url, settings.region),
                settings.keys ? tests::given_keys(signing_keys(*settings.keys))
                              : tests::given_keys({}),
                {}}),
        place{settings.table, settings.key, settings.owner},
        holder(
            std::make_shared<ddbmutex::lock::MutexSettings>(client, budget)) {
    holder->place = place;
    holder->ttl = settings.ttl;
    holder->request_timeout = settings.request_timeout;
    if (settings.knows_the_time) ask_the_time();
    held = std::make_shared<ddbmutex::lock::HeldLease>(holder);
  }

  std::string run(Call call, std::chrono::nanoseconds time) {
    return run(call, Limits{ddbmutex::BootClock::now() + time});
  }
  std::string run(Call call, const Limits& limits) {
    attempt =
        std::make_unique<ddbmutex::lock::Attempt>(call, *held, &observation);
    attempt->run(limits.deadline, &waker);
    if (attempt->has_request() && !limits.keeps_request) {
      attempt->finish(ddbmutex::sigv4::Transport::cancelled);
      attempt->receive();
    }
    answer = attempt->take_answer();
    const bool over = call == Call::renew && !holds();
    return over ? "expired" : word(attempt->verdict());
  }
  std::string take() { return run(Call::take, kPlenty); }
  std::string renew() { return run(Call::renew, kPlenty); }

  bool holds() const {
    return ddbmutex::BootClock::now() < held->lease.claim_end();
  }
  std::string fault() const { return word(answer.fault); }

  ddbmutex::dynamodb::Client client;
  ddbmutex::dynamodb::RetryBudget budget;
  const ddbmutex::lock::RowTarget place;
  const std::shared_ptr<ddbmutex::lock::MutexSettings> holder;
  ddbmutex::lock::HeldLeasePtr held;
  ddbmutex::lock::Observation observation;
  ddbmutex::sigv4::Waker waker;
  std::unique_ptr<ddbmutex::lock::Attempt> attempt;  // The last.
  ddbmutex::dynamodb::Answer answer;                 // Its last.

 private:
  void ask_the_time() {
    using ddbmutex::dynamodb::Action;
    ddbmutex::lock::RowTarget nobodys = place;
    nobodys.key = kAsksTheTime;
    client.call(Action::get_item, tests::body_of(nobodys, {}),
                ddbmutex::BootClock::now() + kPlenty, waker);
  }
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
