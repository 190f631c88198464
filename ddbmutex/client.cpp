#include "client.hpp"

#include <chrono>
#include <iterator>
#include <string_view>
#include <utility>

#include "../sigv4/text.hpp"
#include "../sigv4/utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::HttpAnswer;
using sigv4::Transport;

namespace {

constexpr std::string_view kContentType = "application/x-amz-json-1.0";
constexpr std::string_view kService = "DynamoDB_20120810.";

bool is_about_keys(Fault fault) {
  return fault == Fault::bad_keys || fault == Fault::expired_keys ||
         fault == Fault::access_denied;
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
             answer.fault == Fault::unknown_action;
    default:
      return false;
  }
}

}  // namespace

Client::Client(const ClientOptions& options)
    : options_(options),
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
  const Target& target = options_.target;
  if (target.region.empty()) {
    settle(*site, complete(target, {keys->region, "the region found"}));
  } else {
    settle(*site, target);
  }
  const std::lock_guard guard(mutex_);
  return site_ = std::move(site);
}

void Client::settle(Site& site, const Target& target) const {
  site.error = target.error;
  site.option = target.option;
  site.region = target.region;
  if (!site.error.empty()) return;
  const std::string owner = account_of_table(options_.table, target.region);
  AccountUrl url =
      account_url(target, owner.empty() ? site.keys->keys.account_id : owner);
  site.error = std::move(url.error);
  if (auto parts = sigv4::parse_url(url.url)) {
    site.url = sigv4::join({parts->scheme, "://", parts->authority, "/"});
    site.authority = std::move(parts->authority);
  }
  site.endpoint = std::move(url.url);
}

// If so, says it in `answer`.
bool Client::lacks_keys(Answer& answer,
                        const sigv4::Keys::Current& current) const {
  const sigv4::KeyOutcome& keys = *current.outcome;
  using State = sigv4::KeyOutcome::State;
  if (keys.state == State::found) return false;
  const bool passing = current.on_their_way || keys.state == State::failed;
  answer.fault = passing             ? Fault::keys_awaited
                 : keys.lacks_region ? Fault::no_target
                                     : Fault::no_keys;
  answer.message = keys.reason;
  if (keys.lacks_region) {
    answer.option = "region";
    answer.message = sigv4::join(
        {"no region: ", options_.target.region_sources, "; ", keys.reason});
  }
  return true;
}

std::unique_ptr<Client::Pending> Client::begin(Action action, std::string body,
                                               Reader reader) {
  auto pending = std::make_unique<Pending>();
  pending->reader_ = reader;
  pending->answer_.action = action;
  const sigv4::Keys::Current current = keys_.now();
  if (lacks_keys(pending->answer_, current)) return pending;
  {
    const std::lock_guard guard(mutex_);
    pending->site_ = site_;
    pending->signed_at_ = time_by(clock_);
  }
  if (pending->site_ == nullptr || pending->site_->keys != current.outcome) {
    pending->site_ = make_site(current.outcome);
  }
  const Site& site = *pending->site_;
  if (!site.error.empty()) {
    pending->answer_.fault = Fault::no_target;
    pending->answer_.option = site.option;
    pending->answer_.message = site.error;
    return pending;
  }
  std::string headers = sign(*pending, body);
  pending->exchange_ = pool_.take();
  pending->exchange_->start(site.url, std::move(headers), std::move(body));
  return pending;
}

// All headers, signed.  As ours are always the same, step 1 of the signature is
// written as sigv4::sign() would make it: by name, in lower case.
std::string Client::sign(Pending& pending, std::string_view body) {
  const Site& site = *pending.site_;
  const sigv4::Credentials& keys = site.keys->keys;
  const std::string_view token = keys.session_token;
  const std::string_view action = name_of(pending.answer_.action);
  const std::string_view names =
      token.empty()
          ? "content-type;host;x-amz-date;x-amz-target"
          : "content-type;host;x-amz-date;x-amz-security-token;x-amz-target";
  const std::string date = sigv4::amz_date(
      std::chrono::duration_cast<std::chrono::seconds>(pending.signed_at_)
          .count());
  const std::string scope = sigv4::scope_text(date, {site.region, "dynamodb"});
  const sigv4::Hex canonical =
      sigv4::sha256_of({"POST\n/\n\ncontent-type:", kContentType,
                        "\nhost:", site.authority, "\nx-amz-date:", date,
                        token.empty() ? "" : "\nx-amz-security-token:", token,
                        "\nx-amz-target:", kService, action, "\n\n", names,
                        "\n", sigv4::sha256_of({body})});
  pending.signature_ = sigv4::signature(
      signing_keys_.get(keys.secret_access_key, scope), date, scope, canonical);
  return sigv4::join({"Host: ",
                      site.authority,
                      "\nContent-Type: ",
                      kContentType,
                      "\nX-Amz-Target: ",
                      kService,
                      action,
                      "\nX-Amz-Date: ",
                      date,
                      "\nAuthorization: AWS4-HMAC-SHA256 Credential=",
                      keys.access_key_id,
                      "/",
                      scope,
                      ", SignedHeaders=",
                      names,
                      ", Signature=",
                      pending.signature_,
                      token.empty() ? "\n" : "\nX-Amz-Security-Token: ",
                      token,
                      token.empty() ? "" : "\n"});
}

