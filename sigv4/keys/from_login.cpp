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

#include "../http.hpp"
#include "../http_answer.hpp"
#include "../text.hpp"
#include "../utc.hpp"
#include "dpop.hpp"
#include "from_json.hpp"
#include "sign_on.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr char kKeys[] = "accessToken";  // The member that holds the keys.
constexpr KeyForm kLoginForm = {
    {"accessKeyId", "secretAccessKey", "sessionToken"}, "expiresAt", true, 1};
// In seconds.  No keys live so long; an absurd number would overflow the time.
constexpr std::int64_t kLongestLife = 10 * 86400;

class LoginSession final : private CachedSignOn {
 public:
  LoginSession(Search& search, const Profile& profile, const Setting& session)
      : CachedSignOn(search, session.source, "session"),
        profile_(profile),
        session_(session.value) {}

  KeyOutcome keys();

 private:
  std::string flaw_of(const Document& file) const override;
  std::int64_t end_of(Value file) const override;
  bool can_be_refreshed(Value) const override { return true; }
  KeyOutcome ask_for_another() override;
  std::string command() const override;

  Setting region() const;
  // Called back by the ServiceCall, with this object as `session`.
  static void prove(void* session, const std::string& url, std::int64_t utc_now,
                    Text& headers);
  static void take(void* session, const HttpAnswer& http, std::int64_t utc_now,
                   KeyOutcome& outcome);
  // Returns what is wrong with the answer; empty if nothing is.
  const char* take_refreshed(const HttpAnswer& http, std::int64_t now);

  const Profile& profile_;
  const std::string_view session_;
  const DpopKey* key_ = nullptr;  // Set while a refresh is in flight.
  // The time when the keys are judged: ours, or after a refresh the service's,
  // by which their expiry was computed.
  std::int64_t now_ = fetch_.utc_now;
};

KeyOutcome LoginSession::keys() {
  if (find_token(search_.chain.login_cache, sha256_hex(session_))) {
    outcome_ =
        keys_in(token_->document(), {kKeys}, kLoginForm, "the file", now_);
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
      return sigv4::format("no %s in the file", name);
    }
  }
  return "";
}

std::int64_t LoginSession::end_of(Value file) const {
  return parse_iso8601(file[kKeys].text("expiresAt")).value_or(0);
}

std::string LoginSession::command() const {
  return sigv4::format("aws login%[ --profile %q%]",
                       profile_.name == "default" ? "" : profile_.name);
}

// The region in which the person signed on, if the file has it; else the one
// that AWS's JavaScript SDK would use.
Setting LoginSession::region() const {
  const std::string_view own = token_->member("signInRegion");
  if (!own.empty()) {
    return {own, sigv4::format("signInRegion in sign-on cache %q", path())};
  }
  const Setting region = profile_.find("region");
  return region ? region : search_.chain.services.region;
}

KeyOutcome LoginSession::ask_for_another() {
  const DpopKey key(token_->member("dpopKey"));
  if (!key) return broken_keys("its dpopKey is no private key of P-256 in PEM");
  key_ = &key;
  const std::string_view refresh_token = token_->member("refreshToken");
  ServiceCall call;
  call.name = "Signin CreateOAuth2Token";
  call.method = Method::post;
  call.path = "/v1/token";
  call.headers = "Content-Type: application/json\n";
  call.body = with_texts("{}", {{"clientId", token_->member("clientId")},
                                {"grantType", "refresh_token"},
                                {"refreshToken", refresh_token}});
  call.secrets = {refresh_token};
  call.prove = prove;
  call.take = take;
  call.whose = this;
  return search_.chain.services.ask(Service::signin, region(), call, fetch_);
}

void LoginSession::prove(void* session, const std::string& url,
                         std::int64_t utc_now, Text& headers) {
  headers += "DPoP: ";
  headers +=
      static_cast<LoginSession*>(session)->key_->proof("POST", url, utc_now);
  headers += '\n';
}

void LoginSession::take(void* session, const HttpAnswer& http,
                        std::int64_t utc_now, KeyOutcome& outcome) {
  outcome.reason =
      static_cast<LoginSession*>(session)->take_refreshed(http, utc_now);
}

const char* LoginSession::take_refreshed(const HttpAnswer& http,
                                         std::int64_t now) {
  const Document document = parse_json(http.body);
  const Value answer = document.root();
  const Value keys = answer[kKeys];
  const auto& [id, secret, token] = kLoginForm.names;
  for (const char* name : {id, secret, token}) {
    const std::string_view text = keys.text(name);
    if (text.empty() || !sigv4::is_visible(text)) {
      return "an answer without whole keys";
    }
  }
  const std::string_view next = answer.text("refreshToken");
  if (next.empty()) return "an answer without a refresh token";
  const auto lasts = answer["expiresIn"].number().value_or(0);
  if (lasts <= 0) return "an answer that does not say when the keys expire";
  now_ = now;
  replace(with_texts(
      token_->text(), {{"refreshToken", next}}, kKeys,
      {{id, keys.text(id)},
       {secret, keys.text(secret)},
       {token, keys.text(token)},
       {"expiresAt", iso_time(now + std::min(lasts, kLongestLife))}}));
  return "";
}

}  // namespace

KeyOutcome keys_by_login(Search& search, const Profile& profile) {
  const Setting session = profile.find("login_session");
  if (!session) return {};
  return LoginSession(search, profile, session).keys();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
