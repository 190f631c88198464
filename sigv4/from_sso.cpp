#if !defined(DDBMUTEX_NO_SSO) && !defined(DDBMUTEX_NO_PROFILES)
// The keys of a role in IAM Identity Center, for whoever has signed on there.
//
// A person signs on with `aws sso login`, which leaves a token in a cache file:
// CACHE/<SHA-1 of the session's name, or of the start URL>.json.  The file is
// read anew each time, and its token shown to the portal.  A session's token
// that has five minutes left, or has ended, is exchanged for a new one if the
// file says how, at most once a minute; the new one is written to the file, as
// AWS's tools do, for they share it.
//
// A token that has ended and cannot be had anew, or that the portal refuses, is
// final, and the reason says which command signs on.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "from_json.hpp"
#include "from_profile.hpp"
#include "text.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr std::int64_t kRefreshAhead = 5 * 60;
constexpr std::chrono::seconds kRefreshPause{60};
constexpr KeyForm kSsoForm = {
    {"accessKeyId", "secretAccessKey", "sessionToken"},
    "expiration",
    true,
    1000};

// --- What the profile says -------------------------------------------------

constexpr char kSession[] = "sso-session";

// The profile's own, or its session's; empty if it is neither's.
std::string_view sign_on_value(const Profile& profile, std::string_view session,
                               const char* name) {
  const std::string_view own = profile.value_of(name);
  const auto* found = profile.config.find(kSession, session, name);
  return own.empty() && found != nullptr ? *found : own;
}

// --- The token -------------------------------------------------------------

// What a cache file holds.
class Token {
 public:
  explicit Token(std::string_view file)
      : file_(file),
        document_(std::string(file), Document::Strings::any_bytes) {}

  std::string_view file() const { return file_; }
  std::string_view text() const { return member("accessToken"); }
  std::string_view member(const char* name) const {
    return document_.root().text(name);
  }
  std::int64_t ends() const { return time("expiresAt").value_or(0); }
  // Why there is no token; empty if there is one.
  const char* flaw() const;
  bool can_be_refreshed(std::int64_t now) const;

 private:
  std::optional<std::int64_t> time(const char* name) const {
    return parse_iso8601(member(name));
  }

  const Secret file_;
  const Document document_;
};

const char* Token::flaw() const {
  if (!document_.root().is_object()) return "is not a JSON object";
  if (text().empty()) return "has no accessToken";
  if (!sigv4::is_visible(text())) {
    return "has an accessToken with a character that is not visible ASCII";
  }
  return time("expiresAt") ? "" : "has no valid expiresAt";
}

bool Token::can_be_refreshed(std::int64_t now) const {
  for (const char* name : {"refreshToken", "clientId", "clientSecret"}) {
    if (member(name).empty()) return false;
  }
  return time("registrationExpiresAt").value_or(0) > now;
}

// 20150830T123600Z -> 2015-08-30T12:36:00Z
std::string iso_time(std::int64_t unix_seconds) {
  std::string text = amz_date(unix_seconds);
  for (const std::size_t at : {13u, 11u}) text.insert(at, 1, ':');
  for (const std::size_t at : {6u, 4u}) text.insert(at, 1, '-');
  return text;
}

// One look for keys; what remains is in `sign_on_`.
class Portal {
 public:
  // `sign`: the property that says that there is a sign-on.
  Portal(Search& search, const Profile& profile, const char* sign)
      : search_(search),
        profile_(profile),
        session_(profile.value_of("sso_session")),
        section_(sigv4::format("sso-session %s", session_)),
        place_(profile.place_of(sign)) {}

  KeyOutcome keys();

 private:
  // Each sets what it is called for; if it cannot, why is found in outcome_.
  bool is_sound();
  bool find_settings();
  bool find_cache();
  bool find_token();
  bool load(std::unique_ptr<Token>& token);
  bool refresh();
  KeyOutcome create_token();
  // Says what is wrong with the answer; empty if all is well.
  const char* take_refreshed(const HttpAnswer& http, std::int64_t now);
  void ask_for_keys();

  // Why there are no keys.
  template <class... Piece>
  bool none(State state, const char* pattern, const Piece&... pieces) {
    outcome_.state = state;
    outcome_.reason.clear();
    sigv4::format_to(outcome_.reason, pattern, pieces...);
    return false;
  }
  template <class... Piece>
  bool blocked(const char* pattern, const Piece&... pieces) {
    search_.blocked = true;
    return none(State::broken, pattern, pieces...);
  }
  // That somebody has to sign on.
  bool signed_off(const char* why, std::string_view more = {});

