// Where requests go.  First, which region and URL the settings name, and what
// an error says of them.  Then the URLs of AWS's services: endpoint_cases.txt
// has what AWS's own resolver answers.  Last, with a process that takes locks:
// which certificates and proxies it accepts, and that it follows no redirect.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <ostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "extras/parts.hpp"
#include "sigv4/endpoints.hpp"
#include "sigv4/http.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/agent.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/fake_calendar.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/proxied.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stage.hpp"

using ddbmutex::Errc;
using ddbmutex::dynamodb::find_target;
using ddbmutex::dynamodb::Target;
using ddbmutex::dynamodb::TargetOptions;
using ddbmutex::sigv4::all_parts;
using ddbmutex::sigv4::Exchange;
using ddbmutex::sigv4::in_quotes;
using tests::Agent;
using tests::has;
using tests::Home;
using tests::Stage;

BOOST_AUTO_TEST_SUITE(endpoint)

namespace {

// "REGION URL", or the error.
std::string found(const Home& home, const TargetOptions& options = {}) {
  const Target target = find_target(options, all_parts(), home.environment());
  if (!target.error.empty()) {
    BOOST_TEST(target.endpoint + target.region == "");
    return target.error;
  }
  BOOST_TEST(ddbmutex::sigv4::is_endpoint_url(target.endpoint));
  return target.region + " " + target.endpoint;
}

// The URL, or the error, if an option gives the region.
std::string url(const Home& home) {
  const std::string text = found(home, {"eu-west-1", "", {}});
  const std::string region = "eu-west-1 ";
  const bool good = text.substr(0, region.size()) == region;
  return good ? text.substr(region.size()) : text;
}

constexpr char kUsual[] = "https://dynamodb.eu-west-1.amazonaws.com";

}  // namespace

BOOST_AUTO_TEST_CASE(bad_region_is_an_error_that_names_its_source) {
  const std::string wrong = " is not the name of a region: ";
  Home home;
  home.write(".aws/config", "[default]\nregion = evil.example/\n");
  BOOST_TEST(found(home) ==
             "region of profile \"default\" in " +
                 in_quotes((home.root / ".aws/config").string()) + wrong +
                 "\"evil.example/\"");
  home.variables["AWS_DEFAULT_REGION"] = "a b";
  BOOST_TEST(found(home) == "AWS_DEFAULT_REGION" + wrong + "\"a b\"");
  home.variables["AWS_REGION"] = "x@evil\x1b";
  BOOST_TEST(found(home) == "AWS_REGION" + wrong + "\"x@evil\\x1b\"");
  BOOST_TEST(found(home, {"eu-west-1.", "", {}}) ==
             "option region" + wrong + "\"eu-west-1.\"");
}

BOOST_AUTO_TEST_CASE(bad_endpoint_is_an_error_that_names_its_source) {
  const std::string wrong =
      " is not http:// or https://, a host, and optionally a port and a path";
  for (const char* bad : {"ftp://h", "h:8000", "http://", "http://h/a b",
                          "http://h?q=1", "http://h#f", "http://u:sEcReT@h",
                          "http://h\nX: y", "http:// h", "://"}) {
    Home home;
    const std::string value = has(bad, "@")
                                  ? " (not shown: it may contain a password)"
                                  : " is " + in_quotes(bad) + ", which";
    for (const char* name : {"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB"}) {
      home.variables[name] = bad;
      BOOST_TEST(url(home) == name + value + wrong);
    }
    BOOST_TEST(found(home, {"eu-west-1", bad, {}}) ==
               "option endpoint" + value + wrong);
  }
}

