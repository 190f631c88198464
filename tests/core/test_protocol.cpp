// ddbmutex/lock/protocol.hpp: one case for each rule of the protocol.  Lease
// and Observation are pure: they are given the time, and each case holds the
// clock.
#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex/dynamodb/clock.hpp"
#include "ddbmutex/lock/protocol.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/support/files.hpp"
#include "tests/support/words.hpp"

using namespace ddbmutex;
using namespace std::chrono_literals;
using dynamodb::ServiceClock;
using dynamodb::ServiceTime;
using lock::Call;
using lock::Lease;
using lock::Observation;
using lock::Reply;
using lock::Request;
using lock::Row;
using lock::Verdict;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using tests::all_matches;
using tests::word;

namespace {

constexpr milliseconds kTtl = 60s;
constexpr nanoseconds kHeld = 58'750ms;  // 60 s less the holder's margin.
constexpr ServiceTime kBeyond{4'000'000'000'000'000'000};
// Each case begins at this time of the boot clock, and at this time of
// DynamoDB's.
constexpr BootTime kStart{100h};
constexpr ServiceTime kDate = 1'800'000'000s;

Row record(std::string uuid, ServiceTime expires,
           std::optional<milliseconds> lease = kTtl) {
  Row row;
  row.kind = Row::Kind::record;
  row.uuid = std::move(uuid);
  row.expires = expires;
  row.lease = lease;
  row.owner = "holder:1";
  return row;
}

Row of_kind(Row::Kind kind) {
  Row row;
  row.kind = kind;
  return row;
}

Row with_token(Row row, std::int64_t token) {
  row.has_token = true;
  row.token = token;
  return row;
}

const Row kNone;

lock::RowPolicy kept_use() {
  lock::RowPolicy use;
  use.keeps_row = true;
  use.keep_data = true;
  return use;
}

// One contender and all it knows, on clocks that move when a case says so.
struct Contender {
  explicit Contender(milliseconds ttl = kTtl, lock::RowPolicy use = {})
      : lease("mine", ttl, use) {}

  // --- What time it is ---
  BootTime now = kStart;
  ServiceClock clock;

  // An answer with that Date was sent and received at this moment.
  void hear_date(ServiceTime date) { clock.receive(now, now, date); }
  void hear_no_date() { clock.receive(now, now, std::nullopt); }
  void pass(nanoseconds time) { now += time; }

  // --- The exchange ---
  Observation observation;
  Lease lease;
  Request sent;

  const Request& send(Call call) {
    sent = lease.next(call, now, clock, observation);
    return sent;
  }
  std::string hear(Reply::Outcome outcome, const Row* row = nullptr) {
    Reply reply;
    reply.outcome = outcome;
    if (row != nullptr) reply.row = std::make_unique<const Row>(*row);
    reply.received = now;
    return word(lease.receive(std::move(reply), clock, observation));
  }
  std::string done() { return hear(Reply::Outcome::done); }
  std::string lost() { return hear(Reply::Outcome::unknown); }
  std::string unsent() { return hear(Reply::Outcome::unsent); }
  std::string refused(const Row& row) {
    return hear(Reply::Outcome::refused, &row);
  }
  std::string refused_without_a_row() { return hear(Reply::Outcome::refused); }
  // The answer of a write that returns the row as written.
  std::string done_with(std::int64_t token) {
    const Row row = with_token(own_row(), token);
    return hear(Reply::Outcome::done, &row);
  }
  // The answer of a look.
  std::string found(const Row& row) { return hear(Reply::Outcome::done, &row); }

  // --- What has led here ---
  // Learns DynamoDB's time and takes the lock, while no time passes.
  void hold() {
    hear_date(kDate);
    send(Call::take);
    BOOST_REQUIRE(done() == "ours");
  }
  // The same for a row that is kept.
  void hold_kept(std::int64_t token) {
    hear_date(kDate);
    send(Call::take);
    BOOST_REQUIRE(done_with(token) == "ours");
  }
  // The look that comes before a renewal while the time is uncertain.  It
  // leaves the time uncertain.
  void look_in_vain() {
    const Row row = own_row();
    send(Call::renew);
    BOOST_REQUIRE(word(sent.verb) == "look");
    BOOST_REQUIRE(found(row) == "again");
  }
  // Sends for `call` and loses the answer, `times` times.  Returns the stamps.
  std::vector<ServiceTime> lose(Call call, int times) {
    std::vector<ServiceTime> stamps;
    for (int i = 0; i < times; ++i) {
      stamps.push_back(send(call).stamp);
      BOOST_REQUIRE(word(sent.verb) != "look");
      BOOST_REQUIRE(lost() == "again");
    }
    return stamps;
  }
  Row own_row() const { return record("mine", sent.stamp); }
};

// DynamoDB's true time at c.now.
ServiceTime true_time(const Contender& c) { return kDate + (c.now - kStart); }

// An answer that took no time, with the true time as its Date.
void hear_true_date(Contender& c) {
  c.hear_date(std::chrono::floor<std::chrono::seconds>(true_time(c)));
}

void check_stamp(ServiceTime stamp, ServiceTime at_least, std::int64_t number) {
  BOOST_TEST(stamp.count() >= at_least.count());
  BOOST_TEST(stamp.count() < (at_least + 1us).count());
  BOOST_TEST(stamp.count() % 1000 == number % 1000);
}

void check_equal(const std::vector<ServiceTime>& a,
                 const std::vector<ServiceTime>& b) {
  BOOST_TEST(a.size() == b.size());
  BOOST_TEST((a == b));
}

// Rounding may end a claim some nanoseconds early, never late.
void check_claim(const Lease& lease, BootTime end) {
  BOOST_TEST(lease.claim_end().time_since_epoch().count() <=
             end.time_since_epoch().count());
  BOOST_TEST(lease.claim_end().time_since_epoch().count() >
             (end - 1us).time_since_epoch().count());
}

std::int64_t count(BootTime time) { return time.time_since_epoch().count(); }

}  // namespace

BOOST_AUTO_TEST_SUITE(protocol)

// --- Leases as holder and waiter count them --------------------------------

