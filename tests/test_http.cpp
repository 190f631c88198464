#include <curl/curl.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "sigv4/http.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/http_pool.hpp"
#include "sigv4/url.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/blackhole.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/words.hpp"

namespace {

using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::sigv4::drive;
using ddbmutex::sigv4::Exchange;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::HttpOptions;
using ddbmutex::sigv4::HttpPool;
using ddbmutex::sigv4::normal_url;
using ddbmutex::sigv4::parts_of;
using ddbmutex::sigv4::Transport;
using ddbmutex::sigv4::Waker;
using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Blackhole;
using tests::Ending;
using tests::FakeNames;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

BootTime in(milliseconds time) { return BootClock::now() + time; }

// Drives until the exchange has ended; ends it as timed_out at `deadline`.
HttpAnswer finish(Exchange& exchange, BootTime deadline = in(seconds(20))) {
  Exchange* const all[] = {&exchange};
  while (exchange.under_way() && BootClock::now() < deadline) {
    drive(all, 1, deadline, nullptr);
  }
  exchange.end(Transport::timed_out);
  return std::move(exchange.answer());
}

HttpAnswer ask(Exchange& exchange, const std::string& url,
               std::string body = "{}", std::string headers = "") {
  tests::start(exchange, url, headers, body);
  return finish(exchange);
}

// Drives until the server has read a request, whose answer hangs.
void drive_until_read(Exchange& exchange, ScriptedServer& server, int count) {
  Exchange* const all[] = {&exchange};
  while (server.request_count() < count)
    drive(all, 1, in(milliseconds(1)), nullptr);
}

Reply hanging() {
  Reply reply;
  reply.hangs = true;
  return reply;
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

int port_without_listener() {
  ScriptedServer server;
  return server.port();
}

std::string local_url(int port) {
  return "http://127.0.0.1:" + std::to_string(port) + "/";
}

struct Fixture {
  ScriptedServer server;
  HttpOptions options;
  Exchange exchange{options};
};

}  // namespace

BOOST_AUTO_TEST_SUITE(http)

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

BOOST_FIXTURE_TEST_CASE(request_without_headers_has_no_invented_ones, Fixture) {
  ask(exchange, server.url());
  for (const char* name :
       {"Content-Type", "Accept", "Accept-Encoding", "Expect", "User-Agent"}) {
    BOOST_TEST(!server.requests().at(0).header(name), name);
  }
}

BOOST_FIXTURE_TEST_CASE(request_accept_given_by_caller_is_sent, Fixture) {
  ask(exchange, server.url(), "", "Accept: application/json\n");
  BOOST_TEST(server.requests().at(0).header("Accept").value() ==
             "application/json");
}

BOOST_FIXTURE_TEST_CASE(request_of_two_megabytes_is_sent_without_expect,
                        Fixture) {
  const std::string body(2 << 20, 'x');
  BOOST_TEST(ask(exchange, server.url(), body).transport ==
             Transport::complete);
  BOOST_TEST(server.requests().at(0).body.size() == body.size());
  BOOST_TEST(!server.requests().at(0).header("Expect"));
}

BOOST_FIXTURE_TEST_CASE(request_after_another_carries_nothing_of_it, Fixture) {
  ask(exchange, server.url(), "a long first body", "X-First: 1\nX-All: 1\n");
  ask(exchange, server.url(), "short", "X-Second: 2\n");
  const SeenRequest second = server.requests().at(1);
  BOOST_TEST(second.body == "short");
  BOOST_TEST(!second.header("X-First"));
  BOOST_TEST(!second.header("X-All"));
  BOOST_TEST(second.header("X-Second").value() == "2");
}

// -- The answer --------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(answer_is_told_whole_with_its_times, Fixture) {
  Reply reply = Reply::ok(std::string("{\0}", 3));
  reply.headers = {{"X-Extra", "  value "}};
  server.script(reply);
  const BootTime before = BootClock::now();
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::complete);
  BOOST_TEST(answer.sent);
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.body == reply.body);
  BOOST_TEST(answer.error == "");
  BOOST_TEST(answer.header("x-extra") == "value");
  BOOST_TEST(answer.header("X-AMZN-REQUESTID").size() == 52u);
  BOOST_TEST(!answer.header("x-ext").data());
  BOOST_TEST(!answer.header("HTTP/1.1 200 OK").data());
  BOOST_TEST((before <= answer.sent_at));
  BOOST_TEST((answer.sent_at < answer.received_at));
  BOOST_TEST((answer.received_at <= BootClock::now()));
}

