// Where keys come from, in which order, and what is said when there are none.
#include <stdlib.h>

#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sigv4/credentials.hpp"
#include "tests/support/home.hpp"

namespace {

using namespace ddbmutex::sigv4;
using tests::has;
using tests::Home;
using State = KeyOutcome::State;

// "id secret token", "none: ..." or "broken: ...".
std::string said(const KeyOutcome& outcome) {
  const Credentials& keys = outcome.keys;
  if (outcome.state == State::found) {
    BOOST_TEST(outcome.reason == "");
    return keys.access_key_id + " " + keys.secret_access_key + " " +
           keys.session_token;
  }
  BOOST_TEST((keys.access_key_id + keys.secret_access_key).empty());
  return (outcome.state == State::none ? "none: " : "broken: ") +
         outcome.reason;
}

std::string usual(const Home& home, const KeyOptions& options = {}) {
  return said(usual_keys(options, home.environment())());
}

std::string of_profile(const Home& home, const ProfileOptions& options = {}) {
  return said(profile_keys(options, home.environment())());
}

void set_environment_keys(Home& home, const std::string& token = "") {
  home.variables["AWS_ACCESS_KEY_ID"] = "env-id";
  home.variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
  if (!token.empty()) home.variables["AWS_SESSION_TOKEN"] = token;
}

// A section with a whole pair that begins with `who`.
std::string pair_of(const std::string& who) {
  return "aws_access_key_id = " + who + "-id\naws_secret_access_key = " + who +
         "-secret\n";
}

// Set in this process's own environment, and put back.
class ProcessVariable {
 public:
  ProcessVariable(const char* name, const char* value)
      : name_(name), before_(process_environment(name)) {
    setenv(name, value, 1);
  }
  ~ProcessVariable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  ProcessVariable(const ProcessVariable&) = delete;
  ProcessVariable& operator=(const ProcessVariable&) = delete;