BOOST_AUTO_TEST_CASE(region_that_may_come_later_is_no_error_and_is_asked_for) {
  Home home;
  const Target later = find_target({}, all_parts(), home.environment());
  BOOST_TEST(later.error + later.region + later.endpoint == "");
  BOOST_TEST(has(later.region_sources,
                 "neither AWS_REGION nor AWS_DEFAULT_REGION is set, nor region "
                 "of profile \"default\" ("));
  Target bad = later;
  complete(bad, {"a b", "EC2's metadata service"});
  BOOST_TEST(bad.error ==
             "EC2's metadata service is not the name of a region: \"a b\"");
  BOOST_TEST(bad.option == "region");
  Target good = later;
  complete(good, {"eu-west-1", "EC2's metadata service"});
  BOOST_TEST(good.error + good.region_sources == "");
  BOOST_TEST(good.region_said.source == "EC2's metadata service");
  BOOST_TEST(good.region + " " + good.endpoint ==
             "eu-west-1 " + std::string(kUsual));
  home.variables["AWS_REGION"] = "eu-west-1";
  BOOST_TEST(find_target({}, all_parts(), home.environment()).endpoint ==
             kUsual);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Where AWS's services are ------------------------------------------------

BOOST_AUTO_TEST_SUITE(service_endpoints)

namespace {

using namespace ddbmutex::sigv4;
using Words = std::vector<std::string>;

struct Case {
  std::string region;
  std::string service;
  std::string flags;
  std::string mode;
  std::string account;
  std::string configured;
  std::string url;  // Or "refused:...".
  std::string signed_for;
};

Words split(const std::string& text, char at) {
  Words words;
  std::istringstream in(text);
  for (std::string word; std::getline(in, word, at);) words.push_back(word);
  return words;
}

std::string in_place_of_star(std::string text, const std::string& region) {
  const auto star = text.find('*');
  return star == text.npos ? text : text.replace(star, 1, region);
}

void add_cases(const Words& words, const Words& regions,
               std::vector<Case>& cases) {
  BOOST_TEST_REQUIRE((words.size() == 6 || words.size() == 7));
  for (const std::string& region : regions) {
    const std::string configured = in_place_of_star(words[4], region);
    const std::string url =
        words[5] == "=" ? configured : in_place_of_star(words[5], region);
    const std::string signed_for =
        words.size() == 7 ? in_place_of_star(words[6], region) : "";
    for (const std::string& mode : split(words[2], ',')) {
      for (const std::string& account : split(words[3], ',')) {
        cases.push_back({region, words[0], words[1], mode, account, configured,
                         url, signed_for});
      }
    }
  }
}

std::vector<Case> read_cases() {
  std::ifstream in(std::filesystem::path(__FILE__).parent_path().parent_path() /
                   "endpoint_cases.txt");
  std::vector<Case> cases;
  Words regions;
  bool in_heading = false;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line.front() == '#') continue;
    Words words = split(line, ' ');
    const bool heading = words.front() == "regions";
    if (heading && !in_heading) regions.clear();
    in_heading = heading;
    if (heading) {
      regions.insert(regions.end(), words.begin() + 1, words.end());
    } else {
      add_cases(words, regions, cases);
    }
  }
  return cases;
}

// What the library's error says where AWS's resolver has one.
const std::map<std::string, std::string> kRefusals = {
    {"fips-custom", "_FIPS_ENDPOINT is true, but AWS_ENDPOINT_URL"},
    {"dual-custom", "_DUALSTACK_ENDPOINT is true, but AWS_ENDPOINT_URL"},
    {"dual-override", "names a dual-stack endpoint of AWS, which"},
    {"fips-local", "_FIPS_ENDPOINT is true, but region \"local\" is this host"},
    {"dual-local",
     "_DUALSTACK_ENDPOINT is true, but region \"local\" is this host"},
    {"fips-required",
     "AWS_ACCOUNT_ID_ENDPOINT_MODE requires an account's own endpoint: there "
     "is none with FIPS, and AWS_USE_FIPS_ENDPOINT is true"},
    {"region-required", "own endpoint: there is none in region"},
    {"account-bad", "account id that came with the keys is not valid"},
    {"account-missing",
     "AWS_ACCOUNT_ID_ENDPOINT_MODE requires an account's own endpoint, but the "
     "source of the keys does not name the account"},
};

