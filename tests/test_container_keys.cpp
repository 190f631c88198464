// Keys of a container's agent: where it may be, how it is asked, and what its
// answers are worth.
#include <stdlib.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>
#include <vector>

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

constexpr const char* kRelative = "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
constexpr const char* kFull = "AWS_CONTAINER_CREDENTIALS_FULL_URI";
constexpr const char* kTokenFile = "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE";
constexpr const char* kToken = "AWS_CONTAINER_AUTHORIZATION_TOKEN";
constexpr const char* kPath = "/v2/credentials/task";
constexpr const char* kTokenText = "the-very-secret-token";

KeySourcePtr agent_of(const Environment& environment,
                      const std::string& ca_file = {}) {
  ContainerSettings settings = container_settings(environment);
  settings.ca_file = ca_file;
  return tests::source_of([settings](const Fetch& fetch) {
    return container_keys(settings, fetch);
  });
}

// A container with the stand-in for its agent.
struct Container : Home {
  explicit Container(const std::string& path = kPath) {
    variables[kFull] = aws.plain_url("container") + path;
  }

  KeySourcePtr source() const { return agent_of(environment()); }
  KeyOutcome asked() { return asking.of(*source()); }
  std::string answer() { return said(asked()); }
  int requests() const { return aws.log().count("container"); }
  // What the agent wants to be told.
  void wants(const std::string& token) {
    aws.control("POST", "/container", R"({"authorization":")" + token + "\"}");
  }

  Aws aws;
  Asking asking;
};

