// Keys of this host: from an EC2 instance's metadata service (with its region),
// and from a container's agent.  Which settings count, what is asked, and which
// answers are accepted.
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <string>

#include "sigv4/keys/from_all.hpp"
#include "sigv4/keys/from_hosts.hpp"
#include "sigv4/parts.hpp"
#include "sigv4/secret.hpp"
#include "tests/support/asking.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/given.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stamps.hpp"
#include "tests/support/waiting.hpp"

using namespace ddbmutex;
using namespace ddbmutex::sigv4;
using namespace std::chrono_literals;
using tests::Aws;
using tests::has;
using tests::Home;
using tests::said;

BOOST_AUTO_TEST_SUITE(instance_metadata)

namespace {

constexpr const char* kEndpoint = "AWS_EC2_METADATA_SERVICE_ENDPOINT";

Instance settings_in(const Home& home) {
  const Environment environment = home.environment();
  Instance instance;
  read_instance_settings(environment,
                         Profile(locate_profile({}, environment), core_parts()),
                         instance);
  return instance;
}

KeySourcePtr service_at(Instance service) {
  return tests::source_of([service](const Fetch& fetch) mutable {
    return instance_keys(service, fetch);
  });
}

// A source that has keys.  It counts how often it is asked.
KeySourcePtr kept_keys(int* asked) {
  return tests::source_of([asked](const Fetch&) {
    if (asked != nullptr) ++*asked;
    return judged({"id", "secret", "", ""}, "a place");
  });
}

// A source that adds the instance's region to these keys.
KeySourcePtr with_region(const KeySourcePtr& keys, const Home& home) {
  ChainOptions options;
  options.own = keys;
  return chain_keys(options, core_parts(), home.environment());
}

// An instance with the stand-in for its metadata service.
struct Host : Home {
  Host() {
    variables[kEndpoint] = aws.url("imds");
    variables["AWS_METADATA_SERVICE_TIMEOUT"] = "20";  // However slow it is.
    anew();
  }

  // Makes a source that has no token yet.
  void anew() { source = service_at(settings_in(*this)); }
  KeyOutcome asked() { return tests::asked(*source); }
  std::string answer() { return said(asked()); }
  void is(const std::string& json) { aws.control("POST", "/imds", json); }
  // What the service was asked since the last call: "PutToken ListRoles".
  std::string operations() {
    std::string text;
    const tests::AwsLog log = aws.log();
    for (const tests::AwsRequest& request : log.requests()) {
      text += (text.empty() ? "" : " ") + request.operation;
    }
    aws.forget();
    return text;
  }

  Aws aws;
  KeySourcePtr source;
};

constexpr const char* kFound =
    "found: EC2 metadata service (role instance-role)";

}  // namespace

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

BOOST_AUTO_TEST_CASE(token_that_is_refused_is_replaced_once) {
  Host instance;
  BOOST_TEST(instance.answer() == kFound);
  instance.operations();
  instance.is(R"({"forget_tokens":true})");
  BOOST_TEST(instance.answer() == kFound);
  BOOST_TEST(instance.operations() == "ListRoles PutToken ListRoles GetRole");
  instance.is(R"({"token_seconds":0})");  // Each token has expired at once.
  instance.anew();
  const std::string text = instance.answer();
  BOOST_TEST(has(text, "failed: EC2 metadata service at http://127.0.0.1:"));
  BOOST_TEST(has(text, "refuses its own token (HTTP status 401)"));
  BOOST_TEST(instance.operations() == "PutToken ListRoles PutToken ListRoles");
}

// --- What goes wrong -------------------------------------------------------

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

