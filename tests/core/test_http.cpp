// One exchange of HTTP.  Its request is sent once and as given, and its answer
// is complete and belongs to it.
#include <signal.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sigv4/http.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/http_way.hpp"
#include "sigv4/url.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/blackhole.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/proxied.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/words.hpp"

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::sigv4::drive;
using ddbmutex::sigv4::Exchange;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::HttpOptions;
using ddbmutex::sigv4::normal_url;
using ddbmutex::sigv4::parts_of;
using ddbmutex::sigv4::Transport;
using tests::Ending;
using tests::FakeNames;
using tests::Proxied;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

namespace {

// Drives until the exchange has ended.
HttpAnswer finish(Exchange& exchange) {
  const BootTime deadline = BootClock::now() + tests::kPlenty;
  while (exchange.under_way() && BootClock::now() < deadline) {
    drive(exchange, deadline, nullptr);
  }
  exchange.end(Transport::timed_out);
  return std::move(exchange.answer());
}

HttpAnswer ask(Exchange& exchange, const std::string& url,
               std::string body = "{}", std::string headers = "") {
  tests::start(exchange, url, headers, body);
  return finish(exchange);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(http)

namespace {

// Drives until the server has read so many requests; the last answer hangs.
void drive_until_read(Exchange& exchange, ScriptedServer& server, int count) {
  while (server.request_count() < count)
    drive(exchange, BootClock::now() + 1ms, nullptr);
}

Reply raw(std::string text, Ending ending = Ending::close) {
  Reply reply;
  reply.raw = std::move(text);
  reply.ending = ending;
  return reply;
}

// How often each body was delivered.
std::map<std::string, int> deliveries(const ScriptedServer& server) {
  std::map<std::string, int> counts;
  for (const SeenRequest& request : server.requests()) ++counts[request.body];
  return counts;
}

struct Fixture {
  ScriptedServer server;
  HttpOptions options;
  Exchange exchange{options};
};

}  // namespace

// -- The request -------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(request_is_sent_as_given_and_nothing_is_added,
                        Fixture) {
  const std::string body("a\0b\r\n\r\nc", 8);
  ask(exchange, server.url() + "path", body,
      "Content-Type: application/x-amz-json-1.0\nX-Amz-Target: T.Op\n");
  const SeenRequest seen = server.requests().at(0);
  BOOST_TEST(seen.method == "POST");
  BOOST_TEST(seen.path == "/path");
  BOOST_TEST(seen.body == body);
  const tests::HeaderList expected = {
      {"Host", "127.0.0.1:" + std::to_string(server.port())},
      {"Content-Type", "application/x-amz-json-1.0"},
      {"X-Amz-Target", "T.Op"},
      {"Content-Length", "8"}};
  BOOST_TEST((seen.headers == expected));
}

// -- The answer --------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(answer_after_interim_ones_has_its_own_headers,
                        Fixture) {
  server.script(
      raw("HTTP/1.1 100 Continue\r\nX-Interim: 1\r\n\r\n"
          "HTTP/1.1 103 Early Hints\r\nDate: wrong\r\n\r\n"
          "HTTP/1.1 200 OK\r\nDate: right\r\n"
          "Content-Length: 2\r\n\r\n{}",
          Ending::keep));
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::complete);
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.headers == "Date: right\r\nContent-Length: 2\r\n");
}

// -- Too large ---------------------------------------------------------------

BOOST_AUTO_TEST_CASE(body_up_to_the_limit_is_complete_and_beyond_too_large) {
  ScriptedServer server;
  HttpOptions options;
  options.max_answer_bytes = 1000;
  Exchange exchange(options);
  for (const bool chunked : {false, true}) {
    for (const std::size_t size : {1000u, 1001u, 50000u}) {
      Reply reply = Reply::ok(std::string(size, 'x'));
      reply.chunked = chunked;
      server.script(reply);
      const HttpAnswer answer = ask(exchange, server.url());
      BOOST_TEST(answer.transport ==
                 (size > 1000 ? Transport::too_large : Transport::complete));
      BOOST_TEST(answer.body.size() == (size > 1000 ? 0 : size));
      BOOST_TEST(answer.status == 200);
      BOOST_TEST(answer.error.empty() == (size <= 1000));
    }
  }
}

