// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A call goes through prepare(), which finds keys and the endpoint, begin(),
// which signs and sends, and finish(), which reads the answer and learns from
// it: DynamoDB's clock, counts, refused keys, and whether the table's key is
// right.
#include "client.hpp"

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string_view>
#include <utility>

#include "../../sigv4/memory.hpp"
#include "../../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Transport;

namespace {

// Failures that last for less than this are only logged one by one, as debug.
constexpr std::chrono::seconds kQuietFor{2};

bool is_about_keys(Fault fault) {
  return fault == Fault::bad_keys || fault == Fault::expired_keys ||
         fault == Fault::access_denied;
}

// Faults that are expected while a table is created or deleted.
bool is_expected(const Answer& answer) {
  switch (answer.action) {
    case Action::describe_table:
    case Action::delete_table:
      return answer.fault == Fault::no_table ||
             answer.fault == Fault::table_in_use;
    case Action::create_table:
      return answer.fault == Fault::table_in_use;
    case Action::update_time_to_live:
      return answer.fault == Fault::table_in_use;
    default:
      return false;
  }
}

}  // namespace

Client::Client(const ClientOptions& options)
    : options_(options),
      pool_({options_.target.ca_file, true, options_.max_answer_bytes}),
      keys_(
          options_.credentials,
          [this]() -> std::int64_t {
            return signing_time(clock(), BootClock::now()).count();
          },
          options_.log) {}

Client::~Client() = default;

ServiceTime Client::calendar() {
  return sigv4::wall_clock().time_since_epoch();
}

ServiceClock Client::clock() const {
  const std::lock_guard guard(mutex_);
  return clock_;
}

std::chrono::seconds Client::signing_time(const ServiceClock& clock,
                                          BootTime now) {
  return std::chrono::duration_cast<std::chrono::seconds>(
      clock.known() ? clock.middle(now) : calendar());
}

std::string Client::endpoint() const {
  const std::lock_guard guard(mutex_);
  return (context_ != nullptr ? context_->target : options_.target).endpoint;
}

// Called when the keys have changed, and once a day.
Client::ContextPtr Client::make_context(const sigv4::Keys::OutcomePtr& keys,
                                        std::string_view amz_date) {
  auto context = std::make_shared<SigningContext>(keys, options_.target);
  Target& target = context->target;
  if (target.region.empty()) {
    complete(target, {keys->region, "the region found"});
  }
  if (target.error.empty()) {
    const sigv4::Credentials& own = keys->keys;
    context->key = sigv4::SigningKey(
        own.secret_access_key,
        sigv4::scope_text(amz_date, {target.region, "dynamodb"}));
    use_account(target, options_.table, own.account_id);
  }
  context->url = sigv4::normal_url(target.endpoint);
  context->parts = sigv4::parts_of(context->url);
  const std::lock_guard guard(mutex_);
  return context_ = std::move(context);
}

// Sets the answer, so that begin() sends nothing.
Answer& Client::Pending::answer_unsent(Fault fault) {
  answer_ = std::make_unique<Answer>();
  answer_->fault = fault;
  return *answer_;
}

// If there are no keys, also sets the answer.
bool Client::lacks_keys(Pending& pending,
                        const sigv4::Keys::Current& current) const {
  const sigv4::KeyOutcome& keys = *current.outcome;
  using State = sigv4::KeyOutcome::State;
  if (keys.state == State::found) return false;
  const bool transient = current.being_fetched || keys.state == State::failed;
  const bool lacks_region = keys.lacks_region;
  Answer& answer = pending.answer_unsent(transient      ? Fault::keys_awaited
                                         : lacks_region ? Fault::no_target
                                                        : Fault::no_keys);
  answer.message = keys.reason;
  if (lacks_region) {
    answer.option = "region";
    answer.message = sigv4::join(
        {"no region: ", options_.target.region_sources, "; ", keys.reason});
  }
  return true;
}

