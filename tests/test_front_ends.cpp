// DynamoDB's front ends disagree about the time, on a busy table: two hosts, a
// row, and twenty answers a second to each host, by front ends that are drawn
// by lot.  One host takes one lock after another, the other wants them all.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>

#include "ddbmutex/clock.hpp"
#include "ddbmutex/protocol.hpp"
#include "tests/support/simulated_table.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::BootTime;
using ddbmutex::dynamodb::ServiceClock;
using ddbmutex::dynamodb::ServiceTime;
using ddbmutex::lock::Call;
using ddbmutex::lock::Lease;
using ddbmutex::lock::Observation;
using ddbmutex::lock::Reply;
using ddbmutex::lock::Verdict;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

constexpr nanoseconds kTrip = 10ms;
constexpr nanoseconds kBetweenAnswers = 50ms;

struct Host {
  nanoseconds stood_still{};  // In all.
  nanoseconds stopped_until{};
  ServiceClock clock;
  Observation observation;
  std::unique_ptr<Lease> lease;
  nanoseconds taken_at{};
  int leases = 0;
};

struct Tally {
  int locks = 0;
  int losses = 0;
  int overlaps = 0;
  int entries = 0;  // Of the other host.
  int contradictions = 0;
};

class Service {
 public:
  Service(nanoseconds apart, milliseconds ttl, bool stops, std::uint64_t seed)
      : apart_(apart), ttl_(ttl), stops_(stops), random_(seed) {}

  Tally run(nanoseconds length) {
    while (now_ < length) {
      now_ += kBetweenAnswers;
      if (stops_ && running() && below(1200) == 0) stop();
      if (running()) {
        hear(holder_);
        hold();
      }
      hear(waiter_);
      if (below(10) == 0) wait();
    }
    tally_.contradictions =
        holder_.clock.contradictions() + waiter_.clock.contradictions();
    return tally_;
  }

 private:
  std::int64_t below(std::int64_t end) {
    return std::uniform_int_distribution<std::int64_t>(0, end - 1)(random_);
  }

  BootTime boot(const Host& host) const {
    return BootTime(1000s + now_ - host.stood_still);
  }

  bool running() const { return holder_.stopped_until <= now_; }

  // Once a minute: longer than what may never show.
  void stop() {
    const nanoseconds length = 3s + nanoseconds(below(2 * ttl_ / 1ns));
    holder_.stood_still += length;
    holder_.stopped_until = now_ + length;
    was_stopped_ = true;
  }

  // An answer to something, sent a while ago.
  void hear(Host& host) {
    const ServiceTime shown = 1'700'000'000s + now_ + below(2) * apart_;
    host.clock.hear(boot(host) - kTrip, boot(host),
                    std::chrono::floor<std::chrono::seconds>(shown));
    if (host.lease) host.lease->apply(host.clock);
  }

  Verdict exchange(Host& host, Call call) {
    auto request =
        host.lease->next(call, boot(host), host.clock, host.observation);
    Reply reply;
    const auto before = table_.content();
    reply.outcome = table_.apply(request, {});
    reply.received = boot(host);
    const bool looks = request.verb == ddbmutex::lock::Request::Verb::look;
    if (looks || reply.outcome == Reply::Outcome::refused) {
      reply.row = std::make_unique<const ddbmutex::lock::Row>(
          before ? SimulatedTable::read(before) : ddbmutex::lock::Row{});
    }
    return host.lease->heard(std::move(reply), host.clock, host.observation);
  }

  bool take(Host& host, const std::string& name) {
    host.lease =
        std::make_unique<Lease>(name + std::to_string(++host.leases), ttl_);
    Verdict verdict;
    do {
      verdict = exchange(host, Call::take);
    } while (verdict == Verdict::again);
    if (verdict == Verdict::ours) return true;
    host.lease.reset();
    return false;
  }

  bool holds(const Host& host) const {
    return host.lease && boot(host) < host.lease->claim_end();
  }

  // Holds one lock for three leases, renews it at half of each.
  void hold() {
    Host& host = holder_;
    const bool resumed = was_stopped_;
    was_stopped_ = false;
    if (!host.lease) {
      if (take(host, "h")) {
        ++tally_.locks;
        host.taken_at = now_;
      }
      return;
    }
    if (!holds(host)) {
      if (!resumed) ++tally_.losses;
      host.lease.reset();
      return;
    }
    if (now_ - host.taken_at >= 3 * nanoseconds(ttl_)) {
      exchange(host, Call::release);
      host.lease.reset();
    } else if (boot(host) >= host.lease->renew_at(ttl_ / 2)) {
      exchange(host, Call::renew);
    }
  }

  // The holder's claim counts when he has heard an answer since he stopped.
  void wait() {
    if (!take(waiter_, "w")) return;
    ++tally_.entries;
    if (running() && holds(holder_)) ++tally_.overlaps;
    exchange(waiter_, Call::release);
    waiter_.lease.reset();
  }

  const nanoseconds apart_;
  const milliseconds ttl_;
  const bool stops_;
  std::mt19937_64 random_;
  nanoseconds now_{};
  bool was_stopped_ = false;
  SimulatedTable table_;
  Host holder_, waiter_;
  Tally tally_;
};

constexpr nanoseconds kHour = 1h;

}  // namespace

BOOST_AUTO_TEST_SUITE(front_ends)

BOOST_AUTO_TEST_CASE(those_that_disagree_let_no_two_in_and_cost_no_lock) {
  for (const milliseconds apart : {0ms, 100ms, 200ms, 250ms, 500ms, 2000ms}) {
    for (const milliseconds ttl : {2000ms, 5000ms, 60000ms}) {
      for (const bool stops : {false, true}) {
        const Tally tally = Service(apart, ttl, stops, 1).run(kHour);
        BOOST_TEST_MESSAGE(apart.count()
                           << " ms apart, ttl " << ttl.count() << " ms, "
                           << (stops ? "stops" : "no stops") << ": "
                           << tally.locks << " locks, " << tally.losses
                           << " losses, " << tally.entries << " entries, "
                           << tally.overlaps << " overlaps, "
                           << tally.contradictions << " contradictions");
        BOOST_TEST(tally.overlaps == 0);
        BOOST_TEST(tally.locks > 10);
        if (stops) BOOST_TEST(tally.entries > 10);
        if (stops || apart > 250ms) continue;
        BOOST_TEST(tally.losses == 0);
        BOOST_TEST(tally.contradictions == 0);
      }
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
