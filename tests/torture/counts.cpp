#include "tests/torture/counts.hpp"

#include <algorithm>

namespace torture {
namespace {

// Of one name.
void count_hand_overs(const std::vector<Held>& all, Counts& counts) {
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
  for (const auto& [name, all] : held_by_name(history)) {
    count_hand_overs(all, counts);
  }
  for (const MutexLog& log : history.logs) count_log(log, counts);
  count_lives(history, counts);
  for (const Fault& fault : history.faults) ++counts.faults[fault.kind];
  counts.all_faults = history.faults.size();
  for (const Outage& outage : history.outages) {
    Counts::Outages& all = counts.outages[outage.what];
    ++all.count;
    all.time += outage.span.end - outage.span.begin;
  }
  counts.rows_left = history.left.size();
  for (const Taken& taken : history.taken) {
    counts.slowest_taken = std::max(counts.slowest_taken, taken.waited);
  }
  return counts;
}

}  // namespace torture