std::unique_ptr<Client::Pending> Client::prepare(BootTime now) {
  auto pending = std::make_unique<Pending>(pool_);
  ContextPtr& context = pending->context_;
  {
    const std::lock_guard guard(mutex_);
    context = context_;
    pending->clock_ = clock_;
  }
  // Keys that replace the context's; null if the context's are still current.
  sigv4::Keys::OutcomePtr newer;
  if (context == nullptr || !keys_.are_current(*context->keys, now)) {
    sigv4::Keys::Current current = keys_.now(now);
    if (lacks_keys(*pending, current)) return pending;
    newer = std::move(current.outcome);
  }
  pending->signed_at_ = signing_time(pending->clock_, now);
  pending->amz_date_ = sigv4::amz_date(pending->signed_at_.count());
  const std::string_view date = pending->amz_date_;
  const bool keys_changed =
      newer != nullptr && (context == nullptr || context->keys != newer);
  if (keys_changed ||
      !sigv4::begins_with(context->key.scope(), date.substr(0, 8))) {
    context = make_context(keys_changed ? newer : context->keys, date);
  }
  const Target& target = context->target;
  if (!target.error.empty()) {
    Answer& answer = pending->answer_unsent(Fault::no_target);
    answer.option = target.option;
    answer.message = target.error;
  }
  return pending;
}

void Client::begin(Pending& pending, Action action, BootTime now, Reader reader,
                   const Wanted& wanted) {
  pending.action_ = action;
  pending.reader_ = reader;
  pending.wanted_ = wanted;
  if (pending.answer_ != nullptr) {
    pending.answer_->action = action;
    pending.body().wipe();
    return;
  }
  const SigningContext& context = *pending.context_;
  sigv4::Exchange& exchange = *pending.exchange_;
  const sigv4::Credentials& keys = context.keys->keys;
  const std::string target =
      sigv4::join({"DynamoDB_20120810.", name_of(action)});
  const sigv4::HexDigest hash(sigv4::sha256(exchange.body()));
  const sigv4::Request request = {
      "POST",
      context.parts.path,
      {{"content-type", "application/x-amz-json-1.0"},
       {"host", context.parts.authority},
       {"x-amz-target", target}},
      hash};
  pending.signature_ =
      sigv4::sign(request, keys, context.key, std::move(pending.amz_date_));
  sigv4::append_headers(exchange.headers(), request, keys, pending.signature_);
  exchange.start(context.url, now);
}

Answer Client::finish(std::unique_ptr<Pending> pending, Transport why) {
  const bool begun = pending->answer_ == nullptr;
  sigv4::Exchange& exchange = *pending->exchange_;
  exchange.end(why);
  Answer answer;
  if (!begun) {
    answer = std::move(*pending->answer_);
    answer.sent_at = answer.received_at = BootClock::now();
    sigv4::try_with_memory([&] { log_fault(answer); });
    return answer;
  }
  const bool read = sigv4::try_with_memory([&] {
    answer =
        read_answer(pending->action_, std::move(exchange.answer()),
                    pending->signed_at_, pending->reader_, pending->wanted_);
  });
  if (!read) {
    answer = unread_answer(pending->action_, exchange.answer());
    answer.fault = Fault::no_memory;
  }
  count_and_learn_time(answer);
  // Best effort: without memory, less is logged.
  sigv4::try_with_memory([&] {
    if (!answered(answer.fault)) handle_fault(*pending, answer);
  });
  sigv4::try_with_memory([&] { learn_table_key(answer); });
  return answer;
}

void Client::set_table_key(TableKey key, std::string&& why) {
  const std::lock_guard guard(mutex_);
  table_key_ = key;
  table_key_is_described_ = true;
  table_key_since_ = BootClock::now();
  table_key_problem_ = std::move(why);
}

void Client::answer_if_table_key_is_wrong(Pending& pending) {
  if (table_key_ != TableKey::wrong) return;  // The usual case needs no mutex.
  const std::lock_guard guard(mutex_);
  if (table_key_ != TableKey::wrong) return;
  pending.answer_unsent(Fault::wrong_key).message = table_key_problem_;
}

// Only calls for one item are certainly about this client's table.  A table
// that is missing, or refuses a renewal or a release, may be created again with
// another key, so the next take must look first.
void Client::learn_table_key(const Answer& answer) {
  if (!is_of_an_item(answer.action)) return;
  {
    const std::lock_guard guard(mutex_);
    if (answer.sent_at < table_key_since_) return;  // Says nothing new.
  }
  const bool refused = answer.fault == Fault::wrong_key && answer.sent;
  if (refused && answer.action == Action::get_item) {
    set_table_key(TableKey::wrong, std::string(answer.message));
    table_key_is_described_ = false;
  } else if (refused || answer.fault == Fault::no_table) {
    set_table_key(TableKey::unknown);
  } else if (answer.action == Action::get_item && answer.fault == Fault::none &&
             table_key_ == TableKey::unknown) {
    set_table_key(TableKey::right);
  }
}