// Packets of the service that would pass one router too many are lost, so a
// container is connected, and its request never answered.
BOOST_AUTO_TEST_CASE(request_that_nobody_answers_hints_at_the_hop_limit) {
  tests::ScriptedServer server(
      [](const tests::SeenRequest&) { return tests::hanging(); });
  Instance settings;
  settings.endpoint = "http://127.0.0.1:" + std::to_string(server.port());
  settings.attempts = 1;
  settings.timeout = 1s;
  const KeySourcePtr source = service_at(settings);
  BOOST_TEST(has(said(tests::asked(*source)),
                 " ms (from a container, answers need the instance's "
                 "HttpPutResponseHopLimit to be 2 or more)"));
  server.release();
  // Who is not even connected has another problem.
  server.stop();
  BOOST_TEST(!has(said(tests::asked(*source)), "HopLimit"));
}

// As with botocore and AWS's SDK for JavaScript.
BOOST_AUTO_TEST_CASE(empty_token_of_a_host_is_none) {
  tests::ScriptedServer server([](const tests::SeenRequest& request) {
    const bool lists = request.path.back() == '/';
    return tests::Reply::ok(
        request.method == "PUT" || lists
            ? "role"
            : R"({"AccessKeyId":"i","SecretAccessKey":"s","Token":"",)"
              R"("Expiration":"2099-01-01T00:00:00Z"})");
  });
  Instance settings;
  settings.endpoint = "http://127.0.0.1:" + std::to_string(server.port());
  Home home;
  home.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
      settings.endpoint + "/k";
  const ContainerSettings container = container_settings(home.environment());
  for (const KeySourcePtr& source :
       {service_at(settings), tests::source_of([&](const Fetch& fetch) {
          return container_keys(container, fetch);
        })}) {
    const KeyOutcome outcome = tests::asked(*source);
    BOOST_TEST(has(said(outcome), "found: "), said(outcome));
    BOOST_TEST(outcome.keys.access_key_id == "i");
    BOOST_TEST(outcome.keys.session_token.empty());
  }
}

// --- Region ----------------------------------------------------------------

BOOST_AUTO_TEST_CASE(region_is_asked_for_once_and_given_with_all_keys) {
  Host instance;
  int asked = 0;
  const KeySourcePtr both = with_region(kept_keys(&asked), instance);
  tests::AwsFault fault = {"imds", "GetRegion", "refuse", 2};
  fault.status = 500;
  instance.aws.fault(fault);
  BOOST_TEST(tests::asked(*both).lacks_region);
  for (int i = 0; i < 2; ++i) {
    const KeyOutcome outcome = tests::asked(*both);
    BOOST_TEST(said(outcome) == "found: a place");
    BOOST_TEST(outcome.region == "eu-west-1");
    BOOST_TEST(outcome.keys.access_key_id == "id");
    BOOST_TEST(!outcome.lacks_region);
  }
  BOOST_TEST(instance.operations() == "PutToken GetRegion GetRegion GetRegion");
  BOOST_TEST(asked == 3);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(container_agent)

namespace {

constexpr const char* kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr const char* kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr const char* kTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
constexpr const char* kToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN";

KeySourcePtr agent_of(const Environment& environment) {
  const ContainerSettings settings = container_settings(environment);
  return tests::source_of([settings](const Fetch& fetch) {
    return container_keys(settings, fetch);
  });
}

// A container with the stand-in for its agent.
struct Container : Home {
  Container() {
    variables[kFull] = aws.plain_url("container") + "/v2/credentials/task";
  }

  KeySourcePtr source() const { return agent_of(environment()); }
  KeyOutcome asked() { return tests::asked(*source()); }
  std::string answer() { return said(asked()); }
  int requests() const { return aws.log().count("container"); }
  // The agent refuses any other token from now on.
  void wants(const std::string& token) {
    aws.control("POST", "/container", R"({"authorization":")" + token + "\"}");
  }

  Aws aws;
};

}  // namespace

// --- Where it may be -------------------------------------------------------

