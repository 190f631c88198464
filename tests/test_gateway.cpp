// The gateway of the tests does what it says: each fault as its client and the
// engine see it, signatures and time as DynamoDB checks them, and its counts.
#include <zlib.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <ctime>
#include <future>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/sigv4.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::Transport;
using tests::Engine;
using tests::eventually;
using tests::Fault;
using tests::Gateway;
using tests::Reply;
using tests::ScriptedServer;
using tests::SeenRequest;

std::string header(const HttpAnswer& answer, const char* name) {
  return std::string(answer.header(name));
}

std::string crc32_of(const std::string& body) {
  const auto* bytes = reinterpret_cast<const unsigned char*>(body.data());
  return std::to_string(crc32(0, bytes, static_cast<unsigned>(body.size())));
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != text.npos;
}

// What goes over the wire.
struct Call {
  std::vector<std::string> headers;  // "Name: value"
  std::string body;

  std::string head() const {
    std::string text;
    for (const std::string& line : headers) text += line + "\n";
    return text;
  }
};

// It may sign wrongly.
class Client {
 public:
  explicit Client(std::string url, ddbmutex::Credentials keys,
                  const std::string& ca_file = {})
      : url_(std::move(url)),
        keys_(std::move(keys)),
        exchange_(with(ca_file)) {}

  // How far its calendar is ahead.
  std::chrono::seconds ahead{0};
  // Whether a header, signed too, tells the hash of the body.
  bool tells_hash = false;

  Call signed_call(const std::string& action, const std::string& body) {
    const std::string host = url_.substr(url_.find("//") + 2);
    const std::string target = "DynamoDB_20120810." + action;
    const std::string type = "application/x-amz-json-1.0";
    const std::string hash = ddbmutex::sigv4::sha256_hex(body);
    std::vector<ddbmutex::sigv4::Header> headers = {
        {"Content-Type", type}, {"Host", host}, {"X-Amz-Target", target}};
    if (tells_hash) headers.push_back({"X-Amz-Content-Sha256", hash});
    const ddbmutex::sigv4::Signed signature = ddbmutex::sigv4::sign(
        {"POST", "/", "", headers, hash},
        {keys_.access_key_id, keys_.secret_access_key, keys_.session_token},
        {"eu-west-1", "dynamodb"}, std::time(nullptr) + ahead.count());
    Call call{{}, body};
    for (const auto& [name, value] : headers) {
      call.headers.push_back(std::string(name) + ": " + std::string(value));
    }
    call.headers.push_back("X-Amz-Date: " + signature.amz_date);
    call.headers.push_back("Authorization: " + signature.authorization);
    if (!keys_.session_token.empty()) {
      call.headers.push_back("X-Amz-Security-Token: " + keys_.session_token);
    }
    return call;
  }

  HttpAnswer call(const std::string& action, const std::string& body) {
    return send(signed_call(action, body));
  }
  // On the connection of the last one, if that is there still.
  HttpAnswer send(const Call& call) {
    tests::start(exchange_, url_ + "/", call.head(), call.body);
    if (exchange_.under_way()) {
      drive(exchange_, BootClock::now() + tests::kPlenty, nullptr);
    }
    exchange_.end(Transport::timed_out);
    return std::move(exchange_.answer());
  }

 private:
  static ddbmutex::sigv4::HttpOptions with(const std::string& ca_file) {
    ddbmutex::sigv4::HttpOptions options;
    options.ca_file = ca_file;
    options.connect_timeout = tests::kPlenty;
    return options;
  }

  const std::string url_;
  const ddbmutex::Credentials keys_;
  ddbmutex::sigv4::Exchange exchange_;
};

// A row that counts how often a write to it was applied.
class Row {
 public:
  Row() : engine_(Engine::running(tests::any_engine_kind())) {
    static int rows = 0;
    key_ = "gateway-" + std::to_string(++rows);
  }

