// Only those need it that ask a server.
#if !defined(DDBMUTEX_NO_HOSTS) || !defined(DDBMUTEX_NO_ROLES) || \
    !defined(DDBMUTEX_NO_SSO)
#include "from_services.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <utility>

#include "boot_clock.hpp"
#include "from_json.hpp"
#include "text.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using State = KeyOutcome::State;

namespace {

// The longest pause before the second attempt; it doubles with each, up to a
// point.
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kFirstThrottledPause{1000};
constexpr int kDoublings = 5;
// No answer that belongs here is near that.
constexpr std::size_t kMaxAnswerBytes = kMaxJsonBytes;
// A refusal whose Date is this far from the time of the signature was refused
// for that, as AWS's SDKs see it.
constexpr std::int64_t kSkewedSeconds = 4 * 60;

constexpr char kPassing[] =
    "InternalError InternalFailure InternalServerError InternalServerException "
    "ServiceUnavailable ServiceUnavailableException RequestTimeout "
    "RequestTimeoutException IDPCommunicationError SlowDownException "
    "AuthorizationPendingException";
// Will not pass as a rule, and yet is tried as often: it may come of an
// identity provider that was slow to answer.
constexpr std::string_view kDoubtful = "InvalidIdentityToken";
constexpr char kMaybeSkewed[] =
    "AuthFailure InvalidSignatureException RequestExpired RequestInTheFuture "
    "RequestTimeTooSkewed SignatureDoesNotMatch AccessDeniedException";

// What an attempt came to.
enum class Fate { done, passing, throttled, skewed, doubtful, final };

// The time of an answer; nothing if it has none, or comes from some cache.
std::optional<std::int64_t> date_of(const HttpAnswer& http) {
  if (http.header("Age")) return std::nullopt;
  const auto date = http.header("Date");
  return date ? parse_http_date(*date) : std::nullopt;
}

std::int64_t boot_seconds() {
  return BootClock::now().time_since_epoch() / std::chrono::seconds(1);
}

// "AccessDenied: You may not (HTTP status 403, request 1-2-3)"
std::string told(const Refusal& refusal, const std::string& status,
                 const Secrets& secrets) {
  if (refusal.code.empty()) return status;
  std::string text = shown(refusal.code, secrets);
  const auto add = [&](std::string_view before, const std::string& more) {
    const std::string clean = shown(more, secrets);
    if (!clean.empty()) format_to(text, "%s%s", before, clean);
  };
  add(": ", refusal.message);
  format_to(text, " (%s", status);
  add(", request ", refusal.request_id);
  return text + ")";
}

class Calling {
 public:
  Calling(const HttpOptions& options, const ServiceCall& call,
          const Fetch& fetch)
      : options_(options),
        call_(call),
        fetch_(fetch),
        utc_offset_(fetch.now() - boot_seconds()) {
    options_.max_answer_bytes =
        std::min(options_.max_answer_bytes, kMaxAnswerBytes);
  }

  CallOutcome run();

 private:
  std::int64_t utc_now() const { return boot_seconds() + utc_offset_; }
  void sign(Text& headers, std::int64_t signed_for) const;
  Fate attempt();
  Fate judge(const HttpAnswer& http, std::int64_t signed_for);
  Fate judge_refusal(const HttpAnswer& http, std::int64_t signed_for);
  Fate judge_transport(const HttpAnswer& http, BootTime started);
  bool pause(Fate fate);
  bool correct();

