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
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "secret.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// How the environment is seen: a variable's value by its name.
using Environment = std::function<std::optional<std::string>(const char* name)>;

// This process's own; HOME, if it is not there, as the system knows it.  Not to
// be read while another thread changes it.
std::optional<std::string> process_environment(const char* name);

// A variable that is set to something.
std::optional<std::string> set_in(const Environment& environment,
                                  const char* name);

// For error texts: in double quotes, cut to 200 bytes, '?' for what is not
// visible ASCII or a blank.
std::string in_quotes(std::string_view text);

// What stands behind a heading.  There may be several of one kind and name,
// which are one section, and several properties of one name, of which the last
// counts.
struct Section {
  std::string kind;  // "profile", "services" or "sso-session".
  std::string name;
  // Names in lower case.  Values are trimmed; of a continued one the lines are
  // joined by '\n'.
  std::vector<std::pair<std::string, Secret>> properties;
};

struct ParsedFile {
  std::vector<Section> sections;  // Empty if there is an error.
  std::string error;              // "line 3: ..."; empty if there is none.
};

enum class FileKind { config, credentials };

// Pure.  Takes time and memory in proportion to the text.
ParsedFile parse_profiles(std::string_view text, FileKind kind);

// Of a value that is empty but for indented `name = value` lines, what `name`
// (in lower case) stands for; the last one if there are several.
std::optional<std::string> sub_property(std::string_view value,
                                        std::string_view name);

constexpr std::size_t kMaxProfileFileBytes = 1 << 20;

// One of the two files as it was found.
struct ProfileFile {
  bool has(std::string_view kind, std::string_view section) const;
  // A property's value, which may be empty; null if it is not there.
  const Secret* find(std::string_view kind, std::string_view section,
                     std::string_view property) const;

  std::string path;  // '~' expanded.
  std::vector<Section> sections;
  // Why it counts as empty: "does not exist"; empty if it was read.
  std::string absence;
  // Set if it holds keys, or is where they belong, and others than its owner
  // may read it or write to it: a sentence for people.
  std::string warning;
};

// Which profile of which files; what is empty comes from the environment.
struct ProfileOptions {
  std::string name;              // AWS_PROFILE, AWS_DEFAULT_PROFILE, "default"
  std::string config_file;       // AWS_CONFIG_FILE, "~/.aws/config"
  std::string credentials_file;  // AWS_SHARED_CREDENTIALS_FILE,
                                 // "~/.aws/credentials"
};

struct Profile {
  struct Property {
    std::string value;
    std::string source;  // For people: the name, the profile, the file.
  };

  // What the profile says, the credentials file before the config file.
  // Nothing if it is not there or empty.
  std::optional<Property> find(std::string_view property) const;
  // The same without a copy: what a secret is to be looked for by.
  bool has(std::string_view property) const;
  bool is_in(const ProfileFile& file) const {
    return file.has("profile", name);
  }
  // For people: `profile "x"`.
  std::string described() const;
  // For people: both files, and whether they know the profile.
  std::string whereabouts() const;
  // Those of both files.
  std::vector<std::string> warnings() const;

  std::string name;
  std::string chooser;  // Who named it: "AWS_PROFILE"; empty if nobody did.
  ProfileFile credentials;
  ProfileFile config;
  // Why nothing here is to be used: a file is unusable, or a profile that was
  // asked for by name is in neither.  Empty if all is well.
  std::string error;
  bool missing = false;  // It is the latter.
};

// Which profile of which files, with nothing left to the environment; the files
// are not read yet.
Profile locate_profile(const ProfileOptions& options,
                       const Environment& environment = process_environment);

// Reads both files, now.
Profile load_profile(Profile located);
Profile load_profile(const ProfileOptions& options,
                     const Environment& environment = process_environment);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROFILE_HPP
