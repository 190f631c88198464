// Run acquires the lock (acquisition.hpp) and has a Job hold it.  The Job
// starts the command (child.hpp) and a watcher that ends it in time
// (watcher.hpp). Until the command and its group are gone, it tells the watcher
// of each renewal, and acts on signals and losses.  Run then gives the lock
// back.
#include "examples/ddbmutex/run.hpp"

#include <poll.h>
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
#include "examples/ddbmutex/acquisition.hpp"
#include "examples/ddbmutex/bell.hpp"
#include "examples/ddbmutex/child.hpp"
#include "examples/ddbmutex/files.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/signals.hpp"
#include "examples/ddbmutex/terminal.hpp"
#include "examples/ddbmutex/told.hpp"
#include "examples/ddbmutex/wait_report.hpp"
#include "examples/ddbmutex/watcher.hpp"

namespace command {
namespace {

using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using std::chrono::milliseconds;

// The exit status is this plus the signal's number, as in a shell.
constexpr int kSignalled = 128;

// --- Holding it --------------------------------------------------------------

std::vector<std::string> command_of(const Settings& settings) {
  std::vector<std::string> words = settings.arguments;
  if (!settings.shell) return words;
  // /bin/sh -c -- COMMAND sh ARG...: the ARGs are the shell's $1, $2 and so on.
  words.insert(words.begin() + 1, "sh");
  words.insert(words.begin(), {"/bin/sh", "-c", "--"});
  return words;
}

// Our own environment, with the variables about this lock.
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

// Tells the main thread why the lock is lost.  A thread of the library calls
// tell().
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

// "another has it"
const char* in_words(ddbmutex::Loss why) {
  switch (why) {
    case ddbmutex::Loss::taken:
      return "another has it";
    case ddbmutex::Loss::expired:
      return "its lease ended without a renewal";
    default:
      return "its item is gone";
  }
}

constexpr const char* kEndsUnrenewed = "its lease ends without a renewal";
constexpr const char* kEndedUnseen =
    "its lease ended without a renewal; the command has ended, perhaps after "
    "that";
constexpr int kMostAsks = 5;  // How often one Ctrl-Z asks the command to stop.

// The command under the lock.
class Job {
 public:
  // `files`: the open files that the command inherits.
  Job(const Settings& settings, DdbMutex& mutex, const Signals& signals,
      const std::vector<int>& files, const LossBell& loss)
      : ttl_(settings.ttl),
        grace_(settings.grace.value_or(settings.ttl / 4)),
        mutex_(mutex),
        signals_(signals),
        loss_(loss),
        child_(command_of(settings), environment_of(mutex), signals, files),
        watcher_(std::in_place) {}

  // Runs the command, unless the lock is lost already (see is_cut_short()).
  // Returns 0, or the errno that says why it cannot be run.
  int start() {
    watch_the_lease();
    if (cut_short_) return 0;
    is_started_ = true;
    return child_.go();
  }

  // Until the command and all of its group are gone.
  void wait() {
    while (true) {
      // First the news: the watcher sends it before it signals the command, so
      // we know why the command ended.
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
    const Time gone_at = now();
    terminal_.take_from(child_.group());
    read_news();
    if (gone_at >= end_ && !is_over_in_time_) cut_short(kEndedUnseen);
    // First the watcher goes: after bury(), the process id that it signals may
    // be another process's.
    if (watcher_) watcher_->dismiss();
    child_.bury();
  }

  // Once it has ended: what it has left in other groups may end later.
  void reap_orphans() { child_.reap_orphans(0); }

  const Ending& ending() const { return *child_.ending(); }
  // The lock was lost: the command was ended or not started, or it may have run
  // without the lock.
  bool is_cut_short() const { return cut_short_; }
  Time lease_end() const { return end_; }
  // A signal asked for the end.
  bool is_asked_to_end() const { return is_asked_to_end_; }

 private:
  void read_news() {
    while (watcher_) {
      const Watcher::News news = watcher_->read_news();
      if (news == Watcher::News::none) return;
      if (news == Watcher::News::gone) return replace_watcher();
      if (news == Watcher::News::over) {
        is_over_in_time_ = true;
      } else if (news == Watcher::News::late) {
        cut_short(kEndedUnseen);
      } else {
        end_the_command(kEndsUnrenewed);
      }
    }
  }

  // Starts another watcher, and tries again if that one is killed while it
  // starts.  If none can be started, the command is ended: without a watcher,
  // nobody might end it in time.
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
    end_the_command("its watcher was killed, and no other can be started");
    child_.signal(SIGTERM);
    child_.signal(SIGCONT);
    deadline_.kill_at = std::min(deadline_.kill_at, now() + grace_);
  }

