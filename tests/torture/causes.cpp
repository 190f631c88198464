#include "tests/torture/causes.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace torture {
namespace {

// What was down takes a while to be found up.
constexpr milliseconds kRecovery{1000};

bool meet(const Span& a, const Span& b) {
  return a.begin < b.end && b.begin < a.end;
}

bool was_down(const History& history, const Span& span) {
  return std::any_of(history.outages.begin(), history.outages.end(),
                     [&span](const Outage& outage) {
                       const Span down = outage.span;
                       return meet({down.begin, down.end + kRecovery}, span);
                     });
}

bool was_stopped(const Lifetime* life, const Span& span) {
  return life != nullptr &&
         std::any_of(life->stops.begin(), life->stops.end(),
                     [&span](const Span& stop) { return meet(stop, span); });
}

// How much of the span went by without the process or the table at work.
nanoseconds late_in(const Span& span, const MutexLog& log,
                    const History& history) {
  std::vector<Span> late = log.stalls;
  late.insert(late.end(), history.slow.begin(), history.slow.end());
  return span.end - span.begin - outside(span, united(std::move(late)));
}

// Whose it was is not told: any holder's of that name.
bool renewals_met_faults(const History& history, const std::string& name,
                         const Span& span) {
  const auto& all = history.faults;
  const auto from = std::partition_point(
      all.begin(), all.end(),
      [&span](const Fault& one) { return one.at < span.begin; });
  const auto to = std::partition_point(
      from, all.end(), [&span](const Fault& one) { return one.at < span.end; });
  const auto is_one = [&name](const Fault& fault) {
    const std::size_t size = fault.key.size();
    return fault.action == "UpdateItem" && size >= name.size() &&
           fault.key.compare(size - name.size(), name.size(), name) == 0;
  };
  return std::count_if(from, to, is_one) >= 2;
}

}  // namespace

std::vector<Causeless> causeless_losses(const History& history) {
  std::vector<Causeless> found;
  for (const MutexLog& log : history.logs) {
    for (const Told& told : log.losses) {
      const Span lease = {told.at - log.ttl, told.at};
      const Span longer = {told.at - 2 * log.ttl, told.at};
      const bool caused = told.reason != "expired" ||
                          was_stopped(history.life_of(log), lease) ||
                          was_down(history, lease) ||
                          late_in(longer, log, history) >= log.ttl / 8 ||
                          renewals_met_faults(history, log.name, lease);
      if (!caused) found.push_back({&log, told.at});
    }
  }
  return found;
}

}  // namespace torture
