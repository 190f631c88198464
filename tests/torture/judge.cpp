#include "tests/torture/judge.hpp"

#include <chrono>
#include <cstddef>
#include <set>
#include <utility>

#include "ddbmutex.hpp"
#include "tests/torture/tokens.hpp"

namespace torture {
namespace {

using std::chrono::milliseconds;

// A right clock may seem to be off by so much.
constexpr milliseconds kCalendarSlack{2000};
constexpr milliseconds kBootClockSlack{1000};
// With so many acquisitions for each process, none is without by chance.  On a
// slow machine there are fewer.
constexpr std::size_t kManyForEach = 50;

// What the worker writes about a call that ended with a transient error.
bool is_transient(const std::string& why) {
  using ddbmutex::Errc;
  static const std::set<std::string> kAll = [] {
    std::set<std::string> all;
    for (const Errc code :
         {Errc::unreachable, Errc::disconnected, Errc::timed_out,
          Errc::throttled, Errc::unavailable, Errc::bad_answer}) {
      const std::string message = make_error_code(code).message();
      all.insert(message);
      all.insert("error " + std::to_string(static_cast<int>(code)) + "-" +
                 message);
    }
    return all;
  }();
  return kAll.count(why) > 0;
}

// Whether release() may have ended so.
bool may_end_release(const std::string& error) {
  using ddbmutex::Errc;
  return error.empty() || is_transient(error) ||
         error == make_error_code(Errc::lease_lost).message();
}

class Judge {
 public:
  explicit Judge(const History& history)
      : history_(history), held_(held_by_name(history)) {}

  std::vector<std::string> judge() {
    for (const auto& [name, all] : held_) judge_overlaps(name, all);
    for (const std::string& words : judge_tokens(history_)) {
      wrong("token", words);
    }
    for (const MutexLog& log : history_.logs) {
      judge_log(log);
      judge_doubles(log);
      judge_errors(log);
    }
    for (const auto& [key, life] : history_.lives) judge_life(life);
    judge_run();
    judge_end();
    return std::move(wrongs_);
  }

 private:
  std::string at(nanoseconds time) const { return history_.moment(time); }

  void wrong(const std::string& rule, const std::string& words) {
    wrongs_.push_back(rule + ": " + words);
  }
  void wrong(const std::string& rule, const MutexLog& log,
             const std::string& words) {
    wrong(rule, log.name + ": " + log.who() + " " + words);
  }

  // --- overlap ---

  // Each is compared with the one of those before it that reaches furthest: a
  // long one may overlap many.
  void judge_overlaps(const std::string& name, const std::vector<Held>& all) {
    const Held* furthest = nullptr;
    for (const Held& one : all) {
      // Lost before it was known of.
      if (one.span.begin >= one.span.end) continue;
      if (furthest && one.span.begin < furthest->span.end) {
        wrong("overlap",
              name + ": " + words_of(*furthest) + ", and " + words_of(one));
      }
      if (!furthest || one.span.end > furthest->span.end) furthest = &one;
    }
  }
  std::string words_of(const Held& one) const {
    return one.log->who() +
           (one.got->ended ? " held it from " : " was promised it from ") +
           at(one.span.begin) + " to " + at(one.span.end);
  }

  void judge_doubles(const MutexLog& log) {
    for (const std::size_t i : log.doubles) {
      const Acquisition& got = log.acquisitions[i];
      wrong("overlap", log,
            "let thread " + std::to_string(got.thread) + " in at " +
                at(got.acquired) + " while another of its threads was in");
    }
  }

  // --- error ---

  void judge_errors(const MutexLog& log) {
    for (const Refusal& one : log.refusals) {
      if (one.is_timed && (one.why == "busy" || is_transient(one.why))) {
        continue;
      }
      wrong("error", log,
            std::string("ended ") + (one.is_timed ? "try_lock()" : "lock()") +
                " at " + at(one.at) + " with '" + one.why + "'");
    }
    for (const Acquisition& got : log.acquisitions) {
      if (!got.let_go || may_end_release(got.error)) continue;
      wrong("error", log,
            "ended release() at " + at(*got.let_go) + " with '" + got.error +
                "'");
    }
  }