BOOST_AUTO_TEST_CASE(waiter_counts_a_lease_one_percent_long) {
  BOOST_TEST(lock::waited_for(60s).count() == nanoseconds(60'600ms).count());
  // Rounded to the careful side.
  BOOST_TEST(lock::waited_for(101ns).count() == 103);
}

BOOST_AUTO_TEST_CASE(holder_counts_a_lease_short_by_a_pause_or_one_percent) {
  const std::pair<nanoseconds, nanoseconds> kWanted[] = {
      // An eighth,
      {100ms, 87'500us},
      {1s, 875ms},
      {2s, 1750ms},
      {5s, 4375ms},
      {10s, 8750ms},
      // the longest pause that goes unnoticed,
      {10s + 8ns, 8750ms + 8ns},
      {20s, 18'750ms},
      {60s, 58'750ms},
      {125s, 123'750ms},
      // or 1 %.
      {125s + 100ns, 123'750ms + 99ns},
      {1h, 3564s},
      // Rounded to the careful side.
      {125s + 1ns, 123'750ms},
      {1ns, 0ns},
  };
  for (const auto& [lease, held] : kWanted) {
    BOOST_TEST(lock::held_for(lease).count() == held.count(), lease.count());
  }
}

// --- Stamps ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_without_any_date_passes_nothing_by_service_time) {
  Contender c;
  c.hear_no_date();
  c.send(Call::take);
  BOOST_TEST(word(c.sent.verb) == "take");
  BOOST_TEST(c.sent.uuid == "mine");
  BOOST_TEST(c.sent.earliest.count() == 1);
  BOOST_TEST(!c.sent.seen.has_value());
  BOOST_TEST(c.sent.own.empty());
}

BOOST_AUTO_TEST_CASE(take_with_dynamodbs_clock_is_stamped_by_its_latest) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  BOOST_TEST(c.clock.latest(c.now).count() >= (kDate + 1s).count());
  check_stamp(c.sent.stamp, c.clock.latest(c.now) + 60s, 1);
}

BOOST_AUTO_TEST_CASE(takes_by_the_thousand_never_use_a_stamp_twice) {
  Contender c;
  c.hear_date(kDate);
  const auto stamps = c.lose(Call::take, 3500);  // While no time passes.
  const std::set<ServiceTime> different(stamps.begin(), stamps.end());
  BOOST_TEST(different.size() == stamps.size());
}

BOOST_AUTO_TEST_CASE(stamps_stay_different_while_the_clock_moves_to_and_fro) {
  ServiceClock early;
  ServiceClock late;
  Contender c;
  early.receive(c.now, c.now, kDate);
  late.receive(c.now, c.now, kDate + 100ms);
  c.hold();
  std::set<ServiceTime> different = {c.sent.stamp};
  for (int i = 1; i <= 3500; ++i) {
    c.clock = i % 2 == 0 ? early : late;
    BOOST_REQUIRE(different.insert(c.send(Call::renew).stamp).second);
    BOOST_REQUIRE(c.done() == "ours");
  }
}

// --- Taking a free lock ----------------------------------------------------

BOOST_AUTO_TEST_CASE(taken_lock_is_claimed_from_the_sending_less_the_margin) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  const BootTime sent = c.now;
  c.pass(700ms);
  BOOST_TEST(c.done() == "ours");
  check_claim(c.lease, sent + kHeld);
  BOOST_TEST(count(c.lease.time_at_age(30s)) == count(sent + 30s));
}

// --- Before anything was heard ----------------------------------------------

// If stamps came from the host's calendar, and that was ahead, a dead holder
// would keep others out for as long as it was ahead.
BOOST_AUTO_TEST_CASE(nothing_is_stamped_before_an_answer_has_come) {
  Contender c;
  for (int i = 0; i < 3; ++i) {
    c.send(Call::take);
    BOOST_TEST(word(c.sent.verb) == "look");
    // A stale answer would keep a poller from a lock that is free.
    BOOST_TEST(c.sent.consistent);
    BOOST_TEST(c.lost() == "again");
  }
  c.send(Call::take);
  c.pass(30ms);
  c.hear_date(kDate);
  BOOST_TEST(c.found(kNone) == "again");
  c.send(Call::take);
  BOOST_TEST(word(c.sent.verb) == "take");
  check_stamp(c.sent.stamp, c.clock.latest(c.now) + 60s, 1);
  const BootTime sent = c.now;
  c.pass(30ms);
  BOOST_TEST(c.done() == "ours");
  check_claim(c.lease, sent + kHeld);
}

// --- After a long silence ----------------------------------------------------

namespace {

// Stays idle, looks if it must, and takes.  Returns by how much the stamp is
// later than the true end of the lease.
nanoseconds stamped_late(Contender& c, nanoseconds idle) {
  hear_true_date(c);
  c.pass(idle);
  c.send(Call::take);
  if (word(c.sent.verb) == "look") {
    hear_true_date(c);
    BOOST_REQUIRE(c.found(kNone) == "again");
    c.send(Call::take);
  }
  BOOST_REQUIRE(word(c.sent.verb) == "take");
  return c.sent.stamp - (true_time(c) + kTtl);
}

}  // namespace

// If the time was only known to within minutes, a claim would count from the
// earliest possible time, and so from minutes ago.
BOOST_AUTO_TEST_CASE(lease_after_a_long_silence_outlives_a_contradiction) {
  for (const auto idle : {2h, 24h * 7}) {
    Contender c;
    stamped_late(c, idle);
    BOOST_REQUIRE(c.done() == "ours");
    c.pass(1s);
    c.hear_date(true_time(c) + 3s);
    BOOST_TEST(c.clock.in_doubt());
    c.lease.apply(c.clock);
    BOOST_TEST(((c.lease.claim_end() - c.now) / 1s >= 50));
  }
}

BOOST_AUTO_TEST_CASE(renewal_of_a_long_lease_looks_what_time_it_is) {
  constexpr milliseconds kLong = 4h;
  Contender c(kLong);
  c.hold();
  const Row row = record("mine", c.sent.stamp, kLong);
  c.pass(2h);
  c.send(Call::renew);
  BOOST_TEST(word(c.sent.verb) == "look");
  hear_true_date(c);
  BOOST_TEST(c.found(row) == "again");
  c.send(Call::renew);
  BOOST_TEST(word(c.sent.verb) == "renew");
  const nanoseconds late = c.sent.stamp - (true_time(c) + kLong);
  BOOST_TEST((late / 1ms <= 5000));
  BOOST_TEST(c.done() == "ours");
}

// Where answers take seconds, no look makes the time certain.
BOOST_AUTO_TEST_CASE(look_that_leaves_the_time_uncertain_is_made_once) {
  Contender c;
  for (int i = 0; i < 2; ++i) {
    c.send(Call::take);
    BOOST_TEST(word(c.sent.verb) == "look");
    const BootTime sent = c.now;
    c.pass(8s);
    c.clock.receive(sent, c.now, true_time(c));
    BOOST_TEST(c.found(kNone) == "again");
    c.send(Call::take);
    BOOST_TEST(word(c.sent.verb) == "take");
    BOOST_TEST(c.unsent() == "again");
    c.pass(31s);
  }
}

// --- Answers without a Date ------------------------------------------------

BOOST_AUTO_TEST_CASE(lease_beyond_all_clocks_is_claimed_by_the_boot_clock) {
  Contender c;
  c.send(Call::take);
  c.hear_no_date();
  BOOST_TEST(c.found(kNone) == "again");
  c.pass(10ms);
  c.send(Call::take);
  BOOST_TEST(c.sent.stamp.count() == kBeyond.count() + 1);
  const BootTime sent = c.now;
  c.hear_no_date();
  BOOST_TEST(c.done() == "ours");
  check_claim(c.lease, sent + kHeld);
  c.pass(30s);
  c.send(Call::renew);
  BOOST_TEST(c.sent.stamp.count() == kBeyond.count() + 2);
  BOOST_TEST(c.done() == "ours");
  check_claim(c.lease, c.now + kHeld);
}

// --- Answers lost and late -------------------------------------------------

// One of a hundred takes was applied.  Its lease has expired when the client
// learns of it.
BOOST_AUTO_TEST_CASE(take_lists_the_stamp_that_the_row_is_known_to_bear) {
  Contender c;
  c.hear_no_date();  // So that the stamps are beyond all clocks.
  const auto stamps = c.lose(Call::take, 100);
  const ServiceTime borne = stamps[50];
  c.send(Call::take);
  c.pass(2min);
  BOOST_TEST(c.refused(record("mine", borne)) == "again");
  for (int i = 0; i < 100; ++i) {
    c.send(Call::take);
    BOOST_REQUIRE(word(c.sent.verb) == "take");
    BOOST_REQUIRE(c.sent.own.front().count() == borne.count());
    if (i < 99) c.lost();
  }
  BOOST_TEST(c.done() == "ours");
}

BOOST_AUTO_TEST_CASE(take_lists_stamps_that_were_refused_too) {
  Contender c;
  c.hear_date(kDate);
  const ServiceTime first = c.send(Call::take).stamp;
  BOOST_TEST(c.refused(kNone) == "again");
  c.send(Call::take);
  check_equal(c.sent.own, {first});
}

BOOST_AUTO_TEST_CASE(refusal_by_our_own_record_is_ours) {
  Contender c;
  c.hear_date(kDate);
  const auto stamps = c.lose(Call::take, 2);
  c.send(Call::take);
  BOOST_TEST(c.refused(record("mine", stamps[1])) == "ours");
}

BOOST_AUTO_TEST_CASE(our_uuid_with_a_stamp_never_sent_is_not_ours) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  BOOST_TEST(c.refused(record("mine", c.sent.stamp + 1ns)) == "busy");
}

BOOST_AUTO_TEST_CASE(their_uuid_with_our_stamp_is_not_ours) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  BOOST_TEST(c.refused(record("theirs", c.sent.stamp)) == "busy");
}

BOOST_AUTO_TEST_CASE(stamp_that_never_left_is_not_recognised) {
  Contender c;
  c.hear_date(kDate);
  const ServiceTime never = c.send(Call::take).stamp;
  c.unsent();
  c.send(Call::take);
  BOOST_TEST(c.refused(record("mine", never)) == "busy");
}

BOOST_AUTO_TEST_CASE(own_record_told_at_the_end_of_its_lease_never_grants) {
  Contender c;
  c.hear_date(kDate);
  const ServiceTime first = c.send(Call::take).stamp;
  c.lost();
  c.pass(kHeld);
  c.send(Call::take);
  BOOST_TEST(c.refused(record("mine", first)) == "again");
  BOOST_TEST(count(c.lease.claim_end()) == count(BootTime::min()));
}

// --- A lock whose lease is over by service time ----------------------------

BOOST_AUTO_TEST_CASE(lease_is_over_two_seconds_before_earliest_to_the_ns) {
  for (const nanoseconds before : {0ns, 1ns}) {
    Contender c;
    c.hear_date(kDate);
    c.send(Call::take);
    const ServiceTime line = c.clock.earliest(c.now) - 2s;
    BOOST_TEST(c.refused(record("dead", line - before)) ==
               (before == 0ns ? "busy" : "again"));
  }
}

// A host that has heard many Dates knows the time better than one that has just
// begun.
BOOST_AUTO_TEST_CASE(lease_is_over_for_newcomers_when_their_take_gets_it) {
  for (const milliseconds margin : {0ms, 3000ms}) {
    lock::RowPolicy policy;
    policy.margin = margin;
    for (nanoseconds phase = 0s; phase < 1s; phase += 50ms) {
      ServiceClock watcher;
      BOOST_TEST(!lock::is_over_for_newcomers(kDate, margin, watcher, kStart));
      for (nanoseconds time = 0s; time < 6s; time += 130ms) {
        const BootTime now = kStart + time;
        const auto date =
            std::chrono::floor<std::chrono::seconds>(kDate + phase + time);
        watcher.receive(now, now, date);
        Contender newcomer(kTtl, policy);
        newcomer.now = now;
        newcomer.hear_date(date);
        newcomer.pass(1us);  // A bound is 1 ns off at the moment of an answer.
        const bool gets_it = kDate < newcomer.send(Call::take).earliest;
        BOOST_TEST(lock::is_over_for_newcomers(kDate, margin, watcher,
                                               newcomer.now) == gets_it);
      }
    }
  }
}

namespace {

// How long a dead client's record has expired when a waiter first sends a take
// that can replace it.  The waiter comes at the time `comes` of DynamoDB's
// clock, which shows whole seconds.  A look takes `trip`, and the next look
// follows after `poll`.
nanoseconds late_by(const Row& dead, ServiceTime comes, milliseconds margin,
                    nanoseconds trip, nanoseconds poll) {
  lock::RowPolicy use;
  use.margin = margin;
  use.needs_date = margin > 0ms;
  Contender waiter(kTtl, use);
  const auto service = [&, began = waiter.now] {
    return comes + (waiter.now - began);
  };
  while (word(waiter.send(Call::take).verb) != "take" ||
         waiter.sent.earliest <= dead.expires) {
    const BootTime sent = waiter.now;
    const auto shown = std::chrono::floor<std::chrono::seconds>(service());
    waiter.pass(trip);
    waiter.clock.receive(sent, waiter.now, shown);
    if (waiter.found(dead) == "busy") waiter.pass(poll);
    BOOST_TEST_REQUIRE((service() < dead.expires + 1min));
  }
  return service() - dead.expires;
}

}  // namespace

// A take is never sent before the margin has passed.  It is sent after the
// margin, plus the uncertainty of DynamoDB's clock (its second, the difference
// between front ends, a round trip), plus one poll.
BOOST_AUTO_TEST_CASE(end_without_a_lease_is_believed_in_the_promised_time) {
  constexpr nanoseconds kPoll = 500ms, kUnknown = 1250ms;
  for (const milliseconds margin : {0ms, 2000ms, 5000ms}) {
    const nanoseconds skew = std::max<nanoseconds>(2s, margin);
    for (const nanoseconds trip : {1ms, 200ms}) {
      nanoseconds least = 1min, most{};
      for (nanoseconds end{}; end < 1s; end += 50ms) {
        const Row dead = record("dead", kDate + end, std::nullopt);
        for (nanoseconds after{}; after < skew + kUnknown; after += 50ms) {
          const nanoseconds late =
              late_by(dead, dead.expires + after, margin, trip, kPoll);
          least = std::min(least, late);
          most = std::max(most, late);
        }
      }
      BOOST_TEST((least > skew), least.count());
      // Clocks may run 1 % off meanwhile.
      BOOST_TEST((most <= skew + kUnknown + trip + kPoll * 102 / 100),
                 most.count());
      BOOST_TEST((most >= skew + kUnknown + trip + kPoll - 100ms),
                 most.count());
    }
  }
}

BOOST_AUTO_TEST_CASE(row_that_seems_free_and_refuses_is_not_asked_for_ever) {
  Contender c;
  c.hear_date(kDate);
  const Row dead = record("dead", kDate - 1h);
  c.send(Call::take);
  BOOST_TEST(c.refused(dead) == "again");
  c.send(Call::take);
  BOOST_TEST(c.refused(dead) == "again");
  c.send(Call::take);
  BOOST_TEST(c.refused(dead) == "busy");
}

// --- Refusals that do not tell the row -------------------------------------

BOOST_AUTO_TEST_CASE(refusal_without_a_row_leads_to_a_consistent_look) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  BOOST_TEST(c.refused_without_a_row() == "again");
  c.send(Call::take);
  BOOST_TEST(word(c.sent.verb) == "look");
  BOOST_TEST(c.sent.consistent);
  BOOST_TEST(c.found(record("theirs", kDate + 30s)) == "busy");
}

// --- What a waiter saw -----------------------------------------------------

BOOST_AUTO_TEST_CASE(record_is_stale_exactly_one_percent_after_its_lease) {
  for (const milliseconds lease :
       {1ms, 100ms, milliseconds(60s), milliseconds(24h)}) {
    Observation observation;
    const BootTime seen = kStart;
    observation.see(record("theirs", kDate, lease), seen);
    const BootTime line = seen + nanoseconds(lease) * 101 / 100;
    BOOST_TEST(count(observation.stale_at()) == count(line));
    BOOST_TEST(!observation.stale(line - 1ns));
    BOOST_TEST(observation.stale(line));
  }
}

BOOST_AUTO_TEST_CASE(record_seen_changed_starts_anew) {
  const BootTime seen = kStart;
  for (const Row& other :
       {record("another", kDate), record("theirs", kDate + 1ns),
        record("theirs", kDate - 1ns), record("theirs", kDate, 60'001ms),
        record("theirs", kDate, 59'999ms)}) {
    Observation observation;
    observation.see(record("theirs", kDate), seen);
    observation.see(other, seen + 10s);
    BOOST_TEST(count(observation.stale_at()) ==
               count(seen + 10s + lock::waited_for(*other.lease)));
    // A change back to the first record starts anew, too.
    observation.see(record("theirs", kDate), seen + 20s);
    BOOST_TEST(count(observation.stale_at()) == count(seen + 20s + 60'600ms));
  }
}

BOOST_AUTO_TEST_CASE(record_seen_gone_in_between_starts_anew) {
  for (const Row::Kind kind :
       {Row::Kind::absent, Row::Kind::bare, Row::Kind::unknown}) {
    Observation observation;
    const BootTime seen = kStart;
    observation.see(record("theirs", kDate), seen);
    observation.see(of_kind(kind), seen + 10s);
    BOOST_TEST((observation.seen() == nullptr));
    BOOST_TEST(count(observation.stale_at()) == count(BootTime::max()));
    observation.see(record("theirs", kDate), seen + 20s);
    BOOST_TEST(count(observation.stale_at()) == count(seen + 20s + 60'600ms));
  }
}

BOOST_AUTO_TEST_CASE(record_counts_from_when_it_was_received) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  c.pass(5s);
  c.refused(record("theirs", kDate + 90min));
  BOOST_TEST(count(c.observation.stale_at()) == count(c.now + 60'600ms));
}

BOOST_AUTO_TEST_CASE(waiter_polls_with_looks_that_need_not_be_consistent) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  c.refused(record("theirs", kDate + 30s));
  for (int i = 0; i < 3; ++i) {
    c.pass(1s);
    c.send(Call::take);
    BOOST_TEST(word(c.sent.verb) == "look");
    BOOST_TEST(!c.sent.consistent);
    BOOST_TEST(c.found(record("theirs", kDate + 30s)) == "busy");
  }
}

// --- Renewing --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(renewal_refused_by_our_own_stamp_is_ours_from_its_send) {
  Contender c;
  c.hold();
  c.pass(10s);
  const BootTime sent = c.now;
  const ServiceTime applied = c.send(Call::renew).stamp;
  c.lost();
  c.pass(10s);
  const ServiceTime later = c.send(Call::renew).stamp;
  BOOST_TEST(c.refused(record("mine", applied)) == "ours");
  check_claim(c.lease, sent + kHeld);
  // The later one may yet be applied.
  c.send(Call::renew);
  check_equal(c.sent.own, {applied, later});
}

BOOST_AUTO_TEST_CASE(more_than_64_stamps_are_settled_by_a_look) {
  Contender c;
  c.hold();
  const ServiceTime confirmed = c.sent.stamp;
  const auto stamps = c.lose(Call::renew, 64);
  c.send(Call::renew);
  BOOST_TEST(word(c.sent.verb) == "look");
  BOOST_TEST(c.sent.consistent);
  BOOST_TEST(c.lost() == "again");
  c.send(Call::renew);
  BOOST_TEST(word(c.sent.verb) == "look");
  // None of them was applied: the row bears what was confirmed.
  BOOST_TEST(c.found(record("mine", confirmed)) == "again");
  c.send(Call::renew);
  BOOST_TEST(word(c.sent.verb) == "renew");
  check_equal(c.sent.own, {confirmed});
  const ServiceTime after = c.sent.stamp;
  c.lost();
  c.send(Call::renew);
  check_equal(c.sent.own, {confirmed, after});
  // All sent stay remembered, listed or not.
  BOOST_TEST(c.refused(record("mine", stamps[3])) == "ours");
}

BOOST_AUTO_TEST_CASE(own_record_told_after_the_claim_revives_nothing) {
  Contender c;
  c.hold();
  const BootTime end = c.lease.claim_end();
  c.pass(59s);
  const ServiceTime applied = c.send(Call::renew).stamp;
  c.lost();
  c.pass(399ms);
  c.send(Call::renew);
  c.now = end;
  BOOST_TEST(c.refused(record("mine", applied)) == "expired");
  BOOST_TEST(count(c.lease.claim_end()) <= count(end));
}

// --- A claim that the service's clock ends ---------------------------------

// For clients that judge by their calendars, the stored end is later by a
// margin.
BOOST_AUTO_TEST_CASE(
    claim_ends_when_latest_reaches_the_lowest_stamp_less_the_margin) {
  for (const milliseconds margin : {0ms, 5000ms}) {
    lock::RowPolicy use;
    use.margin = margin;
    use.needs_date = margin > 0ms;
    Contender c(kTtl, use);
    c.hold();
    const ServiceTime stamp = c.sent.stamp - margin;
    c.pass(10s);
    dynamodb::ServiceClock ahead;  // By 30 s, and never contradicted.
    ahead.receive(c.now, c.now, kDate + 40s);
    c.lease.apply(ahead);
    const BootTime end = c.lease.claim_end();
    BOOST_TEST(ahead.latest(end).count() <= stamp.count());
    BOOST_TEST(ahead.latest(end + 1us).count() > stamp.count());
    BOOST_TEST(count(end) < count(kStart + 30s));
  }
}

// A Date that contradicts nothing may still follow a stop of this machine, and
// says nothing about the time before the stop.
BOOST_AUTO_TEST_CASE(
    claim_after_two_stops_counts_from_what_was_known_when_sent) {
  Contender c;
  c.hold();
  c.send(Call::renew);
  c.hear_date(kDate + 1s);  // Possible: the first Date was rounded down.
  BOOST_TEST(!c.clock.in_doubt());
  BOOST_TEST(c.done() == "ours");
  c.hear_date(kDate + 10s);
  BOOST_TEST(c.clock.in_doubt());
  c.lease.apply(c.clock);
  BOOST_TEST(c.clock.latest(c.lease.claim_end()).count() <=
             (kDate + lock::held_for(kTtl)).count());
}

BOOST_AUTO_TEST_CASE(
    stop_that_may_have_lasted_the_lease_ends_the_claim_at_once) {
  Contender c;
  c.hold();
  c.pass(100ms);
  c.hear_date(kDate + 59s);  // So it is kDate + 60 s at the latest.
  c.lease.apply(c.clock);
  BOOST_TEST(count(c.lease.claim_end()) <= count(c.now));
}

BOOST_AUTO_TEST_CASE(one_contradicting_date_ends_a_claim_at_once) {
  Contender c;
  c.hold();
  c.pass(1s);
  c.hear_date(kDate + 2h);
  BOOST_TEST(c.clock.in_doubt());
  c.lease.apply(c.clock);
  BOOST_TEST(count(c.lease.claim_end()) <= count(c.now));
}

BOOST_AUTO_TEST_CASE(answer_that_decides_nothing_applies_what_became_known) {
  Contender c;
  c.hold();
  c.pass(10s);
  c.send(Call::renew);
  c.hear_date(kDate + 40s);
  BOOST_TEST(c.lost() == "again");
  BOOST_TEST(count(c.lease.claim_end()) < count(kStart + 31s));
}

// A renewal is sent after an answer has set the clock back by half a minute.
// Once another answer contradicts that, the renewal's claim counts from the
// earlier time, and so it ends before the claim that it renews.
BOOST_AUTO_TEST_CASE(
    renewal_may_shorten_the_claim_and_grants_nothing_after_it) {
  const auto renewing = [](Contender& c) {
    c.hold();
    c.pass(1s);
    c.hear_date(kDate - 30s);
    c.look_in_vain();
    c.send(Call::renew);
    c.hear_date(kDate + 10s);
    c.lease.apply(c.clock);
  };
  Contender in_time;
  renewing(in_time);
  const BootTime before = in_time.lease.claim_end();
  BOOST_TEST(in_time.done() == "ours");
  const BootTime end = in_time.lease.claim_end();
  BOOST_TEST(count(end) < count(before));

  Contender late;
  renewing(late);
  BOOST_TEST(count(late.lease.claim_end()) == count(before));
  late.now = end;
  BOOST_TEST(late.done() == "expired");
}

BOOST_AUTO_TEST_CASE(claim_once_ended_by_a_date_stays_ended) {
  Contender c;
  c.hold();
  c.pass(1s);
  const ServiceClock before = c.clock;
  c.hear_date(kDate + 2h);
  c.lease.apply(c.clock);
  const BootTime end = c.lease.claim_end();
  c.lease.apply(before);
  BOOST_TEST(count(c.lease.claim_end()) == count(end));
}

BOOST_AUTO_TEST_CASE(sending_a_renewal_applies_what_became_known_meanwhile) {
  for (const std::string verb : {"renew", "look"}) {
    Contender c;
    c.hold();
    c.pass(10s);
    // Another lock's answer.  One that contradicts what was known makes the
    // time uncertain, so that a look comes first.
    if (verb == "renew") c.clock = ServiceClock();
    c.hear_date(kDate + 40s);
    check_claim(c.lease, kStart + kHeld);
    c.send(Call::renew);
    BOOST_TEST(word(c.sent.verb) == verb);
    BOOST_TEST(count(c.lease.claim_end()) < count(kStart + 31s));
  }
}

// A stamp that was sent while the clock was back, and may yet be applied,
// counts against the claim although a higher one is confirmed.
BOOST_AUTO_TEST_CASE(lower_stamp_sent_and_unanswered_bounds_the_claim) {
  Contender c;
  c.hold();
  ServiceClock back;
  back.receive(c.now, c.now, kDate - 30s);
  const ServiceClock forth = c.clock;
  c.pass(1s);
  c.clock = back;
  const ServiceTime low = c.send(Call::renew).stamp;
  c.lost();
  c.clock = forth;
  c.lease.apply(c.clock);
  const BootTime end = c.lease.claim_end();
  BOOST_TEST(count(end) < count(kStart + 31s));
  BOOST_TEST(c.clock.latest(end).count() <= low.count());
  BOOST_TEST(c.clock.latest(end + 1us).count() > low.count());
}

// --- Releasing -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(release_refused_after_a_lost_one_is_released) {
  for (const Row& row : {kNone, record("theirs", kDate + 60s)}) {
    Contender c;
    c.hold();
    c.send(Call::release);
    BOOST_TEST(c.lost() == "again");
    c.send(Call::release);
    BOOST_TEST(word(c.sent.verb) == "release");
    BOOST_TEST(c.refused(row) == "released");
  }
}

BOOST_AUTO_TEST_CASE(release_of_a_lock_that_was_lost_tells_how) {
  Contender gone;
  gone.hold();
  gone.send(Call::release);
  BOOST_TEST(gone.refused(kNone) == "deleted");
  for (const Row& row :
       {record("theirs", kDate + 60s), of_kind(Row::Kind::bare),
        of_kind(Row::Kind::unknown)}) {
    Contender taken;
    taken.hold();
    taken.send(Call::release);
    BOOST_TEST(taken.refused(row) == "taken");
  }
}

// Others may have taken the row by then, and even have released it.
BOOST_AUTO_TEST_CASE(release_refused_once_the_lease_has_lapsed_is_no_loss) {
  for (const Row& row : {kNone, record("theirs", kDate + 60s)}) {
    for (const bool told : {true, false}) {
      Contender c;
      c.hold();
      c.send(Call::release);
      c.pass(kHeld);
      BOOST_TEST((told ? c.refused(row) : c.refused_without_a_row()) ==
                 "released");
    }
    Contender in_time;
    in_time.hold();
    in_time.send(Call::release);
    in_time.pass(kHeld - 2us);
    BOOST_TEST(in_time.refused(row) ==
               (row.uuid.empty() ? "deleted" : "taken"));
  }
}

// The answer to the release shows that this machine stood still, maybe before
// the unlock.
BOOST_AUTO_TEST_CASE(release_that_shows_a_stop_past_the_lease_tells_the_loss) {
  Contender c;
  c.hold();
  c.send(Call::release);
  c.pass(1s);
  c.hear_date(kDate + 10min);
  BOOST_TEST(c.refused(record("theirs", kDate + 11min)) == "taken");
}

// A lost look does not show whether a release was applied.
BOOST_AUTO_TEST_CASE(look_lost_during_a_release_is_no_lost_release) {
  Contender c;
  c.hold();
  const Row own = c.own_row();
  c.send(Call::release);
  c.refused_without_a_row();
  c.send(Call::release);
  BOOST_REQUIRE(word(c.sent.verb) == "look");
  BOOST_TEST(c.lost() == "again");
  c.send(Call::release);
  BOOST_REQUIRE(word(c.sent.verb) == "look");
  BOOST_TEST(c.found(own) == "again");
  c.send(Call::release);
  BOOST_REQUIRE(word(c.sent.verb) == "release");
  BOOST_TEST(c.refused(kNone) == "deleted");
}

BOOST_AUTO_TEST_CASE(release_that_finds_its_own_record_still_is_sent_again) {
  Contender c;
  c.hold();
  const Row own = c.own_row();
  c.send(Call::release);
  c.refused_without_a_row();
  c.send(Call::release);
  BOOST_TEST(c.found(own) == "again");
  c.send(Call::release);
  BOOST_TEST(word(c.sent.verb) == "release");
  BOOST_TEST(c.done() == "released");
}

BOOST_AUTO_TEST_CASE(release_of_what_was_never_granted_is_no_loss) {
  for (const bool row_told : {true, false}) {
    Contender c;
    c.hear_date(kDate);
    c.send(Call::take);
    c.lost();  // It may have been applied, or be yet.
    c.send(Call::release);
    BOOST_TEST(word(c.sent.verb) == "release");
    BOOST_TEST((row_told ? c.refused(record("theirs", kDate + 60s))
                         : c.refused_without_a_row()) == "released");
  }
}

// --- Rows that are kept ------------------------------------------------------

BOOST_AUTO_TEST_CASE(take_answered_with_a_row_that_cannot_be_read_is_no_grant) {
  Contender c(kTtl, kept_use());
  c.hear_date(kDate);
  c.send(Call::take);
  Row row = of_kind(Row::Kind::unknown);
  row.has_token = true;
  row.problem = "token is not a whole number";
  BOOST_TEST(c.hear(Reply::Outcome::done, &row) == "bad_record");
  BOOST_TEST(c.lease.row_is_ours());  // So it will be released.
  BOOST_TEST(c.lease.row().problem == "token is not a whole number");
  BOOST_TEST(count(c.lease.claim_end()) == count(BootTime::min()));
}

BOOST_AUTO_TEST_CASE(row_of_others_attributes_is_free_only_to_be_kept) {
  Contender keeping(kTtl, kept_use());
  keeping.hear_date(kDate);
  keeping.send(Call::take);
  BOOST_TEST(keeping.refused(of_kind(Row::Kind::bare)) == "again");
  keeping.send(Call::take);
  BOOST_TEST(word(keeping.sent.verb) == "take");
  Contender deleting;
  deleting.hear_date(kDate);
  deleting.send(Call::take);
  BOOST_TEST(deleting.refused(of_kind(Row::Kind::bare)) == "bad_record");
}

// The row was seen without a token, and then gets one.
BOOST_AUTO_TEST_CASE(row_that_comes_to_be_kept_is_forgotten_by_who_deletes) {
  Contender c;
  c.hear_date(kDate);
  c.send(Call::take);
  const Row row = record("theirs", kDate + 90min);
  c.refused(row);
  BOOST_REQUIRE((c.observation.seen() != nullptr));
  c.pass(30s);
  c.send(Call::take);
  BOOST_TEST(c.found(with_token(row, 1)) == "kept_row");
  BOOST_TEST((c.observation.seen() == nullptr));
}

BOOST_AUTO_TEST_CASE(no_row_where_there_must_be_one_is_told) {
  lock::RowPolicy use = kept_use();
  use.must_exist = true;
  Contender c(kTtl, use);
  c.hear_date(kDate);
  c.send(Call::take);
  BOOST_TEST(c.refused(kNone) == "no_row");
  // A refusal without a row is not enough: a look comes first.
  Contender untold(kTtl, use);
  untold.hear_date(kDate);
  untold.send(Call::take);
  BOOST_TEST(untold.refused_without_a_row() == "again");
  untold.send(Call::take);
  BOOST_TEST(word(untold.sent.verb) == "look");
  BOOST_TEST(untold.sent.consistent);
  BOOST_TEST(untold.found(kNone) == "no_row");
  // Any row is enough.
  for (const Row& row :
       {of_kind(Row::Kind::bare), with_token(record("theirs", 0s), 1)}) {
    Contender other(kTtl, use);
    other.hear_date(kDate);
    other.send(Call::take);
    BOOST_TEST(other.refused(row) == "again");
  }
}

// The attempt reports a table that does not exist or has another key.
BOOST_AUTO_TEST_CASE(look_at_no_table_finds_no_free_lock) {
  lock::RowPolicy use = kept_use();
  use.must_exist = true;
  Contender c(kTtl, use);
  c.send(Call::take);
  c.hear_date(kDate);
  BOOST_TEST(c.refused(kNone) == "again");
  BOOST_TEST(!c.lease.row_is_ours());
}

// --- A token is settled before the grant -------------------------------------

BOOST_AUTO_TEST_CASE(take_before_the_last_is_renewed_before_it_is_granted) {
  Contender c(kTtl, kept_use());
  c.hear_date(kDate);
  const ServiceTime first = c.lose(Call::take, 1).front();
  const ServiceTime second = c.send(Call::take).stamp;
  BOOST_TEST(c.refused(with_token(record("mine", first), 7)) == "again");
  BOOST_TEST(c.lease.row_is_ours());
  BOOST_TEST(count(c.lease.claim_end()) == count(BootTime::min()));

  c.pass(1s);
  c.send(Call::take);
  const BootTime sent = c.now;
  BOOST_TEST(word(c.sent.verb) == "renew");
  BOOST_TEST(c.sent.wants_row);
  check_equal(c.sent.own, {first, second});
  BOOST_TEST(c.done_with(8) == "ours");  // The second take raised the token.
  BOOST_TEST(c.lease.token() == 8);
  check_claim(c.lease, sent + kHeld);
  // The token is settled, so later renewals do not ask for the row.
  c.send(Call::renew);
  BOOST_TEST(!c.sent.wants_row);
  BOOST_TEST(c.done() == "ours");
  BOOST_TEST(c.lease.token() == 8);
}

BOOST_AUTO_TEST_CASE(own_take_that_was_barred_ends_the_lease) {
  Contender c(kTtl, kept_use());
  c.hear_date(kDate);
  c.lose(Call::take, 1);
  c.send(Call::take);
  BOOST_TEST(!c.lease.needs_new_uuid());
  BOOST_TEST(c.refused(with_token(record("mine", 0s), 7)) == "busy");
  BOOST_TEST(c.lease.needs_new_uuid());

  // The same if its stamp is not remembered any more.
  Contender late(kTtl, kept_use());
  late.hear_date(kDate);
  late.lose(Call::take, 1);
  late.send(Call::take);
  BOOST_TEST(late.refused(with_token(record("mine", ServiceTime(1s)), 7)) ==
             "busy");
  BOOST_TEST(late.lease.needs_new_uuid());

  Contender other(kTtl, kept_use());
  other.hear_date(kDate);
  other.send(Call::take);
  BOOST_TEST(other.refused(with_token(record("theirs", 0s), 7)) == "again");
  BOOST_TEST(!other.lease.needs_new_uuid());
}

// --- What goes with renewals and the release ---------------------------------

BOOST_AUTO_TEST_CASE(changes_go_with_renewals_and_the_release_once_granted) {
  Contender c(kTtl, kept_use());
  const auto changes = std::make_shared<const lock::Changes>();
  c.lease.carry(changes);
  c.hear_date(kDate);
  const ServiceTime first = c.lose(Call::take, 1).front();
  c.send(Call::take);
  c.refused(with_token(record("mine", first), 7));
  c.send(Call::take);
  BOOST_REQUIRE(word(c.sent.verb) == "renew");
  BOOST_TEST(!c.sent.changes);  // The lock is nobody's yet.
  BOOST_REQUIRE(c.done_with(7) == "ours");
  c.send(Call::renew);
  BOOST_TEST((c.sent.changes == changes));
  BOOST_TEST(c.lost() == "again");
  c.send(Call::renew);
  BOOST_TEST((c.sent.changes == changes));
  BOOST_TEST(c.done() == "ours");
  c.lease.carry(nullptr);
  c.send(Call::renew);
  BOOST_TEST(!c.sent.changes);
  c.done();
  c.lease.carry(changes);
  c.send(Call::release);
  BOOST_TEST((c.sent.changes == changes));
  BOOST_TEST(c.sent.token == 7);
}

// An old take was applied after others have had the lock.
BOOST_AUTO_TEST_CASE(own_row_with_another_token_is_not_ours) {
  Contender c(kTtl, kept_use());
  c.hold_kept(7);
  Row old = c.own_row();
  c.send(Call::renew);
  BOOST_TEST(c.refused(with_token(old, 9)) == "taken");
  Contender releasing(kTtl, kept_use());
  releasing.lease.carry(std::make_shared<const lock::Changes>());
  releasing.hold_kept(7);
  releasing.send(Call::release);
  BOOST_TEST(releasing.refused(with_token(old, 9)) == "taken");
}

BOOST_AUTO_TEST_CASE(release_that_finds_its_kept_row_free_is_released) {
  Contender c(kTtl, kept_use());
  c.hold_kept(7);
  Row own = with_token(c.own_row(), 7);
  c.send(Call::release);
  BOOST_TEST(c.refused_without_a_row() == "again");
  c.send(Call::release);
  BOOST_REQUIRE(word(c.sent.verb) == "look");
  own.expires = ServiceTime(0);
  BOOST_TEST(c.found(own) == "released");
}

BOOST_AUTO_TEST_SUITE_END()

// --- Servers whose clocks differ ---------------------------------------------

BOOST_AUTO_TEST_SUITE(differing_dates)

namespace {

// Locks of one table that are renewed at half of their leases.  Some answers'
// Dates are wrong.
class Fleet {
 public:
  Fleet(std::chrono::seconds ttl, double share, nanoseconds wrong_by)
      : ttl_(ttl), share_(share), wrong_by_(wrong_by) {
    for (int i = 0; i < 60; ++i) {
      locks_.push_back({Lease("lock " + std::to_string(i), ttl_), {}, {}});
      exchange(locks_.back(), Call::take);
      // The first renewal comes early, at random.
      locks_.back().due =
          now_ + ttl_ / 4 + milliseconds(random_() % (ttl_.count() / 4));
    }
  }

  // Whether all locks are held all that time.
  bool stays_held(nanoseconds time) {
    const BootTime end = now_ + time;
    while (now_ < end) {
      Lock& next = *std::min_element(
          locks_.begin(), locks_.end(),
          [](const Lock& a, const Lock& b) { return a.due < b.due; });
      now_ = std::max(now_, next.due);
      for (const Lock& lock : locks_) {
        if (lock.lease.claim_end() <= now_) return false;
      }
      exchange(next, Call::renew);
      next.due = now_ + ttl_ / 2;
    }
    return true;
  }

 private:
  struct Lock {
    Lease lease;
    BootTime due;
    ServiceTime stamp;
  };

  void exchange(Lock& lock, Call call) {
    Verdict verdict = Verdict::again;
    while (verdict == Verdict::again) verdict = answer(lock, call);
  }

  Verdict answer(Lock& lock, Call call) {
    const BootTime sent = now_;
    const Request request = lock.lease.next(call, sent, clock_, nobody_);
    now_ += 5ms;
    clock_.receive(sent, now_, date());
    for (Lock& other : locks_) other.lease.apply(clock_);
    Reply reply;
    reply.outcome = Reply::Outcome::done;
    reply.received = now_;
    if (request.verb == Request::Verb::look) {
      const bool is_there = lock.stamp != ServiceTime();
      reply.row = std::make_unique<const Row>(
          is_there ? record(lock.lease.uuid(), lock.stamp) : kNone);
    } else {
      lock.stamp = request.stamp;
    }
    return lock.lease.receive(std::move(reply), clock_, nobody_);
  }

  ServiceTime date() {
    const bool is_wrong = chance_(random_) < share_;
    return std::chrono::floor<std::chrono::seconds>(
        kDate + (now_ - kStart) + (is_wrong ? wrong_by_ : nanoseconds(0)));
  }

  const milliseconds ttl_;
  const double share_;
  const nanoseconds wrong_by_;
  std::mt19937 random_{1};
  std::uniform_real_distribution<double> chance_;
  BootTime now_ = kStart;
  ServiceClock clock_;
  Observation nobody_;
  std::vector<Lock> locks_;
};

bool is_enough(int ttl, double share, double wrong_by_s) {
  const auto wrong_by =
      nanoseconds(static_cast<std::int64_t>(wrong_by_s * 1e9));
  return Fleet(std::chrono::seconds(ttl), share, wrong_by).stays_held(10min) &&
         Fleet(std::chrono::seconds(ttl), share, -wrong_by).stays_held(10min);
}

}  // namespace

// The rows of the table in ddbmutex/README.md.  Half of a `ttl` is not enough.
BOOST_AUTO_TEST_CASE(leases_of_the_stated_length_do_not_end_early) {
  const std::string page = tests::read_file("ddbmutex/README.md");
  const auto differences =
      all_matches(page, R"(^\| ([\d.]+) s \| \d+ s \| \d+ s \|$)");
  const auto few = all_matches(page, R"(^\| [\d.]+ s \| (\d+) s \| \d+ s \|$)");
  const auto half =
      all_matches(page, R"(^\| [\d.]+ s \| \d+ s \| (\d+) s \|$)");
  BOOST_TEST_REQUIRE(differences.size() == 5u);
  for (std::size_t i = 0; i < differences.size(); ++i) {
    const double wrong_by_s = std::stod(differences[i]);
    BOOST_TEST(is_enough(std::stoi(few[i]), 0.01, wrong_by_s), wrong_by_s);
    BOOST_TEST(is_enough(std::stoi(half[i]), 0.5, wrong_by_s), wrong_by_s);
    BOOST_TEST(!is_enough(std::stoi(half[i]) / 2, 0.5, wrong_by_s), wrong_by_s);
  }
}

BOOST_AUTO_TEST_SUITE_END()
