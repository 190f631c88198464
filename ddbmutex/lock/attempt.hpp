// One run of requests for one lease: to take it, to renew it, or to release it.
//
// An attempt knows what is to be sent next and when, until when, and what an
// answer means; it is the one place where retries are decided.  Whoever has the
// time drives it: a thread its own one by run(), the renewer's sending thread
// many at once by begin() and conclude().  Handing it over is handing over the
// pointer, a request that is under way and all.
//
// The order of things: keys and turn are there, then the request is stamped and
// what follows for the claim is published, then bytes leave.  An answer is
// heard, and what follows published, in one critical section.
//
// Thread safety: one thread at a time.
#ifndef DDBMUTEX_ERRAND_HPP
#define DDBMUTEX_ERRAND_HPP

#include <atomic>
#include <chrono>
#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../../sigv4/http_answer.hpp"
#include "../../sigv4/waiting.hpp"
#include "../dynamodb/answer.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "agenda.hpp"
#include "protocol.hpp"
#include "row.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

struct Closing;
struct HeldLease;
class Renewer;

// An owner of a lease, one of several.  (What an std::shared_ptr is compiled to
// for one type more would be a kilobyte.)
class Handle {
 public:
  explicit Handle(HeldLease* held = nullptr);
  Handle(const Handle& other) : Handle(other.held_) {}
  ~Handle();
  Handle& operator=(Handle other) noexcept {
    swap(other);
    return *this;
  }
  void swap(Handle& other) noexcept { std::swap(held_, other.held_); }

  operator HeldLease*() const { return held_; }
  HeldLease* operator->() const { return held_; }

 private:
  HeldLease* held_;
};

// What a finished call means to the protocol, which must be told at once. Moves
// the item out of the answer.
Reply reply_to(Request::Verb verb, dynamodb::Answer& answer,
               const Layout& layout = kDdblock);

// How a call of a mutex ended.
struct Result {
  enum class Kind {
    done,
    busy,      // lock: another has it, here or elsewhere.
    deadlock,  // lock: this thread has it.
    // lock: another thread has it, and this is the thread of the callbacks.
    deadlock_of_callback,
    cancelled,   // lock
    closed,      // lock: the table is.
    no_thread,   // lock: none could be started to renew the lease.
    bad_record,  // lock: `answer.message` says why the row is no lock record.
    kept_row,    // lock: the row bears a fencing token.
    no_row,      // lock: there is no item, and there must be.
    no_date,     // lock: answers have none, and must have.
    failed,      // `answer` says why.
    not_held,    // release, renew
    lost,        // These, and lock again: it was lost, `loss` says how.
  };

  Kind kind = Kind::done;
  Verdict loss = Verdict::expired;
  dynamodb::Answer answer{};
};

// What there is to tell of a lease.
enum class News { none, signal, loss, danger, question };

// Who is called, by one thread for all holders of a table, one at a time, with
// no mutex held.
struct Listener {
  // Of a loss, which is `why`; of danger; or whether the lease is to be
  // renewed.  If not, it is asked again.
  bool (*tell)(const Listener& self, News news, Verdict why);
};

// One mutex as its attempts and the threads of its table know it: filled in by
// who makes it, and from then on only read.  May outlive the mutex, not the
// client.
struct MutexSettings {
  MutexSettings(dynamodb::Client& its_client, dynamodb::RetryBudget& its_budget)
      : client(its_client), budget(its_budget) {}

  dynamodb::Client& client;
  dynamodb::RetryBudget& budget;
  RowTarget place;
  // For one request; longer, and its outcome is unknown.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds(2);
  std::chrono::milliseconds ttl{};
  // This long before its end, a lease is in danger.
  std::chrono::nanoseconds safe_time{};
  // The age at which a lease is renewed; zero: only by hand.
  std::chrono::nanoseconds renew_after{};
  // A lock that has been held so long is renewed no more but by hand.
  std::chrono::nanoseconds max_hold = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds first_poll{};  // Doubles up to the longest.
  std::chrono::nanoseconds longest_poll{};
  // Passing errors are tried again for so long by calls that wait for ever,
  // counted from the first that one of them has met.
  std::chrono::nanoseconds patience{};
  bool recursive = false;  // The thread that has the lock may lock it again.
  // What the listener is called for.
  bool hears_losses = false, hears_dangers = false, is_asked = false;
  // GUARDED_BY(Renewer::mutex_).  True once the listener is called no more.
  bool settled = false;
  int handover_limit = 0;     // How often a lease goes from thread to thread.
  unsigned prefix_bytes = 0;  // Of the key, before the mutex's name.

