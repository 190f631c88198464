// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

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
#include <string>
#include <string_view>
#include <utility>

#include "../text.hpp"
#include "../utc.hpp"
#include "sign_on.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr KeyForm kSsoForm = {kLowerCaseNames, "expiration", true, 1000};
constexpr char kSession[] = "sso-session";  // The kind of its section.

class Portal final : private CachedSignOn {
 public:
  // `sign`: the property that shows that the profile uses a sign-on.
  Portal(Search& search, const char* sign)
      : CachedSignOn(search, search.profile->place_of(sign), "token"),
        sign_(sign),
        session_(profile_.value_of("sso_session")),
        section_(join({kSession, " ", session_})) {}

  KeyOutcome keys();

 private:
  std::string flaw_of(const Document& file) const override;
  std::int64_t end_of(Value file) const override;
  bool can_be_refreshed(Value file) const override;
  KeyOutcome request_new() override;
  KeyOutcome take_new(Value answer, std::int64_t utc_now) override;
  std::string command() const override;

  bool is_sound();
  bool find_settings();
  void ask_for_keys();
  bool blocked(Pieces reason) {
    search_.blocked = true;
    return none(State::broken, reason);
  }

  const char* const sign_;
  const std::string_view session_;  // Empty: the older way, without sessions.
  const std::string section_;       // The session's.
  std::string_view start_url_, account_id_, role_name_;
  Setting region_;  // The session's.
};

KeyOutcome Portal::keys() {
  if (!is_sound() || !find_settings()) return std::move(outcome_);
  const std::string_view key = session_.empty() ? start_url_ : session_;
  const std::string file = sha1_hex(key);
  if (file.empty()) {
    blocked(
        {profile_.find(sign_).source,
         ": OpenSSL computes no SHA-1, by which the sign-on's cache file is "
         "named; see OpenSSL's configuration (openssl.cnf)"});
    return std::move(outcome_);
  }
  if (find_token(search_.chain.sso_cache, file)) ask_for_keys();
  return finished();
}

// Blocked if the profile's session has no section, or if the two differ.
bool Portal::is_sound() {
  if (session_.empty()) return true;
  const ProfileFile& config = profile_.config;
  if (!config.has(kSession, session_)) {
    return blocked({profile_.find("sso_session").source, " names a section ",
                    in_quotes(section_), " that does not exist"});
  }
  for (const Entry& entry : config.entries()) {
    if (entry.kind != kSession || entry.section != session_) continue;
    const std::string property(entry.property);
    const Setting own = profile_.find(property.c_str());
    const auto* counts = config.find(kSession, session_, property);
    if (!own || own.value == *counts) continue;
    return blocked({own.source, " differs from that of its sso_session: ",
                    in_quotes(own.value)});
  }
  return true;
}

bool Portal::find_settings() {
  std::string missing;
  // The profile's own, or else its session's.
  const auto setting = [&](const char* name) {
    std::string_view value = profile_.value_of(name);
    const auto* others = profile_.config.find(kSession, session_, name);
    if (value.empty() && others != nullptr) value = *others;
    if (value.empty()) append(missing, {missing.empty() ? "" : ", ", name});
    return value;
  };
  account_id_ = setting("sso_account_id");
  role_name_ = setting("sso_role_name");
  const std::string_view region = setting("sso_region");
  start_url_ = setting("sso_start_url");
  if (!missing.empty()) {
    return blocked(
        {profile_.find(sign_).source, ": single sign-on also needs ", missing});
  }
  region_ = profile_.find("sso_region");
  if (!region_) {
    region_ = {region, join({"sso_region of section ", in_quotes(section_),
                             " in ", in_quotes(profile_.config.path)})};
  }
  return true;
}

// --- The token -------------------------------------------------------------

std::string Portal::flaw_of(const Document& file) const {
  const Value root = file.root();
  if (!root.is_object()) return "the file is not a JSON object";
  const std::string_view token = root.text("accessToken");
  if (token.empty()) return "the file has no accessToken";
  if (!is_visible(token)) {
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
  const bool by_profile = session_.empty();
  return join({"aws sso login --", by_profile ? "profile " : "sso-session ",
               in_quotes(by_profile ? profile_.name : session_)});
}

KeyOutcome Portal::request_new() {
  ServiceCall call;
  call.name = "SSO OIDC CreateToken";
  call.path = "/token";
  const std::string_view refresh_token = token_->member("refreshToken");
  const std::string_view client_secret = token_->member("clientSecret");
  call.body = with_texts("{}", {{"grantType", "refresh_token"},
                                {"clientId", token_->member("clientId")},
                                {"clientSecret", client_secret},
                                {"refreshToken", refresh_token}});
  call.secrets = {refresh_token, client_secret, token_->member("accessToken")};
  return post(Service::sso_oidc, region_, call);
}

KeyOutcome Portal::take_new(Value answer, std::int64_t utc_now) {
  constexpr std::int64_t kFar = 100LL * 366 * 86400;
  if (!answer.is_object()) {
    return broken_keys({"an answer that is not a JSON object"});
  }
  const std::string_view text = answer.text("accessToken");
  if (text.empty() || !is_visible(text)) {
    return broken_keys({"an answer without a token"});
  }
  const auto lasts = answer["expiresIn"].number().value_or(0);
  if (lasts <= 0) {
    return broken_keys({"an answer that does not say when the token expires"});
  }
  const auto next = answer["refreshToken"].text();
  replace(with_texts(
      token_->text,
      {{"accessToken", text},
       {"expiresAt", iso_time(utc_now + std::min(lasts, kFar))},
       {"refreshToken", next.value_or(token_->member("refreshToken"))}}));
  return success();
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
  outcome_ = search_.chain.services.ask(
      Service::sso, region_, call, fetch_,
      [](const HttpAnswer& http, std::int64_t utc_now) {
        return keys_in(parse_json(http.body), {"roleCredentials"}, kSsoForm,
                       "the answer", utc_now);
      });
  if (outcome_.status == 401) signed_off({outcome_.reason});
  if (outcome_.state != State::found) return;
  outcome_.keys.account_id = account_id_;
  outcome_.source =
      join({"role ", in_quotes(role_name_), " of account ",
            in_quotes(account_id_), " by single sign-on of ", place_});
}

}  // namespace

KeyOutcome keys_by_sign_on(Search& search) {
  for (const char* sign : {"sso_account_id", "sso_role_name"}) {
    if (search.profile->has(sign)) return Portal(search, sign).keys();
  }
  return {};
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
