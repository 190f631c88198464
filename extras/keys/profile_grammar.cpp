// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The parser changes the text of a file in place, so that entries can be views
// of it and no second copy has to be wiped.
#include "profile_grammar.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "../../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr char kColon[] = " is followed by ':', not by '='";

bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

// A heading up to the first comment mark that follows a blank.  Only headings
// may have a comment behind them: a value is taken as it stands, as by
// botocore.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (sigv4::is_one_of(line[i], kCommentMarks) &&
        sigv4::is_one_of(line[i - 1], kBlanks)) {
      return line.substr(0, i);
    }
  }
  return line;
}

class Parser {
 public:
  Parser(std::string& text, FileKind file, Entries& entries)
      : text_(text), file_(file), entries_(entries) {}

  // `line`: a part of the text, without its '\n'.  Returns what is wrong with
  // it, or null.
  const char* add(std::string_view line);
  // The setting that is wrong, if it is known; else empty.
  const std::string& setting() const { return setting_; }

 private:
  // These return the same.  `text`: a line without blanks at its ends.
  const char* add_section(std::string_view text);
  const char* add_continuation(std::string_view text);
  const char* add_property(std::string_view text);
  // If true, setting() is the setting before the colon.
  bool has_colon_for_equals(std::string_view text);
  void take_kind();
  // False if the section must be skipped.  Sets the kind of a section without a
  // prefix.
  bool is_wanted();
  bool is_wanted_default(bool is_prefixed);
  std::string_view unquoted(std::string_view part);
  // The same place in the text, which may be changed there.
  char* writable(std::string_view part) {
    return text_.data() + (part.data() - text_.data());
  }
  void add_entry(std::string_view property, std::string_view value) {
    entries_.push_back({kind_, section_, property, value});
  }

  std::string& text_;
  const FileKind file_;
  Entries& entries_;
  // Of the current section.  If its name is empty, the section is skipped.
  std::string_view kind_, section_;
  bool seen_section_ = false;
  bool default_is_prefixed_ = false;  // There was a [profile default].
  bool has_property_ = false;         // The section has one, skipped or not.
  // Of the last property.
  std::size_t indent_ = 0;
  bool skipped_ = false;
  bool has_sub_properties_ = false;  // Its first line has no value.
  std::string setting_{};
};

const char* Parser::add(std::string_view line) {
  const std::string_view text = sigv4::trimmed(line);
  if (text.empty() || sigv4::is_one_of(text.front(), kCommentMarks))
    return nullptr;
  const auto indent = static_cast<std::size_t>(text.data() - line.data());
  if (has_property_ && indent > indent_) return add_continuation(text);
  if (text.front() == '[') return add_section(text);
  if (!seen_section_) return "a line before the first section";
  has_property_ = true;
  indent_ = indent;
  skipped_ = section_.empty();
  return skipped_ ? nullptr : add_property(text);
}

// The name ends at the last ']'.  No comment begins before the first one.
const char* Parser::add_section(std::string_view text) {
  const auto first = text.find(']');
  if (first == text.npos) return "a section without its ']'";
  const auto end = first + without_comment(text.substr(first)).rfind(']');
  seen_section_ = true;
  has_property_ = false;
  kind_ = {};
  section_ = sigv4::trimmed(text.substr(1, end - 1));
  if (file_ == FileKind::config) take_kind();
  const bool named =
      !section_.empty() && sigv4::consists_of(section_, is_no_control);
  const bool wanted = named && is_wanted();
  // This heading is kept without its properties, for Profile::heading_hint().
  const bool lacks_prefix = named && !wanted && kind_ == kProfileKind;
  if (lacks_prefix) kind_ = {};
  if (wanted || lacks_prefix) add_entry({}, {});
  if (!wanted) section_ = {};
  return nullptr;
}

// Splits the heading "profile x" into kind and name.  A name that is_name()
// accepts stays as it is, even if it has a backslash.
void Parser::take_kind() {
  const auto blank = section_.find_first_of(kBlanks);
  if (blank == section_.npos) return;
  kind_ = section_.substr(0, blank);
  section_ = sigv4::trimmed(section_.substr(blank));
  if (!is_name(section_)) section_ = unquoted(section_);
}

// Removes quotes and backslashes from a part of the text, in place.  Empty if
// it has a flaw or a control character.
std::string_view Parser::unquoted(std::string_view part) {
  std::string words;
  if (*split_words(part, words) != '\0') return {};
  words.pop_back();  // The NUL at the end.
  if (!sigv4::consists_of(words, is_no_control)) return {};
  std::copy(words.begin(), words.end(), writable(part));
  return part.substr(0, words.size());
}

bool Parser::is_wanted() {
  const bool bare = kind_.empty();
  if (bare) kind_ = kProfileKind;
  if (file_ == FileKind::credentials) return bare;
  if (kind_ != kProfileKind) return kind_ == "services";
  return section_ == kDefaultProfile ? is_wanted_default(!bare) : !bare;
}

