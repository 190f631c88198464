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

std::string section_of(std::string_view session) {
  return format("sso-session %s", session);
}

// What is wrong with the section that the profile names as its session; empty
// if nothing is.
std::string flaw_of_session(const Profile& profile, std::string_view name) {
  if (name.empty()) return "";
  const ProfileFile& config = profile.config;
  if (!config.has(kSession, name)) {
    return format("%s names a section %q that is not there",
                  profile.find("sso_session").source, section_of(name));
  }
  for (const Entry& entry : config.entries()) {
    if (entry.kind != kSession || entry.section != name) continue;
    const std::string property(entry.property);
    const std::string_view own = profile.value_of(property.c_str());
    if (own.empty() || own == *config.find(kSession, name, property.c_str())) {
      continue;
    }
    return profile.find(property.c_str()).source +
           " is another than in its sso_session";
  }
  return "";
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
  if (!document_.root().is_object()) return "is no JSON object";
  if (text().empty()) return "has no accessToken";
  if (!is_visible(text())) {
    return "has an accessToken with a character that is not visible ASCII";
  }
  return time("expiresAt") ? "" : "has no expiresAt that is a time";
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
        place_(profile.place_of(sign)) {}

  KeyOutcome keys();

 private:
  // Each sets what it is called for; if it cannot, why is found in outcome_.
  bool find_settings();
  bool find_cache();
  bool find_token();
  bool load(std::unique_ptr<Token>& token);
  bool refresh();
  bool take_other(const CallOutcome& call);
  CallOutcome create_token();
  // Says what is wrong with the answer; empty if all is well.
  std::string take_refreshed(const HttpAnswer& http, std::int64_t now);
  void keep(std::string_view file);
  void ask_for_keys();

  bool none(KeyOutcome outcome) {
    outcome_ = std::move(outcome);
    return false;
  }
  // That somebody has to sign on.
  bool signed_off(std::string_view why, std::string_view more = "");

  Search& search_;
  const Profile& profile_;
  const std::string_view session_;  // Empty: the older way, without sessions.
  const std::string place_;         // For people: `profile "x" in "..."`.
  std::string_view start_url_, account_id_, role_name_;
  Setting region_;  // The session's.
  SignOn& sign_on_ = search_.chain.sign_on;
  const Fetch& fetch_ = search_.fetch;
  std::unique_ptr<Token> token_;
  KeyOutcome outcome_;
  std::string warnings_;
};

KeyOutcome Portal::keys() {
  if (find_settings() && find_cache() && find_token()) ask_for_keys();
  outcome_.warnings = std::move(warnings_);
  return std::move(outcome_);
}

bool Portal::find_settings() {
  const std::string flaw = flaw_of_session(profile_, session_);
  if (!flaw.empty()) return none(blocked(search_, "%s", flaw));
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
    if (value.empty())
      format_to(missing, "%s%s", missing.empty() ? "" : ", ", name);
  }
  if (!missing.empty()) {
    return none(blocked(search_, "single sign-on of %s is without %s", place_,
                        missing));
  }
  region_ = profile_.find("sso_region");
  if (!region_) {
    region_ = {region, format("sso_region of section %q in %q",
                              section_of(session_), profile_.config.path)};
  }
  return true;
}

bool Portal::find_cache() {
  const std::string& cache = search_.chain.sso_cache;
  if (cache.empty()) {
    return none(broken_keys(
        "%s: the cache of sign-ons cannot be found (HOME is not set)", place_));
  }
  const std::string_view key = session_.empty() ? start_url_ : session_;
  std::string path = format("%s/%s.json", cache, sha1_hex(key));
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
  return token_->ends() > now || signed_off("the token has ended");
}

bool Portal::load(std::unique_ptr<Token>& token) {
  SecretFile file(sign_on_.path, kMaxJsonBytes);
  if (file.missing) return signed_off("nobody has signed on yet");
  if (!file.failure.empty()) {
    return none(broken_keys("%s: sign-on cache %q %s", place_, sign_on_.path,
                            file.failure));
  }
  if (!file.warning.empty()) format_to(warnings_, "%s\n", file.warning);
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
    return !over ||
           none(failed_keys("%s: the token in sign-on cache %q has ended, and "
                            "to refresh it was tried less than a minute ago",
                            place_, sign_on_.path));
  }
  sign_on_.next_refresh = BootClock::now() + kRefreshPause;
  const CallOutcome call = create_token();
  if (call.done() || take_other(call)) return true;
  if (!over) {
    format_to(warnings_,
              "the token in sign-on cache %q could not be refreshed: %s\n",
              sign_on_.path, call.problem);
    return true;
  }
  if (call.state == State::failed) {
    return none(without_keys(call, place_));
  }
  return signed_off("the token has ended and could not be refreshed: ",
                    call.problem);
}

