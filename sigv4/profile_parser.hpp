// Parses the shared config and credentials files as AWS's tools read them.
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
//
// Pure functions.
#ifndef DDBMUTEX_SIGV4_PROFILE_PARSER_HPP
#define DDBMUTEX_SIGV4_PROFILE_PARSER_HPP

#include <string>
#include <string_view>
#include <vector>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::string_view kProfileKind = "profile";
constexpr std::string_view kDefaultProfile = "default";

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
bool by_section(const Entry& a, const Entry& b);
bool by_property(const Entry& a, const Entry& b);

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

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROFILE_PARSER_HPP
