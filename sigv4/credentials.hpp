// Where keys come from.
//
// A source is asked for keys and gives them, or says why it has none, or that
// it is set up wrong.  Sources are asked in an order; one that is set up wrong
// ends the search, for going on would sign as somebody else than was meant.
//
// Texts name variables, fields, files and profiles, never what a key holds.
#ifndef DDBMUTEX_SIGV4_CREDENTIALS_HPP
#define DDBMUTEX_SIGV4_CREDENTIALS_HPP

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "sigv4/profile.hpp"
#include "sigv4/sigv4.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct KeyOutcome {
  enum class State {
    found,
    none,    // Not here: `reason` says why it was passed over.
    broken,  // Here, but wrong: `reason` says what.
  };
  State state = State::none;
  Credentials keys;    // If found.
  std::string reason;  // Unless found.
};

// Asked anew each time; remembers nothing (but see cached()).  Any thread may
// ask, if the environment may be read meanwhile.
using KeySource = std::function<KeyOutcome()>;

// Key ID, secret and token as one may write them down.  Half a pair is broken,
// whichever half (botocore: only an ID without a secret, the rest is passed
// over), and so is a key with a blank or control character, or one that is
// not ASCII.
KeySource given_keys(Credentials keys);

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if set, AWS_SESSION_TOKEN.
// Empty counts as unset.  Half a pair is broken; a token alone is passed over.
KeySource environment_keys(Environment environment = process_environment);

// aws_access_key_id, aws_secret_access_key and, if there, aws_session_token
// of a profile.  All are taken from one file: from the credentials file if
// that has either key, else from the config file.  Broken, too: an unusable
// file; a profile that was asked for by name and does not exist; one that
// wants a role assumed, for its own keys would be another identity.  Reads the
// files each time, some 10 us: for many requests, put cached() before it.
KeySource profile_keys(ProfileOptions options,
                       Environment environment = process_environment);

// The first that has keys, or is broken; else none, with all their reasons.
KeySource first_of(std::vector<KeySource> sources);

// Asks `source` only if what it found last was found `age` ago or longer, on
// the boot clock.  An outcome other than found is not kept: the next caller
// asks again.  While one thread asks, others that need an answer wait for its
// outcome, whichever it is, so none waits longer than the source takes.  Copies
// share what is kept.
KeySource cached(KeySource source, std::chrono::seconds age);

struct KeyOptions {
  Credentials keys;        // Empty: look elsewhere.
  ProfileOptions profile;  // One that is named here goes before the
                           // environment's keys, as with AWS's tools.
};

// Those given, the environment's, the profile's.
KeySource usual_keys(const KeyOptions& options,
                     Environment environment = process_environment);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_CREDENTIALS_HPP
