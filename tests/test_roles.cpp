// Keys of a role, from a stand-in for STS that checks what the real one does.
#include <sys/stat.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/from_profile.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/home.hpp"

namespace {

using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using State = KeyOutcome::State;
using tests::Aws;
using tests::AwsFault;
using tests::AwsKeys;
using tests::AwsLog;
using tests::has;
using tests::Home;

const std::string kRole = "arn:aws:iam::123456789012:role/locker";
const std::string kPlace = "profile \"x\" in \"/home/u/.aws/config\"";
const AwsKeys kUser = {"AKIDSOURCEOFKEYS", "s0urce-secret-of-keys"};
const std::string kToken = "eyJhbGciOi.t0ken-of-a-provider.c2ln";

std::int64_t utc_now() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Credentials as_keys(const AwsKeys& keys) {
  return {keys.access_key_id, keys.secret_access_key, keys.session_token};
}

KeyOutcome given(const AwsKeys& keys) {
  return judged(
      {keys.access_key_id, keys.secret_access_key, keys.session_token},
      "a place");
}

// What is asked for, and how the answer is told.
class Desk {
 public:
  Desk() {
    aws.user(kUser);
    aws.role({kRole});
    role.arn = kRole;
    role.place = kPlace;
    role.region = {"eu-west-1", "AWS_REGION"};
    services.ca_file = aws.ca_file();
    at(aws.url("sts"));
    keep_secret(as_keys(kUser));
    secrets.push_back(kToken);
  }

  void at(const std::string& url) {
    services.endpoints[static_cast<std::size_t>(Service::sts)].url = {
        url, "AWS_ENDPOINT_URL_STS"};
  }

  void keep_secret(const Credentials& keys) {
    secrets.push_back(keys.secret_access_key.str());
    if (!keys.session_token.empty()) {
      secrets.push_back(keys.session_token.str());
    }
  }

  Fetch fetch() {
    return {BootClock::now() + patience, stop, utc_now() + ahead};
  }
  KeyOutcome assume(KeyOutcome source) {
    KeyOutcome outcome =
        assume_role(role, std::move(source), services, fetch());
    check(outcome);
    return outcome;
  }
  KeyOutcome assume() { return assume(given(kUser)); }
  KeyOutcome with_token_in(const std::string& file) {
    KeyOutcome outcome = assume_by_web_identity(role, file, services, fetch());
    check(outcome);
    return outcome;
  }
  // "found", "failed: ..."
  std::string said(const KeyOutcome& outcome) const {
    switch (outcome.state) {
      case State::found:
        return "found";
      case State::none:
        return "none: " + outcome.reason;
      case State::failed:
        return "failed: " + outcome.reason;
      case State::broken:
        break;
    }
    return "broken: " + outcome.reason;
  }

  int asked(const std::string& action = "*") {
    return aws.log().count("sts", action);
  }

  Aws aws;
  Home home;
  Role role;
  Services services;
  Waker stop;
  std::chrono::milliseconds patience = 60s;
  std::int64_t ahead = 0;  // The caller's clock.
  std::vector<std::string> secrets;