// If there is a [profile default], every [default] is ignored, even an earlier
// one.
bool Parser::is_wanted_default(bool is_prefixed) {
  if (!is_prefixed) return !default_is_prefixed_;
  if (std::exchange(default_is_prefixed_, true)) return true;
  for (Entry& earlier : entries_) {
    if (earlier.kind == kProfileKind && earlier.section == kDefaultProfile) {
      earlier.kind = {};
    }
  }
  return true;
}

// Moves the line to the end of the value that it continues.  There is room: at
// least a line end stood between them.
const char* Parser::add_continuation(std::string_view text) {
  if (skipped_) return nullptr;
  if (has_sub_properties_) {
    if (has_colon_for_equals(text)) return kColon;
    const auto equals = text.find('=');
    if (equals == text.npos) return "a sub-property without '='";
    if (equals == 0) return "a sub-property without a name";
  }
  std::string_view& value = entries_.back().value;
  char* const end = writable(value) + value.size();
  *end = '\n';
  std::memmove(end + 1, text.data(), text.size());  // They may overlap.
  value = {value.data(), value.size() + 1 + text.size()};
  return nullptr;
}

// Python's reader accepts ':' instead of '='.  AWS's format does not have it.
// After a known setting it is an error: if the setting were skipped, requests
// might be signed as somebody else.
bool Parser::has_colon_for_equals(std::string_view text) {
  const std::size_t mark = text.find_first_of(":=");
  if (mark == text.npos || text[mark] == '=') return false;
  std::string name(sigv4::trimmed(text.substr(0, mark)));
  for (char& c : name) c = lower_case(c);
  if (!sigv4::is_among(kSettings, name)) return false;
  setting_.swap(name);
  return true;
}

const char* Parser::add_property(std::string_view text) {
  std::string_view value = text;
  if (has_colon_for_equals(text)) return kColon;
  if (value.find('=') == value.npos) return "a property without '='";
  const std::string_view property = sigv4::trimmed(sigv4::cut(value, '='));
  if (property.empty()) return "a property without a name";
  skipped_ = !is_name(property);
  if (skipped_) return nullptr;
  std::transform(property.begin(), property.end(), writable(property),
                 lower_case);
  value = sigv4::trimmed(value);
  has_sub_properties_ = value.empty();
  add_entry(property, value);
  return nullptr;
}

}  // namespace

const char* split_words(std::string_view text, std::string& words) {
  if (text.find('\0') != text.npos) return "it contains a NUL";
  bool in_word = false;  // True after "" too, which is an empty word.
  char quote = '\0';     // The quote that is open; NUL if none is.
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const char next = i + 1 < text.size() ? text[i + 1] : '\0';
    const bool escapes =
        c == '\\' &&
        (quote == '\0' || (quote == '"' && (next == '"' || next == '\\')));
    if (quote == '\0' && is_white_space(c)) {
      if (std::exchange(in_word, false)) words += '\0';
      continue;
    }
    in_word = true;
    if (escapes) {
      if (++i == text.size()) return "nothing follows its last backslash";
      words += next;
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else {
      words += c;
    }
  }
  if (quote != '\0') return "a quote is not closed";
  if (in_word) words += '\0';
  return words.empty() ? "it is empty" : "";
}

std::string parse_profiles(std::string& text, FileKind kind, Entries& entries) {
  std::string_view rest = text;
  if (sigv4::begins_with(rest, kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  Parser parser(text, kind, entries);
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const char* wrong = parser.add(sigv4::cut(rest, '\n'));
    if (wrong == nullptr) continue;
    entries.clear();
    return join({"line ", Digits(number), ": ", parser.setting(), wrong});
  }
  return "";
}

std::string_view sub_property(std::string_view value, std::string_view name) {
  std::string_view found;
  if (!sigv4::begins_with(value, "\n")) return found;
  while (!value.empty()) {
    std::string_view line = sigv4::cut(value, '\n');
    const std::string_view own = sigv4::trimmed(sigv4::cut(line, '='));
    if (same_in_any_case(own, name)) found = sigv4::trimmed(line);
  }
  return found;
}

Setting url_in_services(const Profile& profile, const Setting& services,
                        const char* service, std::string& flaw) {
  const ProfileFile& config = profile.config;
  const std::string called = in_quotes("services " + services.value);
  Setting url;
  const auto* own = config.find("services", services.value, service);
  if (own != nullptr) {
    url.value = sub_property(*own, "endpoint_url");
    url.source = join({"endpoint_url of ", service, " in section ", called,
                       " of ", in_quotes(config.path)});
  } else if (!config.has("services", services.value)) {
    flaw = join(
        {services.source, " names a section ", called, " that does not exist"});
  }
  return url;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
