// Where keys come from, in which order, and what is said when there are none.
#include <stdlib.h>
#include <sys/stat.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/from_all.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/own_keys.hpp"

namespace {

using namespace ddbmutex::sigv4;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using tests::has;
using tests::Home;
using tests::KeyOptions;
using tests::ProcessVariable;
using tests::profile_keys;
using tests::usual_keys;
using State = KeyOutcome::State;

const char* word(State state) {
  constexpr const char* kWords[] = {"found", "none", "failed", "broken"};
  return kWords[static_cast<int>(state)];
}

// "id secret token", "none: ...", "failed: ..." or "broken: ...".
std::string said(const KeyOutcome& outcome) {
  const Credentials& keys = outcome.keys;
  if (outcome.state == State::found) {
    BOOST_TEST(outcome.reason == "");
    return keys.access_key_id + " " + keys.secret_access_key.str() + " " +
           keys.session_token.str();
  }
  BOOST_TEST((keys.access_key_id + keys.secret_access_key.str()).empty());
  return std::string(word(outcome.state)) + ": " + outcome.reason;
}

KeyOutcome asked(const KeySourcePtr& source) {
  Waker stop;
  return source->fetch({BootTime::max(), stop, 0});
}

std::string said(const KeySourcePtr& source) { return said(asked(source)); }

std::string usual(const Home& home, const KeyOptions& options = {}) {
  return said(usual_keys(options, home.environment()));
}

std::string environment(const Home& home) {
  return said(environment_keys(home.environment()));
}

std::string of_profile(const Home& home, std::string_view name = {}) {
  return said(profile_keys(name, home.environment()));
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

std::string path_of(const Home& home, const char* name) {
  return in_quotes((home.root / ".aws" / name).string());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(credentials)

BOOST_AUTO_TEST_CASE(given_keys_are_taken_as_they_are) {
  BOOST_TEST(said(tests::given_keys({"id", "secret", ""})) == "id secret ");
  BOOST_TEST(said(tests::given_keys({"id", "s/+=", "token"})) ==
             "id s/+= token");
}

BOOST_AUTO_TEST_CASE(half_of_a_given_pair_is_broken) {
  BOOST_TEST(said(tests::given_keys({"id", "", ""})) ==
             "broken: access_key_id without secret_access_key in the options");
  BOOST_TEST(said(tests::given_keys({"", "secret", "token"})) ==
             "broken: secret_access_key without access_key_id in the options");
  BOOST_TEST(said(tests::given_keys({"", "", "token"})) ==
             "none: no access_key_id in the options");
}

BOOST_AUTO_TEST_CASE(environment_keys_are_taken_with_and_without_token) {
  Home home;
  set_environment_keys(home);
  BOOST_TEST(environment(home) == "env-id env-secret ");
  home.variables["AWS_SESSION_TOKEN"] = "env-token";
  BOOST_TEST(environment(home) == "env-id env-secret env-token");
}

// It is not to be read while the program may be changing it.
BOOST_AUTO_TEST_CASE(environment_is_read_once_and_keys_are_at_hand) {
  Home home;
  set_environment_keys(home);
  const KeySourcePtr source = chain_keys({}, home.environment());
  home.variables["AWS_ACCESS_KEY_ID"] = "other";
  const KeyOutcome* at_hand = source->at_hand();
  BOOST_TEST_REQUIRE(at_hand != nullptr);
  BOOST_TEST(said(*at_hand) == "env-id env-secret ");
  BOOST_TEST(said(source) == "env-id env-secret ");
}

BOOST_AUTO_TEST_CASE(account_that_is_told_comes_with_the_keys) {
  Home home;
  set_environment_keys(home);
  home.variables["AWS_ACCOUNT_ID"] = "123456789012";
  BOOST_TEST(environment_keys(home.environment()).keys.account_id ==
             "123456789012");
  home.write(".aws/config", "[default]\naws_account_id = 1\n");
  home.write(".aws/credentials",
             "[default]\n" + pair_of("d") + "aws_account_id = 2\n");
  BOOST_TEST(asked(profile_keys({}, home.environment())).keys.account_id ==
             "2");
}

BOOST_AUTO_TEST_CASE(environment_without_keys_is_passed_over) {
  Home home;
  const std::string none = "none: no AWS_ACCESS_KEY_ID in the environment";
  BOOST_TEST(environment(home) == none);
  home.variables["AWS_ACCESS_KEY_ID"] = "";
  home.variables["AWS_SECRET_ACCESS_KEY"] = "";
  home.variables["AWS_SESSION_TOKEN"] = "token";
  BOOST_TEST(environment(home) == none);
}

BOOST_AUTO_TEST_CASE(half_a_pair_in_the_environment_is_broken) {
  for (const bool empty : {false, true}) {
    Home home;
    home.variables["AWS_ACCESS_KEY_ID"] = "env-id";
    if (empty) home.variables["AWS_SECRET_ACCESS_KEY"] = "";
    BOOST_TEST(environment(home) ==
               "broken: AWS_ACCESS_KEY_ID without AWS_SECRET_ACCESS_KEY in the "
               "environment");
    home.variables.erase("AWS_ACCESS_KEY_ID");
    if (empty) home.variables["AWS_ACCESS_KEY_ID"] = "";
    home.variables["AWS_SECRET_ACCESS_KEY"] = "env-secret";
    BOOST_TEST(environment(home) ==
               "broken: AWS_SECRET_ACCESS_KEY without AWS_ACCESS_KEY_ID in the "
               "environment");
  }
}

// A line break in one would begin a header of its own.
BOOST_AUTO_TEST_CASE(key_of_other_than_visible_ascii_is_broken) {
  for (const char* bad :
       {"a\nX-Evil: 1", "a\r", " a", "a\t", "\x7F", "\xC3\xA4"}) {
    const bool breaks = has(bad, "\n") || has(bad, "\r");
    const std::string wrong =
        std::string(" in the options has ") +
        (breaks ? "a line break" : "a character that is not visible ASCII");
    BOOST_TEST(said(tests::given_keys({bad, "b", "c"})) ==
               "broken: access_key_id" + wrong);
    BOOST_TEST(said(tests::given_keys({"a", bad, "c"})) ==
               "broken: secret_access_key" + wrong);
    BOOST_TEST(said(tests::given_keys({"a", "b", bad})) ==
               "broken: session_token" + wrong);
  }
  BOOST_TEST(said(tests::given_keys({"!", "~", ""})) == "! ~ ");
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
  BOOST_TEST(of_profile(home, "foo") == "foo-id foo-secret ");
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

// Its own keys would be another identity.
BOOST_AUTO_TEST_CASE(profile_with_keys_from_elsewhere_is_broken) {
  for (const char* how : {"role_arn = arn:x", "web_identity_token_file = /t",
                          "sso_account_id = 1", "sso_role_name = r"}) {
    Home home;
    home.write(".aws/credentials", "[default]\n" + pair_of("d"));
    home.write(".aws/config", std::string("[default]\n") + how);
    BOOST_TEST(of_profile(home) ==
               "broken: profile \"default\" has its keys from elsewhere, which "
               "this build of the library does not know how to do");
  }
  for (const char* how : {"source_profile = x", "sso_start_url = https://x",
                          "credential_source = Environment"}) {
    Home home;
    home.write(".aws/credentials", "[default]\n" + pair_of("d"));
    home.write(".aws/config", std::string("[default]\n") + how);
    BOOST_TEST(of_profile(home) == "d-id d-secret ");
  }
}

// A process goes before the config file's keys, and behind the other file's.
BOOST_AUTO_TEST_CASE(profile_with_a_process_is_broken_unless_keys_go_before) {
  Home home;
  home.write(".aws/config",
             "[default]\ncredential_process = p\n" + pair_of("c"));
  BOOST_TEST(has(of_profile(home), "broken: "));
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  BOOST_TEST(of_profile(home) == "d-id d-secret ");
}

BOOST_AUTO_TEST_CASE(keys_of_a_file_are_to_be_asked_for_again_in_a_minute) {
  using std::chrono::seconds;
  Home home;
  home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  const BootTime before = BootClock::now();
  const KeyOutcome outcome = asked(profile_keys({}, home.environment()));
  BOOST_TEST((outcome.ask_again >= before + seconds(60)));
  BOOST_TEST((outcome.ask_again <= BootClock::now() + seconds(60)));
  BOOST_TEST((outcome.ends == BootTime::max()));
  BOOST_TEST(outcome.source ==
             "profile \"default\" in " + path_of(home, "credentials"));
}

BOOST_AUTO_TEST_CASE(warning_about_a_file_comes_with_its_keys_and_without) {
  Home home;
  const std::string path =
      home.write(".aws/credentials", "[default]\n" + pair_of("d"));
  BOOST_TEST_REQUIRE(chmod(path.c_str(), 0644) == 0);
  KeyOutcome outcome = asked(usual_keys({}, home.environment()));
  BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
  BOOST_TEST(has(outcome.warnings, in_quotes(path)));
  BOOST_TEST(!has(outcome.warnings, "d-secret"));
  home.write(".aws/credentials", "[other]\n" + pair_of("d"));
  home.variables["AWS_EC2_METADATA_DISABLED"] = "true";
  outcome = asked(chain_keys({}, home.environment()));
  BOOST_TEST((outcome.state == State::none));
  BOOST_TEST(tests::is_one_line(outcome.warnings));
}

BOOST_AUTO_TEST_CASE(profile_is_read_anew_each_time) {
  Home home;
  const KeySourcePtr source = profile_keys({}, home.environment());
  home.write(".aws/credentials", "[default]\n" + pair_of("a"));
  BOOST_TEST(said(source) == "a-id a-secret ");
  home.write(".aws/credentials", "[default]\n" + pair_of("b"));
  BOOST_TEST(said(source) == "b-id b-secret ");
}

BOOST_AUTO_TEST_CASE(keys_in_a_file_are_not_at_hand) {
  Home home;
  BOOST_TEST((tests::given_keys({})->at_hand()->state == State::none));
  BOOST_TEST(said(*tests::given_keys({"id", "secret"})->at_hand()) ==
             "id secret ");
  BOOST_TEST(profile_keys({}, home.environment())->at_hand() == nullptr);
}

BOOST_AUTO_TEST_CASE(end_is_a_second_sooner_than_the_service_says) {
  using std::chrono::seconds;
  const auto from_now = [](std::int64_t expires, std::int64_t now) {
    const BootTime before = BootClock::now();
    const BootTime ends = ends_at(expires, now);
    const BootTime after = BootClock::now();
    const auto wished = seconds(expires - now - 1);
    return ends >= before + wished && ends <= after + wished;
  };
  BOOST_TEST(from_now(5000, 1000));
  BOOST_TEST(from_now(1000, 5000));
  BOOST_TEST(from_now(0, 0));
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  BOOST_TEST((ends_at(kMost, 0) == BootTime::max()));
  BOOST_TEST((ends_at(-kMost, 0) < BootClock::now()));
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
  BOOST_TEST(usual(home, {{}, "foo"}) == "foo-id foo-secret ");
  BOOST_TEST(has(usual(home, {{}, "bar"}), "broken: profile \"bar\""));
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
      said(tests::given_keys({"", secret, ""})),
      said(tests::given_keys({"a", secret + "\n", ""})),
      said(tests::given_keys({"a", "b", secret + "\n"})),
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
    const KeyOutcome found = environment_keys();
    BOOST_TEST_REQUIRE((found.state == KeyOutcome::State::found));
    BOOST_TEST(found.keys.access_key_id == "id");
    BOOST_TEST(found.keys.secret_access_key.str() == "secret");
    BOOST_TEST(found.keys.session_token.str() == "token");
  }
  const ProcessVariable secret("AWS_SECRET_ACCESS_KEY", "");
  BOOST_TEST((environment_keys().state == KeyOutcome::State::broken));
}

BOOST_AUTO_TEST_SUITE_END()