BOOST_FIXTURE_TEST_CASE(headers_without_end_are_too_large, Fixture) {
  Reply reply;
  reply.endless_headers = true;
  server.script(reply);
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::too_large);
  BOOST_TEST(answer.headers == "");
  BOOST_TEST(answer.status == 0);
}

// -- No answer, or half of one -----------------------------------------------

BOOST_FIXTURE_TEST_CASE(answer_that_is_no_http_is_broken, Fixture) {
  for (const char* text :
       {"220 mail.example ESMTP\r\n", "<html>hello</html>", "\r\n\r\n",
        "HTTP/1.1 abc\r\n\r\n", "HTTP/9.9 200 OK\r\n\r\n"}) {
    server.script(raw(text));
    const HttpAnswer answer = ask(exchange, server.url());
    BOOST_TEST(answer.transport == Transport::broken, text);
    BOOST_TEST(answer.sent);
    BOOST_TEST(answer.status == 0);
    BOOST_TEST(answer.body == "");
    BOOST_TEST(answer.error != "");
  }
}

BOOST_FIXTURE_TEST_CASE(answer_cut_anywhere_is_broken, Fixture) {
  const std::string whole =
      "HTTP/1.1 200 OK\r\nDate: now\r\nContent-Length: 5\r\n\r\nabcde";
  for (std::size_t size = 1; size <= whole.size(); ++size) {
    server.script(raw(whole.substr(0, size)));
    const HttpAnswer answer = ask(exchange, server.url());
    const bool is_whole = size == whole.size();
    BOOST_TEST(answer.transport ==
                   (is_whole ? Transport::complete : Transport::broken),
               size);
    BOOST_TEST(answer.body == (is_whole ? "abcde" : ""));
    BOOST_TEST(answer.sent);
  }
}

// -- Exactly once ------------------------------------------------------------

// libcurl by itself would send the request again, and report 200.
BOOST_FIXTURE_TEST_CASE(
    kept_connection_that_dies_of_a_request_is_broken_and_sent_once, Fixture) {
  const int rounds = 100;
  for (const Ending ending : {Ending::close, Ending::reset}) {
    const std::string kind = ending == Ending::close ? "fin " : "rst ";
    int broken = 0;
    for (int i = 0; i < rounds; ++i) {
      const std::string name = kind + std::to_string(i);
      server.script(Reply::ok("warm"));
      BOOST_REQUIRE(ask(exchange, server.url(), "w").status == 200);
      server.script(Reply::gone(ending));
      const HttpAnswer answer = ask(exchange, server.url(), name);
      broken += answer.transport == Transport::broken && answer.sent &&
                answer.status == 0;
    }
    BOOST_TEST(broken == rounds);
  }
  const auto counts = deliveries(server);
  BOOST_TEST(counts.size() == 2u * rounds + 1);
  for (const auto& delivery : counts) {
    if (delivery.first != "w") BOOST_TEST(delivery.second == 1);
  }
  BOOST_TEST(server.connection_count() == 2 * rounds);
}

namespace {

const std::string kStray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray";

}  // namespace

// The server sends more bytes after its answer, before the next request.
BOOST_FIXTURE_TEST_CASE(answer_that_came_before_its_request_is_not_believed,
                        Fixture) {
  for (const std::string& stray :
       {kStray, std::string("x"), std::string("\r\n")}) {
    const int connections = server.connection_count();
    Reply reply = Reply::ok("old");
    reply.stray = stray;
    server.script(reply);
    BOOST_TEST(ask(exchange, server.url()).body == "old");
    server.send_stray();
    server.script(Reply::ok("new"));
    const HttpAnswer answer = ask(exchange, server.url());
    BOOST_TEST(answer.transport == Transport::complete);
    BOOST_TEST(answer.body == "new");
    BOOST_TEST(server.connection_count() == connections + 2);
    server.end_idle(Ending::close);
  }
  BOOST_TEST(server.request_count() == 6);
}