void set_variables(const Case& one, Home& home) {
  const auto set = [&](const char* name, const std::string& value) {
    home.variables[name] = value == "-" ? "" : value;
  };
  const bool both = one.flags == "both";
  set("AWS_USE_FIPS_ENDPOINT", both || one.flags == "fips" ? "true" : "false");
  set("AWS_USE_DUALSTACK_ENDPOINT",
      both || one.flags == "dual" ? "true" : "false");
  set("AWS_ACCOUNT_ID_ENDPOINT_MODE", one.mode);
  set("AWS_ENDPOINT_URL", one.configured);
}

struct Found {
  std::string url;
  std::string region;
  std::string error;
};

Found at(Target target, const Case& one) {
  if (!target.error.empty()) return {"", "", target.error};
  use_account(target, "", one.account == "-" ? "" : one.account);
  return {target.endpoint, target.region, target.error};
}

Found dynamodb_of(const Case& one, const Home& home) {
  TargetOptions options;
  options.region = one.region;
  return at(find_target(options, all_parts(), home.environment()), one);
}

Found sts_of(const Case& one, const Home& home) {
  ServiceEndpoint endpoint;
  read_endpoint_settings(
      Service::sts,
      Profile(locate_profile({}, home.environment()), all_parts()),
      home.environment(), endpoint);
  all_parts().find_endpoint(Service::sts, {one.region, "region"}, endpoint);
  if (!endpoint.error.empty()) return {endpoint.endpoint, "", endpoint.error};
  return {endpoint.endpoint, endpoint.region, ""};
}

Found answer_to(const Case& one, const Home& home) {
  return one.service == "sts" ? sts_of(one, home) : dynamodb_of(one, home);
}

bool is_right(const Found& answer, const Case& one) {
  const std::string refused = "refused:";
  if (one.url.rfind(refused, 0) != 0) {
    return answer.error.empty() && answer.url == one.url &&
           answer.region == one.signed_for;
  }
  return answer.url.empty() && answer.region.empty() &&
         has(answer.error, kRefusals.at(one.url.substr(refused.size())));
}

std::string described(const Case& one, const Found& answer) {
  return one.service + " in " + one.region + ", " + one.flags + " " + one.mode +
         " " + one.account + " " + one.configured + ": " + one.url + " " +
         one.signed_for + ", but not " + answer.url + " " + answer.region +
         " " + answer.error;
}

}  // namespace

