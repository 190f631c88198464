// What the threads of a Renewer and its callers share.
//
// Core::mutex guards all that both threads and callers touch, the leases
// included.  It is held for memory only, never while a request is made, a
// callback runs or a thread is waited for; and no Handle is dropped under it
// that may be the last, for what a callback captured may destroy anything.
#ifndef DDBMUTEX_RENEWER_CORE_HPP
#define DDBMUTEX_RENEWER_CORE_HPP

#include <pthread.h>

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/http.hpp"
#include "../sigv4/thread.hpp"
#include "alarm_clock.hpp"
#include "client.hpp"
#include "driver.hpp"
#include "protocol.hpp"
#include "renewer.hpp"
#include "retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// At once; longer ones are waited in parts, for not every clock's time goes so
// far.
constexpr std::chrono::nanoseconds kLongestWait = std::chrono::hours(1);

// Locks that release_all() waits for.
struct Closing {
  std::map<const Renewer::Held*, Renewer::Unreleased> open;
  std::vector<Renewer::Unreleased> bad;
};

struct Task;
using TaskPtr = std::unique_ptr<Task>;
// The time, behind the class of those that are due: the lowest goes first.
using Rank = std::pair<int, BootTime>;
using Tasks = std::multimap<Rank, TaskPtr>;
using Alarms = std::multimap<BootTime, Renewer::Handle>;

// A run of requests for one lease, in the hands of the sending thread, or of
// one that renews by hand.
struct Task {
  Task(Call what, std::shared_ptr<Holder> whose)
      : call(what),
        pace(whose->driver.budget(), what),
        holder(std::move(whose)) {}

  const Call call;
  Pace pace;
  const std::shared_ptr<Holder> holder;
  Renewer::Handle held;     // Of a renewal; of a release to tell of a loss.
  bool by_hand = false;     // A renewal.
  bool unanswered = false;  // The last request.
  Tasks* line = nullptr;    // Where it waits.

  // Of a release.
  std::optional<Lease> lease;
  BootTime give_up_at{};
  bool of_take = false;              // Of one that may have come to nothing.
  bool awaits_take = false;          // What is pending is yet of that take,
  bool undecided = false;            // and so was a request before.
  bool counted = false;              // In Core::answers_awaited.
  bool once_more = false;            // Near the end of a lease.
  bool last_try = false;             // Begun when the threads were to end.
  std::shared_ptr<Closing> closing;  // May be null.

  // The request under way; the sending thread's alone.
  Request request;
  std::unique_ptr<dynamodb::Client::Pending> pending;
  BootTime until{};
};

// Tasks of one kind: those that wait for their time, and those that are due.
struct Line {
  Tasks waiting;
  Tasks due;
};

inline BootTime first_of(const Tasks& waiting) {
  return waiting.empty() ? BootTime::max() : waiting.begin()->first.second;
}
inline BootTime first_of(const Alarms& alarms) {
  return alarms.empty() ? BootTime::max() : alarms.begin()->first;
}

class Renewer::Held {
 public:
  Held(Lease held_lease, std::shared_ptr<Holder> whose)
      : holder(std::move(whose)), lease(std::move(held_lease)) {}

  const std::shared_ptr<Holder> holder;
  // All below: GUARDED_BY(Core::mutex)
  Lease lease;
  bool given_back = false;
  bool renewing = false;  // A request is under way, or a renewal by hand.
  bool in_danger = false;
  bool counts = true;  // In Usage.
  const BootTime since = BootClock::now();
  std::optional<Verdict> lost;
  Signal signal;
  std::optional<Tasks::iterator> task;       // Where it waits.
  std::optional<Alarms::iterator> alarm;     // Likewise.
  std::optional<Alarms::iterator> question;  // Likewise: is it to be renewed?

  bool over() const { return given_back || lost; }
  bool held_too_long(BootTime when) const {
    return when - since >= holder->terms.max_hold;
  }
};

struct Renewer::Core final : sigv4::Stoppable {
  Core(std::shared_ptr<dynamodb::Client> the_client,
       std::shared_ptr<dynamodb::RetryBudget> the_budget)
      : client(std::move(the_client)), budget(std::move(the_budget)) {}

  void tell_to_stop(BootTime by) override;
  void await_stop() override;

