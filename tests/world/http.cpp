// The library's waiting and its HTTP exchanges (sigv4/waiting.hpp, http.hpp),
// as they are in the world.
#include "sigv4/http.hpp"

#include <curl/curl.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/waiting.hpp"
#include "tests/world/memory.hpp"
#include "tests/world/network.hpp"
#include "tests/world/world.hpp"

namespace {

using ddbmutex::BootTime;
using ddbmutex::sigv4::Exchange;
using std::chrono::nanoseconds;
using world::Address;
using world::Network;
using world::Outside;
using world::Received;
using world::Request;
using world::World;

// An exchange that is under way.
struct Wire {
  std::uint64_t number = 0;  // Counted over all exchanges.
  bool is_sent = false;
  world::Time sent{};
  nanoseconds connect_timeout{};
  std::optional<Received> received{};
};

// By exchange.  Never iterated: the order of addresses is not repeatable.
std::map<const Exchange*, Wire>& wires() {
  static auto* const all = new std::map<const Exchange*, Wire>;
  return *all;
}

void hear(const Exchange* exchange, std::uint64_t number, Received received) {
  const auto wire = wires().find(exchange);
  if (wire == wires().end() || wire->second.number != number) return;
  if (wire->second.received) return;
  wire->second.received = std::move(received);
  World::the().notify(exchange);
}

// The value of a header among lines that begin with its name.
std::string value_of(std::string_view lines, std::string_view name) {
  const std::size_t at = lines.find(name);
  if (at == lines.npos) return {};
  lines.remove_prefix(at + name.size());
  return std::string(lines.substr(0, lines.find('\n')));
}

Request request_of(std::string_view headers, std::string_view body) {
  constexpr std::string_view kPrefix = "x-amz-target:DynamoDB_20120810.";
  Request request;
  request.process = &World::the().process();
  request.operation = value_of(headers, kPrefix);
  request.body = body;
  request.amz_date = value_of(headers, "x-amz-date:");
  request.signature = value_of(headers, "authorization:");
  request.token = value_of(headers, "x-amz-security-token:");
  return request;
}

// Whether names resolve at this host.
bool has_names() {
  World& world = World::the();
  return world.now() >= world.host().no_names_until;
}

// Returns whether bytes of the request have left.
bool send(const Exchange* exchange, Wire& wire, Request request) {
  wire.is_sent = true;
  wire.sent = World::the().now();
  ++World::the().process().requests;
  return Network::the().send(
      std::move(request), wire.connect_timeout,
      [exchange, number = wire.number](Received received) {
        hear(exchange, number, std::move(received));
      });
}

}  // namespace

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// -- Waker --------------------------------------------------------------------

Waker::Waker() : fd_(-1) {}

Waker::~Waker() = default;

void Waker::wake() noexcept {
  woken_ = true;
  World::the().notify(this);
  World::the().step();
}

void Waker::clear() noexcept { woken_ = false; }

// -- Exchange -----------------------------------------------------------------

Exchange::Exchange(const HttpOptions& options)
    : multi_(this),
      easy_(this),
      parsed_url_(reinterpret_cast<Curl_URL*>(this)),
      max_body_(options.max_answer_bytes),
      connect_timeout_(options.connect_timeout),
      has_options_(true),
      kept_(options.max_age),
      last_address_(options.last_address),
      addresses_(nullptr, curl_slist_free_all) {}

Exchange::~Exchange() {
  const Outside outside;
  wires().erase(this);
}

void Exchange::start(const std::string& url, BootTime now, Method) {
  answer_.reset();
  answer_.sent_at = answer_.received_at = now;
  send_by_ = BootTime::max();
  if (world::runs_out_of_memory()) {
    answer_.transport = Transport::unreachable;
    spent_ = true;
    return;
  }
  const Outside outside;
  static std::uint64_t number = 0;
  url_ = url;
  way_ = kept_.first_way(now);
  wires()[this] = {++number, false, {}, connect_timeout_, {}};
  under_way_ = true;
}

void Exchange::connect_within(std::chrono::nanoseconds time) {
  const Outside outside;
  if (!under_way_) return;
  Wire& wire = wires()[this];
  wire.connect_timeout = std::clamp(time, nanoseconds(1), wire.connect_timeout);
}