// Each case is set by variables, as a program's user would.
BOOST_AUTO_TEST_CASE(urls_and_refusals_are_those_of_awss_resolver) {
  const std::vector<Case> cases = read_cases();
  BOOST_TEST(cases.size() > 2500u);
  Home home;
  for (const Case& one : cases) {
    set_variables(one, home);
    const Found answer = answer_to(one, home);
    BOOST_TEST(is_right(answer, one), described(one, answer));
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- End to end --------------------------------------------------------------

namespace {

// A certificate that must be refused, and what the error says of it.
struct Certificate {
  const char* name;
  const char* told;
};

std::ostream& operator<<(std::ostream& out, const Certificate& certificate) {
  return out << certificate.name;
}

const std::vector<Certificate> kBadCertificates = {
    {"expired", "expired"},
    {"other-host", "subject name"},
    {"unknown-ca", "unable to get local issuer"}};

int count_of(const std::string& text, const std::string& part) {
  int count = 0;
  for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1))
    ++count;
  return count;
}

// Requests that came in at that one of the stand-in's ports.
int requests_by(const tests::AwsLog& log, const std::string& door) {
  int count = 0;
  for (const auto& request : log.requests()) count += request.door == door;
  return count;
}

std::string port_of(const std::string& url) {
  return url.substr(url.rfind(':') + 1);
}

// "host:port" of a URL.  A proxy is asked to connect to this.
std::string target_of(const std::string& url) {
  return url.substr(url.find("://") + 3);
}

int times_asked(const tests::AwsLog& log, const std::string& url) {
  int count = 0;
  for (const std::string& target : log.targets()) {
    count += target == target_of(url);
  }
  return count;
}

// Whether a "try" ended with an error that it retries.  It does so for as long
// as one request may take.  The last request may be cut short (timed_out); then
// only the log has the cause.
bool is_transient_error(const std::string& result) {
  return result == tests::refused(Errc::unreachable) ||
         result == tests::refused(Errc::bad_answer) ||
         result == tests::refused(Errc::timed_out);
}

// What a new agent answers to one command, and why it failed, if it did.
struct Said {
  Said(const Stage& it, const std::string& command) {
    Agent agent(it.engine.table(), it.environment());
    // A "lock" has no time limit, so its requests get much time.
    agent.make("a", tests::fresh_name(),
               command == "lock" ? "" : "request_timeout=2000");
    // A command reports no cause if its time is up.  The next one may report
    // it.
    for (int i = 0; i < 20; ++i) {
      result = agent.ask(command + " a");
      if (result != tests::refused(Errc::timed_out)) break;
    }
    why = agent.ask("why a");
    if (result == "true") BOOST_TEST(agent.ask("release a") == "true");
    agent.end();  // Its log is whole.
  }
  std::string result;
  std::string why;
};

struct KeyService {
  const char* name;
  std::function<void(Stage&)> set_up;
};

std::ostream& operator<<(std::ostream& out, const KeyService& service) {
  return out << service.name;
}

const std::vector<KeyService> kNearServices = {
    {"imds", [](Stage& it) { it.instance(); }},
    {"container", [](Stage& it) { it.container(); }}};

}  // namespace

BOOST_AUTO_TEST_SUITE(tls_and_proxies)

// --- Certificates ------------------------------------------------------------

BOOST_DATA_TEST_CASE(endpoint_with_bad_certificate_is_an_error_at_once,
                     kBadCertificates, certificate) {
  Stage it;
  it.static_keys();
  const std::string url = it.aws.url_with(certificate.name);
  it.set("AWS_ENDPOINT_URL_DYNAMODB", url);
  const Said said(it, "lock");
  BOOST_TEST(said.result == tests::refused(Errc::bad_certificate));
  BOOST_TEST(has(said.why, certificate.told), said.why);
  BOOST_TEST(has(said.why, "the server's certificate was refused"), said.why);
  BOOST_TEST(has(said.why, url), said.why);
  // It is final, and so not retried.
  BOOST_TEST(count_of(it.log(), "GetItem at ") == 1, it.log());
  BOOST_TEST(has(it.log(), "warning: GetItem at " + url), it.log());
  BOOST_TEST(requests_by(it.aws.log(), certificate.name) == 0);
}

namespace {

// Servers whose certificate is the first that the process sees.
const std::vector<KeyService> kTlsServers = {
    {"dynamodb", [](Stage& it) { it.static_keys(); }},
    {"sts", [](Stage& it) { it.web_identity(); }},
    {"proxy", [](Stage& it) {
       it.static_keys();
       it.set("HTTPS_PROXY", it.aws.tls_proxy_url("good"));
     }}};

constexpr std::chrono::hours kYear{365 * 24};

}  // namespace

