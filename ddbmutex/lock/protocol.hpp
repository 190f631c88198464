// The lock's protocol as pure decisions: what to send, what an answer means,
// until when the lock is ours.  No I/O, no clock, no thread: each function is
// told what is known and what time it is.
//
// A Lease is one acquisition on the wire, from its first PutItem to its
// DeleteItem.  Whoever drives it sends what next() says, one request at a time,
// hands every outcome to heard(), and goes on as the verdict says:
//
//   Lease lease(fresh_uuid(), ttl);
//   Verdict verdict;
//   do {
//     lock::Request request = lease.next(Call::take, now(), clock,
//                                        observation);
//     verdict = lease.heard(send(request), clock, observation);
//   } while (verdict == Verdict::again);
//
// How two claims never overlap.  A holder counts its lease from before the
// request that won it was sent, and shorter by a margin; a waiter counts from
// after it received the record, and 1 % long, and takes exactly the version it
// saw.  The clocks of two hosts are never compared, only their rates, which may
// be off by 1 % each.  The holder's margin covers that, or a machine that stood
// still unnoticed (see held_for()).  The quick way past a long dead lease
// compares DynamoDB's clock with `expires`, which was stamped by the same
// clock: waiters use the earliest and holders the latest that it may show.  The
// calendar of no host stamps anything: who has not heard from DynamoDB yet
// looks before he takes.
//
// A kept row counts its acquisitions.  A take that is applied late, after the
// lock was released, costs a number.  One that could yet be applied while the
// lock is held would change the number under its holder, so where a take before
// the last is found to have been applied, a renewal goes before the grant: it
// consumes the version that such a take could match.
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

// A machine that stands still for no longer than this, its boot clock too, may
// not learn of it: a Date has whole seconds, and front ends agree to
// kAgreement.
constexpr std::chrono::nanoseconds kUnnoticedPause =
    std::chrono::seconds(1) + dynamodb::kAgreement;

// Of a short lease a holder gives up this part and no more for such a pause.
constexpr int kPausePart = 8;

// A lease as its holder counts it: shorter by 1 %, for clocks that run wrong,
// or by kUnnoticedPause, whichever is more; for the pause by an eighth at the
// most. Such a pause opens no window from 10 s on, and below that one of
// kUnnoticedPause - lease / kPausePart, as long as the clocks of both hosts
// run true to half a percent.
std::chrono::nanoseconds held_for(std::chrono::nanoseconds lease);
// ... and as a waiter does: longer by 1 %.
std::chrono::nanoseconds waited_for(std::chrono::nanoseconds lease);

// DynamoDB's front ends may differ by this much: a waiter takes a lease for
// over by service time only when it ended so long before.
constexpr std::chrono::seconds kFrontEndSkew{2};

// Where DynamoDB's answers have no Date, or rows do not say when a lease ends,
// stamps count up from here: a time that no clock reaches, so that nobody takes
// a lease by service time.
constexpr ServiceTime kBeyondAllClocks{4'000'000'000'000'000'000};

// Whether DynamoDB's time is known well enough to stamp a lease with it.  A
// stamp that is late keeps others out after the holder has died, so this is no
// longer so after one or two minutes without an answer: then a look comes
// first, as it does before the first stamp of all.
bool knows_the_time(const ServiceClock& clock, BootTime now);

// The record that a waiter saw, and since when.  Kept from one call to the
// next, so that whoever polls with try_lock() comes to see a lease end.
class Observation {
 public:
  // The row was received at `received`, just now or earlier.
  void see(const Row& row, BootTime received);
  void forget() { seen_.known = false; }

