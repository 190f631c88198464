#include "from_sts.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

#include "from_json.hpp"
#include "secret_file.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using State = KeyOutcome::State;

constexpr char kVersion[] = "2011-06-15";
constexpr char kContentType[] = "application/x-www-form-urlencoded";
constexpr char kAssumeRole[] = "AssumeRole";
constexpr char kWithWebIdentity[] = "AssumeRoleWithWebIdentity";
// What STS takes.
constexpr std::size_t kMinArn = 20, kMaxArn = 2048;
constexpr std::size_t kMinName = 2, kMaxName = 64;
constexpr std::size_t kMinExternalId = 2, kMaxExternalId = 1224;
constexpr int kMinDuration = 900, kMaxDuration = 43200;
constexpr std::size_t kMinToken = 4, kMaxTokenFile = 20 * 1024;

constexpr char kBlanks[] = " \t\r\n";

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_';
}

// Of `least` to `most` letters, digits, underscores and `others`.
bool fits(std::string_view text, std::size_t least, std::size_t most,
          std::string_view others) {
  return text.size() >= least && text.size() <= most &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return is_word(c) || others.find(c) != others.npos;
         });
}

bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

std::string random_session_name() {
  static constexpr char kDigits[] = "0123456789abcdef";
  unsigned char bytes[8];
  if (getentropy(bytes, sizeof bytes) != 0) std::abort();
  std::string name = "ddbmutex-";
  for (const unsigned char byte : bytes) {
    name += kDigits[byte >> 4];
    name += kDigits[byte & 15];
  }
  return name;
}

Role named(Role role) {
  if (role.session_name.empty()) role.session_name = random_session_name();
  return role;
}

// Where a role's keys are asked for.
struct Counter {
  std::string url;        // "https://sts.eu-west-1.amazonaws.com"
  std::string authority;  // Its host and port, for Host.
  std::string region;
  std::string error;  // Why nothing needs to be asked.
};

Counter find_counter(const Role& role, const Services& services) {
  const ServiceEndpoint endpoint = services.endpoint(Service::sts);
  Counter counter{endpoint.url, "", endpoint.region, flaw_of(role)};
  if (counter.error.empty()) counter.error = endpoint.error;
  if (!counter.error.empty()) return counter;
  const auto url = parse_url(endpoint.url);
  if (!url) {
    counter.error = "the URL of STS is no good";
  } else {
    counter.authority = url->authority;
  }
  return counter;
}

KeyOutcome broken_role(const Role& role, const std::string& why) {
  return broken_keys(role.place + ": " + why);
}

HttpRequest unsigned_request(const Counter& counter, std::string form) {
  return {Method::post,
          counter.url + "/",
          {"Host: " + counter.authority,
           std::string("Content-Type: ") + kContentType,
           "Accept: application/json"},
          std::move(form)};
}

HttpRequest signed_request(const Counter& counter, std::string form,
                           const Credentials& keys, std::int64_t utc_now) {
  SigningKeys derived;
  const std::string hash = sha256_hex(form);
  const Signed signature =
      sign({"POST",
            "/",
            "",
            {{"Content-Type", kContentType}, {"Host", counter.authority}},
            hash},
           keys, {counter.region, "sts"}, utc_now, {}, derived);
  HttpRequest request = unsigned_request(counter, std::move(form));
  request.headers.push_back("X-Amz-Date: " + signature.amz_date);
  request.headers.push_back("Authorization: " + signature.authorization);
  if (!keys.session_token.empty()) {
    request.headers.push_back("X-Amz-Security-Token: " +
                              keys.session_token.str());
  }
  return request;
}

// What both actions take.
std::vector<Field> fields_of(const char* action, const Role& role,
                             const std::string& duration) {
  std::vector<Field> fields = {{"Action", action},
                               {"Version", kVersion},
                               {"RoleArn", role.arn},
                               {"RoleSessionName", role.session_name}};
  if (role.duration_seconds != 0) {
    fields.push_back({"DurationSeconds", duration});
  }
  return fields;
}