 private:
  const char* const name_;
  const std::optional<std::string> before_;
};

std::string path_of(const Home& home, const char* name) {
  return in_quotes((home.root / ".aws" / name).string());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(credentials)

BOOST_AUTO_TEST_CASE(given_keys_are_taken_as_they_are) {
  BOOST_TEST(said(given_keys({"id", "secret", ""})()) == "id secret ");
  BOOST_TEST(said(given_keys({"id", "s/+=", "token"})()) == "id s/+= token");
}

BOOST_AUTO_TEST_CASE(half_of_a_given_pair_is_broken) {
  BOOST_TEST(said(given_keys({"id", "", ""})()) ==
             "broken: access_key_id without secret_access_key in the options");
  BOOST_TEST(said(given_keys({"", "secret", "token"})()) ==
             "broken: secret_access_key without access_key_id in the options");
  BOOST_TEST(said(given_keys({"", "", "token"})()) ==
             "none: no access_key_id in the options");
}

BOOST_AUTO_TEST_CASE(environment_keys_are_taken_with_and_without_token) {
  Home home;
  const KeySource source = environment_keys(home.environment());
  set_environment_keys(home);
  BOOST_TEST(said(source()) == "env-id env-secret ");
  home.variables["AWS_SESSION_TOKEN"] = "env-token";
  BOOST_TEST(said(source()) == "env-id env-secret env-token");
}

BOOST_AUTO_TEST_CASE(environment_without_keys_is_passed_over) {
  Home home;
  const KeySource source = environment_keys(home.environment());
  const std::string none = "none: no AWS_ACCESS_KEY_ID in the environment";
  BOOST_TEST(said(source()) == none);
  home.variables["AWS_ACCESS_KEY_ID"] = "";
  home.variables["AWS_SECRET_ACCESS_KEY"] = "";
  home.variables["AWS_SESSION_TOKEN"] = "token";
  BOOST_TEST(said(source()) == none);
}

BOOST_AUTO_TEST_CASE(half_a_pair_in_the_environment_is_broken) {
  for (const bool empty : {false, true}) {
    Home home;
    const KeySource source = environment_keys(home.environment());
    home.variables["AWS_ACCESS_KEY_ID"] = "env-id";
    if (empty) home.variables["AWS_SECRET_ACCESS_KEY"] = "";
    BOOST_TEST(said(source()) ==
               "broken: AWS_ACCESS_KEY_ID without AWS_SECRET_ACCESS_KEY in the "
               "environment");
    home.variables.erase("AWS_ACCESS_KEY_ID");
    if (empty) home.variables["AWS_ACCESS_KEY_ID"] = "";
    home.variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
    BOOST_TEST(said(source()) ==
               "broken: AWS_SECRET_ACCESS_KEY without AWS_ACCESS_KEY_ID in the "
               "environment");
  }
}

// A line break in one would begin a header of its own.
BOOST_AUTO_TEST_CASE(key_of_other_than_visible_ascii_is_broken) {
  const std::string wrong =
      " in the options has a character that is not "
      "visible ASCII";
  for (const char* bad :
       {"a\nX-Evil: 1", "a\r", " a", "a\t", "\x7F", "\xC3\xA4"}) {
    BOOST_TEST(said(given_keys({bad, "b", "c"})()) ==
               "broken: access_key_id" + wrong);
    BOOST_TEST(said(given_keys({"a", bad, "c"})()) ==
               "broken: secret_access_key" + wrong);
    BOOST_TEST(said(given_keys({"a", "b", bad})()) ==
               "broken: session_token" + wrong);
  }
  BOOST_TEST(said(given_keys({"!", "~", ""})()) == "! ~ ");
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("a") +
                                     "aws_session_token = t\n X-Evil: 1");
  BOOST_TEST(has(of_profile(home), "broken: aws_session_token in profile "));
}

BOOST_AUTO_TEST_CASE(profile_keys_are_taken_from_either_file) {
  for (const char* name : {".aws/credentials", ".aws/config"}) {
    Home home;
    home.write(name, "[default]\n" + pair_of("d") + "aws_session_token = t\n");
    BOOST_TEST(of_profile(home) == "d-id d-secret t");
  }
  Home home;
  home.write(".aws/config", "[profile foo]\n" + pair_of("foo"));
  BOOST_TEST(of_profile(home, {"foo", "", ""}) == "foo-id foo-secret ");
}

BOOST_AUTO_TEST_CASE(keys_of_two_files_are_never_mixed) {
  Home home;
  home.write(".aws/config",
             "[default]\n" + pair_of("c") + "aws_session_token = c-token\n");
  home.write(".aws/credentials", "[default]\n" + pair_of("k"));
  BOOST_TEST(of_profile(home) == "k-id k-secret ");
  home.write(".aws/credentials", "[default]\naws_access_key_id = k-id\n");
  BOOST_TEST(of_profile(home) ==
             "broken: aws_access_key_id without aws_secret_access_key in "
             "profile \"default\" in " +
                 path_of(home, "credentials"));
  home.write(".aws/credentials", "[default]\naws_secret_access_key = s\n");
  BOOST_TEST(of_profile(home) ==
             "broken: aws_secret_access_key without aws_access_key_id in "
             "profile \"default\" in " +
                 path_of(home, "credentials"));
  home.write(".aws/credentials", "[default]\naws_session_token = k-token\n");
  BOOST_TEST(of_profile(home) == "c-id c-secret c-token");
}

BOOST_AUTO_TEST_CASE(half_a_pair_in_a_profile_is_broken) {
  Home home;
  home.write(".aws/config",
             "[default]\naws_access_key_id = x\naws_secret_access_key =\n");
  BOOST_TEST(of_profile(home) ==
             "broken: aws_access_key_id without aws_secret_access_key in "
             "profile \"default\" in " +
                 path_of(home, "config"));
}

BOOST_AUTO_TEST_CASE(profile_without_keys_is_passed_over_and_said_where) {
  Home home;
  home.write(".aws/config", "[default]\nregion = eu-west-1\n");
  BOOST_TEST(of_profile(home) == "none: no keys in profile \"default\" (" +
                                     path_of(home, "credentials") +
                                     " does not exist, " +
                                     path_of(home, "config") + " has it)");
}

BOOST_AUTO_TEST_CASE(named_profile_that_does_not_exist_is_broken) {
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  home.variables["AWS_PROFILE"] = "foo";
  BOOST_TEST(has(of_profile(home),
                 "broken: profile \"foo\", named by AWS_PROFILE, does not "));
}

BOOST_AUTO_TEST_CASE(unusable_file_is_broken) {
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  home.write(".aws/config", "junk");
  BOOST_TEST(of_profile(home) == "broken: " + path_of(home, "config") +
                                     ", line 1: a line before the first "
                                     "section");
}

BOOST_AUTO_TEST_CASE(profile_that_wants_a_role_is_broken) {
  for (const char* how :
       {"source_profile = x", "credential_source = Environment",
        "web_identity_token_file = /t"}) {
    Home home;
    home.write(".aws/credentials", "[default]\n" + pair_of("d"));
    home.write(".aws/config",
               std::string("[default]\nrole_arn = arn:x\n") + how);
    BOOST_TEST(has(of_profile(home),
                   "broken: profile \"default\" wants a role assumed"));
    home.write(".aws/config", std::string("[default]\n") + how);
    BOOST_TEST(of_profile(home) == "d-id d-secret ");
  }
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  home.write(".aws/config", "[default]\nrole_arn = arn:x\n");
  BOOST_TEST(of_profile(home) == "d-id d-secret ");
}

BOOST_AUTO_TEST_CASE(profile_is_read_anew_each_time) {
  Home home;
  const KeySource source = profile_keys({}, home.environment());
  home.write(".aws/credentials", "[default]\n" + pair_of("a"));
  BOOST_TEST(said(source()) == "a-id a-secret ");
  home.write(".aws/credentials", "[default]\n" + pair_of("b"));
  BOOST_TEST(said(source()) == "b-id b-secret ");
}

BOOST_AUTO_TEST_CASE(sources_are_asked_in_order_until_one_does_not_pass) {
  std::string asked;
  const auto source = [&](const char* name, State state) {
    return [&asked, name, state] {
      asked += name;
      return KeyOutcome{state, {}, state == State::found ? "" : name};
    };
  };
  const KeySource a = source("a", State::none), b = source("b", State::none),
                  c = source("c", State::broken), d = source("d", State::found);
  const std::vector<std::pair<KeySource, std::string>> cases = {
      {first_of({a, c, d}), "ac broken: c"},
      {first_of({a, d, c}), "ad   "},
      {first_of({a, b}), "ab none: a; b"},
      {first_of({}), " none: "},
  };
  for (const auto& [sources, expected] : cases) {
    asked.clear();
    const std::string answer = said(sources());
    BOOST_TEST(asked + " " + answer == expected);
  }
}

BOOST_AUTO_TEST_CASE(order_is_given_then_environment_then_profile) {
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  BOOST_TEST(usual(home) == "d-id d-secret ");
  set_environment_keys(home);
  BOOST_TEST(usual(home) == "env-id env-secret ");
  BOOST_TEST(usual(home, {{"id", "secret", ""}, {}}) == "id secret ");
}

BOOST_AUTO_TEST_CASE(environment_keys_beat_a_profile_that_a_variable_names) {
  Home home;
  home.write(".aws/credentials", "[foo]\n" + pair_of("foo"));
  home.variables["AWS_PROFILE"] = "foo";
  set_environment_keys(home);
  BOOST_TEST(usual(home) == "env-id env-secret ");
}

BOOST_AUTO_TEST_CASE(profile_named_by_option_beats_environment_keys) {
  Home home;
  home.write(".aws/credentials", "[foo]\n" + pair_of("foo"));
  set_environment_keys(home);
  BOOST_TEST(usual(home, {{}, {"foo", "", ""}}) == "foo-id foo-secret ");
  BOOST_TEST(
      has(usual(home, {{}, {"bar", "", ""}}), "broken: profile \"bar\""));
}

BOOST_AUTO_TEST_CASE(broken_source_is_not_passed_over) {
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  home.variables["AWS_ACCESS_KEY_ID"] = "env-id";
  BOOST_TEST(has(usual(home), "broken: AWS_ACCESS_KEY_ID without "));
  BOOST_TEST(has(usual(home, {{"", "secret", ""}, {}}),
                 "broken: secret_access_key without "));
}

// Whoever has keys in the environment is not to fail for a file's sake.
BOOST_AUTO_TEST_CASE(unusable_file_behind_environment_keys_is_not_read) {
  Home home;
  home.write(".aws/config", "junk");
  set_environment_keys(home, "t");
  BOOST_TEST(usual(home) == "env-id env-secret t");
}

BOOST_AUTO_TEST_CASE(no_keys_anywhere_names_every_source) {
  Home home;
  BOOST_TEST(usual(home) ==
             "none: no access_key_id in the options; no AWS_ACCESS_KEY_ID in "
             "the environment; no keys in profile \"default\" (" +
                 path_of(home, "credentials") + " does not exist, " +
                 path_of(home, "config") + " does not exist)");
}

BOOST_AUTO_TEST_CASE(no_reason_shows_a_secret) {
  const std::string secret = "sEcReT";
  std::vector<std::string> texts = {
      said(given_keys({"", secret, ""})()),
      said(given_keys({"a", secret + "\n", ""})()),
      said(given_keys({"a", "b", secret + "\n"})()),
  };
  for (const std::string& lines :
       {"aws_secret_access_key = " + secret, "aws_secret_access_key " + secret,
        pair_of("a") + "aws_session_token = " + secret + "\n " + secret}) {
    Home home;
    home.write(".aws/credentials", "[default]\n" + lines);
    texts.push_back(usual(home));
  }
  Home home;
  home.variables["AWS_SECRET_ACCESS_KEY"] = secret;
  texts.push_back(usual(home));
  for (const std::string& text : texts) {
    BOOST_TEST(has(text, "broken: "));
    BOOST_TEST(!has(text, secret));
  }
}

BOOST_AUTO_TEST_CASE(keys_of_this_process_environment_are_found) {
  const ProcessVariable id("AWS_ACCESS_KEY_ID", "id");
  const ProcessVariable token("AWS_SESSION_TOKEN", "token");
  {
    const ProcessVariable secret("AWS_SECRET_ACCESS_KEY", "secret");
    const KeyOutcome found = environment_keys()();
    BOOST_TEST_REQUIRE((found.state == KeyOutcome::State::found));
    BOOST_TEST(found.keys.access_key_id == "id");
    BOOST_TEST(found.keys.secret_access_key == "secret");
    BOOST_TEST(found.keys.session_token == "token");
  }
  const ProcessVariable secret("AWS_SECRET_ACCESS_KEY", "");
  BOOST_TEST((environment_keys()().state == KeyOutcome::State::broken));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Keys that are kept ----------------------------------------------------

namespace {

using std::chrono::seconds;

void sleep_for(std::chrono::milliseconds time) {
  std::this_thread::sleep_for(time);
}

// Keys of the number of the question: "1", "2" and so on.
KeySource counting(std::atomic<int>& asked, State state = State::found) {
  return [&asked, state] {
    const std::string number = std::to_string(++asked);
    if (state != State::found) return KeyOutcome{state, {}, number};
    return KeyOutcome{state, {number, "secret", "token"}, ""};
  };
}

// A source that answers when it is let.
class Gate {
 public:
  KeySource source(State state) {
    return [this, state] {
      std::unique_lock<std::mutex> lock(mutex_);
      ++asked_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return open_; });
      return KeyOutcome{state, {}, state == State::found ? "" : "gate"};
    };
  }
  void wait_until_asked() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return asked_ > 0; });
  }
  void open() {
    const std::lock_guard<std::mutex> guard(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  int asked() {
    const std::lock_guard<std::mutex> guard(mutex_);
    return asked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asked_ = 0;      // GUARDED_BY(mutex_)
  bool open_ = false;  // GUARDED_BY(mutex_)
};

}  // namespace

BOOST_AUTO_TEST_SUITE(cached_credentials)

BOOST_AUTO_TEST_CASE(keys_found_are_kept_and_shared_by_copies) {
  std::atomic<int> asked{0};
  const KeySource source = cached(counting(asked), seconds(3600));
  BOOST_TEST(asked == 0);
  const KeySource copy = source;
  BOOST_TEST(said(source()) == "1 secret token");
  BOOST_TEST(said(source()) == "1 secret token");
  BOOST_TEST(said(copy()) == "1 secret token");
  BOOST_TEST(asked == 1);
  BOOST_TEST(said(cached(counting(asked), seconds(3600))()) ==
             "2 secret token");
}

BOOST_AUTO_TEST_CASE(keys_older_than_their_age_are_asked_for_anew) {
  std::atomic<int> asked{0};
  const KeySource source = cached(counting(asked), seconds(1));
  BOOST_TEST(said(source()) == "1 secret token");
  sleep_for(std::chrono::milliseconds(1001));
  BOOST_TEST(said(source()) == "2 secret token");
}

BOOST_AUTO_TEST_CASE(age_of_nothing_keeps_nothing_and_the_longest_for_ever) {
  for (const seconds age : {seconds(0), seconds(-1), seconds::min()}) {
    std::atomic<int> asked{0};
    const KeySource source = cached(counting(asked), age);
    BOOST_TEST(said(source()) == "1 secret token");
    BOOST_TEST(said(source()) == "2 secret token");
  }
  std::atomic<int> asked{0};
  const KeySource source = cached(counting(asked), seconds::max());
  BOOST_TEST(said(source()) == "1 secret token");
  BOOST_TEST(said(source()) == "1 secret token");
}

BOOST_AUTO_TEST_CASE(outcome_other_than_found_is_not_kept) {
  for (const State state : {State::none, State::broken}) {
    std::atomic<int> asked{0};
    const KeySource source = cached(counting(asked, state), seconds(3600));
    const std::string how = state == State::none ? "none: " : "broken: ";
    BOOST_TEST(said(source()) == how + "1");
    BOOST_TEST(said(source()) == how + "2");
  }
}

BOOST_AUTO_TEST_CASE(keys_that_came_after_a_failure_are_kept) {
  int asked = 0;
  const KeySource source = cached(
      [&asked] {
        return ++asked == 1 ? KeyOutcome{State::broken, {}, "not yet"}
                            : KeyOutcome{State::found, {"a", "b", "c"}, ""};
      },
      seconds(3600));
  BOOST_TEST(said(source()) == "broken: not yet");
  BOOST_TEST(said(source()) == "a b c");
  BOOST_TEST(said(source()) == "a b c");
  BOOST_TEST(asked == 2);
}

BOOST_AUTO_TEST_CASE(threads_that_ask_at_once_share_one_answer) {
  for (const State state : {State::found, State::broken}) {
    Gate gate;
    const KeySource source = cached(gate.source(state), seconds(3600));
    std::atomic<int> right{0};
    std::atomic<int> ready{0};
    const auto ask = [&] {
      ++ready;
      if (source().state == state) ++right;
    };
    std::vector<std::thread> threads;
    threads.emplace_back(ask);
    gate.wait_until_asked();
    for (int i = 0; i < 4; ++i) threads.emplace_back(ask);
    while (ready < 5) std::this_thread::yield();
    // Time for the four to get to where they wait.  One that came too late
    // for the question would be one more of the failed, not of the found.
    sleep_for(std::chrono::milliseconds(100));
    BOOST_TEST(gate.asked() == 1);
    gate.open();
    for (std::thread& thread : threads) thread.join();
    BOOST_TEST(right == 5);
    if (state == State::found) BOOST_TEST(gate.asked() == 1);
  }
}

BOOST_AUTO_TEST_CASE(many_threads_get_keys_of_the_last_questions_only) {
  std::atomic<int> asked{0};
  const KeySource source = cached(counting(asked), seconds(0));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 2000; ++round) {
        const int before = asked;
        const int number = std::stoi(source().keys.access_key_id);
        // A question that was under way when it came, or a later one.
        if (number < before || number > asked) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  BOOST_TEST(wrong == 0);
  BOOST_TEST(asked <= 8000);
}

BOOST_AUTO_TEST_CASE(source_that_throws_leaves_nobody_waiting) {
  int asked = 0;
  const KeySource source = cached(
      [&asked] {
        if (++asked == 1) throw std::runtime_error("no");
        return KeyOutcome{State::found, {"a", "b", "c"}, ""};
      },
      seconds(3600));
  BOOST_CHECK_THROW(source(), std::runtime_error);
  BOOST_TEST(said(source()) == "a b c");
  BOOST_TEST(asked == 2);
}

BOOST_AUTO_TEST_SUITE_END()
