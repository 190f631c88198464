// Servers and proxies that send without end, as fast as they can, at every
// stage of an exchange: a limit on bytes ends it early, so every promised bound
// holds and no processor is kept busy.
#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "sigv4/http.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/waiting.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/proxied.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/uncounted.hpp"

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::sigv4::drive;
using ddbmutex::sigv4::Exchange;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::HttpOptions;
using ddbmutex::sigv4::Transport;
using tests::Proxied;
using tests::Reply;
using tests::ScriptedServer;

namespace {

// What is sent, once and then without end.
struct Flood {
  const char* name;
  std::string begin;
  std::string filler;
};

std::ostream& operator<<(std::ostream& out, const Flood& flood) {
  return out << flood.name;
}

Reply reply_of(const Flood& flood) {
  Reply reply;
  reply.raw = flood.begin;
  reply.flood = flood.filler;
  return reply;
}

const std::string kChunked =
    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const std::string kRefusal = "HTTP/1.1 407 No\r\nProxy-Authenticate: Basic\r\n";
const std::string kLine = "X-Filler: " + std::string(80, 'x') + "\r\n";

const std::vector<Flood> kAnswers = {
    {"interim_answers", "HTTP/1.1 100 Continue\r\n\r\n",
     "HTTP/1.1 100 Continue\r\n\r\n"},
    {"headers", "HTTP/1.1 200 OK\r\n", kLine},
    {"header_line", "HTTP/1.1 200 OK\r\nX-Filler: ", "x"},
    {"status_line", "HTTP/1.1 200 ", "x"},
    {"body", "HTTP/1.1 200 OK\r\n\r\n", "x"},
    {"chunks", kChunked, "1\r\nx\r\n"},
    {"chunk_extension", kChunked + "2;", "x"},
    {"chunk_extensions", kChunked,
     "1;" + std::string(16000, 'x') + "\r\nx\r\n"},
    {"trailers", kChunked + "2\r\n{}\r\n0\r\n", kLine},
    {"trailer_line", kChunked + "2\r\n{}\r\n0\r\nX-Filler: ", "x"},
    {"end_of_last_chunk", kChunked + "2\r\n{}\r\n0;", "x"}};

// A proxy's refusal, which libcurl reads byte by byte.
const Flood kEndlessRefusal = {
    "refusal", kRefusal + "Content-Length: 9223372036854775807\r\n\r\n", "x"};

const std::vector<Flood> kAnswersToConnect = {
    {"interim_answers", "HTTP/1.1 100 Continue\r\n\r\n",
     "HTTP/1.1 100 Continue\r\n\r\n"},
    {"headers", "HTTP/1.1 200 OK\r\n", kLine},
    {"header_line", "HTTP/1.1 200 OK\r\nX-Filler: ", "x"},
    kEndlessRefusal,
    {"chunks", kRefusal + "Transfer-Encoding: chunked\r\n\r\n",
     "8\r\nxxxxxxxx\r\n"},
    {"chunk_extension", kRefusal + "Transfer-Encoding: chunked\r\n\r\n1;",
     "x"}};

// TLS handshake messages that a client skips: HelloRequest.
const std::vector<Flood> kHandshakes = {
    {"hello_requests", "", std::string("\x16\x03\x03\x00\x04\0\0\0\0", 9)},
    {"bytes", "", "x"}};

HttpAnswer ask(Exchange& exchange, const std::string& url) {
  tests::start(exchange, url, {}, "{}");
  const auto deadline = BootClock::now() + tests::kPlenty;
  while (exchange.under_way() && BootClock::now() < deadline) {
    drive(exchange, deadline, nullptr);
  }
  exchange.end(Transport::timed_out);
  return std::move(exchange.answer());
}

// More than any limit of ours and the buffers of two kernels.
constexpr std::uint64_t kMostBytes =
    2 * ddbmutex::dynamodb::kMostAnswerBytes + (16 << 20);
static_assert(kMostBytes < Reply::kFlood);

std::uint64_t bytes_of_a_connection(const ScriptedServer& server) {
  return server.bytes_sent() /
         static_cast<std::uint64_t>(std::max(server.connection_count(), 1));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(floods)

BOOST_DATA_TEST_CASE(flood_of_an_answer_is_ended_early, kAnswers, flood) {
  ScriptedServer server;
  HttpOptions options;
  options.connect_timeout = 10min;  // It is bytes that end it.
  Exchange exchange(options);
  server.script(reply_of(flood));
  const HttpAnswer answer = ask(exchange, server.url());
  BOOST_TEST((answer.transport == Transport::too_large ||
              answer.transport == Transport::broken));
  BOOST_TEST(answer.sent);
  BOOST_TEST(server.bytes_sent() < kMostBytes);
}

BOOST_DATA_TEST_CASE(flood_of_a_proxy_is_ended_early, kAnswersToConnect,
                     flood) {
  ScriptedServer proxy;
  const Proxied proxied(proxy.url());
  HttpOptions options;
  options.connect_timeout = 10min;  // It is bytes that end it.
  Exchange exchange(options);
  proxy.script(reply_of(flood));
  const HttpAnswer answer = ask(exchange, "https://locks.example/");
  BOOST_TEST((answer.transport == Transport::unreachable));
  BOOST_TEST(!answer.sent);
  BOOST_TEST(proxy.bytes_sent() < kMostBytes);
}

BOOST_DATA_TEST_CASE(flood_of_a_handshake_is_ended_early,
                     kHandshakes* boost::unit_test::data::make({false, true}),
                     flood, by_proxy) {
  ScriptedServer server;
  server.greet(reply_of(flood));
  std::string url = server.url();
  url.replace(0, 4, "https");
  HttpOptions options;
  options.connect_timeout = 10min;  // It is bytes that end it.
  Exchange exchange(options);
  std::optional<Proxied> proxied;
  if (by_proxy) proxied.emplace(url);
  const HttpAnswer answer =
      ask(exchange, by_proxy ? "https://locks.example/" : url);
  BOOST_TEST((answer.transport == Transport::unreachable));
  BOOST_TEST(!answer.sent);
  BOOST_TEST(server.bytes_sent() < kMostBytes);
}

// --- The calls of a mutex ----------------------------------------------------

namespace {

// A lock is held when the proxy begins to flood.
struct Flooded {
  static constexpr auto kTime = 300ms;

  void begin() {
    held.lock();
    proxy.greet(reply_of(kEndlessRefusal));
    proxied.emplace(proxy.url());
    server.end_idle(tests::Ending::close);
  }

  ddbmutex::TableOptions table_options() const {
    ddbmutex::TableOptions options = tests::table_options(server);
    options.ca_file = server.certificate_file();
    return options;
  }
  ddbmutex::Options options() const {
    ddbmutex::Options options = tests::on_table(table);
    options.request_timeout = kTime;
    return options;
  }

  ScriptedServer server{nullptr, ScriptedServer::Scheme::https};
  ScriptedServer proxy;
  std::optional<Proxied> proxied;  // Until nothing is sent any more.
  std::shared_ptr<ddbmutex::Table> table =
      tests::with_clock(std::make_shared<ddbmutex::Table>(table_options()));
  ddbmutex::DdbMutex held{"held", options()};
};

}  // namespace

// Without counts, only the time to connect ends a call in which libcurl goes on
// reading.
BOOST_AUTO_TEST_CASE(connecting_ends_in_time_where_the_kernel_counts_no_bytes) {
  Flooded it;
  const tests::Uncounted uncounted;
  it.begin();
  BOOST_TEST(tests::returns_within(it.kTime, [&] { it.held.unlock(); }));
  BOOST_TEST(bytes_of_a_connection(it.proxy) < kMostBytes);
}

BOOST_AUTO_TEST_SUITE_END()
