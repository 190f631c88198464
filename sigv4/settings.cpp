#include "settings.hpp"

#include <pwd.h>
#include <strings.h>
#include <unistd.h>

#include <cstdlib>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// As the system's list of users has it, for those without HOME: services that
// are started by systemd, say.
std::string home_by_name() {
  char buffer[4096];
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer, sizeof buffer, &found) != 0 ||
      found == nullptr || entry.pw_dir == nullptr) {
    return "";
  }
  return entry.pw_dir;
}

}  // namespace

Setting::Setting() noexcept = default;
Setting::Setting(std::string_view the_value, std::string_view the_source)
    : value(the_value), source(the_source) {}
Setting::Setting(const Setting& other) : Setting(other.value, other.source) {}
Setting::~Setting() = default;

bool Setting::says(const char* word) const {
  return strncasecmp(value.c_str(), word, value.size() + 1) == 0;
}

Setting& Setting::operator=(Setting other) noexcept {
  value.swap(other.value);
  source.swap(other.source);
  return *this;
}

std::string own_variable(const void*, const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return value;
  return kReadsProfiles && name == std::string_view("HOME") ? home_by_name()
                                                            : "";
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

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
