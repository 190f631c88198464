// Asking a source of keys, as a test does.
//
//   const KeyOutcome outcome = asked(*source);
//   BOOST_TEST(said(outcome) == "failed: ...");
//   KeyOutcome late = asked(*source, 300ms);
#ifndef DDBMUTEX_TESTS_SUPPORT_ASKING_HPP
#define DDBMUTEX_TESTS_SUPPORT_ASKING_HPP

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <ctime>
#include <string>

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

// With much time, unless it is told otherwise.
inline ddbmutex::sigv4::KeyOutcome asked(
    ddbmutex::sigv4::KeySource& source,
    std::chrono::milliseconds within = std::chrono::minutes(1)) {
  ddbmutex::sigv4::Waker stop;
  return source.fetch(
      {ddbmutex::BootClock::now() + within, stop, std::time(nullptr)});
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_ASKING_HPP