  // For these the mutex is held.
  bool start(const std::shared_ptr<Core>& self);
  TaskPtr make_room();
  void schedule(BootTime when, TaskPtr task);
  void schedule_renewal(const Handle& held, BootTime when);
  void plan_renewal(const Handle& held, BootTime when);
  void ask_at(const Handle& held, BootTime when);
  void unschedule(Held& held);
  void wake_teller_at(BootTime when);
  bool is_to_be_told(const Held& held) const;
  Returned give_back(const Handle& handle);
  void close(const Handle& handle, const std::shared_ptr<Closing>& closing,
             bool threads);
  void closed(const Task& task, std::optional<Verdict> lost,
              const dynamodb::Answer* answer, bool for_good);
  void set_alarm(const Handle& held);
  void clear_alarm(Held& held);
  void publish(const Held& held, BootTime claim_end);
  void lose(const Handle& held, Verdict why);
  void tell(const Handle& held, Verdict why);
  void no_longer_held(Held& held);
  Usage usage() const;
  void check_clock();

  // The sending thread's.
  void send_loop();
  void await_any(const std::vector<TaskPtr>& under_way, BootTime until);
  void conclude_ended(std::vector<TaskPtr>& under_way);
  void end_sending();
  bool collect_due(std::vector<TaskPtr>& ready,
                   const std::vector<TaskPtr>& under_way, BootTime& next);
  void stand_in_line(Line& line, BootTime now);
  void collect_late(BootTime now, std::vector<TaskPtr>& ready);
  void begin(Task& task);
  bool prepare(Task& task);
  void conclude(TaskPtr task);
  Verdict hear(Task& task, const dynamodb::Answer& answer);
  void renewed(TaskPtr& task, Verdict verdict, const dynamodb::Answer& answer);
  void released(TaskPtr& task, Verdict verdict, const dynamodb::Answer& answer);
  void release_once_more(TaskPtr& task);
  std::chrono::nanoseconds retry_delay(Task& task,
                                       const dynamodb::Answer& answer);

  // Of a thread that renews by hand.
  static Renewal ended_by_hand(const Held& held);
  std::optional<Renewal> enter_by_hand(Held& held, BootTime deadline);
  Renewal renew_by_hand(Task& task, BootTime deadline, sigv4::Waker& waker);
  std::optional<Renewal> heard_by_hand(Task& task,
                                       const dynamodb::Answer& answer,
                                       BootTime begun, BootTime deadline,
                                       std::chrono::nanoseconds& delay);
  void leave_by_hand(const Handle& handle);

  // The telling thread's.
  void tell_loop();
  bool tell_next(std::unique_lock<std::mutex>& guard);
  bool ask_next(std::unique_lock<std::mutex>& guard);
  void call_back(std::unique_lock<std::mutex>& guard, Handle held,
                 std::optional<Verdict> why);

  const std::shared_ptr<dynamodb::Client> client;
  const std::shared_ptr<dynamodb::RetryBudget> budget;
  sigv4::Waker sender_waker;
  AlarmClock teller_clock;

  std::mutex mutex;
  // All below: GUARDED_BY(mutex)
  // running, losses, *_ended, Held::renewing, Closing::open
  std::condition_variable changed;
  bool stopping = false;
  bool shut = false;     // No lease is kept any more.
  bool awaited = false;  // The end of the threads.
  BootTime stop_by{};
  pthread_t sender{};
  pthread_t teller{};
  bool sending = false;  // The threads were started,
  bool telling = false;
  bool send_ended = false;  // and have ended.
  bool tell_ended = false;
  Line renewals;
  Line releases;
  BootTime first_late = BootTime::max();  // No release is given up before.
  std::size_t answers_awaited = 0;        // Exchanges that callers have left.
  Alarms alarms;                          // One for each lease that is held,
  Alarms questions;           // and one if its holder is to be asked.
  std::deque<Handle> losses;  // To be told.
  const BootTime made = BootClock::now();
  std::uint64_t held_now = 0;
  double held_before_s = 0;  // By those that are not held any more.
  double held_since_s = 0;   // Of those that are, since `made`, added up.
  const Holder* running = nullptr;  // Whose callback is being called.
  // While awake they look at everything before they sleep again.
  BootTime sender_sleeps_until = BootTime::min();
  BootTime teller_sleeps_until = BootTime::min();
};

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RENEWER_CORE_HPP