BOOST_FIXTURE_TEST_CASE(answer_times_enclose_the_servers_delay, Fixture) {
  Reply reply;
  reply.delay = milliseconds(60);
  server.script(reply);
  tests::start(exchange, server.url(), {}, "{}");
  std::this_thread::sleep_for(milliseconds(40));  // Not driven: not sent.
  BOOST_TEST(!exchange.sent());
  const BootTime driven = BootClock::now();
  const HttpAnswer answer = finish(exchange);
  BOOST_TEST((answer.sent_at >= driven));
  BOOST_TEST((answer.received_at - answer.sent_at >= milliseconds(60)));
}

BOOST_FIXTURE_TEST_CASE(answer_of_any_final_status_is_complete, Fixture) {
  for (const int status : {201, 400, 403, 413, 500, 503}) {
    server.script(Reply::error(status, "why"));
    const HttpAnswer answer = ask(exchange, server.url());
    BOOST_TEST(answer.transport == Transport::complete);
    BOOST_TEST(answer.status == status);
    BOOST_TEST(answer.body == "why");
  }
  BOOST_TEST(server.connection_count() == 1);
}

BOOST_FIXTURE_TEST_CASE(answer_without_body_is_complete, Fixture) {
  server.script(Reply::ok(""));
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  server.script(raw("HTTP/1.1 204 No Content\r\n\r\n", Ending::keep));
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::complete);
  BOOST_TEST(answer.status == 204);
}

BOOST_FIXTURE_TEST_CASE(answer_that_redirects_is_not_followed, Fixture) {
  ScriptedServer other;
  Reply reply = Reply::error(307, "moved");
  reply.headers = {{"Location", other.url()}};
  server.script(reply);
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::complete);
  BOOST_TEST(answer.status == 307);
  BOOST_TEST(answer.header("location") == other.url());
  BOOST_TEST(other.connection_count() == 0);
}

BOOST_FIXTURE_TEST_CASE(answer_in_chunks_is_put_together, Fixture) {
  Reply reply = Reply::ok("0123456789");
  reply.chunked = true;
  server.script(reply);
  BOOST_TEST(ask(exchange, server.url()).body == "0123456789");
}

BOOST_FIXTURE_TEST_CASE(answer_trailers_are_no_headers, Fixture) {
  server.script(
      raw("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
          "2\r\n{}\r\n0\r\nDate: late\r\nHTTP/1.1: x\r\n\r\n",
          Ending::keep));
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::complete);
  BOOST_TEST(answer.body == "{}");
  BOOST_TEST(answer.headers == "Transfer-Encoding: chunked\r\n");
}

BOOST_FIXTURE_TEST_CASE(answer_ended_by_closing_is_complete, Fixture) {
  server.script(raw("HTTP/1.1 200 OK\r\n\r\nall of it"));
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::complete);
  BOOST_TEST(answer.body == "all of it");
}

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

BOOST_AUTO_TEST_CASE(header_lookup_takes_the_first_of_any_case_trimmed) {
  HttpAnswer answer;
  answer.headers =
      "A: 1\r\nLong-Name:\tx y \r\na: 2\r\nEmpty:\r\nBare\r\nEnd:z";
  BOOST_TEST(answer.header("a") == "1");
  BOOST_TEST(answer.header("LONG-NAME") == "x y");
  BOOST_TEST(answer.header("empty") == "");
  BOOST_TEST(answer.header("end") == "z");
  BOOST_TEST(!answer.header("Long").data());
  BOOST_TEST(!answer.header("Bare").data());
  BOOST_TEST(!HttpAnswer().header("a").data());
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

BOOST_FIXTURE_TEST_CASE(body_without_end_is_too_large, Fixture) {
  Reply reply;
  reply.endless_body = true;
  for (const bool chunked : {false, true}) {
    reply.chunked = chunked;
    server.script(reply);
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::too_large);
  }
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
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

BOOST_FIXTURE_TEST_CASE(interim_answers_without_end_are_too_large, Fixture) {
  std::string text;
  while (text.size() < 70000) text += "HTTP/1.1 100 Continue\r\n\r\n";
  server.script(raw(text));
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::too_large);
}

BOOST_FIXTURE_TEST_CASE(headers_limit_counts_one_answer_only, Fixture) {
  Reply reply;
  reply.headers = {{"X-Long", std::string(40000, 'x')}};
  for (int i = 0; i < 3; ++i) {
    server.script(reply);
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  }
}

// -- No answer, or half a one ------------------------------------------------

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

BOOST_FIXTURE_TEST_CASE(answer_reset_amid_its_body_is_broken, Fixture) {
  Reply reply = Reply::ok(std::string(1000, 'x'));
  reply.cut_body_at = 500;
  reply.ending = Ending::reset;
  for (const bool chunked : {false, true}) {
    reply.chunked = chunked;
    server.script(reply);
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::broken);
  }
}

BOOST_FIXTURE_TEST_CASE(answer_in_chunks_cut_before_the_last_is_broken,
                        Fixture) {
  Reply reply = Reply::ok("0123456789");
  reply.chunked = true;
  reply.cut_body_at = 20;  // Both chunks, not the empty one.
  reply.ending = Ending::close;
  server.script(reply);
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::broken);
}

