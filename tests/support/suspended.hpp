// A machine that is suspended, as far as poll(2) can tell: while one of these
// exists, no poll(2) of this process on descriptors times out.  (The kernel
// counts it on a clock that stands still during a suspend.)  What else is
// waited for, and timers on the boot clock, wakes it as always.  So whoever
// relies on a timeout is late by the whole time, and a test sees it.
//
// A wait that had begun before goes on as it was.  One at a time.
#ifndef DDBMUTEX_TESTS_SUPPORT_SUSPENDED_HPP
#define DDBMUTEX_TESTS_SUPPORT_SUSPENDED_HPP

namespace tests {

class Suspended {
 public:
  Suspended();
  ~Suspended();  // Ends waits whose time is over.
  Suspended(const Suspended&) = delete;
  Suspended& operator=(const Suspended&) = delete;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_SUSPENDED_HPP
