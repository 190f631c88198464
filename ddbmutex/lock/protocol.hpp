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
// that was stopped without noticing it (see held_for()).  A lease that ended
// long ago is taken at once, by comparing DynamoDB's clock with `expires`,
// which was stamped by the same clock: waiters use the earliest time that it
// may show, holders the latest.  No stamp is made of a host's wall clock, so a
// take waits for a look if DynamoDB has not answered yet.
//
// A kept row counts its acquisitions.  A take that is applied late, after the
// lock was released, uses up a number.  If it were applied while the lock is
// held, it would change the holder's number.  So if the take that was applied
// is not the last one that was sent, a renewal comes before the grant: it
// replaces the version that a late take could match.
//
// Thread safety: as an int.
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

// A holder gives up at most this part of its lease for such a pause.
constexpr int kPausePart = 8;

// A lease as its holder counts it: shorter by 1 %, for clocks with a wrong
// rate, or by kUnnoticedPause (but at most an eighth of the lease), whichever
// is more. If both hosts' clocks are right to 0.5 %, such a pause does no harm
// to leases of 10 s and more.  A shorter one may have two holders for
// kUnnoticedPause - lease / kPausePart.
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

// Whether DynamoDB's time is known well enough to stamp a lease with it.  It is
// not before the first answer, nor after one or two minutes without an answer:
// a look comes first then.  For a stamp that is too late keeps others out after
// the holder has died.
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
  // By the boot clock.  After the end of the claim, a renewal does not count
  // and a refused release is not a loss: the process may have been stopped.
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

  // Results of calls of a mutex that no answer leads to.
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
  Lease(std::string uuid, std::chrono::milliseconds ttl, RowPolicy use = {});

  // The request to send next for `call`.  It counts as in flight from `now` on,
  // so this must be called just before sending.  Instead of a take or a renewal
  // it is a look unless knows_the_time(), or this lease has looked in the last
  // 30 s.  If memory runs out, nothing is in flight.
  // REQUIRES: nothing is in flight; renew: the lock is ours.
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

  // Whether the lease may be handed over to another thread of this process, and
  // counts it if so.  At most `limit` times, only within half of the ttl after
  // the take (renewals do not prolong that), and only while the claim lasts for
  // more than half of the ttl.  Never if a take must read the row or gets a
  // token.
  bool hand_over(BootTime now, int limit);

  const std::string& uuid() const { return uuid_; }
  // The claim is [grant, claim_end()).  After it the lock is lost for good.
  // BootTime::min() before the grant, and once a release has begun.
  BootTime claim_end() const {
    return call_ == Call::release ? BootTime::min() : claim_end_;
  }
  // When the request was sent from which the claim is counted.
  BootTime granted_at() const { return granted_.at; }
  // When the lease has that age, at which it is renewed.  REQUIRES: granted.
  BootTime renew_at(std::chrono::nanoseconds age) const;
  // The fencing token; 0 if the row is not kept.  REQUIRES: granted.
  std::int64_t token() const { return token_; }
  // The row was ours when it was last seen, even if nothing was granted.
  bool stands() const { return stands_; }
  // take: the row is free and has our uuid, but in a version that we do not
  // remember.  A take of ours was freed by force, or was applied a thousand
  // tries late.  The caller needs a new lease: if a take with this uuid got the
  // row, a late copy of it could get the row again.
  bool is_barred() const { return barred_; }
  // After busy, bad_record, kept_row or no_row: the row that was seen.  After
  // `ours`: the row that was taken, if an answer included it.
  // REQUIRES: one of these, and take_row() was not called since.
  const Row& row() const { return *row_; }
  std::unique_ptr<const Row> take_row() { return std::move(row_); }

 private:
  // One stamp that was sent, and when.
  struct Sent {
    ServiceTime stamp;
    BootTime at;
    // The earliest that DynamoDB's clock may have shown at `at`, and how many
    // contradictions it had then.
    ServiceTime earliest;
    int contradictions;
  };

  void ask(Request& request, BootTime now, const ServiceClock& clock,
           const Observation& observation);
  void list(std::size_t from, std::vector<ServiceTime>& own) const;
  void take(Request& request, BootTime now, const ServiceClock& clock,
            const Observation& observation);
  void renew(Request& request, BootTime now, const ServiceClock& clock);
  void release(Request& request) const;
  void change(Request& request) const;
  ServiceTime stamp(BootTime now, const ServiceClock& clock);
  ServiceTime unused(ServiceTime at_least) const;
  bool may_take(const ServiceClock& clock, BootTime now) const;
  bool may_stamp(const ServiceClock& clock, BootTime now) const;

  Verdict receive_write(Reply& reply, const ServiceClock& clock);
  Verdict receive_row(Reply& reply, const ServiceClock& clock,
                      Observation& observation);
  Verdict receive_release(const Reply& reply);
  Verdict won(std::size_t index, BootTime received, const ServiceClock& clock);
  Verdict granted(BootTime received, const ServiceClock& clock);
  Verdict renewed(BootTime received, const ServiceClock& clock);
  Verdict beaten(BootTime received, const ServiceClock& clock,
                 Observation& observation);
  Verdict at_once();

  std::optional<std::size_t> find_own(const Row& row) const;
  void drop_before(std::size_t index);
  ServiceTime lowest_stamp() const;
  BootTime claim_of(const Sent& sent, const ServiceClock& clock) const;

  // Constant except for moves.
  std::string uuid_;
  std::chrono::milliseconds ttl_;
  RowPolicy use_;
  ChangesPtr changes_;

  // Every stamp that the row may have, now or later.  Once the lock is ours,
  // the row is known to have had the first.
  std::vector<Sent> sent_;
  // A renewal lists the first and those from here on.
  std::size_t listed_from_ = 0;
  std::int64_t attempts_ = 0;  // Stamped so far; the low digits of a stamp.
  ServiceTime highest_dropped_{};

  bool ours_ = false;       // Granted, whether or not it is over by now.
  bool stands_ = false;     // take: the row bore a version of ours.
  bool unsettled_ = false;  // Ours on the wire, but to be renewed first.
  bool barred_ = false;
  bool refused_ = false;       // take: another had the row when last seen.
  int tries_at_once_ = 0;      // take: in a row, without a wait between.
  bool look_first_ = false;    // As asked, or the last refusal had no row.
  bool told_ = false;          // take: another's row, or none, was seen.
  bool release_lost_ = false;  // A release may have been applied already.

  // The request in flight, or the last one:
  Call call_ = Call::take;
  Request::Verb verb_ = Request::Verb::look;
  bool consistent_ = false;  // It is a look with a consistent read.
  bool tells_ = false;       // Its answer includes the row.

  BootTime looked_at_ = BootTime::min();  // When the last look was answered.
  Sent granted_{};  // The attempt from which the claim is counted.
  BootTime claim_end_ = BootTime::min();  // Unchanged by a release.
  BootTime taken_at_{};                   // When the take was sent.
  int handed_over_ = 0;
  std::int64_t token_ = 0;
  std::unique_ptr<const Row> row_;
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_PROTOCOL_HPP