BOOST_FIXTURE_TEST_CASE(answer_that_stays_interim_is_broken, Fixture) {
  server.script(raw("HTTP/1.1 100 Continue\r\nDate: now\r\n\r\n"));
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::broken);
  BOOST_TEST(answer.status == 0);
  BOOST_TEST(answer.headers == "");
}

BOOST_FIXTURE_TEST_CASE(answer_that_never_comes_on_a_new_connection_is_broken,
                        Fixture) {
  for (const Ending ending : {Ending::close, Ending::reset}) {
    Exchange fresh(options);
    server.script(Reply::gone(ending));
    const int before = server.request_count();
    const HttpAnswer answer = ask(fresh, server.url());
    BOOST_TEST(answer.transport == Transport::broken);
    BOOST_TEST(answer.sent);
    BOOST_TEST(server.request_count() == before + 1);
  }
}

BOOST_FIXTURE_TEST_CASE(connection_ended_before_it_is_read_is_broken, Fixture) {
  for (const Ending ending : {Ending::close, Ending::reset}) {
    server.refuse(1, ending);
    const HttpAnswer answer = ask(exchange, server.url());
    // A reset may already be seen while connecting.
    BOOST_TEST(answer.transport ==
               (answer.sent ? Transport::broken : Transport::unreachable));
    BOOST_TEST(server.request_count() == 0);
  }
}

// -- Exactly once ------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(connection_kept_alive_serves_all_requests, Fixture) {
  for (int i = 0; i < 100; ++i) {
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  }
  BOOST_TEST(server.connection_count() == 1);
  BOOST_TEST(server.request_count() == 100);
}