// Makes the call, of which all is said but how its answers are read.
KeyOutcome ask(const char* action, const Role& role, const Services& services,
               ServiceCall call, const Fetch& fetch) {
  KeyOutcome outcome;
  call.name = std::string("STS ") + action;
  call.accept = [&](HttpAnswer& http, std::int64_t utc_now) {
    outcome = read_sts_keys(action, http.body, utc_now);
    return outcome.state == State::found ? "" : outcome.reason;
  };
  call.refusal = [](HttpAnswer& http) { return read_sts_refusal(http.body); };
  const CallOutcome called = call_service(services, call, fetch);
  if (!called.done()) return without_keys(called, role.place);
  outcome.source = role.place;
  return outcome;
}

class AssumedRole final : public KeySource {
 public:
  AssumedRole(Role role, KeySourcePtr source, Services services)
      : role_(named(std::move(role))),
        source_(std::move(source)),
        services_(std::move(services)) {}

  KeyOutcome fetch(const Fetch& fetch) override {
    const Counter counter = find_counter(role_, services_);
    if (!counter.error.empty()) return broken_role(role_, counter.error);
    KeyOutcome source = source_->fetch(fetch);
    if (source.state != State::found) return passed_on(std::move(source));
    KeyOutcome outcome = assume(counter, source.keys, fetch);
    outcome.region = std::move(source.region);
    outcome.warnings = std::move(source.warnings);
    return outcome;
  }

 private:
  // A source that was named and has nothing is wrong; or, if it had to be
  // asked, perhaps out of reach just now.
  KeyOutcome passed_on(KeyOutcome source) const {
    if (source.state == State::none) {
      source.state = source_->at_hand() ? State::broken : State::failed;
    }
    source.reason.insert(0,
                         role_.place + ": no keys to assume the role with: ");
    return source;
  }

  KeyOutcome assume(const Counter& counter, const Credentials& keys,
                    const Fetch& fetch) const {
    const std::string duration = std::to_string(role_.duration_seconds);
    std::vector<Field> fields = fields_of(kAssumeRole, role_, duration);
    if (!role_.external_id.empty()) {
      fields.push_back({"ExternalId", role_.external_id});
    }
    ServiceCall call;
    call.url = counter.url;
    call.secrets = {keys.secret_access_key, keys.session_token};
    call.request = [&](std::int64_t utc_now) {
      return signed_request(counter, form_of(fields), keys, utc_now);
    };
    return ask(kAssumeRole, role_, services_, std::move(call), fetch);
  }

  const Role role_;
  const KeySourcePtr source_;
  const Services services_;
};

// The token of a file, or why there is none.
struct WebToken {
  std::string_view text;  // In the file's.
  std::string flaw;
  bool passing = false;
};

WebToken token_in(const SecretFile& file) {
  WebToken token;
  token.flaw = file.failure;
  if (!token.flaw.empty()) return token;
  const std::string_view text = file.text;
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) {
    // Perhaps somebody is writing it.
    token.flaw = "is empty";
    token.passing = true;
    return token;
  }
  const std::size_t end = text.find_last_not_of(kBlanks) + 1;
  token.text = text.substr(begin, end - begin);
  if (token.text.size() < kMinToken || !is_visible(token.text)) {
    token.flaw = "holds no token";
  }
  return token;
}

class WebIdentity final : public KeySource {
 public:
  WebIdentity(Role role, std::string token_file, Services services)
      : role_(named(std::move(role))),
        token_file_(std::move(token_file)),
        services_(std::move(services)) {}

  KeyOutcome fetch(const Fetch& fetch) override {
    const Counter counter = find_counter(role_, services_);
    if (!counter.error.empty()) return broken_role(role_, counter.error);
    const SecretFile file = read_secret_file(token_file_, kMaxTokenFile);
    const WebToken token = token_in(file);
    if (token.flaw.empty()) return assume(counter, token.text, fetch);
    const std::string why = role_.place + ": the web identity token file " +
                            in_quotes(token_file_) + " " + token.flaw;
    return token.passing ? failed_keys(why) : broken_keys(why);
  }

