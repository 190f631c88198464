#include "examples/ddbmutex/acquisition.hpp"

#include <poll.h>

#include <chrono>
#include <future>

#include "examples/ddbmutex/bell.hpp"

namespace command {
namespace {

using ddbmutex::DdbMutex;
using std::chrono::milliseconds;

// Locks in a thread of its own, so that a signal can end the wait.
class Acquisition {
 public:
  Acquisition(DdbMutex& mutex, const Settings& settings)
      : mutex_(mutex),
        locked_(
            std::async(std::launch::async, [&] { return lock(settings); })) {}

  Acquired wait(const Signals& signals, WaitReport& report) {
    int ended_by = 0;
    while (ended_by == 0 && !is_over(milliseconds(0))) {
      report.proceed();
      pollfd files[] = {{signals.fd(), POLLIN, 0},
                        {over_.fd(), POLLIN, 0},
                        {report.fd(), POLLIN, 0}};
      poll(files, 3, report.timeout_ms());
      for (int signal; (signal = signals.next()) != 0;) {
        if (Signals::ends(signal)) ended_by = signal;
        if (signal == SIGTSTP) {
          report.clear();
          Signals::suffer(signal);
        }
      }
    }
    report.clear();
    if (ended_by == 0) return {locked_.get(), 0};
    // Again and again: cancel() does not end a wait that has not begun yet.
    do {
      mutex_.cancel();
    } while (!is_over(milliseconds(10)));
    mutex_.unlock();
    return {false, ended_by};
  }

 private:
  bool is_over(milliseconds within) const {
    return locked_.wait_for(within) == std::future_status::ready;
  }
  bool lock(const Settings& settings) {
    struct Ringer {
      const Bell& bell;
      ~Ringer() { bell.ring(); }
    } const ringer{over_};
    if (settings.wait) return mutex_.try_lock_for(*settings.wait);
    mutex_.lock();
    return true;
  }

  DdbMutex& mutex_;
  const Bell over_;
  std::future<bool> locked_;  // Last: its thread uses the others.
};

}  // namespace

Acquired acquire(DdbMutex& mutex, const Settings& settings,
                 const Signals& signals, WaitReport& report) {
  report.begin(mutex.owner());
  return Acquisition(mutex, settings).wait(signals, report);
}

}  // namespace command
