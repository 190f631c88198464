#include "from_services.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <random>
#include <utility>

#include "boot_clock.hpp"
#include "service.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

namespace {

// The longest pause before the second attempt; it doubles with each.
constexpr milliseconds kFirstPause{100};
constexpr milliseconds kFirstThrottledPause{1000};
// No answer that belongs here is near that.
constexpr std::size_t kMaxAnswerBytes = 64 * 1024;
// A refusal whose Date is this far from the time of the signature was refused
// for that, as AWS's SDKs see it.
constexpr std::int64_t kSkewedSeconds = 4 * 60;

constexpr std::string_view kPassing[] = {
    "InternalError",       "InternalFailure",
    "InternalServerError", "InternalServerException",
    "ServiceUnavailable",  "ServiceUnavailableException",
    "RequestTimeout",      "RequestTimeoutException"};
constexpr std::string_view kMaybeSkewed[] = {
    "AuthFailure",          "InvalidSignatureException",
    "RequestExpired",       "RequestInTheFuture",
    "RequestTimeTooSkewed", "SignatureDoesNotMatch",
    "AccessDeniedException"};

template <class Codes>
bool is_one_of(const Codes& codes, std::string_view code) {
  return std::find(std::begin(codes), std::end(codes), code) != std::end(codes);
}

// What an attempt came to.
enum class Fate { done, passing, throttled, skewed, doubtful, final };

// The time of an answer; nothing if it has none, or comes from some cache.
std::optional<std::int64_t> date_of(const HttpAnswer& http) {
  if (http.header("Age")) return std::nullopt;
  const auto date = http.header("Date");
  return date ? parse_http_date(*date) : std::nullopt;
}

// So that many hosts that failed at once do not come back at once.
milliseconds random_pause(milliseconds longest) {
  std::uint32_t seed;
  if (getentropy(&seed, sizeof seed) != 0) std::abort();
  return milliseconds(longest.count() * (seed % 1024) / 1023);
}

class Calling {
 public:
  Calling(const Services& services, const ServiceCall& call, const Fetch& fetch)
      : options_(services.http),
        call_(call),
        fetch_(fetch),
        utc_offset_(fetch.utc_now - boot_seconds()) {
    options_.max_answer_bytes =
        std::min(options_.max_answer_bytes, kMaxAnswerBytes);
  }

  CallOutcome run();

 private:
  static std::int64_t boot_seconds() {
    return std::chrono::duration_cast<seconds>(
               BootClock::now().time_since_epoch())
        .count();
  }

  std::int64_t utc_now() const { return boot_seconds() + utc_offset_; }
  Fate attempt();
  Fate judge(HttpAnswer& http, std::int64_t signed_for);
  Fate judge_refusal(HttpAnswer& http, std::int64_t signed_for);
  Fate judge_transport(const HttpAnswer& http, BootTime started);
  std::string told(const Refusal& refusal, const std::string& status) const;
  bool pause(Fate fate);
  bool correct();
  Fate say(Fate fate, std::string problem);
  CallOutcome outcome(Fate fate);