// A service's message may repeat the request, so secrets are hidden in it.
void Client::handle_fault(const Pending& pending, Answer& answer) {
  const sigv4::KeyOutcome& keys = *pending.context_->keys;
  const sigv4::Secrets secrets = {keys.keys.secret_access_key,
                                  keys.keys.session_token,
                                  pending.signature_.signature()};
  for (std::string* text : {&answer.message, &answer.request_id}) {
    *text = sigv4::redacted(*text, secrets);
  }
  if (is_about_keys(answer.fault)) {
    sigv4::append(answer.message, {answer.message.empty() ? "" : " ",
                                   "(keys from ", keys.source, ")"});
  }
  if (answer.other_keys) {
    answer.other_keys = keys_.replace_refused(pending.context_->keys);
  }
  log_fault(answer);
}

// The command `ddbmutex` shows these lines to its user.
void Client::warn_of_failing(const Answer& last, BootTime since, BootTime next,
                             BootTime until, bool& warned) const {
  if (!options_.log || warned) return;
  if (next - since < kQuietFor || until <= next) return;
  warned = true;
  const BootTime now = BootClock::now();
  const auto text_of = [](std::chrono::nanoseconds time) {
    return sigv4::decimal(
        std::chrono::ceil<std::chrono::seconds>(time).count());
  };
  sigv4::try_with_memory([&] {
    const std::string more =
        until == BootTime::max()
            ? "tried on"
            : sigv4::join({"tried for ", text_of(until - now), " s more"});
    sigv4::say(options_.log, sigv4::LogLevel::warning,
               sigv4::join({"failing for ", text_of(now - since), " s, ", more,
                            ": ", described(last)}));
  });
}

// "GetItem at https://x: unreachable: Could not resolve host: x"
std::string Client::described(const Answer& answer) const {
  return sigv4::join({name_of(answer.action), " at ", endpoint(), ": ",
                      name_of(answer.fault),
                      sigv4::if_any(": ", answer.message),
                      sigv4::if_any(" (request ", answer.request_id, ")")});
}

// Warns only of faults that nobody else reports or repairs: transient ones are
// retried, and reported by the caller that gives up in the end.
void Client::log_fault(const Answer& answer) const {
  if (!options_.log) return;
  const bool minor = is_transient(answer.fault) || answer.other_keys ||
                     answer.fault == Fault::cancelled || is_expected(answer);
  sigv4::say(options_.log,
             minor ? sigv4::LogLevel::debug : sigv4::LogLevel::warning,
             described(answer));
}

// Counts the request, and learns DynamoDB's time from its answer.
void Client::count_and_learn_time(const Answer& answer) {
  bool should_log = false;
  {
    const std::lock_guard guard(mutex_);
    count(answer);
    const bool dated = answer.date && answer.fault != Fault::bad_answer;
    if (!dated && !answered(answer.fault)) return;
    const int before = clock_.contradictions();
    clock_.receive(answer.sent_at, answer.received_at, answer.date);
    if (clock_.contradictions() == before) return;
    should_log = answer.received_at >= log_contradictions_from_;
    if (should_log) {
      log_contradictions_from_ = answer.received_at + std::chrono::minutes(1);
    }
  }
  if (on_contradiction_) on_contradiction_();
  if (!should_log) return;
  sigv4::try_with_memory([&] {
    sigv4::say(options_.log, sigv4::LogLevel::warning,
               "DynamoDB's clock and this machine's do not agree any more: one "
               "of them was stopped or set (logged once a minute)");
  });
}

// REQUIRES: mutex_ is held.
void Client::count(const Answer& answer) {
  if (!answer.sent) return;
  ++counts_.sent[static_cast<std::size_t>(answer.action)];
  if (answer.fault == Fault::throttled) {
    ++counts_.throttled;
  } else if (!answered(answer.fault)) {
    ++counts_.failed;
  }
}

std::unique_ptr<Client::Pending> Client::start(const PlainRequest& request,
                                               BootTime now) {
  auto pending = prepare(now);
  pending->body() += request.body;
  const Action action = request.action;
  const bool of_this_table = is_of_an_item(action) || action == Action::scan ||
                             action == Action::query;
  if (of_this_table) answer_if_table_key_is_wrong(*pending);
  begin(*pending, action, now, request.reader, request.wanted);
  pending->exchange().send_by(request.deadline);
  return pending;
}

Counts Client::counts() const {
  const std::lock_guard guard(mutex_);
  return counts_;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