// libcurl would send it again, and answer 200.
BOOST_FIXTURE_TEST_CASE(
    kept_connection_that_dies_of_a_request_is_broken_and_sent_once, Fixture) {
  const int rounds = 1000;
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

BOOST_FIXTURE_TEST_CASE(kept_connection_closed_while_idle_is_replaced,
                        Fixture) {
  for (const Ending ending : {Ending::close, Ending::reset}) {
    for (int i = 0; i < 20; ++i) {
      BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
      server.end_idle(ending);
    }
  }
  BOOST_TEST(server.connection_count() == 40);
  BOOST_TEST(server.request_count() == 40);
}

BOOST_FIXTURE_TEST_CASE(connection_that_the_answer_closes_is_replaced,
                        Fixture) {
  for (int i = 0; i < 5; ++i) {
    Reply reply;
    reply.headers = {{"Connection", "close"}};
    reply.ending = Ending::close;
    server.script(reply);
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  }
  BOOST_TEST(server.connection_count() == 5);
}

BOOST_FIXTURE_TEST_CASE(second_copy_of_an_answer_is_not_taken_for_the_next,
                        Fixture) {
  for (int i = 0; i < 50; ++i) {
    Reply twice = Reply::ok("old");
    twice.copies = 2;
    server.script(twice);
    server.script(Reply::ok("new"));
    BOOST_TEST(ask(exchange, server.url()).body == "old");
    BOOST_TEST(ask(exchange, server.url()).body == "new");
  }
  BOOST_TEST(server.request_count() == 100);
}

namespace {

const std::string kStray = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray";

// Bytes that come when their answer has been read, and before the next request.
void check_that_strays_are_not_believed(ScriptedServer& server,
                                        Exchange& exchange) {
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

}  // namespace

BOOST_FIXTURE_TEST_CASE(answer_that_came_before_its_request_is_not_believed,
                        Fixture) {
  check_that_strays_are_not_believed(server, exchange);
}

// A server that sends an answer as soon as it is connected to.  If that arrives
// after our check, it is believed.
BOOST_FIXTURE_TEST_CASE(answer_before_the_first_request_is_not_believed,
                        Fixture) {
  Reply greeting;
  greeting.raw = kStray;
  server.greet(greeting);
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

// -- Not sent ----------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(refused_connection_is_unreachable_and_not_sent,
                        Fixture) {
  const BootTime before = BootClock::now();
  const HttpAnswer answer = ask(exchange, local_url(port_without_listener()));
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(answer.status == 0);
  BOOST_TEST(answer.error != "");
  BOOST_TEST((answer.sent_at >= before));
  BOOST_TEST((answer.sent_at <= answer.received_at));
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
}

BOOST_FIXTURE_TEST_CASE(unknown_name_is_unreachable_and_not_sent, Fixture) {
  const FakeNames no_names(std::vector<std::string>{});
  const HttpAnswer answer = ask(exchange, "http://locks.invalid/");
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(!answer.sent);
}

BOOST_FIXTURE_TEST_CASE(url_of_another_kind_is_unreachable, Fixture) {
  for (const char* url : {"ftp://127.0.0.1/", "file:///etc/passwd", ""}) {
    BOOST_TEST(ask(exchange, url).transport == Transport::unreachable, url);
  }
}

namespace {}  // namespace

BOOST_AUTO_TEST_CASE(address_that_does_not_answer_leaves_time_for_the_next) {
  ScriptedServer server;
  const Blackhole blackhole(server.port());
  const FakeNames names({"127.0.0.2", "127.0.0.1"});
  HttpOptions options;
  // libcurl 8 does not divide 600 ms or less.
  options.connect_timeout = milliseconds(6000);
  Exchange exchange(options);
  const std::string url =
      "http://locks.invalid:" + std::to_string(server.port()) + "/";
  const HttpAnswer answer = ask(exchange, url);
  BOOST_TEST(answer.transport == Transport::complete, answer.error);
}

BOOST_AUTO_TEST_CASE(addresses_that_all_do_not_answer_are_unreachable) {
  ScriptedServer server;
  const Blackhole blackhole(server.port());
  const FakeNames names({"127.0.0.2", "127.0.0.2", "127.0.0.2"});
  HttpOptions options;
  options.connect_timeout = milliseconds(400);
  Exchange exchange(options);
  const std::string url =
      "http://locks.invalid:" + std::to_string(server.port()) + "/";
  HttpAnswer answer;
  BOOST_TEST(
      tests::returns_within(seconds(3), [&] { answer = ask(exchange, url); }));
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(!answer.sent);
}

BOOST_AUTO_TEST_CASE(connection_that_takes_too_long_is_unreachable) {
  ScriptedServer server;
  const Blackhole blackhole(server.port());
  HttpOptions options;
  options.connect_timeout = milliseconds(200);
  Exchange exchange(options);
  const BootTime before = BootClock::now();
  const std::string url = "http://127.0.0.2:" + std::to_string(server.port());
  HttpAnswer answer;
  BOOST_TEST(
      tests::returns_within(seconds(3), [&] { answer = ask(exchange, url); }));
  BOOST_TEST(answer.transport == Transport::unreachable);
  BOOST_TEST(!answer.sent);
  BOOST_TEST((BootClock::now() - before >= milliseconds(190)));
}

BOOST_AUTO_TEST_CASE(connect_timeout_does_not_count_for_the_answer) {
  ScriptedServer server;
  HttpOptions options;
  options.connect_timeout = seconds(2);
  Exchange exchange(options);
  Reply late;
  late.delay = milliseconds(2500);
  for (int i = 0; i < 2; ++i) {  // On a new connection, on a kept one.
    server.script(late);
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  }
}

// -- Ended by the caller -----------------------------------------------------

BOOST_FIXTURE_TEST_CASE(deadline_passes_and_drive_returns_without_an_end,
                        Fixture) {
  server.script(hanging());
  tests::start(exchange, server.url(), {}, "{}");
  Exchange* const all[] = {&exchange};
  const BootTime deadline = in(seconds(2));  // It is sent in it.
  BOOST_TEST(tests::returns_within(seconds(2),
                                   [&] { drive(all, 1, deadline, nullptr); }));
  BOOST_TEST((BootClock::now() >= deadline));
  BOOST_TEST(exchange.under_way());
  BOOST_TEST(exchange.sent());
  BOOST_TEST(exchange.answer().transport == Transport::under_way);

  exchange.end(Transport::timed_out);
  BOOST_TEST(!exchange.under_way());
  const HttpAnswer answer = std::move(exchange.answer());
  BOOST_TEST(answer.transport == Transport::timed_out);
  BOOST_TEST(answer.sent);
  BOOST_TEST(answer.status == 0);
  BOOST_TEST((answer.received_at >= deadline));
}

BOOST_FIXTURE_TEST_CASE(deadline_amid_the_body_tells_status_and_headers_only,
                        Fixture) {
  Reply reply = Reply::ok(std::string(1000, 'x'));
  reply.cut_body_at = 500;  // And then nothing, on an open connection.
  server.script(reply);
  tests::start(exchange, server.url(), {}, "{}");
  const HttpAnswer answer = finish(exchange, in(seconds(2)));
  BOOST_TEST(answer.transport == Transport::timed_out);
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.header("Content-Length") == "1000");
  BOOST_TEST(answer.body == "");
}

BOOST_FIXTURE_TEST_CASE(deadline_in_the_past_still_moves_the_exchange,
                        Fixture) {
  tests::start(exchange, server.url(), {}, "{}");
  Exchange* const all[] = {&exchange};
  while (exchange.under_way()) drive(all, 1, BootTime::min(), nullptr);
  BOOST_TEST(exchange.answer().transport == Transport::complete);
}

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

BOOST_FIXTURE_TEST_CASE(end_before_anything_was_sent_says_so, Fixture) {
  tests::start(exchange, server.url(), {}, "{}");
  exchange.end(Transport::cancelled);
  const HttpAnswer answer = std::move(exchange.answer());
  BOOST_TEST(answer.transport == Transport::cancelled);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(server.request_count() == 0);
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  BOOST_TEST(server.request_count() == 1);
}

BOOST_FIXTURE_TEST_CASE(end_after_the_end_changes_nothing, Fixture) {
  exchange.end(Transport::cancelled);  // Never started.
  tests::start(exchange, server.url(), {}, "{}");
  Exchange* const all[] = {&exchange};
  while (exchange.under_way()) drive(all, 1, BootTime::max(), nullptr);
  exchange.end(Transport::cancelled);
  BOOST_TEST(exchange.answer().transport == Transport::complete);
  BOOST_TEST(exchange.answer().status == 200);
}

BOOST_FIXTURE_TEST_CASE(destructor_ends_what_is_under_way, Fixture) {
  server.script(hanging());
  {
    Exchange doomed(options);
    tests::start(doomed, server.url(), {}, "{}");
    drive_until_read(doomed, server, 1);
  }
  server.release();
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  BOOST_TEST(server.request_count() == 2);
}

BOOST_FIXTURE_TEST_CASE(hanging_resolver_does_not_hold_up_the_end, Fixture) {
  if (curl_version_info(CURLVERSION_NOW)->version_num < 0x075700) {
    BOOST_TEST_MESSAGE("libcurl before 7.87 waits for the resolver");
    return;
  }
  FakeNames names(FakeNames::hanging);
  {
    Exchange doomed(options);
    for (Exchange* e : {&exchange, &doomed}) {
      tests::start(*e, "http://locks.invalid/", {}, "{}");
      drive(&e, 1, in(milliseconds(50)), nullptr);
      BOOST_TEST(e->under_way());
    }
    BOOST_REQUIRE(names.wait_for_calls(2));
    BOOST_TEST(tests::returns_within(
        seconds(0), [&] { exchange.end(Transport::timed_out); }));
    BOOST_TEST(!exchange.answer().sent);
  }  // `doomed` is destroyed while its name is looked up.
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
}

// -- Waking ------------------------------------------------------------------

// A wake amid a clear is not lost, nor does the next clear wait for another.
BOOST_AUTO_TEST_CASE(waker_is_woken_while_it_is_cleared) {
  Waker waker;
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) waker.wake();
  });
  for (int i = 0; i < 200'000; ++i) waker.clear();
  done = true;
  other.join();
  waker.clear();
  BOOST_TEST(!waker.woken());
  waker.wake();
  pollfd readable{waker.fd(), POLLIN, 0};
  BOOST_TEST(poll(&readable, 1, 0) == 1);
  waker.clear();
  BOOST_TEST(poll(&readable, 1, 0) == 0);
}

