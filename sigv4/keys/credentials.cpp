// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The outcome of asking a source, and the sources options and environment.
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

KeyOutcome not_found(State state, Pieces reason) {
  KeyOutcome outcome;
  outcome.state = state;
  outcome.reason = join(reason);
  return outcome;
}

BootTime ends_at(std::int64_t expires, std::int64_t now) {
  // A century, so that the sum below cannot overflow.
  constexpr std::int64_t kFar = 100LL * 366 * 86400;
  if (expires > now + kFar) return BootTime::max();
  expires = std::max(expires, now - kFar);
  return BootClock::now() + std::chrono::seconds(expires - now - 1);
}

KeyOutcome judged(const KeyTexts& keys, std::string_view place,
                  const KeyNames& names) {
  const bool lacks_id = keys.id.empty(), lacks_secret = keys.secret.empty();
  if (lacks_id && lacks_secret) {
    return no_keys({"no ", names.id, " in ", place});
  }
  if (lacks_id || lacks_secret) {
    return broken_keys({lacks_id ? names.secret : names.id, " without ",
                        lacks_id ? names.id : names.secret, " in ", place});
  }
  const std::pair<const char*, std::string_view> parts[] = {
      {names.id, keys.id},
      {names.secret, keys.secret},
      {names.token, keys.token}};
  // All three go into headers or next to them: a line break there would be a
  // header of its own.
  for (const auto& [name, text] : parts) {
    if (is_visible(text)) continue;
    const bool breaks = text.find_first_of("\r\n") != text.npos;
    return broken_keys(
        {name, " in ", place, " has ",
         breaks ? "a line break" : "a character that is not visible ASCII",
         comment_hint(text)});
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
