// Where keys come from.
//
// A source is asked for keys and gives them, or says why it has none, or that
// it is set up wrong.  Sources are asked in an order; one that is set up wrong,
// or cannot be reached, ends the search, for going on would sign as somebody
// else than was meant.  keys.hpp asks, keeps what was found and asks again
// before it runs out.
//
// Here are the sources that ask nobody: keys that are given, or in the
// environment.  from_*.hpp have the others.
//
// Texts name variables, fields, files and profiles, never what a key holds.
#ifndef DDBMUTEX_SIGV4_CREDENTIALS_HPP
#define DDBMUTEX_SIGV4_CREDENTIALS_HPP

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../boot_clock.hpp"
#include "../settings.hpp"
#include "../sigv4.hpp"
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
    none,    // Not here: `reason` says why it was passed over.
    failed,  // Here, but not to be had now: try again.
    broken,  // Here, but wrong: `reason` says what.
  };
  State state = State::none;
  // Of a server that was asked: the last answer's, 0 if there was none; and
  // that nobody has answered, though there was the time for it.
  int status = 0;
  bool absent = false;
  // Broken or failed for want of a region alone.
  bool lacks_region = false;
  // When they run out, and when they should be asked for again although they
  // have not.
  BootTime ends = BootTime::max();
  BootTime ask_again = BootTime::max();
  Credentials keys;    // If found.
  std::string source;  // Where they were found, for people: "the environment".
  std::string reason;  // Unless found.
  std::string region;  // Of where the keys are from, if that was asked for.
  std::string warnings;  // For people, each with a line end.
};

// The reason is a pattern with its pieces, see format().
KeyOutcome found_none(KeyOutcome::State state, const char* pattern,
                      unsigned kinds, ...);
template <class... Piece>
[[gnu::always_inline]] inline KeyOutcome not_found(KeyOutcome::State state,
                                                   const char* pattern,
                                                   const Piece&... pieces) {
  return found_none(state, pattern, kinds_of<Piece...>(), passed(pieces)...);
}
template <class... Piece>
[[gnu::always_inline]] inline KeyOutcome no_keys(const char* pattern,
                                                 const Piece&... pieces) {
  return not_found(KeyOutcome::State::none, pattern, pieces...);
}
template <class... Piece>
[[gnu::always_inline]] inline KeyOutcome failed_keys(const char* pattern,
                                                     const Piece&... pieces) {
  return not_found(KeyOutcome::State::failed, pattern, pieces...);
}
template <class... Piece>
[[gnu::always_inline]] inline KeyOutcome broken_keys(const char* pattern,
                                                     const Piece&... pieces) {
  return not_found(KeyOutcome::State::broken, pattern, pieces...);
}

// What a source is told when it is asked.
struct Fetch {
  BootTime deadline;
  Waker& stop;  // Once woken, there is nobody to wait for the keys.
  // Seconds since 1970, as well as it is known: by DynamoDB's clock once that
  // has been heard, else by the host's calendar.
  std::int64_t utc_now;
  // Told, for people, of each source that is passed over and of each that is
  // asked and may take its time, for who waits meanwhile; may be null.
  void (*tell)(void* whom, const std::string& what) = nullptr;
  void* whom = nullptr;
  BootTime began = BootClock::now();

  // What utc_now has become.
  std::int64_t now() const {
    return utc_now + (BootClock::now() - began) / std::chrono::seconds(1);
  }

  void say(const std::string& what) const {
    if (tell != nullptr) tell(whom, what);
  }
};

// On the boot clock, if it is `now` by the clock that `expires` was said by.  A
// second early: a Date has no fractions, so `now` may be that late.
BootTime ends_at(std::int64_t expires, std::int64_t now);

// Remembers no keys.  One thread at a time asks.
class KeySource {
 public:
  virtual ~KeySource() = default;
  // May take until the deadline, but ends soon when told to stop.
  virtual KeyOutcome fetch(const Fetch& fetch) = 0;
  // What fetch() gives, if nobody has to be asked for it, nor a file read; else
  // null.  Any thread.
  virtual const KeyOutcome* at_hand() const { return nullptr; }
};
using KeySourcePtr = std::shared_ptr<KeySource>;

// The three as they are, and whose they are, if that is known.
struct KeyTexts {
  std::string_view id;
  std::string_view secret;
  std::string_view token{};
  std::string_view account_id{};
};

// Key ID, secret and token as one may write them down.  Half a pair is broken,
// whichever half (botocore: only an ID without a secret, the rest is passed
// over), and so is a key with a blank or control character, or one that is
// not ASCII.
KeyOutcome keys_of_options(const KeyTexts& keys,
                           std::string_view place = "the options");

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if set, AWS_SESSION_TOKEN and
// AWS_ACCOUNT_ID, as they are now.  Empty counts as unset.  Half a pair is
// broken; a token alone is passed over.
KeyOutcome environment_keys(
    const Environment& environment = process_environment);

// How a place calls the three.
struct KeyNames {
  const char* id = "AccessKeyId";
  const char* secret = "SecretAccessKey";
  const char* token = "Token";
};

// `keys` as they were found at `place` ("the options"), if they are whole and
// fit for a header.
KeyOutcome judged(const KeyTexts& keys, std::string_view place,
                  const KeyNames& names = KeyNames());

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_CREDENTIALS_HPP