Answer Client::finish(std::unique_ptr<Pending> pending, Transport why) {
  if (!pending->exchange_) {
    Answer answer = std::move(pending->answer_);
    answer.sent_at = answer.received_at = BootClock::now();
    tell(answer);
    return answer;
  }
  pending->exchange_->end(why);
  HttpAnswer http = pending->exchange_->take_answer();
  pool_.give_back(std::move(pending->exchange_));
  const auto date = date_of(http);
  const auto bytes = std::make_pair(http.bytes_sent, http.bytes_received);
  Answer answer = read_answer(pending->answer_.action, std::move(http),
                              pending->signed_at_, pending->reader_);
  if (answer.sent) {
    const std::lock_guard guard(mutex_);
    ++counts_.sent[static_cast<std::size_t>(answer.action)];
    counts_.bytes_sent += bytes.first;
    counts_.bytes_received += bytes.second;
    if (answer.fault == Fault::throttled) {
      ++counts_.throttled;
    } else if (!answered(answer.fault)) {
      ++counts_.failed;
    }
  }
  const bool dated = date && answer.fault != Fault::bad_answer;
  if (dated || answered(answer.fault)) hear(answer, date);
  if (!answered(answer.fault)) failed(*pending, answer);
  return answer;
}

// What a service says may repeat what it was sent.
void Client::failed(const Pending& pending, Answer& answer) {
  const sigv4::KeyOutcome& keys = *pending.site_->keys;
  const sigv4::Secrets secrets = {keys.keys.secret_access_key,
                                  keys.keys.session_token, pending.signature_};
  answer.message = sigv4::shown(answer.message, secrets);
  answer.request_id = sigv4::shown(answer.request_id, secrets);
  if (is_about_keys(answer.fault)) {
    sigv4::append(answer.message, {answer.message.empty() ? "" : " ",
                                   "(keys from ", keys.source, ")"});
  }
  if (answer.other_keys) {
    answer.other_keys = keys_.refused(pending.site_->keys);
  }
  tell(answer);
}

// Passing faults are tried again, and told by who has no more patience; what
// was only asked, and how things are already, is for who asked to tell.
void Client::tell(const Answer& answer) const {
  if (!options_.log) return;
  const bool passing = is_passing(answer.fault) || answer.other_keys ||
                       answer.fault == Fault::cancelled || is_news(answer);
  const std::string_view message = answer.message, id = answer.request_id;
  const std::string text =
      sigv4::join({name_of(answer.action), " at ", endpoint(), ": ",
                   name_of(answer.fault), message.empty() ? "" : ": ", message,
                   id.empty() ? "" : " (request ", id, id.empty() ? "" : ")"});
  sigv4::say(options_.log,
             passing ? sigv4::LogLevel::debug : sigv4::LogLevel::warning, text);
}

void Client::hear(const Answer& answer, std::optional<ServiceTime> date) {
  bool tell;
  {
    const std::lock_guard guard(mutex_);
    const int before = clock_.contradictions();
    clock_.hear(answer.sent_at, answer.received_at, date);
    if (clock_.contradictions() == before) return;
    tell = answer.received_at >= tell_contradictions_from_;
    if (tell) {
      tell_contradictions_from_ = answer.received_at + std::chrono::minutes(1);
    }
  }
  if (contradicted_) contradicted_();
  if (!tell) return;
  sigv4::say(options_.log, sigv4::LogLevel::warning,
             "DynamoDB's clock is not where it should be by this machine's: "
             "one of them was stopped or set (told once a minute)");
}

Answer Client::call(Action action, std::string body, BootTime deadline,
                    sigv4::Waker& waker, Reader reader) {
  await_keys(deadline, &waker);
  auto pending = begin(action, std::move(body), reader);
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
