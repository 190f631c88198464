#include "from_imds.hpp"

#include <strings.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "endpoints.hpp"
#include "from_json.hpp"
#include "http.hpp"
#include "secret.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using std::chrono::seconds;
using State = KeyOutcome::State;

namespace {

constexpr const char* kIpv6Endpoint = "http://[fd00:ec2::254]";
constexpr const char* kTokenPath = "/latest/api/token";
constexpr const char* kRolesPath =
    "/latest/meta-data/iam/security-credentials/";
constexpr const char* kRegionPath = "/latest/meta-data/placement/region";
constexpr int kTokenSeconds = 21600;  // The most there is.
constexpr milliseconds kPause{50};    // Before another attempt.

// --- Settings --------------------------------------------------------------

bool says(const Setting& setting, const char* word) {
  return setting && strcasecmp(setting->value.c_str(), word) == 0;
}

// A whole number from 1 to `most`; `otherwise` if nobody has said.
int whole_number(const Setting& setting, int otherwise, int most,
                 std::string& error) {
  if (!setting) return otherwise;
  int number = 0;
  for (const char c : setting->value) {
    number = c >= '0' && c <= '9' && number <= most ? number * 10 + (c - '0')
                                                    : most + 1;
  }
  if (number >= 1 && number <= most) return number;
  error = setting->source + " is not a whole number from 1 to " +
          std::to_string(most);
  return otherwise;
}

void set_endpoint(InstanceSettings& settings, const Setting& endpoint) {
  std::string url = endpoint->value;
  if (!parse_url(url)) {
    settings.error = endpoint->source + " is no http or https URL";
    return;
  }
  while (url.back() == '/') url.pop_back();
  settings.endpoint = std::move(url);
}

// --- The service -----------------------------------------------------------

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

// As IAM names them: nothing that a URL's path would have to encode.
bool is_role(std::string_view text) {
  return text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  (c >= '0' && c <= '9') ||
                  std::string_view("_+=,.@-").find(c) != std::string_view::npos;
         });
}

std::string_view first_line(std::string_view text) {
  text = text.substr(0, text.find('\n'));
  while (!text.empty() && (text.back() == '\r' || text.back() == ' ')) {
    text.remove_suffix(1);
  }
  return text;
}

int token_seconds(const HttpAnswer& http) {
  const auto header = http.header("x-aws-ec2-metadata-token-ttl-seconds");
  std::string error;
  if (!header) return kTokenSeconds;
  return whole_number(Profile::Property{std::string(*header), ""},
                      kTokenSeconds, kTokenSeconds, error);
}

enum class Fate {
  done,
  passing,
  absent,   // Nobody is there.
  refused,  // With `status`, which is neither 200 nor a passing one.
};

struct Reply {
  Fate fate = Fate::passing;
  int status = 0;
  std::string problem;  // Unless done, for people.
};

// Takes what it wants of an answer of status 200; says what is wrong with it,
// empty if nothing is.
using Accept = std::function<std::string(HttpAnswer&)>;

class Metadata {
 public:
  explicit Metadata(InstanceSettings settings)
      : settings_(std::move(settings)) {
    options_.use_proxies = false;
    options_.max_answer_bytes = kMaxJsonBytes;
    options_.connect_timeout = settings_.timeout;
  }

  KeyOutcome keys(const Fetch& fetch);
  RegionOutcome region(const Fetch& fetch);

 private:
  std::string described() const {
    return "EC2 metadata service at " + settings_.endpoint;
  }
  HttpRequest request(Method method, const std::string& path) const;
  Reply attempt(Method method, const std::string& path, const Accept& accept,
                const Fetch& fetch);
  Reply judge(HttpAnswer& http, const Accept& accept) const;
  Reply judge_transport(const HttpAnswer& http, bool in_time) const;
  Reply ask(Method method, const std::string& path, const Accept& accept,
            const Fetch& fetch);
  Reply need_token(const Fetch& fetch);
  Reply get(const std::string& path, const Accept& accept, const Fetch& fetch);
  KeyOutcome without_keys(const Reply& reply) const;
  KeyOutcome without_role();
  std::string read_keys(HttpAnswer& http, const std::string& role,
                        std::int64_t now, KeyOutcome& outcome) const;

  const InstanceSettings settings_;
  HttpOptions options_;
  bool answered_ = false;  // Ever.
  bool had_keys_ = false;
  Secret token_;
  BootTime token_ends_ = BootTime::min();
};

HttpRequest Metadata::request(Method method, const std::string& path) const {
  HttpRequest request;
  request.method = method;
  request.url = settings_.endpoint + path;
  std::string line;
  if (method == Method::put) {
    line = "X-aws-ec2-metadata-token-ttl-seconds: ";
    line += std::to_string(kTokenSeconds);
  } else if (!token_.empty()) {
    line.reserve(64 + token_.size());  // Leaves no copy by growing.
    line.append("X-aws-ec2-metadata-token: ").append(token_.str());
  }
  if (!line.empty()) request.headers.push_back(std::move(line));
  return request;
}