// A server that sends an answer as soon as it is connected to.  The library
// cannot tell if it arrives only after its check, so it is tried again.
BOOST_FIXTURE_TEST_CASE(answer_before_the_first_request_is_not_believed,
                        Fixture) {
  server.greet(kStray);
  BOOST_TEST(tests::eventually([&] {
    Exchange fresh(options);
    const HttpAnswer answer = ask(fresh, server.url());
    if (answer.body == "stray") return false;
    BOOST_TEST(answer.transport == Transport::unreachable);
    BOOST_TEST(!answer.sent);
    BOOST_TEST(answer.error.find("before it was asked") != std::string::npos);
    return true;
  }));
}

// -- Old connections, and names that do not resolve ---------------------------

namespace {

// Each request is to have a new connection, to a server that has a name.
struct Named {
  Named() { options.max_age = 0ms; }

  std::string url() const {
    return "http://locks.test:" + std::to_string(server.port()) + "/";
  }

  ScriptedServer server;
  HttpOptions options;
  std::optional<FakeNames> names{std::in_place,
                                 std::vector<std::string>{"127.0.0.1"}};
};

// Each request has an exchange of its own, which knows the last address.
struct Addressed : Named {
  Addressed() {
    options = {};
    options.connect_timeout = 4s;  // Half of it for a resolver that hangs.
    options.last_address = std::make_shared<ddbmutex::sigv4::LastAddress>();
  }

  HttpAnswer ask(const std::string& url) const {
    Exchange exchange(options);
    return ::ask(exchange, url);
  }
};

// Why a name does not lead to the server any more.
struct Trouble {
  const char* name;
  std::function<void(std::optional<FakeNames>&)> begin;
};
std::ostream& operator<<(std::ostream& out, const Trouble& trouble) {
  return out << trouble.name;
}
const std::vector<Trouble> kUnresolved = {
    {"unknown", [](auto& names) { names.emplace(std::vector<std::string>{}); }},
    {"resolver hangs", [](auto& names) { names.emplace(FakeNames::hanging); }}};
// Nobody listens at 127.0.0.3.
const Trouble kNobodyThere = {
    "refused",
    [](auto& names) { names.emplace(std::vector<std::string>{"127.0.0.3"}); }};

}  // namespace

// The process has stood still since it made the request.  The connection is
// good.
BOOST_FIXTURE_TEST_CASE(request_that_is_too_late_does_not_leave, Fixture) {
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  for (const bool late : {true, false}) {
    tests::start(exchange, server.url(), "", "{}");
    exchange.send_by(late ? BootClock::now() : BootTime::max());
    const HttpAnswer answer = finish(exchange);
    BOOST_TEST(answer.transport ==
               (late ? Transport::timed_out : Transport::complete));
    BOOST_TEST(answer.sent == !late);
  }
  BOOST_TEST(server.request_count() == 2);
}

BOOST_FIXTURE_TEST_CASE(old_connection_is_replaced, Named) {
  Exchange exchange(options);
  for (int i = 1; i <= 3; ++i) {
    BOOST_TEST(ask(exchange, url()).status == 200);
    BOOST_TEST(server.connection_count() == i);
  }
}

BOOST_DATA_TEST_CASE(old_connection_is_kept_if_no_other_can_be_made,
                     std::vector<Trouble>({kUnresolved[0], kUnresolved[1],
                                           kNobodyThere}),
                     trouble) {
  Named it;
  Exchange exchange(it.options);
  BOOST_TEST(ask(exchange, it.url()).status == 200);
  it.names.reset();
  trouble.begin(it.names);
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = ask(exchange, it.url());
    BOOST_TEST(answer.status == 200, answer.error);
  }
  BOOST_TEST(it.server.connection_count() == 1);
  BOOST_TEST(exchange.is_usable());
  // A dead one is no way to the server.
  it.server.end_idle(Ending::close);
  BOOST_TEST(ask(exchange, it.url()).transport == Transport::unreachable);
}

BOOST_FIXTURE_TEST_CASE(old_connection_outlives_a_new_one_that_hangs, Named) {
  const tests::Blackhole nobody_answers(server.port());
  Exchange exchange(options);
  BOOST_TEST(ask(exchange, url()).status == 200);
  names.reset();
  names.emplace(std::vector<std::string>{"127.0.0.2"});
  for (int i = 0; i < 2; ++i) {
    const HttpAnswer answer = ask(exchange, url());
    BOOST_TEST(answer.status == 200, answer.error);
  }
  BOOST_TEST(server.connection_count() == 1);
}