 private:
  // Whatever comes out: no secret in its texts, and the place named.
  void check(const KeyOutcome& outcome) {
    std::string texts = outcome.reason + outcome.source;
    texts += outcome.warnings;
    for (const std::string& secret : secrets) {
      BOOST_TEST(!has(texts, secret));
    }
    BOOST_TEST((outcome.state == State::found) == outcome.reason.empty());
    const bool has_keys = !outcome.keys.access_key_id.empty() ||
                          !outcome.keys.secret_access_key.empty();
    BOOST_TEST((outcome.state == State::found) == has_keys);
    if (outcome.state == State::found) {
      BOOST_TEST((outcome.source == kPlace ||
                  outcome.source.rfind(kPlace + ", from ", 0) == 0));
      keep_secret(outcome.keys);
    } else {
      BOOST_TEST(has(outcome.reason, kPlace + ": "));
    }
  }
};

AwsFault refusal(int status, const std::string& code,
                 const std::string& message = "it was told to") {
  AwsFault fault{"sts", "*", "refuse"};
  fault.times = 0;
  fault.status = status;
  fault.code = code;
  fault.message = message;
  return fault;
}

// In seconds, by this process's clock.
std::int64_t left_of(const KeyOutcome& outcome) {
  return std::chrono::duration_cast<std::chrono::seconds>(outcome.ends -
                                                          BootClock::now())
      .count();
}

// What it was when it was given out, less what the test has taken.
bool is_an_hour(std::int64_t seconds) {
  return seconds > 3600 - 120 && seconds <= 3600;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(test_roles, Desk)

// -- AssumeRole --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(role_assumed_gives_keys_with_their_end_and_account) {
  const KeyOutcome outcome = assume();
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(outcome.keys.access_key_id.substr(0, 4) == "ASIA");
  BOOST_TEST(!outcome.keys.secret_access_key.empty());
  BOOST_TEST(!outcome.keys.session_token.empty());
  BOOST_TEST(outcome.keys.account_id == "123456789012");
  BOOST_TEST(is_an_hour(left_of(outcome)));
  BOOST_TEST((outcome.ask_again == BootTime::max()));

  const tests::AwsRequest request = aws.log().last("sts");
  BOOST_TEST(request.operation == "AssumeRole");
  BOOST_TEST(request.signature == "good");
  BOOST_TEST(request.key == kUser.access_key_id);
  BOOST_TEST(request.region == "eu-west-1");
  BOOST_TEST(request.door == "https");
  BOOST_TEST(request.headers.at("accept") == "application/json");
  BOOST_TEST(request.form.at("Version") == "2011-06-15");
  BOOST_TEST(request.form.at("RoleArn") == kRole);
  BOOST_TEST(request.form.count("DurationSeconds") == 0u);
  BOOST_TEST(request.form.count("ExternalId") == 0u);
}

BOOST_AUTO_TEST_CASE(session_is_named_as_told_or_else_by_chance) {
  const auto name = [&] {
    BOOST_TEST(said(assume()) == "found");
    return aws.log().last("sts").form.at("RoleSessionName");
  };
  const std::string first = name();
  BOOST_TEST(first.substr(0, 9) == "ddbmutex-");
  BOOST_TEST(first.size() == 25u);
  BOOST_TEST(name() != first);
  role.session_name = "a+b=c,d.e@f-g_1";
  BOOST_TEST(name() == role.session_name);
}

BOOST_AUTO_TEST_CASE(duration_is_asked_for) {
  aws.role({kRole, "", {"*"}, 43200s});
  role.duration = "43200";
  const KeyOutcome outcome = assume();
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(aws.log().last("sts").form.at("DurationSeconds") == "43200");
  BOOST_TEST(left_of(outcome) > 43200 - 120);
}

BOOST_AUTO_TEST_CASE(session_longer_than_the_role_allows_is_broken) {
  role.duration = "3601";
  const std::string what = said(assume());
  BOOST_TEST(what.substr(0, 8) == "broken: ");
  BOOST_TEST(has(what, "ValidationError: The requested DurationSeconds"));
  BOOST_TEST(asked() == 1);
}

BOOST_AUTO_TEST_CASE(what_sts_does_not_take_is_broken_in_its_words) {
  const auto flaw = [&](auto change) {
    const Role before = role;
    change(role);
    const std::string what = said(assume());
    role = before;
    return what.substr(0, 8) == "broken: " && has(what, "ValidationError: ");
  };
  for (const char* seconds : {"1", "899", "43201"}) {
    BOOST_TEST(flaw([&](Role& r) { r.duration = seconds; }));
  }
  for (const std::string& name :
       {std::string("x"), std::string("a b"), std::string("a\nb&c=d"),
        std::string("a/b"), std::string(65, 'x')}) {
    BOOST_TEST(flaw([&](Role& r) { r.session_name = name; }));
  }
  for (const std::string& arn :
       {std::string("arn:aws:iam::12:x"),
        std::string("123456789012:role/locker"), kRole + " ", kRole + "\n",
        "arn:" + std::string(2045, 'x')}) {
    BOOST_TEST(flaw([&](Role& r) { r.arn = arn; }));
  }
}

BOOST_AUTO_TEST_CASE(external_id_is_told) {
  aws.role({kRole, "its:external/id"});
  BOOST_TEST(said(assume()).substr(0, 8) == "broken: ");
  role.external_id = "another";
  BOOST_TEST(has(said(assume()), "AccessDenied: User: arn:aws:iam::"));
  role.external_id = "its:external/id";
  BOOST_TEST(said(assume()) == "found");
}

BOOST_AUTO_TEST_CASE(roles_in_a_chain_are_assumed_one_by_the_other) {
  const std::string second = "arn:aws:iam::999999999999:role/other/second";
  aws.role({second, "", {kRole}});
  const KeyOutcome first = assume();
  role.arn = second;
  const KeyOutcome outcome = assume(first);
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(outcome.keys.account_id == "999999999999");
  BOOST_TEST(asked("AssumeRole") == 2);
  BOOST_TEST(aws.log().last("sts").form.at("RoleArn") == second);
  BOOST_TEST(aws.log().last("sts").key.substr(0, 4) == "ASIA");
}

BOOST_AUTO_TEST_CASE(source_without_keys_is_passed_on_with_the_place) {
  const std::string head = kPlace + ": no keys to assume the role with: why";
  const auto of = [&](KeyOutcome outcome) {
    return said(assume(std::move(outcome)));
  };
  BOOST_TEST(of(failed_keys("why")) == "failed: " + head);
  BOOST_TEST(of(broken_keys("why")) == "broken: " + head);
  BOOST_TEST(asked() == 0);
}

BOOST_AUTO_TEST_CASE(what_the_source_warns_of_is_passed_on) {
  KeyOutcome keys = given(kUser);
  keys.warnings = "beware\n";
  keys.region = "eu-north-1";
  keys.ask_again = BootClock::now() + 60s;
  const KeyOutcome outcome = assume(keys);
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(outcome.warnings == "beware\n");
  BOOST_TEST(outcome.region == "eu-north-1");
  BOOST_TEST((outcome.ask_again == BootTime::max()));
}

BOOST_AUTO_TEST_CASE(source_that_sts_does_not_know_is_broken) {
  const AwsKeys stranger = {"AKIDSTRANGER", "a-strangers-secret"};
  keep_secret(as_keys(stranger));
  BOOST_TEST(has(said(assume(given(stranger))), "InvalidClientTokenId"));
  const AwsKeys wrong = {kUser.access_key_id, "not-the-secret-of-it"};
  keep_secret(as_keys(wrong));
  const std::string what = said(assume(given(wrong)));
  BOOST_TEST(what.substr(0, 8) == "broken: ");
  BOOST_TEST(has(what, "SignatureDoesNotMatch"));
  BOOST_TEST(asked() == 2);  // No clock is wrong: once each.
}

BOOST_AUTO_TEST_CASE(source_that_has_run_out_is_broken) {
  const AwsKeys over = aws.issue(-10s);
  keep_secret(as_keys(over));
  const std::string what = said(assume(given(over)));
  BOOST_TEST(what.substr(0, 8) == "broken: ");
  BOOST_TEST(has(what, "ExpiredToken"));
  BOOST_TEST(asked() == 1);
}

// -- What STS says -----------------------------------------------------------

BOOST_AUTO_TEST_CASE(refusal_is_told_by_code_message_and_request) {
  aws.fault(refusal(403, "AccessDenied", "You & I <may> not"));
  const std::string what = said(assume());
  BOOST_TEST(what.substr(0, what.find(", request ")) ==
             "broken: " + kPlace + ": STS AssumeRole at " + aws.url("sts") +
                 ": AccessDenied: You & I <may> not (HTTP status 403");
  BOOST_TEST(has(what, ", request "));
  BOOST_TEST(what.back() == ')');
}

BOOST_AUTO_TEST_CASE(refusal_for_good_is_broken_at_once) {
  for (const auto& [status, code] :
       {std::pair(403, "AccessDenied"),
        std::pair(403, "RegionDisabledException"),
        std::pair(400, "MalformedPolicyDocument"),
        std::pair(400, "PackedPolicyTooLarge"),
        std::pair(400, "ExpiredTokenException"),
        std::pair(400, "ValidationError"), std::pair(404, "InvalidAction"),
        std::pair(403, "OptInRequired"), std::pair(418, "WhoKnows")}) {
    aws.clear();
    aws.forget();
    aws.fault(refusal(status, code));
    const std::string what = said(assume());
    BOOST_TEST(what.substr(0, 8) == "broken: ", code);
    BOOST_TEST(has(what, code));
    BOOST_TEST(asked() == 1, code);
  }
}

BOOST_AUTO_TEST_CASE(refusal_that_passes_is_followed_by_two_more_attempts) {
  for (const auto& [status, code] :
       {std::pair(400, "Throttling"), std::pair(429, "WhoKnows"),
        std::pair(500, "InternalFailure"), std::pair(503, "AccessDenied"),
        std::pair(400, "RequestTimeout"), std::pair(408, "WhoKnows")}) {
    aws.clear();
    aws.forget();
    aws.fault(refusal(status, code));
    const std::string what = said(assume());
    BOOST_TEST(what.substr(0, 8) == "failed: ", code);
    BOOST_TEST(has(what, std::string(", 3 attempts: ") + code), what);
    BOOST_TEST(asked() == 3, code);
  }
}

BOOST_AUTO_TEST_CASE(what_goes_wrong_once_does_no_harm) {
  for (const char* kind : {"500", "503", "throttle", "garbage", "empty",
                           "reset", "reset-answer", "truncate", "oversized"}) {
    aws.clear();
    aws.forget();
    aws.fault({"sts", "AssumeRole", kind});
    BOOST_TEST(said(assume()) == "found", kind);
    BOOST_TEST(asked() == 2, kind);
  }
}

BOOST_AUTO_TEST_CASE(answer_that_is_slow_is_waited_for) {
  AwsFault fault{"sts", "AssumeRole", "slow"};
  fault.wait = 300ms;
  aws.fault(fault);
  BOOST_TEST(said(assume()) == "found");
  BOOST_TEST(asked() == 1);
}

BOOST_AUTO_TEST_CASE(answer_that_makes_no_sense_may_pass) {
  for (const char* kind :
       {"garbage", "empty", "reset", "reset-answer", "truncate", "oversized"}) {
    aws.clear();
    aws.forget();
    AwsFault fault{"sts", "AssumeRole", kind};
    fault.times = 0;
    aws.fault(fault);
    const std::string what = said(assume());
    BOOST_TEST(what.substr(0, 8) == "failed: ", kind);
    BOOST_TEST(has(what, ", 3 attempts: "), what);
    BOOST_TEST(asked() == 3, kind);
  }
}

BOOST_AUTO_TEST_CASE(answer_without_all_that_belongs_to_it_is_no_answer) {
  for (const char* name : {"AccessKeyId", "SecretAccessKey", "SessionToken",
                           "Expiration", "Credentials"}) {
    aws.clear();
    AwsFault fault{"sts", "AssumeRole", "missing"};
    fault.times = 0;
    fault.missing = {name};
    aws.fault(fault);
    BOOST_TEST(said(assume()).substr(0, 8) == "failed: ", name);
  }
}

BOOST_AUTO_TEST_CASE(answer_without_a_user_leaves_the_account_unknown) {
  AwsFault fault{"sts", "AssumeRole", "missing"};
  fault.missing = {"AssumedRoleUser"};
  aws.fault(fault);
  const KeyOutcome outcome = assume();
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(outcome.keys.account_id == "");
}

BOOST_AUTO_TEST_CASE(answer_with_keys_unfit_for_a_header_is_no_answer) {
  for (const auto& [name, value] :
       {std::pair("AccessKeyId", "ASIA\nX-Evil: 1"),
        std::pair("SecretAccessKey", "a b"),
        std::pair("SessionToken", "token\r\nX-Evil: 1"),
        std::pair("Expiration", "soon"),
        std::pair("Expiration", "2099-02-30T00:00:00Z")}) {
    aws.clear();
    AwsFault fault{"sts", "AssumeRole", "alter"};
    fault.times = 0;
    fault.set = {{name, value}};
    aws.fault(fault);
    const std::string what = said(assume());
    BOOST_TEST(what.substr(0, 8) == "failed: ", name);
    BOOST_TEST(!has(what, value));
  }
}

BOOST_AUTO_TEST_CASE(redirect_is_not_followed) {
  for (const int status : {301, 302, 303, 307, 308}) {
    aws.forget();
    AwsFault fault{"sts", "AssumeRole", "redirect"};
    fault.status = status;
    aws.fault(fault);
    const std::string what = said(assume());
    BOOST_TEST(what.substr(0, 8) == "broken: ", what);
    BOOST_TEST(has(what, std::to_string(status)));
    BOOST_TEST(aws.log().requests().size() == 1u);
  }
}

BOOST_AUTO_TEST_CASE(message_is_shown_up_to_its_first_line_break) {
  aws.fault(refusal(403, "SignatureDoesNotMatch",
                    "It does not match.\n\nThe canonical string should have "
                    "been 'POST\nx-amz-security-token:" +
                        kUser.secret_access_key));
  const std::string what = said(assume());
  BOOST_TEST(has(what, "It does not match. (HTTP"), what);
  BOOST_TEST(!has(what, "canonical"));
}

BOOST_AUTO_TEST_CASE(message_that_repeats_a_part_of_a_secret_is_not_shown) {
  const AwsKeys session = aws.issue(1h);
  keep_secret(as_keys(session));
  for (const std::string& part :
       {session.session_token, session.session_token.substr(0, 12),
        session.secret_access_key.substr(3, 12)}) {
    aws.clear();
    aws.fault(refusal(400, "WhoKnows", "bad '" + part + "'"));
    const std::string what = said(assume(given(session)));
    BOOST_TEST(has(what, "WhoKnows: bad (hidden) (HTTP"), what);
    BOOST_TEST(!has(what, part));
  }
}

// -- Clocks ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(clock_that_is_hours_wrong_costs_one_request_more) {
  for (const std::int64_t wrong : {-3 * 3600, 3 * 3600}) {
    aws.forget();
    ahead = wrong;
    const KeyOutcome outcome = assume();
    BOOST_TEST(said(outcome) == "found");
    BOOST_TEST(is_an_hour(left_of(outcome)));
    const AwsLog log = aws.log();
    BOOST_TEST_REQUIRE(log.requests().size() == 2u);
    BOOST_TEST(log.requests()[0].code == "SignatureDoesNotMatch");
    BOOST_TEST(log.requests()[1].signature == "good");
  }
}

