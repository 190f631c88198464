// Asking a source of keys, as a test does.
//
//   Asking asking;
//   const KeyOutcome outcome = asking.of(*source);
//   BOOST_TEST(said(outcome) == "failed: ...");
//   KeyOutcome late = asking.of(*source, 300ms);
//   asking.stopped(*source);  // Told to end once it has begun.
#ifndef DDBMUTEX_TESTS_SUPPORT_ASKING_HPP
#define DDBMUTEX_TESTS_SUPPORT_ASKING_HPP

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "sigv4/keys/credentials.hpp"

namespace tests {

// "found: the place", "none: the reason", "failed: ...", "broken: ...".
inline std::string said(const ddbmutex::sigv4::KeyOutcome& outcome) {
  using State = ddbmutex::sigv4::KeyOutcome::State;
  if (outcome.state == State::found) {
    BOOST_TEST(outcome.reason == "");
    return "found: " + outcome.source;
  }
  BOOST_TEST(outcome.source == "");
  BOOST_TEST(outcome.keys.access_key_id == "");
  BOOST_TEST(outcome.keys.secret_access_key.empty());
  BOOST_TEST(outcome.keys.session_token.empty());
  const char* state = outcome.state == State::none     ? "none: "
                      : outcome.state == State::failed ? "failed: "
                                                       : "broken: ";
  return state + outcome.reason;
}

// All that people are told.
inline std::string texts_of(const ddbmutex::sigv4::KeyOutcome& outcome) {
  return outcome.source + "\n" + outcome.reason + "\n" + outcome.warnings;
}

// On the boot clock, from now.
inline double seconds_left(const ddbmutex::sigv4::KeyOutcome& outcome) {
  return std::chrono::duration<double>(outcome.ends -
                                       ddbmutex::BootClock::now())
      .count();
}

class Asking {
 public:
  // `ahead`: how far our clock is.
  explicit Asking(std::chrono::seconds ahead = std::chrono::seconds(0))
      : ahead_(ahead) {}

  ddbmutex::sigv4::Fetch fetch(
      std::chrono::milliseconds within = std::chrono::seconds(60)) {
    return {ddbmutex::BootClock::now() + within, stop_,
            static_cast<std::int64_t>(time(nullptr)) + ahead_.count()};
  }
  ddbmutex::sigv4::KeyOutcome of(
      ddbmutex::sigv4::KeySource& source,
      std::chrono::milliseconds within = std::chrono::seconds(60)) {
    return source.fetch(fetch(within));
  }
  // Told to end as soon as `begun` has returned.
  ddbmutex::sigv4::KeyOutcome stopped(ddbmutex::sigv4::KeySource& source,
                                      const std::function<void()>& begun) {
    std::thread stopper([&] {
      begun();
      stop_.wake();
    });
    auto outcome = of(source);
    stopper.join();
    stop_.clear();
    return outcome;
  }

 private:
  const std::chrono::seconds ahead_;
  ddbmutex::sigv4::Waker stop_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_ASKING_HPP
