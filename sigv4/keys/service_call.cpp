// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Caller makes the attempts of one call, and judges the result of each.
#include "service_call.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "../backoff.hpp"
#include "../boot_clock.hpp"
#include "../endpoints.hpp"
#include "../error_code.hpp"
#include "../system.hpp"
#include "../text.hpp"
#include "../url.hpp"
#include "../utc.hpp"
#include "../waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using State = KeyOutcome::State;

namespace {

constexpr Backoff::Limits kServicePauses{milliseconds(100), milliseconds(3200)};
constexpr Backoff::Limits kThrottledServicePauses{milliseconds(1000),
                                                  milliseconds(32000)};
// This code is transient for the sources of keys only.
constexpr std::string_view kTransient = "IDPCommunicationError";
// This code is seldom transient.  But it is retried, because the identity
// provider may have been slow to answer.
constexpr std::string_view kDoubtful = "InvalidIdentityToken";

// The result of an attempt.  `transient`, `throttled` and `doubtful` attempts
// are repeated after a pause, `skewed` ones at once.
enum class Verdict { done, transient, throttled, skewed, doubtful, refused };

// When the service wrote the answer; nothing if it does not say, or if a cache
// answered.
std::optional<std::int64_t> date_of(const HttpAnswer& http) {
  if (http.header("Age").data() != nullptr) return std::nullopt;
  return parse_http_date(http.header("Date"));
}

// "AccessDenied: You may not (HTTP status 403, request 1-2-3)"
std::string reason_of(const Refusal& refusal, const std::string& status,
                      const Secrets& secrets) {
  if (refusal.code.empty()) return status;
  return join(
      {sigv4::redacted(refusal.code, secrets),
       if_any(": ", sigv4::redacted(refusal.message, secrets)), " (", status,
       if_any(", request ", sigv4::redacted(refusal.request_id, secrets)),
       ")"});
}

Verdict verdict_on(std::string_view code, int status) {
  const CodeMeaning meaning = meaning_of_code(code);
  if (meaning == CodeMeaning::throttled || status == 429) {
    return Verdict::throttled;
  }
  if (meaning == CodeMeaning::transient || status >= 500 || status == 408 ||
      code == kTransient) {
    return Verdict::transient;
  }
  return code == kDoubtful ? Verdict::doubtful : Verdict::refused;
}

class Caller {
 public:
  Caller(const ServiceCall& call, const Fetch& fetch, ReadAnswer read)
      : call_(call), fetch_(fetch), read_(read) {}

  KeyOutcome run();

 private:
  std::int64_t utc_now() const { return fetch_.now() + correction_; }
  void write_request(const std::string& url, std::int64_t utc, Exchange& to);
  Verdict attempt();
  Verdict judge_answer(const HttpAnswer& http, std::int64_t signed_for);
  Verdict judge_refusal(const HttpAnswer& http, std::int64_t signed_for);
  Verdict judge_transport(const HttpAnswer& http, BootTime started);
  bool pause_after(Verdict verdict);

