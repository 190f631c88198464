// When the machine was late during a torture: whatever depends on how fast it
// is counts only in the rest of the time.
//
//   const Watch own(10ms, [&](nanoseconds from, nanoseconds to) {
//     diary.stalled(from, to);
//   });
//   const Watch table(50ms, [&](nanoseconds from, nanoseconds to) {
//     events.slow(from, to);
//   }, [&] { client.call(...); });
#ifndef DDBMUTEX_TESTS_TORTURE_WATCH_HPP
#define DDBMUTEX_TESTS_TORTURE_WATCH_HPP

#include <atomic>
#include <chrono>
#include <functional>
#include <thread>
#include <utility>

#include "tests/support/waiting.hpp"
#include "tests/torture/diary.hpp"

namespace torture {

// While one exists, a thread of its own asks again and again, and tells
// from when to when it had to wait for longer than it should: for its turn to
// run, and for the answer, if it asks something.
class Watch {
 public:
  using Tell = std::function<void(nanoseconds from, nanoseconds to)>;

  Watch(
      milliseconds each, Tell tell, std::function<void()> ask = [] {})
      : each_(each),
        tell_(std::move(tell)),
        ask_(std::move(ask)),
        thread_([this] {
          while (!ended_) look();
        }) {}
  ~Watch() {
    ended_ = true;
    thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  static constexpr milliseconds kLate{20};  // Less explains nothing.

  void look() {
    const nanoseconds begin = now();
    tests::pause(each_);
    ask_();
    const nanoseconds end = now();
    if (end - begin > each_ + kLate) tell_(begin + each_, end);
  }

  const milliseconds each_;
  const Tell tell_;
  const std::function<void()> ask_;
  std::atomic<bool> ended_{false};
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_WATCH_HPP
