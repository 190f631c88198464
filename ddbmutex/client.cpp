#include "client.hpp"

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
  return fit(keys.access_key_id) && fit(keys.session_token.str());
}

// Of keys that were changed, or deleted: there may be others by now.
bool is_unknown_key(const Answer& answer) {
  return answer.fault == Fault::bad_keys &&
         (answer.code == "UnrecognizedClientException" ||
          answer.code == "InvalidClientTokenId");
}

// Below this DynamoDB counts no less than one unit.
constexpr std::size_t kWriteUnitBytes = 1024;
constexpr std::size_t kReadUnitBytes = 4096;

double units(std::size_t bytes, std::size_t unit_bytes) {
  return static_cast<double>(
      std::max<std::size_t>(1, (bytes + unit_bytes - 1) / unit_bytes));
}

// How often each unit is written: a transaction is prepared, then carried out.
int writes(Action action) {
  switch (action) {
    case Action::put_item:
    case Action::update_item:
    case Action::delete_item:
      return 1;
    case Action::transact_write_items:
      return 2;
    default:
      return 0;
  }
}

bool is_read(Action action) {
  return action == Action::get_item || action == Action::scan ||
         action == Action::query;
}

bool answered(Fault fault) {
  return fault == Fault::none || fault == Fault::condition_failed;
}

// What who makes or deletes a table is told on the way of all being well.
bool is_news(const Answer& answer) {
  switch (answer.action) {
    case Action::describe_table:
    case Action::delete_table:
      return answer.fault == Fault::no_table ||
             answer.fault == Fault::table_in_use;
    case Action::create_table:
      return answer.fault == Fault::table_in_use;
    case Action::update_time_to_live:
      return answer.fault == Fault::table_in_use ||
             answer.fault == Fault::unknown_action ||
             answer.code == "ValidationException";
    default:
      return false;
  }
}

}  // namespace

Client::Client(ClientOptions options)
    : options_(std::move(options)),
      pool_(options_.http),
      keys_(
          options_.credentials,
          [this] {
            return std::chrono::duration_cast<std::chrono::seconds>(
                       time_by(clock()))
                .count();
          },
          options_.log) {}

Client::~Client() = default;

ServiceTime Client::calendar() {
  return std::chrono::system_clock::now().time_since_epoch();
}

ServiceClock Client::clock() const {
  const std::lock_guard guard(mutex_);
  return clock_;
}

// To sign for.
ServiceTime Client::time_by(const ServiceClock& clock) {
  return clock.known() ? clock.middle(BootClock::now()) : calendar();
}

std::string Client::endpoint() const {
  const std::lock_guard guard(mutex_);
  return site_ != nullptr ? site_->endpoint : options_.target.endpoint;
}

// Made anew when the keys have changed.
Client::SitePtr Client::make_site(const sigv4::Keys::OutcomePtr& keys) {
  auto site = std::make_shared<Site>();
  site->keys = keys;
  const bool complete = !options_.target.region.empty();
  const Target target =
      complete ? options_.target
               : dynamodb::complete(options_.target,
                                    {keys->region, "the region found"});
  site->error = target.error;
  site->option = target.option;
  site->region = target.region;
  if (site->error.empty()) {
    const std::string owner = account_of_table(options_.table, target.region);
    const AccountUrl url =
        account_url(target, owner.empty() ? keys->keys.account_id : owner);
    site->error = url.error;
    const auto parts = sigv4::parse_url(url.url).value_or(sigv4::Url{});
    site->authority = parts.authority;
    site->endpoint = url.url;
    site->url = parts.scheme + "://" + parts.authority + "/";
  }
  const std::lock_guard guard(mutex_);
  return site_ = std::move(site);
}

// If so, says it in `pending`.
bool Client::lacks_keys(Pending& pending,
                        const sigv4::Keys::Current& current) const {
  const sigv4::KeyOutcome& keys = *current.outcome;
  using State = sigv4::KeyOutcome::State;
  if (keys.state == State::found) {
    if (fit_for_headers(keys.keys)) return false;
    pending.fault_ = Fault::no_keys;
    pending.problem_ = "a key or token has control characters";
    return true;
  }
  const bool passing = current.on_their_way || keys.state == State::failed;
  pending.fault_ = passing             ? Fault::keys_awaited
                   : keys.lacks_region ? Fault::no_target
                                       : Fault::no_keys;
  pending.problem_ = keys.reason;
  if (keys.lacks_region) {
    pending.option_ = "region";
    pending.problem_ =
        "no region: " + options_.target.region_sources + "; " + keys.reason;
  }
  return true;
}

std::unique_ptr<Client::Pending> Client::begin(Action action,
                                               std::string body) {
  auto pending = std::make_unique<Pending>();
  pending->action_ = action;
  const sigv4::Keys::Current current = keys_.now();
  if (lacks_keys(*pending, current)) return pending;
  SitePtr site;
  ServiceClock known;
  {
    const std::lock_guard guard(mutex_);
    site = site_;
    known = clock_;
  }
  if (site == nullptr || site->keys != current.outcome) {
    site = make_site(current.outcome);
  }
  if (!site->error.empty()) {
    pending->fault_ = Fault::no_target;
    pending->option_ = site->option;
    pending->problem_ = site->error;
    return pending;
  }

  pending->keys_ = current.outcome;
  pending->body_size_ = body.size();
  pending->consistent_ =
      is_read(action) &&
      body.find(R"("ConsistentRead":true)") != std::string::npos;
  pending->signed_at_ = time_by(known);
  std::vector<std::string> headers =
      signed_headers(action, body, *site, pending->signed_at_);
  for (const std::string& header : headers) {
    const std::size_t at = header.find("Signature=");
    if (at != std::string::npos) pending->signature_ = header.substr(at + 10);
  }
  pending->exchange_ = pool_.take();
  pending->exchange_->start(site->url, std::move(headers), std::move(body));
  return pending;
}