BOOST_FIXTURE_TEST_CASE(wake_by_another_thread_ends_the_drive_promptly,
                        Fixture) {
  server.script(hanging());
  Waker waker;
  tests::start(exchange, server.url(), {}, "{}");
  BootTime woken{};
  std::thread other([&] {
    server.wait_for_requests(1);
    woken = BootClock::now();
    waker.wake();
  });
  Exchange* const all[] = {&exchange};
  BOOST_TEST(tests::returns_within(
      seconds(1), [&] { drive(all, 1, in(tests::kPlenty), &waker); }));
  const BootTime returned = BootClock::now();
  other.join();
  BOOST_TEST((returned >= woken));
  BOOST_TEST(exchange.under_way());
  exchange.end(Transport::cancelled);
  BOOST_TEST(exchange.answer().transport == Transport::cancelled);
  BOOST_TEST(exchange.answer().sent);
}

BOOST_FIXTURE_TEST_CASE(wake_before_the_drive_is_remembered_until_cleared,
                        Fixture) {
  server.script(hanging());
  Waker waker;
  BOOST_TEST(waker.fd() >= 0);
  tests::start(exchange, server.url(), {}, "{}");
  Exchange* const all[] = {&exchange};
  waker.wake();
  waker.wake();
  for (int i = 0; i < 3; ++i) {
    BOOST_TEST(tests::returns_within(
        seconds(0), [&] { drive(all, 1, in(seconds(20)), &waker); }));
  }
  waker.clear();
  waker.clear();  // Does not wait for a wake.
  const BootTime deadline = in(milliseconds(100));
  drive(all, 1, deadline, &waker);
  BOOST_TEST((BootClock::now() >= deadline));
}

BOOST_AUTO_TEST_CASE(wake_reaches_a_drive_of_nothing) {
  Waker waker;
  std::thread other([&] { waker.wake(); });
  drive(nullptr, 0, in(seconds(20)), &waker);
  other.join();
  const BootTime deadline = in(milliseconds(30));
  waker.clear();
  drive(nullptr, 0, deadline, &waker);
  BOOST_TEST((BootClock::now() >= deadline));
}