BOOST_AUTO_TEST_CASE(relative_uri_that_is_no_path_is_broken) {
  for (const char* path :
       {"v2", "@other.host/", ".other.host/", ":80/", "?a", " /",
        "http://127.0.0.1/", "/a b", "/a\nb", "/a#b", "/\xC3\xA9"}) {
    Home home;
    home.variables[kRelative] = path;
    const std::string text = said(tests::asked(*agent_of(home.environment())));
    BOOST_TEST(has(text, "broken: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI "),
               path);
  }
}

BOOST_AUTO_TEST_CASE(full_uri_of_any_other_host_is_broken_and_not_asked) {
  const struct {
    const char* text;
    const char* why;
  } cases[] = {
      {"http://192.0.2.1/keys", "is not https"},
      {"http://localhost.example.com/", "is not https"},
      {"http://127.0.0.1.example.com/", "is not https"},
      {"http://128.0.0.1/", "is not https"},
      {"http://0.0.0.0/", "is not https"},
      {"http://169.254.170.22/", "is not https"},
      {"http://169.254.169.254/", "is not https"},
      {"http://192.0.2.1/keys?t=the-very-secret", "is not https"},
      {"http://[::ffff:127.0.0.1]/", "is not https"},
      {"http://[fd00:ec2::24]/", "is not https"},
      {"http://user:the-very-secret@127.0.0.1/", "is not an http"},
      {"http://127.0.0.1/#fragment", "is not an http"},
      {"http://127.0.0.1/\r\nX: y", "is not an http"},
      {"http://127.0.0.1?a=b/../", nullptr},  // A query is accepted.
      {"http://[::1%25lo]/", "is not an http"},
      {"ftp://127.0.0.1/", "is not an http"},
      {"127.0.0.1/a", "is not an http"},
  };
  for (const auto& c : cases) {
    Home home;
    home.variables[kFull] = c.text;
    const auto settings = container_settings(home.environment());
    if (c.why == nullptr) {
      BOOST_TEST(settings.error == "", c.text);
      continue;
    }
    BOOST_TEST(has(settings.error, c.why), c.text << ": " << settings.error);
    const std::string text = said(tests::asked(*agent_of(home.environment())));
    BOOST_TEST(text == "broken: " + settings.error);
    BOOST_TEST(!has(text, "the-very-secret"));
    // The URL is shown up to its query, unless it may have a password.
    const std::string url = c.text;
    const std::string shown =
        ddbmutex::sigv4::in_quotes(url.substr(0, url.find('?')));
    BOOST_TEST(has(text, ": " + shown) == (url.find('@') == url.npos), text);
  }
}

// --- The token -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(token_file_goes_before_the_token_and_is_read_anew) {
  Container container;
  container.variables[kToken] = "of-the-variable";
  container.variables[kTokenFile] = container.write("token", "first");
  std::filesystem::permissions(container.root / "token",
                               std::filesystem::perms(0600));
  const KeySourcePtr source = container.source();
  container.wants("first");
  BOOST_TEST(has(said(tests::asked(*source)), "found: "));
  container.wants("second");
  BOOST_TEST(has(said(tests::asked(*source)), "broken: "));
  container.write("token", "second");
  BOOST_TEST(has(said(tests::asked(*source)), "found: "));
}

BOOST_AUTO_TEST_CASE(token_that_cannot_be_sent_is_broken_and_nothing_is) {
  Container container;
  for (const char* token : {"a\nb", "a\rb", "a\r\nX: y", "a\n", "\n"}) {
    container.variables[kToken] = token;
    BOOST_TEST(
        container.answer() ==
        "broken: AWS_CONTAINER_AUTHORIZATION_TOKEN contains a line break");
  }
  container.variables[kToken] = "a\x01";
  BOOST_TEST(container.answer() ==
             "broken: AWS_CONTAINER_AUTHORIZATION_TOKEN has a character that "
             "cannot be in a header");
  container.variables[kToken] = "\xC3\xA9";
  BOOST_TEST(has(container.answer(), "broken: "));
  BOOST_TEST(container.requests() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
