// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "settings.hpp"

#include <pwd.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// The user's home in the system's list of users.  For programs without HOME,
// such as services that systemd starts.  A program that ignores the environment
// does not use its caller's home.
std::string home_by_name() {
  const uid_t user = ignores_environment() ? geteuid() : getuid();
  if (ignores_environment() && user == getuid()) return "";
  char buffer[4096];
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(user, &entry, buffer, sizeof buffer, &found) != 0 ||
      found == nullptr || entry.pw_dir == nullptr) {
    return "";
  }
  return entry.pw_dir;
}

}  // namespace

bool Setting::says(const char* word) const {
  return same_in_any_case(value, word);
}

bool ignores_environment() { return getauxval(AT_SECURE) != 0; }

std::string ProcessEnvironment::operator()(const char* name) const {
  const char* value = secure_getenv(name);
  if (value != nullptr) return value;
  return name == std::string_view("HOME") ? home_by_name() : "";
}

Setting find_variable(const Environment& environment,
                      std::initializer_list<const char*> variables) {
  Setting setting;
  for (const char* variable : variables) {
    environment(variable).swap(setting.value);
    setting.source = variable;
    if (setting) break;
  }
  return setting;
}

Setting named_profile(std::string_view name, const Environment& environment) {
  if (!name.empty()) return {name, "the options"};
  return find_variable(environment, {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"});
}

const char* comment_hint(std::string_view value) {
  const bool has_comment =
      value.find(" #") != value.npos || value.find(" ;") != value.npos;
  return has_comment ? " (a comment needs a line of its own)" : "";
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