namespace {

class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t limit) {
    getrlimit(RLIMIT_NOFILE, &old_);
    const rlimit changed = {std::min(limit, old_.rlim_max), old_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &changed);
    limit_ = changed.rlim_cur;
  }
  ~DescriptorLimit() { setrlimit(RLIMIT_NOFILE, &old_); }
  DescriptorLimit(const DescriptorLimit&) = delete;
  DescriptorLimit& operator=(const DescriptorLimit&) = delete;

  rlim_t limit() const { return limit_; }

 private:
  rlimit old_;
  rlim_t limit_;
};

std::unique_ptr<Waker> waker_without_descriptor() {
  const DescriptorLimit none(0);
  return std::make_unique<Waker>();
}

}  // namespace

BOOST_FIXTURE_TEST_CASE(wake_works_where_no_descriptor_was_left, Fixture) {
  const std::unique_ptr<Waker> waker = waker_without_descriptor();
  BOOST_REQUIRE(waker->fd() == -1);
  server.script(hanging());
  tests::start(exchange, server.url(), {}, "{}");
  std::thread other([&] {
    server.wait_for_requests(1);
    waker->wake();
  });
  Exchange* const all[] = {&exchange};
  BOOST_TEST(tests::returns_within(
      seconds(3), [&] { drive(all, 1, in(seconds(20)), waker.get()); }));
  other.join();
  // Nor is it one of libcurl's timers that ends the wait.
  BOOST_TEST(tests::returns_within(
      seconds(3), [&] { drive(nullptr, 0, in(seconds(20)), waker.get()); }));
  waker->clear();
  const BootTime deadline = in(milliseconds(40));
  drive(all, 1, deadline, waker.get());
  BOOST_TEST((BootClock::now() >= deadline));
}

// -- Many at once ------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(drive_returns_when_the_first_of_several_has_ended,
                        Fixture) {
  server.script(hanging());
  tests::start(exchange, server.url(), {}, "slow");
  drive_until_read(exchange, server, 1);
  Exchange quick(options);
  tests::start(quick, server.url(), {}, "quick");
  Exchange* const all[] = {&exchange, &quick};
  drive(all, 2, in(seconds(20)), nullptr);
  BOOST_TEST(!quick.under_way());
  BOOST_TEST(exchange.under_way());
  drive(all, 2, in(milliseconds(30)), nullptr);  // An ended one is no news.
  BOOST_TEST(exchange.under_way());
  server.release();
  drive(all, 2, in(seconds(20)), nullptr);
  BOOST_TEST(exchange.answer().transport == Transport::complete);
  BOOST_TEST(tests::returns_within(seconds(0), [&] {
    drive(all, 2, in(seconds(20)), nullptr);  // Nothing to wait for.
  }));
}

namespace {

// Keeps all descriptors below 1,100 taken.
class LowDescriptorsTaken {
 public:
  LowDescriptorsTaken() {
    int fd;
    while ((fd = fcntl(0, F_DUPFD_CLOEXEC, 0)) >= 0 && fd < 1100) {
      taken_.push_back(fd);
    }
    if (fd >= 0) close(fd);
  }
  ~LowDescriptorsTaken() {
    for (const int fd : taken_) close(fd);
  }
  LowDescriptorsTaken(const LowDescriptorsTaken&) = delete;
  LowDescriptorsTaken& operator=(const LowDescriptorsTaken&) = delete;