// A device without a battery has the time of 1970, or of its image, until NTP
// has set it.
BOOST_DATA_TEST_CASE(certificate_that_is_not_valid_yet_is_tried_again,
                     kTlsServers, server) {
  if (!tests::FakeCalendar::works()) return;
  Stage it;
  server.set_up(it);
  tests::FakeCalendar calendar(-40 * kYear);
  std::vector<std::string> environment = it.environment();
  calendar.add_to(environment);
  Agent agent(it.engine.table(), environment);
  agent.make("a", tests::fresh_name(), "patience=600000");
  std::string result;
  tests::Aside locking([&] { result = agent.ask("lock a"); });
  const char* const blames =
      "not yet valid (is this machine's clock right? It "
      "shows 19";
  BOOST_TEST(tests::eventually([&] { return has(it.log(), blames); }),
             it.log());
  calendar.jump_to(std::chrono::seconds(0));
  BOOST_TEST(locking.ends());
  BOOST_TEST(result == "true");
}

// It is final, because the clock is seldom the reason.
BOOST_AUTO_TEST_CASE(certificate_that_has_expired_shows_the_time) {
  if (!tests::FakeCalendar::works()) return;
  Stage it;
  it.static_keys();
  const tests::FakeCalendar calendar(40 * kYear);
  std::vector<std::string> environment = it.environment();
  calendar.add_to(environment);
  Agent agent(it.engine.table(), environment);
  agent.make("a", tests::fresh_name(), "request_timeout=20000");
  BOOST_TEST(agent.ask("lock a") == tests::refused(Errc::bad_certificate));
  const std::string why = agent.ask("why a");
  BOOST_TEST(has(why, "expired (is this machine's clock right? It shows 20"),
             why);
}

namespace {

// Configurations of OpenSSL that take all digests away.
const std::vector<std::string> kWithoutDigests = {
    "providers = list\n[list]\nnull = nothing\n[nothing]\nactivate = 1\n",
    "alg_section = all\n[all]\ndefault_properties = fips=yes\n"};

}  // namespace

BOOST_DATA_TEST_CASE(openssl_without_digests_is_named_in_the_error,
                     kWithoutDigests, configuration) {
  Stage it;
  it.set("OPENSSL_CONF", it.write("openssl.cnf", "openssl_conf = own\n[own]\n" +
                                                     configuration));
  it.static_keys();
  const Said without_tls(it, "try");
  BOOST_TEST(is_transient_error(without_tls.result));
  BOOST_TEST(has(it.log(), "see OpenSSL's configuration, openssl.cnf"),
             it.log());
}

BOOST_AUTO_TEST_CASE(certificate_is_trusted_by_a_ca_from_every_place) {
  Stage it;
  it.static_keys();
  const std::string ca = it.aws.ca_file();
  it.variables.erase("AWS_CA_BUNDLE");
  BOOST_TEST(Said(it, "lock").result == tests::refused(Errc::bad_certificate));

  it.write(".aws/config", "[default]\nca_bundle = " + ca + "\n");
  BOOST_TEST(Said(it, "lock").result == "true");

  // Goes before the profile's.
  const tests::ScriptedServer other(nullptr,
                                    tests::ScriptedServer::Scheme::https);
  it.set("AWS_CA_BUNDLE", other.certificate_file());
  BOOST_TEST(Said(it, "lock").result == tests::refused(Errc::bad_certificate));

  it.set("AGENT_CA_FILE", ca);  // An option, and so before all.
  BOOST_TEST(Said(it, "lock").result == "true");
}

namespace {

// OpenSSL's own server, restricted to an old version of TLS.  It answers each
// line at once, by the line reversed, so that nobody who speaks to it waits.
struct OldServer {
  OldServer(const std::string& certificates, const std::string& version)
      : process({{"/usr/bin/env", "openssl", "s_server", "-accept",
                  "127.0.0.1:0", "-rev", "-cert", certificates + "/server.pem",
                  "-key", certificates + "/server.key", "-cipher",
                  "DEFAULT@SECLEVEL=0", version},
                 tests::clean_environment()}) {
    const std::string start = "ACCEPT ";
    std::string line = process.channel().line();
    while (!has(line, start)) line = process.channel().line();
    url = "https://127.0.0.1:" + port_of(line);
  }
  tests::Process process;
  std::string url;
};

}  // namespace

