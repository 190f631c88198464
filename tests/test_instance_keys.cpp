// Keys and region of an EC2 instance: which settings count, how the metadata
// service is asked, and what its answers are worth.
#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/keys/from_all.hpp"
#include "sigv4/keys/from_hosts.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/proxied.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace ddbmutex;
using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::Asking;
using tests::Aws;
using tests::has;
using tests::Home;
using tests::said;

constexpr const char* kDisabled = "AWS_EC2_METADATA_DISABLED";
constexpr const char* kEndpoint = "AWS_EC2_METADATA_SERVICE_ENDPOINT";
constexpr const char* kMode = "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE";
constexpr const char* kTimeout = "AWS_METADATA_SERVICE_TIMEOUT";
constexpr const char* kAttempts = "AWS_METADATA_SERVICE_NUM_ATTEMPTS";

Instance settings_in(const Home& home) {
  const Environment environment = home.environment();
  Instance instance;
  read_instance_settings(environment, load_profile({}, environment), instance);
  return instance;
}

KeySourcePtr service_at(Instance service) {
  return tests::source_of([service](const Fetch& fetch) mutable {
    return instance_keys(service, fetch);
  });
}

// With the keys that are given, the instance's region.
KeySourcePtr with_region(const KeySourcePtr& keys, const Home& home) {
  ChainOptions options;
  options.own = keys;
  return chain_keys(options, home.environment());
}

struct RegionOutcome {
  std::string region;
  std::string reason;
  bool passing = false;
};

RegionOutcome region_by(const Home& home, Asking& asking) {
  const KeySourcePtr keys = tests::source_of([](const Fetch&) {
    return judged({"id", "secret", "", ""}, "a place");
  });
  const KeyOutcome outcome = asking.of(*with_region(keys, home));
  BOOST_TEST(outcome.lacks_region == outcome.region.empty());
  return {outcome.region, outcome.reason,
          outcome.state == KeyOutcome::State::failed};
}

// An instance with the stand-in for its metadata service.
struct Host : Home {
  Host() {
    variables[kEndpoint] = aws.url("imds");
    anew();
  }

  // A source that has asked nobody yet.
  void anew() { source = service_at(settings_in(*this)); }
  KeyOutcome asked(std::chrono::milliseconds within = 60s) {
    return asking.of(*source, within);
  }
  std::string answer(std::chrono::milliseconds within = 60s) {
    return said(asked(within));
  }
  void is(const std::string& json) { aws.control("POST", "/imds", json); }
  int count(const std::string& operation) const {
    return aws.log().count("imds", operation);
  }
  // "PutToken ListRoles": what was asked, in order, since the last look.
  std::string operations() {
    std::string text;
    const tests::AwsLog log = aws.log();
    for (const tests::AwsRequest& request : log.requests()) {
      text += (text.empty() ? "" : " ") + request.operation;
    }
    aws.forget();
    return text;
  }
  RegionOutcome region() { return region_by(*this, asking); }

  Aws aws;
  Asking asking;
  KeySourcePtr source;
};

constexpr const char* kFound =
    "found: EC2 metadata service (role instance-role)";

// Keys that are found, and count how often they were asked for.
struct Counted {
  Counted() = default;
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

  int count = 0;
  const KeySourcePtr source = tests::source_of([this](const Fetch&) {
    ++count;
    return judged({"id", "secret", "", ""}, "a place");
  });
};

}  // namespace

BOOST_AUTO_TEST_SUITE(instance_metadata)

// --- Settings --------------------------------------------------------------

BOOST_AUTO_TEST_CASE(settings_are_those_of_ec2_unless_somebody_says_otherwise) {
  const Home home;
  const Instance settings = settings_in(home);
  BOOST_TEST(settings.endpoint == "http://169.254.169.254");
  BOOST_TEST(!settings.disabled);
  BOOST_TEST(settings.timeout.count() == 1);
  BOOST_TEST(settings.attempts == 2);
  BOOST_TEST(settings.error == "");
}