  const ServiceCall& call_;
  const Fetch& fetch_;
  const ReadAnswer read_;
  KeyOutcome outcome_;
  std::int64_t correction_ = 0;  // Of the fetch's clock, in seconds.
  bool corrected_ = false;       // The clock is corrected only once.
  int attempts_ = 0;
  Backoff backoff_;
};

KeyOutcome Caller::run() {
  fetch_.say(
      join({call_.article, call_.name, " at ", call_.host, " is being asked"}));
  Verdict verdict;
  do {
    verdict = attempt();
  } while (verdict == Verdict::skewed || pause_after(verdict));
  if (verdict == Verdict::done) return std::move(outcome_);
  outcome_.state =
      verdict == Verdict::transient || verdict == Verdict::throttled
          ? State::failed
          : State::broken;
  const std::string often =
      attempts_ < 2 ? "" : join({", ", Digits(attempts_), " attempts"});
  outcome_.reason = join({if_any("", call_.place, ": "), call_.name, " at ",
                          call_.host, often, ": ", outcome_.reason});
  return std::move(outcome_);
}

// Each attempt has its own connection.
Verdict Caller::attempt() {
  const BootTime started = BootClock::now();
  const BootTime deadline = std::min(fetch_.deadline, started + call_.time);
  const std::int64_t signed_for = utc_now();
  const std::string url = url_at(call_.host, call_.path);
  Exchange one(call_.http);
  write_request(url, signed_for, one);
  one.start(url, started, call_.method);
  while (one.under_way() && !fetch_.stop.woken() &&
         BootClock::now() < deadline) {
    sigv4::drive(one, deadline, &fetch_.stop);
  }
  one.end(fetch_.stop.woken() ? Transport::cancelled : Transport::timed_out);
  HttpAnswer& http = one.answer();
  outcome_.absent = false;
  const Verdict verdict = http.transport == Transport::complete
                              ? judge_answer(http, signed_for)
                              : judge_transport(http, started);
  outcome_.status = http.status;
  wipe(http.body);
  if (verdict != Verdict::skewed) ++attempts_;
  return verdict;
}

void Caller::write_request(const std::string& url, std::int64_t utc,
                           Exchange& to) {
  to.headers() += call_.headers;
  if (call_.sign) call_.sign(url, utc, to.headers());
  to.body() += call_.body;
}

Verdict Caller::judge_answer(const HttpAnswer& http, std::int64_t signed_for) {
  if (http.status != 200) return judge_refusal(http, signed_for);
  outcome_ = read_(http, date_of(http).value_or(utc_now()));
  return outcome_.state == State::found ? Verdict::done : Verdict::transient;
}

Verdict Caller::judge_refusal(const HttpAnswer& http, std::int64_t signed_for) {
  const std::string status = join({"HTTP status ", Digits(http.status)});
  outcome_.reason = status;
  if (http.status < 300) return Verdict::transient;
  if (http.status < 400) {
    outcome_.reason += ", a redirect, which is not followed";
    return Verdict::refused;
  }
  const Refusal refusal = read_refusal(http);
  outcome_.reason = reason_of(refusal, status, call_.secrets);
  const auto date = date_of(http);
  if (date && may_mean_skew(refusal.code) &&
      is_skewed(std::chrono::seconds(*date - signed_for))) {
    if (std::exchange(corrected_, true)) return Verdict::refused;
    correction_ = *date - fetch_.now();
    return Verdict::skewed;
  }
  return verdict_on(refusal.code, http.status);
}

Verdict Caller::judge_transport(const HttpAnswer& http, BootTime started) {
  const BootTime now = BootClock::now();
  outcome_.reason = http.error;
  switch (http.transport) {
    case Transport::cancelled:
      outcome_.reason = "given up, because nobody waits for it any more";
      break;
    case Transport::timed_out:
      outcome_.absent = now < fetch_.deadline;
      outcome_.reason =
          join({"no answer in ", Digits((now - started) / milliseconds(1)),
                " ms", http.sent ? call_.silence_hint : ""});
      break;
    case Transport::too_large:
      break;
    default:
      outcome_.absent = true;
  }
  return http.transport == Transport::bad_certificate ? Verdict::refused
                                                      : Verdict::transient;
}

// Returns whether to make another attempt, when it is time for it.
bool Caller::pause_after(Verdict verdict) {
  const bool retry = verdict == Verdict::transient ||
                     verdict == Verdict::throttled ||
                     verdict == Verdict::doubtful;
  if (!retry || attempts_ >= call_.attempts) return false;
  const Backoff::Limits& limits =
      verdict == Verdict::throttled ? kThrottledServicePauses : kServicePauses;
  const BootTime until =
      BootClock::now() + backoff_.next(limits, random_share());
  if (until >= fetch_.deadline) return false;
  sigv4::wait_until(until, &fetch_.stop);
  return !fetch_.stop.woken();
}

// The first of these members that is not empty.
std::string_view first_text(Value object,
                            std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const std::string_view text = object.text(name);
    if (!text.empty()) return text;
  }
  return {};
}

}  // namespace

ServiceCall::~ServiceCall() {
  wipe(headers);
  wipe(body);
}

KeyOutcome call_service(const ServiceCall& call, const Fetch& fetch,
                        ReadAnswer read) {
  return Caller(call, fetch, read).run();
}

Refusal read_refusal(const HttpAnswer& http) {
  const Document document = parse_json(http.body);
  const Value answer = document.root();
  // STS has an object for it, with the request id outside.
  const Value inner = answer["Error"];
  const Value error = inner.is_object() ? inner : answer;
  std::string_view code = bare_code(http.header("x-amzn-ErrorType"));
  if (code.empty()) {
    code = bare_code(first_text(error, {"__type", "code", "Code"}));
  }
  std::string_view request_id = http.header("x-amzn-RequestId");
  if (request_id.empty()) request_id = answer.text("RequestId");
  Refusal refusal;
  refusal.code = code;
  refusal.message = first_text(error, {"message", "Message"});
  refusal.request_id = request_id;
  return refusal;
}

std::string quoted_url(const std::string& url) {
  if (url.find('@') != url.npos) return {};
  const std::string_view shown = std::string_view(url).substr(0, url.find('?'));
  return shown.empty() ? "" : in_quotes(shown);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
