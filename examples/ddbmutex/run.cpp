#include "examples/ddbmutex/run.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <future>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "ddbmutex.hpp"
#include "examples/ddbmutex/child.hpp"
#include "examples/ddbmutex/files.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/signals.hpp"
#include "examples/ddbmutex/terminal.hpp"
#include "examples/ddbmutex/watcher.hpp"

namespace command {
namespace {

using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using std::chrono::milliseconds;

constexpr int kSignalled = 128;  // And the signal, as a shell has it.

// Wakes the main thread from another one.
class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0)
      throw std::system_error(errno, std::generic_category(), "bell");
  }
  ~Bell() { close(fd_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int fd() const { return fd_; }
  void ring() const { eventfd_write(fd_, 1); }
  void hush() const {
    eventfd_t count;
    eventfd_read(fd_, &count);
  }

 private:
  const int fd_;
};

// Where files 0, 1 or 2 are closed, ours must not take their place.
void keep_standard_files_free() {
  int fd;
  do {
    fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

// --- Getting the lock --------------------------------------------------------

struct Acquired {
  bool held = false;
  int signal = 0;  // That ended the wait.
};

// Waits in a thread of its own, so that a signal can end it.
class Acquisition {
 public:
  Acquisition(DdbMutex& mutex, const Settings& settings)
      : mutex_(mutex),
        locked_(
            std::async(std::launch::async, [&] { return lock(settings); })) {}

  Acquired wait(const Signals& signals) {
    int ended_by = 0;
    while (ended_by == 0 && !is_over(milliseconds(0))) {
      pollfd files[] = {{signals.fd(), POLLIN, 0}, {over_.fd(), POLLIN, 0}};
      poll(files, 2, -1);
      for (int signal; (signal = signals.next()) != 0;) {
        if (Signals::ends(signal)) ended_by = signal;
        if (signal == SIGTSTP) Signals::suffer(signal);
      }
    }
    if (ended_by == 0) return {locked_.get(), 0};
    // A wait that has not begun yet does not see the first.
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

// --- Holding it --------------------------------------------------------------

std::vector<std::string> command_of(const Settings& settings) {
  std::vector<std::string> words = settings.arguments;
  if (!settings.shell) return words;
  // What follows the first are the shell's $1 and so on.
  words.insert(words.begin() + 1, "sh");
  words.insert(words.begin(), {"/bin/sh", "-c", "--"});
  return words;
}

// Ours, and what is said of the lock.
std::vector<std::string> environment_of(const DdbMutex& mutex) {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    const std::string text = *variable;
    const bool is_ours = text.rfind("DDBMUTEX_NAME=", 0) == 0 ||
                         text.rfind("DDBMUTEX_TOKEN=", 0) == 0;
    if (!is_ours) all.push_back(text);
  }
  all.push_back("DDBMUTEX_NAME=" + mutex.name());
  if (const auto token = mutex.fencing_token(); token != 0) {
    all.push_back("DDBMUTEX_TOKEN=" + std::to_string(token));
  }
  return all;
}

// Why the lock is lost, told by another thread.
class LossBell : public Bell {
 public:
  void tell(ddbmutex::Loss why) {
    why_ = why;
    is_told_ = true;
    ring();
  }
  std::optional<ddbmutex::Loss> why() const {
    if (!is_told_) return {};
    return why_.load();
  }

 private:
  std::atomic<ddbmutex::Loss> why_{};
  std::atomic<bool> is_told_{false};
};

constexpr int kMostAsks = 5;  // To stop, of one Ctrl-Z.
constexpr const char* kNotRenewed = "its lease ends without a renewal";

// The command under the lock.
class Job {
 public:
  // `files` are the command's.
  Job(const Settings& settings, DdbMutex& mutex, const Signals& signals,
      const std::vector<int>& files, const LossBell& loss)
      : ttl_(settings.ttl),
        grace_(settings.grace.value_or(settings.ttl / 4)),
        mutex_(mutex),
        signals_(signals),
        loss_(loss),
        watcher_(std::in_place),
        child_(command_of(settings), environment_of(mutex), signals, files) {}

  // Returns the errno for which it cannot be run, or 0.  If the lock is lost by
  // now it is not: is_cut_short().
  int start() {
    watch_the_lease();
    if (cut_short_) return 0;
    is_started_ = true;
    return child_.go();
  }

  // Until the command and all of its group are gone.
  void wait() {
    while (true) {
      // The news first: it is told before the signal that it tells of.
      read_news();
      read_signals();
      const int stopped_by = child_.reap(watcher_ ? watcher_->pid() : 0);
      if (child_.is_gone()) break;
      if (stopped_by != 0) stop_with_it(stopped_by);
      ask_again();
      watch_the_lease();
      tell_of_leftovers();
      rest();
    }
    terminal_.take_from(child_.group());
    read_news();
    if (watcher_) watcher_->dismiss();
  }

  // As waitpid() has it.
  int status() const { return *child_.status(); }
  // It was not left to end by itself.
  bool is_cut_short() const { return cut_short_; }
  Time lease_end() const { return end_; }

 private:
  void read_news() {
    if (!watcher_) return;
    const Watcher::News news = watcher_->read_news();
    if (news == Watcher::News::none) return;
    if (news == Watcher::News::gone) return replace_watcher();
    cut_short(kNotRenewed);
    read_news();
  }

  // A second one takes over, and another one if that is killed while it starts;
  // where none can be started, the command cannot go on unwatched.
  void replace_watcher() {
    constexpr int kMostTries = 5;
    watcher_.reset();
    for (int i = 0; i < kMostTries && !watcher_; ++i) {
      try {
        watcher_.emplace(child_.group(), deadline_);
      } catch (const std::system_error&) {  // It was killed, too.
      }
    }
    if (watcher_) return;
    cut_short("its watcher was killed, and there is no other");
    child_.signal(SIGTERM);
    child_.signal(SIGCONT);
    deadline_.kill_at = std::min(deadline_.kill_at, now() + grace_);
  }

  void cut_short(const std::string& why) {
    if (std::exchange(cut_short_, true)) return;
    complain("the lock `" + mutex_.name() + "` is lost: " + why +
             "; the command is " + (is_started_ ? "ended" : "not started"));
  }

  void read_signals() {
    for (int signal; (signal = signals_.next()) != 0;) {
      if (signal == SIGCHLD) continue;
      if (signal == SIGCONT && wants_terminal_) {
        terminal_.give_to(child_.group());
      }
      if (signal == SIGCONT || Signals::ends(signal)) asks_to_stop_ = 0;
      if (signal == SIGTSTP) {
        // Ctrl-Z stops nobody whom no shell could continue.
        if (Signals::can_stop()) ask_to_stop(kMostAsks);
        continue;
      }
      child_.signal(signal);
      // Nothing that is stopped would heed it.
      if (Signals::ends(signal)) child_.signal(SIGCONT);
    }
  }

  // A shell that is just starting a program waits for that to begin.  If the
  // signal stops the program before, nobody is told that either is stopped: so
  // both go on after a while, twice as long each time, and are asked again. One
  // that does not care for the signal is left alone in the end.
  void ask_to_stop(int times) {
    constexpr milliseconds kFirst{200};
    asks_to_stop_ = times;
    ask_again_at_ = now() + kFirst * (1 << (kMostAsks - times));
    if (times > 0) child_.signal(SIGTSTP);
  }
  void ask_again() {
    if (asks_to_stop_ == 0 || now() < ask_again_at_) return;
    child_.signal(SIGCONT);
    ask_to_stop(asks_to_stop_ - 1);
  }

  // One that wants the terminal gets it, if it is ours.  Else this program
  // stops with it, in the same way, for the shell that has started both to see.
  void stop_with_it(int signal) {
    asks_to_stop_ = 0;
    const bool had_it = terminal_.take_from(child_.group());
    const bool asks = signal == SIGTTIN || signal == SIGTTOU;
    wants_terminal_ = had_it || asks;
    if (asks && !had_it && terminal_.give_to(child_.group())) {
      return child_.signal(SIGCONT);
    }
    // Without a terminal nobody would continue it.
    if (signal == SIGSTOP && !terminal_.exists()) return;
    if (Signals::suffer(signal)) return;
    // There is no shell.  The command goes on, as it would have if it were in
    // our group; one that cannot have the terminal first hears why, and may ask
    // again at once.
    if (asks) {
      child_.signal(SIGHUP);
      std::this_thread::sleep_for(
          std::min<Time>(ttl_ / 100, milliseconds(100)));
    }
    child_.signal(SIGCONT);
  }

  // Tells the watcher how long the lock is held, and keeps that time too.
  void watch_the_lease() {
    const Time time = now();
    const Time left = mutex_.remaining();
    const auto why = loss_.why();
    if (!cut_short_ && left > Time(0) && time + left > end_) {
      end_ = time + left;
      order(deadline_of(end_, ttl_, grace_));
    }
    if (!cut_short_ && why && *why != ddbmutex::Loss::expired) {
      cut_short(*why == ddbmutex::Loss::taken ? "another has it"
                                              : "its item is gone");
      order({time, std::min(deadline_.kill_at, time + grace_)});
    }
    if (time >= deadline_.term_at) cut_short(kNotRenewed);
    if (time >= deadline_.kill_at) child_.signal(SIGKILL);
    if (!is_ordered_) order(deadline_);
  }

  void order(const Deadline& deadline) {
    deadline_ = deadline;
    is_ordered_ = watcher_ && watcher_->order(child_.group(), deadline);
  }

  void tell_of_leftovers() {
    constexpr std::chrono::seconds kSoon{1};
    if (!child_.status() || told_) return;
    if (ended_ == Time(0)) ended_ = now();
    if (now() - ended_ < kSoon) return;
    told_ = true;
    complain("the command has ended, but not all of its process group " +
             std::to_string(child_.group()) + ": the lock `" + mutex_.name() +
             "` is held until it has");
  }

  // Until something happens, or it is time to look at the lease again.
  void rest() {
    constexpr milliseconds kShortly{100};
    auto time = std::max<Time>(ttl_ / 10, milliseconds(1));
    // A renewal is to be told before the watcher acts: the nearer that is, the
    // sooner.
    const Time left = deadline_.term_at - now();
    if (left > Time(0)) time = std::min(time, left / 2);
    if (child_.status()) time = std::min<Time>(time, kShortly);
    time = std::min(time, std::max(deadline_.kill_at - now(), Time(0)));
    if (now() >= deadline_.kill_at) time = kShortly;
    if (asks_to_stop_ != 0) time = std::min<Time>(time, kShortly);
    pollfd files[] = {{signals_.fd(), POLLIN, 0},
                      {watcher_ ? watcher_->fd() : -1, POLLIN, 0},
                      {loss_.fd(), POLLIN, 0}};
    const auto whole = std::chrono::ceil<milliseconds>(time).count();
    poll(files, 3, static_cast<int>(std::min<milliseconds::rep>(whole, 60000)));
    loss_.hush();
  }

  const Time ttl_, grace_;
  DdbMutex& mutex_;
  const Signals& signals_;
  const LossBell& loss_;
  const Terminal terminal_;
  std::optional<Watcher> watcher_;
  Child child_;
  Time end_{};  // Of the lease.
  Deadline deadline_;
  bool is_ordered_ = false;  // The watcher has it.
  bool is_started_ = false;
  bool cut_short_ = false;
  bool wants_terminal_ = false;
  int asks_to_stop_ = 0;  // How often yet it is asked to stop, from Ctrl-Z on.
  Time ask_again_at_{};
  Time ended_{};  // When the command had, with some of its group left.
  bool told_ = false;
};

// --- Giving it back ----------------------------------------------------------

// What the program ends with.
int give_back(DdbMutex& mutex, const Job& job) {
  if (job.is_cut_short()) {
    mutex.unlock();
    return kLost;
  }
  const int status = WIFEXITED(job.status())
                         ? WEXITSTATUS(job.status())
                         : kSignalled + WTERMSIG(job.status());
  std::error_code error;
  mutex.release(error);
  if (!error) return status;
  complain(mutex.last_error());
  // Of a lease that was over only once the command had ended, that does not
  // matter.
  const bool was_lost = error == Errc::lease_lost && now() < job.lease_end();
  return was_lost ? kLost : status;
}

int cannot_run(const Settings& settings, int error) {
  complain(settings.arguments[0] + ": " + std::strerror(error));
  return error == ENOENT ? kNotFound : kCannotRun;
}

// Of a command that INT has ended, a shell must see that, or its script goes
// on: `by_int`.
int run_with(const Settings& settings, const Signals& signals,
             const std::vector<int>& files, bool& by_int) {
  LossBell loss;
  ddbmutex::Options options = options_of(settings);
  options.on_lost = [&loss](ddbmutex::Loss why) { loss.tell(why); };
  DdbMutex mutex(settings.name, std::move(options));
  const Acquired acquired = Acquisition(mutex, settings).wait(signals);
  if (acquired.signal != 0) {
    by_int = acquired.signal == SIGINT;
    return kSignalled + acquired.signal;
  }
  if (!acquired.held) {
    if (!settings.quiet) {
      complain("the lock `" + settings.name + "` is held by another");
    }
    return kBusy;
  }
  Job job(settings, mutex, signals, files, loss);
  if (const int error = job.start(); error != 0) {
    mutex.unlock();
    return cannot_run(settings, error);
  }
  if (!job.is_cut_short()) job.wait();
  by_int = !job.is_cut_short() && WIFSIGNALED(job.status()) &&
           WTERMSIG(job.status()) == SIGINT;
  return give_back(mutex, job);
}

}  // namespace

int run(const Settings& settings) {
  const std::vector<int> files = open_files();
  keep_standard_files_free();
  const Signals signals;
  bool by_int = false;
  const int status = run_with(settings, signals, files, by_int);
  if (by_int) Signals::suffer(SIGINT);
  return status;
}

}  // namespace command
