// One host that wants a lock: its client, and what it knows and holds.
#ifndef DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
#define DDBMUTEX_TESTS_SUPPORT_PARTY_HPP

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/retry.hpp"
#include "ddbmutex/lock/attempt.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/requests.hpp"
#include "ddbmutex/lock/row.hpp"
#include "ddbmutex/lock/take.hpp"
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

class Party {
 public:
  using Call = ddbmutex::lock::Call;

  explicit Party(const PartySettings& settings)
      : table({tests::target_at(settings.url, settings.region),
               settings.keys ? tests::given_keys(signing_keys(*settings.keys))
                             : tests::given_keys({}),
               {}}),
        place{settings.table, settings.key, settings.owner},
        holder(
            std::make_shared<ddbmutex::lock::MutexSettings>(client, budget)) {
    holder->place = place;
    holder->ttl = settings.ttl;
    holder->request_timeout = settings.request_timeout;
    table.renewer->start_threads();
    if (settings.knows_the_time) ask_the_time();
    held = std::make_shared<ddbmutex::lock::HeldLease>(holder);
  }
  // Sends nothing.
  ~Party() {
    ddbmutex::sigv4::stop(*table.renewer, ddbmutex::BootTime{});
    table.renewer->release(*held, nullptr, ddbmutex::BootTime{});
  }

  std::string run(Call call, std::chrono::nanoseconds time) {
    const ddbmutex::BootTime deadline = ddbmutex::BootClock::now() + time;
    switch (call) {
      case Call::take:
        return take(deadline);
      case Call::renew:
        return said(table.renewer->renew(*held, nullptr, deadline));
      case Call::release:
        break;
    }
    return said(table.renewer->release(*held, nullptr, deadline).result);
  }
  void ask_the_time() {
    using ddbmutex::dynamodb::Action;
    ddbmutex::lock::RowTarget nobodys = place;
    nobodys.key = kAsksTheTime;
    table.renewer->carry({Action::get_item, tests::body_of(nobodys, {}),
                          ddbmutex::BootClock::now() + kPlenty},
                         waker);
  }
  std::string take() { return run(Call::take, kPlenty); }
  std::string renew() { return run(Call::renew, kPlenty); }

  bool holds() const {
    return ddbmutex::BootClock::now() < held->lease.claim_end();
  }
  std::string fault() const { return word(answer.fault); }

  ddbmutex::lock::TableState table;
  ddbmutex::dynamodb::Client& client = table.client;
  ddbmutex::dynamodb::RetryBudget& budget = table.budget;
  const ddbmutex::lock::RowTarget place;
  const std::shared_ptr<ddbmutex::lock::MutexSettings> holder;
  ddbmutex::lock::HeldLeasePtr held;
  ddbmutex::lock::Observation observation;
  ddbmutex::sigv4::CallWaker waker;
  ddbmutex::dynamodb::Answer answer;  // The last.
  // Of the last take: nothing had failed, and its time was up.
  bool given_up = false;

 private:
  std::string take(ddbmutex::BootTime deadline) {
    using ddbmutex::dynamodb::Answer;
    const auto always = [](const Answer&, ddbmutex::BootTime) {
      return ddbmutex::BootTime::max();
    };
    const auto nothing = [](const Answer&, ddbmutex::BootTime) {};
    ddbmutex::lock::OneAttempt one;
    one.emplace_back(Call::take, *held, &observation);
    ddbmutex::lock::Outcome outcome =
        ddbmutex::lock::Taking(*table.renewer, deadline, waker)
            .run(one, always, nothing);
    if (outcome.verdict == ddbmutex::lock::Verdict::ours) {
      table.renewer->add(*held);
    }
    given_up = outcome.given_up;
    answer = std::move(outcome.answer);
    return word(outcome.verdict);
  }
  std::string said(ddbmutex::lock::Result&& result) {
    answer = std::move(result.answer);
    return word(result.verdict);
  }
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