BOOST_AUTO_TEST_CASE(clock_of_the_host_that_is_wrong_moves_no_end) {
  // Less than what would be refused.
  for (const std::int64_t wrong : {-200, 200}) {
    ahead = wrong;
    const KeyOutcome outcome = assume();
    BOOST_TEST(said(outcome) == "found");
    BOOST_TEST(is_an_hour(left_of(outcome)));
  }
}

BOOST_AUTO_TEST_CASE(correction_leaves_all_attempts_to_what_passes) {
  ahead = 3 * 3600;
  AwsFault fault{"sts", "AssumeRole", "500"};
  fault.nth = 2;
  fault.times = 2;
  aws.fault(fault);
  BOOST_TEST(said(assume()) == "found");
  BOOST_TEST(asked() == 4);
}

BOOST_AUTO_TEST_CASE(clock_is_not_corrected_without_a_date) {
  ahead = 3 * 3600;
  aws.dates(false);
  BOOST_TEST(has(said(assume()), "broken: "));
  BOOST_TEST(asked() == 1);
}

// -- Connections -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(server_that_is_not_trusted_gets_nothing) {
  for (const char* certificate : {"expired", "other-host", "unknown-ca"}) {
    at(aws.url_with(certificate));
    const std::string what = said(assume());
    BOOST_TEST(what.substr(0, 8) == "broken: ", what);
  }
  at(aws.url("sts"));
  services.ca_file = "";
  BOOST_TEST(said(assume()).substr(0, 8) == "broken: ");
  BOOST_TEST(aws.log().requests().empty());
}

