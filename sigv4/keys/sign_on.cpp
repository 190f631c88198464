// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#ifndef DDBMUTEX_NO_PROFILES
// How a cached sign-on is found: read the file, refresh what has nearly
// expired (one process at a time), write it back.
#include "sign_on.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "../text.hpp"
#include "../waiting.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

constexpr std::int64_t kRefreshAhead = 5 * 60;  // Seconds before it expires.
constexpr std::chrono::seconds kRefreshPause{60};
// How long another process may take to refresh the same sign-on, and how often
// it is checked whether it has.
constexpr std::chrono::seconds kRefreshPatience{10};
constexpr std::chrono::milliseconds kRefreshLook{20};

// A refresh token may be good for one use only, so one process at a time
// refreshes what is in a folder.  The lock is on the folder itself, so that no
// file is left behind.  If the folder cannot be locked, a process refreshes
// without the lock, as AWS's tools do.
class RefreshLock {
 public:
  explicit RefreshLock(const std::string& path)
      : fd_(open(path.substr(0, path.rfind('/') + 1).c_str(),
                 O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}
  // Unlocks, because close() does not if a forked child has the descriptor too.
  ~RefreshLock() {
    if (fd_ < 0) return;
    flock(fd_, LOCK_UN);
    close(fd_);
  }
  RefreshLock(const RefreshLock&) = delete;
  RefreshLock& operator=(const RefreshLock&) = delete;

  // False if another process or thread holds it.
  bool try_lock() {
    return flock(fd_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
  }
  // True once it is locked, or if its holder seems to be stuck.  False if the
  // fetch has to end before that.
  bool await(const Fetch& fetch) {
    const BootTime patience = BootClock::now() + kRefreshPatience;
    const BootTime until = std::min(fetch.deadline, patience);
    while (!try_lock()) {
      const BootTime now = BootClock::now();
      if (fetch.stop.woken()) return false;
      if (now >= until) return until == patience;
      sigv4::wait_until(std::min(until, now + kRefreshLook), &fetch.stop);
    }
    return true;
  }

 private:
  const int fd_;
};

}  // namespace

bool CachedSignOn::find_token(const std::string& cache, std::string_view name) {
  if (!find_file(cache, name) || !load(token_)) return false;
  if (!is_to_be_refreshed()) return has_not_ended();
  RefreshLock lock(memory_.path);
  if (!lock.try_lock()) {  // Another process refreshes it.
    if (seconds_left() > 0) return true;
    if (!lock.await(fetch_)) {
      return none(State::failed, {"another process refreshes ", the_cached()});
    }
  }
  // Before the lock was held, another process may have refreshed it.
  if (!load(token_)) return false;
  return is_to_be_refreshed() ? refresh() : has_not_ended();
}

std::int64_t CachedSignOn::seconds_left() const {
  return end_of(token_->root()) - fetch_.utc_now;
}

bool CachedSignOn::is_to_be_refreshed() const {
  return seconds_left() <= kRefreshAhead && can_be_refreshed(token_->root());
}

bool CachedSignOn::has_not_ended() {
  return seconds_left() > 0 || signed_off({"the ", noun_, " has expired"});
}

bool CachedSignOn::find_file(const std::string& cache, std::string_view name) {
  if (cache.empty()) {
    return none(State::broken, {"the cache of sign-ons cannot be found (",
                                why_no_home(), ")"});
  }
  const std::string path = join({cache, "/", name, ".json"});
  if (memory_.path != path) {
    memory_ = SignOn();
    memory_.path = path;
  }
  return true;
}

bool CachedSignOn::load(std::unique_ptr<CachedToken>& token) {
  const SecretFile file(memory_.path, kMaxJsonBytes);
  if (file.missing) return signed_off({"nobody has signed on yet"});
  if (!file.failure.empty()) {
    return signed_off({"the file ", file.failure});
  }
  if (warnings_.find(file.warning) == warnings_.npos) {
    append(warnings_, {file.warning, "\n"});
  }
  token = std::make_unique<CachedToken>(file.text);
  const std::string flaw = flaw_of(token->document);
  if (!flaw.empty()) return signed_off({flaw});
  auto unwritten = std::make_unique<CachedToken>(memory_.unwritten);
  if (end_of(unwritten->root()) > end_of(token->root())) token.swap(unwritten);
  return true;
}

// REQUIRES: the token can be refreshed.
bool CachedSignOn::refresh() {
  const bool over = seconds_left() <= 0;
  if (BootClock::now() < memory_.next_refresh) {
    return !over ||
           none(State::failed, {the_cached(),
                                " has expired, and a refresh failed less "
                                "than a minute ago"});
  }
  const KeyOutcome call = request_new();
  if (call.state == State::found) return true;
  memory_.next_refresh = BootClock::now() + kRefreshPause;
  if (call.state == State::broken && take_from_another_process()) return true;
  if (!over) {
    append(warnings_,
           {the_cached(), " could not be refreshed: ", call.reason, "\n"});
    return true;
  }
  if (call.state == State::failed) return none(call.state, {call.reason});
  return signed_off({"the ", noun_,
                     " has expired and could not be refreshed: ", call.reason});
}

KeyOutcome CachedSignOn::post(Service service, const Setting& region,
                              ServiceCall& call) {
  call.method = Method::post;
  call.headers = "Content-Type: application/json\n";
  return search_.chain.services.ask(
      service, region, call, fetch_,
      [this](const HttpAnswer& http, std::int64_t utc_now) {
        const Document document = parse_json(http.body);
        return take_new(document.root(), utc_now);
      });
}

// AWS's tools do not take the lock.  If one of them used the refresh token
// first, it has written a new sign-on.
bool CachedSignOn::take_from_another_process() {
  std::unique_ptr<CachedToken> other;
  if (!load(other) || other->text == token_->text ||
      end_of(other->root()) <= fetch_.utc_now) {
    return false;
  }
  token_.swap(other);
  return true;
}

void CachedSignOn::replace(std::string&& text) {
  memory_.unwritten = std::move(text);
  const std::string wrong = write_secret_file(memory_.path, memory_.unwritten);
  spent_ = std::move(token_);
  token_ = std::make_unique<CachedToken>(memory_.unwritten);
  if (wrong.empty()) {
    memory_.unwritten = Secret();
  } else {
    append(warnings_,
           {"the refreshed ", noun_, " could not be written to sign-on cache ",
            in_quotes(memory_.path), ": ", wrong, "\n"});
  }
}

bool CachedSignOn::none(State state, Pieces reason) {
  outcome_.state = state;
  outcome_.reason = join(reason);
  return false;
}

bool CachedSignOn::signed_off(Pieces why) {
  return none(State::broken,
              {join(why), " (sign-on cache ", in_quotes(memory_.path),
               "); sign on with: ", command()});
}

std::string CachedSignOn::the_cached() const {
  return join({"the ", noun_, " in sign-on cache ", in_quotes(memory_.path)});
}

KeyOutcome CachedSignOn::finished() {
  if (outcome_.state != State::found) {
    outcome_.reason = join({place_, ": ", outcome_.reason});
  }
  outcome_.warnings = std::move(warnings_);
  return std::move(outcome_);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
