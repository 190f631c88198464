// The lock's protocol, for rows that are deleted and rows that are kept, told a
// second time and as plainly as possible, to hold ddbmutex/protocol.hpp
// against.
//
// It keeps the whole history of one acquisition, every request and what came
// of it, and works out each answer from that history anew.  That is slow and
// has no state that could go wrong.
#ifndef DDBMUTEX_TESTS_SUPPORT_REFERENCE_PROTOCOL_HPP
#define DDBMUTEX_TESTS_SUPPORT_REFERENCE_PROTOCOL_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex/clock.hpp"
#include "ddbmutex/protocol.hpp"
#include "ddbmutex/record.hpp"
#include "sigv4/boot_clock.hpp"

namespace reference {

using ddbmutex::BootTime;
using ddbmutex::dynamodb::ServiceClock;
using ddbmutex::dynamodb::ServiceTime;
using ddbmutex::lock::Call;
using ddbmutex::lock::Changes;
using ddbmutex::lock::Reply;
using ddbmutex::lock::Request;
using ddbmutex::lock::Row;
using ddbmutex::lock::RowUse;
using ddbmutex::lock::Verdict;

// Every row that a waiter ever saw.
class Sightings {
 public:
  void see(const Row& row, BootTime received);
  void forget() { see(Row{}, BootTime{}); }

  // When the row last seen has been seen unchanged for its lease.
  BootTime stale_at() const;
  bool stale(BootTime now) const { return now >= stale_at(); }
  // REQUIRES: something was seen.
  const Row& last() const { return all_.back().row; }

 private:
  struct Sighting {
    Row row;
    BootTime received;
  };
  std::vector<Sighting> all_;
};

// One acquisition.
class Protocol {
 public:
  Protocol(std::string uuid, std::chrono::milliseconds ttl, RowUse use = {})
      : uuid_(std::move(uuid)), ttl_(ttl), use_(use) {}

  Request next(Call call, BootTime now, const ServiceClock& clock,
               const Sightings& sightings);
  Verdict heard(Reply&& reply, const ServiceClock& clock, Sightings& sightings);
  void apply(const ServiceClock& clock);
  void carry(std::shared_ptr<const Changes> changes) {
    changes_ = std::move(changes);
  }

  BootTime claim_end() const;
  bool hand_over(BootTime now, int limit);
  // REQUIRES: granted.
  BootTime renew_at(std::chrono::nanoseconds age) const;
  std::int64_t token() const;
  // By what was told last, the row was ours.  REQUIRES: nothing granted.
  bool stands() const;

  // For the tests' count of what the histories came to.
  bool granted() const { return !bounds_.empty(); }
  bool settling() const;

 private:
  // A request, and what came of it.
  struct Exchange {
    Call call;
    Request request;
    BootTime at;
    int contradictions = 0;   // Heard by then.
    ServiceTime earliest{0};  // That service time may have been.
    std::optional<Reply> reply;
    Verdict verdict{};
    std::optional<std::size_t> own;  // The row bears this exchange's stamp.
    bool unsettled = false;          // ... and a later take may count yet.
  };

  // What the history tells.
  bool stamped(std::size_t i) const;
  bool may_be_in_the_row(std::size_t i) const;
  bool told_of_the_row(std::size_t i) const;
  // A write that was applied, and whose answer should tell the row.
  bool applied_and_tells(const Exchange& exchange) const;
  std::optional<std::size_t> last_told(Call call) const;
  std::optional<std::size_t> last_own() const;
  std::optional<std::size_t> confirmed_before() const;
  std::vector<std::size_t> remembered() const;
  ServiceTime lowest_stamp() const;
  bool release_may_be_applied() const;
  bool releasing() const;
  int tries_at_once() const;
  std::vector<ServiceTime> own_for_take() const;
  std::vector<ServiceTime> own_for_renewal() const;

  // What to send.
  Request wanted(Call call, BootTime now, const ServiceClock& clock,
                 const Sightings& sightings) const;
  Request wanted_take(BootTime now, const ServiceClock& clock,
                      const Sightings& sightings) const;
  Request put(BootTime now, const ServiceClock& clock,
              const Sightings& sightings) const;
  Request renewal(BootTime now, const ServiceClock& clock) const;
  bool may_stamp(BootTime now, const ServiceClock& clock) const;
  Request wanted_release() const;
  ServiceTime stamp(BootTime now, const ServiceClock& clock) const;

  // What an answer means.
  std::optional<std::size_t> borne_by(const Row& row) const;
  void find_own(Exchange& exchange) const;
  Verdict judge_take(const Exchange& exchange, const ServiceClock& clock,
                     Sightings& sightings);
  Verdict judge_own_take(const Exchange& exchange, const ServiceClock& clock);
  Verdict judge_renewal(const Exchange& exchange, const ServiceClock& clock);
  Verdict judge_release(const Exchange& exchange) const;
  BootTime claim_from(std::size_t own, const ServiceClock& clock) const;
  void grant(std::size_t own, const ServiceClock& clock);

  const std::string uuid_;
  const std::chrono::nanoseconds ttl_;
  const RowUse use_;
  std::shared_ptr<const Changes> changes_;
  std::vector<Exchange> history_;
  // Whatever bounds the claim since it was last granted or renewed.
  std::vector<BootTime> bounds_;
  std::size_t granted_by_ = 0;
  int handed_over_ = 0;
};

}  // namespace reference

#endif  // DDBMUTEX_TESTS_SUPPORT_REFERENCE_PROTOCOL_HPP
