// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#ifndef DDBMUTEX_NO_PROFILES
// The keys of a person who has signed on with `aws login`, as in the console.
//
// That command writes keys that are valid for 15 minutes to a cache file:
// CACHE/<SHA-256 of the profile's login_session>.json (sign_on.hpp).  For up to
// twelve hours, AWS Sign-In gives new keys in exchange for the file's refresh
// token.  The request must prove that its sender has the file's private key,
// dpopKey (dpop.hpp).
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "../text.hpp"
#include "../utc.hpp"
#include "dpop.hpp"
#include "sign_on.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr char kKeys[] = "accessToken";  // The member that holds the keys.
constexpr KeyForm kLoginForm = {kLowerCaseNames, "expiresAt", true, 1};
// In seconds.  No keys live longer, and a larger number might overflow a time.
constexpr std::int64_t kLongestLife = 10 * 86400;

class LoginSession final : private CachedSignOn {
 public:
  LoginSession(Search& search, const Setting& session)
      : CachedSignOn(search, session.source, "session"),
        session_(session.value) {}

  KeyOutcome keys();

 private:
  std::string flaw_of(const Document& file) const override;
  std::int64_t end_of(Value file) const override;
  bool can_be_refreshed(Value) const override { return true; }
  KeyOutcome request_new() override;
  KeyOutcome take_new(Value answer, std::int64_t utc_now) override;
  std::string command() const override;

  Setting region() const;

  const std::string_view session_;
  // The time to which the keys' expiry is compared.  After a refresh, this is
  // the service's time, from which the expiry was computed.
  std::int64_t now_ = fetch_.utc_now;
};

KeyOutcome LoginSession::keys() {
  if (find_token(search_.chain.login_cache, sha256_hex(session_))) {
    outcome_ = keys_in(token_->document, {kKeys}, kLoginForm, "the file", now_);
    outcome_.keys.account_id = token_->root()[kKeys].text("accountId");
    outcome_.source = place_;
  }
  return finished();
}

// Like AWS's tools, this refuses a file that lacks what a refresh needs, even
// if its keys are still valid.
std::string LoginSession::flaw_of(const Document& file) const {
  KeyOutcome keys = keys_in(file, {kKeys}, kLoginForm, "the file", now_);
  if (keys.state != State::found) return std::move(keys.reason);
  if (file.root()[kKeys].text("accountId").empty()) {
    return "no accountId in the file";
  }
  for (const char* name : {"refreshToken", "clientId", "dpopKey"}) {
    if (file.root().text(name).empty()) {
      return join({"no ", name, " in the file"});
    }
  }
  return "";
}

std::int64_t LoginSession::end_of(Value file) const {
  return parse_iso8601(file[kKeys].text("expiresAt")).value_or(0);
}

std::string LoginSession::command() const {
  if (profile_.name == "default") return "aws login";
  return join({"aws login --profile ", in_quotes(profile_.name)});
}

// The region in which the person signed on, if the file has it; else the one
// that AWS's JavaScript SDK would use.
Setting LoginSession::region() const {
  const std::string_view own = token_->member("signInRegion");
  if (!own.empty()) {
    return {own, join({"signInRegion in sign-on cache ", in_quotes(path())})};
  }
  const Setting region = profile_.find("region");
  return region ? region : search_.chain.services.region;
}

KeyOutcome LoginSession::request_new() {
  const DpopKey key(token_->member("dpopKey"));
  if (!key)
    return broken_keys(
        {"its dpopKey is no private key of P-256 in PEM, or "
         "OpenSSL's configuration (openssl.cnf) forbids it"});
  const std::string_view refresh_token = token_->member("refreshToken");
  ServiceCall call;
  call.name = "Signin CreateOAuth2Token";
  call.path = "/v1/token";
  call.body = with_texts("{}", {{"clientId", token_->member("clientId")},
                                {"grantType", "refresh_token"},
                                {"refreshToken", refresh_token}});
  call.secrets = {refresh_token};
  const auto prove = [&](const std::string& url, std::int64_t utc_now,
                         Text& headers) {
    headers += "DPoP: ";
    headers += key.proof("POST", url, utc_now);
    headers += '\n';
  };
  call.prove.emplace(prove);
  return post(Service::signin, region(), call);
}

KeyOutcome LoginSession::take_new(Value answer, std::int64_t utc_now) {
  const Value keys = answer[kKeys];
  const auto& [id, secret, token] = kLoginForm.names;
  for (const char* name : {id, secret, token}) {
    const std::string_view text = keys.text(name);
    if (text.empty() || !is_visible(text)) {
      return broken_keys({"an answer without whole keys"});
    }
  }
  const std::string_view next = answer.text("refreshToken");
  if (next.empty()) return broken_keys({"an answer without a refresh token"});
  const auto lasts = answer["expiresIn"].number().value_or(0);
  if (lasts <= 0) {
    return broken_keys({"an answer that does not say when the keys expire"});
  }
  now_ = utc_now;
  replace(with_texts(
      token_->text, {{"refreshToken", next}}, kKeys,
      {{id, keys.text(id)},
       {secret, keys.text(secret)},
       {token, keys.text(token)},
       {"expiresAt", iso_time(utc_now + std::min(lasts, kLongestLife))}}));
  return success();
}

}  // namespace

KeyOutcome keys_by_login(Search& search) {
  const Setting session = search.profile->find("login_session");
  return session ? LoginSession(search, session).keys() : KeyOutcome();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
