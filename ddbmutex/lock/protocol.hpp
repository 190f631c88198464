// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The decisions of the lock's protocol: what to send, what an answer means,
// until when the lock is ours.  Pure functions without I/O, clocks or threads:
// what is known, and the time, are arguments.
//
// A Lease is one acquisition, from its first PutItem to its DeleteItem.  Its
// user sends the requests that next() returns, one at a time, passes every
// outcome to receive(), and does what the verdict says:
//
//   Lease lease(fresh_uuid(), ttl);
//   Verdict verdict;
//   do {
//     lock::Request request = lease.next(Call::take, now(), clock,
//                                        observation);
//     verdict = lease.receive(send(request), clock, observation);
//   } while (verdict == Verdict::again);
//
// Why two claims never overlap.  A holder counts its lease from before it sent
// the request that won it, and shorter by a margin.  A waiter counts from after
// it received the record, and 1 % longer, and takes exactly the version that it
// saw.  The clocks of two hosts are never compared.  Only their rates matter,
// and each may be off by 1 %.  The holder's margin covers that, or a machine
// that was stopped without noticing it (see held_for()).
//
// A lease that ended long ago is taken at once, by comparing DynamoDB's clock
// with the row's `expires`, its stamp.  Holders have made that stamp by the
// same clock, from the latest time that it may show.  Waiters compare it with
// the earliest.  No stamp is made by a host's wall clock, so a look comes
// before the first take if DynamoDB has not answered yet.
//
// A kept row counts its acquisitions.  A take that is applied late, after the
// lock was released, uses up a number.  If it were applied while the lock is
// held, it would change the holder's number.  So if the take that was applied
// is not the last one that was sent, a renewal comes before the grant: it
// replaces the version that a late take could match.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_PROTOCOL_HPP
#define DDBMUTEX_PROTOCOL_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../dynamodb/clock.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::ServiceClock;

// A machine that is stopped for no longer than this, together with its boot
// clock, may not notice it: a Date has whole seconds, and front ends may differ
// by kAgreement.
constexpr std::chrono::nanoseconds kUnnoticedPause =
    std::chrono::seconds(1) + dynamodb::kAgreement;

// A holder gives up at most 1 / kPausePart of its lease for such a pause.
constexpr int kPausePart = 8;

// A lease as its holder counts it: shorter by 1 %, for clocks with a wrong
// rate, or by kUnnoticedPause (but at most an eighth of the lease), whichever
// is more. If both hosts' clocks are right to 0.5 %, such a pause does no harm
// to leases of 10 s and more.  A shorter lease may have two holders at once,
// for kUnnoticedPause - lease / kPausePart.
std::chrono::nanoseconds held_for(std::chrono::nanoseconds lease);
// A lease as a waiter counts it: longer by 1 %.
std::chrono::nanoseconds waited_for(std::chrono::nanoseconds lease);

// How far DynamoDB's front ends may differ.  For a waiter, a lease is over by
// service time only when it ended at least this long ago.
constexpr std::chrono::seconds kFrontEndSkew{2};

// If DynamoDB's answers have no Date, or rows do not say when a lease ends,
// stamps count up from here.  No clock reaches this time, so nobody takes such
// a lease by service time.
constexpr ServiceTime kBeyondAllClocks{4'000'000'000'000'000'000};

// Whether a lease that ends at `expires` is over for a host that asks for the
// lock now and has not seen its record before.  All that such a host knows of
// DynamoDB's time is a Date in whole seconds.  `margin`: RowPolicy::margin.
bool is_over_for_newcomers(ServiceTime expires, std::chrono::nanoseconds margin,
                           const ServiceClock& clock, BootTime now);

// Whether DynamoDB's time is known well enough to stamp a lease with it.  It is
// not before the first answer, nor after one or two minutes without an answer.
// Then a look comes first, because a stamp that is too late keeps others out
// after the holder has died.
bool knows_the_time(const ServiceClock& clock, BootTime now);

// The record that a waiter saw, and since when.  It is kept from one call to
// the next, so that a caller who polls with try_lock() sees a lease end, too.
class Observation {
 public:
  // The row was received at `received`, just now or earlier.
  void see(const Row& row, BootTime received);
  void forget() { seen_.known = false; }

