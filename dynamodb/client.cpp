#include "dynamodb/client.hpp"

#include <algorithm>
#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::HttpAnswer;
using sigv4::Transport;

namespace {

constexpr std::string_view kContentType = "application/x-amz-json-1.0";

// A line break in a key, from a file that was read too far, would end the
// header that it stands in.
bool fit_for_headers(const sigv4::Credentials& keys) {
  const auto fit = [](const std::string& text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
      return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
    });
  };
  return fit(keys.access_key_id) && fit(keys.session_token);
}

}  // namespace

bool is_endpoint(const std::string& url) {
  const auto parts = sigv4::parse_url(url);
  return parts && parts->path == "/";
}

Client::Client(ClientOptions options)
    : options_(std::move(options)),
      url_(sigv4::parse_url(options_.endpoint).value_or(sigv4::Url{})),
      target_url_(url_.scheme + "://" + url_.authority + "/"),
      pool_(options_.http) {}

Client::~Client() = default;

ServiceTime Client::calendar() {
  return std::chrono::system_clock::now().time_since_epoch();
}

ServiceClock Client::clock() const {
  const std::lock_guard guard(mutex_);
  return clock_;
}

ServiceTime Client::signing_time() const {
  const ServiceClock known = clock();
  return known.known() ? known.middle(BootClock::now()) : calendar();
}

std::unique_ptr<Client::Pending> Client::begin(Action action,
                                               std::string body) {
  auto pending = std::make_unique<Pending>();
  pending->action_ = action;
  sigv4::KeyOutcome source = options_.credentials();
  const sigv4::Credentials& keys = source.keys;
  if (source.state != sigv4::KeyOutcome::State::found) {
    pending->no_keys_ = std::move(source.reason);
    return pending;
  }
  if (!fit_for_headers(keys)) {
    pending->no_keys_ = "a key or token has control characters";
    return pending;
  }

  pending->signed_at_ = signing_time();
  std::vector<std::string> headers =
      signed_headers(action, body, keys, pending->signed_at_);
  pending->exchange_ = pool_.take();
  pending->exchange_->start(target_url_, std::move(headers), std::move(body));
  return pending;
}

// All that must be signed, and nothing else but the signature.
std::vector<std::string> Client::signed_headers(Action action,
                                                const std::string& body,
                                                const sigv4::Credentials& keys,
                                                ServiceTime signed_at) {
  const std::string target =
      std::string("DynamoDB_20120810.") + name_of(action);
  const std::string payload_hash = sigv4::sha256_hex(body);
  const sigv4::Request request = {"POST",
                                  "/",
                                  "",
                                  {{"Content-Type", kContentType},
                                   {"Host", url_.authority},
                                   {"X-Amz-Target", target}},
                                  payload_hash};
  const sigv4::Signed signature = sigv4::sign(
      request, keys, {options_.region, "dynamodb"},
      std::chrono::duration_cast<std::chrono::seconds>(signed_at).count(), {},
      keys_);
  std::vector<std::string> headers = {
      "Host: " + url_.authority,
      "Content-Type: " + std::string(kContentType),
      "X-Amz-Target: " + target,
      "X-Amz-Date: " + signature.amz_date,
      "Authorization: " + signature.authorization,
  };
  if (!keys.session_token.empty()) {
    headers.push_back("X-Amz-Security-Token: " + keys.session_token);
  }
  return headers;
}

Answer Client::finish(std::unique_ptr<Pending> pending, Transport why) {
  if (!pending->exchange_) {
    Answer answer;
    answer.action = pending->action_;
    answer.fault = Fault::no_keys;
    answer.message = pending->no_keys_;
    answer.sent_at = answer.received_at = BootClock::now();
    return answer;
  }
  pending->exchange_->end(why);
  const HttpAnswer http = pending->exchange_->take_answer();
  if (http.sent) ++sent_[static_cast<std::size_t>(pending->action_)];
  pool_.give_back(std::move(pending->exchange_));
  Answer answer = read_answer(pending->action_, http, pending->signed_at_);
  const auto date =
      answer.fault == Fault::bad_answer ? std::nullopt : date_of(http);
  const bool dynamodb =
      answer.fault == Fault::none || answer.fault == Fault::condition_failed;
  if (date || dynamodb) hear(http, date);
  return answer;
}

void Client::hear(const HttpAnswer& http, std::optional<ServiceTime> date) {
  bool contradicted;
  {
    const std::lock_guard guard(mutex_);
    const int before = clock_.contradictions();
    clock_.hear(http.sent_at, http.received_at, date);
    contradicted = clock_.contradictions() != before;
  }
  if (contradicted && contradicted_) contradicted_();
}

Answer Client::call(Action action, std::string body, BootTime deadline,
                    sigv4::Waker& waker) {
  auto pending = begin(action, std::move(body));
  sigv4::Exchange* exchange = pending->exchange();
  if (pending->under_way()) sigv4::drive(&exchange, 1, deadline, &waker);
  const bool late = BootClock::now() >= deadline;
  return finish(std::move(pending),
                late ? Transport::timed_out : Transport::cancelled);
}

Counts Client::counts() const {
  Counts counts;
  for (std::size_t i = 0; i < kActions; ++i) counts.sent[i] = sent_[i];
  return counts;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
