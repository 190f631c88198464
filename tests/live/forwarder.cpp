#include "tests/live/forwarder.hpp"

#include <strings.h>

#include <algorithm>
#include <chrono>
#include <initializer_list>
#include <utility>

#include "sigv4/boot_clock.hpp"
#include "sigv4/url.hpp"
#include "tests/support/gate.hpp"

namespace live {
namespace {

namespace sigv4 = ddbmutex::sigv4;
using ddbmutex::BootClock;
using tests::Reply;
using tests::SeenRequest;

// Longer than any client waits.
constexpr std::chrono::seconds kLongestExchange{40};

// If the endpoint is http, the proxy that the environment names for it may be
// this forwarder, so none is used.
sigv4::HttpOptions http_options(const std::string& endpoint,
                                const std::string& ca_file) {
  sigv4::HttpOptions options;
  options.use_proxies = sigv4::parts_of(endpoint).scheme == "https";
  options.ca_file = ca_file;
  options.max_answer_bytes = 3 << 20;
  options.max_idle = 64;
  options.connect_timeout = std::chrono::seconds(5);
  return options;
}

// "http://host:port", whichever scheme the endpoint has.
std::string plain(const std::string& endpoint) {
  return "http://" +
         std::string(sigv4::parts_of(sigv4::normal_url(endpoint)).authority);
}

bool is_one_of(std::string_view name,
               std::initializer_list<std::string_view> names) {
  return std::any_of(names.begin(), names.end(), [&](std::string_view one) {
    return one.size() == name.size() &&
           strncasecmp(one.data(), name.data(), one.size()) == 0;
  });
}

// Headers that concern one connection only, or that the next one writes anew.
bool is_of_the_connection(std::string_view name) {
  return is_one_of(name, {"Connection", "Content-Length", "Keep-Alive",
                          "Proxy-Connection", "Transfer-Encoding"});
}

// The headers that DynamoDB sent, and no others.
tests::HeaderList headers_of(const sigv4::HttpAnswer& answer) {
  tests::HeaderList all;
  std::string_view lines = answer.headers;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = sigv4::trimmed(lines.substr(0, end));
    lines.remove_prefix(std::min(end + 1, lines.size()));
    const std::size_t colon = std::min(line.find(':'), line.size());
    const std::string_view name = line.substr(0, colon);
    if (name.empty() || colon == line.size() || is_of_the_connection(name)) {
      continue;
    }
    all.emplace_back(name, sigv4::trimmed(line.substr(colon + 1)));
  }
  // The server adds these itself; without a value it leaves them out.
  for (const char* name :
       {"Date", "x-amzn-RequestId", "x-amz-crc32", "Content-Type"}) {
    if (answer.header(name).empty()) all.emplace_back(name, "");
  }
  return all;
}

}  // namespace

Forwarder::Forwarder(const std::string& endpoint, const std::string& ca_file)
    : endpoint_(endpoint),
      plain_(plain(endpoint)),
      pool_(http_options(sigv4::normal_url(endpoint), ca_file)),
      server_([this](const SeenRequest& request) { return hand_on(request); },
              tests::ScriptedServer::Scheme::http,
              tests::ScriptedServer::Door::open,
              tests::ScriptedServer::Calls::at_once) {}

// The tests' own servers on 127.0.0.1 are reached without the proxy.
std::vector<std::string> Forwarder::environment() const {
  return {"http_proxy=" + server_.url(), "no_proxy=127.0.0.1",
          "NO_PROXY=127.0.0.1"};
}

Reply Forwarder::hand_on(const SeenRequest& request) {
  if (request.path != plain_ + "/") return Reply::error(403, "{}");
  std::unique_ptr<sigv4::Exchange> exchange = pool_.take();
  send(request, *exchange);
  sigv4::HttpAnswer answer = std::move(exchange->answer());
  pool_.give_back(std::move(exchange));
  if (answer.sent) {
    const std::lock_guard<std::mutex> guard(mutex_);
    ++counts_[tests::action_of(request)];
  }
  // The client sees what it would have seen without the proxy.
  if (answer.transport != sigv4::Transport::complete || is_to_be_lost()) {
    return Reply::gone(tests::Ending::reset);
  }
  Reply reply = Reply::error(answer.status, std::move(answer.body));
  reply.headers = headers_of(answer);
  return reply;
}

void Forwarder::send(const SeenRequest& request,
                     sigv4::Exchange& exchange) const {
  for (const auto& [name, value] : request.headers) {
    if (is_of_the_connection(name) || is_one_of(name, {"Host"})) continue;
    exchange.headers() += name + ": " + value + "\n";
  }
  exchange.body() += request.body;
  const ddbmutex::BootTime now = BootClock::now();
  exchange.start(endpoint_ + "/", now);
  sigv4::Exchange* const driven = &exchange;
  sigv4::drive(&driven, 1, now + kLongestExchange, nullptr);
  exchange.end(sigv4::Transport::timed_out);
}

bool Forwarder::is_to_be_lost() {
  const int many = lose_one_in_;
  if (many == 0 || ++answers_ % many != 0) return false;
  ++lost_;
  return true;
}

RequestCounts Forwarder::counts() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return counts_;
}

}  // namespace live
