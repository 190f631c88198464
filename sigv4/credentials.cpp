#include "sigv4/credentials.hpp"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "sigv4/boot_clock.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using State = KeyOutcome::State;

KeyOutcome none(std::string reason) {
  return {State::none, {}, std::move(reason)};
}

KeyOutcome broken(std::string reason) {
  return {State::broken, {}, std::move(reason)};
}

// How a place calls the three.
struct Names {
  const char* id;
  const char* secret;
  const char* token;
};

constexpr Names kGivenNames = {"access_key_id", "secret_access_key",
                               "session_token"};
constexpr Names kEnvironmentNames = {
    "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"};
constexpr Names kProfileNames = {"aws_access_key_id", "aws_secret_access_key",
                                 "aws_session_token"};

// All three go into headers or next to them: a line break there would be a
// header of its own.
bool is_visible(const std::string& key) {
  return std::all_of(key.begin(), key.end(),
                     [](char c) { return c > ' ' && c <= '~'; });
}

// What the three come to that were found at `place` ("the environment").
KeyOutcome judge(Credentials keys, const Names& names,
                 const std::string& place) {
  if (keys.access_key_id.empty() && keys.secret_access_key.empty()) {
    return none("no " + std::string(names.id) + " in " + place);
  }
  for (const auto& [key, name, other] :
       {std::tuple(&keys.access_key_id, names.id, names.secret),
        std::tuple(&keys.secret_access_key, names.secret, names.id)}) {
    if (!key->empty()) continue;
    return broken(std::string(other) + " without " + name + " in " + place);
  }
  for (const auto& [key, name] :
       {std::pair(&keys.access_key_id, names.id),
        std::pair(&keys.secret_access_key, names.secret),
        std::pair(&keys.session_token, names.token)}) {
    if (is_visible(*key)) continue;
    return broken(std::string(name) + " in " + place +
                  " has a character that is not visible ASCII");
  }
  return {State::found, std::move(keys), ""};
}

std::string value_of(const Properties& section, const char* name) {
  const auto found = section.find(name);
  return found == section.end() ? "" : found->second;
}

Credentials keys_in(const Properties& section) {
  return {value_of(section, kProfileNames.id),
          value_of(section, kProfileNames.secret),
          value_of(section, kProfileNames.token)};
}

bool wants_role(const Profile& profile) {
  return profile.find("role_arn") &&
         (profile.find("source_profile") || profile.find("credential_source") ||
          profile.find("web_identity_token_file"));
}

KeyOutcome keys_of(const Profile& profile) {
  if (!profile.error.empty()) return broken(profile.error);
  if (wants_role(profile)) {
    return broken(profile.described() +
                  " wants a role assumed (role_arn), which is not supported");
  }
  for (const ProfileFile* file : {&profile.credentials, &profile.config}) {
    const Properties* section = profile.in(*file);
    if (section == nullptr) continue;
    KeyOutcome outcome =
        judge(keys_in(*section), kProfileNames,
              profile.described() + " in " + in_quotes(file->path));
    if (outcome.state != State::none) return outcome;
  }
  return none("no keys in " + profile.described() + " (" +
              profile.whereabouts() + ")");
}

// What cached() remembers.
class KeyCache {
 public:
  KeyCache(KeySource source, std::chrono::seconds age)
      : source_(std::move(source)), age_(age) {}

  KeyOutcome get() {
    std::unique_lock lock(mutex_);
    if (is_fresh()) return kept_;
    if (const std::shared_ptr<Question> question = asked_) {
      answered_.wait(lock, [&] { return question->answered; });
      return question->outcome;
    }
    const auto question = asked_ = std::make_shared<Question>();
    lock.unlock();
    const End end = {*this, *question};  // Also if the source throws.
    return question->outcome = source_();
  }

 private:
  // One call of the source, and all who wait for it.
  struct Question {
    bool answered = false;  // GUARDED_BY(mutex_)
    // The asking thread's alone until it is answered, then constant.
    KeyOutcome outcome = none("asking for keys came to no end");
  };

  struct End {
    KeyCache& cache;
    Question& question;
    ~End() { cache.end(question); }
  };

  bool is_fresh() const {
    // Whole seconds: an age in nanoseconds might be too much for 64 bits.
    return kept_.state == State::found &&
           std::chrono::duration_cast<std::chrono::seconds>(BootClock::now() -
                                                            found_at_) < age_;
  }

  void end(Question& question) {
    const std::lock_guard guard(mutex_);
    question.answered = true;
    kept_ = question.outcome;
    found_at_ = BootClock::now();
    asked_ = nullptr;
    answered_.notify_all();
  }

  const KeySource source_;
  const std::chrono::seconds age_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::shared_ptr<Question> asked_;  // GUARDED_BY(mutex_); under way.
  KeyOutcome kept_;                  // GUARDED_BY(mutex_); counts if found.
  BootTime found_at_{};              // GUARDED_BY(mutex_)
};

}  // namespace

KeySource given_keys(Credentials keys) {
  return [keys = std::move(keys)] {
    return judge(keys, kGivenNames, "the options");
  };
}

KeySource environment_keys(Environment environment) {
  return [environment = std::move(environment)] {
    const auto value = [&](const char* name) {
      return environment(name).value_or("");
    };
    return judge({value(kEnvironmentNames.id), value(kEnvironmentNames.secret),
                  value(kEnvironmentNames.token)},
                 kEnvironmentNames, "the environment");
  };
}

KeySource profile_keys(ProfileOptions options, Environment environment) {
  return [options = std::move(options), environment = std::move(environment)] {
    return keys_of(load_profile(options, environment));
  };
}

KeySource first_of(std::vector<KeySource> sources) {
  return [sources = std::move(sources)] {
    std::string reasons;
    for (const KeySource& source : sources) {
      KeyOutcome outcome = source();
      if (outcome.state != State::none) return outcome;
      if (!reasons.empty()) reasons += "; ";
      reasons += outcome.reason;
    }
    return none(std::move(reasons));
  };
}

KeySource cached(KeySource source, std::chrono::seconds age) {
  return [cache = std::make_shared<KeyCache>(std::move(source), age)] {
    return cache->get();
  };
}

KeySource usual_keys(const KeyOptions& options, Environment environment) {
  std::vector<KeySource> sources = {given_keys(options.keys)};
  if (options.profile.name.empty()) {
    sources.push_back(environment_keys(environment));
  }
  sources.push_back(profile_keys(options.profile, std::move(environment)));
  return first_of(std::move(sources));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
