#include "from_sso.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "from_json.hpp"
#include "secret_file.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using State = KeyOutcome::State;

constexpr std::int64_t kRefreshAhead = 5 * 60;
constexpr std::chrono::seconds kRefreshPause{60};

// Goes into a header: a line break there would be a header of its own.
bool is_visible(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

// What the cache file holds.
struct Token {
  bool can_be_refreshed(std::int64_t now) const {
    return !refresh_token.empty() && !client_id.empty() &&
           !client_secret.empty() && registration_ends > now;
  }

  Secret text;
  std::int64_t ends = 0;
  Secret refresh_token;
  std::string client_id;
  Secret client_secret;
  std::int64_t registration_ends = 0;
  Secret file;  // All that it says.
};

// Why there is no token; empty if there is one.
std::string read_token(Secret file, Token& token) {
  token.file = std::move(file);
  const auto document = parse_json(token.file);
  if (!document) return "is no JSON object";
  const auto value = [&](const char* name) {
    return document->text(name).value_or(Secret());
  };
  const auto time = [&](const char* name) {
    return parse_iso8601(value(name));
  };
  token.text = value("accessToken");
  if (token.text.empty()) return "has no accessToken";
  if (!is_visible(token.text)) {
    return "has an accessToken with a character that is not visible ASCII";
  }
  const auto ends = time("expiresAt");
  if (!ends) return "has no expiresAt that is a time";
  token.ends = *ends;
  token.refresh_token = value("refreshToken");
  token.client_id = value("clientId").str();
  token.client_secret = value("clientSecret");
  token.registration_ends = time("registrationExpiresAt").value_or(0);
  return "";
}

// 20150830T123600Z -> 2015-08-30T12:36:00Z
std::string iso_time(std::int64_t unix_seconds) {
  std::string text = amz_date(unix_seconds);
  for (const std::size_t at : {13u, 11u}) text.insert(at, 1, ':');
  for (const std::size_t at : {6u, 4u}) text.insert(at, 1, '-');
  return text;
}

// A code may come as "namespace#Code:http://...".
std::string bare_code(std::string_view code) {
  code = code.substr(0, code.find(':'));
  return std::string(code.substr(code.rfind('#') + 1));  // npos + 1 is 0.
}

Refusal read_refusal(HttpAnswer& http) {
  Refusal refusal;
  refusal.code = bare_code(http.header("x-amzn-ErrorType").value_or(""));
  refusal.request_id = http.header("x-amzn-RequestId").value_or("");
  const auto body = parse_json(http.body);
  if (!body) return refusal;
  for (const char* name : {"__type", "code", "error"}) {
    if (!refusal.code.empty()) break;
    refusal.code = bare_code(body->text(name).value_or(Secret()));
  }
  for (const char* name : {"message", "Message", "error_description"}) {
    if (!refusal.message.empty()) break;
    refusal.message = body->text(name).value_or(Secret()).str();
  }
  return refusal;
}

class SsoSource final : public KeySource {
 public:
  SsoSource(Sso sso, Services services)
      : sso_(std::move(sso)), services_(std::move(services)) {
    services_.region = sso_.region.value;
    services_.region_source = sso_.region.source;
    const std::string& key =
        sso_.session_name.empty() ? sso_.start_url : sso_.session_name;
    path_ = sso_.cache + "/" + sha1_hex(key) + ".json";
  }

  KeyOutcome fetch(const Fetch& fetch) override;

 private:
  // Each sets `token`, or returns why there is none.
  std::optional<KeyOutcome> find_token(const Fetch& fetch, Token& token);
  std::optional<KeyOutcome> load(Token& token);
  std::optional<KeyOutcome> refresh(const Fetch& fetch, Token& token);
  bool take_other(const CallOutcome& call, const Fetch& fetch, Token& token);
  // Says what is wrong with the answer; empty if all is well.
  std::string take_refreshed(HttpAnswer& http, std::int64_t now, Token& token);
  void keep(Token& token);

  CallOutcome create_token(const Fetch& fetch, Token& token);
  KeyOutcome role_keys(const Fetch& fetch, const Token& token);
  std::string accept_keys(HttpAnswer& http, std::int64_t now, KeyOutcome& keys);

  // That somebody has to sign on.
  KeyOutcome signed_off(const std::string& why) const;
  std::string whose() const { return "sign-on cache " + in_quotes(path_); }

  const Sso sso_;
  Services services_;
  std::string path_;
  BootTime next_refresh_{};
  // A token that could not be written to the cache, where it belongs.
  std::optional<Token> unwritten_;
  std::vector<std::string> warnings_;  // Of the fetch under way.
};

KeyOutcome SsoSource::fetch(const Fetch& fetch) {
  if (sso_.cache.empty()) {
    return broken_keys(sso_.place +
                       ": the cache of sign-ons cannot be found (HOME is not "
                       "set)");
  }
  warnings_.clear();
  Token token;
  auto outcome = find_token(fetch, token);
  if (!outcome) outcome = role_keys(fetch, token);
  outcome->warnings = std::move(warnings_);
  return std::move(*outcome);
}

std::optional<KeyOutcome> SsoSource::find_token(const Fetch& fetch,
                                                Token& token) {
  auto outcome = load(token);
  if (outcome || token.ends - fetch.utc_now > kRefreshAhead) return outcome;
  if (!sso_.session_name.empty() && token.can_be_refreshed(fetch.utc_now)) {
    return refresh(fetch, token);
  }
  if (token.ends > fetch.utc_now) return std::nullopt;
  return signed_off("the token has ended");
}

std::optional<KeyOutcome> SsoSource::load(Token& token) {
  SecretFile file = read_secret_file(path_, kMaxJsonBytes);
  if (file.missing) return signed_off("nobody has signed on yet");
  if (!file.failure.empty()) {
    return broken_keys(sso_.place + ": " + whose() + " " + file.failure);
  }
  if (!file.warning.empty()) warnings_.push_back(file.warning);
  const std::string wrong = read_token(std::move(file.text), token);
  if (!wrong.empty()) return signed_off("the file " + wrong);
  if (unwritten_ && unwritten_->ends > token.ends) token = *unwritten_;
  return std::nullopt;
}

// REQUIRES: the token may be refreshed.
std::optional<KeyOutcome> SsoSource::refresh(const Fetch& fetch, Token& token) {
  const bool over = token.ends <= fetch.utc_now;
  if (BootClock::now() < next_refresh_) {
    if (!over) return std::nullopt;
    return failed_keys(sso_.place + ": the token in " + whose() +
                       " has ended, and to refresh it was tried less than a "
                       "minute ago");
  }
  next_refresh_ = BootClock::now() + kRefreshPause;
  const CallOutcome call = create_token(fetch, token);
  if (call.done() || take_other(call, fetch, token)) return std::nullopt;
  if (!over) {
    warnings_.push_back("the token in " + whose() +
                        " could not be refreshed: " + call.problem);
    return std::nullopt;
  }
  if (call.state == CallOutcome::State::failed) {
    return without_keys(call, sso_.place);
  }
  return signed_off("the token has ended and could not be refreshed: " +
                    call.problem);
}

// If the exchange was refused because another process came first, for each
// refresh token is good for once: what that one has written.
bool SsoSource::take_other(const CallOutcome& call, const Fetch& fetch,
                           Token& token) {
  if (call.state != CallOutcome::State::broken) return false;
  Token other;
  if (load(other) || other.ends <= fetch.utc_now) return false;
  if (other.text == token.text) return false;
  token = std::move(other);
  return true;
}

CallOutcome SsoSource::create_token(const Fetch& fetch, Token& token) {
  const ServiceEndpoint endpoint = services_.endpoint(Service::sso_oidc);
  if (!endpoint.error.empty()) {
    CallOutcome none;
    none.state = CallOutcome::State::broken;
    none.problem = endpoint.error;
    return none;
  }
  ServiceCall call;
  call.name = "SSO OIDC CreateToken";
  call.url = endpoint.url;
  call.secrets = {token.refresh_token, token.client_secret, token.text};
  call.passing_codes = {"SlowDownException", "AuthorizationPendingException"};
  call.request = [&](std::int64_t) {
    HttpRequest request;
    request.method = Method::post;
    request.url = endpoint.url + "/token";
    request.headers = {"Content-Type: application/json"};
    request.body = json_object({{"grantType", "refresh_token"},
                                {"clientId", token.client_id},
                                {"clientSecret", token.client_secret},
                                {"refreshToken", token.refresh_token}});
    return request;
  };
  call.refusal = read_refusal;
  call.accept = [&](HttpAnswer& http, std::int64_t now) {
    return take_refreshed(http, now, token);
  };
  return call_service(services_, call, fetch);
}

std::string SsoSource::take_refreshed(HttpAnswer& http, std::int64_t now,
                                      Token& token) {
  constexpr std::int64_t kFar = 100LL * 366 * 86400;
  const auto answer = parse_json(http.body);
  if (!answer) return "an answer that is no JSON object";
  Secret text = answer->text("accessToken").value_or(Secret());
  if (text.empty() || !is_visible(text)) return "an answer without a token";
  const auto seconds = answer->number("expiresIn").value_or(0);
  if (seconds <= 0) return "an answer that does not tell when the token ends";
  token.text = std::move(text);
  token.ends = now + std::min(seconds, kFar);
  auto refresh_token = answer->text("refreshToken");
  if (refresh_token) token.refresh_token = std::move(*refresh_token);
  keep(token);
  return "";
}

void SsoSource::keep(Token& token) {
  const std::string ends = iso_time(token.ends);
  const Secret text = with_texts(*parse_json(token.file),
                                 {{"accessToken", token.text},
                                  {"expiresAt", ends},
                                  {"refreshToken", token.refresh_token}});
  const std::string wrong = write_secret_file(path_, text);
  unwritten_.reset();
  if (wrong.empty()) return;
  unwritten_ = token;
  warnings_.push_back("the refreshed token could not be written to " + whose() +
                      ": " + wrong);
}

KeyOutcome SsoSource::role_keys(const Fetch& fetch, const Token& token) {
  const ServiceEndpoint endpoint = services_.endpoint(Service::sso);
  if (!endpoint.error.empty()) {
    return broken_keys(sso_.place + ": " + endpoint.error);
  }
  KeyOutcome keys;
  ServiceCall call;
  call.name = "SSO GetRoleCredentials";
  call.url = endpoint.url;
  call.secrets = {token.text};
  call.request = [&](std::int64_t) {
    HttpRequest request;
    request.url = endpoint.url + "/federation/credentials?" +
                  form_of({{"account_id", sso_.account_id},
                           {"role_name", sso_.role_name}});
    // Moved: in a list of initial values it would leave a copy behind.
    request.headers.push_back("x-amz-sso_bearer_token: " + token.text.str());
    return request;
  };
  call.refusal = read_refusal;
  call.accept = [&](HttpAnswer& http, std::int64_t now) {
    return accept_keys(http, now, keys);
  };
  const CallOutcome outcome = call_service(services_, call, fetch);
  if (outcome.done()) return keys;
  if (outcome.status == 401) return signed_off(outcome.problem);
  return without_keys(outcome, sso_.place);
}

std::string SsoSource::accept_keys(HttpAnswer& http, std::int64_t now,
                                   KeyOutcome& keys) {
  constexpr KeyForm kForm = {{"accessKeyId", "secretAccessKey", "sessionToken"},
                             "expiration",
                             true,
                             1000};
  const auto answer = parse_json(http.body);
  const auto found = answer ? answer->object("roleCredentials") : std::nullopt;
  if (!found) return "an answer without roleCredentials";
  keys = keys_in_document(*found, kForm, "the answer", now);
  if (keys.state != State::found) return keys.reason;
  keys.keys.account_id = sso_.account_id;
  keys.source = "role " + in_quotes(sso_.role_name) + " of account " +
                in_quotes(sso_.account_id) + " by single sign-on of " +
                sso_.place;
  return "";
}

KeyOutcome SsoSource::signed_off(const std::string& why) const {
  const bool session = !sso_.session_name.empty();
  return broken_keys(sso_.place + ": " + why + " (" + whose() +
                     "); sign on with: aws sso " + "login " +
                     (session ? "--sso-session " + in_quotes(sso_.session_name)
                              : "--profile " + in_quotes(sso_.profile)));
}

}  // namespace

KeySourcePtr sso_keys(Sso sso, Services services) {
  return std::make_shared<SsoSource>(std::move(sso), std::move(services));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
