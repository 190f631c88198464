// A client for the tests of the gateway, that may sign wrongly.
//
//   Client client(gateway.url(), gateway.keys(), gateway.ca_file());
//   client.call("PutItem", "{...}").status;
#ifndef DDBMUTEX_TESTS_GATEWAY_CLIENT_HPP
#define DDBMUTEX_TESTS_GATEWAY_CLIENT_HPP

#include <chrono>
#include <ctime>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"
#include "sigv4/http_answer.hpp"
#include "sigv4/sigv4.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/waiting.hpp"

namespace gateway_tests {

using ddbmutex::BootClock;
using ddbmutex::sigv4::HttpAnswer;
using ddbmutex::sigv4::Transport;

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

class Client {
 public:
  explicit Client(std::string url, ddbmutex::Credentials keys = {},
                  const std::string& ca_file = {})
      : url_(std::move(url)), keys_(std::move(keys)), exchange_(with(ca_file)) {
    if (keys_.access_key_id.empty()) keys_ = {"AKIDEXAMPLE", "secret", ""};
  }

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

  HttpAnswer call(const std::string& action, const std::string& body,
                  std::chrono::milliseconds within = tests::kPlenty) {
    return send(signed_call(action, body), within);
  }
  // On the connection of the last one, if that is there still.
  HttpAnswer send(Call call,
                  std::chrono::milliseconds within = tests::kPlenty) {
    tests::start(exchange_, url_ + "/", call.head(), call.body);
    ddbmutex::sigv4::Exchange* const driven = &exchange_;
    if (exchange_.under_way()) {
      drive(&driven, 1, BootClock::now() + within, nullptr);
    }
    exchange_.end(Transport::timed_out);
    return std::move(exchange_.answer());
  }

  // The same, but gives up soon after that is so.
  template <class Condition>
  HttpAnswer call_until(const std::string& action, const std::string& body,
                        const Condition& condition) {
    Call call = signed_call(action, body);
    tests::start(exchange_, url_ + "/", call.head(), call.body);
    const auto drive_for = [this](std::chrono::milliseconds time) {
      ddbmutex::sigv4::Exchange* const driven = &exchange_;
      if (!exchange_.under_way()) return true;
      drive(&driven, 1, BootClock::now() + time, nullptr);
      return !exchange_.under_way();
    };
    tests::eventually([&] {
      return drive_for(std::chrono::milliseconds(10)) || condition();
    });
    drive_for(std::chrono::milliseconds(100));  // What comes nonetheless.
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
  ddbmutex::Credentials keys_;
  ddbmutex::sigv4::Exchange exchange_;
};

}  // namespace gateway_tests

#endif  // DDBMUTEX_TESTS_GATEWAY_CLIENT_HPP