  std::string_view name() const {  // For people.
    return std::string_view(place.key).substr(prefix_bytes);
  }

  // Until when the lock is held, on the boot clock; BootTime::min() while it is
  // not.  Written by the Renewer alone.
  std::atomic<BootTime> claim_end{BootTime::min()};
  // GUARDED_BY(Renewer::mutex_).  The mutex owns it until `settled`, and the
  // thread that calls it owns it during the call.
  std::weak_ptr<const Listener> listener;
};

// Told of a loss beside and before the listener: `tell` with the object.
struct Signal {
  void swap(Signal& other) noexcept {
    object.swap(other.object);
    std::swap(tell, other.tell);
  }

  std::shared_ptr<void> object;
  void (*tell)(void*) = nullptr;
};

class Attempt;
using AttemptPtr = std::unique_ptr<Attempt>;
// Attempts go from one list to another without an allocation.
using Attempts = std::list<AttemptPtr>;

// One lease, and what the Renewer knows of it: one acquisition, or several in a
// row if it is handed over.
struct HeldLease {
  explicit HeldLease(std::shared_ptr<MutexSettings> whose);
  ~HeldLease();
  HeldLease(const HeldLease&) = delete;
  HeldLease& operator=(const HeldLease&) = delete;

  bool over() const { return given_back || lost != Verdict::again; }
  bool held_too_long(BootTime when) const {
    return when - since >= holder->max_hold;
  }

  const std::shared_ptr<MutexSettings> holder;
  std::atomic<int> owners{0};
  // Of the attempt that takes it or gives it back.  Between that, and all
  // below: GUARDED_BY(Renewer::mutex_)
  Lease lease;
  BootTime since{};  // It is kept.
  bool given_back = false;
  bool renewing = false;  // A request is under way, or a renewal by hand.
  bool in_danger = false;
  // This one GUARDED_BY(Mutex::mutex_): not to be handed over, for a write of
  // who has it may come late, or has changed what is stored.
  bool tied = false;
  Verdict lost = Verdict::again;  // That: it is not.
  // See the Renewer's agendas.  Of a lease that is over nothing is due.
  Agenda::Entry renewal, danger, end;
  Agenda* renewal_on = nullptr;  // The one that has the renewal, while planned.
  AttemptPtr attempt;            // The renewal, if it is to go on.
  Attempts release;              // What is to release it, while it is kept.
  Signal signal;
  Handle next_lost;  // The next loss to report.
};

// When to send the next request of an attempt.
class Pace {
 public:
  Pace(dynamodb::RetryBudget& budget, Call call);
  ~Pace() { press(false); }
  Pace(const Pace&) = delete;
  Pace& operator=(const Pace&) = delete;

  // How long to wait before the next request, if it can wait and DynamoDB
  // throttles; to be asked until it is zero.
  std::chrono::nanoseconds turn();
  bool awaits_turn() const { return turn_.waits(); }

  // Told of every answer.
  void heard(const dynamodb::Answer& answer);
  // How long to wait after an answer that decided nothing; no value if its
  // fault is final.  `left`: the time until the attempt is of no use.  If the
  // result is `left` or more, no other request is worth sending.
  std::optional<std::chrono::nanoseconds> delay(const dynamodb::Answer& answer,
                                                std::chrono::nanoseconds left);

 private:
  void press(bool pressing);
  std::chrono::nanoseconds fitted(std::chrono::nanoseconds delay,
                                  std::chrono::nanoseconds left,
                                  const dynamodb::Answer& answer) const;
  std::chrono::nanoseconds pressed(std::chrono::nanoseconds delay,
                                   std::chrono::nanoseconds left,
                                   bool throttled) const;

