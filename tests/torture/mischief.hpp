// What a torture does to its processes and its gateway, and when: decided by
// chance before it begins, so that a seed repeats it.
//
//   for (const Deed& deed : plan(seed, minutes(10), true)) ...  // In order.
//   for (const tests::Fault& fault : faults()) gateway.add(fault);
#ifndef DDBMUTEX_TESTS_TORTURE_MISCHIEF_HPP
#define DDBMUTEX_TESTS_TORTURE_MISCHIEF_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <vector>

#include "tests/support/gateway.hpp"

namespace torture {

struct Deed {
  enum class Kind {
    start,     // A process that does not run, with a calendar.
    kill,      // By SIGKILL; one that is stopped, too.
    stop,      // By SIGSTOP.
    go_on,     // By SIGCONT.
    calendar,  // Jumps.
    refuse,    // The gateway cuts all connections, and takes no new ones,
    hang,      // or lets nothing go on,
    open,      // or works again.
  };

  std::chrono::milliseconds at{0};  // Since the torture began.
  Kind kind = Kind::start;
  int process = 0;  // Of those about a process.
  // How far its calendar is off; nothing: the machine's own, which does not
  // jump.  Of start and calendar.
  std::optional<std::chrono::seconds> offset = std::nullopt;
  std::uint32_t seed = 0;  // Of start.
};

// In order of time, and so that each makes sense after those before it.  What
// is stopped or down at the end stays so.  Without calendars all of them are
// the machine's own.
std::vector<Deed> plan(std::uint32_t seed, std::chrono::milliseconds time,
                       bool calendars);

// What the gateway does, all kinds at once, each with its chance.
std::vector<tests::Fault> faults();

// After which nothing of a fault is still to come.
constexpr std::chrono::milliseconds kLatestCopy{5000};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_MISCHIEF_HPP