BOOST_DATA_TEST_CASE(server_that_speaks_no_tls_later_than_1_1_is_refused,
                     std::vector<std::string>({"HTTPS_PROXY",
                                               "AWS_ENDPOINT_URL_DYNAMODB"}),
                     variable) {
  Stage it;
  it.static_keys();
  // So that OpenSSL itself would speak it.
  it.set("OPENSSL_CONF",
         it.write("openssl.cnf",
                  "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                  "system_default = old\n[old]\nMinProtocol = TLSv1\n"
                  "CipherString = DEFAULT@SECLEVEL=0\n"));
  const OldServer old(it.aws.certificates(), "-tls1_1");
  it.set(variable, old.url);
  const Said said(it, "try");
  BOOST_TEST(is_transient_error(said.result), said.result);
  BOOST_TEST(has(it.log(), "unreachable: "), it.log());
  BOOST_TEST(has(it.log(), "protocol version"), it.log());
}

// --- Proxies -----------------------------------------------------------------

// The CA file is also used for the proxy's certificate, by all that sends.
BOOST_AUTO_TEST_CASE(dynamodb_and_sts_are_reached_through_a_proxy_of_tls) {
  Stage it;
  it.web_identity();
  it.set("HTTPS_PROXY", it.aws.tls_proxy_url("good"));
  const Said said(it, "lock");
  BOOST_TEST(said.result == "true", said.why);
  const tests::AwsLog log = it.aws.log();
  BOOST_TEST(times_asked(log, it.aws.url("sts")) == 1);
  BOOST_TEST(times_asked(log, it.gateway.url()) >= 1);
}

// Whoever reads the error must not search the endpoint for the mistake.
BOOST_AUTO_TEST_CASE(proxy_with_bad_certificate_is_named_in_the_error) {
  Stage it;
  it.static_keys();
  it.set("HTTPS_PROXY", it.aws.tls_proxy_url("unknown-ca"));
  const Said said(it, "lock");
  BOOST_TEST(said.result == tests::refused(Errc::bad_certificate));
  BOOST_TEST(has(said.why, "the proxy's certificate was refused"), said.why);
  BOOST_TEST(it.aws.log().targets().empty());
}

// The connection that the proxy has made before is as good as any.  The server
// refuses nothing: libcurl closes the connection of a refusal that arrives
// before it has noticed that all is sent.
BOOST_AUTO_TEST_CASE(proxy_that_refuses_new_connections_ends_no_old_one) {
  Stage it;
  const tests::Proxied proxied(it.aws.proxy_url());
  ddbmutex::sigv4::HttpOptions options;
  options.ca_file = it.aws.ca_file();
  options.max_age = std::chrono::milliseconds(0);
  options.connect_timeout = std::chrono::minutes(1);
  const auto error_of_asking = [&](Exchange& exchange) {
    tests::start(exchange, it.aws.url("sts") + "/", "", "");
    while (exchange.under_way()) {
      drive(exchange, ddbmutex::BootTime::max(), nullptr);
    }
    return exchange.answer().error;
  };
  it.aws.control("POST", "/rules", R"({"fault":"redirect","times":0})");
  Exchange old(options), fresh(options);
  BOOST_TEST(error_of_asking(old) == "");
  it.aws.control("POST", "/proxy", R"({"auth":"porter:password-of-porter"})");
  BOOST_TEST(error_of_asking(old) == "");
  BOOST_TEST(error_of_asking(old) == "");
  BOOST_TEST(has(error_of_asking(fresh), "407"));
}

