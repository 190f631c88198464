// Keeps the leases of a table: renews them in time, tells of danger and of
// losses, and carries on what callers had to leave.
//
// Two threads, started when there is something to do for them.  The sending one
// drives attempts, many at once, and may be held up by libcurl; the telling one
// never calls libcurl itself, so that alarms are in time: it keeps the
// deadlines and calls back.
//
// `mutex_` guards all that both threads and callers touch, the leases included.
// It is held for memory only, never while a request is made, a callback runs or
// a thread is waited for; and no Handle is dropped under it that may be the
// last, for what a callback captured may destroy anything.
//
// At once are under way: 32 renewals, by the ends of their claims, and 32
// releases.  Renewals that have piled up, as after an outage, begin little by
// little: 100 in a second, or 2.25 times as many as all leases need, and as
// many more as fail.  Those whose leases are nearly over do not wait for that,
// and 128 may be under way.  Of what callers have left, 16 exchanges are
// awaited, beyond that one is ended as of unknown outcome, and 1,000 releases
// are kept.  What is past its time is dropped unsent.
//
// Thread safety: any thread may call any public member.
#ifndef DDBMUTEX_KEEPER_HPP
#define DDBMUTEX_KEEPER_HPP

#include <pthread.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "../../sigv4/boot_clock.hpp"
#include "../../sigv4/system.hpp"
#include "../../sigv4/waiting.hpp"
#include "../dynamodb/client.hpp"
#include "../dynamodb/retry.hpp"
#include "agenda.hpp"
#include "attempt.hpp"
#include "protocol.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// A lock that could not be released: lost before, or not said in time.
struct Unreleased {
  Handle held;
  Signal signal;
  Result result;
};

// What Renewer::release_all() waits for.
struct Closing {
  std::vector<Unreleased> locks;  // None once it waits no more.
  std::size_t open = 0;
};

class Renewer {
 public:
  // Its threads own it, too.
  static std::shared_ptr<Renewer> create(
      const dynamodb::ClientOptions& options);
  explicit Renewer(const dynamodb::ClientOptions& options);
  ~Renewer();

  // Of all holders.
  dynamodb::Client& client() { return client_; }
  dynamodb::RetryBudget& budget() { return budget_; }

  // Both threads end, after what callers left was tried once more.  A thread
  // that is held up, or calls this, is left to end by itself.
  void tell_to_stop(BootTime by);
  void await_stop();

  // Renews the lease, and watches over it, until give_back().  False if no
  // thread can be started, or after release_all(); the lease is untouched then.
  // REQUIRES: granted; there is a Handle until it is given back.
  bool keep(HeldLease& held);

  // Renews the lease now, on the calling thread, with those changes (may be
  // null): done, not_held, lost or failed.  Passing faults are tried again
  // until the deadline, the end of the lease, or until `waker` is woken.  After
  // `done` nobody else renews before go_on().
  void renew(HeldLease& held, const ChangesPtr& changes, BootTime deadline,
             sigv4::Waker& waker, Result& result);
  void go_on(HeldLease& held);

  // DynamoDB has refused what holds while the lock is ours.  Renews now, so
  // that the loss is known now; a lease whose renewal is not answered by the
  // deadline counts as taken.
  void confirm_loss(HeldLease& held, BootTime deadline, sigv4::Waker& waker);

  // Tells once of a loss, beside and before the listener, or of release_all(),
  // by `signal` with what `make` has made, which is kept until the lease is
  // given back.  What an earlier call has set comes back.  Null if the lock is
  // lost already, or no thread can be started.
  std::shared_ptr<void> signal_loss(HeldLease& held,
                                    std::shared_ptr<void> (*make)(),
                                    void (*signal)(void*));

  // The lease is another thread's from now on.  False if it is to be given
  // back: lost, not to be renewed any more, or as Lease::hand_over() says.
  // `signal`: what a loss is not told by any more.
  bool hand_over(HeldLease& held, Signal& signal);

  // Ends renewals and alarms; a renewal under way counts as one of unknown
  // outcome.  What is to release it; none if that was so before.  A loss
  // (`lost`; `again`: none) that has not been told yet still will be.  Needs no
  // memory.
  Attempts give_back(HeldLease& held, Verdict& lost);

  // Keeps no more leases and gives back all that are held, many at once.  Waits
  // until that is said, until the deadline at the most; what is not said by
  // then goes on.  What was released is among them, as done.  If memory runs
  // out, nothing has been given back yet.
  std::vector<Unreleased> release_all(BootTime deadline);

  // The release has shown that the lock was lost before.  Told once.
  void lost(HeldLease& held, Verdict why);

  // Goes on with an attempt that was given up: awaits what is pending, and
  // unless a take certainly came to nothing, releases the lease; for as long as
  // that could last.  False if no thread can be started, or memory runs out;
  // the attempt, which is the only one, is untouched then.
  bool finish(Attempts& attempt);

  // For Attempt: a request is to be sent, and is stamped, unless it is too late
  // or not wanted; it was stamped and not sent; the answer to a renewal by hand
  // has come.
  bool stamp(Attempt& attempt);
  void unstamp(Attempt& attempt);
  void hear(Attempt& attempt);