  Search& search_;
  const Profile& profile_;
  const std::string_view session_;  // Empty: the older way, without sessions.
  const std::string section_;       // The session's.
  const std::string place_;         // For people: `profile "x" in "..."`.
  std::string_view start_url_, account_id_, role_name_;
  Setting region_;  // The session's.
  SignOn& sign_on_ = search_.chain.sign_on;
  const Fetch& fetch_ = search_.fetch;
  std::unique_ptr<Token> token_;
  std::unique_ptr<Token> spent_;  // The call that had it exchanged has views.
  KeyOutcome outcome_;
  std::string warnings_;
};

KeyOutcome Portal::keys() {
  if (is_sound() && find_settings()) {
    if (find_cache() && find_token()) ask_for_keys();
    if (outcome_.state != State::found) {
      outcome_.reason = sigv4::format("%s: %s", place_, outcome_.reason);
    }
  }
  outcome_.warnings = std::move(warnings_);
  return std::move(outcome_);
}

// The section that the profile names as its session.
bool Portal::is_sound() {
  if (session_.empty()) return true;
  const ProfileFile& config = profile_.config;
  if (!config.has(kSession, session_)) {
    return blocked("%s names a section %q that does not exist",
                   profile_.find("sso_session").source, section_);
  }
  for (const Entry& entry : config.entries()) {
    if (entry.kind != kSession || entry.section != session_) continue;
    const std::string property(entry.property);
    const Setting own = profile_.find(property.c_str());
    if (own &&
        own.value != *config.find(kSession, session_, property.c_str())) {
      return blocked("%s differs from that of its sso_session: %q", own.source,
                     own.value);
    }
  }
  return true;
}

bool Portal::find_settings() {
  std::string_view region;
  const struct {
    const char* name;
    std::string_view& value;
  } settings[] = {{"sso_account_id", account_id_},
                  {"sso_role_name", role_name_},
                  {"sso_region", region},
                  {"sso_start_url", start_url_}};
  std::string missing;
  for (const auto& [name, value] : settings) {
    value = sign_on_value(profile_, session_, name);
    if (value.empty()) missing = sigv4::format("%[%s, %]%s", missing, name);
  }
  if (!missing.empty()) {
    return blocked("single sign-on of %s has no %s", place_, missing);
  }
  region_ = profile_.find("sso_region");
  if (!region_) {
    region_ = {region, sigv4::format("sso_region of section %q in %q", section_,
                                     profile_.config.path)};
  }
  return true;
}

bool Portal::find_cache() {
  const std::string& cache = search_.chain.sso_cache;
  if (cache.empty()) {
    return none(State::broken,
                "the cache of sign-ons cannot be found (HOME is not set)");
  }
  const std::string_view key = session_.empty() ? start_url_ : session_;
  std::string path = sigv4::format("%s/%s.json", cache, sha1_hex(key));
  if (sign_on_.path != path) {
    sign_on_.path.swap(path);
    sign_on_.next_refresh = {};
    sign_on_.unwritten = Secret();
  }
  return true;
}

bool Portal::find_token() {
  if (!load(token_)) return false;
  const std::int64_t now = fetch_.utc_now;
  if (token_->ends() - now > kRefreshAhead) return true;
  if (!session_.empty() && token_->can_be_refreshed(now)) return refresh();
  return token_->ends() > now || signed_off("the token has expired");
}

bool Portal::load(std::unique_ptr<Token>& token) {
  SecretFile file(sign_on_.path, kMaxJsonBytes);
  if (file.missing) return signed_off("nobody has signed on yet");
  if (!file.failure.empty()) {
    return none(State::broken, "sign-on cache %q %s", sign_on_.path,
                file.failure);
  }
  sigv4::format_to(warnings_, "%[%s\n%]", file.warning);
  token = std::make_unique<Token>(file.text);
  const char* const wrong = token->flaw();
  if (*wrong != '\0') return signed_off("the file ", wrong);
  auto unwritten = std::make_unique<Token>(sign_on_.unwritten);
  if (unwritten->ends() > token->ends()) token.swap(unwritten);
  return true;
}

