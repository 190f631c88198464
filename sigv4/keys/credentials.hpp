// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Where keys come from.
//
// A source gives keys, or a reason why it has none.  Sources are asked one
// after the other (from_all.hpp).  One that is misconfigured or does not answer
// ends the search, because otherwise requests might be signed as somebody else
// than was meant.  keys.hpp keeps the keys and fetches them again before they
// expire.
//
// The sources that only read memory are defined here: the options and the
// environment.  from_*.cpp have the others.
//
// Texts name variables, fields, files and profiles, never what a key holds.
#ifndef DDBMUTEX_SIGV4_CREDENTIALS_HPP
#define DDBMUTEX_SIGV4_CREDENTIALS_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "../boot_clock.hpp"
#include "../function_ref.hpp"
#include "../settings.hpp"
#include "../sigv4.hpp"
#include "../text.hpp"
#include "../waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct KeyOutcome {
  KeyOutcome();
  KeyOutcome(const KeyOutcome&);
  KeyOutcome(KeyOutcome&&) noexcept;
  KeyOutcome& operator=(const KeyOutcome&);
  KeyOutcome& operator=(KeyOutcome&&) noexcept;
  ~KeyOutcome();

  enum class State {
    found,
    none,    // The source is not configured, or has no keys.
    failed,  // The source has no keys now: try again.
    broken,  // The source is misconfigured, or refuses.
  };
  State state = State::none;
  // The last HTTP status of a server that was asked; 0 if there was none.
  int status = 0;
  bool absent = false;  // No server has answered, although there was time.
  // Broken or failed only because no region is known.
  bool lacks_region = false;
  BootTime ends = BootTime::max();       // When the keys expire.
  BootTime ask_again = BootTime::max();  // When to look for newer keys.
  Credentials keys;                      // If found.
  std::string source;  // Where they were found, for people: "the environment".
  std::string reason;  // Unless found.
  std::string region;  // The instance's, if it was asked for.
  std::string warnings;  // For people, each with a line end.
};

// Outcomes without keys: `reason` says why, for people.
// broken_keys({"no ", name, " in ", place})
KeyOutcome not_found(KeyOutcome::State state, Pieces reason);
inline KeyOutcome no_keys(Pieces reason) {
  return not_found(KeyOutcome::State::none, reason);
}
inline KeyOutcome failed_keys(Pieces reason) {
  return not_found(KeyOutcome::State::failed, reason);
}
inline KeyOutcome broken_keys(Pieces reason) {
  return not_found(KeyOutcome::State::broken, reason);
}

constexpr auto kNobodyListens = [](const std::string&) {};

// What a source is told when it is asked.
struct Fetch {
  BootTime deadline;
  Waker& stop;  // Once woken, nobody waits for the keys any more.
  // Seconds since 1970: by DynamoDB's clock if it is known, else by the host's.
  std::int64_t utc_now;
  // Reports, to people who wait meanwhile, each source that is skipped, and
  // each that is asked and may be slow.
  FunctionRef<void(const std::string& what)> say = kNobodyListens;
  BootTime began = BootClock::now();

  // The present time by the clock of utc_now.
  std::int64_t now() const {
    return utc_now + (BootClock::now() - began) / std::chrono::seconds(1);
  }
};

// Converts `expires` to the boot clock.  `now` is the present time by the same
// clock as `expires`.  The result is a second early, because `now` may come
// from a Date, which has no fractions.
BootTime ends_at(std::int64_t expires, std::int64_t now);

// Remembers no keys.  REQUIRES: one thread at a time calls fetch().
class KeySource {
 public:
  virtual ~KeySource() = default;
  // May take until the deadline, but ends soon when told to stop.
  virtual KeyOutcome fetch(const Fetch& fetch) = 0;
  // What fetch() would return, if that needs neither a server nor a file; else
  // null.  May be called on any thread.
  virtual const KeyOutcome* at_hand() const { return nullptr; }
};
using KeySourcePtr = std::shared_ptr<KeySource>;

// The parts of a key, and its account if that is known.
struct KeyTexts {
  std::string_view id;
  std::string_view secret;
  std::string_view token{};
  std::string_view account_id{};
};

// The keys of the options.  `broken` if there is a key ID without a secret or a
// secret without a key ID (botocore ignores the latter), or if a text has a
// blank, a control character or a character that is not ASCII.
KeyOutcome keys_of_options(const KeyTexts& keys,
                           std::string_view place = "the options");

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if set, AWS_SESSION_TOKEN and
// AWS_ACCOUNT_ID, as they are now.  An empty variable counts as unset.
// `broken` as above; a token alone is ignored.
KeyOutcome environment_keys(
    const Environment& environment = process_environment);

// A source's names for the three parts of a key.
struct KeyNames {
  const char* id = "AccessKeyId";
  const char* secret = "SecretAccessKey";
  const char* token = "Token";
};

// The outcome of finding `keys` at `place` ("the options").  Checks that they
// are complete and can be sent in a header.
KeyOutcome judged(const KeyTexts& keys, std::string_view place,
                  const KeyNames& names = KeyNames());

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_CREDENTIALS_HPP
