// The gateway (tests/gateway/gateway.js) before an engine: a process of ours
// that checks every signature as DynamoDB does, and does on command what goes
// wrong between a client and DynamoDB.
//
//   Gateway gateway(engine.url());
//   gateway.fault("PutItem", "drop-answer");  // The next one.
//   gateway.add({"*", "500", 0.05});          // One in twenty of all.
//   auto table = std::make_shared<ddbmutex::Table>(
//       gateway.table_options(engine.table()));
//   ...
//   gateway.counts().faults("drop-answer");  // 1
//
// Kinds of fault.  Before the engine has seen the request: delay, drop, reset,
// close, half-close, throttle, 500, 503, portal, empty, late, reorder.  After
// it has applied the request: delay-answer, drop-answer, reset-answer,
// half-close-answer, truncate, corrupt, garbage, throttle-after, 500-after,
// 503-after, duplicate.  tests/gateway/faults.js says what each of them does.
//
// What goes wrong throws std::runtime_error.
#ifndef DDBMUTEX_TESTS_SUPPORT_GATEWAY_HPP
#define DDBMUTEX_TESTS_SUPPORT_GATEWAY_HPP

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace tests {

struct GatewaySettings {
  bool tls = true;         // Listens on https too, with a CA of its own.
  bool sign = false;       // Signs anew, for an engine that checks signatures.
  std::uint32_t seed = 1;  // Of its chance.
  ddbmutex::Credentials keys = {"AKIDEXAMPLE", "secret", ""};
  // Takes the keys that a tests::Aws of this seed issues; empty: none.
  std::string issued_seed{};
  // Of a tests::Aws, to listen with its certificate; empty: a CA of its own.
  std::string certificates{};
  // How long a table takes to come and to go, as with AWS; 0: no time.
  std::chrono::milliseconds slow_tables{0};
};

// Which requests are hit, by chance or by number, and what becomes of them.
struct Fault {
  // "PutItem"; "*": of every action.  "UpdateItem ADD #n": of those whose body
  // has the text after the space.
  std::string action = "*";
  std::string kind = "500";
  // Each with this chance; else by number.
  std::optional<double> probability = std::nullopt;
  // From the nth on of those that come to this rule from now on (a request
  // that an earlier rule hits does not), `times` in a row; 0: all of them.
  int nth = 1;
  int times = 1;
  // For delay, late, reorder, delay-answer and duplicate: from <= ms <= to,
  // by chance.  Both 0: the kind's own; `to` 0: exactly `from`.
  std::chrono::milliseconds from{0};
  std::chrono::milliseconds to{0};
  // For throttle, 500, 503 and those after: x-amz-retry-after; 0: none.
  std::chrono::milliseconds retry_after{0};
};

// What the gateway has seen since it was started, or told to forget.
class GatewayCounts {
 public:
  // As GET /counts tells it.
  explicit GatewayCounts(const std::string& json);

  // That came whole, by action.
  int requests(const std::string& action) const;
  int all_requests() const;
  // That were done, by kind.
  int faults(const std::string& kind) const;
  int all_faults() const;
  // That the engine answered, second copies and late ones too, by action.
  int applied(const std::string& action) const;
  int good_signatures() const;
  int bad_signatures() const;    // Wrong, of unknown keys, or none.
  int early_signatures() const;  // Right, but "expired" by its clock.
  int late_signatures() const;   // Right, but "not yet current".
  int expired_keys() const;      // Of issued keys that were over.
  int refused_signatures() const {
    return bad_signatures() + early_signatures() + late_signatures() +
           expired_keys();
  }
  // Held, on their way to the engine, or waiting for their answer.
  int under_way() const { return under_way_; }

 private:
  using Numbers = std::map<std::string, int>;

  Numbers requests_;
  Numbers faults_;
  Numbers applied_;
  Numbers signatures_;
  int under_way_ = 0;
};

// Any thread may call any member.  Start it from a thread that outlives it.
class Gateway {
 public:
  using Settings = GatewaySettings;
  using Counts = GatewayCounts;

  // Runs and listens.
  explicit Gateway(const std::string& engine_url,
                   const Settings& settings = Settings());
  ~Gateway();  // Ends it, and what it left if it was killed.
  Gateway(const Gateway&) = delete;
  Gateway& operator=(const Gateway&) = delete;

  std::string url() const;  // https if there is TLS.
  std::string plain_url() const;
  // PEM, of the CA that vouches for https; empty without TLS.
  const std::string& ca_file() const { return ca_file_; }
  const ddbmutex::Credentials& keys() const { return settings_.keys; }

  // For what knows of no CA file: by plain_url().
  Whereabouts where(const std::string& table) const;
  // By url(), trusting ca_file().
  ddbmutex::TableOptions table_options(const std::string& table) const;
  // The same for a program of ours that is told the table otherwise.
  std::vector<std::string> environment() const;

  // Hits the next `times` requests of that action.
  void fault(const std::string& action, const std::string& kind, int times = 1);
  void add(const Fault& fault);
  void clear();  // No fault any more.
  // What waits for its time, as delay and duplicate do, goes on now.
  void let_go();
  // "open"; "refuse": all connections are reset, none is accepted; "hang": all
  // is read and nothing goes on.  What was held goes on once it is open again,
  // whether its client still waits or not.
  void mode(const std::string& mode);
  // How far its clock (of its Dates and of its time window) is ahead.
  void clock_offset(std::chrono::seconds offset);
  void dates(bool shown);
  void forget();  // All counts are 0 again.
  Counts counts() const;
  // Until nothing is under way.
  void wait_until_quiet() const;

  // An exchange with its control port as it stands: the answer's body.
  std::string control(const std::string& method, const std::string& path,
                      const std::string& json = {}) const;
  Process& process() { return process_; }

 private:
  const Settings settings_;
  Process process_;
  int http_ = 0;
  int https_ = 0;  // 0: none.
  int control_ = 0;
  std::string ca_file_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_GATEWAY_HPP