BOOST_AUTO_TEST_CASE(endpoint_goes_before_mode_and_variable_before_profile) {
  const char* const kIpv4Url = "http://169.254.169.254";
  const char* const kIpv6Url = "http://[fd00:ec2::254]";
  const struct {
    std::map<std::string, std::string> variables;
    const char* profile;
    const char* endpoint;
  } cases[] = {
      {{{kMode, "IPv6"}}, "", kIpv6Url},
      {{{kMode, "ipv6"}}, "", kIpv6Url},
      {{{kMode, "IPv4"}}, "", kIpv4Url},
      {{{kMode, ""}}, "", kIpv4Url},
      {{}, "ec2_metadata_service_endpoint_mode = IPV6\n", kIpv6Url},
      {{{kMode, "IPv4"}},
       "ec2_metadata_service_endpoint_mode = IPv6\n",
       kIpv4Url},
      {{{kEndpoint, "http://127.0.0.1:99/"}}, "", "http://127.0.0.1:99"},
      {{{kEndpoint, "https://[::1]:9/under/"}}, "", "https://[::1]:9/under"},
      {{{kEndpoint, "http://a"}, {kMode, "IPv6"}}, "", "http://a"},
      {{}, "ec2_metadata_service_endpoint = http://b/\n", "http://b"},
      {{{kEndpoint, "http://a"}},
       "ec2_metadata_service_endpoint = http://b/\n",
       "http://a"},
      {{{kMode, "IPv6"}},
       "ec2_metadata_service_endpoint = http://b/\n",
       "http://b"},
  };
  for (const auto& c : cases) {
    Home home;
    home.variables.insert(c.variables.begin(), c.variables.end());
    home.write(".aws/config", std::string("[default]\n") + c.profile);
    const Instance settings = settings_in(home);
    BOOST_TEST(settings.endpoint == c.endpoint);
    BOOST_TEST(settings.error == "");
  }
}

BOOST_AUTO_TEST_CASE(settings_are_found_in_either_file_of_the_profile) {
  const Home home;
  home.write(".aws/credentials", "[default]\nmetadata_service_timeout = 3\n");
  home.write(".aws/config",
             "[default]\nmetadata_service_num_attempts = 4\n"
             "metadata_service_timeout = 5\n[profile other]\n"
             "metadata_service_num_attempts = 6\n");
  const Instance settings = settings_in(home);
  BOOST_TEST(settings.timeout.count() == 3);
  BOOST_TEST(settings.attempts == 4);
}

BOOST_AUTO_TEST_CASE(metadata_are_disabled_by_true_alone) {
  for (const char* value : {"true", "True", "TRUE"}) {
    Home home;
    home.variables[kDisabled] = value;
    BOOST_TEST(settings_in(home).disabled);
  }
  for (const char* value : {"", "false", "1", "yes", "true "}) {
    Home home;
    home.variables[kDisabled] = value;
    BOOST_TEST(!settings_in(home).disabled);
  }
}

