#include "tests/torture/judge.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "ddbmutex.hpp"
#include "tests/torture/causes.hpp"
#include "tests/torture/tokens.hpp"
#include "tests/torture/words.hpp"

namespace torture {
namespace {

using Rule = Violation::Rule;

// What the worker writes of a call that ended with a passing error.
bool is_passing(const std::string& why) {
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
  return error.empty() || is_passing(error) ||
         error == make_error_code(Errc::lease_lost).message();
}

class Judge {
 public:
  Judge(const History& history, const Bounds& bounds)
      : history_(history),
        bounds_(bounds),
        held_(held_by_name(history)),
        longest_lease_(longer(history.longest_ttl())) {
    for (const Outage& outage : history.outages) down_.push_back(outage.span);
  }

  Findings judge() {
    found_.counts = count(history_);
    for (const auto& [name, all] : held_) judge_overlaps(name, all);
    for (const TokenProblem& one : judge_tokens(history_)) {
      found_.violations.push_back(
          {Rule::token, one.words, one.name, one.process, one.at});
    }
    for (const MutexLog& log : history_.logs) {
      judge_log(log);
      judge_doubles(log);
      judge_losses(log);
      judge_errors(log);
      judge_waits(log);
      judge_timed(log);
      judge_stuck(log);
    }
    judge_causes();
    judge_quiet();
    for (const auto& [key, life] : history_.lives) judge_life(life);
    judge_run();
    measure();
    return std::move(found_);
  }

 private:
  // --- Words ---

  std::string at(nanoseconds time) const {
    return moment(time - history_.begin);
  }
  static std::string who(int process, int incarnation) {
    return "process " + std::to_string(process) + "." +
           std::to_string(incarnation);
  }
  static std::string who(const MutexLog& log) {
    return who(log.process, log.incarnation);
  }

  void blame(Rule rule, const std::string& words) {
    found_.violations.push_back({rule, words, {}, {}, {}});
  }
  void blame(Rule rule, const MutexLog& log, nanoseconds time,
             const std::string& words) {
    found_.violations.push_back({rule, log.name + ": " + who(log) + " " + words,
                                 log.name, log.process, time});
  }
  void blame(Rule rule, const Lifetime& life, nanoseconds time,
             const std::string& words) {
    found_.violations.push_back(
        {rule,
         who(life.process, life.incarnation) + " " + words,
         {},
         life.process,
         time});
  }

  // --- 1: no two hold a name at once ---

  // Each is compared with the one of those before it that reaches furthest: a
  // long one may overlap many.
  void judge_overlaps(const std::string& name, std::vector<Held> all) {
    const auto key = [](const Held& one) {
      return std::pair(one.span.begin, one.span.end);
    };
    std::stable_sort(all.begin(), all.end(), [&](const Held& a, const Held& b) {
      return key(a) < key(b);
    });
    const Held* furthest = nullptr;
    for (const Held& one : all) {
      // Lost before it was known of.
      if (one.span.begin >= one.span.end) continue;
      if (furthest && one.span.begin < furthest->span.end) {
        found_.violations.push_back(
            {Rule::overlap,
             name + ": " + words_of(*furthest) + ", and " + words_of(one), name,
             one.log->process, one.span.begin});
      }
      if (!furthest || one.span.end > furthest->span.end) furthest = &one;
    }
  }
  std::string words_of(const Held& one) const {
    return who(*one.log) +
           (one.got->ended ? " held it from " : " was promised it from ") +
           at(one.span.begin) + " to " + at(one.span.end);
  }

  void judge_doubles(const MutexLog& log) {
    for (const std::size_t i : log.doubles) {
      const Acquisition& got = log.acquisitions[i];
      blame(Rule::overlap, log, got.acquired,
            "let thread " + std::to_string(got.thread) + " in at " +
                at(got.acquired) + " while another of its threads was in");
    }
  }

  // --- 2: losses ---

  void judge_losses(const MutexLog& log) {
    const Lifetime* const life = history_.life_of(log);
    if (life == nullptr) return;  // Blamed already.
    for (const LossProblem& one : torture::judge_losses(
             log, *life, history_.still(log), bounds_.loss, history_.begin)) {
      blame(Rule::loss, log, one.at, one.words);
    }
  }