  // Whether the record was seen unchanged for its lease.  Always false for a
  // record without a lease.
  bool stale(BootTime now) const { return now >= stale_at(); }
  // When stale() becomes true; BootTime::max() if never.
  BootTime stale_at() const;
  // What distinguishes one version from another, and how long it lasts.
  struct Seen {
    bool known = false;  // A record was seen.
    LeaseForm form = LeaseForm::unknown;
    std::string uuid;
    ServiceTime expires{};
    std::optional<std::chrono::milliseconds> lease;
  };
  const Seen* seen() const { return seen_.known ? &seen_ : nullptr; }

 private:
  Seen seen_;
  BootTime since_{};
};

// The outcome of one request, as far as it matters to the protocol.
struct Reply {
  enum class Outcome {
    done,     // Applied; a look's row is in `row`.
    refused,  // Its condition did not hold; `row` is what the answer had.
    unknown,  // May have been applied, or may still be applied.
    unsent,   // Certainly not applied.
  };
  Outcome outcome = Outcome::unsent;
  std::unique_ptr<const Row> row;  // Null if the answer does not include it.
  // After the end of the claim, a renewal does not count, and a refused release
  // is not a loss.
  BootTime received{};
};

enum class Call { take, renew, release };

enum class Verdict {
  ours,        // take, renew: until claim_end().
  again,       // Nothing is decided.  Send next(), at once unless sending
               // failed.  A call that sends no more has failed.
  busy,        // take: others hold the lock, or were faster.  Try again when
               // the record is stale, or sooner.
  bad_record,  // take: the row is not a lock record; row().problem says why.
  kept_row,    // take: the row has a fencing token, but we do not keep rows.
  no_row,      // take: there is no item, but there must be one.
  released,    // release: the lock is free as far as we are concerned.
  taken,       // renew, release: lost, another has the row.
  deleted,     // renew, release: lost, the row is gone.
  expired,     // renew: lost, the lease ended first.
  no_date,     // take: answers have no Date, which this layout's stamps need.

  // Results of a mutex's calls that do not come from an answer.
  not_held,  // renew, release: there is no lock.
  deadlock,  // lock: this thread has it.
  // lock: another thread has it, and this thread runs the callbacks.
  deadlock_of_callback,
  cancelled,  // lock
  closed,     // lock, renew: the table is closed.
  no_thread,  // lock: no thread could be started to renew the lease.
};

inline bool is_loss(Verdict verdict) {
  return verdict == Verdict::taken || verdict == Verdict::deleted ||
         verdict == Verdict::expired;
}

class Lease {
 public:
  // REQUIRES: `uuid` was never used before, ttl > 0.
  Lease(std::string uuid, std::chrono::milliseconds ttl, RowPolicy policy = {});

  // The request to send next for `call`.  It counts as in flight from `now` on,
  // so this must be called just before sending.  If DynamoDB's time is not
  // known well enough and this lease has not looked in the last 30 s, it is a
  // look instead of a take or a renewal.  If memory runs out, nothing is in
  // flight. REQUIRES: nothing is in flight; renew: the lock is ours.
  Request next(Call call, BootTime now, const ServiceClock& clock,
               const Observation& observation);

  // Makes the next requests of a take looks, until one is answered.
  void look_first() { look_first_ = true; }

  // Learns the outcome of the request in flight.  `clock` has received its Date
  // already.  If memory runs out, the row that a waiter saw counts as not seen.
  Verdict receive(Reply&& reply, const ServiceClock& clock,
                  Observation& observation);

  // Must be called when more is known of DynamoDB's clock: the claim may end
  // sooner.
  void apply(const ServiceClock& clock);

  // From now on renewals and the release write these changes, too; null: none.
  void carry(ChangesPtr changes) { changes_ = std::move(changes); }
  bool carries() const { return changes_ != nullptr; }