BOOST_AUTO_TEST_CASE(server_out_of_reach_may_pass) {
  aws.mode("sts", "refuse");
  const std::string what = said(assume());
  BOOST_TEST(what.substr(0, 8) == "failed: ", what);
  aws.mode("sts", "open");
  BOOST_TEST(said(assume()) == "found");
}

BOOST_AUTO_TEST_CASE(server_that_hangs_is_waited_for_until_the_deadline) {
  aws.mode("sts", "hang");
  patience = 300ms;
  const BootTime begin = BootClock::now();
  const std::string what = said(assume());
  BOOST_TEST(what.substr(0, 8) == "failed: ", what);
  BOOST_TEST((BootClock::now() - begin >= patience));
  // Else it would be the attempt's own limit, 5 s, that has ended it.
  BOOST_TEST((BootClock::now() - begin < 4500ms));
}

BOOST_AUTO_TEST_CASE(server_that_hangs_is_left_when_told_to_stop) {
  AwsFault fault{"sts", "AssumeRole", "hang"};
  fault.times = 0;
  aws.fault(fault);
  patience = 10min;
  auto waiting = std::async(std::launch::async, [&] { return assume(); });
  while (asked() == 0) std::this_thread::sleep_for(5ms);
  stop.wake();
  const std::string what = said(waiting.get());
  BOOST_TEST(what.substr(0, 8) == "failed: ", what);
  BOOST_TEST(has(what, "given up"), what);
  BOOST_TEST(asked() == 1);
}