BOOST_AUTO_TEST_CASE(bad_setting_is_broken_and_names_its_place) {
  const struct {
    const char* variable;
    const char* value;
    const char* error;
  } cases[] = {
      {kMode, "IPv5", "is neither IPv4 nor IPv6"},
      {kEndpoint, "127.0.0.1", "is not an http or https URL"},
      {kEndpoint, "http://u:the-secret@a/", "is not an http or https URL"},
      {kEndpoint, "http://a/?b", "is not an http or https URL"},
      {kTimeout, "0", "is not a whole number from 1 to 600"},
      {kTimeout, "601", "is not a whole number from 1 to 600"},
      {kTimeout, "1.5", "is not a whole number from 1 to 600"},
      {kTimeout, "-1", "is not a whole number from 1 to 600"},
      {kTimeout, "99999999999999999999", "is not a whole number"},
      {kTimeout, "x1", "is not a whole number from 1 to 600"},
      {kAttempts, "0", "is not a whole number from 1 to 100"},
      {kAttempts, "two", "is not a whole number from 1 to 100"},
  };
  for (const auto& c : cases) {
    Home home;
    Asking asking;
    home.variables[c.variable] = c.value;
    const Instance settings = settings_in(home);
    const std::string text = said(asking.of(*service_at(settings)));
    BOOST_TEST(text.rfind(std::string("broken: ") + c.variable + " " + c.error,
                          0) == 0u,
               text);
    const RegionOutcome region = region_by(home, asking);
    BOOST_TEST(region.region == "");
    BOOST_TEST(!region.passing);
    BOOST_TEST("broken: " + region.reason == text);
    // With its value, unless there may be a secret in it.
    const std::string value = c.value;
    const bool secret = value.find('@') != value.npos;
    BOOST_TEST(
        has(text, ": \"" + value.substr(0, value.find('?')) + "\"") == !secret,
        text);
    BOOST_TEST(!has(text, "the-secret"), text);
  }
}

// --- Keys ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(keys_of_the_instances_role_are_found) {
  Host instance;
  instance.aws.lifetime(1800s);
  const KeyOutcome outcome = instance.asked();
  BOOST_TEST(said(outcome) == kFound);
  BOOST_TEST(outcome.keys.access_key_id != "");
  BOOST_TEST(!outcome.keys.secret_access_key.empty());
  BOOST_TEST(!outcome.keys.session_token.empty());
  BOOST_TEST(outcome.warnings.empty());
  BOOST_TEST(outcome.region == "");
  BOOST_TEST(tests::seconds_left(outcome) > 1700);
  BOOST_TEST(tests::seconds_left(outcome) <= 1800);
  const tests::AwsLog log = instance.aws.log();
  BOOST_TEST(instance.operations() == "PutToken ListRoles GetRole");
  const auto& put = log.last("imds", "PutToken");
  BOOST_TEST(put.method == "PUT");
  BOOST_TEST(put.headers.at("x-aws-ec2-metadata-token-ttl-seconds") == "21600");
  BOOST_TEST(log.last("imds", "ListRoles").token == "valid");
  BOOST_TEST(log.last("imds", "GetRole").token == "valid");
}

BOOST_AUTO_TEST_CASE(token_is_kept_until_its_time_is_over) {
  Host instance;
  BOOST_TEST(instance.answer() == kFound);
  BOOST_TEST(instance.answer() == kFound);
  BOOST_TEST(instance.operations() ==
             "PutToken ListRoles GetRole ListRoles GetRole");
}

// As long as the service says, which may be less than was asked for.
BOOST_AUTO_TEST_CASE(token_is_got_anew_once_its_time_is_over) {
  int puts = 0;
  tests::ScriptedServer server([&](const tests::SeenRequest& request) {
    tests::Reply reply = tests::Reply::ok("eu-west-1");
    if (request.method != "PUT") return reply;
    reply.body = "token" + std::to_string(++puts);
    reply.headers = {{"X-aws-ec2-metadata-token-ttl-seconds", "1"}};
    return reply;
  });
  Home home;
  Asking asking;
  home.variables[kEndpoint] = server.url();
  const KeySourcePtr source = service_at(settings_in(home));
  asking.of(*source);
  Waker nobody;
  wait_for(&nobody, nullptr, BootClock::now() + 1100ms);
  asking.of(*source);
  BOOST_TEST(puts == 2);
  const auto last = server.requests().back();
  BOOST_TEST((last.header("X-aws-ec2-metadata-token") == "token2"));
}