  const std::string& uuid() const { return uuid_; }
  // The claim is [grant, claim_end()).  After it the lock is lost for good.
  // BootTime::min() before the grant, and once a release has begun.
  BootTime claim_end() const {
    return call_ == Call::release ? BootTime::min() : claim_end_;
  }
  // The claim is counted from the sending of the last write that is known to be
  // applied.
  BootTime counted_from() const { return confirmed_.at; }
  // When the lease will have this age, counted in the same way.
  // REQUIRES: granted.
  BootTime time_at_age(std::chrono::nanoseconds age) const;
  // The fencing token; 0 if the row is not kept.  REQUIRES: granted.
  std::int64_t token() const { return token_; }
  // An earlier release got no answer, and may have been applied.
  bool may_be_released() const { return may_be_released_; }
  // After `released`: another host waits, as the released row said.
  bool waited_for() const { return waited_for_; }
  // The row was ours when it was last seen, even if nothing was granted.
  bool row_is_ours() const { return row_is_ours_; }
  // take: the caller needs a new lease.  The row is free and has our uuid, but
  // in a version that we do not remember: it was freed by force, or a take was
  // applied a thousand tries late.  If a take with this uuid got the row now, a
  // late copy of it could get the row again.
  bool needs_new_uuid() const { return needs_new_uuid_; }
  // After busy, bad_record, kept_row or no_row: the row that was seen.  After
  // `ours`: the row that was taken, if an answer included it.
  // REQUIRES: one of these, and take_row() was not called since.
  const Row& row() const { return *row_; }
  std::unique_ptr<const Row> take_row() { return std::move(row_); }

 private:
  // One value of `expires` that was sent, and when.
  struct Sent {
    ServiceTime stamp;
    BootTime at;
    // The earliest that DynamoDB's clock may have shown at `at`, and how many
    // contradictions it had then.
    ServiceTime earliest;
    int contradictions;
  };

  void fill(Request& request, BootTime now, const ServiceClock& clock,
            const Observation& observation);
  std::vector<ServiceTime> own_versions(std::size_t from) const;
  void fill_take(Request& request, BootTime now, const ServiceClock& clock,
                 const Observation& observation);
  void fill_renewal(Request& request, BootTime now, const ServiceClock& clock);
  void add_changes(Request& request) const;
  ServiceTime stamp(BootTime now, const ServiceClock& clock);
  ServiceTime unused_stamp(ServiceTime at_least) const;
  bool may_take(const ServiceClock& clock, BootTime now) const;
  bool may_stamp(const ServiceClock& clock, BootTime now) const;

  Verdict receive_write(Reply& reply, const ServiceClock& clock);
  Verdict receive_row(Reply& reply, const ServiceClock& clock,
                      Observation& observation);
  Verdict receive_release(const Reply& reply);
  Verdict receive_own(std::size_t index, BootTime received,
                      const ServiceClock& clock);
  Verdict grant(BootTime received, const ServiceClock& clock);
  Verdict extend(BootTime received, const ServiceClock& clock);
  Verdict receive_others(BootTime received, const ServiceClock& clock,
                         Observation& observation);

  std::optional<std::size_t> find_own(const Row& row) const;
  void drop_before(std::size_t index);
  ServiceTime lowest_stamp() const;
  BootTime claim_end_of(const Sent& sent, const ServiceClock& clock) const;

  // Constant except for moves.
  std::string uuid_;
  std::chrono::milliseconds ttl_;
  RowPolicy policy_;
  ChangesPtr changes_;

  // Every stamp that the row may have, now or later.  Once the lock is ours,
  // the row is known to have had the first.
  std::vector<Sent> sent_;
  // A renewal lists the first and those from here on.
  std::size_t listed_from_ = 0;
  std::int64_t attempts_ = 0;  // Stamped so far; the low digits of a stamp.
  ServiceTime highest_dropped_{};

  bool granted_ = false;  // Even if the claim is over by now.
  // take: the row has a version of ours.
  bool row_is_ours_ = false;
  bool must_renew_ = false;  // Before it is granted; see above.
  bool needs_new_uuid_ = false;
  // take: another has the row, as far as is known.
  bool row_is_taken_ = false;
  bool has_seen_row_ = false;  // take: that of another, or that there is none.
  int immediate_retries_ = 0;  // take: since the last pause.
  // The next request is a look: the caller wants one, or a row was missing.
  bool look_first_ = false;
  bool may_be_released_ = false;  // By an earlier release without an answer.
  bool waited_for_ = false;

  // The request in flight, or the last one:
  Call call_ = Call::take;
  Request::Verb verb_ = Request::Verb::look;
  bool consistent_ = false;      // It is a look with a consistent read.
  bool answer_has_row_ = false;  // Its answer includes the row.

  BootTime looked_at_ = BootTime::min();  // When the last look was answered.
  Sent confirmed_{};  // The last write that is known to be applied.
  BootTime claim_end_ = BootTime::min();  // Unchanged by a release.
  std::int64_t token_ = 0;
  std::unique_ptr<const Row> row_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_PROTOCOL_HPP