  Engine& engine() { return engine_; }
  std::string key() const { return key_; }
  std::string write() const {
    return start() + R"(,"UpdateExpression":"ADD n :one",)"
                     R"("ExpressionAttributeValues":{":one":{"N":"1"}},)"
                     R"("ReturnValues":"ALL_NEW"})";
  }
  int written() {
    const std::string row =
        engine_.must_call("GetItem", start() + R"(,"ConsistentRead":true})");
    const std::string before = R"("n":{"N":")";
    const auto at = row.find(before);
    return at == row.npos ? 0 : std::stoi(row.substr(at + before.size()));
  }

 private:
  std::string start() const {
    return R"({"TableName":")" + engine_.table() + R"(","Key":{"name":{"S":")" +
           key_ + R"("}})";
  }

  Engine& engine_;
  std::string key_;
};

// Before the suite's engine.
struct BeforeEngine {
  Row row;
  Gateway gateway{row.engine().url()};
  Client client{gateway.url(), gateway.keys(), gateway.ca_file()};

  HttpAnswer write() { return client.call("UpdateItem", row.write()); }
  // How often the row has been written, once nothing is under way.
  int written() {
    gateway.wait_until_quiet();
    return row.written();
  }
};

// Before a stand-in for an engine.
struct BeforeServer {
  Client client() { return Client(gateway.plain_url(), gateway.keys()); }
  HttpAnswer put() { return client().call("PutItem", "{}"); }

  ScriptedServer server{[](const SeenRequest&) { return Reply::ok("{}"); }};
  Gateway gateway{server.url(), Gateway::Settings{false}};
};

// For a kind of fault that waits, until it is let go.
Fault waiting(const std::string& kind) {
  Fault fault;
  fault.kind = kind;
  fault.from = 1h;
  return fault;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gateway)

// --- Faults ------------------------------------------------------------------

// What the client sees of a fault, and how often the write is applied.
struct Spoiled {
  const char* kind;
  int status;  // 0: no answer.
  const char* says;
  int applied;
};
constexpr Spoiled kSpoiled[] = {
    {"reset", 0, "", 0},
    {"close", 0, "", 0},
    {"half-close", 0, "", 0},
    {"reset-answer", 0, "", 1},
    {"half-close-answer", 0, "", 1},
    {"truncate", 0, "", 1},
    {"throttle", 400, "#ProvisionedThroughputExceededException", 0},
    {"500", 500, "#InternalServerError", 0},
    {"503", 503, "#ServiceUnavailable", 0},
    {"throttle-after", 400, "#ProvisionedThroughputExceededException", 1},
    {"500-after", 500, "#InternalServerError", 1},
    {"503-after", 503, "#ServiceUnavailable", 1},
    {"portal", 200, "<html>", 0},
    {"empty", 200, "", 0},
    {"garbage", 200, "<html>", 1},
    {"corrupt", 200, "", 1}};

BOOST_FIXTURE_TEST_CASE(fault_spoils_one_request_before_or_after_the_write,
                        BeforeEngine) {
  int applied = 0;
  for (const Spoiled& fault : kSpoiled) {
    BOOST_TEST_CONTEXT(fault.kind) {
      gateway.fault("UpdateItem", fault.kind);
      const HttpAnswer answer = write();
      BOOST_TEST((answer.transport == Transport::complete) ==
                 (fault.status != 0));
      if (fault.status != 0) {
        BOOST_TEST(answer.status == fault.status);
        BOOST_TEST(has(answer.body, fault.says));
      }
      if (fault.kind == std::string("corrupt")) {
        BOOST_TEST(header(answer, "x-amz-crc32") != crc32_of(answer.body));
      }
      applied += fault.applied;
      BOOST_TEST(written() == applied);
      BOOST_TEST(gateway.counts().faults(fault.kind) == 1);
    }
  }
  BOOST_TEST(write().status == 200);
}