// All that must be signed, and nothing else but the signature.
std::vector<std::string> Client::signed_headers(Action action,
                                                const std::string& body,
                                                const Site& site,
                                                ServiceTime signed_at) {
  const sigv4::Credentials& keys = site.keys->keys;
  const std::string target =
      std::string("DynamoDB_20120810.") + name_of(action);
  const std::string payload_hash = sigv4::sha256_hex(body);
  const sigv4::Request request = {"POST",
                                  "/",
                                  "",
                                  {{"Content-Type", kContentType},
                                   {"Host", site.authority},
                                   {"X-Amz-Target", target}},
                                  payload_hash};
  const sigv4::Signed signature = sigv4::sign(
      request, keys, {site.region, "dynamodb"},
      std::chrono::duration_cast<std::chrono::seconds>(signed_at).count(), {},
      signing_keys_);
  std::vector<std::string> headers = {
      "Host: " + site.authority,
      "Content-Type: " + std::string(kContentType),
      "X-Amz-Target: " + target,
      "X-Amz-Date: " + signature.amz_date,
      "Authorization: " + signature.authorization,
  };
  if (!keys.session_token.empty()) {
    headers.push_back("X-Amz-Security-Token: " + keys.session_token.str());
  }
  return headers;
}

Answer Client::finish(std::unique_ptr<Pending> pending, Transport why) {
  if (!pending->exchange_) {
    Answer answer;
    answer.action = pending->action_;
    answer.fault = pending->fault_;
    answer.message = pending->problem_;
    answer.option = pending->option_;
    answer.sent_at = answer.received_at = BootClock::now();
    tell(answer);
    return answer;
  }
  pending->exchange_->end(why);
  const HttpAnswer http = pending->exchange_->take_answer();
  pool_.give_back(std::move(pending->exchange_));
  Answer answer = read_answer(pending->action_, http, pending->signed_at_);
  count(*pending, http, answer);
  const auto date =
      answer.fault == Fault::bad_answer ? std::nullopt : date_of(http);
  if (date || answered(answer.fault)) hear(http, date);
  if (!answered(answer.fault)) {
    const sigv4::Credentials& keys = pending->keys_->keys;
    for (std::string* text :
         {&answer.code, &answer.message, &answer.request_id}) {
      *text = sigv4::shown(*text, {keys.secret_access_key, keys.session_token,
                                   pending->signature_});
    }
    answer.keys_from = pending->keys_->source;
    if (answer.fault == Fault::expired_keys || is_unknown_key(answer)) {
      answer.other_keys = keys_.refused(pending->keys_);
    }
    tell(answer);
  }
  return answer;
}

void Client::count(const Pending& pending, const HttpAnswer& http,
                   const Answer& answer) {
  if (!http.sent) return;
  const std::lock_guard guard(mutex_);
  ++counts_.sent[static_cast<std::size_t>(pending.action_)];
  counts_.bytes_sent += http.bytes_sent;
  counts_.bytes_received += http.bytes_received;
  if (answer.fault == Fault::throttled) {
    ++counts_.throttled;
  } else if (!answered(answer.fault)) {
    ++counts_.failed;
  } else if (is_read(pending.action_)) {
    counts_.read_units += units(http.body.size(), kReadUnitBytes) *
                          (pending.consistent_ ? 1 : 0.5);
  } else {
    counts_.write_units +=
        units(std::max(pending.body_size_, http.body.size()), kWriteUnitBytes) *
        writes(pending.action_);
  }
}

// Passing faults are tried again, and told by who has no more patience; what
// was only asked, and how things are already, is for who asked to tell.
void Client::tell(const Answer& answer) const {
  if (!options_.log) return;
  const bool passing = is_passing(answer.fault) || answer.other_keys ||
                       answer.fault == Fault::cancelled || is_news(answer);
  std::string text = std::string(name_of(answer.action)) + " at " + endpoint() +
                     ": " + name_of(answer.fault);
  if (!answer.message.empty()) text += ": " + answer.message;
  if (!answer.request_id.empty())
    text += " (request " + answer.request_id + ")";
  sigv4::say(options_.log,
             passing ? sigv4::LogLevel::debug : sigv4::LogLevel::warning, text);
}

void Client::hear(const HttpAnswer& http, std::optional<ServiceTime> date) {
  bool tell;
  {
    const std::lock_guard guard(mutex_);
    const int before = clock_.contradictions();
    clock_.hear(http.sent_at, http.received_at, date);
    if (clock_.contradictions() == before) return;
    tell = http.received_at >= tell_contradictions_from_;
    if (tell) {
      tell_contradictions_from_ = http.received_at + std::chrono::minutes(1);
    }
  }
  if (contradicted_) contradicted_();
  if (!tell) return;
  sigv4::say(options_.log, sigv4::LogLevel::warning,
             "DynamoDB's clock is not where it should be by this machine's: "
             "one of them was stopped or set (told once a minute)");
}

Answer Client::call(Action action, std::string body, BootTime deadline,
                    sigv4::Waker& waker) {
  await_keys(deadline, &waker);
  auto pending = begin(action, std::move(body));
  sigv4::Exchange* exchange = pending->exchange();
  if (pending->under_way()) sigv4::drive(&exchange, 1, deadline, &waker);
  const bool late = BootClock::now() >= deadline;
  return finish(std::move(pending),
                late ? Transport::timed_out : Transport::cancelled);
}

Counts Client::counts() const {
  const std::lock_guard guard(mutex_);
  return counts_;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