  HttpOptions options_;
  const ServiceCall& call_;
  const Fetch& fetch_;
  std::int64_t utc_offset_;          // UTC less the boot clock, in seconds.
  std::int64_t refusal_offset_ = 0;  // By the last refusal's Date.
  bool corrected_ = false;
  int attempts_ = 0;
  CallOutcome last_;
};

CallOutcome Calling::run() {
  fetch_.say(format("%s%s at %s is being asked", call_.article, call_.name,
                    call_.url));
  Fate fate;
  do {
    fate = attempt();
  } while (fate == Fate::skewed ? correct() : pause(fate));
  if (fate == Fate::done) {
    last_.state = State::found;
    return std::move(last_);
  }
  if (fate != Fate::passing && fate != Fate::throttled) {
    last_.state = State::broken;
  }
  const std::string often = attempts_ < 2 ? "" : decimal(attempts_);
  last_.problem = format("%s at %s%[, %s attempts%]: %s", call_.name, call_.url,
                         often, last_.problem);
  return std::move(last_);
}

// Adds the headers that sign the form, if it is to be signed.
void Calling::sign(Text& headers, std::int64_t signed_for) const {
  if (call_.signer == nullptr) return;
  const auto url = parse_url(call_.request.url);
  const std::string date = amz_date(signed_for);
  const std::string scope = scope_text(date, {call_.region, "sts"});
  append_signed(headers,
                {url ? std::string_view(url->authority) : "", kFormType,
                 call_.request.body},
                *call_.signer, date, scope,
                SigningKey(call_.signer->secret_access_key, scope));
}

// On a connection of its own.
Fate Calling::attempt() {
  ++attempts_;
  const BootTime started = BootClock::now();
  const BootTime deadline = std::min(fetch_.deadline, started + call_.time);
  const std::int64_t signed_for = utc_now();
  Exchange one(options_);
  Exchange* const all = &one;
  sign(one.headers(), signed_for);
  one.headers() += call_.request.headers;
  one.body() += call_.request.body;
  one.start(call_.request.url, started, call_.request.method);
  while (one.under_way() && !fetch_.stop.woken() &&
         BootClock::now() < deadline) {
    drive(&all, 1, deadline, &fetch_.stop);
  }
  one.end(fetch_.stop.woken() ? Transport::cancelled : Transport::timed_out);
  HttpAnswer& http = one.answer();
  last_.status = http.status;
  last_.absent = false;
  const Fate fate = http.transport == Transport::complete
                        ? judge(http, signed_for)
                        : judge_transport(http, started);
  wipe(http.body);
  return fate;
}

Fate Calling::judge(const HttpAnswer& http, std::int64_t signed_for) {
  if (http.status != 200) return judge_refusal(http, signed_for);
  last_.problem = call_.accept(http, date_of(http).value_or(utc_now()));
  return last_.problem.empty() ? Fate::done : Fate::passing;
}

Fate Calling::judge_refusal(const HttpAnswer& http, std::int64_t signed_for) {
  const std::string status = format("HTTP status %s", http.status);
  last_.problem = status;
  if (http.status < 300) return Fate::passing;
  if (http.status < 400) {
    last_.problem += ", a redirect, which is not followed";
    return Fate::final;
  }
  const Refusal refusal = read_refusal(http);
  last_.problem = told(refusal, status, call_.secrets);
  const auto date = date_of(http);
  if (date && is_among(kMaybeSkewed, refusal.code) &&
      std::abs(*date - signed_for) >= kSkewedSeconds) {
    refusal_offset_ = *date - boot_seconds();
    return Fate::skewed;
  }
  if (is_throttling_code(refusal.code) || http.status == 429) {
    return Fate::throttled;
  }
  if (http.status >= 500 || http.status == 408 ||
      is_among(kPassing, refusal.code)) {
    return Fate::passing;
  }
  return refusal.code == kDoubtful ? Fate::doubtful : Fate::final;
}

Fate Calling::judge_transport(const HttpAnswer& http, BootTime started) {
  last_.problem = http.error;
  if (http.transport == Transport::cancelled) {
    last_.problem = "given up, for nobody waits for it any more";
    return Fate::passing;
  }
  if (http.transport == Transport::too_large) return Fate::passing;
  const BootTime now = BootClock::now();
  last_.absent = true;
  if (http.transport == Transport::timed_out) {
    last_.absent = now < fetch_.deadline;
    last_.problem =
        format("no answer in %s ms", (now - started) / milliseconds(1));
  }
  return http.transport == Transport::bad_certificate ? Fate::final
                                                      : Fate::passing;
}

// Whether the same should be asked once more, for the service's time.
bool Calling::correct() {
  if (std::exchange(corrected_, true)) return false;
  utc_offset_ = refusal_offset_;
  --attempts_;
  return true;
}

// Whether there is to be another attempt; if so, it is time for that then.
bool Calling::pause(Fate fate) {
  if (fate == Fate::done || fate == Fate::final) return false;
  if (attempts_ >= call_.attempts) return false;
  const milliseconds longest =
      fate == Fate::throttled ? kFirstThrottledPause : kFirstPause;
  const BootTime until =
      BootClock::now() +
      random_part(longest * (1 << std::min(attempts_ - 1, kDoublings)), 0);
  if (until >= fetch_.deadline) return false;
  wait_for(&fetch_.stop, nullptr, until);
  return !fetch_.stop.woken();
}

// A code may come as "namespace#Code:http://...".
std::string bare_code(std::string_view code) {
  code = code.substr(0, code.find(':'));
  return std::string(code.substr(code.rfind('#') + 1));  // npos + 1 is 0.
}

}  // namespace

ServiceRequest::ServiceRequest() = default;
ServiceRequest::~ServiceRequest() {
  wipe(headers);
  wipe(body);
}

CallOutcome Services::ask(Service service, const Setting& where,
                          ServiceCall& call, const Fetch& fetch) const {
  CallOutcome outcome;
  outcome.state = State::broken;
  outcome.problem = "no region is known";
  if (!where) return outcome;
  ServiceEndpoint endpoint = endpoints[static_cast<std::size_t>(service)];
  find_endpoint(service, where, endpoint);
  outcome.problem = std::move(endpoint.error);
  if (!outcome.problem.empty()) return outcome;
  call.request.url.insert(0, endpoint.endpoint);
  call.url = endpoint.endpoint;
  call.region = endpoint.region;
  return call_service(http, call, fetch);
}

KeyOutcome without_keys(const CallOutcome& outcome, std::string_view place) {
  KeyOutcome keys = failed_keys("%s: %s", place, outcome.problem);
  keys.state = outcome.state;
  return keys;
}

CallOutcome call_service(const HttpOptions& options, const ServiceCall& call,
                         const Fetch& fetch) {
  return Calling(options, call, fetch).run();
}

Refusal read_refusal(const HttpAnswer& http) {
  Refusal refusal;
  refusal.code = bare_code(http.header("x-amzn-ErrorType").value_or(""));
  refusal.request_id = http.header("x-amzn-RequestId").value_or("");
  const Document document = parse_json(http.body);
  const Value answer = document.root();
  // STS has an object for it, of which the request's number is none.
  const Value inner = answer["Error"];
  const Value error = inner.is_object() ? inner : answer;
  const auto fill = [](std::string& text, Value object,
                       std::initializer_list<const char*> names) {
    for (const char* name : names) {
      if (text.empty()) text = object.text(name);
    }
  };
  fill(refusal.code, error, {"__type", "code", "Code", "error"});
  refusal.code = bare_code(refusal.code);
  fill(refusal.message, error, {"message", "Message", "error_description"});
  fill(refusal.request_id, answer, {"RequestId"});
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
#endif