BOOST_AUTO_TEST_CASE(token_that_is_refused_is_replaced_once) {
  Host instance;
  BOOST_TEST(instance.answer() == kFound);
  instance.operations();
  instance.is(R"({"forget_tokens":true})");
  BOOST_TEST(instance.answer() == kFound);
  BOOST_TEST(instance.operations() == "ListRoles PutToken ListRoles GetRole");
  instance.is(R"({"token_seconds":0})");  // None of them is any good.
  instance.anew();
  const std::string text = instance.answer();
  BOOST_TEST(has(text, "failed: EC2 metadata service at http://127.0.0.1:"));
  BOOST_TEST(has(text, "refuses its own token (HTTP status 401)"));
  BOOST_TEST(instance.operations() == "PutToken ListRoles PutToken ListRoles");
}

BOOST_AUTO_TEST_CASE(disabled_service_is_none_and_not_asked) {
  Host instance;
  instance.variables[kDisabled] = "true";
  instance.variables[kMode] = "no mode";  // Of no importance then.
  instance.anew();
  BOOST_TEST(instance.answer() ==
             "none: EC2 metadata service: AWS_EC2_METADATA_DISABLED is true");
  const RegionOutcome region = instance.region();
  BOOST_TEST(region.reason ==
             "EC2 metadata service: AWS_EC2_METADATA_DISABLED is true");
  BOOST_TEST(!region.passing);
  BOOST_TEST(instance.operations() == "");
}

BOOST_AUTO_TEST_CASE(end_of_keys_is_by_the_services_own_date) {
  Host instance;
  instance.aws.clock_offset(7200s);
  KeyOutcome outcome = instance.asked();
  BOOST_TEST(tests::seconds_left(outcome) > 3500);
  BOOST_TEST(tests::seconds_left(outcome) <= 3601);
  instance.aws.dates(false);  // Then by ours.
  outcome = instance.asked();
  BOOST_TEST(tests::seconds_left(outcome) > 10700);
}

BOOST_AUTO_TEST_CASE(keys_whose_time_is_over_are_found_with_a_warning) {
  Host instance;
  instance.aws.lifetime(-100s);
  const KeyOutcome outcome = instance.asked();
  BOOST_TEST(said(outcome) == kFound);
  BOOST_TEST(!outcome.keys.secret_access_key.empty());
  BOOST_TEST(tests::seconds_left(outcome) <= -99);
  BOOST_TEST_REQUIRE(tests::is_one_line(outcome.warnings));
  BOOST_TEST(has(outcome.warnings, "have expired"));
}

BOOST_AUTO_TEST_CASE(no_proxy_comes_between) {
  Host instance;
  const tests::Proxied proxied(instance.aws.proxy_url());
  BOOST_TEST(instance.answer() == kFound);
  BOOST_TEST(instance.aws.log().plain() == 0);
  BOOST_TEST(instance.aws.log().connects() == 0);
}

// --- Version 1 -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(service_without_tokens_is_none_and_not_asked_without) {
  for (const char* status : {"403", "404", "405"}) {
    Host instance;
    instance.variables["AWS_EC2_METADATA_V1_DISABLED"] = "false";
    instance.anew();
    instance.is(R"({"v1":true,"put_status":)" + std::string(status) + "}");
    const std::string text = instance.answer();
    BOOST_TEST(has(text, "none: EC2 metadata service at http://127.0.0.1:"));
    BOOST_TEST(has(text, std::string("does not give tokens of version 2 (HTTP "
                                     "status ") +
                             status + ")"));
    BOOST_TEST(instance.operations() == "PutToken");
  }
}

// --- What goes wrong -------------------------------------------------------

BOOST_AUTO_TEST_CASE(instance_without_role_is_none_unless_it_had_one) {
  Host instance;
  instance.is(R"({"role":null})");
  const std::string reason = "the instance has no role";
  BOOST_TEST(has(instance.answer(), "none: EC2 metadata service at "));
  BOOST_TEST(has(instance.answer(), reason));
  instance.is(R"({"role":"instance-role"})");
  BOOST_TEST(instance.answer() == kFound);
  instance.is(R"({"role":null})");
  BOOST_TEST(has(instance.answer(), "failed: "));
  BOOST_TEST(has(instance.answer(), reason));
}

