#include "credentials.hpp"

#include <algorithm>
#include <utility>

#include "../text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

// Not inline: they are long, and used in many places.
KeyOutcome::KeyOutcome() = default;
KeyOutcome::KeyOutcome(const KeyOutcome& other) : KeyOutcome() {
  *this = other;
}
KeyOutcome::KeyOutcome(KeyOutcome&& other) noexcept : KeyOutcome() {
  *this = std::move(other);
}
KeyOutcome& KeyOutcome::operator=(const KeyOutcome&) = default;
KeyOutcome& KeyOutcome::operator=(KeyOutcome&&) noexcept = default;
KeyOutcome::~KeyOutcome() = default;

KeyOutcome found_none(State state, const char* pattern, unsigned kinds, ...) {
  KeyOutcome outcome;
  outcome.state = state;
  std::va_list pieces;
  va_start(pieces, kinds);
  append_pieces(outcome.reason, pattern, kinds, pieces);
  va_end(pieces);
  return outcome;
}

BootTime ends_at(std::int64_t expires, std::int64_t now) {
  constexpr std::int64_t kFar = 100LL * 366 * 86400;  // Also says: no overflow.
  if (expires > now + kFar) return BootTime::max();
  expires = std::max(expires, now - kFar);
  return BootClock::now() + std::chrono::seconds(expires - now - 1);
}

KeyOutcome judged(const KeyTexts& keys, std::string_view place,
                  const KeyNames& names) {
  const bool lacks_id = keys.id.empty(), lacks_secret = keys.secret.empty();
  if (lacks_id && lacks_secret) {
    return no_keys("no %s in %s", names.id, place);
  }
  if (lacks_id || lacks_secret) {
    return broken_keys("%s without %s in %s",
                       lacks_id ? names.secret : names.id,
                       lacks_id ? names.id : names.secret, place);
  }
  // All three go into headers or next to them: a line break there would be a
  // header of its own.
  const char* const unfit = !sigv4::is_visible(keys.id)       ? names.id
                            : !sigv4::is_visible(keys.secret) ? names.secret
                            : !sigv4::is_visible(keys.token)  ? names.token
                                                              : nullptr;
  if (unfit != nullptr) {
    const std::string_view text = unfit == names.id       ? keys.id
                                  : unfit == names.secret ? keys.secret
                                                          : keys.token;
    const bool breaks = text.find_first_of("\r\n") != text.npos;
    return broken_keys(
        "%s in %s has %s", unfit, place,
        breaks ? "a line break" : "a character that is not visible ASCII");
  }
  KeyOutcome outcome;
  outcome.state = State::found;
  outcome.keys.access_key_id = keys.id;
  outcome.keys.secret_access_key = keys.secret;
  outcome.keys.session_token = keys.token;
  outcome.keys.account_id = keys.account_id;
  outcome.source = place;
  return outcome;
}

KeyOutcome keys_of_options(const KeyTexts& keys, std::string_view place) {
  return judged(keys, place,
                {"access_key_id", "secret_access_key", "session_token"});
}

KeyOutcome environment_keys(const Environment& environment) {
  const KeyNames names = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                          "AWS_SESSION_TOKEN"};
  const Secret secret = environment(names.secret);
  const Secret token = environment(names.token);
  KeyOutcome outcome = judged(
      {environment(names.id), secret, token, environment("AWS_ACCOUNT_ID")},
      "the environment", names);
  if (outcome.state == State::none && ignores_environment()) {
    outcome.reason = kIgnoredEnvironment;
  }
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
