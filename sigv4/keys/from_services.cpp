#include "from_services.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "../backoff.hpp"
#include "../boot_clock.hpp"
#include "../error_code.hpp"
#include "../text.hpp"
#include "../url.hpp"
#include "../utc.hpp"
#include "../waiting.hpp"
#include "from_json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using State = KeyOutcome::State;

namespace {

constexpr Backoff::Limits kServicePauses{milliseconds(100), milliseconds(3200)};
constexpr Backoff::Limits kThrottledServicePauses{milliseconds(1000),
                                                  milliseconds(32000)};
// No answer that belongs here is near that.
constexpr std::size_t kMaxAnswerBytes = kMaxJsonBytes;
// Transient for the sources of keys alone.
constexpr char kTransient[] =
    "IDPCommunicationError SlowDownException AuthorizationPendingException";
// Will not pass as a rule, and yet is tried as often: it may come of an
// identity provider that was slow to answer.
constexpr std::string_view kDoubtful = "InvalidIdentityToken";
// What an attempt came to.
enum class Fate { done, passing, throttled, skewed, doubtful, final };

// The time of an answer; nothing if it has none, or comes from some cache.
std::optional<std::int64_t> date_of(const HttpAnswer& http) {
  if (http.header("Age").data() != nullptr) return std::nullopt;
  return parse_http_date(http.header("Date"));
}

std::int64_t boot_seconds() {
  return BootClock::now().time_since_epoch() / std::chrono::seconds(1);
}

class Calling {
 public:
  Calling(const ServiceCall& call, const Fetch& fetch, KeyOutcome& outcome)
      : call_(call),
        fetch_(fetch),
        outcome_(outcome),
        utc_offset_(fetch.now() - boot_seconds()) {}

  void run();

 private:
  std::int64_t utc_now() const { return boot_seconds() + utc_offset_; }
  void sign(Text& headers, const std::string& url, std::int64_t now) const;
  Fate attempt();
  Fate judge(const HttpAnswer& http, std::int64_t signed_for);
  Fate judge_refusal(const HttpAnswer& http, std::int64_t signed_for);
  Fate judge_transport(const HttpAnswer& http, BootTime started);
  bool pause(Fate fate);

  const ServiceCall& call_;
  const Fetch& fetch_;
  KeyOutcome& outcome_;
  std::int64_t utc_offset_;          // UTC less the boot clock, in seconds.
  std::int64_t refusal_offset_ = 0;  // By the last refusal's Date.
  bool corrected_ = false;
  int attempts_ = 0;
  Backoff backoff_;
};

void Calling::run() {
  fetch_.say(sigv4::format("%s%s at %s is being asked", call_.article,
                           call_.name, call_.host));
  Fate fate;
  do {
    fate = attempt();
  } while (pause(fate));
  if (fate == Fate::done) {
    outcome_.state = State::found;
    return;
  }
  const bool may_pass = fate == Fate::passing || fate == Fate::throttled;
  outcome_.state = may_pass ? State::failed : State::broken;
  const std::string often = attempts_ < 2 ? "" : decimal(attempts_);
  outcome_.reason =
      sigv4::format("%[%s: %]%s at %s%[, %s attempts%]: %s", call_.place,
                    call_.name, call_.host, often, outcome_.reason);
}

// Adds the headers that sign the form, if it is to be signed.
void Calling::sign(Text& headers, const std::string& url,
                   std::int64_t now) const {
  if (call_.signer == nullptr) return;
  const std::string normal = normal_url(url);
  const std::string date = amz_date(now);
  const std::string scope = scope_text(date, {call_.region, "sts"});
  const UrlParts parts = parts_of(normal);
  append_signed(headers,
                {parts.authority, kFormType, call_.body, {}, {}, parts.path},
                *call_.signer, date, scope,
                SigningKey(call_.signer->secret_access_key, scope));
}

// On a connection of its own.
Fate Calling::attempt() {
  ++attempts_;
  const BootTime started = BootClock::now();
  const BootTime deadline = std::min(fetch_.deadline, started + call_.time);
  const std::int64_t signed_for = utc_now();
  const std::string url = url_at(call_.host, call_.path);
  Exchange one(call_.http);
  Exchange* const all = &one;
  one.headers() += call_.headers;
  sign(one.headers(), url, signed_for);  // Makes room for a token of its own.
  if (call_.prove != nullptr) {
    call_.prove(call_.whose, url, signed_for, one.headers());
  }
  one.body() += call_.body;
  wipe_registers();  // The headers or the body may have a token in them.
  one.start(url, started, call_.method);
  while (one.under_way() && !fetch_.stop.woken() &&
         BootClock::now() < deadline) {
    sigv4::drive(&all, 1, deadline, &fetch_.stop);
  }
  one.end(fetch_.stop.woken() ? Transport::cancelled : Transport::timed_out);
  HttpAnswer& http = one.answer();
  outcome_.absent = false;
  const Fate fate = http.transport == Transport::complete
                        ? judge(http, signed_for)
                        : judge_transport(http, started);
  outcome_.status = http.status;
  sigv4::wipe(http.body);
  return fate;
}

Fate Calling::judge(const HttpAnswer& http, std::int64_t signed_for) {
  if (http.status != 200) return judge_refusal(http, signed_for);
  outcome_.reason.clear();
  call_.take(call_.whose, http, date_of(http).value_or(utc_now()), outcome_);
  return outcome_.reason.empty() ? Fate::done : Fate::passing;
}

Fate Calling::judge_refusal(const HttpAnswer& http, std::int64_t signed_for) {
  const std::string status = sigv4::format("HTTP status %s", http.status);
  outcome_.reason = status;
  if (http.status < 300) return Fate::passing;
  if (http.status < 400) {
    outcome_.reason += ", a redirect, which is not followed";
    return Fate::final;
  }
  const Refusal refusal = read_refusal(http);
  const std::string& code = refusal.code;
  if (!code.empty()) {
    // "AccessDenied: You may not (HTTP status 403, request 1-2-3)"
    outcome_.reason = sigv4::format(
        "%s%[: %s%] (%s%[, request %s%])", sigv4::shown(code, call_.secrets),
        sigv4::shown(refusal.message, call_.secrets), status,
        sigv4::shown(refusal.request_id, call_.secrets));
  }
  const auto date = date_of(http);
  const bool maybe_skewed = may_mean_skew(code) || call_.prove != nullptr;
  if (date && maybe_skewed &&
      is_skewed(std::chrono::seconds(*date - signed_for))) {
    refusal_offset_ = *date - boot_seconds();
    return Fate::skewed;
  }
  const CodeMeaning meaning = meaning_of_code(code);
  if (meaning == CodeMeaning::throttled || http.status == 429) {
    return Fate::throttled;
  }
  if (meaning == CodeMeaning::transient || http.status >= 500 ||
      http.status == 408 || sigv4::is_among(kTransient, code)) {
    return Fate::passing;
  }
  return code == kDoubtful ? Fate::doubtful : Fate::final;
}

Fate Calling::judge_transport(const HttpAnswer& http, BootTime started) {
  outcome_.reason = http.error;
  if (http.transport == Transport::cancelled) {
    outcome_.reason = "given up, because nobody waits for it any more";
    return Fate::passing;
  }
  if (http.transport == Transport::too_large) return Fate::passing;
  const BootTime now = BootClock::now();
  outcome_.absent = true;
  if (http.transport == Transport::timed_out) {
    outcome_.absent = now < fetch_.deadline;
    outcome_.reason =
        sigv4::format("no answer in %s ms", (now - started) / milliseconds(1));
  }
  return http.transport == Transport::bad_certificate ? Fate::final
                                                      : Fate::passing;
}

// Whether there is to be another attempt; if so, it is time for that then.
bool Calling::pause(Fate fate) {
  if (fate == Fate::skewed && !std::exchange(corrected_, true)) {
    utc_offset_ = refusal_offset_;  // The same once more, for its time.
    --attempts_;
    return true;
  }
  if (fate == Fate::done || fate == Fate::final || fate == Fate::skewed) {
    return false;
  }
  if (attempts_ >= call_.attempts) return false;
  const Backoff::Limits& limits =
      fate == Fate::throttled ? kThrottledServicePauses : kServicePauses;
  const BootTime until =
      BootClock::now() + backoff_.next(limits, random_share());
  if (until >= fetch_.deadline) return false;
  sigv4::wait_for(&fetch_.stop, nullptr, until);
  return !fetch_.stop.woken();
}

}  // namespace