BOOST_AUTO_TEST_CASE(who_is_told_to_stop_before_sends_nothing) {
  stop.wake();
  BOOST_TEST(said(assume()).substr(0, 8) == "failed: ");
  BOOST_TEST(aws.log().requests().empty());
}

BOOST_AUTO_TEST_CASE(place_of_sts_must_be_known) {
  at("https://sts.example.com/?a=b");
  BOOST_TEST(has(said(assume()), "AWS_ENDPOINT_URL_STS"));
  at(aws.url("sts"));
  role.region.value = "no region";
  BOOST_TEST(has(said(assume()), "AWS_REGION"));
  role.region.value = "";
  BOOST_TEST(said(assume()) == "broken: " + kPlace + ": no region is known");
  BOOST_TEST(aws.log().requests().empty());
}

// -- AssumeRoleWithWebIdentity -----------------------------------------------

BOOST_AUTO_TEST_CASE(web_identity_gives_keys_without_a_signature) {
  aws.web_identity(kToken, 1h);
  const KeyOutcome outcome = with_token_in(home.write("token", kToken));
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(outcome.keys.account_id == "123456789012");
  BOOST_TEST(is_an_hour(left_of(outcome)));
  BOOST_TEST(outcome.warnings.empty());
  const tests::AwsRequest request = aws.log().last("sts");
  BOOST_TEST(request.operation == "AssumeRoleWithWebIdentity");
  BOOST_TEST(request.signature == "none");
  BOOST_TEST(request.headers.count("x-amz-date") == 0u);
  BOOST_TEST(request.token == "valid");
  BOOST_TEST(request.path == "/");
  BOOST_TEST(request.form.at("RoleArn") == kRole);
  BOOST_TEST(request.form.at("RoleSessionName").substr(0, 9) == "ddbmutex-");
}