void Exchange::end(Transport why) {
  if (under_way_) finish({why, ""});
}

void Exchange::finish(const Ending& ending) {
  const Outside outside;
  wires().erase(this);
  headers_.wipe();
  body_.wipe();
  under_way_ = false;
  answer_.transport = ending.transport;
  answer_.received_at = World::the().host().boot(World::the().now());
  if (ending.transport == Transport::complete) {
    kept_.answered(answer_.received_at, progress_.connects);
    if (last_address_ != nullptr) last_address_->remember(url_, "its address");
  } else {
    kept_.failed(way_, answer_.received_at);
  }
  if (ending.transport == Transport::unreachable) spent_ = true;
  if (ending.transport == Transport::complete) return;
  answer_.body.clear();
  answer_.error = ending.why;
}

// Finds a way to the service.  Returns false if there is none: a new connection
// needs a name that resolves, or an address.
bool Exchange::try_next_way(bool resolved) {
  World& world = World::the();
  const BootTime now = answer_.sent_at;
  const bool known =
      last_address_ != nullptr && !last_address_->of(url_).empty();
  const bool refused = world.now() < world.host().no_connections_until;
  std::optional<Way> way = kept_.first_way(now);
  while (way) {
    way_ = *way;
    progress_.connects = way_ != Way::usual || !kept_.is_open();
    const bool has_address = resolved || way_ == Way::last_address;
    if (!progress_.connects || (has_address && !refused)) break;
    way = kept_.next_way(way_, now, resolved, known);
  }
  return way.has_value();
}

// Sends what was not sent yet, and takes what has arrived.
void Exchange::act_if_due(BootTime now) {
  if (!under_way_) return;
  Wire& wire = wires().at(this);
  if (!wire.is_sent) {
    if (now >= send_by_) return finish({Transport::timed_out, "too late"});
    if (!try_next_way(has_names())) {
      return finish({Transport::unreachable, "the name does not resolve"});
    }
    answer_.sent_at = now;
    answer_.sent = send(this, wire, request_of(headers_, body_));
  }
  if (!wire.received) return;
  Received& received = *wire.received;
  if (received.kind == Received::Kind::unreachable) {
    return finish({Transport::unreachable, "nobody answers"});
  }
  if (received.kind == Received::Kind::broken || world::runs_out_of_memory()) {
    return finish({Transport::broken, "the connection broke"});
  }
  answer_.status = received.status;
  answer_.headers = std::move(received.headers);
  if (received.kind == Received::Kind::truncated) {
    return finish({Transport::broken, "the connection broke amid the answer"});
  }
  if (received.body.size() > max_body_) {
    return finish({Transport::too_large, "the answer is too large"});
  }
  answer_.body = std::move(received.body);
  world::Process& process = World::the().process();
  process.answered_sent = std::max(process.answered_sent, wire.sent);
  process.answered = World::the().now();
  finish({Transport::complete, ""});
}

// -- Waiting ------------------------------------------------------------------

void drive(Exchange* const* exchanges, std::size_t count, BootTime deadline,
           Waker* waker) {
  World& world = World::the();
  world.step();
  const Outside outside;
  const auto under_way = [&] {
    return std::count_if(exchanges, exchanges + count,
                         [](Exchange* one) { return one->under_way(); });
  };
  const auto before = under_way();
  while (before != 0) {
    std::vector<Address> addresses;
    if (waker != nullptr) addresses.push_back(waker);
    const BootTime now = world.host().boot(world.now());
    for (std::size_t i = 0; i < count; ++i) {
      exchanges[i]->act_if_due(now);
      if (exchanges[i]->under_way()) addresses.push_back(exchanges[i]);
    }
    const bool woken = waker != nullptr && waker->woken();
    if (woken || under_way() < before || now >= deadline) return;
    // Without a waker's timer, the timeout of poll(2) does not count a suspend.
    world.wait(addresses, deadline, waker == nullptr);
  }
}

void wait_until(BootTime deadline, Waker* waker) {
  World& world = World::the();
  world.step();
  const Outside outside;
  std::vector<Address> addresses;
  if (waker != nullptr) addresses.push_back(waker);
  while ((waker == nullptr || !waker->woken()) &&
         world.host().boot(world.now()) < deadline) {
    world.wait(addresses, deadline, waker == nullptr);
  }
}

void init_http() {}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