  // What is known of DynamoDB's clock was contradicted: claims may end sooner.
  void check_clock();

  // How many leases are held, and for how many seconds leases were, added up.
  struct Usage {
    std::uint64_t held = 0;
    double held_s = 0;
  };
  Usage usage() const;

  // Whether this is the thread that calls back for all holders.
  bool calls_back_here() const;

  // Waits until all has been told to the holder that is to be, tells it nothing
  // more and drops its listener.  On the thread that tells: does not wait.
  void settle(MutexSettings& holder);

 private:
  using Guard = std::unique_lock<sigv4::Mutex>;
  struct Worker {
    pthread_t thread{};
    bool started = false, ended = false;
  };

  // For these the mutex is held.
  bool start();
  void plan(HeldLease& held, Agenda& agenda, BootTime when);
  void plan_renewal(HeldLease& held, BootTime when);
  void unplan(HeldLease& held);
  void put(BootTime when, Attempts& attempt);
  Attempts make_room();
  void wake_sender_at(BootTime when);
  void wake_teller_at(BootTime when);
  void set_alarm(HeldLease& held);
  void publish(const HeldLease& held, BootTime claim_end);
  void no_longer_held(HeldLease& held, BootTime now);
  void lose(HeldLease& held, Verdict why);
  void tell(HeldLease& held, Verdict why);
  Attempts take_back(HeldLease& held);
  void close(HeldLease& held, const std::shared_ptr<Closing>& closing,
             std::size_t place, bool threads);
  void closed(const Attempt& attempt, Verdict lost, bool told, bool for_good);
  void hear_renewal(Attempt& attempt);
  void end(const HeldLease& held, Result& result) const;
  inline bool is_told(const MutexSettings& holder) const;

  // The sending thread's.
  void send_loop();
  bool send_round(Attempts& under_way);
  bool begin_all(Attempts& under_way);
  void begin_later(Attempts& one);
  void await_any(const Attempts& under_way, BootTime until);
  bool collect(Attempts& under_way, BootTime& next);
  void collect_renewals(BootTime now, std::size_t renewing, Attempts& ready,
                        BootTime& next);
  Agenda* next_to_renew(BootTime now, bool full, BootTime& next);
  void take_turn(BootTime now);
  std::chrono::nanoseconds between_renewals() const;
  bool collect_releases(BootTime now, std::size_t room, Attempts& ready,
                        BootTime& next);
  void conclude(Attempts one);
  void renewed(AttemptPtr& attempt);
  void released(Attempts& one);

  // The telling thread's.
  void tell_loop();
  News next_news(Handle& held);
  Handle take_loss();
  void call_back(Guard& guard, HeldLease& held, News news);
  bool call(News news, Verdict why, const HeldLease& held,
            const Listener* listener, const Signal& signal);
  void complain(News news, const HeldLease& held, const char* what) const;
  inline void log(News news, Verdict why, const HeldLease& held) const;
  inline void answered(HeldLease& held, bool alive);

  std::weak_ptr<void> self_;
  dynamodb::Client client_;
  dynamodb::RetryBudget budget_;
  sigv4::Waker sender_waker_;
  sigv4::Waker teller_waker_;

  mutable sigv4::Mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  // running_, losses_, Worker::ended, HeldLease::renewing, Closing::open
  sigv4::Condition changed_;
  bool stopping_ = false;
  bool registered_ = false;  // For exit().
  bool shut_ = false;        // No lease is kept any more.
  bool awaited_ = false;     // The end of the threads.
  BootTime stop_by_{};
  Worker sender_;
  Worker teller_;
  // Of the leases that are held, each of them on one at the most: when one is
  // to be renewed; when one ends that is due, and when one whose last renewal
  // had no answer; when to ask whether one is to be renewed.
  Agenda renewals_{&HeldLease::renewal};
  Agenda renewals_due_{&HeldLease::renewal};
  Agenda renewals_behind_{&HeldLease::renewal};
  Agenda questions_{&HeldLease::renewal};
  // When to tell of danger, and of a loss: there are all that are held.
  Agenda dangers_{&HeldLease::danger};
  Agenda ends_{&HeldLease::end};
  double renewals_per_s_ = 0;        // Of all that are held, on average.
  BootTime renewal_turn_{};          // When the next may begin that can wait.
  Attempts releases_;                // That wait.
  std::size_t answers_awaited_ = 0;  // Exchanges that callers have left.
  // Losses that are to be told, or not any more: each lease has the next.
  Handle first_loss_;
  HeldLease* last_loss_ = nullptr;
  const BootTime made_ = BootClock::now();
  double held_before_s_ = 0;  // By those that are not held any more.
  double held_since_s_ = 0;   // Of those that are, since `made_`, added up.
  const MutexSettings* running_ = nullptr;  // Whose callback is being called.
  // While awake they look at everything before they sleep again.
  BootTime sender_sleeps_until_ = BootTime::min();
  BootTime teller_sleeps_until_ = BootTime::min();
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_KEEPER_HPP