BOOST_AUTO_TEST_CASE(keys_by_web_identity_may_assume_another_role) {
  const std::string second = "arn:aws:iam::123456789012:role/second";
  aws.role({second, "", {kRole}});
  aws.web_identity(kToken, 1h);
  const KeyOutcome first = with_token_in(home.write("token", kToken));
  role.arn = second;
  BOOST_TEST(said(assume(first)) == "found");
}

BOOST_AUTO_TEST_CASE(duration_of_a_web_identity_is_asked_for) {
  aws.web_identity(kToken, 1h);
  role.duration = "900";
  const KeyOutcome outcome = with_token_in(home.write("token", kToken));
  BOOST_TEST(said(outcome) == "found");
  BOOST_TEST(left_of(outcome) <= 900);
}

BOOST_AUTO_TEST_CASE(token_of_any_bytes_arrives_as_it_is) {
  const std::string token = "a+b/c=d&e%20f;g\"h'i<j>k#l?m~n";
  aws.web_identity(token, 1h);
  BOOST_TEST(said(with_token_in(home.write("token", token))) == "found");
}

BOOST_AUTO_TEST_CASE(blanks_around_the_token_count_for_nothing) {
  aws.web_identity(kToken, 1h);
  const auto path = home.write("token", "\n \t" + kToken + " \r\n\n");
  BOOST_TEST(said(with_token_in(path)) == "found");
}

