// What the tests of the failure table share: the gateway before each engine, as
// it was when it was started, and locks that are wanted through it.
//
//   Front front(EngineKind::dynoxide);
//   Watched x(front, 1min);
//   front.gateway.fault("PutItem", "drop-answer");
//   x.lock();
//   x.told.text();  // What on_danger and on_lost have told.
#ifndef DDBMUTEX_TESTS_SUPPORT_FAILURE_KIT_HPP
#define DDBMUTEX_TESTS_SUPPORT_FAILURE_KIT_HPP

#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/mutex_kit.hpp"

namespace tests {

// After a request that is lost in silence there is to be another, soon.
constexpr std::chrono::milliseconds kHasty{500};
// Until the gateway is told to let go.
constexpr std::chrono::hours kHeld{1};

// Ways to lose the answer to a request that was applied.
inline const std::vector<std::string>& lost_answers() {
  static const std::vector<std::string> kKinds = {
      "drop-answer", "delay-answer",  "reset-answer", "half-close-answer",
      "truncate",    "corrupt",       "garbage",      "500-after",
      "503-after",   "throttle-after"};
  return kKinds;
}

// Those after which only time tells that there is no answer.
inline bool is_silent(const std::string& kind) {
  return kind == "drop-answer" || kind == "delay-answer";
}

// For a request whose answer may be lost so: no longer than it takes to see
// that; where it is seen at once, so long that no other is given up.
inline std::chrono::milliseconds time_for(const std::string& kind) {
  return is_silent(kind) ? kHasty : std::chrono::seconds(20);
}

// The next answer to that action is lost.
inline Fault losing(const std::string& action, const std::string& kind) {
  Fault fault;
  fault.action = action;
  fault.kind = kind;
  if (kind == "delay-answer") fault.from = kHeld;
  return fault;
}

// Started when first asked for.
inline Gateway& gateway_before(EngineKind kind) {
  static std::map<EngineKind, std::unique_ptr<Gateway>> gateways;
  std::unique_ptr<Gateway>& gateway = gateways[kind];
  if (gateway == nullptr) {
    const Whereabouts engine = at(Engine::running(kind));
    Gateway::Settings settings;
    settings.sign = kind == EngineKind::given;
    settings.keys = engine.keys;
    gateway = std::make_unique<Gateway>(engine.url, settings);
  }
  return *gateway;
}

// An engine, and the gateway before it in good order.
struct Front {
  explicit Front(EngineKind kind = any_engine_kind())
      : engine(Engine::running(kind)), gateway(gateway_before(kind)) {
    restore();
  }
  // No test is to find what another has left.  Goes after the locks, which
  // would have to wait for a gateway that hangs: open it before the end.
  ~Front() { BOOST_CHECK_NO_THROW(restore()); }
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  // By TLS before one kind of engine, without before the other.
  ddbmutex::TableOptions table_options() const {
    ddbmutex::TableOptions options = gateway.table_options(engine.table());
    options.region = engine.region();
    if (engine.kind() != any_engine_kind()) {
      options.endpoint = gateway.plain_url();
    }
    return options;
  }
  // Each knows nothing of DynamoDB's clock yet, as a new process.
  std::shared_ptr<ddbmutex::Table> table() const {
    return std::make_shared<ddbmutex::Table>(table_options());
  }
  bool is_free(const std::string& name) const {
    return tests::is_free(engine, name);
  }
  // All that is held goes on, until nothing is under way.
  void let_go() const {
    BOOST_TEST(eventually([this] {
      gateway.let_go();
      return gateway.counts().under_way() == 0;
    }));
  }

  Engine& engine;
  Gateway& gateway;

 private:
  void restore() const {
    gateway.clear();
    gateway.mode("open");
    gateway.clock_offset(std::chrono::seconds(0));
    gateway.dates(true);
    let_go();
    gateway.forget();
  }
};

// A lock through the gateway, and what its holder is told.
struct Watched {
  Watched(const Front& front, std::chrono::milliseconds ttl)
      : Watched(front.table(), ttl) {}
  Watched(const std::shared_ptr<ddbmutex::Table>& at_table,
          std::chrono::milliseconds ttl,
          const std::string& the_name = fresh_name())
      : name(the_name), table(at_table), options(on_table(at_table, ttl)) {
    options.on_lost = [this](ddbmutex::Loss loss) { told.add(name_of(loss)); };
    options.on_danger = [this] { told.add("danger"); };
    // As long as may be: what a machine that stalls delays is not given up.
    options.request_timeout = ttl / 3;
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  // With the options as they are by then.
  void make() { mutex.emplace(name, options); }
  void lock() {
    if (!mutex) make();
    BOOST_REQUIRE_EQUAL(thrown_by([this] { mutex->lock(); }), "none");
  }
  // What the release throws.
  std::string released() {
    return thrown_by([this] { mutex->release(); });
  }
  const std::string name;
  Told told;
  std::shared_ptr<ddbmutex::Table> table;
  ddbmutex::Options options;
  std::optional<ddbmutex::DdbMutex> mutex;  // Last: it waits for its callbacks.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_FAILURE_KIT_HPP
