// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Environment variables, and where a setting came from.
//
// Thread safety: any thread may call anything here, if the environment may be
// read meanwhile.
#ifndef DDBMUTEX_SIGV4_SETTINGS_HPP
#define DDBMUTEX_SIGV4_SETTINGS_HPP

#include <initializer_list>
#include <string>
#include <string_view>

#include "function_ref.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// A variable's value by its name; empty if it is not set or set to nothing.
using Environment = FunctionRef<std::string(const char* name)>;

// Whether this program has rights that its caller does not have: it is set-uid
// or set-gid, or its file has capabilities (AT_SECURE).  Then the environment
// is ignored, because the caller could use it to have files read, programs run
// and servers asked with these rights.
bool ignores_environment();
constexpr const char* kIgnoredEnvironment =
    "the environment is not used (this program is set-uid or set-gid, or has "
    "capabilities)";

// For error messages: why there is no home.
inline const char* why_no_home() {
  return ignores_environment() ? "HOME is not used" : "HOME is not set";
}

// The variables of this process; all empty if ignores_environment().
//
// There is a HOME nevertheless, from the system's list of users: if the
// variable is not set, the user's home; in a set-uid program, the home of the
// user whose rights it has.
//
// REQUIRES: no other thread changes the environment meanwhile.
struct ProcessEnvironment {
  std::string operator()(const char* name) const;
};
constexpr ProcessEnvironment process_environment{};

// For error messages: why a value with " # mine" or " ; mine" at its end may be
// wrong.  Empty for other values.
const char* comment_hint(std::string_view value);

// A value and, for messages, its source: a variable, or a property with its
// profile and its file.  The value is empty if nothing sets it.
struct Setting {
  Setting() = default;
  Setting(std::string_view the_value, std::string_view the_source)
      : value(the_value), source(the_source) {}
  explicit operator bool() const { return !value.empty(); }
  bool says(const char* word) const;  // In upper or lower case.

  std::string value;
  std::string source;
};

// The first of the variables that is set; nothing if none is.
Setting find_variable(const Environment& environment,
                      std::initializer_list<const char*> variables);

// The profile that the options name (unless `name` is empty), else the one that
// the environment names.  Empty if neither does.
Setting named_profile(std::string_view name, const Environment& environment);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SETTINGS_HPP
