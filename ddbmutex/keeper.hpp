// Keeps the leases of a table: renews them in time, tells of danger and of
// losses, and carries on what callers had to leave.
//
// Two threads, started when there is something to do for them.  The sending one
// drives errands, many at once, and may be held up by libcurl; the telling one
// never calls libcurl itself, so that alarms are in time: it keeps the
// deadlines and calls back.
//
// `mutex_` guards all that both threads and callers touch, the leases included.
// It is held for memory only, never while a request is made, a callback runs or
// a thread is waited for; and no Handle is dropped under it that may be the
// last, for what a callback captured may destroy anything.
//
// At once are under way: 128 renewals, by the ends of their claims, and 32
// releases.  Of what callers have left, 16 exchanges are awaited, beyond that
// one is ended as of unknown outcome, and 1,000 releases are kept.  What is
// past its time is dropped unsent.
//
// Thread safety: any thread may call any public member.
#ifndef DDBMUTEX_KEEPER_HPP
#define DDBMUTEX_KEEPER_HPP

#include <pthread.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/http.hpp"
#include "../sigv4/thread.hpp"
#include "alarm_clock.hpp"
#include "client.hpp"
#include "errand.hpp"
#include "protocol.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// Told of a loss beside and before on_lost: `tell` with the object.
struct Signal {
  std::shared_ptr<void> object;
  void (*tell)(void*) = nullptr;
};

// A lease in the Keeper's care.
struct Held {
  Held(Lease held_lease, std::shared_ptr<Holder> whose)
      : holder(std::move(whose)), lease(std::move(held_lease)) {}

  const std::shared_ptr<Holder> holder;
  const BootTime since = BootClock::now();
  // All below: GUARDED_BY(Keeper::mutex_)
  Lease lease;
  std::size_t place = 0;  // Of its plan, until it is over.
  bool given_back = false;
  bool renewing = false;  // A request is under way, or a renewal by hand.
  bool in_danger = false;
  std::optional<Verdict> lost;
  Signal signal;

  bool over() const { return given_back || lost; }
  bool held_too_long(BootTime when) const {
    return when - since >= holder->terms.max_hold;
  }
};

// A lock that could not be released: lost before, or not said in time.
struct Unreleased {
  std::string name;
  Result result;
};

// What Keeper::release_all() waits for.
struct Closing {
  std::vector<Unreleased> locks;  // None once it waits no more.
  std::size_t open = 0;
};