struct Fault {
  const char* kind;
  const char* reason;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(container_agent)

// --- Where it may be -------------------------------------------------------

BOOST_AUTO_TEST_CASE(no_variable_is_none) {
  Home home;
  Asking asking;
  const std::string none =
      "none: neither AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor "
      "AWS_CONTAINER_CREDENTIALS_FULL_URI is set";
  BOOST_TEST(said(asking.of(*agent_of(home.environment()))) == none);
  home.variables[kRelative] = home.variables[kFull] = "";
  home.variables[kToken] = kTokenText;
  BOOST_TEST(said(asking.of(*agent_of(home.environment()))) == none);
}

BOOST_AUTO_TEST_CASE(relative_uri_is_a_path_at_the_address_of_ecs) {
  for (const char* path : {"/", "/v2/credentials/12-ab", "/a?b=c&d",
                           "//other.host/", "/@x", "/:80", "/a%20b"}) {
    Home home;
    home.variables[kRelative] = path;
    home.variables[kFull] = "http://127.0.0.1/other";
    const auto settings = container_settings(home.environment());
    BOOST_TEST(settings.error == "");
    BOOST_TEST(settings.variable == kRelative);
    BOOST_TEST(settings.place + settings.query ==
               std::string("http://169.254.170.2") + path);
  }
}

BOOST_AUTO_TEST_CASE(relative_uri_that_is_no_path_is_broken) {
  for (const char* path :
       {"v2", "@other.host/", ".other.host/", ":80/", "?a", " /",
        "http://127.0.0.1/", "/a b", "/a\nb", "/a#b", "/\xC3\xA9"}) {
    Home home;
    Asking asking;
    home.variables[kRelative] = path;
    const std::string text = said(asking.of(*agent_of(home.environment())));
    BOOST_TEST(has(text, "broken: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI "),
               path);
  }
}

BOOST_AUTO_TEST_CASE(full_uri_may_be_https_of_anybody_or_http_of_an_agent) {
  const struct {
    const char* text;
    const char* url;  // Null: the same.
  } cases[] = {
      {"https://agent.example.com/keys", nullptr},
      {"https://192.0.2.1:8443/", nullptr},
      {"https://127.0.0.1", "https://127.0.0.1/"},
      {"http://127.0.0.1:8080/keys?role=a&b", nullptr},
      {"http://127.0.0.1/?", nullptr},
      {"http://127.255.255.254/", nullptr},
      {"http://127.1/", "http://127.0.0.1/"},
      {"http://2130706433/", "http://127.0.0.1/"},
      {"http://localhost:1/a", nullptr},
      {"http://LocalHost/a", nullptr},
      {"http://[::1]:99/a", nullptr},
      {"http://169.254.170.2/a", nullptr},
      {"http://169.254.170.23/v1/credentials", nullptr},
      {"http://[fd00:ec2::23]/v1/credentials", nullptr},
      {"HTTP://127.0.0.1/a", "http://127.0.0.1/a"},
  };
  for (const auto& c : cases) {
    Home home;
    home.variables[kFull] = c.text;
    const auto settings = container_settings(home.environment());
    BOOST_TEST(settings.error == "", c.text);
    BOOST_TEST(settings.variable == kFull);
    const std::string url = c.url != nullptr ? c.url : c.text;
    // libcurl may write a host in lower case.
    BOOST_TEST((settings.place + settings.query == url ||
                settings.place + settings.query == "http://localhost/a"),
               settings.place + settings.query);
  }
}

BOOST_AUTO_TEST_CASE(full_uri_of_any_other_host_is_broken_and_not_asked) {
  const struct {
    const char* text;
    const char* why;
  } cases[] = {
      {"http://192.0.2.1/keys", "is not https"},
      {"http://agent.example.com/", "is not https"},
      {"http://localhost.example.com/", "is not https"},
      {"http://localhost./", "is not https"},
      {"http://127.0.0.1.example.com/", "is not https"},
      {"http://128.0.0.1/", "is not https"},
      {"http://126.255.255.255/", "is not https"},
      {"http://0.0.0.0/", "is not https"},
      {"http://169.254.170.1/", "is not https"},
      {"http://169.254.170.22/", "is not https"},
      {"http://169.254.169.254/", "is not https"},
      {"http://192.0.2.1/keys?t=the-very-secret", "is not https"},
      {"http://[::]/", "is not https"},
      {"http://[::2]/", "is not https"},
      {"http://[::ffff:127.0.0.1]/", "is not https"},
      {"http://[fd00:ec2::24]/", "is not https"},
      {"http://[fd00:ec2::254]/", "is not https"},
      {"http://user:the-very-secret@127.0.0.1/", "is not an http"},
      {"https://the-very-secret@agent.example.com/", "is not an http"},
      {"http://127.0.0.1/#fragment", "is not an http"},
      {"http://127.0.0.1/?a#b", "is not an http"},
      {"http://127.0.0.1/a b", "is not an http"},
      {"http://127.0.0.1/\r\nX: y", "is not an http"},
      {"http://127.0.0.1/?a\nb", "is not an http"},
      {"http://127.0.0.1?a=b/../", nullptr},  // A query, and well.
      {"http://[::1%25lo]/", "is not an http"},
      {"http://127.0.0.1:99999/", "is not an http"},
      {"http:/127.0.0.1/", "is not an http"},
      {"http:///a", "is not an http"},
      {"ftp://127.0.0.1/", "is not an http"},
      {"file:///etc/passwd", "is not an http"},
      {"127.0.0.1/a", "is not an http"},
      {"/a", "is not an http"},
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
    Asking asking;
    const std::string text = said(asking.of(*agent_of(home.environment())));
    BOOST_TEST(text == "broken: " + settings.error);
    BOOST_TEST(!has(text, "the-very-secret"));
    // What is before a query, if there can be no password.
    const std::string url = c.text;
    const std::string shown =
        ddbmutex::sigv4::in_quotes(url.substr(0, url.find('?')));
    BOOST_TEST(has(text, ": " + shown) == (url.find('@') == url.npos), text);
  }
}

// --- What it gives ---------------------------------------------------------

BOOST_AUTO_TEST_CASE(keys_of_the_agent_are_found) {
  Container container;
  container.aws.lifetime(1800s);
  container.aws.control("POST", "/container",
                        R"({"account_id":"111122223333"})");
  const KeyOutcome outcome = container.asked();
  BOOST_TEST(said(outcome) ==
             "found: the container's agent "
             "(AWS_CONTAINER_CREDENTIALS_FULL_URI)");
  BOOST_TEST(outcome.keys.access_key_id != "");
  BOOST_TEST(!outcome.keys.secret_access_key.empty());
  BOOST_TEST(!outcome.keys.session_token.empty());
  BOOST_TEST(outcome.keys.account_id == "111122223333");
  BOOST_TEST(outcome.warnings.empty());
  BOOST_TEST(tests::seconds_left(outcome) > 1700);
  BOOST_TEST(tests::seconds_left(outcome) <= 1800);
  const tests::AwsRequest request = container.aws.log().last("container");
  BOOST_TEST(request.method == "GET");
  BOOST_TEST(request.path == kPath);
  BOOST_TEST(request.token == "absent");
  BOOST_TEST(request.headers.at("accept") == "application/json");
}

BOOST_AUTO_TEST_CASE(query_of_the_uri_is_sent) {
  Container container("/keys?role=a&b=%20c");
  BOOST_TEST(has(container.answer(), "broken: "));  // There is no such path.
  container.aws.control("POST", "/container",
                        R"({"path":"/keys?role=a&b=%20c"})");
  BOOST_TEST(has(container.answer(), "found: "));
}

BOOST_AUTO_TEST_CASE(https_is_believed_with_a_ca_that_vouches_for_it) {
  Container container;
  container.variables[kFull] = container.aws.url("container") + kPath;
  const auto with = [&](const std::string& ca_file) {
    return said(
        container.asking.of(*agent_of(container.environment(), ca_file)));
  };
  BOOST_TEST(has(with(container.aws.ca_file()), "found: "));
  BOOST_TEST(container.aws.log().last("container").door == "https");
  const int before = container.requests();
  BOOST_TEST(has(with(""), "broken: AWS_CONTAINER_CREDENTIALS_FULL_URI: "));
  BOOST_TEST(container.requests() == before);
}

BOOST_AUTO_TEST_CASE(end_of_keys_is_by_the_agents_own_date) {
  Container container;
  container.aws.clock_offset(7200s);
  KeyOutcome outcome = container.asked();
  BOOST_TEST(tests::seconds_left(outcome) > 3500);
  BOOST_TEST(tests::seconds_left(outcome) <= 3601);
  container.aws.dates(false);  // Then by ours.
  outcome = container.asked();
  BOOST_TEST(tests::seconds_left(outcome) > 10700);
}

BOOST_AUTO_TEST_CASE(keys_whose_time_is_over_are_a_failure) {
  Container container;
  container.aws.lifetime(-5s);
  BOOST_TEST(
      has(container.answer(), "failed: AWS_CONTAINER_CREDENTIALS_FULL_URI: "));
  BOOST_TEST(has(container.answer(), "keys that it gave have already expired"));
}

BOOST_AUTO_TEST_CASE(no_proxy_comes_between) {
  Container container;
  const tests::Proxied proxied(container.aws.proxy_url());
  BOOST_TEST(has(container.answer(), "found: "));
  container.variables[kFull] = container.aws.url("container") + kPath;
  BOOST_TEST(has(said(container.asking.of(*agent_of(container.environment(),
                                                    container.aws.ca_file()))),
                 "found: "));
  BOOST_TEST(container.aws.log().plain() == 0);
  BOOST_TEST(container.aws.log().connects() == 0);
}

// --- The token -------------------------------------------------------------

BOOST_AUTO_TEST_CASE(token_is_sent_as_it_is) {
  Container container;
  for (const std::string token : {"Basic abc+/=", "  x  y", "a"}) {
    container.variables[kToken] = token;
    container.wants(token == "  x  y" ? "x  y" : token);
    BOOST_TEST(has(container.answer(), "found: "), token);
  }
}

BOOST_AUTO_TEST_CASE(token_file_goes_before_the_token_and_is_read_anew) {
  Container container;
  container.variables[kToken] = "of-the-variable";
  container.variables[kTokenFile] = container.write("token", "first");
  std::filesystem::permissions(container.root / "token",
                               std::filesystem::perms(0600));
  const KeySourcePtr source = container.source();
  container.wants("first");
  BOOST_TEST(has(said(container.asking.of(*source)), "found: "));
  container.wants("second");
  BOOST_TEST(has(said(container.asking.of(*source)), "broken: "));
  container.write("token", "second");
  BOOST_TEST(has(said(container.asking.of(*source)), "found: "));
}

// As Kubernetes writes it.
BOOST_AUTO_TEST_CASE(token_file_that_others_may_read_is_no_news) {
  Container container;
  container.variables[kTokenFile] = container.write("token", kTokenText);
  for (const unsigned mode : {0644u, 0444u, 0600u}) {
    std::filesystem::permissions(container.root / "token",
                                 std::filesystem::perms(mode));
    const KeyOutcome outcome = container.asked();
    BOOST_TEST(said(outcome) ==
               "found: the container's agent "
               "(AWS_CONTAINER_CREDENTIALS_FULL_URI)");
    BOOST_TEST(outcome.warnings == "");
    BOOST_TEST(!has(tests::texts_of(outcome), kTokenText));
  }
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

BOOST_AUTO_TEST_CASE(token_file_that_gives_no_token_is_broken) {
  Container container;
  container.variables[kToken] = "of-the-variable";
  const std::string path =
      container.write("token", kTokenText + std::string("\n"));
  const auto with = [&](const std::string& file) {
    container.variables[kTokenFile] = file;
    return container.answer();
  };
  const std::string before =
      "broken: AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE: \"";
  BOOST_TEST(with(path) == before + path + "\" contains a line break");
  BOOST_TEST(with("/no/such/file") ==
             before + "/no/such/file\" does not exist");
  BOOST_TEST(has(with(container.root.string()), before));
  container.write("token", "");
  BOOST_TEST(with(path) == before + path + "\" is empty");
  container.write("token", std::string(40000, 'x'));
  BOOST_TEST(with(path) == before + path + "\" is longer than 32 KiB");
  BOOST_TEST(container.requests() == 0);
}

// --- What goes wrong -------------------------------------------------------

BOOST_AUTO_TEST_CASE(refusal_is_broken_and_told_by_code_and_message) {
  Container container;
  container.wants("another");
  container.variables[kToken] = kTokenText;
  const std::string text = container.answer();
  BOOST_TEST(has(text, "broken: AWS_CONTAINER_CREDENTIALS_FULL_URI: "));
  BOOST_TEST(has(text, "AccessDeniedException"));
  BOOST_TEST(has(text, "who asks is unknown"));
  BOOST_TEST(has(text, "HTTP status 403"));
  BOOST_TEST(!has(text, kTokenText));
  BOOST_TEST(container.requests() == 1);
}

BOOST_AUTO_TEST_CASE(refusal_that_repeats_the_token_is_not_shown) {
  Container container;
  container.variables[kToken] = kTokenText;
  container.aws.fault({"container", "*", "refuse", 1, 1, 403, kTokenText,
                       std::string("not known: ") + kTokenText});
  const std::string text = container.answer();
  BOOST_TEST(has(text, "HTTP status 403"));
  BOOST_TEST(!has(text, kTokenText));
}

BOOST_AUTO_TEST_CASE(what_may_pass_is_tried_again) {
  Container container;
  for (const char* kind : {"500", "503", "throttle", "reset", "truncate",
                           "garbage", "empty", "oversized"}) {
    container.aws.forget();
    container.aws.fault({"container", "*", kind, 2});
    BOOST_TEST(has(container.answer(), "found: "), kind);
    BOOST_TEST(container.requests() == 3, kind);
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_pass_in_three_attempts_is_a_failure) {
  Container container;
  const Fault faults[] = {
      {"500", "HTTP status 500"},
      {"throttle", "HTTP status 429"},
      {"reset", ""},
      {"truncate", ""},
      {"garbage", "the answer is not a JSON object"},
      {"empty", "the answer is not a JSON object"},
      {"oversized", "the answer is too large"},
  };
  for (const Fault& fault : faults) {
    container.aws.clear();
    container.aws.forget();
    container.aws.fault({"container", "*", fault.kind, 0});
    const std::string text = container.answer();
    BOOST_TEST(has(text, "failed: AWS_CONTAINER_CREDENTIALS_FULL_URI: "), text);
    BOOST_TEST(has(text, fault.reason), text);
    BOOST_TEST(container.requests() == 3, fault.kind);
  }
}

BOOST_AUTO_TEST_CASE(answer_that_lacks_a_part_of_the_keys_is_a_failure) {
  Container container;
  for (const char* field :
       {"AccessKeyId", "SecretAccessKey", "Token", "Expiration"}) {
    container.aws.clear();
    tests::AwsFault fault = {"container", "*", "missing", 0};
    fault.missing = {field};
    container.aws.fault(fault);
    const std::string text = container.answer();
    BOOST_TEST(has(text, std::string("no ") + field + " in the answer"), text);
    BOOST_TEST(has(text, "failed: "));
  }
  container.aws.clear();
  tests::AwsFault fault = {"container", "*", "alter", 0};
  fault.set = {{"Expiration", "soon"}};
  container.aws.fault(fault);
  BOOST_TEST(has(container.answer(), "Expiration is not an ISO 8601 time"));
}

BOOST_AUTO_TEST_CASE(redirect_is_broken_and_not_followed) {
  Container container;
  container.variables[kToken] = kTokenText;
  for (const int status : {301, 302, 303, 307, 308}) {
    tests::AwsFault fault = {"container", "*", "redirect"};
    fault.status = status;
    container.aws.fault(fault);
    BOOST_TEST(has(container.answer(),
                   "broken: AWS_CONTAINER_CREDENTIALS_FULL_URI: "));
  }
  BOOST_TEST(container.aws.log().count("container", "Redirected") == 0);
  BOOST_TEST(container.requests() == 5);
}

BOOST_AUTO_TEST_CASE(agent_that_is_not_there_is_a_failure) {
  Container container;
  container.aws.mode("container", "refuse");
  BOOST_TEST(
      has(container.answer(), "failed: AWS_CONTAINER_CREDENTIALS_FULL_URI: "));
}

BOOST_AUTO_TEST_CASE(agent_that_hangs_is_left_at_the_deadline) {
  Container container;
  container.aws.mode("container", "hang");
  const std::string text =
      said(container.asking.of(*container.source(), 500ms));
  BOOST_TEST(has(text, "failed: AWS_CONTAINER_CREDENTIALS_FULL_URI: "));
  BOOST_TEST(has(text, "no answer in"));
}

BOOST_AUTO_TEST_CASE(agent_that_hangs_is_left_when_nobody_waits_any_more) {
  tests::ScriptedServer server;
  tests::Reply late;
  late.hangs = true;
  server.script(late);
  Home home;
  home.variables[kFull] = server.url();
  Asking asking;
  const KeyOutcome outcome = asking.stopped(
      *agent_of(home.environment()), [&] { server.wait_for_requests(1); });
  server.release();
  BOOST_TEST(
      has(said(outcome), "given up, because nobody waits for it any more"));
  BOOST_TEST(server.request_count() == 1);
}

BOOST_AUTO_TEST_SUITE_END()