// If the exchange was refused because another process came first, for each
// refresh token is good for once: what that one has written.
bool Portal::take_other(const CallOutcome& call) {
  std::unique_ptr<Token> other;
  if (call.state != State::broken || !load(other)) return false;
  if (other->ends() <= fetch_.utc_now || other->text() == token_->text()) {
    return false;
  }
  token_.swap(other);
  return true;
}

CallOutcome Portal::create_token() {
  ServiceCall call;
  call.name = "SSO OIDC CreateToken";
  call.request.method = Method::post;
  call.request.url = "/token";
  call.request.headers = "Content-Type: application/json\n";
  const std::string_view refresh_token = token_->member("refreshToken");
  const std::string_view client_secret = token_->member("clientSecret");
  call.request.body =
      with_texts("{}", {{"grantType", "refresh_token"},
                        {"clientId", token_->member("clientId")},
                        {"clientSecret", client_secret},
                        {"refreshToken", refresh_token}});
  call.secrets = {refresh_token, client_secret, token_->text()};
  auto accept = [this](const HttpAnswer& http, std::int64_t now) {
    return take_refreshed(http, now);
  };
  call.accept = accept;
  return search_.chain.services.ask(Service::sso_oidc, region_, call, fetch_);
}

std::string Portal::take_refreshed(const HttpAnswer& http, std::int64_t now) {
  constexpr std::int64_t kFar = 100LL * 366 * 86400;
  const Document document = parse_json(http.body);
  const Value answer = document.root();
  if (!answer.is_object()) return "an answer that is no JSON object";
  const std::string_view text = answer.text("accessToken");
  if (text.empty() || !is_visible(text)) return "an answer without a token";
  const auto lasts = answer["expiresIn"].number().value_or(0);
  if (lasts <= 0) return "an answer that does not tell when the token ends";
  const auto next = answer["refreshToken"].text();
  keep(Secret(with_texts(
      token_->file(),
      {{"accessToken", text},
       {"expiresAt", iso_time(now + std::min(lasts, kFar))},
       {"refreshToken", next.value_or(token_->member("refreshToken"))}})));
  return "";
}

// A file with a token that came for the one that there is.
void Portal::keep(std::string_view file) {
  token_ = std::make_unique<Token>(file);
  const std::string wrong = write_secret_file(sign_on_.path, file);
  sign_on_.unwritten = wrong.empty() ? "" : file;
  if (wrong.empty()) return;
  format_to(
      warnings_,
      "the refreshed token could not be written to sign-on cache %q: %s\n",
      sign_on_.path, wrong);
}

// --- The keys --------------------------------------------------------------

void Portal::ask_for_keys() {
  ServiceCall call;
  call.name = "SSO GetRoleCredentials";
  call.request.url =
      form_of("/federation/credentials?",
              {{"account_id", account_id_}, {"role_name", role_name_}});
  append(call.request.headers,
         {"x-amz-sso_bearer_token: ", token_->text(), "\n"});
  call.secrets = {token_->text()};
  auto accept = [this](const HttpAnswer& http, std::int64_t now) {
    outcome_ = keys_in(parse_json(http.body), {"roleCredentials"}, kSsoForm,
                       "the answer", now);
    return outcome_.reason;
  };
  call.accept = accept;
  const CallOutcome called =
      search_.chain.services.ask(Service::sso, region_, call, fetch_);
  if (called.done()) {
    outcome_.keys.account_id = std::string(account_id_);
    outcome_.source = format("role %q of account %q by single sign-on of %s",
                             role_name_, account_id_, place_);
  } else if (called.status == 401) {
    signed_off(called.problem);
  } else {
    none(without_keys(called, place_));
  }
}

bool Portal::signed_off(std::string_view why, std::string_view more) {
  const bool session = !session_.empty();
  return none(broken_keys(
      "%s: %s%s (sign-on cache %q); sign on with: aws sso login --%s %q",
      place_, why, more, sign_on_.path, session ? "sso-session" : "profile",
      session ? session_ : profile_.name));
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