BOOST_AUTO_TEST_CASE(token_is_read_anew_each_time) {
  const std::string first = kToken + "1", second = kToken + "2";
  aws.web_identity(first, -1s);
  aws.web_identity(second, 1h);
  const std::string what = said(with_token_in(home.write("token", first)));
  BOOST_TEST(what.substr(0, 8) == "broken: ", what);
  BOOST_TEST(has(what, "ExpiredTokenException"));
  BOOST_TEST(asked() == 1);
  BOOST_TEST(said(with_token_in(home.write("token", second))) == "found");
}

BOOST_AUTO_TEST_CASE(token_that_is_not_accepted_is_offered_three_times) {
  const std::string what = said(with_token_in(home.write("token", kToken)));
  BOOST_TEST(what.substr(0, 8) == "broken: ", what);
  BOOST_TEST(has(what, "3 attempts: InvalidIdentityToken"));
  BOOST_TEST(asked() == 3);
}

BOOST_AUTO_TEST_CASE(identity_provider_out_of_reach_may_pass) {
  aws.web_identity(kToken, 1h);
  const std::string path = home.write("token", kToken);
  for (const char* code : {"IDPCommunicationError", "InvalidIdentityToken"}) {
    AwsFault once = refusal(400, code);
    once.times = 1;
    aws.fault(once);
    BOOST_TEST(said(with_token_in(path)) == "found", code);
  }
  aws.forget();
  aws.fault(refusal(400, "IDPCommunicationError"));
  BOOST_TEST(said(with_token_in(path)).substr(0, 8) == "failed: ");
  BOOST_TEST(asked() == 3);
}

BOOST_AUTO_TEST_CASE(role_that_does_not_trust_the_identity_is_broken) {
  aws.web_identity(kToken, 1h);
  role.arn = "arn:aws:iam::123456789012:role/another";
  const std::string what = said(with_token_in(home.write("token", kToken)));
  BOOST_TEST(what.substr(0, 8) == "broken: ", what);
  BOOST_TEST(has(what, "AccessDenied"));
}

