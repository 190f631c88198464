// A calendar of its own for a process that is started with it: libfaketime, on
// CLOCK_REALTIME alone (Debian's package `faketime`).
#ifndef DDBMUTEX_TESTS_SUPPORT_FAKE_CALENDAR_HPP
#define DDBMUTEX_TESTS_SUPPORT_FAKE_CALENDAR_HPP

#include <chrono>
#include <string>
#include <vector>

namespace tests {

class FakeCalendar {
 public:
  // Whether it works in this build.  Not with clang++'s sanitizers: their
  // malloc() asks for the time, and libfaketime's first answer calls malloc().
  static bool works();

  // What goes wrong throws std::runtime_error.
  explicit FakeCalendar(std::chrono::seconds offset);
  ~FakeCalendar();
  FakeCalendar(const FakeCalendar&) = delete;
  FakeCalendar& operator=(const FakeCalendar&) = delete;

  std::chrono::seconds offset() const { return offset_; }
  void add_to(std::vector<std::string>& environment) const;
  // Seen at the next look at the calendar.
  void jump_to(std::chrono::seconds offset);

 private:
  std::string file_;
  std::chrono::seconds offset_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_FAKE_CALENDAR_HPP
