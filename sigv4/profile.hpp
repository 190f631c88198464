// The shared config and credentials files, as AWS's tools read them, and one
// profile as both describe it.
//
// Where AWS's tools differ, this is what holds here:
//   * A line continues the property before it if it is indented deeper than
//     that is; else it is a section or property itself, indented or not (so in
//     botocore; to the C runtime whatever is indented continues something).
//   * These lines make their file unusable: one that is neither section,
//     property, continuation nor comment; one with a ':' instead of a '='
//     behind a known setting; a property before the first section; a section
//     without its ']' (so in botocore and the C runtime; JavaScript's reader
//     skips such lines).  The error gives the line's number and never shows the
//     line, which may hold a secret.
//   * The name of a profile is the whole text between the brackets; in the
//     config file it is what follows "profile", with quotes and backslashes
//     removed as by Python's shlex (so in botocore; JavaScript's reader accepts
//     fewer characters).  It ends at the last ']' of the line; a comment may
//     begin behind the first one.  It has no control character.  In the config
//     file, a blank in it must be quoted or stand behind a backslash.
//   * In the config file, all sections but [default], [profile x], [services x]
//     and [sso-session x] are skipped.  In both files, a section without such a
//     name is skipped, and so is a property whose name has other characters
//     than letters, digits and _-/.%@:+\; each with all that belongs to it.
//   * Profiles are told apart by case, properties not.
//   * '#' and ';' begin a comment as the first thing in a line, indented or
//     not, and behind a blank in a property's.  Anywhere else they belong to
//     the value, also in the lines that continue it.  What stands behind a
//     section's last ']' counts for nothing.
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
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "secret.hpp"
#include "settings.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

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

// Sorted by kind, section and property; of equal ones the last counts.
using Entries = std::vector<Entry>;

enum class FileKind { config, credentials };

// Rewrites the text so that the entries can be views of it.  Returns why it is
// unusable, "line 3: ...", and has no entries then; empty if it is well.  Takes
// memory in proportion to the text, and the time to sort its lines.
std::string parse_profiles(std::string& text, FileKind kind, Entries& entries);

// Of a value that is empty but for indented `name = value` lines, what `name`
// (in lower case) stands for; the last one if there are several.
std::string_view sub_property(std::string_view value, std::string_view name);

// Splits the text into words and appends them to `words`, each with a NUL
// behind it.  Returns what is wrong with the text ("a quote is not closed");
// empty if nothing is.
//
// The same as Python's shlex.split(), with which botocore splits commands and
// the names of sections.  Blanks, tabs and line ends separate words.  Single
// quotes keep everything between them.  Within double quotes, a backslash
// escapes only a double quote or a backslash.  Outside of quotes it escapes any
// character.  Pure.
const char* split_words(std::string_view text, std::string& words);

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
