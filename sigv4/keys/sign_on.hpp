// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A sign-on (a token or keys) that AWS's tools keep in a cache file, for all
// programs of a user: `aws sso login` (from_sso.cpp) and `aws login`
// (from_login.cpp) write one.
//
// The file is a JSON object, and is read anew each time.  A sign-on that has
// expired, or will within five minutes, is refreshed if the file has what that
// needs.  It is written back, because AWS's tools use the same file.  One
// process or thread refreshes it at a time.  The others use the old sign-on
// until it expires, and then wait.  After a failed refresh, the next one waits
// for a minute.
//
// A sign-on that has expired and cannot be refreshed is a final error.  The
// error names the file and the command that signs on.
#ifndef DDBMUTEX_SIGV4_SIGN_ON_HPP
#define DDBMUTEX_SIGV4_SIGN_ON_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "../json.hpp"
#include "sources.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// The content of a cache file.  Views of it live as long as this.
struct CachedToken {
  explicit CachedToken(std::string_view file)
      : text(file), document(std::string(file)) {}

  Value root() const { return document.root(); }
  std::string_view member(const char* name) const { return root().text(name); }

  const Secret text;
  const Document document;
};

// One search for keys by way of a sign-on.
class CachedSignOn {
 public:
  CachedSignOn(const CachedSignOn&) = delete;
  CachedSignOn& operator=(const CachedSignOn&) = delete;

 protected:
  // For error messages: `place` is where the profile asks for the sign-on,
  // `noun` is what the file holds ("token").
  CachedSignOn(Search& search, std::string place, const char* noun)
      : search_(search), place_(std::move(place)), noun_(noun) {}
  ~CachedSignOn() = default;

  // Why the file holds no sign-on, as a sentence without a full stop; empty if
  // it holds one.
  virtual std::string flaw_of(const Document& file) const = 0;
  // When it expires, in seconds since 1970; 0 if the file does not say.
  virtual std::int64_t end_of(Value file) const = 0;
  virtual bool can_be_refreshed(Value file) const = 0;
  // Requests a new sign-on with what token_ holds, by post().
  virtual KeyOutcome request_new() = 0;
  // Hands the new sign-on in the answer to replace(), or says what is wrong
  // with the answer.  `utc_now`: by the service's clock.
  virtual KeyOutcome take_new(Value answer, std::int64_t utc_now) = 0;
  // The command line with which a person signs on.
  virtual std::string command() const = 0;

  // Sets token_ to a sign-on that has not expired.  Returns false if there is
  // none; outcome_ then says why.
  bool find_token(const std::string& cache, std::string_view name);
  // Posts the call with a JSON body, and uses the sign-on in the answer.
  KeyOutcome post(Service service, const Setting& region, ServiceCall& call);
  // Makes `text`, a whole cache file, the sign-on, and writes it to the file.
  void replace(std::string&& text);
  // Sets outcome_ to why there are no keys.  Returns false, so that the caller
  // can return that.
  bool none(KeyOutcome::State state, Pieces reason);
  // The same if a person has to sign on: the reason names the command.
  bool signed_off(Pieces why);
  const std::string& path() const { return memory_.path; }  // The file's.
  // The outcome, with `place` before its reason, and all warnings.
  KeyOutcome finished();

  Search& search_;
  const Fetch& fetch_ = search_.fetch;
  const Profile& profile_ = *search_.profile;
  const std::string place_;
  std::unique_ptr<CachedToken> token_;
  KeyOutcome outcome_;

 private:
  bool find_file(const std::string& cache, std::string_view name);
  bool load(std::unique_ptr<CachedToken>& token);
  std::int64_t seconds_left() const;
  bool is_to_be_refreshed() const;
  bool has_not_ended();
  bool refresh();
  // REQUIRES: a refresh was just refused.
  bool take_from_another_process();
  // "the token in sign-on cache "..."", for error messages.
  std::string the_cached() const;

  const char* const noun_;
  SignOn& memory_ = search_.chain.sign_on;
  // The token that replace() replaced: the request in flight has views of it.
  std::unique_ptr<CachedToken> spent_;
  std::string warnings_;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SIGN_ON_HPP