  void judge_causes() {
    const auto all = causeless_losses(history_);
    const auto most = static_cast<std::size_t>(
        bounds_.causeless_per_minute *
        (1 + (history_.end - history_.begin) / std::chrono::minutes(1)));
    if (all.size() <= most) return;
    for (const Causeless& one : all) {
      blame(Rule::loss, *one.log, one.at,
            "let its lease run out at " + at(one.at) +
                ", though nothing kept it from renewing it");
    }
  }

  // --- 3: errors ---

  void judge_errors(const MutexLog& log) {
    for (const Wait& wait : log.waits) {
      if (wait.acquired || !wait.end || wait.why == "cancelled") continue;
      const bool waits_on = wait.kind == Wait::Kind::lock;
      if (!waits_on && (wait.why == "busy" || is_passing(wait.why))) continue;
      blame(Rule::error, log, *wait.end,
            std::string("ended ") + (waits_on ? "lock()" : "try_lock()") +
                " at " + at(*wait.end) + " with '" + wait.why + "'");
    }
    for (const Acquisition& got : log.acquisitions) {
      if (!got.let_go || may_end_release(got.error)) continue;
      blame(Rule::error, log, *got.let_go,
            "ended release() at " + at(*got.let_go) + " with '" + got.error +
                "'");
    }
  }

  // --- 4: waits ---

  // Where nobody held the name; each in one piece.
  const std::vector<Span>& gaps_of(const std::string& name) {
    const auto [it, is_new] = gaps_.try_emplace(name);
    if (!is_new) return it->second;
    nanoseconds from = history_.begin;
    for (const Held& one : held_.at(name)) {
      if (one.span.begin > from) it->second.push_back({from, one.span.begin});
      from = std::max(from, one.span.end);
    }
    if (history_.end > from) it->second.push_back({from, history_.end});
    return it->second;
  }

  // For which no waiter of a process can answer.
  const std::vector<Span>& excuses_of(const MutexLog& log) {
    const auto [it, is_new] = excuses_.try_emplace(&log);
    if (!is_new) return it->second;
    std::vector<Span> all = history_.still(log);
    all.insert(all.end(), down_.begin(), down_.end());
    all.insert(all.end(), history_.slow.begin(), history_.slow.end());
    return it->second = united(std::move(all));
  }

  Span span_of(const Wait& wait, const Lifetime* life) const {
    if (wait.end) return {wait.begin, *wait.end};
    if (life != nullptr && life->killed) return {wait.begin, *life->killed};
    if (life != nullptr && life->exited) return {wait.begin, *life->exited};
    return {wait.begin, history_.end};
  }

  void judge_waits(const MutexLog& log) {
    const Lifetime* const life = history_.life_of(log);
    const std::vector<Span>& gaps = gaps_of(log.name);
    const std::vector<Span>& excuses = excuses_of(log);
    const nanoseconds most = longest_lease_ + bounds_.wait;
    for (const Wait& wait : log.waits) {
      const Span span = span_of(wait, life);
      const Span worst = worst_of(span, gaps, excuses);
      const nanoseconds time = outside(worst, excuses);
      found_.counts.longest_free_wait =
          std::max(found_.counts.longest_free_wait, time);
      const nanoseconds all = free_in(span, gaps, excuses);
      if (time > most) {
        blame(Rule::wait, log, worst.begin,
              waited(span) + ", though the lock was free for " + lasting(time) +
                  " of it in one piece");
      } else if (all > longest_lease_ + bounds_.passed_over) {
        blame(Rule::wait, log, span.begin,
              waited(span) + ", and was passed over while the lock was free " +
                  "for " + lasting(all) + " of it in all");
      }
    }
  }

  std::string waited(const Span& span) const {
    return "waited from " + at(span.begin) + " to " + at(span.end);
  }

  // However long the name was held, or nothing could be reached.
  void judge_timed(const MutexLog& log) {
    const Lifetime* const life = history_.life_of(log);
    const std::vector<Span> still = history_.still(log);
    for (const Wait& wait : log.waits) {
      if (wait.kind == Wait::Kind::lock) continue;
      const Span span = span_of(wait, life);
      if (outside(span, still) <= bounds_.timed) continue;
      blame(Rule::wait, log, span.begin,
            waited(span) + " in a call that was to end in time");
    }
  }

