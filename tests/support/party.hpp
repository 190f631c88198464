// One host that wants a lock: its client, and what it knows and holds.
#ifndef DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
#define DDBMUTEX_TESTS_SUPPORT_PARTY_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
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
  // Passing faults are not tried again.
  bool tries_once = false;
};

class Party {
 public:
  using Call = ddbmutex::lock::Call;
  using Time = ddbmutex::BootTime;

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
    begin();
  }

  // A new acquisition; what was observed stays.
  void begin() {
    held = std::make_shared<ddbmutex::lock::HeldLease>(holder);
    lease = &held->lease;
  }

  std::string run(Call call, std::chrono::nanoseconds time) {
    return run(call, Limits{ddbmutex::BootClock::now() + time});
  }
  std::string run(Call call, const Limits& limits) {
    attempt =
        std::make_unique<ddbmutex::lock::Attempt>(call, *held, &observation);
    attempt->run(
        limits.deadline, &waker, [&](const ddbmutex::dynamodb::Answer&, Time) {
          return limits.tries_once ? ddbmutex::BootClock::now() : Time::max();
        });
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
  std::string release() { return run(Call::release, kPlenty); }

  // One request by hand; no retry.
  std::string step(Call call) {
    const Time now = ddbmutex::BootClock::now();
    sent = lease->next(call, now, client.clock(), observation);
    answer = client.call(ddbmutex::lock::action_of(sent.verb, {}),
                         tests::body_of(place, sent), now + kPlenty, waker);
    return word(lease->receive(ddbmutex::lock::reply_to(sent.verb, answer),
                               client.clock(), observation));
  }

  bool holds() const { return ddbmutex::BootClock::now() < lease->claim_end(); }
  std::string fault() const { return word(answer.fault); }

  // "Put 1 Update 0 Delete 1 Get 0", of all that were sent but to learn the
  // time.
  std::string counts() const {
    using ddbmutex::dynamodb::Action;
    const auto all = client.counts().sent;
    const auto of = [&all](Action action) {
      return std::to_string(all[static_cast<std::size_t>(action)]);
    };
    return "Put " + of(Action::put_item) + " Update " +
           of(Action::update_item) + " Delete " + of(Action::delete_item) +
           " Get " +
           std::to_string(all[static_cast<std::size_t>(Action::get_item)] -
                          asked_the_time_);
  }

  // How many those are.
  std::uint64_t count() const {
    const auto all = client.counts().sent;
    return std::accumulate(all.begin(), all.end(), std::uint64_t{0}) -
           asked_the_time_;
  }

  ddbmutex::dynamodb::Client client;
  ddbmutex::dynamodb::RetryBudget budget;
  const ddbmutex::lock::RowTarget place;
  const std::shared_ptr<ddbmutex::lock::MutexSettings> holder;
  ddbmutex::lock::HeldLeasePtr held;
  ddbmutex::lock::Lease* lease = nullptr;  // Its.
  ddbmutex::lock::Observation observation;
  ddbmutex::sigv4::Waker waker;
  std::unique_ptr<ddbmutex::lock::Attempt> attempt;  // The last.
  ddbmutex::dynamodb::Answer answer;                 // Its last, or of step().
  ddbmutex::lock::Request sent;                      // By step().

 private:
  void ask_the_time() {
    using ddbmutex::dynamodb::Action;
    ddbmutex::lock::RowTarget nobodys = place;
    nobodys.key = kAsksTheTime;
    client.call(Action::get_item, tests::body_of(nobodys, {}),
                ddbmutex::BootClock::now() + kPlenty, waker);
    asked_the_time_ =
        client.counts().sent[static_cast<std::size_t>(Action::get_item)];
  }

  std::uint64_t asked_the_time_ = 0;  // How often.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
