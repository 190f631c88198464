// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The shared config and credentials files, and one profile as both describe it.
//
// A file counts as empty if it does not exist, cannot be read or is not a
// regular file (a FIFO would hang).  So it is in all of AWS's tools, even if
// somebody named the file.  A file of more than 1 MiB is unusable.
//
// The contents of the files are wiped from memory when they are no longer
// needed.
//
// Thread safety: any thread may call anything here, if the environment may be
// read meanwhile.
#ifndef DDBMUTEX_SIGV4_PROFILE_HPP
#define DDBMUTEX_SIGV4_PROFILE_HPP

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "profile_parser.hpp"
#include "secret.hpp"
#include "settings.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct Parts;

constexpr std::size_t kMaxProfileFileBytes = 1 << 20;

// One of the two files, read once.
class ProfileFile {
 public:
  // `path`: the result of locate().
  ProfileFile(const std::string& path, FileKind kind, const Parts& parts);
  ~ProfileFile();

  bool has(std::string_view kind, std::string_view section) const {
    return find(kind, section, "") != nullptr;
  }
  // A property's value, which may be empty; null if the property is not there.
  const std::string_view* find(std::string_view kind, std::string_view section,
                               std::string_view property) const;

  // The first of the profile's settings whose value was not read as a whole;
  // empty if all were.
  std::string_view unread_setting(std::string_view profile) const;

  // Why the file counts as empty: "does not exist"; empty if it was read.
  const std::string& absence() const { return file_.failure; }
  // A sentence for people if the file is the credentials file, or holds keys,
  // and others than its owner may read or write it; else empty.
  const std::string& warning() const { return file_.warning; }

  const std::string path;
  std::string error;  // Why the file is unusable; empty if it is usable.

 private:
  SecretFile file_;
  Entries entries_;  // Views of it, sorted.
};

// Which profile of which files.
struct ProfilePlace {
  // The profile's name.  If nobody chose one, it is "default" and has no
  // source.
  Setting named;
  std::string config_file;       // AWS_CONFIG_FILE, "~/.aws/config"
  std::string credentials_file;  // AWS_SHARED_CREDENTIALS_FILE,
                                 // "~/.aws/credentials"
};

// The path in the variable, else `otherwise`.  As in botocore, variables in the
// path are replaced first, and then a leading '~' by HOME.  The '~' stays if
// HOME is not known, and in ~name, the home of another user.
std::string locate(const char* variable, const char* otherwise,
                   const Environment& environment);

// `name`: the profile that the options name.  If it is empty, AWS_PROFILE or
// AWS_DEFAULT_PROFILE names the profile.
ProfilePlace locate_profile(
    std::string_view name,
    const Environment& environment = process_environment);

struct Profile {
  // Reads both files, now.
  Profile(const ProfilePlace& place, const Parts& parts);

  // The property in the credentials file, else in the config file.  Nothing if
  // it is in neither, or is empty.
  Setting find(const char* property) const;
  // The URL of a service: its `endpoint_url` in the profile's `services`, else
  // the profile's `endpoint_url`.  Sets `flaw` if there is no section of these
  // services.
  Setting url_of(const char* service, std::string& flaw) const;
  // A view into the file.
  std::string_view value_of(std::string_view property) const;
  bool has(const char* property) const { return !value_of(property).empty(); }
  // Whether the property is there, but has no value.
  bool has_empty(const char* property) const {
    const Found found = look(property);
    return found.file != nullptr && found.value.empty();
  }
  bool exists() const { return look("").file != nullptr; }
  // For people: `profile "x" in "FILE"`, for the file that has the property.
  // Just `profile "x"` if neither has it.
  std::string place_of(const char* property) const;
  // For people: both files, and whether they have the profile.
  std::string whereabouts() const;

  std::string name;  // May be changed to another profile of these files.
  const ProfileFile credentials;
  const ProfileFile config;
  // Why the profile must not be used: a file is unusable, somebody named a
  // profile that is in neither file, or a setting was not read as a whole.
  // Empty if it may be used.
  std::string error;
  bool missing = false;  // The error is that the profile is in neither file.

 private:
  struct Found {
    const ProfileFile* file;  // Null if neither has the property.
    std::string_view value;
  };
  Found look(std::string_view property) const;
  std::string heading_hint(const ProfileFile& file) const;

  const Parts& parts_;
};

// The first of the variables that is set, else the profile's property.
Setting find_setting(const Environment& environment,
                     std::initializer_list<const char*> variables,
                     const Profile& profile, const char* property);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROFILE_HPP