BOOST_AUTO_TEST_CASE(message_that_repeats_the_token_is_not_shown) {
  aws.fault(refusal(400, "WhoKnows", "what is " + kToken.substr(4, 14) + "?"));
  const std::string what = said(with_token_in(home.write("token", kToken)));
  BOOST_TEST(has(what, "WhoKnows: what is (hidden) (HTTP"), what);
}

BOOST_AUTO_TEST_CASE(file_without_a_token_is_told_and_nothing_sent) {
  const auto of = [&](const std::string& text) {
    return said(with_token_in(home.write("token", text)));
  };
  const std::string path = (home.root / "token").string();
  const std::string head =
      kPlace + ": the web identity token file \"" + path + "\" ";
  BOOST_TEST(said(with_token_in(path)) == "broken: " + head + "does not exist");
  BOOST_TEST(of("") == "failed: " + head + "is empty");
  BOOST_TEST(of(" \r\n") == "failed: " + head + "is empty");
  BOOST_TEST(of("abc") == "broken: " + head + "contains no token");
  BOOST_TEST(of(kToken + "\n" + kToken) ==
             "broken: " + head + "contains no token");
  BOOST_TEST(of(kToken + std::string(1, '\0')) ==
             "broken: " + head + "contains no token");
  BOOST_TEST(of(std::string(20 * 1024 + 1, 'x')) ==
             "broken: " + head + "is longer than 20480 bytes");
  BOOST_TEST(has(said(with_token_in(home.root.string())), "is not a regular"));
  const std::string fifo = (home.root / "fifo").string();
  BOOST_TEST_REQUIRE(mkfifo(fifo.c_str(), 0600) == 0);
  BOOST_TEST(has(said(with_token_in(fifo)), "is not a regular file"));
  BOOST_TEST(asked() == 0);
}

BOOST_AUTO_TEST_CASE(longest_token_is_sent) {
  const std::string token(20000, 'x');
  aws.web_identity(token, 1h);
  BOOST_TEST(said(with_token_in(home.write("token", token))) == "found");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(test_roles_texts)

BOOST_AUTO_TEST_CASE(account_is_the_fifth_field_of_an_arn) {
  BOOST_TEST(account_of("arn:aws:sts::123456789012:assumed-role/a/b") ==
             "123456789012");
  BOOST_TEST(account_of("arn:aws:sts::123456789012") == "123456789012");
  for (const char* arn :
       {"", ":::", "arn:aws:sts:123456789012:x", "arn:aws:sts::12345678901:x",
        "arn:aws:sts::1234567890123:x", "arn:aws:sts::12345678901a:x",
        "arn:aws:sts::aws:x"}) {
    BOOST_TEST(account_of(arn) == "", arn);
  }
}

BOOST_AUTO_TEST_CASE(answer_to_another_action_is_none) {
  const auto read = [](const char* action, const std::string& response,
                       const std::string& result) {
    const std::string body =
        R"({")" + response + R"(":{")" + result +
        R"(":{"Credentials":{"AccessKeyId":"ASIA","SecretAccessKey":"s",)" +
        R"("SessionToken":"t","Expiration":8.64E4}}}})";
    const KeyOutcome outcome = read_sts_keys(action, body, 86400 - 100);
    BOOST_TEST((outcome.state == State::found) ==
               (outcome.keys.access_key_id == "ASIA"));
    BOOST_TEST((outcome.state == State::found) == (left_of(outcome) < 101));
    return outcome.state == State::found;
  };
  BOOST_TEST(read("A", "AResponse", "AResult"));
  BOOST_TEST(!read("A", "BResponse", "AResult"));
  BOOST_TEST(!read("A", "AResponse", "BResult"));
  BOOST_TEST(!read("B", "AResponse", "AResult"));
}

BOOST_AUTO_TEST_SUITE_END()