// The new connection ends without an answer, so the old one has its turn until
// another has carried a request.
BOOST_FIXTURE_TEST_CASE(old_connection_stays_until_a_new_one_has_answered,
                        Named) {
  Exchange exchange(options);
  const auto connection_of_next = [&] {
    const HttpAnswer answer = ask(exchange, url());
    BOOST_TEST(answer.status == 200, answer.error);
    return server.requests().back().connection;
  };
  BOOST_TEST(connection_of_next() == 1);
  server.script(Reply::gone(Ending::close));
  BOOST_TEST(ask(exchange, url()).transport == Transport::broken);
  names.reset();
  kNobodyThere.begin(names);
  BOOST_TEST(connection_of_next() == 1);
  names.reset();
  names.emplace(std::vector<std::string>{"127.0.0.1"});
  BOOST_TEST(connection_of_next() == 3);
  names.reset();
  kNobodyThere.begin(names);
  BOOST_TEST(connection_of_next() == 3);
}

// Before a request is sent on the old connection, its own socket is looked at,
// not that of the new connection, which has failed.
BOOST_FIXTURE_TEST_CASE(
    answer_that_came_on_an_old_connection_before_its_request_is_not_believed,
    Named) {
  Exchange exchange(options);
  Reply reply = Reply::ok("old");
  reply.stray = kStray;
  server.script(reply);
  BOOST_TEST(ask(exchange, url()).body == "old");
  names.reset();
  kNobodyThere.begin(names);
  server.send_stray();
  const HttpAnswer answer = ask(exchange, url());
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(server.request_count() == 1);
}

BOOST_DATA_TEST_CASE(name_that_does_not_resolve_has_its_last_address,
                     kUnresolved* boost::unit_test::data::make({false, true}),
                     trouble, by_proxy) {
  Addressed it;
  std::optional<Proxied> proxied;
  if (by_proxy) proxied.emplace(it.url());
  const std::string url = by_proxy ? "http://elsewhere.test/" : it.url();
  BOOST_TEST(it.ask(url).status == 200);
  it.names.reset();
  trouble.begin(it.names);
  const HttpAnswer answer = it.ask(url);
  BOOST_TEST(answer.status == 200, answer.error);
  BOOST_TEST(it.server.connection_count() == 2);
  BOOST_TEST(it.server.requests().back().header("Host").value() ==
             parts_of(url).authority);
}

BOOST_FIXTURE_TEST_CASE(last_address_is_that_of_one_server_and_may_be_dead,
                        Addressed) {
  BOOST_TEST(ask(url()).status == 200);
  names.reset();
  kUnresolved[0].begin(names);
  BOOST_TEST(ask(url() + "x").transport == Transport::unreachable);
  BOOST_TEST(ask(url()).status == 200);
  server.stop();
  const HttpAnswer answer = ask(url());
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(answer.error.find("the name does not resolve; at its last "
                               "address: ") == 0u,
             answer.error);
}

// A lock that is rarely renewed has a connection that was idle for minutes.
BOOST_AUTO_TEST_CASE(idle_connection_is_old_but_stays_until_it_is_replaced) {
  using ddbmutex::sigv4::Way;
  ddbmutex::sigv4::KeptConnection kept(10min);
  const BootTime start{};
  BOOST_TEST((kept.first_way(start) == Way::usual));
  kept.answered(start, true);
  BOOST_TEST((kept.first_way(start + 119s) == Way::usual));
  BOOST_TEST((kept.first_way(start + 2min) == Way::fresh));
  const auto next = kept.next_way(Way::fresh, start + 2min, false, true);
  BOOST_TEST((next == Way::usual));
  kept.answered(start + 2min, false);
  // It is not tried again and again.
  BOOST_TEST((kept.first_way(start + 3min) == Way::usual));
  for (auto at = 3min; at < 12min; at += 1min) kept.answered(start + at, false);
  BOOST_TEST((kept.first_way(start + 12min) == Way::fresh));
  // The new one has failed with its request, so the old one has its turn.
  kept.failed(Way::fresh, start + 12min);
  BOOST_TEST((kept.first_way(start + 12min) == Way::usual));
  BOOST_TEST((kept.first_way(start + 14min) == Way::fresh));
}

// -- Ended by the caller -----------------------------------------------------