 private:
  KeyOutcome assume(const Counter& counter, std::string_view token,
                    const Fetch& fetch) const {
    const std::string duration = std::to_string(role_.duration_seconds);
    std::vector<Field> fields = fields_of(kWithWebIdentity, role_, duration);
    fields.push_back({"WebIdentityToken", token});
    ServiceCall call;
    call.url = counter.url;
    call.secrets = {token};
    call.request = [&](std::int64_t) {
      return unsigned_request(counter, form_of(fields));
    };
    // The second may come of an identity provider that was slow to answer.
    call.passing_codes = {"IDPCommunicationError"};
    call.doubtful_codes = {"InvalidIdentityToken"};
    return ask(kWithWebIdentity, role_, services_, std::move(call), fetch);
  }

  const Role role_;
  const std::string token_file_;
  const Services services_;
};

}  // namespace

std::string flaw_of(const Role& role) {
  const bool arn = role.arn.size() >= kMinArn && role.arn.size() <= kMaxArn &&
                   role.arn.compare(0, 4, "arn:") == 0 && is_visible(role.arn);
  if (!arn) return "the role's ARN is none";
  if (!role.session_name.empty() &&
      !fits(role.session_name, kMinName, kMaxName, "+=,.@-")) {
    return "the role's session name is not of 2 to 64 letters, digits and "
           "_+=,.@-";
  }
  if (!role.external_id.empty() &&
      !fits(role.external_id, kMinExternalId, kMaxExternalId, "+=,.@:/-")) {
    return "the role's external ID is not of 2 to 1224 letters, digits and "
           "_+=,.@:/-";
  }
  if (role.duration_seconds != 0 && (role.duration_seconds < kMinDuration ||
                                     role.duration_seconds > kMaxDuration)) {
    return "the role's duration is not of 900 to 43200 seconds";
  }
  return "";
}

std::string account_of(std::string_view arn) {
  for (int field = 0; field < 4; ++field) {
    const std::size_t colon = arn.find(':');
    if (colon == arn.npos) return "";
    arn.remove_prefix(colon + 1);
  }
  const std::string_view account = arn.substr(0, arn.find(':'));
  const bool digits = std::all_of(account.begin(), account.end(),
                                  [](char c) { return c >= '0' && c <= '9'; });
  return account.size() == 12 && digits ? std::string(account) : "";
}

KeyOutcome read_sts_keys(std::string_view action, std::string_view body,
                         std::int64_t utc_now) {
  constexpr KeyForm kForm = {{"AccessKeyId", "SecretAccessKey", "SessionToken"},
                             "Expiration",
                             true,
                             1};
  auto result = parse_json(body);
  for (const char* part : {"Response", "Result"}) {
    if (result) result = result->object(join({action, part}));
  }
  const auto keys = result ? result->object("Credentials") : std::nullopt;
  if (!keys) return broken_keys("an answer without Credentials");
  KeyOutcome outcome = keys_in_document(*keys, kForm, "the answer", utc_now);
  const auto user = result->object("AssumedRoleUser");
  const auto arn = user ? user->text("Arn") : std::nullopt;
  if (outcome.state == State::found) {
    outcome.keys.account_id = account_of(arn.value_or(Secret()));
  }
  return outcome;
}

Refusal read_sts_refusal(std::string_view body) {
  const auto answer = parse_json(body);
  const auto error = answer ? answer->object("Error") : std::nullopt;
  if (!error) return {};
  const auto text = [](const JsonObject& object, const char* name) {
    return object.text(name).value_or(Secret()).str();
  };
  return {text(*error, "Code"), text(*error, "Message"),
          text(*answer, "RequestId")};
}

KeySourcePtr assumed_role_keys(Role role, KeySourcePtr source,
                               Services services) {
  return std::make_shared<AssumedRole>(std::move(role), std::move(source),
                                       std::move(services));
}

KeySourcePtr web_identity_keys(Role role, std::string token_file,
                               Services services) {
  return std::make_shared<WebIdentity>(std::move(role), std::move(token_file),
                                       std::move(services));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