class Keeper final : public sigv4::Stoppable,
                     public std::enable_shared_from_this<Keeper>,
                     private Errand::Watch {
 public:
  // Made by make_shared: its threads own it, too.  All holders use this client.
  Keeper(std::shared_ptr<dynamodb::Client> client,
         std::shared_ptr<dynamodb::RetryBudget> budget)
      : client_(std::move(client)), budget_(std::move(budget)) {}

  // Both threads end, after what callers left was tried once more.  A thread
  // that is held up, or calls this, is left to end by itself.
  void tell_to_stop(BootTime by) override;
  void await_stop() override;

  // Renews the lease, and watches over it, until give_back().  Null if no
  // thread can be started, or after release_all(); the lease is untouched then.
  // REQUIRES: granted.
  Handle keep(Lease& lease, const std::shared_ptr<Holder>& holder);

  // Renews the lease now, on the calling thread, with those changes (may be
  // null): done, not_held, lost or failed.  Passing faults are tried again
  // until the deadline, the end of the lease, or until `waker` is woken.  After
  // `done` nobody else renews before go_on().
  Result renew(const Handle& handle, std::shared_ptr<const Changes> changes,
               BootTime deadline, sigv4::Waker& waker);
  void go_on(const Handle& handle);

  // Tells once of a loss, beside and before on_lost, or of release_all(), by
  // what `make` makes of `of`, which is kept until the lease is given back.
  // What an earlier call has set comes back.  Null if the lock is lost already,
  // or no thread can be started.
  std::shared_ptr<void> signal_loss(const Handle& handle,
                                    const std::function<Signal()>& make);

  // Ends renewals and alarms; a renewal under way counts as one of unknown
  // outcome.  What is to release it; null if that was so before.  A loss
  // (`lost`) that has not been told yet still will be.
  ErrandPtr give_back(const Handle& handle, std::optional<Verdict>& lost);

  // Keeps no more leases and gives back all that are held, many at once.  Waits
  // until that is said, until the deadline at the most; what is not said by
  // then goes on.
  std::vector<Unreleased> release_all(BootTime deadline);

  // The release has shown that the lock was lost before.  Told once.
  void lost(const Handle& handle, Verdict why);

  // Goes on with an errand that was given up: awaits what is pending, and
  // unless a take certainly came to nothing, releases the lease; for as long as
  // that could last.  False if no thread can be started; the errand is
  // untouched then.
  bool finish(ErrandPtr& errand);

  // What is known of DynamoDB's clock was contradicted: claims may end sooner.
  void check_clock();

  // How many leases are held, and for how many seconds leases were, added up.
  struct Usage {
    std::uint64_t held = 0;
    double held_s = 0;
  };
  Usage usage() const;

  // Waits until all has been told to the holder that is to be, tells it nothing
  // more and drops its callbacks.  On the thread that tells: does not wait.
  void settle(Holder& holder);

 private:
  // One for each lease that is held; BootTime::max(): not.
  struct Plan {
    BootTime renewal = BootTime::max();
    BootTime question = BootTime::max();  // Is it to be renewed?
    BootTime alarm = BootTime::max();
    Handle held;
    ErrandPtr errand;  // The renewal, if it is to go on.
  };
  using Guard = std::unique_lock<std::mutex>;

  // For these the mutex is held.
  bool start();
  Plan& plan_of(const Held& held) { return plans_[held.place]; }
  void renew_at(const Handle& held, BootTime when);
  void plan_renewal(const Handle& held, BootTime when);
  void ask_at(Held& held, BootTime when);
  void unplan(Held& held);
  void put(BootTime when, ErrandPtr&& errand);
  ErrandPtr make_room();
  void wake_sender_at(BootTime when);
  void wake_teller_at(BootTime when);
  void set_alarm(Held& held);
  void publish(const Held& held, BootTime claim_end);
  void no_longer_held(const Held& held);
  void lose(const Handle& held, Verdict why);
  void tell(const Handle& held, Verdict why);
  ErrandPtr take_back(const Handle& handle);
  void close(const Handle& handle, const std::shared_ptr<Closing>& closing,
             bool threads);
  void closed(const Errand& errand, std::optional<Verdict> lost, bool told,
              bool for_good);
  void hear_renewal(Errand& errand);
  Result ended(const Held& held) const;

  // Of the sending thread, and of one that renews by hand.
  bool stamp(Errand& errand) override;
  void hear(Errand& errand) override;

  // The sending thread's.
  void send_loop();
  void await_any(const std::vector<ErrandPtr>& under_way, BootTime until);
  void conclude_ended(std::vector<ErrandPtr>& under_way);
  bool collect(std::vector<ErrandPtr>& ready,
               const std::vector<ErrandPtr>& under_way, BootTime& next);
  void collect_renewals(BootTime now, std::size_t room,
                        std::vector<ErrandPtr>& ready, BootTime& next);
  bool collect_releases(BootTime now, std::size_t room,
                        std::vector<ErrandPtr>& ready, BootTime& next);
  void conclude(ErrandPtr errand);
  void renewed(ErrandPtr& errand);
  void released(ErrandPtr& errand);

  // The telling thread's.
  void tell_loop();
  bool tell_next(Guard& guard);
  void lose_ended(BootTime now, std::vector<Handle>& gone);
  bool ask_next(Guard& guard);
  void call_back(Guard& guard, Handle held, std::optional<Verdict> why);

  const std::shared_ptr<dynamodb::Client> client_;
  const std::shared_ptr<dynamodb::RetryBudget> budget_;
  sigv4::Waker sender_waker_;
  AlarmClock teller_clock_;

  mutable std::mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  // running_, losses_, *_ended_, Held::renewing, Closing::open
  std::condition_variable changed_;
  bool stopping_ = false;
  bool shut_ = false;     // No lease is kept any more.
  bool awaited_ = false;  // The end of the threads.
  BootTime stop_by_{};
  pthread_t sender_{};
  pthread_t teller_{};
  bool sending_ = false;  // The threads were started,
  bool telling_ = false;
  bool send_ended_ = false;  // and have ended.
  bool tell_ended_ = false;
  std::vector<Plan> plans_;
  std::vector<ErrandPtr> releases_;  // That wait.
  std::size_t answers_awaited_ = 0;  // Exchanges that callers have left.
  std::vector<Handle> losses_;       // To be told.
  const BootTime made_ = BootClock::now();
  double held_before_s_ = 0;  // By those that are not held any more.
  double held_since_s_ = 0;   // Of those that are, since `made_`, added up.
  const Holder* running_ = nullptr;  // Whose callback is being called.
  // While awake they look at everything before they sleep again.
  BootTime sender_sleeps_until_ = BootTime::min();
  BootTime teller_sleeps_until_ = BootTime::min();
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_KEEPER_HPP