  // By then the dead have been waited out, and every client has tried again.
  void judge_stuck(const MutexLog& log) {
    if (!history_.calm) return;
    const nanoseconds most = longest_lease_ + bounds_.calm;
    for (const Wait& wait : log.waits) {
      const Span span = span_of(wait, history_.life_of(log));
      if (span.begin >= *history_.calm) continue;
      if (outside({*history_.calm, span.end}, excuses_of(log)) <= most) {
        continue;
      }
      blame(Rule::wait, log, span.begin,
            waited(span) + ", which was calm since " + at(*history_.calm));
    }
  }

  static nanoseconds free_in(const Span& wait, const std::vector<Span>& gaps,
                             const std::vector<Span>& excuses) {
    nanoseconds all{};
    auto it = std::partition_point(
        gaps.begin(), gaps.end(),
        [&wait](const Span& gap) { return gap.end <= wait.begin; });
    for (; it != gaps.end() && it->begin < wait.end; ++it) {
      all += outside(
          {std::max(it->begin, wait.begin), std::min(it->end, wait.end)},
          excuses);
    }
    return all;
  }

  // The part of a wait in which the name was free for longest.
  static Span worst_of(const Span& wait, const std::vector<Span>& gaps,
                       const std::vector<Span>& excuses) {
    Span worst;
    nanoseconds longest{};
    auto it = std::partition_point(
        gaps.begin(), gaps.end(),
        [&wait](const Span& gap) { return gap.end <= wait.begin; });
    for (; it != gaps.end() && it->begin < wait.end; ++it) {
      const Span part = {std::max(it->begin, wait.begin),
                         std::min(it->end, wait.end)};
      if (part.end - part.begin <= longest) continue;
      const nanoseconds time = outside(part, excuses);
      if (time <= longest) continue;
      longest = time;
      worst = part;
    }
    return worst;
  }

  // --- 5: after the run ---

  void judge_quiet() {
    const nanoseconds most = longest_lease_ + bounds_.quiet;
    std::set<std::string> missing = history_.names();
    for (const Taken& taken : history_.taken) {
      missing.erase(taken.name);
      const Span wait = {taken.at - taken.waited, taken.at};
      if (outside(wait, history_.slow) <= most) continue;
      found_.violations.push_back({Rule::quiet,
                                   taken.name + ": was taken only " +
                                       lasting(taken.waited) +
                                       " after all was quiet",
                                   taken.name,
                                   {},
                                   taken.at});
    }
    for (const std::string& name : missing) {
      found_.violations.push_back({Rule::quiet,
                                   name + ": was never taken after the run",
                                   name,
                                   {},
                                   history_.end});
    }
    if (!history_.quiet) blame(Rule::quiet, "it never got quiet");
  }

  // --- 6: processes ---

  void judge_life(const Lifetime& life) {
    constexpr int kKilled = 128 + 9;
    if (life.hung) {
      blame(Rule::process, life, *life.hung,
            "was asked to end, and had not by " + at(*life.hung));
    }
    if (!life.exited) {
      blame(Rule::process, life, history_.end, "was never seen to end");
    } else if (life.status != 0 && !(life.status == kKilled && life.killed)) {
      blame(Rule::process, life, *life.exited,
            "ended at " + at(*life.exited) + " with the status " +
                std::to_string(life.status));
    }
    for (const std::string& text : life.complaints) {
      blame(Rule::process, life, life.exited.value_or(history_.end),
            "complained: " + text);
    }
  }

  void judge_log(const MutexLog& log) {
    const Lifetime* const life = history_.life_of(log);
    const nanoseconds time = life == nullptr ? history_.begin : life->begin;
    if (life == nullptr) {
      blame(Rule::process, log, time, "wrote a log, but was never started");
    }
    if (!log.problem.empty()) {
      blame(Rule::process, log, time, "wrote in its log: " + log.problem);
    }
    if (life != nullptr && !life->killed && ends_in_the_middle(log)) {
      blame(Rule::process, log, life->exited.value_or(history_.end),
            "was not killed, and its log ends in the middle");
    }
    judge_clocks(log, life, time);
  }