Reply Metadata::judge(HttpAnswer& http, const Accept& accept) const {
  Reply reply;
  reply.status = http.status;
  const std::string status = "HTTP status " + std::to_string(http.status);
  if (http.status == 200) {
    reply.problem = accept(http);
    if (reply.problem.empty()) reply.fate = Fate::done;
  } else if (http.status >= 300 && http.status < 500 && http.status != 408 &&
             http.status != 429) {
    reply.fate = Fate::refused;
    reply.problem = status;
  } else {
    reply.problem = status;
  }
  return reply;
}

Reply Metadata::judge_transport(const HttpAnswer& http, bool in_time) const {
  Reply reply;
  reply.problem = http.error;
  if (http.transport == Transport::cancelled) {
    reply.problem = "given up, for nobody waits for it any more";
  } else if (http.transport == Transport::timed_out) {
    reply.problem = "no answer in time";
    if (in_time) reply.fate = Fate::absent;  // It had all its time.
  } else if (http.transport != Transport::too_large) {
    reply.fate = Fate::absent;
  }
  return reply;
}

Reply Metadata::attempt(Method method, const std::string& path,
                        const Accept& accept, const Fetch& fetch) {
  const BootTime own = BootClock::now() + 2 * settings_.timeout;
  HttpAnswer http = exchange(options_, request(method, path),
                             std::min(own, fetch.deadline), fetch.stop);
  Reply reply = http.transport == Transport::complete
                    ? judge(http, accept)
                    : judge_transport(http, own <= fetch.deadline);
  wipe(http.body);
  return reply;
}

Reply Metadata::ask(Method method, const std::string& path,
                    const Accept& accept, const Fetch& fetch) {
  for (int attempts = 1;; ++attempts) {
    Reply reply = attempt(method, path, accept, fetch);
    answered_ = answered_ || reply.fate == Fate::done;
    const BootTime again = BootClock::now() + kPause;
    if (reply.fate == Fate::done || reply.fate == Fate::refused ||
        attempts == settings_.attempts || again >= fetch.deadline) {
      return reply;
    }
    wait_for(&fetch.stop, nullptr, again);
    if (fetch.stop.woken()) return reply;
  }
}

// Afterwards token_ is what is to be sent.
Reply Metadata::need_token(const Fetch& fetch) {
  Reply reply;
  reply.fate = Fate::done;
  if (BootClock::now() < token_ends_) return reply;
  token_ = Secret();
  const BootTime began = BootClock::now();
  reply = ask(
      Method::put, kTokenPath,
      [&](HttpAnswer& http) -> std::string {
        const int time = token_seconds(http);
        Secret token(std::move(http.body));
        if (token.empty() || !is_visible(token)) return "it gave no token";
        token_ = std::move(token);
        token_ends_ = began + seconds(time) - seconds(time) / 10;
        return "";
      },
      fetch);
  if (reply.fate == Fate::refused) {
    reply.fate = Fate::absent;
    reply.problem = "it gives no tokens of version 2 (" + reply.problem + ")";
  }
  return reply;
}

Reply Metadata::get(const std::string& path, const Accept& accept,
                    const Fetch& fetch) {
  for (bool again : {true, false}) {
    Reply reply = need_token(fetch);
    if (reply.fate != Fate::done) return reply;
    reply = ask(Method::get, path, accept, fetch);
    if (reply.status != 401) return reply;
    token_ends_ = BootTime::min();
    if (again) continue;
    reply.fate = Fate::passing;
    reply.problem = "it refuses its own token (" + reply.problem + ")";
    return reply;
  }
  return {};
}

KeyOutcome Metadata::without_keys(const Reply& reply) const {
  const std::string reason = described() + ": " + reply.problem;
  if (reply.fate == Fate::passing) return failed_keys(reason);
  if (reply.fate == Fate::absent) {
    return answered_ ? failed_keys(reason) : no_keys(reason);
  }
  return had_keys_ ? failed_keys(reason) : broken_keys(reason);
}

// A role that was there may be on its way to another.
KeyOutcome Metadata::without_role() {
  const std::string reason = described() + ": the instance has no role";
  return had_keys_ ? failed_keys(reason) : no_keys(reason);
}

std::string Metadata::read_keys(HttpAnswer& http, const std::string& role,
                                std::int64_t now, KeyOutcome& outcome) const {
  const auto header = http.header("Date");
  const auto date = header ? parse_http_date(*header) : std::nullopt;
  const auto document = parse_json(http.body);
  if (!document) return "the keys of role " + role + " are no JSON object";
  const Secret code = document->text("Code").value_or("Success");
  if (code != "Success") {
    return "no keys of role " + role + ": Code " + in_quotes(code);
  }
  const std::string place = "EC2 metadata service (role " + role + ")";
  outcome = keys_in_document(*document, KeyForm(), place, date.value_or(now));
  if (outcome.state != State::found) return outcome.reason;
  if (outcome.ends <= BootClock::now()) {
    outcome.warnings.push_back(
        "the time of the keys that the EC2 metadata service gives is over; "
        "they are used all the same");
  }
  return "";
}