BOOST_FIXTURE_TEST_CASE(late_answer_is_never_taken_for_the_next_requests,
                        Fixture) {
  for (int i = 1; i <= 30; ++i) {
    Reply late = Reply::ok("late");
    late.hangs = true;
    server.script(late);
    tests::start(exchange, server.url(), {}, "first");
    drive_until_read(exchange, server, 2 * i - 1);
    if (i % 2 == 0) server.release();  // Its answer may lie in the socket.
    exchange.end(Transport::timed_out);
    BOOST_TEST(exchange.answer().transport == Transport::timed_out);
    server.script(Reply::ok("mine"));
    tests::start(exchange, server.url(), {}, "second");
    server.release();
    BOOST_TEST(finish(exchange).body == "mine");
  }
  for (const auto& delivery : deliveries(server)) {
    BOOST_TEST(delivery.second == 30);
  }
}

// Whoever reads that a request has timed out learns what it waited for.
BOOST_AUTO_TEST_CASE(hanging_lookup_is_named_when_the_time_is_up) {
  const auto error_of_ending = [](const std::string& url, bool sends) {
    HttpOptions options;
    options.connect_timeout = tests::kPlenty;
    Exchange exchange(options);
    tests::start(exchange, url, {}, "{}");
    while (!exchange.sent() && sends) {
      drive(exchange, BootClock::now() + 1ms, nullptr);
    }
    exchange.end(Transport::timed_out);
    return exchange.answer().error;
  };
  ScriptedServer server;
  server.script(tests::hanging());
  BOOST_TEST(error_of_ending(server.url(), true) == "");
  const FakeNames names(FakeNames::hanging);
  BOOST_TEST(error_of_ending("http://locks.test/", false) ==
             "no connection was begun (does the host name resolve?)");
}

// -- TLS ---------------------------------------------------------------------

namespace {

struct TlsFixture {
  TlsFixture() { options.ca_file = server.certificate_file(); }

  ScriptedServer server{nullptr, ScriptedServer::Scheme::https};
  HttpOptions options;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(tls_server_nobody_vouches_for_is_bad_certificate,
                        TlsFixture) {
  Exchange exchange{HttpOptions()};
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::bad_certificate);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(answer.error != "");
  BOOST_TEST(server.request_count() == 0);
}

// The address may be another host's by now.  The name may soon resolve again.
BOOST_FIXTURE_TEST_CASE(tls_last_address_with_another_certificate_is_not_final,
                        TlsFixture) {
  const std::string port = std::to_string(server.port());
  const std::string url = "https://locks.test:" + port + "/";
  options.last_address = std::make_shared<ddbmutex::sigv4::LastAddress>();
  options.last_address->remember(url, "+*:" + port + ":127.0.0.1");
  const FakeNames none(std::vector<std::string>{});
  Exchange exchange(options);
  const HttpAnswer answer = ask(exchange, url);
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(answer.error.find("the name does not resolve; at its last "
                               "address: SSL: no alternative") == 0u,
             answer.error);
  BOOST_TEST(server.request_count() == 0);
}

// New exchanges trust the new file.  A connection that was made before goes on.
BOOST_FIXTURE_TEST_CASE(tls_connection_stays_when_the_ca_file_changes,
                        TlsFixture) {
  const ScriptedServer other(nullptr, ScriptedServer::Scheme::https);
  const tests::Home home;
  options.ca_file = home.root / "ca.pem";
  options.max_age = 0ms;
  namespace fs = std::filesystem;
  const auto trust = [&](const ScriptedServer& one) {
    fs::copy_file(one.certificate_file(), options.ca_file,
                  fs::copy_options::overwrite_existing);
  };
  trust(server);
  Exchange exchange(options);
  BOOST_TEST(ask(exchange, server.url()).status == 200);
  trust(other);
  for (int i = 0; i < 3; ++i) {
    const HttpAnswer answer = ask(exchange, server.url());
    BOOST_TEST(answer.status == 200, answer.error);
  }
  Exchange later(options);
  BOOST_TEST(ask(later, server.url()).transport == Transport::bad_certificate);
}

BOOST_FIXTURE_TEST_CASE(tls_connection_cut_amid_an_unframed_body_is_broken,
                        TlsFixture) {
  Exchange exchange(options);
  server.script(raw("HTTP/1.1 200 OK\r\n\r\npart of it", Ending::reset));
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::broken);
}

