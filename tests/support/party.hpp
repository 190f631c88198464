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
#include "ddbmutex/lock/hold.hpp"
#include "ddbmutex/lock/mutex.hpp"
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

class Party {
 public:
  explicit Party(const PartySettings& settings)
      : table({tests::target_at(settings.url, settings.region),
               settings.keys ? tests::given_keys(signing_keys(*settings.keys))
                             : tests::given_keys({}),
               {}}),
        place{settings.table, settings.key, settings.owner},
        mutex(table, settings_of(settings)) {
    table.keeper->start_threads();
    if (settings.knows_the_time) ask_the_time();
  }
  // Sends nothing.
  ~Party() { ddbmutex::sigv4::stop(*table.keeper, ddbmutex::BootTime{}); }

  std::string take(std::chrono::nanoseconds time = kPlenty) {
    return said(mutex.lock(time, nullptr));
  }
  std::string renew() { return said(mutex.renew(nullptr)); }
  std::string release() { return said(mutex.release(nullptr)); }
  void ask_the_time() {
    using ddbmutex::dynamodb::Action;
    ddbmutex::lock::RowTarget nobodys = place;
    nobodys.key = kAsksTheTime;
    ddbmutex::sigv4::CallWaker waker;
    table.keeper->carry({Action::get_item, tests::body_of(nobodys, {}),
                         ddbmutex::BootClock::now() + kPlenty},
                        waker);
  }
  std::string fault() const { return word(answer.fault); }

  ddbmutex::lock::TableState table;
  ddbmutex::dynamodb::Client& client = table.client;
  ddbmutex::dynamodb::RetryBudget& budget = table.budget;
  const ddbmutex::lock::RowTarget place;
  ddbmutex::dynamodb::Answer answer;  // The last.

 private:
  ddbmutex::lock::MutexSettingsPtr settings_of(const PartySettings& settings) {
    auto its = std::make_shared<ddbmutex::lock::MutexSettings>(client, budget);
    its->place = place;
    its->ttl = settings.ttl;
    its->request_timeout = settings.request_timeout;
    return its;
  }
  std::string said(ddbmutex::lock::Result&& result) {
    answer = std::move(result.answer);
    return word(result.verdict);
  }

  ddbmutex::lock::Mutex mutex;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PARTY_HPP