// Once each has come so far.
BOOST_AUTO_TEST_CASE(what_waits_for_its_time_goes_on_when_it_is_let_go) {
  BeforeServer before;
  Gateway& gateway = before.gateway;
  for (const std::string kind :
       {"delay", "late", "reorder", "delay-answer", "duplicate"}) {
    BOOST_TEST_CONTEXT(kind) {
      gateway.clear();
      gateway.forget();
      gateway.add(waiting(kind));
      auto answer =
          std::async(std::launch::async, [&] { return before.put().status; });
      BOOST_TEST(
          eventually([&] { return gateway.counts().faults(kind) == 1; }));
      BOOST_TEST(gateway.counts().under_way() == 1);
      BOOST_TEST(eventually([&] {
        gateway.let_go();
        return gateway.counts().under_way() == 0;
      }));
      BOOST_TEST(answer.get() == (kind == "late" ? 0 : 200));
      BOOST_TEST(gateway.counts().applied("PutItem") ==
                 (kind == "duplicate" ? 2 : 1));
    }
  }
}

// --- Signatures ------------------------------------------------------------

// Puts another value in the place of a header's; without one, takes the header
// away.
void replace(Call& call, const std::string& name, const std::string& value) {
  auto& headers = call.headers;
  headers.erase(std::remove_if(headers.begin(), headers.end(),
                               [&](const std::string& header) {
                                 return header.rfind(name + ":", 0) == 0;
                               }),
                headers.end());
  if (!value.empty()) headers.push_back(name + ": " + value);
}

std::string header_of(const Call& call, const std::string& name) {
  for (const std::string& header : call.headers) {
    if (header.rfind(name + ": ", 0) == 0)
      return header.substr(name.size() + 2);
  }
  return {};
}

BOOST_AUTO_TEST_CASE(request_changed_after_it_was_signed_is_refused) {
  BeforeServer before;
  Client client = before.client();
  const Call call = client.signed_call("PutItem", R"({"a":1})");
  std::vector<Call> forged(6, call);
  forged[0].body = R"({"a":2})";
  replace(forged[1], "X-Amz-Target", "DynamoDB_20120810.DeleteItem");
  replace(forged[2], "Host", "127.0.0.2:1");
  // One second on.
  std::string time = header_of(call, "X-Amz-Date");
  time[14] = time[14] == '9' ? '8' : static_cast<char>(time[14] + 1);
  replace(forged[3], "X-Amz-Date", time);
  // A hash that was signed is no body that was signed.
  client.tells_hash = true;
  forged[4] = client.signed_call("PutItem", call.body);
  BOOST_TEST(client.send(forged[4]).status == 200);
  forged[4].body = forged[0].body;
  std::string authorization = header_of(call, "Authorization");
  authorization.replace(authorization.find("eu-west-1"), 9, "eu-west-2");
  replace(forged[5], "Authorization", authorization);
  for (std::size_t i = 0; i < forged.size(); ++i) {
    BOOST_TEST_CONTEXT("forgery " << i) {
      const HttpAnswer answer = client.send(forged[i]);
      BOOST_TEST(answer.status == 400);
      BOOST_TEST(has(answer.body, "#InvalidSignatureException"));
    }
  }
  BOOST_TEST(before.gateway.counts().bad_signatures() == 6);
  BOOST_TEST(before.server.request_count() == 1);
  BOOST_TEST(client.send(call).status == 200);
}

BOOST_AUTO_TEST_CASE(signature_outside_five_minutes_is_refused) {
  BeforeServer before;
  Client client = before.client();
  client.ahead = -6min;
  const HttpAnswer early = client.call("PutItem", "{}");
  BOOST_TEST(early.status == 400);
  BOOST_TEST(has(early.body, "#InvalidSignatureException"));
  BOOST_TEST(has(early.body, "Signature expired: "));
  client.ahead = 6min;
  const HttpAnswer late = client.call("PutItem", "{}");
  BOOST_TEST(late.status == 400);
  BOOST_TEST(has(late.body, "Signature not yet current: "));
  BOOST_TEST(before.gateway.counts().early_signatures() == 1);
  BOOST_TEST(before.gateway.counts().late_signatures() == 1);
  BOOST_TEST(before.gateway.counts().bad_signatures() == 0);
  BOOST_TEST(before.gateway.counts().good_signatures() == 0);
  BOOST_TEST(before.server.request_count() == 0);
  for (const auto within : {-4min, 4min}) {
    client.ahead = within;
    BOOST_TEST(client.call("PutItem", "{}").status == 200);
  }
}

BOOST_AUTO_TEST_SUITE_END()
