// Whether renewals are spread over time, or come in swarms.
//
// Time is cut into windows of a hundredth of the lease, so that a period (half
// a lease, in which every lock is renewed once) has 50.  In no period may
// three windows hold more than half of its renewals.  Evenly spread over a
// quarter of the lease, they hold an eighth; a machine that stood still for a
// while before it caught up may double that.
#ifndef DDBMUTEX_TESTS_SUPPORT_SPREAD_HPP
#define DDBMUTEX_TESTS_SUPPORT_SPREAD_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <vector>

namespace tests {

constexpr std::size_t kWindowsPerLease = 100;
constexpr std::size_t kWindowsPerPeriod = kWindowsPerLease / 2;

// Of the renewals of the worst period, in percent, those of its three busiest
// windows.  `windows` are all that were sent, window by window; what does not
// make a whole period at the end does not count, nor does a period of fewer
// than `least`: while the engine is away next to none may come.
inline std::uint64_t busiest_percent(const std::vector<std::uint64_t>& windows,
                                     std::uint64_t least = 1) {
  std::uint64_t worst = 0;
  for (std::size_t begin = 0; begin + kWindowsPerPeriod <= windows.size();
       begin += kWindowsPerPeriod) {
    const auto from = windows.begin() + static_cast<std::ptrdiff_t>(begin);
    std::vector<std::uint64_t> period(from, from + kWindowsPerPeriod);
    std::sort(period.begin(), period.end(), std::greater<>());
    const auto all =
        std::accumulate(period.begin(), period.end(), std::uint64_t{0});
    if (all < least) continue;
    worst = std::max(worst, 100 * (period[0] + period[1] + period[2]) / all);
  }
  return worst;
}

constexpr std::uint64_t kMostInBusiest = 50;

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_SPREAD_HPP
