// The shared config and credentials files, as AWS's tools read them, and one
// profile as both describe it.
//
// Where AWS's tools differ, this is what holds here:
//   * A line continues the property before it if it is indented deeper than
//     that is; else it is a section or property itself, indented or not (so in
//     botocore; to the C runtime whatever is indented continues something).
//   * A line that is neither section, property, continuation nor comment makes
//     its file unusable, and so does a property before the first section, or a
//     section without its ']' (botocore and the C runtime do so too;
//     JavaScript's reader skips such lines).  The error names the line by its
//     number and never shows it: it may hold a secret.
//   * Sections and properties of invalid names are skipped with all that
//     belongs to them.  So is, in the config file, a section other than
//     [default], [profile x], [services x] and [sso-session x], and in the
//     credentials file one of two words.
//   * Names are of letters, digits and _-/.%@:+\, in the config file also
//     between quotes, where they may hold anything but the quote, a ']' and a
//     control character.  Profiles are told apart by case, properties not.
//   * '#' and ';' begin a comment as the first thing in a line, indented or
//     not, and behind a blank in a property's.  Anywhere else they belong to
//     the value, also in the lines that continue it.  What stands behind a
//     section's ']' counts for nothing.
//   * Of two equal properties the last counts; equal sections are one; where
//     there is a [profile default], [default] is none.
//   * A file that does not exist, cannot be read or is not a regular one (a
//     FIFO would hang) counts as empty, whoever named it, as with all of AWS's
//     tools; one of more than 1 MiB is unusable.
//
// What the files held is wiped from memory when it is no longer needed.
//
// Thread safety: any thread may call anything here, if the environment may be
// read meanwhile.
#ifndef DDBMUTEX_SIGV4_PROFILE_HPP
#define DDBMUTEX_SIGV4_PROFILE_HPP

#include <cstddef>
#include <initializer_list>
#include <list>
#include <string>
#include <string_view>

#include "secret.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

#ifdef DDBMUTEX_NO_PROFILES

// Who names a profile, and which.
using ProfilePlace = Setting;
inline ProfilePlace locate_profile(std::string_view name,
                                   const Environment& environment) {
  return named_profile(name, environment);
}

// Says nothing, and must not be named.
struct Profile {
  explicit Profile(const ProfilePlace& place) : missing(place) {
    if (!missing) return;
    sigv4::format_to(
        error,
        "profile %q, named by %s: this build of the library is without "
        "profiles",
        place.value, place.source);
  }

  Setting find(const char*) const { return {}; }
  Setting url_of(const char*, std::string&) const { return {}; }
  std::string_view value_of(const char*) const { return {}; }
  const char* whereabouts() const {
    return "no file is read: this build of the library is without profiles";
  }

  static constexpr std::string_view name = "default";
  std::string error;
  const bool missing;
};

inline Setting find_setting(const Environment& environment,
                            std::initializer_list<const char*> variables,
                            const Profile&, const char*) {
  return find_variable(environment, variables);
}

#else

// What a file says, line by line.  There may be several sections of one kind
// and name, which are one, and several properties of one name, of which the
// last counts.
struct Entry {
  // "profile", "services" or "sso-session"; empty: it does not count, for it is
  // of a [default] beside a [profile default].
  std::string_view kind;
  std::string_view section;
  std::string_view property;  // In lower case; empty: the section's heading.
  std::string_view value;  // Trimmed; of a continued one all lines, with '\n'.
};

using Entries = std::list<Entry>;

enum class FileKind { config, credentials };

// Rewrites the text so that the entries can be views of it.  Returns why it is
// unusable, "line 3: ...", and has no entries then; empty if it is well.  Takes
// time and memory in proportion to the text.
std::string parse_profiles(std::string& text, FileKind kind, Entries& entries);

// Of a value that is empty but for indented `name = value` lines, what `name`
// (in lower case) stands for; the last one if there are several.
std::string_view sub_property(std::string_view value, std::string_view name);

constexpr std::size_t kMaxProfileFileBytes = 1 << 20;

// One of the two files as it was found.
class ProfileFile {
 public:
  // `path`: with a '~' if there is no HOME to expand it to.
  ProfileFile(const std::string& path, FileKind kind);
  ~ProfileFile();

  bool has(const char* kind, std::string_view section) const {
    return find(kind, section, "") != nullptr;
  }
  // A property's value, which may be empty; null if it is not there.
  const std::string_view* find(const char* kind, std::string_view section,
                               const char* property) const;
  const Entries& entries() const { return entries_; }

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
  std::string_view value_of(const char* property) const;
  bool has(const char* property) const { return !value_of(property).empty(); }
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
  Found look(const char* property) const;
};

// As find_variable(), else the profile's property.
Setting find_setting(const Environment& environment,
                     std::initializer_list<const char*> variables,
                     const Profile& profile, const char* property);

#endif

inline Profile load_profile(
    std::string_view name,
    const Environment& environment = process_environment) {
  return Profile(locate_profile(name, environment));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROFILE_HPP