  // --- process ---

  void judge_life(const Lifetime& life) {
    constexpr int kKilled = 128 + 9;
    const std::string who = life.who() + " ";
    if (life.hung) {
      wrong("process",
            who + "was asked to end, and had not by " + at(*life.hung));
    }
    if (!life.exited) {
      wrong("process", who + "was never seen to end");
    } else if (life.status != 0 && !(life.status == kKilled && life.killed)) {
      wrong("process", who + "ended at " + at(*life.exited) +
                           " with the status " + std::to_string(life.status));
    }
    for (const std::string& text : life.complaints) {
      wrong("process", who + "complained: " + text);
    }
  }

  void judge_log(const MutexLog& log) {
    const Lifetime* const life = history_.life_of(log);
    if (life == nullptr) {
      return wrong("process", log, "wrote a log, but was never started");
    }
    if (!log.problem.empty()) {
      wrong("process", log, "wrote in its log: " + log.problem);
    }
    // A worker that ends by itself gives back what it holds.
    if (log.unfinished && !life->killed) {
      wrong("process", log, "was not killed, and its log ends in the middle");
    }
    judge_clocks(log, *life);
  }

  // --- run ---

  void judge_clocks(const MutexLog& log, const Lifetime& life) {
    if (!log.clocks) {
      if (!life.killed) wrong("run", log, "did not write its clocks");
      return;
    }
    const auto [calendar, boot] = *log.clocks;
    if (std::chrono::abs(boot) > kBootClockSlack) {
      wrong("run", log, "saw its boot clock off by " + in_ms(boot));
    }
    if (std::chrono::abs(calendar - life.calendar) > kCalendarSlack) {
      wrong("run", log,
            "saw its calendar off by " + in_ms(calendar) + ", not by " +
                in_ms(life.calendar));
    }
  }
  static std::string in_ms(nanoseconds time) {
    return std::to_string(time / milliseconds(1)) + " ms";
  }

  void judge_run() {
    if (!history_.problem.empty()) {
      wrong("run", "the torture wrote: " + history_.problem);
    }
    std::set<int> out;
    for (const auto& [key, life] : history_.lives) out.insert(key.first);
    const std::size_t many = kManyForEach * out.size();
    std::size_t acquisitions = 0;
    for (const MutexLog& log : history_.logs) {
      acquisitions += log.acquisitions.size();
      if (!log.acquisitions.empty()) out.erase(log.process);
    }
    if (acquisitions < many) out.clear();
    for (const int process : out) {
      wrong("run", "process " + std::to_string(process) + " never got a lock");
    }
    if (history_.lives.empty()) wrong("run", "no process was started");
  }

  // --- end ---

  void judge_end() {
    std::set<std::string> missing = history_.names();
    for (const Taken& taken : history_.taken) missing.erase(taken.name);
    for (const std::string& name : missing) {
      wrong("end", name + ": could not be taken when all was over");
    }
  }

  const History& history_;
  const std::map<std::string, std::vector<Held>> held_;
  std::vector<std::string> wrongs_;
};

}  // namespace

std::vector<std::string> judge(const History& history) {
  return Judge(history).judge();
}

std::string counts_of(const History& history) {
  std::size_t acquisitions = 0, losses = 0, kills = 0;
  for (const MutexLog& log : history.logs) {
    acquisitions += log.acquisitions.size();
    losses += log.losses;
  }
  for (const auto& [key, life] : history.lives)
    kills += life.killed.has_value();
  return std::to_string(acquisitions) + " acquisitions, " +
         std::to_string(losses) + " losses, " + std::to_string(kills) +
         " kills, " + std::to_string(history.outages) + " outages";
}

}  // namespace torture