ServiceCall::ServiceCall() { http.max_answer_bytes = kMaxAnswerBytes; }

ServiceCall::~ServiceCall() {
  sigv4::wipe(headers);
  sigv4::wipe(body);
}

KeyOutcome Services::ask(Service service, const Setting& where,
                         ServiceCall& call, const Fetch& fetch) const {
  ServiceEndpoint endpoint = endpoints[static_cast<std::size_t>(service)];
  if (where) {
    find_endpoint(service, where, endpoint);
  } else {
    endpoint.error = "no region is known";
  }
  if (!endpoint.error.empty()) {
    return broken_keys("%[%s: %]%s", call.place, endpoint.error);
  }
  call.host = endpoint.endpoint;
  call.region = endpoint.region;
  call.http.ca_file = ca_file;
  return call_service(call, fetch);
}

KeyOutcome call_service(const ServiceCall& call, const Fetch& fetch) {
  KeyOutcome outcome;
  Calling(call, fetch, outcome).run();
  return outcome;
}

Refusal::~Refusal() {
  for (std::string* text : {&code, &message, &request_id}) sigv4::wipe(*text);
}

Refusal read_refusal(const HttpAnswer& http) {
  const Document document = parse_json(http.body);
  const Value answer = document.root();
  // STS has an object for it, outside of which it puts the request id.
  const Value inner = answer["Error"];
  const Value error = inner.is_object() ? inner : answer;
  const auto text_of = [](Value object,
                          std::initializer_list<const char*> names) {
    std::string_view text;
    for (const char* name : names) {
      if (text.empty()) text = object.text(name);
    }
    return text;
  };
  std::string_view code = bare_code(http.header("x-amzn-ErrorType"));
  if (code.empty()) {
    code = bare_code(text_of(error, {"__type", "code", "Code", "error"}));
  }
  std::string_view request_id = http.header("x-amzn-RequestId");
  if (request_id.empty()) request_id = answer.text("RequestId");
  Refusal refusal;
  refusal.code = code;
  refusal.message = text_of(error, {"message", "Message", "error_description"});
  refusal.request_id = request_id;
  return refusal;
}

std::string form_of(std::string_view head,
                    std::initializer_list<Field> fields) {
  std::size_t longest = head.size();
  for (const Field& field : fields) {
    longest += 3 * (field.name.size() + field.value.size()) + 2;
  }
  std::string form;
  form.reserve(longest);  // So that no copy of a token stays behind.
  form += head;
  for (const Field& field : fields) {
    if (field.value.empty()) continue;
    if (form.size() > head.size()) form += '&';
    append_encoded(form, field.name);
    form += '=';
    append_encoded(form, field.value);
  }
  return form;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