  dynamodb::RetryBudget& budget_;
  const Call call_;
  dynamodb::Throttle::Turn turn_;
  bool pressing_ = false;  // A renewal that was throttled.
  dynamodb::Retry retry_;
  int at_once_ = 0;
};

class Attempt {
 public:
  // Told of each answer, and of each wait for a turn as if it were throttled,
  // and when that attempt began; says until when passing faults are tried
  // again.  No mutex is held.
  struct Caller {
    BootTime (*retry_until)(Caller& self, const dynamodb::Answer& answer,
                            BootTime begun);
  };

  Attempt(Call what, HeldLease& whose);
  ~Attempt();
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  // Sends what the lease says, passing faults tried again, until a verdict
  // other than `again`, a final fault, the deadline, or until `waker` (may be
  // null) is woken.  Nothing is sent past a deadline or once woken.  A take
  // that fails goes on until its time is up, though that were too short for
  // another request, and tells what failed last.  One that ended undecided may
  // have been applied, or be yet: a release takes back what has been.
  // `caller`: may be null.
  void run(sigv4::Waker* waker, Caller* caller = nullptr);

  // Stamps, by the renewer if there is one, for then others look at the lease,
  // and begins to send, `now`.
  enum class Begun { yes, too_late_or_unwanted, no_memory };
  Begun begin(Renewer* renewer, BootTime now);
  // REQUIRES: begun.  What is still under way ends as `why`.  Needs no memory.
  void conclude(sigv4::Transport why);
  // From now on a release, which first hears the answer that is under way.
  void release_instead(BootTime give_up_at);

  // With the mutex of the lease held.  False: the lease is over.  If memory
  // runs out, nothing was stamped.  REQUIRES: something is pending.
  bool stamp(BootTime now);
  void hear();
  // The same for what was stamped, and then not sent.
  void unstamp();
  // After an answer that decided nothing: sets `due`.  False if no other
  // request is to be sent: the fault is final, which `due` tells by
  // BootTime::max(), or it would be too late.
  bool goes_on(BootTime retry_until = BootTime::max());

  bool failing() const;

  Call call;
  const Handle held;
  MutexSettings& holder;
  Observation* observation = &none_;
  BootTime deadline = BootTime::max();
  BootTime due{};
  // A write that was sent and is under way when the run is given up stays so.
  bool keeps_pending = false;

  // How it stands.
  Verdict verdict = Verdict::again;  // That: nothing is decided.
  dynamodb::Answer answer;           // The last; why nothing is.
  // The outcome of some write, not only of the last, is unknown: of a take that
  // was not decided, a release is to follow.  What is pending is not meant.
  bool unknown = false;
  // At the deadline, or woken, while nothing had gone wrong.
  bool given_up = false;
  Request::Verb verb = Request::Verb::look;  // Of the last request.
  std::unique_ptr<dynamodb::Client::Pending> pending;
  BootTime until{};  // The end of its time.

  // The renewer's.
  BootTime made{};             // A renewal by hand: its changes go with it.
  Renewer* by_hand = nullptr;  // Of such a one, which it stamps and hears.
  bool of_take = false;        // A release of what may have come to nothing.
  bool awaits_take = false;    // What is pending is yet of that take,
  bool take_unknown = false;   // and so was a request before.
  bool counted = false;        // As an exchange that a caller has left.
  bool once_more = false;      // A release near the end of a lease.
  bool last_try = false;       // Begun when the threads were to end.
  std::shared_ptr<Closing> closing;  // Who waits for a release; may be null.
  std::size_t closing_place = 0;     // In Closing::locks.

 private:
  BootTime end() const;
  void begin_anew();
  void await_answer(sigv4::Waker* waker);
  void end_request();
  inline void note_failure();
  void end_unsent(dynamodb::Fault why);
  inline void end_undecided(BootTime retry_until, sigv4::Waker* waker);

  Observation none_;   // Of nothing that anybody looks at.
  bool used_ = false;  // Else it is as it was made.
  std::optional<Pace> pace_;
  std::string told_;  // What a server or the system told of the last failures.
  BootTime stamped_at_{};  // The request was,
  BootTime end_at_{};      // and this the end of the attempt.
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ERRAND_HPP
