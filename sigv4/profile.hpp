// The shared config and credentials files, and one profile as both describe it.
//
// A file that does not exist, cannot be read or is not a regular one (a FIFO
// would hang) counts as empty, whoever named it, as with all of AWS's tools.  A
// file of more than 1 MiB is unusable.
//
// What the files held is wiped from memory when it is no longer needed.
//
// Thread safety: any thread may call anything here, if the environment may be
// read meanwhile.
#ifndef DDBMUTEX_SIGV4_PROFILE_HPP
#define DDBMUTEX_SIGV4_PROFILE_HPP

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "profile_parser.hpp"
#include "secret.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::size_t kMaxProfileFileBytes = 1 << 20;

// One of the two files as it was found.
class ProfileFile {
 public:
  // `path`: with a '~' if there is no HOME to expand it to.
  ProfileFile(const std::string& path, FileKind kind);
  ~ProfileFile();

  bool has(std::string_view kind, std::string_view section) const {
    return find(kind, section, "") != nullptr;
  }
  // A property's value, which may be empty; null if it is not there.
  const std::string_view* find(std::string_view kind, std::string_view section,
                               std::string_view property) const;
  // The entries of a section, with its heading, as a range.
  std::pair<Entries::const_iterator, Entries::const_iterator> section(
      std::string_view kind, std::string_view name) const;

  // Why it counts as empty: "does not exist"; empty if it was read.
  const std::string& absence() const { return file_.failure; }
  // Set if it holds keys, or is where they belong, and others than its owner
  // may read it or write to it: a sentence for people.
  const std::string& warning() const { return file_.warning; }

  const std::string path;
  std::string error;  // Why it is unusable; empty if it is not.

 private:
  SecretFile file_;
  Entries entries_;  // Views of it.
};

// Which profile of which files.
struct ProfilePlace {
  Setting named;  // AWS_PROFILE, AWS_DEFAULT_PROFILE; "default" by nobody.
  std::string config_file;       // AWS_CONFIG_FILE, "~/.aws/config"
  std::string credentials_file;  // AWS_SHARED_CREDENTIALS_FILE,
                                 // "~/.aws/credentials"
};

// The path in the variable, else `otherwise`.  As in botocore, variables in the
// path are replaced first, and then a leading '~' by HOME.  It stays if HOME is
// not known, and so does ~name, the home of another user.
std::string locate(const char* variable, const char* otherwise,
                   const Environment& environment);

// `name`: of the options; empty: as the environment says.
ProfilePlace locate_profile(
    std::string_view name,
    const Environment& environment = process_environment);

struct Profile {
  // Reads both files, now.
  explicit Profile(const ProfilePlace& place);

  // What the profile says, the credentials file before the config file.
  // Nothing if it is not there or empty.
  Setting find(const char* property) const;
  // Of a service's URL: its own in the profile's `services`, else its
  // `endpoint_url`.  Sets `flaw` if there are no such services.
  Setting url_of(const char* service, std::string& flaw) const;
  // For as long as the files stay.
  std::string_view value_of(std::string_view property) const;
  bool has(const char* property) const { return !value_of(property).empty(); }
  // It is there, and says nothing.
  bool has_empty(const char* property) const {
    const Found found = look(property);
    return found.file != nullptr && found.value.empty();
  }
  bool exists() const { return look("").file != nullptr; }
  // For people: `profile "x"`, and the file that says so: `profile "x" in
  // "..."`.
  std::string place_of(const char* property) const;
  // For people: both files, and whether they know the profile.
  std::string whereabouts() const;

  std::string name;  // May become that of another one of these files.
  const ProfileFile credentials;
  const ProfileFile config;
  // Why nothing here is to be used: a file is unusable, or a profile that was
  // asked for by name is in neither.  Empty if all is well.
  std::string error;
  bool missing = false;  // It is the latter.

 private:
  // The file that has the property, null if none has it, and its value.
  struct Found {
    const ProfileFile* file;
    std::string_view value;
  };
  Found look(std::string_view property) const;
};

// As find_variable(), else the profile's property.
Setting find_setting(const Environment& environment,
                     std::initializer_list<const char*> variables,
                     const Profile& profile, const char* property);

inline Profile load_profile(
    std::string_view name,
    const Environment& environment = process_environment) {
  return Profile(locate_profile(name, environment));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROFILE_HPP
