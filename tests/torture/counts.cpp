#include "tests/torture/counts.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "ddbmutex.hpp"

namespace torture {
namespace {

// The name of the lock whose row has that key.
std::string lock_of(const std::string& key) {
  const std::string prefix = ddbmutex::TableOptions().prefix;
  return key.rfind(prefix, 0) == 0 ? key.substr(prefix.size()) : key;
}

// Of one name.
void count_hand_overs(const std::vector<Held>& all, OfPolicy& counts) {
  const Held* furthest = nullptr;
  const Held* last = nullptr;
  for (const Held& one : all) {
    if (one.span.begin >= one.span.end) continue;
    if (last != nullptr && last->log->process != one.log->process) {
      ++counts.hand_overs;
      const nanoseconds since = furthest->span.end;
      if (one.got->wanted <= since && since <= one.span.begin) {
        Sample& sample =
            furthest->got->ended ? counts.after_unlock : counts.after_death;
        sample.times.push_back(one.span.begin - since);
      }
    }
    if (furthest == nullptr || one.span.end > furthest->span.end) {
      furthest = &one;
    }
    last = &one;
  }
}

void count_log(const MutexLog& log, Counts& counts) {
  counts.acquisitions += log.acquisitions.size();
  OfPolicy& of_policy = log.kept ? counts.kept : counts.deleted;
  of_policy.acquisitions += log.acquisitions.size();
  of_policy.losses += log.losses.size();
  counts.dangers += log.dangers.size();
  for (const Told& told : log.losses) ++counts.losses[told.reason];
  for (const Acquisition& got : log.acquisitions) {
    counts.losses_seen += got.loss_was_seen();
    counts.longest_wait =
        std::max(counts.longest_wait, got.acquired - got.wanted);
  }
  for (const Wait& wait : log.waits) {
    if (wait.acquired || !wait.end) continue;
    const bool failed = wait.why.rfind("error ", 0) == 0;
    ++counts.without[failed ? "error" : wait.why];
    if (failed) ++counts.errors[wait.why.substr(6)];
  }
}

void count_lives(const History& history, Counts& counts) {
  std::set<int> processes;
  for (const auto& [key, life] : history.lives) {
    processes.insert(key.first);
    counts.kills += life.killed.has_value();
    counts.stops += life.stops.size();
    counts.jumps += life.jumps.size();
  }
  counts.starts = history.lives.size();
  counts.processes = processes.size();
}

// The logs of a process say all the same.
nanoseconds stalled(const History& history) {
  std::map<std::pair<int, int>, nanoseconds> by_process;
  for (const MutexLog& log : history.logs) {
    nanoseconds all{};
    for (const Span& one : log.stalls) all += one.end - one.begin;
    nanoseconds& most = by_process[{log.process, log.incarnation}];
    most = std::max(most, all);
  }
  nanoseconds sum{};
  for (const auto& [process, time] : by_process) sum += time;
  return sum;
}

}  // namespace

nanoseconds Sample::percentile(int percent) const {
  if (times.empty()) return {};
  std::vector<nanoseconds> sorted = times;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t rank =
      (sorted.size() * static_cast<std::size_t>(percent) + 99) / 100;
  return sorted[std::max<std::size_t>(rank, 1) - 1];
}

Counts count(const History& history) {
  Counts counts;
  counts.time = std::chrono::floor<seconds>(
      history.quiet.value_or(history.end) - history.begin);
  counts.names = history.names().size();
  const std::set<std::string> kept = history.kept_names();
  for (const auto& [name, all] : held_by_name(history)) {
    OfPolicy& of_policy = kept.count(name) ? counts.kept : counts.deleted;
    ++of_policy.names;
    count_hand_overs(all, of_policy);
  }
  counts.hand_overs = counts.deleted.hand_overs + counts.kept.hand_overs;
  for (const MutexLog& log : history.logs) count_log(log, counts);
  count_lives(history, counts);
  for (const Fault& fault : history.faults) {
    ++counts.faults[fault.kind];
    const bool met_kept = kept.count(lock_of(fault.key)) > 0;
    ++(met_kept ? counts.kept : counts.deleted).faults;
  }
  for (const KeptRow& row : history.rows) counts.numbers += row.token;
  counts.all_faults = history.faults.size();
  for (const Outage& outage : history.outages) {
    Counts::Outages& all = counts.outages[outage.what];
    ++all.count;
    all.time += outage.span.end - outage.span.begin;
  }
  for (const Span& one : history.slow) counts.slow += one.end - one.begin;
  counts.stalled = stalled(history);
  counts.rows_left = history.left.size();
  for (const Taken& taken : history.taken) {
    counts.slowest_taken = std::max(counts.slowest_taken, taken.waited);
  }
  return counts;
}

}  // namespace torture