  void cut_short(const std::string& why) {
    if (std::exchange(cut_short_, true)) return;
    complain("the lock `" + mutex_.name() + "` is lost: " + why);
  }
  void end_the_command(const std::string& why) {
    cut_short(why + (is_started_ ? "; the command is ended"
                                 : "; the command is not started"));
  }

  void read_signals() {
    for (int signal; (signal = signals_.next()) != 0;) {
      if (signal == SIGCHLD) continue;
      if (signal == SIGCONT && wants_terminal_) {
        terminal_.give_to(child_.group());
      }
      if (signal == SIGCONT || Signals::ends(signal)) asks_to_stop_ = 0;
      if (Signals::ends(signal)) is_asked_to_end_ = true;
      if (signal == SIGTSTP) {
        // Ctrl-Z must not stop what no shell could continue.
        if (Signals::can_stop()) ask_to_stop(kMostAsks);
        continue;
      }
      child_.signal(signal);
      // A stopped process acts on the signal only when it goes on.
      if (Signals::ends(signal)) child_.signal(SIGCONT);
    }
  }

  // A shell that is just starting a program waits for it to begin.  If the
  // signal stops the program before that, nobody learns that either is stopped.
  // So both go on after a while, twice as long each time, and are asked again.
  // A command that ignores the signal is left alone in the end.
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

  // A command that wants the terminal gets it, if it is ours.  Otherwise this
  // program stops with the command, in the same way, and the shell sees that.
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
    // There is no shell.  The command goes on, as it would if it were in our
    // group.  One that cannot have the terminal gets HUP first, and may ask
    // again at once.
    if (asks) {
      child_.signal(SIGHUP);
      std::this_thread::sleep_for(
          std::min<Time>(ttl_ / 100, milliseconds(100)));
    }
    child_.signal(SIGCONT);
  }

  // Tells the watcher how long the lock is held, and keeps the deadlines
  // itself, too.
  void watch_the_lease() {
    const Time time = now();
    const Time left = mutex_.remaining();
    const auto why = loss_.why();
    if (!cut_short_ && left > Time(0) && time + left > end_) {
      end_ = time + left;
      order(deadline_of(end_, ttl_, grace_));
    }
    if (!cut_short_ && why && *why != ddbmutex::Loss::expired) {
      // The command must not go on while nobody reads the complaint.
      order({time, std::min(deadline_.kill_at, time + grace_)});
      end_the_command(in_words(*why));
    }
    if (time >= deadline_.term_at && !is_over()) {
      end_the_command(kEndsUnrenewed);
    }
    if (time >= deadline_.kill_at) child_.signal(SIGKILL);
    if (!is_ordered_) order(deadline_);
  }

  // Whether the command and its group have ended.  wait() finds out whether
  // that was before the end of the lease.
  bool is_over() {
    if (!is_started_) return false;
    child_.reap(watcher_ ? watcher_->pid() : 0);
    return child_.is_gone();
  }

  void order(const Deadline& deadline) {
    deadline_ = deadline;
    is_ordered_ = watcher_ && watcher_->order(child_.group(), deadline);
  }

  void tell_of_leftovers() {
    constexpr std::chrono::seconds kSoon{1};
    if (!child_.ending() || told_of_leftovers_) return;
    if (ended_at_ == Time(0)) ended_at_ = now();
    if (now() - ended_at_ < kSoon) return;
    told_of_leftovers_ = true;
    complain("the command has ended, but other processes of its group " +
             std::to_string(child_.group()) + " have not: the lock `" +
             mutex_.name() + "` is held until they have");
  }

  // Until something happens, or it is time to look at the lease again.
  void rest() {
    constexpr milliseconds kShortly{100};
    auto time = std::max<Time>(ttl_ / 10, milliseconds(1));
    // The watcher must learn of a renewal before it acts: look more often as
    // that comes nearer.
    const Time left = deadline_.term_at - now();
    if (left > Time(0)) time = std::min(time, left / 2);
    if (child_.ending()) time = std::min<Time>(time, kShortly);
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
  Child child_;
  std::optional<Watcher> watcher_;  // After what it watches, to go first.
  Time end_{};                      // When the lease ends.
  Deadline deadline_;
  bool is_ordered_ = false;  // deadline_ was sent to the watcher.
  bool is_started_ = false;
  bool cut_short_ = false;
  bool is_over_in_time_ = false;  // The watcher saw the command end in time.
  bool is_asked_to_end_ = false;
  bool wants_terminal_ = false;
  int asks_to_stop_ = 0;  // Counts down the asks after a Ctrl-Z.
  Time ask_again_at_{};
  Time ended_at_{};  // When the command was first seen to have left others.
  bool told_of_leftovers_ = false;
};

// --- From the wait to the release --------------------------------------------

class Run {
 public:
  Run(const Settings& settings, const Signals& signals)
      : settings_(settings),
        signals_(signals),
        options_(told_of_losses(options_of(settings))),
        report_(options_.table, settings),
        mutex_(settings.name, options_) {}

