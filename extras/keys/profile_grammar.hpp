// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Parses the shared config and credentials files as AWS's tools read them.
//
// Where AWS's tools differ, these rules hold here:
//   * A line that is indented deeper than the property before it continues that
//     property.  Any other line is a section or a property, indented or not.
//     (So in botocore.  In the C runtime, every indented line is a
//     continuation.)
//   * These lines make the file unusable: a line that is neither section,
//     property, continuation nor comment; a known setting that is followed by
//     ':' instead of '='; a property before the first section; a section
//     without its ']'.  (So in botocore and the C runtime.  JavaScript's reader
//     skips such lines.)  The error gives the line's number and never shows the
//     line, which may hold a secret.
//   * In the credentials file, the name of a profile is the whole text between
//     the brackets.  In the config file, it is what follows "profile", without
//     the quotes and backslashes, which are removed as by Python's shlex.  A
//     blank in it must be quoted or follow a backslash.  (So in botocore.
//     JavaScript's reader accepts fewer characters.)
//   * The name ends at the last ']' of the line.  A comment may begin after the
//     first ']'.  The name has no control characters.
//   * In the config file, all sections except [default], [profile x] and
//     [services x] are skipped.  In both files, a section without a valid name
//     is skipped.  A property is skipped if its name has other characters than
//     letters, digits and _-/.%@:+\.
//   * Upper and lower case differ in profiles, but not in properties.
//   * '#' and ';' begin a comment at the start of a line, indented or not.
//     Anywhere else they belong to the value, as in botocore.  Text after a
//     section's last ']' is ignored.
//   * If a property is repeated, the last one counts.  Sections of the same
//     name are one section.  If there is a [profile default], [default] is
//     ignored.
//
// Pure functions.
#ifndef DDBMUTEX_SIGV4_PROFILE_GRAMMAR_HPP
#define DDBMUTEX_SIGV4_PROFILE_GRAMMAR_HPP

#include <string>
#include <string_view>

#include "../../sigv4/profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Parts::read_profile.  Needs memory in proportion to the text.
std::string parse_profiles(std::string& text, FileKind kind, Entries& entries);

// Parts::url_in_services.
Setting url_in_services(const Profile& profile, const Setting& services,
                        const char* service, std::string& flaw);

// For a value that has only indented `name = value` lines: the value of `name`
// (in lower case).  The last one if there are several.
std::string_view sub_property(std::string_view value, std::string_view name);

// Splits the text into words and appends them to `words`, each with a NUL at
// its end.  Returns what is wrong with the text ("a quote is not closed");
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

#endif  // DDBMUTEX_SIGV4_PROFILE_GRAMMAR_HPP
