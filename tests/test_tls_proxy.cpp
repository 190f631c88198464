// Who is let in and by which way: certificates that must not be taken, CAs from
// the places that AWS's tools know, proxies by the usual variables, services
// that are never asked through one, and redirects, which nobody follows.  End
// to end: a process of its own takes locks, or says why it cannot.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/agent.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/stage.hpp"

using namespace std::chrono_literals;
using ddbmutex::Errc;
using tests::Agent;
using tests::has;
using tests::Stage;

namespace {

// A certificate that is no good, and a word that says why.
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

// Requests that went in by a door that nobody should take.
int requests_by(const tests::AwsLog& log, const std::string& door) {
  int count = 0;
  for (const auto& request : log.requests()) count += request.door == door;
  return count;
}

std::string port_of(const std::string& url) {
  return url.substr(url.rfind(':') + 1);
}

// "host:port" of a URL, as the proxy is told it.
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

// Of a "try", which tries again as long as one request may take: the last one
// may be cut short, and then it is the log that has the cause.
bool is_refused_in_passing(const std::string& result) {
  return result == tests::refused(Errc::unreachable) ||
         result == tests::refused(Errc::bad_answer) ||
         result == tests::refused(Errc::timed_out);
}

// One command of a new agent, and why it failed, if it did.
struct Said {
  Said(const Stage& it, const std::string& command) {
    Agent agent(it.engine.table(), it.environment());
    // "lock" ends by itself, or will not: no request of it is given up.
    agent.make("a", tests::fresh_name(),
               command == "lock" ? "request_timeout=20000" : "");
    // What is cut short by its time tells that alone; the next has the cause.
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

struct Service {
  const char* name;
  std::function<void(Stage&)> set_up;
};

std::ostream& operator<<(std::ostream& out, const Service& service) {
  return out << service.name;
}

const std::vector<Service> kNearServices = {
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
  BOOST_TEST(has(said.why, url), said.why);
  // Told as final, and not tried again.
  BOOST_TEST(count_of(it.log(), "GetItem at ") == 1, it.log());
  BOOST_TEST(has(it.log(), "warning: GetItem at " + url), it.log());
  BOOST_TEST(requests_by(it.aws.log(), certificate.name) == 0);
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

// OpenSSL's own server, which can be told to speak an old TLS alone.
struct OldServer {
  OldServer(const std::string& certificates, const std::string& version)
      : process({{"/usr/bin/env", "openssl", "s_server", "-accept",
                  "127.0.0.1:0", "-www", "-cert", certificates + "/server.pem",
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

// --- Proxies -----------------------------------------------------------------

// The CA that vouches for the server vouches for the proxy, for all that sends.
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

BOOST_AUTO_TEST_CASE(proxy_that_speaks_no_tls_later_than_1_1_is_not_spoken_to) {
  Stage it;
  it.static_keys();
  // So that OpenSSL itself would speak it.
  it.set("OPENSSL_CONF",
         it.write("openssl.cnf",
                  "openssl_conf = all\n[all]\nssl_conf = ssl\n[ssl]\n"
                  "system_default = old\n[old]\nMinProtocol = TLSv1\n"
                  "CipherString = DEFAULT@SECLEVEL=0\n"));
  const OldServer old(it.aws.certificates(), "-tls1_1");
  it.set("HTTPS_PROXY", old.url);
  const Said said(it, "try");
  BOOST_TEST(is_refused_in_passing(said.result), said.result);
  BOOST_TEST(has(it.log(), "unreachable: "), it.log());
  BOOST_TEST(has(it.log(), "protocol version"), it.log());
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

// libcurl quotes a proxy that it does not understand.
BOOST_DATA_TEST_CASE(
    password_of_a_proxy_that_is_not_understood_is_not_told,
    std::vector<std::string>({"http://porter:password-of-porter@127.0.0.1:x",
                              "porter:password-of-porter"}),
    proxy) {
  Stage it;
  it.static_keys();
  it.set("HTTPS_PROXY", proxy);
  const Said said(it, "try");
  BOOST_TEST(is_refused_in_passing(said.result), said.result);
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

BOOST_AUTO_TEST_SUITE(tls_and_proxies)

// Whatever stands in the variables: keys would go through strangers' hands.
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

// --- Redirects ---------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(redirects)

namespace {

const std::vector<Service> kAllServices = {
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