  // A worker that ends by itself gives back what it holds.
  static bool ends_in_the_middle(const MutexLog& log) {
    return log.cut_short ||
           std::any_of(log.waits.begin(), log.waits.end(),
                       [](const Wait& one) { return !one.end; }) ||
           std::any_of(log.acquisitions.begin(), log.acquisitions.end(),
                       [](const Acquisition& one) { return !one.let_go; });
  }

  // --- 7: the run was what it says ---

  void judge_clocks(const MutexLog& log, const Lifetime* life,
                    nanoseconds time) {
    if (!log.clocks) {
      if (life != nullptr && life->killed) return;
      return blame(Rule::run, log, time, "did not write its clocks");
    }
    if (std::chrono::abs(log.clocks->boot) > bounds_.boot) {
      blame(Rule::run, log, time,
            "saw its boot clock off by " + lasting(log.clocks->boot));
    }
    if (life == nullptr) return;
    if (std::chrono::abs(log.clocks->calendar - life->calendar) <=
        bounds_.calendar) {
      return;
    }
    blame(Rule::run, log, time,
          "saw its calendar off by " + lasting(log.clocks->calendar) +
              ", not by " + lasting(life->calendar));
  }

  void judge_run() {
    if (!history_.problem.empty()) {
      blame(Rule::run, "the driver wrote: " + history_.problem);
    }
    std::set<int> out;
    for (const auto& [key, life] : history_.lives) out.insert(key.first);
    for (const auto& [name, all] : held_) {
      for (const Held& one : all) out.erase(one.log->process);
    }
    for (const int process : out) {
      blame(Rule::run,
            "process " + std::to_string(process) + " never got a lock");
    }
    if (!history_.kept_names().empty() &&
        found_.counts.all_faults >= bounds_.faults_of_both &&
        found_.counts.kept.faults == 0) {
      blame(Rule::run, "no fault ever met a kept row");
    }
    if (history_.lives.empty()) blame(Rule::run, "no process was started");
    if (found_.counts.time < bounds_.all_kinds_within) return;
    std::set<std::string> missing(bounds_.fault_kinds.begin(),
                                  bounds_.fault_kinds.end());
    for (const Fault& fault : history_.faults) missing.erase(fault.kind);
    for (const std::string& kind : missing) {
      blame(Rule::run, "no fault '" + kind + "' was ever made");
    }
  }

  // Against the bars, which are for 600 s.
  void measure() {
    const seconds run = bounds_.time.value_or(found_.counts.time);
    const auto bar = [this, run](std::size_t is, std::size_t for_all,
                                 const char* what) {
      constexpr std::size_t kAll = 600;
      const auto time = static_cast<std::size_t>(run.count());
      const std::size_t least = for_all * time / kAll;
      if (is >= least) return;
      found_.shortfalls.push_back(std::to_string(is) + " " + what + " of " +
                                  std::to_string(least));
    };
    const Counts& counts = found_.counts;
    bar(counts.acquisitions, bounds_.acquisitions, "acquisitions");
    bar(counts.all_faults, bounds_.faults, "faults");
    bar(counts.kills + counts.stops, bounds_.kills_and_stops,
        "kills and stops");
  }

  const History& history_;
  const Bounds bounds_;
  Findings found_;
  const std::map<std::string, std::vector<Held>> held_;
  const nanoseconds longest_lease_;
  std::vector<Span> down_;
  std::map<std::string, std::vector<Span>> gaps_;
  std::map<const MutexLog*, std::vector<Span>> excuses_;
};

}  // namespace

const char* name_of(Violation::Rule rule) {
  switch (rule) {
    case Rule::overlap:
      return "overlap";
    case Rule::token:
      return "token";
    case Rule::loss:
      return "loss";
    case Rule::error:
      return "error";
    case Rule::wait:
      return "wait";
    case Rule::quiet:
      return "quiet";
    case Rule::process:
      return "process";
    case Rule::run:
      return "run";
  }
  return "?";
}

Findings judge(const History& history, const Bounds& bounds) {
  return Judge(history, bounds).judge();
}

}  // namespace torture