KeyOutcome Metadata::keys(const Fetch& fetch) {
  const BootTime began = BootClock::now();
  if (!settings_.disabled.empty()) {
    return no_keys("EC2 metadata service: " + settings_.disabled);
  }
  if (!settings_.error.empty()) return broken_keys(settings_.error);
  fetch.asking("the " + described());
  std::string role;
  Reply reply = get(
      kRolesPath,
      [&](HttpAnswer& http) -> std::string {
        role = first_line(http.body);
        return is_role(role) ? "" : "what it gave is no role's name";
      },
      fetch);
  const bool none = reply.fate == Fate::refused && reply.status == 404;
  if (none || (reply.fate == Fate::done && role.empty())) {
    return without_role();
  }
  if (reply.fate != Fate::done) return without_keys(reply);
  KeyOutcome outcome;
  reply = get(
      kRolesPath + role,
      [&](HttpAnswer& http) {
        return read_keys(http, role, utc_now(fetch, began), outcome);
      },
      fetch);
  if (reply.fate == Fate::refused && reply.status == 404) {
    reply.fate = Fate::passing;  // The instance has another role by now.
  }
  if (reply.fate != Fate::done) return without_keys(reply);
  had_keys_ = true;
  return outcome;
}

RegionOutcome Metadata::region(const Fetch& fetch) {
  RegionOutcome outcome;
  if (!settings_.disabled.empty() || !settings_.error.empty()) {
    outcome.reason = settings_.disabled.empty()
                         ? settings_.error
                         : "EC2 metadata service: " + settings_.disabled;
    return outcome;
  }
  fetch.asking("the " + described() + " (for the region)");
  const Reply reply = get(
      kRegionPath,
      [&](HttpAnswer& http) -> std::string {
        const std::string_view region = first_line(http.body);
        if (!is_host_label(region)) return "what it gave is no region";
        outcome.region = region;
        return "";
      },
      fetch);
  if (reply.fate == Fate::done) return outcome;
  outcome.reason = described() + ": " + reply.problem;
  outcome.passing =
      reply.fate == Fate::passing || (reply.fate == Fate::absent && answered_);
  return outcome;
}

class WithRegion final : public KeySource {
 public:
  WithRegion(KeySourcePtr keys, InstanceSettings settings)
      : keys_(std::move(keys)), service_(std::move(settings)) {}

  KeyOutcome fetch(const Fetch& fetch) override {
    KeyOutcome outcome = keys_->fetch(fetch);
    if (outcome.state != State::found) return outcome;
    if (region_.empty()) {
      RegionOutcome found = service_.region(fetch);
      if (found.region.empty()) return without(std::move(found));
      region_ = std::move(found.region);
    }
    outcome.region = region_;
    return outcome;
  }

 private:
  static KeyOutcome without(RegionOutcome region) {
    KeyOutcome outcome = region.passing ? failed_keys(std::move(region.reason))
                                        : broken_keys(std::move(region.reason));
    outcome.lacks_region = true;
    return outcome;
  }

  const KeySourcePtr keys_;
  Metadata service_;
  std::string region_;
};

}  // namespace

InstanceSettings instance_settings(const Environment& environment,
                                   const Profile& profile) {
  const auto setting = [&](const char* variable, const char* property) {
    return find_setting(environment, {variable}, profile, property);
  };
  InstanceSettings settings;
  const auto disabled = set_in(environment, "AWS_EC2_METADATA_DISABLED");
  if (disabled && strcasecmp(disabled->c_str(), "true") == 0) {
    settings.disabled = "AWS_EC2_METADATA_DISABLED is true";
  }
  settings.timeout = seconds(whole_number(
      setting("AWS_METADATA_SERVICE_TIMEOUT", "metadata_service_timeout"), 1,
      600, settings.error));
  settings.attempts = whole_number(setting("AWS_METADATA_SERVICE_NUM_ATTEMPTS",
                                           "metadata_service_num_attempts"),
                                   2, 100, settings.error);
  const Setting mode = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE",
                               "ec2_metadata_service_endpoint_mode");
  if (mode && !says(mode, "ipv4") && !says(mode, "ipv6")) {
    settings.error = mode->source + " is neither IPv4 nor IPv6";
  }
  if (says(mode, "ipv6") ||
      (!mode && says(setting("AWS_IMDS_USE_IPV6", "imds_use_ipv6"), "true"))) {
    settings.endpoint = kIpv6Endpoint;
  }
  const Setting endpoint = setting("AWS_EC2_METADATA_SERVICE_ENDPOINT",
                                   "ec2_metadata_service_endpoint");
  if (endpoint) set_endpoint(settings, endpoint);
  return settings;
}

KeySourcePtr instance_keys(InstanceSettings settings) {
  const auto service = std::make_shared<Metadata>(std::move(settings));
  return source_of(
      [service](const Fetch& fetch) { return service->keys(fetch); });
}

RegionOutcome instance_region(const InstanceSettings& settings,
                              const Fetch& fetch) {
  return Metadata(settings).region(fetch);
}

KeySourcePtr with_region(KeySourcePtr keys, InstanceSettings settings) {
  return std::make_shared<WithRegion>(std::move(keys), std::move(settings));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
