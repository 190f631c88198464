#include "tests/support/asking.hpp"

#include <boost/test/unit_test.hpp>
#include <ctime>

namespace tests {

std::string said(const ddbmutex::sigv4::KeyOutcome& outcome) {
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

std::string texts_of(const ddbmutex::sigv4::KeyOutcome& outcome) {
  return outcome.source + "\n" + outcome.reason + "\n" + outcome.warnings;
}

double seconds_left(const ddbmutex::sigv4::KeyOutcome& outcome) {
  return std::chrono::duration<double>(outcome.ends -
                                       ddbmutex::BootClock::now())
      .count();
}

ddbmutex::sigv4::KeyOutcome asked(ddbmutex::sigv4::KeySource& source,
                                  std::chrono::milliseconds within) {
  ddbmutex::sigv4::Waker stop;
  return source.fetch(
      {ddbmutex::BootClock::now() + within, stop, std::time(nullptr)});
}

}  // namespace tests
