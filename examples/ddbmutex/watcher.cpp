#include "examples/ddbmutex/watcher.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "examples/ddbmutex/files.hpp"
#include "examples/ddbmutex/group.hpp"

namespace command {
namespace {

struct Order {
  pid_t command = 0;
  Deadline deadline;
};

// --- In the watcher: only calls that are safe after a fork -------------------

constexpr int kSocket = 0;

// Closes all files but one, which gets the number kSocket: nobody at the other
// end of the program's pipes and connections must wait for the watcher.
void close_all_but(int fd) {
  dup2(fd, kSocket);
#ifdef SYS_close_range
  if (syscall(SYS_close_range, kSocket + 1, ~0U, 0) == 0) return;
#endif
  for (int other = kSocket + 1; other < most_files(); ++other) close(other);
}

void tell(Watcher::News news) {
  const char byte = static_cast<char>(news);
  send(kSocket, &byte, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

class Watch {
 public:
  Watch(int timer, const Order& order) : timer_(timer), order_(order) {}

  // Runs until the program is gone, and then kills what it watches.
  void run() {
    // The watcher may be stopped between any two of these.  The time is read
    // before the orders, so it never acts on an order that is older than it.
    for (Time time = now(); take_orders(); time = now()) {
      act(time);
      wait();
    }
    if (order_.command != 0) signal_all(order_.command, SIGKILL);
  }

 private:
  // Reports before it acts: the program then knows why the command ended.
  void act(Time time) {
    if (order_.command == 0) return;
    if (!terminated_ && time >= order_.deadline.term_at) {
      terminated_ = true;
      is_over_ = is_over();
      tell(is_over_ ? over_or_late() : Watcher::News::term);
      signal_all(order_.command, SIGTERM);
      signal_all(order_.command, SIGCONT);  // A stopped process heeds no TERM.
    }
    if (!killed_ && time >= order_.deadline.kill_at) {
      killed_ = true;
      if (!is_over_) tell(Watcher::News::kill);
      signal_all(order_.command, SIGKILL);
    }
  }

  // Looked at here, because the program may be stopped, and would learn of the
  // end too late to know when it was.
  bool is_over() const {
    return has_ended(order_.command) &&
           left_in_group_of(order_.command) == Left::none;
  }
  Watcher::News over_or_late() const {
    return now() < order_.deadline.lease_end ? Watcher::News::over
                                             : Watcher::News::late;
  }

  // A timer on the boot clock: poll()'s stands still while the machine is
  // suspended.
  void wait() const {
    const Time at = terminated_ ? order_.deadline.kill_at
                                : std::min(order_.deadline.term_at,
                                           order_.deadline.kill_at);
    itimerspec when = {};  // Zero: the timer is off.
    if (order_.command != 0 && !killed_) {
      const Time::rep count = std::max<Time::rep>(at.count(), 1);
      when.it_value.tv_sec = static_cast<time_t>(count / 1000000000);
      when.it_value.tv_nsec = static_cast<long>(count % 1000000000);
    }
    timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
    pollfd files[] = {{kSocket, POLLIN, 0}, {timer_, POLLIN, 0}};
    poll(files, 2, -1);
  }

  // Takes all orders that have come; the last one counts.  False if no more can
  // come.
  bool take_orders() {
    Order order;
    ssize_t size;
    while ((size = recv(kSocket, &order, sizeof order, MSG_DONTWAIT)) ==
           sizeof order) {
      if (terminated_) {
        order.deadline.kill_at =
            std::min(order.deadline.kill_at, order_.deadline.kill_at);
      }
      order_ = order;
    }
    return size < 0 && (errno == EAGAIN || errno == EINTR);
  }

  const int timer_;
  Order order_;
  bool terminated_ = false;
  bool killed_ = false;
  bool is_over_ = false;  // What it watches had ended before TERM was due.
};

// On a busy machine it might wait seconds for the processor and act too late.
// It hardly ever runs, so it may go first, where the system allows that: mostly
// to root only.
void go_before_others() {
  sched_param lowest = {};
  lowest.sched_priority = sched_get_priority_min(SCHED_FIFO);
  if (sched_setscheduler(0, SCHED_FIFO, &lowest) == 0) return;
  setpriority(PRIO_PROCESS, 0, -20);
}

[[noreturn]] void watch(int fd, const Order& order) {
  sigset_t all;
  sigfillset(&all);
  sigprocmask(SIG_SETMASK, &all, nullptr);
  setsid();
  if (chdir("/") != 0) _exit(1);  // No file system is kept from unmounting.
  prctl(PR_SET_NAME, "lease-watcher");
  // In case it is stopped when the program ends.
  prctl(PR_SET_PDEATHSIG, SIGCONT);
  close_all_but(fd);
  const int timer = timerfd_create(CLOCK_BOOTTIME, TFD_NONBLOCK);
  if (timer < 0) _exit(1);
  go_before_others();
  tell(Watcher::News::none);
  Watch(timer, order).run();
  _exit(0);
}

}  // namespace

// --- In the program ----------------------------------------------------------

Watcher::Watcher(pid_t command, const Deadline& deadline) {
  const auto fail = [](const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
  };
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    fail("no socket for the watcher");
  }
  pid_ = fork();
  if (pid_ == 0) watch(ends[1], {command, deadline});
  const int error = errno;
  close(ends[1]);
  fd_ = ends[0];
  char word;
  if (pid_ > 0 && recv(fd_, &word, 1, 0) == 1) return;  // It watches.
  close(fd_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
  errno = pid_ > 0 ? ECHILD : error;
  fail("cannot start the watcher");
}

Watcher::~Watcher() {
  close(fd_);
  if (pid_ < 0) return;
  kill(pid_, SIGCONT);  // Should somebody have stopped it.
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

bool Watcher::order(pid_t command, const Deadline& deadline) const {
  const Order order = {command, deadline};
  return send(fd_, &order, sizeof order, MSG_NOSIGNAL | MSG_DONTWAIT) ==
         sizeof order;
}

// By force: it may be stopped, and would follow old orders if it went on.
void Watcher::dismiss() {
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
}

Watcher::News Watcher::read_news() const {
  char byte;
  const ssize_t size = recv(fd_, &byte, 1, MSG_DONTWAIT);
  if (size == 1) return static_cast<News>(byte);
  const bool nothing = size < 0 && (errno == EAGAIN || errno == EINTR);
  return nothing ? News::none : News::gone;
}

}  // namespace command