 private:
  std::vector<int> taken_;
};

std::vector<Exchange*> start_many(std::vector<std::unique_ptr<Exchange>>* owned,
                                  std::size_t count, const std::string& url) {
  std::vector<Exchange*> all;
  for (std::size_t i = 0; i < count; ++i) {
    owned->push_back(std::make_unique<Exchange>(HttpOptions()));
    tests::start(*owned->back(), url, {}, std::to_string(i));
    all.push_back(owned->back().get());
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_CASE(drive_of_200_with_high_descriptors_completes_them_all) {
  const DescriptorLimit enough(3000);
  BOOST_REQUIRE(enough.limit() >= 2000u);
  const LowDescriptorsTaken taken;
  ScriptedServer server([](const SeenRequest& request) {
    Reply reply = Reply::ok(request.body);
    reply.delay = milliseconds(std::stoi(request.body) % 20);
    return reply;
  });
  std::vector<std::unique_ptr<Exchange>> owned;
  const std::vector<Exchange*> all = start_many(&owned, 200, server.url());
  std::vector<Exchange*> left = all;
  while (!left.empty()) {
    drive(left.data(), left.size(), in(seconds(20)), nullptr);
    const auto ended = std::stable_partition(
        left.begin(), left.end(), [](Exchange* e) { return e->under_way(); });
    BOOST_REQUIRE((ended != left.end()));  // Else the deadline has come.
    left.erase(ended, left.end());
  }
  for (std::size_t i = 0; i < all.size(); ++i) {
    BOOST_TEST(all[i]->answer().body == std::to_string(i));
  }
  BOOST_TEST(server.connection_count() == 200);
  BOOST_TEST(server.request_count() == 200);
}

BOOST_FIXTURE_TEST_CASE(exchange_begun_by_one_thread_is_finished_by_another,
                        Fixture) {
  for (int i = 1; i <= 20; ++i) {
    server.script(hanging());
    std::thread([&] {
      tests::start(exchange, server.url(), {}, "{}");
      drive_until_read(exchange, server, i);
    }).join();
    server.release();
    HttpAnswer answer;
    std::thread([&] { answer = finish(exchange); }).join();
    BOOST_TEST(answer.transport == Transport::complete);
  }
  BOOST_TEST(server.connection_count() == 1);
}

// -- Connections -------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(another_url_goes_to_the_other_server, Fixture) {
  ScriptedServer other;
  for (int i = 0; i < 3; ++i) {
    ask(exchange, server.url(), "to the first");
    ask(exchange, other.url(), "to the other");
  }
  BOOST_TEST(deliveries(server)["to the first"] == 3);
  BOOST_TEST(deliveries(other)["to the other"] == 3);
  BOOST_TEST(other.request_count() == 3);
}

BOOST_FIXTURE_TEST_CASE(connection_is_not_inherited_by_programs_we_start,
                        Fixture) {
  ask(exchange, server.url());
  int found = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer = {};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) {
      continue;
    }
    if (ntohs(peer.sin_port) != server.port()) continue;
    ++found;
    BOOST_TEST((fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0);
  }
  BOOST_TEST(found == 1);
}

BOOST_FIXTURE_TEST_CASE(pool_gives_the_last_one_back_first_and_keeps_few,
                        Fixture) {
  options.max_idle = 2;
  HttpPool pool(options);
  std::vector<std::unique_ptr<Exchange>> taken;
  for (int i = 0; i < 3; ++i) {
    taken.push_back(pool.take());
    ask(*taken.back(), server.url());
  }
  Exchange* const last = taken[2].get();
  for (auto& exchange_taken : taken) pool.give_back(std::move(exchange_taken));
  BOOST_TEST((pool.take().get() == last));  // The second was one too many.
  BOOST_TEST(ask(*pool.take(), server.url()).status == 200);
  BOOST_TEST(server.connection_count() == 3);
}

BOOST_FIXTURE_TEST_CASE(pool_keeps_as_many_as_it_may, Fixture) {
  options.max_idle = 3;
  HttpPool pool(options);
  std::vector<std::unique_ptr<Exchange>> taken;
  std::vector<Exchange*> known;
  for (int i = 0; i < 4; ++i) {
    taken.push_back(pool.take());
    known.push_back(taken.back().get());
    ask(*taken.back(), server.url());
  }
  for (auto& exchange_taken : taken) pool.give_back(std::move(exchange_taken));
  for (auto& exchange_taken : taken) exchange_taken = pool.take();
  BOOST_TEST((taken[0].get() == known[3]));
  BOOST_TEST((taken[1].get() == known[1]));  // The third was one too many.
  BOOST_TEST((taken[2].get() == known[0]));
  for (auto& exchange_taken : taken) ask(*exchange_taken, server.url());
  BOOST_TEST(server.connection_count() == 5);
}

// -- TLS ---------------------------------------------------------------------

namespace {

struct TlsFixture {
  TlsFixture() { options.ca_file = server.certificate_file(); }

  ScriptedServer server{nullptr, ScriptedServer::Scheme::https};
  HttpOptions options;
};

}  // namespace

BOOST_FIXTURE_TEST_CASE(tls_server_with_trusted_certificate_is_complete,
                        TlsFixture) {
  Exchange exchange(options);
  for (int i = 0; i < 5; ++i) {
    BOOST_TEST(ask(exchange, server.url()).transport == Transport::complete);
  }
  BOOST_TEST(server.connection_count() == 1);
}

BOOST_FIXTURE_TEST_CASE(tls_answer_that_came_before_its_request_is_not_believed,
                        TlsFixture) {
  Exchange exchange(options);
  check_that_strays_are_not_believed(server, exchange);
}

BOOST_FIXTURE_TEST_CASE(tls_server_nobody_vouches_for_is_bad_certificate,
                        TlsFixture) {
  Exchange exchange{HttpOptions()};
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::bad_certificate);
  BOOST_TEST(!answer.sent);
  BOOST_TEST(answer.error != "");
  BOOST_TEST(server.request_count() == 0);
}