BOOST_AUTO_TEST_CASE(role_that_was_changed_is_found_by_its_new_name) {
  Host instance;
  BOOST_TEST(instance.answer() == kFound);
  instance.is(R"({"role":"new+=,.@-_1"})");
  BOOST_TEST(instance.answer() ==
             "found: EC2 metadata service (role new+=,.@-_1)");
}

BOOST_AUTO_TEST_CASE(role_that_is_changed_meanwhile_is_a_failure) {
  Host instance;
  tests::AwsFault fault = {"imds", "GetRole", "refuse"};
  fault.status = 404;
  instance.aws.fault(fault);
  BOOST_TEST(has(instance.answer(), "failed: "));
}

BOOST_AUTO_TEST_CASE(list_of_roles_is_read_to_its_first_line) {
  Host instance;
  tests::AwsFault fault = {"imds", "ListRoles", "say"};
  fault.times = 2;  // As often as it is asked.
  fault.body = "instance-role\r\nother\n";
  instance.aws.fault(fault);
  BOOST_TEST(instance.answer() == kFound);
  instance.aws.clear();
  fault.body = "";
  instance.aws.fault(fault);
  BOOST_TEST(has(instance.answer(), "the instance has no role"));
  instance.aws.clear();
  for (const char* body :
       {"a/../b", "a b", " a", "\t", "<html>", "a?b", "a#b", "\xC3\xA9"}) {
    fault.body = body;
    instance.aws.fault(fault);
    BOOST_TEST(has(instance.answer(), "its answer is not the name of a role"),
               body);
  }
}

BOOST_AUTO_TEST_CASE(keys_that_are_not_a_success_are_a_failure_by_their_code) {
  Host instance;
  tests::AwsFault fault = {"imds", "GetRole", "alter", 0};
  fault.set = {{"Code", "AssumeRoleUnauthorizedAccess"}};
  instance.aws.fault(fault);
  const std::string text = instance.answer();
  BOOST_TEST(has(text, "failed: EC2 metadata service at http://127.0.0.1:"));
  BOOST_TEST(has(text,
                 "no keys of role instance-role: Code "
                 "\"AssumeRoleUnauthorizedAccess\""));
}

BOOST_AUTO_TEST_CASE(document_that_lacks_a_part_of_the_keys_is_a_failure) {
  Host instance;
  for (const char* field :
       {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}) {
    instance.aws.clear();
    tests::AwsFault fault = {"imds", "GetRole", "missing", 0};
    fault.missing = {field};
    instance.aws.fault(fault);
    const std::string text = instance.answer();
    BOOST_TEST(has(text, "failed: "));
    BOOST_TEST(has(text, std::string("no ") + field + " in "), text);
  }
}

BOOST_AUTO_TEST_CASE(failure_of_any_request_is_tried_again_once) {
  Host instance;
  for (const char* operation : {"PutToken", "ListRoles", "GetRole"}) {
    for (const char* kind : {"500", "503", "throttle", "reset", "truncate",
                             "garbage", "oversized"}) {
      instance.aws.clear();
      instance.anew();
      instance.aws.fault({"imds", operation, kind});
      BOOST_TEST(instance.answer() == kFound, operation << " " << kind);
      instance.anew();
      instance.operations();
      instance.aws.fault({"imds", operation, kind, 2});
      const std::string text = instance.answer();
      // Of a first request that broke off, nobody can say who was asked.
      const bool unknown =
          std::string(operation) == "PutToken" &&
          (std::string(kind) == "reset" || std::string(kind) == "truncate");
      BOOST_TEST(has(text, unknown ? "none: " : "failed: "),
                 operation << " " << kind << ": " << text);
      BOOST_TEST(instance.count(operation) == 2);
    }
  }
}

