#include "tests/torture/table.hpp"

#include <algorithm>

#include "tests/torture/words.hpp"

namespace torture {
namespace {

constexpr std::size_t kToldOfEachRule = 20;

class Writer {
 public:
  std::string write(const History& history, const Findings& found) {
    run(found.counts);
    locks(found.counts);
    trouble(found.counts);
    losses(found.counts);
    end(history, found.counts);
    verdict(found);
    return std::move(text_);
  }

 private:
  void row(const std::string& what, const std::string& is,
           const std::string& more = {}) {
    constexpr std::size_t kFirst = 26;
    constexpr std::size_t kSecond = 10;
    text_ += "  " + what;
    text_.append(std::max(what.size(), kFirst) - what.size(), ' ');
    text_.append(std::max(is.size(), kSecond) - is.size(), ' ');
    text_ += is + (more.empty() ? "" : "   " + more) + "\n";
  }
  void row(const std::string& what, std::uint64_t is,
           const std::string& more = {}) {
    row(what, grouped(is), more);
  }
  template <class Map>
  void rows(const Map& map) {
    for (const auto& [what, is] : map) row("  " + what, is);
  }

  void run(const Counts& counts) {
    text_ += grouped(static_cast<std::uint64_t>(counts.time.count())) + " s, " +
             std::to_string(counts.processes) + " processes started " +
             grouped(counts.starts) + " times, " +
             std::to_string(counts.names) + " names\n\n";
  }

  void locks(const Counts& counts) {
    row("acquisitions", counts.acquisitions);
    row("calls without the lock", sum(counts.without));
    rows(counts.without);
    for (const auto& [text, times] : counts.errors) {
      row("    " + text, times);
    }
    row("hand-overs to another", counts.hand_overs);
    of_policy("deleted rows", counts.deleted);
    of_policy("kept rows", counts.kept);
    if (counts.kept.names > 0) tokens(counts);
    row("longest wait", lasting(counts.longest_wait));
    row("  for a name that was free", lasting(counts.longest_free_wait));
  }

  static std::size_t sum(const std::map<std::string, std::size_t>& all) {
    std::size_t sum = 0;
    for (const auto& [what, is] : all) sum += is;
    return sum;
  }

  void of_policy(const std::string& what, const OfPolicy& counts) {
    if (counts.names == 0) return;
    row(what, grouped(counts.names), "names");
    row("  acquisitions", counts.acquisitions,
        grouped(counts.hand_overs) + " hand-overs");
    row("  faults", counts.faults, grouped(counts.losses) + " losses told");
    free_time("  free after an unlock", counts.after_unlock);
    free_time("  free after a death", counts.after_death);
  }

  void tokens(const Counts& counts) {
    const Token given = counts.kept.acquisitions;
    const Token nobodys = counts.numbers - std::min(counts.numbers, given);
    row("  numbers", counts.numbers, grouped(nobodys) + " of them nobody's");
  }

  // While the next one waited for it.
  void free_time(const std::string& what, const Sample& sample) {
    row(what, sample.times.size(),
        "p50 " + lasting(sample.percentile(50)) + ", p99 " +
            lasting(sample.percentile(99)));
  }

  void trouble(const Counts& counts) {
    row("faults", counts.all_faults);
    rows(counts.faults);
    row("kills", counts.kills);
    row("stops", counts.stops);
    row("calendar jumps", counts.jumps);
    std::size_t outages = 0;
    for (const auto& [what, all] : counts.outages) outages += all.count;
    row("outages", outages);
    for (const auto& [what, all] : counts.outages) {
      row("  " + what, all.count, lasting(all.time) + " in all");
    }
    row("late by itself", lasting(counts.slow),
        lasting(counts.stalled) + " all processes");
  }

  void losses(const Counts& counts) {
    row("losses told", sum(counts.losses),
        grouped(counts.losses_seen) + " seen by a holder");
    rows(counts.losses);
    row("leases in danger", counts.dangers);
  }

  void end(const History& history, const Counts& counts) {
    std::string names;
    for (const std::string& name : history.left) {
      names += (names.empty() ? "" : ", ") + name;
    }
    row("rows left by the killed", counts.rows_left, names);
    row("slowest taken afterwards", lasting(counts.slowest_taken));
  }

  void verdict(const Findings& found) {
    std::map<Violation::Rule, std::vector<std::string>> by_rule;
    for (const Violation& one : found.violations) {
      by_rule[one.rule].push_back(one.words);
    }
    text_ += "\n";
    for (const std::string& one : found.shortfalls) {
      text_ += "  too few: " + one + "\n";
    }
    for (const auto& [rule, all] : by_rule) {
      text_ += std::string("  WRONG: ") + name_of(rule) + ", " +
               grouped(all.size()) + "\n";
      const std::size_t told = std::min(all.size(), kToldOfEachRule);
      for (std::size_t i = 0; i < told; ++i) text_ += "    " + all[i] + "\n";
      if (told == all.size()) continue;
      text_ += "    and " + grouped(all.size() - told) + " more\n";
    }
    if (by_rule.empty()) text_ += "  nothing wrong\n";
  }

  std::string text_;
};

}  // namespace

std::string table_of(const History& history, const Findings& found) {
  return Writer().write(history, found);
}

}  // namespace torture