  // Seen unchanged for its lease.  Never for a record that names no lease.
  bool stale(BootTime now) const { return now >= stale_at(); }
  // When that will be so; BootTime::max() if never.
  BootTime stale_at() const;
  // What tells one version from another, and how long it lasts.
  struct Seen {
    bool known = false;  // One was seen.
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

// What became of one request, as far as the protocol cares.
struct Reply {
  enum class Outcome {
    done,     // Applied; a look's row is in `row`.
    refused,  // Its condition did not hold; the row, if told, is in `row`.
    unknown,  // May have been applied, may yet be.
    unsent,   // Certainly neither.
  };
  Outcome outcome = Outcome::unsent;
  std::unique_ptr<const Row> row;  // Null: not told.
  // When heard() is told of it, on the boot clock.  A renewal counts for
  // nothing, and a refused release is no loss, if the process was stopped on
  // the way here until the claim ended.
  BootTime received{};
};

enum class Call { take, renew, release };

enum class Verdict {
  ours,        // take, renew: until claim_end().
  again,       // Undecided: send next().  At once, unless sending failed.
  busy,        // take: another's, or going from hand to hand.  Worth a new try
               // when it is stale, or sooner.
  bad_record,  // take: the row is no lock record; row().problem says why.
  kept_row,    // take: the row bears a fencing token, and is not to be kept.
  no_row,      // take: there is no item, and there must be.
  released,    // release: the lock is free as far as we are concerned.
  taken,       // renew, release: lost, the row is another's.
  deleted,     // renew, release: lost, the row is gone.
  expired,     // renew: lost, the lease ended first.
  no_date,     // take: answers have none, by which others judge our lease.
};

class Lease {
 public:
  // REQUIRES: `uuid` was never used before, ttl > 0.
  Lease(std::string uuid, std::chrono::milliseconds ttl, RowPolicy use = {});

  // The request to send next for `call`; remembers it as under way, counted
  // from `now`, so call it just before sending.  A take or a renewal becomes a
  // look unless knows_the_time(), or this lease has looked in the last 30 s. If
  // memory runs out, nothing is under way.
  // REQUIRES: nothing under way; renew: ours and not yet over.
  Request next(Call call, BootTime now, const ServiceClock& clock,
               const Observation& observation);

  // Makes the next request of a take a look, until one is answered.
  void look_first() { look_first_ = true; }

  // What the request under way came to.  `clock` has heard the answer already.
  // If there is no memory to remember the row that a waiter saw, it counts as
  // not seen.
  Verdict heard(Reply&& reply, const ServiceClock& clock,
                Observation& observation);

  // What is known of DynamoDB's clock has changed: a claim may end sooner.
  void apply(const ServiceClock& clock);

  // Renewals and the release have these with them from now on; null: none.
  void carry(ChangesPtr changes) { changes_ = std::move(changes); }
  bool carries() const { return changes_ != nullptr; }

  // Whether another thread of this process may have the lease as it is;
  // counted. So often at the most, within half of the ttl from when it was
  // taken, however long it was renewed since, and while the claim lasts for
  // longer than that. Never where whoever takes the row is told what stands in
  // it, or gets a token.
  bool hand_over(BootTime now, int limit);

  const std::string& uuid() const { return uuid_; }
  // The claim is [grant, claim_end()): past it the lock is lost, whatever comes
  // after.  BootTime::min() while nothing was granted, and once a release has
  // begun.
  BootTime claim_end() const {
    return call_ == Call::release ? BootTime::min() : claim_end_;
  }
  // Sent at that time was the request that the claim counts from.
  BootTime granted_at() const { return granted_.at; }
  // When to renew, if a lease is renewed at that age.  REQUIRES: granted.
  BootTime renew_at(std::chrono::nanoseconds age) const;
  // The fencing token; 0 if the row is not kept.  REQUIRES: granted.
  std::int64_t token() const { return token_; }
  // The row was ours when last told, though nothing may have been granted.
  bool stands() const { return stands_; }
  // take: the free row bears our uuid in a version that is not remembered.  A
  // take of ours was freed by force, or was applied a thousand tries late.  A
  // late copy of a take must not get a row that its lease has had, so no take
  // with this uuid gets it: the caller needs a new lease.
  bool is_barred() const { return barred_; }
  // The row, where the verdict is busy, bad_record, kept_row or no_row; where a
  // take has come to `ours`, the row as it was taken, if it was told.
  // REQUIRES: one of these, and not taken since.
  const Row& row() const { return *row_; }
  std::unique_ptr<const Row> take_row() { return std::move(row_); }

