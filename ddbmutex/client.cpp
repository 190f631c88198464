#include "client.hpp"

#include <cassert>
#include <chrono>
#include <cstddef>
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

// Of a request's headers, more than is always the same.
constexpr std::size_t kUsualBytes = 512;

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

Answer& Client::Pending::no_answer(Fault why) {
  answer_ = std::make_unique<Answer>();
  answer_->action = action_;
  answer_->fault = why;
  return *answer_;
}

// If so, it has come to that.
bool Client::lacks_keys(Pending& pending,
                        const sigv4::Keys::Current& current) const {
  const sigv4::KeyOutcome& keys = *current.outcome;
  using State = sigv4::KeyOutcome::State;
  if (keys.state == State::found) return false;
  const bool passing = current.on_their_way || keys.state == State::failed;
  Answer& answer = pending.no_answer(passing             ? Fault::keys_awaited
                                     : keys.lacks_region ? Fault::no_target
                                                         : Fault::no_keys);
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
  pending->action_ = action;
  const sigv4::Keys::Current current = keys_.now();
  if (lacks_keys(*pending, current)) return pending;
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
    Answer& answer = pending->no_answer(Fault::no_target);
    answer.option = site.option;
    answer.message = site.error;
    return pending;
  }
  std::string headers = sign(*pending, body);
  pending->exchange_ = pool_.take();
  pending->exchange_->start(site.url, std::move(headers), std::move(body));
  return pending;
}

// All headers, signed: as they are always the same, they are sent as step 1 of
// the signature has them, by name, in lower case.
std::string Client::sign(Pending& pending, std::string_view body) {
  const Site& site = *pending.site_;
  const sigv4::Credentials& keys = site.keys->keys;
  const std::string_view token = keys.session_token;
  // As a line of its own.
  const std::string_view names =
      token.empty() ? "\ncontent-type;host;x-amz-date;x-amz-target\n"
                    : "\ncontent-type;host;x-amz-date;"
                      "x-amz-security-token;x-amz-target\n";
  char its_date[sigv4::kAmzDateBytes];
  sigv4::write_amz_date(
      std::chrono::duration_cast<std::chrono::seconds>(pending.signed_at_)
          .count(),
      its_date);
  const std::string_view date(its_date, sizeof its_date);
  const std::string scope = sigv4::scope_text(date, {site.region, "dynamodb"});
  const sigv4::SigningKey key =
      signing_keys_.get(keys.secret_access_key, scope);
  // Room for all, and from here on no other memory is needed: text that grows,
  // and one that a failure throws away, leaves a token behind.
  const std::size_t room = kUsualBytes + site.authority.size() + token.size() +
                           keys.access_key_id.size() + site.region.size();
  sigv4::Text headers(room);
  headers += "content-type:application/x-amz-json-1.0\nhost:";
  headers += site.authority;
  headers += "\nx-amz-date:";
  headers += date;
  if (!token.empty()) headers += "\nx-amz-security-token:";
  headers += token;
  headers += "\nx-amz-target:DynamoDB_20120810.";
  headers += name_of(pending.action_);
  headers += '\n';
  pending.signature_ =
      sigv4::signature(key, date, scope,
                       sigv4::sha256_of({"POST\n/\n\n",
                                         {&headers[0], headers.size()},
                                         names,
                                         sigv4::sha256_of({body})}));
  headers += "authorization:AWS4-HMAC-SHA256 Credential=";
  headers += keys.access_key_id;
  headers += '/';
  headers += scope;
  headers += ", SignedHeaders=";
  headers += names.substr(1, names.size() - 2);
  headers += ", Signature=";
  headers += pending.signature_;
  headers += '\n';
  assert(headers.size() <= room);
  return headers.take();
}

Answer Client::finish(std::unique_ptr<Pending> pending, Transport why) {
  return pending->exchange_ ? heard(*pending, why) : unsent(*pending);
}

Answer Client::unsent(Pending& pending) const {
  Answer answer = std::move(*pending.answer_);
  answer.sent_at = answer.received_at = BootClock::now();
  tell(answer);
  return answer;
}

Answer Client::heard(Pending& pending, Transport why) {
  sigv4::Exchange& exchange = *pending.exchange_;
  exchange.end(why);
  Answer answer = read_answer(pending.action_, std::move(exchange.answer()),
                              pending.signed_at_, pending.reader_);
  // Its texts may be gone by now; its counts are not.
  hear(answer, exchange.answer());
  pool_.give_back(std::move(pending.exchange_));
  if (!answered(answer.fault)) failed(pending, answer);
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

void Client::hear(const Answer& answer, const HttpAnswer& http) {
  bool tell;
  {
    const std::lock_guard guard(mutex_);
    if (answer.sent) {
      ++counts_.sent[static_cast<std::size_t>(answer.action)];
      counts_.bytes_sent += http.bytes_sent;
      counts_.bytes_received += http.bytes_received;
      if (answer.fault == Fault::throttled) {
        ++counts_.throttled;
      } else if (!answered(answer.fault)) {
        ++counts_.failed;
      }
    }
    const bool dated = answer.date && answer.fault != Fault::bad_answer;
    if (!dated && !answered(answer.fault)) return;
    const int before = clock_.contradictions();
    clock_.hear(answer.sent_at, answer.received_at, answer.date);
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
