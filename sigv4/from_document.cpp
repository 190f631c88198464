#include "from_document.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

using State = KeyOutcome::State;

constexpr const char* kId = "AccessKeyId";
constexpr const char* kSecret = "SecretAccessKey";
constexpr const char* kExpiration = "Expiration";
constexpr const char* kAccount = "AccountId";

// Why the document has not the members it must have; empty if it has.
std::string lack_of(const JsonObject& document, const KeyForm& form) {
  const struct {
    const char* name;
    bool needed;
  } members[] = {{kId, true},
                 {kSecret, true},
                 {form.token, form.must_end},
                 {kExpiration, form.must_end}};
  for (const auto& member : members) {
    if (!document.has(member.name) && member.needed) {
      return std::string("no ") + member.name + " in ";
    }
    if (document.has(member.name) && !document.text(member.name)) {
      return std::string(member.name) + " is not a string in ";
    }
    if (member.needed && document.text(member.name)->empty()) {
      return std::string(member.name) + " is empty in ";
    }
  }
  return "";
}

bool is_account(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c >= '0' && c <= '9';
  });
}

}  // namespace

KeyOutcome keys_in_document(const JsonObject& document, const KeyForm& form,
                            const std::string& place, std::int64_t now) {
  const std::string lack = lack_of(document, form);
  if (!lack.empty()) return broken_keys(lack + place);
  Credentials keys;
  keys.access_key_id = *document.text(kId);
  keys.secret_access_key = *document.text(kSecret);
  keys.session_token = document.text(form.token).value_or("");
  KeyOutcome outcome =
      judged(std::move(keys), place, {kId, kSecret, form.token});
  if (outcome.state != State::found) return outcome;
  if (const auto account = document.text(kAccount)) {
    if (is_account(*account)) {
      outcome.keys.account_id = *account;
    } else {
      outcome.warnings.push_back("AccountId in " + place +
                                 " is not an account's number: left out");
    }
  }
  const auto expiration = document.text(kExpiration);
  if (!expiration) return outcome;
  const auto expires = parse_iso8601(*expiration);
  if (!expires) {
    return broken_keys("Expiration is no time of ISO 8601 with a zone in " +
                       place);
  }
  outcome.ends = ends_at(*expires, now);
  return outcome;
}

std::int64_t utc_now(const Fetch& fetch, BootTime began) {
  return fetch.utc_now + std::chrono::duration_cast<std::chrono::seconds>(
                             BootClock::now() - began)
                             .count();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