 private:
  // One stamp that was sent, and when.
  struct Sent {
    ServiceTime stamp;
    BootTime at;
    // DynamoDB's clock as of `at`: no less than this, and contradicted so
    // often.
    ServiceTime earliest;
    int contradictions;
  };

  inline void ask(Request& request, BootTime now, const ServiceClock& clock,
                  const Observation& observation);
  void list(std::size_t from, std::vector<ServiceTime>& own) const;
  void take(Request& request, BootTime now, const ServiceClock& clock,
            const Observation& observation);
  inline void renew(Request& request, BootTime now, const ServiceClock& clock);
  inline void release(Request& request) const;
  void change(Request& request) const;
  ServiceTime stamp(BootTime now, const ServiceClock& clock);
  inline ServiceTime unused(ServiceTime at_least) const;
  inline bool may_take(const ServiceClock& clock, BootTime now) const;
  bool may_stamp(const ServiceClock& clock, BootTime now) const;

  inline Verdict heard_write(Reply& reply, const ServiceClock& clock);
  Verdict heard_row(Reply& reply, const ServiceClock& clock,
                    Observation& observation);
  inline Verdict heard_release(const Reply& reply);
  Verdict won(std::size_t index, BootTime received, const ServiceClock& clock);
  inline Verdict granted(BootTime received, const ServiceClock& clock);
  inline Verdict renewed(BootTime received, const ServiceClock& clock);
  inline Verdict beaten(BootTime received, const ServiceClock& clock,
                        Observation& observation);
  inline Verdict at_once();

  inline std::optional<std::size_t> find_own(const Row& row) const;
  void drop_before(std::size_t index);
  inline ServiceTime lowest_stamp() const;
  BootTime claim_of(const Sent& sent, const ServiceClock& clock) const;

  // Const but for moves.
  std::string uuid_;
  std::chrono::milliseconds ttl_;
  RowPolicy use_;
  ChangesPtr changes_;

  // Every stamp that the row may bear or come to bear; once the lock is ours,
  // the first is one that the row is known to have borne.
  std::vector<Sent> sent_;
  // A renewal lists the first and those from here on.
  std::size_t listed_from_ = 0;
  std::int64_t attempts_ = 0;  // Stamped so far; the low digits of a stamp.
  ServiceTime highest_dropped_{};

  bool ours_ = false;       // Granted, whether or not it is over by now.
  bool stands_ = false;     // take: the row bore a version of ours.
  bool unsettled_ = false;  // Ours on the wire, but to be renewed first.
  bool barred_ = false;
  bool refused_ = false;       // take: the row was another's when last told.
  int tries_at_once_ = 0;      // take: in a row, without a wait between.
  bool look_first_ = false;    // As asked, or the last refusal told no row.
  bool told_ = false;          // take: what stands there.
  bool release_lost_ = false;  // A release may have been applied already.

  Call call_ = Call::take;  // What is under way is for.
  Request::Verb verb_ = Request::Verb::look;
  bool consistent_ = false;  // It is a look, and must not be told of the past.
  bool tells_ = false;       // Its answer tells the row.
  BootTime looked_at_ = BootTime::min();  // The last look was answered.

  Sent granted_{};  // The attempt that the claim counts from.
  BootTime claim_end_ = BootTime::min();  // Also of what is being released.
  BootTime taken_at_{};                   // What was applied was sent.
  int handed_over_ = 0;
  std::int64_t token_ = 0;
  std::unique_ptr<const Row> row_;  // Of no use to a lease that is held.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_PROTOCOL_HPP
