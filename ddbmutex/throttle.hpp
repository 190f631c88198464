// How often a client sends what can wait, as it has learned from DynamoDB's
// refusals for throttling.
//
//   Throttle::Turn turn(throttle);  // One for a run of requests.
//   while ((delay = turn.wait(BootClock::now())) > zero) sleep(delay);
//   ... send one ...
//   if (throttle.count()) throttle.answered(BootClock::now());
//
// There is no limit until a request is refused.  Then each refusal lowers the
// rate and each other answer raises it by a share of what it is: so however
// many clients there are and whatever the table bears, refusals stay a share of
// the answers.  Answers to requests that are never held back count alike.
//
// Thread safety: any thread may call any member; those of a Turn, one at a
// time.
#ifndef DDBMUTEX_THROTTLE_HPP
#define DDBMUTEX_THROTTLE_HPP

#include <atomic>
#include <chrono>
#include <list>
#include <mutex>
#include <optional>

#include "../sigv4/boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

class Throttle {
 public:
  class Turn;

  Throttle() = default;
  Throttle(const Throttle&) = delete;
  Throttle& operator=(const Throttle&) = delete;

  // Whether turns have to be waited for.
  bool limits() const { return limited_.load(std::memory_order_acquire); }
  // To be told of every answer of DynamoDB's: by refused() of those that refuse
  // for throttling, else by count(), and if that is true by answered() too.
  // (While there is no limit, the time is read for few of them.)
  bool count();
  void answered(BootTime now);
  void refused(BootTime now);

  // Of requests that are never held back, how many are being tried again after
  // a refusal: for those who make them to tell each other.
  void press(int change) { pressing_ += change; }
  int pressing() const { return pressing_; }

  // Requests a second that are let go; nothing while there is no limit.
  std::optional<double> rate() const;

 private:
  using Line = std::list<const Turn*>;

  std::chrono::nanoseconds wait(Turn& turn, BootTime now);
  void leave(Turn& turn);
  void fill(BootTime now);
  std::chrono::nanoseconds until(const Turn& turn) const;
  void end_window(BootTime now);
  bool forgets(BootTime now);

  // Written under the mutex.  While it is false no call takes that.
  std::atomic<bool> limited_{false};

  // Answers a second, in the last whole window.  Approximate: two threads at a
  // window's end may lose some.
  std::atomic<BootTime::rep> window_begin_{0};
  std::atomic<int> in_window_{0};
  std::atomic<double> measured_{0};

  std::atomic<int> pressing_{0};

  mutable std::mutex mutex_;
  // All below: GUARDED_BY(mutex_)
  double rate_ = 0;
  int in_a_row_ = 0;  // Answers since a refusal.
  BootTime last_refused_{};
  BootTime last_lowered_{};  // The rate,
  BootTime last_changed_{};  // down or up.
  Line line_;                // Of those that wait, the oldest first.
  double tokens_ = 0;        // So many of them may go, as of
  BootTime filled_{};
};

// A place in the line of requests that are held back.
class Throttle::Turn {
 public:
  explicit Turn(Throttle& throttle) : throttle_(throttle) {}
  ~Turn() {
    if (place_) throttle_.leave(*this);
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // Zero: a request may be sent now; the next one has to wait anew.  Else to be
  // asked again after so long, at the latest.
  std::chrono::nanoseconds wait(BootTime now) {
    return throttle_.wait(*this, now);
  }
  // Since it was last told to wait.
  bool waits() const { return place_.has_value(); }

 private:
  friend class Throttle;
  Throttle& throttle_;
  std::optional<Line::const_iterator> place_;
};

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_THROTTLE_HPP
