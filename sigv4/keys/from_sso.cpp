#ifndef DDBMUTEX_NO_PROFILES
// The keys of a role in IAM Identity Center, for whoever has signed on there.
//
// A person signs on with `aws sso login`, which leaves a token in a cache file:
// CACHE/<SHA-1 of the session's name, or of the start URL>.json (sign_on.hpp).
// The token is sent to the portal, which gives keys for it.  A session's token
// is refreshed when it runs out.
//
// If the portal refuses the token, that is a final error.  Its reason names the
// command that signs on.
#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "../http.hpp"
#include "../http_answer.hpp"
#include "../text.hpp"
#include "../utc.hpp"
#include "from_json.hpp"
#include "sign_on.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

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

class Portal final : private CachedSignOn {
 public:
  // `sign`: the property that says that there is a sign-on.
  Portal(Search& search, const Profile& profile, const char* sign)
      : CachedSignOn(search, profile.place_of(sign), "token"),
        profile_(profile),
        sign_(sign),
        session_(profile.value_of("sso_session")),
        section_(sigv4::format("sso-session %s", session_)) {}

  KeyOutcome keys();

 private:
  std::string flaw_of(const Document& file) const override;
  std::int64_t end_of(Value file) const override;
  bool can_be_refreshed(Value file) const override;
  KeyOutcome ask_for_another() override;
  std::string command() const override;

  bool is_sound();
  bool find_settings();
  // Returns what is wrong with the answer; empty if nothing is.
  const char* take_refreshed(const HttpAnswer& http, std::int64_t now);
  void ask_for_keys();
  template <class... Piece>
  bool blocked(const char* pattern, const Piece&... pieces) {
    search_.blocked = true;
    return none(State::broken, pattern, pieces...);
  }

  const Profile& profile_;
  const char* const sign_;
  const std::string_view session_;  // Empty: the older way, without sessions.
  const std::string section_;       // The session's.
  std::string_view start_url_, account_id_, role_name_;
  Setting region_;  // The session's.
};

KeyOutcome Portal::keys() {
  if (!is_sound() || !find_settings()) return std::move(outcome_);
  const std::string_view key = session_.empty() ? start_url_ : session_;
  if (find_token(search_.chain.sso_cache, sha1_hex(key))) ask_for_keys();
  return finished();
}

// The section that the profile names as its session.
bool Portal::is_sound() {
  if (session_.empty()) return true;
  const ProfileFile& config = profile_.config;
  if (!config.has(kSession, session_)) {
    return blocked("%s names a section %q that does not exist",
                   profile_.find("sso_session").source, section_);
  }
  const auto [first, end] = config.section(kSession, session_);
  for (auto entry = first; entry != end; ++entry) {
    const auto next = std::next(entry);
    if (next != end && next->property == entry->property) continue;
    const std::string_view own = profile_.value_of(entry->property);
    if (own.empty() || own == entry->value) continue;
    const Setting setting = profile_.find(std::string(entry->property).c_str());
    return blocked("%s differs from that of its sso_session: %q",
                   setting.source, setting.value);
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
    return blocked("%s: single sign-on also needs %s",
                   profile_.find(sign_).source, missing);
  }
  region_ = profile_.find("sso_region");
  if (!region_) {
    region_ = {region, sigv4::format("sso_region of section %q in %q", section_,
                                     profile_.config.path)};
  }
  return true;
}

// --- The token -------------------------------------------------------------

std::string Portal::flaw_of(const Document& file) const {
  const Value root = file.root();
  if (!root.is_object()) return "the file is not a JSON object";
  const std::string_view token = root.text("accessToken");
  if (token.empty()) return "the file has no accessToken";
  if (!sigv4::is_visible(token)) {
    return "the file has an accessToken with a character that is not visible "
           "ASCII";
  }
  return parse_iso8601(root.text("expiresAt"))
             ? ""
             : "the file has no valid expiresAt";
}

std::int64_t Portal::end_of(Value file) const {
  return parse_iso8601(file.text("expiresAt")).value_or(0);
}

bool Portal::can_be_refreshed(Value file) const {
  if (session_.empty()) return false;
  for (const char* name : {"refreshToken", "clientId", "clientSecret"}) {
    if (file.text(name).empty()) return false;
  }
  return parse_iso8601(file.text("registrationExpiresAt")).value_or(0) >
         fetch_.utc_now;
}

std::string Portal::command() const {
  return session_.empty()
             ? sigv4::format("aws sso login --profile %q", profile_.name)
             : sigv4::format("aws sso login --sso-session %q", session_);
}

KeyOutcome Portal::ask_for_another() {
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
  call.secrets = {refresh_token, client_secret, token_->member("accessToken")};
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
  replace(with_texts(
      token_->text(),
      {{"accessToken", text},
       {"expiresAt", iso_time(now + std::min(lasts, kFar))},
       {"refreshToken", next.value_or(token_->member("refreshToken"))}}));
  return "";
}

// --- The keys --------------------------------------------------------------

void Portal::ask_for_keys() {
  ServiceCall call;
  call.name = "SSO GetRoleCredentials";
  call.path = form_of("/federation/credentials?",
                      {{"account_id", account_id_}, {"role_name", role_name_}});
  append_secret(
      call.headers,
      {"x-amz-sso_bearer_token: ", token_->member("accessToken"), "\n"});
  call.secrets = {token_->member("accessToken")};
  call.take = [](void*, const HttpAnswer& http, std::int64_t now,
                 KeyOutcome& outcome) {
    outcome = keys_in(parse_json(http.body), {"roleCredentials"}, kSsoForm,
                      "the answer", now);
  };
  outcome_ = search_.chain.services.ask(Service::sso, region_, call, fetch_);
  if (outcome_.status == 401) signed_off(std::string(outcome_.reason));
  if (outcome_.state != State::found) return;
  outcome_.keys.account_id = account_id_;
  outcome_.source =
      sigv4::format("role %q of account %q by single sign-on of %s", role_name_,
                    account_id_, place_);
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