BOOST_FIXTURE_TEST_CASE(tls_server_of_another_name_is_bad_certificate,
                        TlsFixture) {
  Exchange exchange(options);
  const HttpAnswer answer =
      ask(exchange, "https://localhost:" + std::to_string(server.port()) + "/");
  BOOST_TEST(answer.transport == Transport::bad_certificate);
  BOOST_TEST(server.request_count() == 0);
}

BOOST_FIXTURE_TEST_CASE(tls_ca_file_that_is_missing_is_bad_certificate,
                        TlsFixture) {
  options.ca_file = "/nonexistent/ca.pem";
  Exchange exchange(options);
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST(answer.transport == Transport::bad_certificate);
  BOOST_TEST(!answer.sent);
}

BOOST_AUTO_TEST_CASE(tls_handshake_with_a_plain_server_is_unreachable) {
  ScriptedServer plain;
  Exchange exchange{HttpOptions()};
  std::string url = plain.url();
  tests::start(exchange, url.replace(0, 4, "https"), {}, "{}");
  // The server waits for the rest of a line: let it see the end.
  const HttpAnswer answer = finish(exchange, in(milliseconds(300)));
  BOOST_TEST(!answer.sent);
  BOOST_TEST(plain.request_count() == 0);
}

BOOST_FIXTURE_TEST_CASE(tls_connection_that_dies_of_a_request_sends_it_once,
                        TlsFixture) {
  Exchange exchange(options);
  for (const Ending ending : {Ending::close, Ending::reset}) {
    for (int i = 0; i < 20; ++i) {
      server.script(Reply::ok("warm"));
      BOOST_TEST(ask(exchange, server.url(), "warm").status == 200);
      server.script(Reply::gone(ending));
      const HttpAnswer answer = ask(exchange, server.url(), "once");
      BOOST_TEST(answer.transport == Transport::broken);
      BOOST_TEST(answer.sent);
    }
  }
  BOOST_TEST(deliveries(server)["once"] == 40);
}

BOOST_FIXTURE_TEST_CASE(tls_connection_cut_amid_an_unframed_body_is_broken,
                        TlsFixture) {
  Exchange exchange(options);
  server.script(raw("HTTP/1.1 200 OK\r\n\r\npart of it", Ending::reset));
  BOOST_TEST(ask(exchange, server.url()).transport == Transport::broken);
}

BOOST_FIXTURE_TEST_CASE(tls_leaves_the_threads_signals_as_they_were,
                        TlsFixture) {
  Exchange exchange(options);
  sigset_t sigpipe, before, after;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  ask(exchange, server.url());
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  BOOST_TEST(sigismember(&before, SIGPIPE) == sigismember(&after, SIGPIPE));
  BOOST_TEST(sigismember(&after, SIGPIPE) == 0);

  sigemptyset(&sigpipe);
  sigaddset(&sigpipe, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &sigpipe, &before);
  raise(SIGPIPE);  // The program's own, still to be dealt with by it.
  ask(exchange, server.url());
  const timespec no_wait = {0, 0};
  BOOST_TEST(sigtimedwait(&sigpipe, nullptr, &no_wait) == SIGPIPE);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  BOOST_TEST(sigismember(&after, SIGPIPE) == 1);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
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
  for (const char* text : {"",
                           "host",
                           "host:8000",
                           "//host/",
                           "/path",
                           "ftp://host/",
                           "file:///etc/passwd",
                           "https:",
                           "https://",
                           "https:///",
                           "https:///path",
                           "https:/host/",
                           "https:/h\xc3\xb6st/://host/",
                           "https:host",
                           "https://:443/",
                           "https://user@host/",
                           "https://user:secret@host/",
                           "https://:secret@host/",
                           "https://@host/",
                           "https://:@host/",
                           "https://host/?",
                           "https://host?query",
                           "https://host/path?query=1",
                           "https://host/#",
                           "https://host/#fragment",
                           "https://host:port/",
                           "https://host:65536/",
                           "https://host:-1/",
                           "https://ho st/",
                           "https://h\xc3\xb6st/",
                           "https://a%25b/",
                           "https://%36808986/",
                           "https://[fe80::1%25eth0]/",
                           "https://host/pa th",
                           "https://host/\r\nX: y",
                           " https://host/",
                           "https://[::1/",
                           "https://[nonsense]/"}) {
    BOOST_TEST(normal_url(text) == "", text);
  }
}

BOOST_FIXTURE_TEST_CASE(url_authority_is_the_host_that_libcurl_sends, Fixture) {
  for (const char* host : {"127.0.0.1", "LocalHost", "127.1", "0x7f.0.0.1"}) {
    const std::string url =
        std::string("http://") + host + ":" + std::to_string(server.port());
    const int before = server.request_count();
    ask(exchange, url);
    BOOST_REQUIRE(server.request_count() == before + 1);
    BOOST_TEST(server.requests().back().header("Host").value() ==
               parts_of(normal_url(url)).authority);
  }
}

BOOST_AUTO_TEST_SUITE_END()