// REQUIRES: the token may be refreshed.
bool Portal::refresh() {
  const bool over = token_->ends() <= fetch_.utc_now;
  if (BootClock::now() < sign_on_.next_refresh) {
    return !over || none(State::failed,
                         "the token in sign-on cache %q has expired, and a "
                         "refresh failed less than a minute ago",
                         sign_on_.path);
  }
  sign_on_.next_refresh = BootClock::now() + kRefreshPause;
  const KeyOutcome call = create_token();
  if (call.state == State::found) return true;
  // Perhaps another process came first, for each refresh token is good for
  // once: what that one has written.
  std::unique_ptr<Token> other;
  if (call.state == State::broken && load(other) &&
      other->ends() > fetch_.utc_now && other->text() != token_->text()) {
    token_.swap(other);
    return true;
  }
  if (!over) {
    sigv4::format_to(
        warnings_, "the token in sign-on cache %q could not be refreshed: %s\n",
        sign_on_.path, call.reason);
    return true;
  }
  if (call.state == State::failed) return none(call.state, "%s", call.reason);
  return signed_off("the token has expired and could not be refreshed: ",
                    call.reason);
}

KeyOutcome Portal::create_token() {
  ServiceCall call;
  call.name = "SSO OIDC CreateToken";
  call.method = Method::post;
  call.path = "/token";
  call.headers = "Content-Type: application/json\n";
  const std::string_view refresh_token = token_->member("refreshToken");
  const std::string_view client_secret = token_->member("clientSecret");
  call.body = with_texts("{}", {{"grantType", "refresh_token"},
                                {"clientId", token_->member("clientId")},
                                {"clientSecret", client_secret},
                                {"refreshToken", refresh_token}});
  call.secrets = {refresh_token, client_secret, token_->text()};
  call.take = [](void* whose, const HttpAnswer& http, std::int64_t now,
                 KeyOutcome& outcome) {
    outcome.reason = static_cast<Portal*>(whose)->take_refreshed(http, now);
  };
  call.whose = this;
  return search_.chain.services.ask(Service::sso_oidc, region_, call, fetch_);
}

const char* Portal::take_refreshed(const HttpAnswer& http, std::int64_t now) {
  constexpr std::int64_t kFar = 100LL * 366 * 86400;
  const Document document = parse_json(http.body);
  const Value answer = document.root();
  if (!answer.is_object()) return "an answer that is not a JSON object";
  const std::string_view text = answer.text("accessToken");
  if (text.empty() || !sigv4::is_visible(text))
    return "an answer without a token";
  const auto lasts = answer["expiresIn"].number().value_or(0);
  if (lasts <= 0) return "an answer that does not say when the token expires";
  const auto next = answer["refreshToken"].text();
  sign_on_.unwritten = with_texts(
      token_->file(),
      {{"accessToken", text},
       {"expiresAt", iso_time(now + std::min(lasts, kFar))},
       {"refreshToken", next.value_or(token_->member("refreshToken"))}});
  const std::string wrong =
      write_secret_file(sign_on_.path, sign_on_.unwritten);
  spent_ = std::move(token_);
  token_ = std::make_unique<Token>(sign_on_.unwritten);
  if (wrong.empty()) {
    sign_on_.unwritten = Secret();
  } else {
    sigv4::format_to(
        warnings_,
        "the refreshed token could not be written to sign-on cache %q: %s\n",
        sign_on_.path, wrong);
  }
  return "";
}

// --- The keys --------------------------------------------------------------

void Portal::ask_for_keys() {
  ServiceCall call;
  call.name = "SSO GetRoleCredentials";
  call.path = form_of("/federation/credentials?",
                      {{"account_id", account_id_}, {"role_name", role_name_}});
  append_secret(call.headers,
                {"x-amz-sso_bearer_token: ", token_->text(), "\n"});
  call.secrets = {token_->text()};
  call.take = [](void*, const HttpAnswer& http, std::int64_t now,
                 KeyOutcome& outcome) {
    outcome = keys_in(parse_json(http.body), {"roleCredentials"}, kSsoForm,
                      "the answer", now);
  };
  outcome_ = search_.chain.services.ask(Service::sso, region_, call, fetch_);
  if (outcome_.status == 401) signed_off(outcome_.reason.c_str());
  if (outcome_.state != State::found) return;
  outcome_.keys.account_id = account_id_;
  outcome_.source =
      sigv4::format("role %q of account %q by single sign-on of %s", role_name_,
                    account_id_, place_);
}

bool Portal::signed_off(const char* why, std::string_view more) {
  const bool session = !session_.empty();
  outcome_.state = State::broken;
  outcome_.reason = sigv4::format(
      "%s%s (sign-on cache %q); sign on with: aws sso login --%s %q", why, more,
      sign_on_.path, session ? "sso-session" : "profile",
      session ? session_ : profile_.name);
  return false;
}

}  // namespace

KeyOutcome keys_by_sign_on(Search& search, const Profile& profile) {
  const char* const sign =
      profile.has("sso_account_id") ? "sso_account_id" : "sso_role_name";
  if (!profile.has(sign)) return {};
  return Portal(search, profile, sign).keys();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