  // Returns the exit status.  `files`: those that the command inherits.
  int carry_out(const std::vector<int>& files) {
    const Acquired acquired = acquire(mutex_, settings_, signals_, report_);
    hold_until_ = now() + settings_.min_hold;
    if (acquired.signal != 0) {
      is_interrupted_ = acquired.signal == SIGINT;
      return kSignalled + acquired.signal;
    }
    if (!acquired.held) {
      if (!settings_.quiet) {
        complain("the lock `" + settings_.name + "` is held by another");
      }
      return settings_.conflict_exit;
    }
    Job job(settings_, mutex_, signals_, files, loss_);
    if (const int error = job.start(); error != 0) return cannot_run(error);
    if (!job.is_cut_short()) job.wait();
    if (job.is_cut_short()) {
      mutex_.unlock();
      return kLost;
    }
    is_interrupted_ = job.ending().signal == SIGINT;
    const bool was_held_on = !job.is_asked_to_end() && hold_on(job);
    const int status = job.ending().exit_status();
    return is_lost(job, was_held_on) ? int{kLost} : status;
  }

  // INT ended the command, or the wait.  This program must then be seen to end
  // by INT, too, or the script that called it goes on.
  bool is_interrupted() const { return is_interrupted_; }

 private:
  ddbmutex::Options told_of_losses(ddbmutex::Options options) {
    options.on_lost = [this](ddbmutex::Loss why) { loss_.tell(why); };
    return options;
  }

  // The command has not run at all, so other hosts may try at once, whatever
  // --min-hold says.
  int cannot_run(int error) {
    mutex_.unlock();
    complain(settings_.arguments[0] + ": " + std::strerror(error));
    return error == ENOENT ? kNotFound : kCannotRun;
  }

  // Holds the lock for the rest of --min-hold, or until a signal asks for the
  // end or the lock is lost.  False if it was held long enough already.  Renews
  // the lease first: if the lock is lost later, it is known that the command
  // had it to its end.
  bool hold_on(Job& job) {
    if (now() >= hold_until_) return false;
    // In a thread of its own, so that a signal can end the hold meanwhile; not
    // at all if no thread can be started.
    renewal_ = std::async([this] {
      std::error_code error;
      mutex_.renew(error);
      return !error;
    });
    bool is_asked_to_end = false;
    while (!is_asked_to_end && !loss_.why() && now() < hold_until_) {
      const auto left = std::chrono::ceil<milliseconds>(hold_until_ - now());
      const auto time = std::clamp(left, milliseconds(0), milliseconds(60000));
      pollfd files[] = {{signals_.fd(), POLLIN, 0}, {loss_.fd(), POLLIN, 0}};
      poll(files, 2, static_cast<int>(time.count()));
      loss_.hush();
      for (int signal; (signal = signals_.next()) != 0;) {
        if (Signals::ends(signal)) is_asked_to_end = true;
        if (signal == SIGCHLD) job.reap_orphans();
        if (signal == SIGTSTP) Signals::suffer(signal);
      }
    }
    return true;
  }

  // Gives the lock back.  True if it was lost before the command ended.
  bool is_lost(const Job& job, bool was_held_on) {
    std::error_code error;
    mutex_.release(error);
    if (!error) return false;
    if (error != Errc::lease_lost) {
      complain(mutex_.last_error());
      return false;
    }
    const std::string lock = "the lock `" + mutex_.name() + "`";
    if (was_held_on) {
      const auto why = loss_.why();
      const bool is_expired = why == ddbmutex::Loss::expired;
      const bool is_later = is_expired || renewal_.get();
      complain(lock + " is lost: " +
               (why ? in_words(*why) : "another has it, or its item is gone") +
               (is_later
                    ? "; the command had ended, it was held on for --min-hold"
                    : "; perhaps before the command ended"));
      return !is_later;
    }
    if (now() >= job.lease_end()) {
      complain(lock +
               ": its lease ended while this program stood still; the "
               "command had ended before that");
      return false;
    }
    complain(mutex_.last_error());
    return true;
  }

  const Settings& settings_;
  const Signals& signals_;
  LossBell loss_;
  const ddbmutex::Options options_;
  WaitReport report_;
  DdbMutex mutex_;
  Time hold_until_{};
  bool is_interrupted_ = false;
  std::future<bool> renewal_;  // Last: its thread uses the mutex.
};

}  // namespace

int run(const Settings& settings) {
  const std::vector<int> files = open_files();
  occupy_standard_files();
  const Signals signals;
  int status = 0;
  bool is_interrupted = false;
  {
    Run run(settings, signals);
    status = run.carry_out(files);
    is_interrupted = run.is_interrupted();
  }
  if (is_interrupted) Signals::suffer(SIGINT);
  return status;
}

}  // namespace command