BOOST_AUTO_TEST_CASE(refusal_is_broken_until_there_were_keys) {
  Host instance;
  tests::AwsFault fault = {"imds", "ListRoles", "refuse"};
  fault.status = 403;
  instance.aws.fault(fault);
  BOOST_TEST(has(instance.answer(), "broken: "));
  BOOST_TEST(instance.answer() == kFound);
  instance.aws.fault(fault);
  BOOST_TEST(has(instance.answer(), "failed: "));
}

BOOST_AUTO_TEST_CASE(redirect_is_never_followed) {
  Host instance;
  for (const char* operation : {"PutToken", "ListRoles", "GetRole"}) {
    for (const int status : {301, 302, 307}) {
      instance.anew();
      tests::AwsFault fault = {"imds", operation, "redirect"};
      fault.status = status;
      instance.aws.fault(fault);
      const std::string text = instance.answer();
      BOOST_TEST(!has(text, "found"), text);
      BOOST_TEST(has(text, "HTTP status " + std::to_string(status)), text);
    }
  }
  BOOST_TEST(instance.count("Redirected") == 0);
}

BOOST_AUTO_TEST_CASE(nobody_there_is_none_until_somebody_was) {
  Host instance;
  instance.aws.mode("imds", "refuse");
  BOOST_TEST(has(instance.answer(),
                 "none: EC2 metadata service at http://127.0.0.1:"));
  instance.aws.mode("imds", "open");
  BOOST_TEST(instance.answer() == kFound);
  instance.aws.mode("imds", "refuse");
  BOOST_TEST(has(instance.answer(),
                 "failed: EC2 metadata service at http://127.0.0.1:"));
}

BOOST_AUTO_TEST_CASE(service_that_hangs_is_none_until_it_has_answered) {
  Host instance;
  instance.variables[kAttempts] = "1";
  instance.anew();
  instance.aws.mode("imds", "hang");
  const std::string text = instance.answer();
  BOOST_TEST(has(text, "none: "));
  BOOST_TEST(has(text, "no answer in "));
  instance.aws.mode("imds", "open");
  BOOST_TEST(instance.answer() == kFound);
  instance.aws.mode("imds", "hang");
  BOOST_TEST(has(instance.answer(), "failed: "));
}

// Which has not had the time to say that it is there.
BOOST_AUTO_TEST_CASE(service_that_hangs_until_the_deadline_is_a_failure) {
  Host instance;
  instance.variables[kTimeout] = "600";
  instance.anew();
  instance.aws.mode("imds", "hang");
  const std::string text = instance.answer(300ms);
  BOOST_TEST(has(text, "failed: "));
  BOOST_TEST(has(text, "no answer in "));
}

BOOST_AUTO_TEST_CASE(service_that_hangs_is_left_when_nobody_waits_any_more) {
  tests::ScriptedServer server;
  tests::Reply late;
  late.hangs = true;
  server.script(late);
  Home home;
  home.variables[kEndpoint] = server.url();
  home.variables[kTimeout] = "600";
  Asking asking;
  const KeyOutcome outcome = asking.stopped(
      *service_at(settings_in(home)), [&] { server.wait_for_requests(1); });
  server.release();
  BOOST_TEST(has(said(outcome), "failed: "));
  BOOST_TEST(
      has(said(outcome), "given up, because nobody waits for it any more"));
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_CASE(texts_hold_nothing_of_a_token) {
  const std::string token = "AQAEAHhsdGhpcy1pcy1hLXNlY3JldA==";
  tests::ScriptedServer server([&](const tests::SeenRequest& request) {
    if (request.method == "PUT") return tests::Reply::ok(token);
    return tests::Reply::ok(token + " was refused");
  });
  Home home;
  home.variables[kEndpoint] = server.url();
  Asking asking;
  const KeyOutcome outcome = asking.of(*service_at(settings_in(home)));
  BOOST_TEST(has(said(outcome), "failed: "));
  BOOST_TEST(!has(tests::texts_of(outcome), token.substr(0, 8)));
  BOOST_TEST(
      (server.requests().back().header("X-aws-ec2-metadata-token") == token));
}

// --- Region ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(region_of_the_instance_is_found) {
  Host instance;
  instance.is(R"({"region":"ap-southeast-2","role":null})");
  const RegionOutcome outcome = instance.region();
  BOOST_TEST(outcome.region == "ap-southeast-2");
  BOOST_TEST(outcome.reason == "");
  BOOST_TEST(instance.operations() == "PutToken GetRegion");
}