// Whatever the variables say: a proxy would see the keys.
BOOST_DATA_TEST_CASE(no_proxy_is_used_for_keys_of, kNearServices, service) {
  Stage it;
  service.set_up(it);
  for (const char* variable : {"HTTPS_PROXY", "https_proxy", "HTTP_PROXY",
                               "http_proxy", "ALL_PROXY", "all_proxy"}) {
    it.set(variable, it.aws.proxy_url());
  }
  const Said said(it, "lock");
  BOOST_TEST(said.result == "true", said.why);
  const tests::AwsLog log = it.aws.log();
  BOOST_TEST(log.count(service.name) >= 1);
  BOOST_TEST(times_asked(log, it.gateway.url()) >= 1);  // That is.
  BOOST_TEST(times_asked(log, it.aws.plain_url(service.name)) == 0);
  BOOST_TEST(log.plain() == 0);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(passwords_of_proxies)

BOOST_AUTO_TEST_CASE(password_of_a_proxy_is_told_to_it_and_to_nobody_else) {
  Stage it;
  it.web_identity();
  it.aws.control("POST", "/proxy", R"({"auth":"porter:password-of-porter"})");
  const std::string where = target_of(it.aws.proxy_url());
  it.set("HTTPS_PROXY", "http://porter:password-of-porter@" + where);
  const Said right(it, "lock");
  BOOST_TEST(right.result == "true", right.why);
  BOOST_TEST(it.aws.log().unauthorized() == 0);

  it.aws.forget();
  it.set("HTTPS_PROXY", "http://porter:password-of-no-one@" + where);
  const Said wrong(it, "try");
  BOOST_TEST(wrong.result == tests::refused(Errc::no_keys), wrong.result);
  BOOST_TEST(has(wrong.why, "407"), wrong.why);
  BOOST_TEST(it.aws.log().unauthorized() >= 1);
  BOOST_TEST(!has(right.why + wrong.why + it.log(), "password-of"), it.log());
}

// libcurl's message quotes a proxy that it does not understand.
BOOST_DATA_TEST_CASE(
    password_of_a_proxy_that_is_not_understood_is_not_told,
    std::vector<std::string>({"http://porter:password-of-porter@127.0.0.1:x",
                              "porter:password-of-porter"}),
    proxy) {
  Stage it;
  it.static_keys();
  it.set("HTTPS_PROXY", proxy);
  const Said said(it, "try");
  BOOST_TEST(is_transient_error(said.result), said.result);
  BOOST_TEST(has(it.log(), "unreachable: "), it.log());
  BOOST_TEST(!has(said.why + it.log(), "password"), it.log());
  it.variables.erase("AWS_ACCESS_KEY_ID");
  it.variables.erase("AWS_SECRET_ACCESS_KEY");
  it.web_identity();
  const Said keys(it, "try");
  BOOST_TEST(keys.result == tests::refused(Errc::no_keys));
  BOOST_TEST(has(keys.why, "127.0.0.1:" + port_of(it.aws.url("sts"))),
             keys.why);
  BOOST_TEST(!has(keys.why + it.log(), "password"), keys.why);
}

BOOST_AUTO_TEST_SUITE_END()

// --- Redirects ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(redirects)

namespace {

const std::vector<KeyService> kAllServices = {
    kNearServices[0], {"sts", [](Stage& it) { it.web_identity(); }}};

}  // namespace

BOOST_DATA_TEST_CASE(redirect_of_a_key_service_is_not_followed, kAllServices,
                     service) {
  Stage it;
  service.set_up(it);
  tests::AwsFault away{service.name, "*", "redirect"};
  away.times = 0;
  away.status = 307;
  it.aws.fault(away);
  const Said said(it, "try");
  BOOST_TEST(said.result == tests::refused(Errc::no_keys), said.result);
  BOOST_TEST(has(said.why, "307"), said.why);
  const tests::AwsLog log = it.aws.log();
  BOOST_TEST(log.count(service.name) >= 1);
  for (const auto& request : log.requests()) {
    BOOST_TEST(request.operation != "Redirected");
  }
  BOOST_TEST(it.secret_in(said.why + it.log()) == "");
}

BOOST_AUTO_TEST_SUITE_END()