  HttpOptions options_;
  const ServiceCall& call_;
  const Fetch& fetch_;
  std::int64_t utc_offset_;  // UTC less the boot clock, in seconds.
  std::optional<std::int64_t> refusal_offset_;  // By the last refusal's Date.
  bool corrected_ = false;
  int attempts_ = 0;
  CallOutcome last_;
};

CallOutcome Calling::run() {
  fetch_.asking(call_.name + " at " + call_.url);
  for (;;) {
    const Fate fate = attempt();
    if (fate == Fate::skewed ? !correct() : !pause(fate)) return outcome(fate);
  }
}

Fate Calling::attempt() {
  ++attempts_;
  const BootTime started = BootClock::now();
  const std::int64_t signed_for = utc_now();
  HttpAnswer http =
      exchange(options_, call_.request(signed_for),
               std::min(fetch_.deadline, started + call_.time), fetch_.stop);
  last_ = CallOutcome();
  last_.status = http.status;
  const Fate fate = http.transport == Transport::complete
                        ? judge(http, signed_for)
                        : judge_transport(http, started);
  wipe(http.body);
  return fate;
}

Fate Calling::say(Fate fate, std::string problem) {
  last_.problem = std::move(problem);
  return fate;
}

Fate Calling::judge(HttpAnswer& http, std::int64_t signed_for) {
  if (http.status != 200) return judge_refusal(http, signed_for);
  std::string problem = call_.accept(http, date_of(http).value_or(utc_now()));
  if (problem.empty()) return Fate::done;
  return say(Fate::passing, std::move(problem));
}

Fate Calling::judge_refusal(HttpAnswer& http, std::int64_t signed_for) {
  const std::string status = "HTTP status " + std::to_string(http.status);
  if (http.status < 300) return say(Fate::passing, status);
  if (http.status < 400) {
    return say(Fate::final, status + ", a redirect, which is not followed");
  }
  const Refusal refusal = call_.refusal(http);
  last_.code = refusal.code;
  last_.problem = told(refusal, status);
  const auto date = date_of(http);
  if (date && is_one_of(kMaybeSkewed, refusal.code) &&
      std::abs(*date - signed_for) >= kSkewedSeconds) {
    refusal_offset_ = *date - boot_seconds();
    return Fate::skewed;
  }
  if (is_throttling_code(refusal.code) || http.status == 429) {
    return Fate::throttled;
  }
  const bool passing = http.status >= 500 || http.status == 408 ||
                       is_one_of(kPassing, refusal.code) ||
                       is_one_of(call_.passing_codes, refusal.code);
  if (passing) return Fate::passing;
  return is_one_of(call_.doubtful_codes, refusal.code) ? Fate::doubtful
                                                       : Fate::final;
}

// "AccessDenied: You may not (HTTP status 403, request 1-2-3)"
std::string Calling::told(const Refusal& refusal,
                          const std::string& status) const {
  if (refusal.code.empty()) return status;
  std::string text = shown(refusal.code, call_.secrets);
  const std::string message = shown(refusal.message, call_.secrets);
  if (!message.empty()) text += ": " + message;
  text += " (" + status;
  const std::string id = shown(refusal.request_id, call_.secrets);
  if (!id.empty()) text += ", request " + id;
  return text + ")";
}

Fate Calling::judge_transport(const HttpAnswer& http, BootTime started) {
  switch (http.transport) {
    case Transport::bad_certificate:
      return say(Fate::final, http.error);
    case Transport::cancelled:
      return say(Fate::passing, "given up, for nobody waits for it any more");
    case Transport::timed_out: {
      const auto waited =
          std::chrono::duration_cast<milliseconds>(BootClock::now() - started);
      return say(Fate::passing,
                 "no answer in " + std::to_string(waited.count()) + " ms");
    }
    default:
      return say(Fate::passing, http.error);
  }
}

// Whether the same should be asked once more, for the service's time.
bool Calling::correct() {
  if (std::exchange(corrected_, true)) return false;
  utc_offset_ = *refusal_offset_;
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
      BootClock::now() + random_pause(longest * (1 << (attempts_ - 1)));
  if (until >= fetch_.deadline) return false;
  wait_for(&fetch_.stop, nullptr, until);
  return !fetch_.stop.woken();
}

CallOutcome Calling::outcome(Fate fate) {
  if (fate == Fate::done) {
    last_.state = CallOutcome::State::done;
    return std::move(last_);
  }
  const bool passes = fate == Fate::passing || fate == Fate::throttled;
  last_.state =
      passes ? CallOutcome::State::failed : CallOutcome::State::broken;
  std::string where = call_.name + " at " + call_.url + ": ";
  if (attempts_ > 1) {
    where.insert(where.size() - 2,
                 ", " + std::to_string(attempts_) + " attempts");
  }
  last_.problem.insert(0, where);
  return std::move(last_);
}

}  // namespace

ServiceEndpoint Services::endpoint(Service service) const {
  if (region.empty()) return {"", "", "no region is known"};
  return service_endpoint(service, endpoints, {region, region_source});
}

KeyOutcome without_keys(const CallOutcome& outcome, const std::string& place) {
  const std::string reason = place + ": " + outcome.problem;
  return outcome.state == CallOutcome::State::broken ? broken_keys(reason)
                                                     : failed_keys(reason);
}

CallOutcome call_service(const Services& services, const ServiceCall& call,
                         const Fetch& fetch) {
  return Calling(services, call, fetch).run();
}

std::string form_of(const std::vector<Field>& fields) {
  std::size_t longest = 0;
  for (const Field& field : fields) {
    longest += 3 * (field.name.size() + field.value.size()) + 2;
  }
  std::string form;
  form.reserve(longest);  // So that no copy of a token stays behind.
  for (const Field& field : fields) {
    if (!form.empty()) form += '&';
    append_encoded(form, field.name);
    form += '=';
    append_encoded(form, field.value);
  }
  return form;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