BOOST_AUTO_TEST_CASE(region_that_is_none_is_not_taken) {
  Host instance;
  tests::AwsFault fault = {"imds", "GetRegion", "say", 2};
  for (const char* body :
       {"", "eu west", " eu-west-1", "eu.west", "-eu", "<html>"}) {
    fault.body = body;
    instance.aws.fault(fault);
    const RegionOutcome outcome = instance.region();
    BOOST_TEST(outcome.region == "");
    BOOST_TEST(has(outcome.reason, "its answer is not a region"), body);
  }
}

BOOST_AUTO_TEST_CASE(want_of_a_region_passes_or_does_not) {
  const struct {
    const char* operation;
    const char* kind;
    int status;
    bool passing;
  } cases[] = {
      {"GetRegion", "500", 0, true},       {"GetRegion", "throttle", 0, true},
      {"GetRegion", "garbage", 0, true},   {"GetRegion", "reset", 0, true},
      {"GetRegion", "refuse", 404, false}, {"GetRegion", "redirect", 0, false},
      {"PutToken", "500", 0, true},        {"PutToken", "refuse", 404, false},
      {"PutToken", "reset", 0, false},
  };
  Host instance;
  for (const auto& c : cases) {
    instance.aws.clear();
    tests::AwsFault fault = {"imds", c.operation, c.kind, 0};
    fault.status = c.status;
    instance.aws.fault(fault);
    const RegionOutcome outcome = instance.region();
    BOOST_TEST(outcome.region == "");
    BOOST_TEST(outcome.passing == c.passing, c.operation << " " << c.kind);
    BOOST_TEST(has(outcome.reason, "EC2 metadata service at http://127.0.0.1"));
    const Counted counted;
    const KeySourcePtr both = with_region(counted.source, instance);
    const KeyOutcome keys = instance.asking.of(*both);
    BOOST_TEST(said(keys) ==
               (c.passing ? "failed: " : "broken: ") + outcome.reason);
    BOOST_TEST(keys.lacks_region);
  }
  BOOST_TEST(instance.count("Redirected") == 0);
}

BOOST_AUTO_TEST_CASE(region_is_asked_for_once_and_given_with_all_keys) {
  Host instance;
  Counted keys;
  const KeySourcePtr both = with_region(keys.source, instance);
  tests::AwsFault fault = {"imds", "GetRegion", "500", 2};
  instance.aws.fault(fault);
  BOOST_TEST(instance.asking.of(*both).lacks_region);
  for (int i = 0; i < 2; ++i) {
    const KeyOutcome outcome = instance.asking.of(*both);
    BOOST_TEST(said(outcome) == "found: a place");
    BOOST_TEST(outcome.region == "eu-west-1");
    BOOST_TEST(outcome.keys.access_key_id == "id");
    BOOST_TEST(!outcome.lacks_region);
  }
  BOOST_TEST(instance.operations() == "PutToken GetRegion GetRegion GetRegion");
  BOOST_TEST(keys.count == 3);
}

BOOST_AUTO_TEST_CASE(region_is_not_asked_for_without_keys) {
  Host instance;
  const KeySourcePtr both = with_region(
      tests::source_of([](const Fetch&) { return no_keys("nothing"); }),
      instance);
  const KeyOutcome outcome = instance.asking.of(*both);
  BOOST_TEST(said(outcome) == "none: nothing");
  BOOST_TEST(!outcome.lacks_region);
  BOOST_TEST(instance.operations() == "");
}

BOOST_AUTO_TEST_SUITE_END()
