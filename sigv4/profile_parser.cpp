// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The parser changes names to lower case in place, so that entries can be views
// of the text and no second copy has to be wiped.
#include "profile_parser.hpp"

#include <algorithm>
#include <cstdint>
#include <tuple>

#include "parts.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

bool by_property(const Entry& a, const Entry& b) {
  // Mostly both are of the same heading, and their names need no comparison.
  if (a.section.data() == b.section.data() && a.kind.data() == b.kind.data()) {
    return a.property < b.property;
  }
  return std::tie(a.kind, a.section, a.property) <
         std::tie(b.kind, b.section, b.property);
}

bool is_name(std::string_view text) {
  return !text.empty() && sigv4::is_alphanumeric(text, "_-/.%@:+\\");
}

bool is_no_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte != 0x7F;
}

namespace {

bool is_comment(std::string_view text) {
  return !text.empty() && kCommentMarks.find(text.front()) != text.npos;
}

std::string strange_name() {
  return join({"a name with quotes, blanks or brackets", kNeedsKeys});
}

std::string flaw_of_property(std::string_view text) {
  const std::size_t mark = text.find_first_of(":=");
  if (mark == text.npos) return "a property without '='";
  if (text[mark] == ':') return join({"a ':' before the '='", kNeedsKeys});
  return mark == 0 ? "a property without a name" : "";
}

// All members return what is wrong; empty if nothing is.
class PlainParser {
 public:
  PlainParser(std::string& text, FileKind file, Entries& entries)
      : text_(text), file_(file), entries_(entries) {}

  std::string add(std::string_view line) {
    const std::string_view text = sigv4::trimmed(line);
    if (text.empty() || is_comment(text)) return "";
    const auto indent = static_cast<std::size_t>(text.data() - line.data());
    if (has_property_ && indent > indent_) return add_continuation(text);
    if (text.front() == '[') return add_section(text);
    if (!seen_section_) return "a line before the first section";
    has_property_ = true;
    indent_ = indent;
    skipped_ = section_.empty();
    return skipped_ ? "" : add_property(text);
  }

 private:
  // `text`: a line without blanks at its ends.
  std::string add_section(std::string_view text) {
    const std::size_t end = text.find(']');
    if (end == text.npos) return "a section without its ']'";
    seen_section_ = true;
    has_property_ = false;
    section_ = {};
    const std::string_view name = sigv4::trimmed(text.substr(1, end - 1));
    const std::string_view rest = text.substr(end + 1);
    const std::string_view shown = sigv4::trimmed(rest);
    const bool commented = shown.size() < rest.size() && is_comment(shown);
    if ((rest.find(']') != rest.npos && !commented) ||
        !sigv4::consists_of(name, is_no_control)) {
      return strange_name();
    }
    if (file_ == FileKind::config) return add_section_of_config(name);
    begin_section(kProfileKind, name);
    return "";
  }

  // Takes [default], [profile x] and [services x].
  std::string add_section_of_config(std::string_view name) {
    const bool bare = name.find(' ') == name.npos;
    if (bare && name != kDefaultProfile) {
      // It has no properties, but Profile::heading_hint() looks for it.
      begin_section({}, name);
      section_ = {};
      return "";
    }
    const auto kind = bare ? kProfileKind : sigv4::cut(name, ' ');
    if (kind != kProfileKind && kind != kServicesKind) return "";
    name = sigv4::trimmed(name);
    if (!is_name(name)) return strange_name();
    begin_section(kind, name);
    if (kind != kProfileKind || name != kDefaultProfile) return "";
    (bare ? seen_default_ : seen_prefixed_default_) = true;
    if (!seen_default_ || !seen_prefixed_default_) return "";
    return join({"[default] beside [profile default]", kNeedsKeys});
  }

  void begin_section(std::string_view kind, std::string_view name) {
    kind_ = kind;
    section_ = name;
    if (!name.empty()) entries_.push_back({kind, name, {}, {}});
  }

  std::string add_property(std::string_view text) {
    std::string_view value = text;
    const std::string_view name = sigv4::trimmed(sigv4::cut(value, '='));
    skipped_ = !is_name(name);
    if (skipped_) return flaw_of_property(text);
    std::transform(name.begin(), name.end(),
                   text_.data() + (name.data() - text_.data()), lower_case);
    value = sigv4::trimmed(value);
    has_sub_properties_ = value.empty();
    entries_.push_back({kind_, section_, name, value});
    return flaw_of_property(text);
  }

  std::string add_continuation(std::string_view text) {
    if (skipped_) return "";
    entries_.back().whole = false;
    return has_sub_properties_ ? flaw_of_property(text) : "";
  }

  std::string& text_;
  const FileKind file_;
  Entries& entries_;
  std::string_view kind_{}, section_{};  // Empty: this section is skipped.
  bool seen_section_ = false;
  bool seen_default_ = false, seen_prefixed_default_ = false;
  bool has_property_ = false;  // The section has one, skipped or not.
  // Of the last property.
  std::size_t indent_ = 0;
  bool skipped_ = false;
  bool has_sub_properties_ = false;  // Its first line has no value.
};

}  // namespace

std::string read_plain_profiles(std::string& text, FileKind kind,
                                Entries& entries) {
  std::string_view rest = text;
  if (sigv4::begins_with(rest, kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  PlainParser parser(text, kind, entries);
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const std::string flaw = parser.add(sigv4::cut(rest, '\n'));
    if (flaw.empty()) continue;
    entries.clear();
    return join({"line ", Digits(number), ": ", flaw});
  }
  return "";
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
