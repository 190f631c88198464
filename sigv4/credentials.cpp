#include "credentials.hpp"

#include <algorithm>
#include <utility>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr KeyNames kGivenNames = {"access_key_id", "secret_access_key",
                                  "session_token"};
constexpr KeyNames kEnvironmentNames = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
constexpr KeyNames kProfileNames = {
    "aws_access_key_id", "aws_secret_access_key", "aws_session_token"};

// How long keys of a file serve before it is read again: somebody may have
// written new ones.
constexpr std::chrono::seconds kFileAge{60};

}  // namespace

// Not inline: they are long, and used in many places.
KeyOutcome::KeyOutcome() = default;
KeyOutcome::KeyOutcome(const KeyOutcome&) = default;
KeyOutcome::KeyOutcome(KeyOutcome&&) noexcept = default;
KeyOutcome& KeyOutcome::operator=(const KeyOutcome&) = default;
KeyOutcome& KeyOutcome::operator=(KeyOutcome&&) noexcept = default;
KeyOutcome::~KeyOutcome() = default;

KeyOutcome not_found(State state, std::string_view reason) {
  KeyOutcome outcome;
  outcome.state = state;
  outcome.reason = reason;
  return outcome;
}

KeyOutcome not_found(State state, std::string_view pattern, Pieces pieces) {
  return not_found(state, format(pattern, pieces));
}

BootTime ends_at(std::int64_t expires, std::int64_t now) {
  constexpr std::int64_t kFar = 100LL * 366 * 86400;  // Also says: no overflow.
  if (expires > now + kFar) return BootTime::max();
  expires = std::max(expires, now - kFar);
  return BootClock::now() + std::chrono::seconds(expires - now - 1);
}

KeyOutcome judged(Credentials keys, std::string_view place,
                  const KeyNames& names) {
  struct {
    std::string_view key;
    const char* name;
  } const parts[] = {{keys.access_key_id, names.id},
                     {keys.secret_access_key, names.secret},
                     {keys.session_token, names.token}};
  const bool lacks_id = parts[0].key.empty();
  const bool lacks_secret = parts[1].key.empty();
  if (lacks_id && lacks_secret)
    return no_keys("no %s in %s", {names.id, place});
  if (lacks_id || lacks_secret) {
    return broken_keys(
        "%s without %s in %s",
        {parts[lacks_id ? 1 : 0].name, parts[lacks_id ? 0 : 1].name, place});
  }
  for (const auto& [key, name] : parts) {
    // All three go into headers or next to them: a line break there would be a
    // header of its own.
    if (is_visible(key)) continue;
    return broken_keys("%s in %s has a character that is not visible ASCII",
                       {name, place});
  }
  KeyOutcome outcome;
  outcome.state = State::found;
  outcome.keys = std::move(keys);
  outcome.source = place;
  return outcome;
}

KeyOutcome keys_of_options(Credentials keys) {
  return judged(std::move(keys), "the options", kGivenNames);
}

KeyOutcome environment_keys(const Environment& environment) {
  Credentials keys = {
      environment(kEnvironmentNames.id), environment(kEnvironmentNames.secret),
      environment(kEnvironmentNames.token), environment("AWS_ACCOUNT_ID")};
  return judged(std::move(keys), "the environment", kEnvironmentNames);
}

KeyOutcome keys_in_file(const Profile& profile, const ProfileFile& file) {
  const std::string place =
      format("profile %q in %q", {profile.name, file.path});
  if (!file.has("profile", profile.name)) return no_keys("no %s", {place});
  const auto value = [&](const char* name) {
    const auto* found = file.find("profile", profile.name, name);
    return found != nullptr ? *found : std::string_view();
  };
  KeyOutcome outcome =
      judged({std::string(value(kProfileNames.id)), value(kProfileNames.secret),
              value(kProfileNames.token), std::string(value("aws_account_id"))},
             place, kProfileNames);
  outcome.ask_again = BootClock::now() + kFileAge;
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