// -- URL ---------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(url_of_http_or_https_is_taken_apart) {
  const struct {
    const char *text, *scheme, *authority, *path;
  } cases[] = {
      {"https://dynamodb.eu-west-1.amazonaws.com", "https",
       "dynamodb.eu-west-1.amazonaws.com", "/"},
      {"https://host/", "https", "host", "/"},
      {"https://host/a/b", "https", "host", "/a/b"},
      {"http://host:8000", "http", "host:8000", "/"},
      {"http://host:80/", "http", "host", "/"},
      {"https://host:443/", "https", "host", "/"},
      {"https://host:80/", "https", "host:80", "/"},
      {"HTTPS://host/", "https", "host", "/"},
      {"http://127.0.0.1:4566/x", "http", "127.0.0.1:4566", "/x"},
      {"http://[::1]:8000/", "http", "[::1]:8000", "/"},
      {"http://[fd00:ec2::23]", "http", "[fd00:ec2::23]", "/"},
  };
  for (const auto& c : cases) {
    const std::string url = normal_url(c.text);
    const auto parts = parts_of(url);
    BOOST_TEST(parts.scheme == c.scheme, c.text);
    BOOST_TEST(parts.authority == c.authority, c.text);
    BOOST_TEST(parts.path == c.path, c.text);
  }
}

BOOST_AUTO_TEST_CASE(url_of_any_other_form_is_refused) {
  constexpr const char* kRefused[] = {"",
                                      "host",
                                      "ftp://host/",
                                      "file:///etc/passwd",
                                      "https://",
                                      "https:///",
                                      "https:/host/",
                                      "https:/h\xc3\xb6st/://host/",
                                      "https://:443/",
                                      "https://user:secret@host/",
                                      "https://:secret@host/",
                                      "https://host?query",
                                      "https://host/path?query=1",
                                      "https://host/#fragment",
                                      "https://host:65536/",
                                      "https://ho st/",
                                      "https://h\xc3\xb6st/",
                                      "https://a%25b/",
                                      "https://[fe80::1%25eth0]/",
                                      "https://host/pa th",
                                      "https://host/\r\nX: y",
                                      " https://host/",
                                      "https://[nonsense]/"};
  for (const char* text : kRefused) {
    BOOST_TEST(normal_url(text) == "", text);
  }
}

BOOST_AUTO_TEST_SUITE_END()

// --- Peers that send without end while libcurl connects ----------------------

BOOST_AUTO_TEST_SUITE(floods)

namespace {

// So long that whoever reads all of it is late.
Reply flood_of(std::string begin, const std::string& filler, std::size_t size) {
  Reply flood;
  flood.raw = std::move(begin);
  while (flood.raw.size() < size) flood.raw += filler;
  return flood;
}

// OpenSSL skips this handshake message.
const std::string kHelloRequest("\x16\x03\x03\x00\x04\0\0\0\0", 9);
// libcurl reads a proxy's refusal byte by byte.
const std::string kRefusal =
    "HTTP/1.1 407 No\r\nContent-Length: 9223372036854775807\r\n\r\n";

}  // namespace

BOOST_DATA_TEST_CASE(call_ends_in_time_although_connecting_does_not,
                     boost::unit_test::data::make({false, true}), by_proxy) {
  constexpr auto kTime = 300ms;
  ScriptedServer peer;
  peer.greet(by_proxy ? flood_of(kRefusal, "x", 4 << 20).raw
                      : flood_of("", kHelloRequest, 64 << 20).raw);
  std::optional<Proxied> proxied;
  if (by_proxy) proxied.emplace(peer.url());
  const std::string url =
      by_proxy ? "https://locks.example/" : "https" + peer.url().substr(4);
  ddbmutex::Options options =
      tests::on_table(tests::new_table(tests::table_options(url)));
  options.request_timeout = kTime;
  ddbmutex::DdbMutex mutex("x", options);
  std::error_code ec;
  BOOST_TEST(tests::returns_within(
      kTime, [&] { BOOST_TEST(!mutex.try_lock_for(kTime, ec)); }));
  BOOST_TEST(options.table->stats().requests() == 0);
}

BOOST_AUTO_TEST_SUITE_END()
