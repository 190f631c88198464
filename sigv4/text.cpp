// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "text.hpp"

#include <string.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <iterator>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// The size in bytes of the first UTF-8 character of `text`; 0 if it does not
// begin with one.  The second byte's bounds exclude overlong forms, surrogates
// and what is beyond U+10FFFF (the Unicode Standard, table 3-7).
std::size_t character_size(std::string_view text) {
  const auto byte = [&text](std::size_t at) -> unsigned {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first < 0xc2 || first > 0xf4) return 0;
  const std::size_t size = first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
  const unsigned low = first == 0xe0 ? 0xa0 : first == 0xf0 ? 0x90 : 0x80;
  const unsigned high = first == 0xed ? 0x9f : first == 0xf4 ? 0x8f : 0xbf;
  if (byte(1) < low || byte(1) > high) return 0;
  for (std::size_t i = 2; i < size; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xbf) return 0;
  }
  return size;
}

// REQUIRES: one whole UTF-8 character.
unsigned code_point(std::string_view character) {
  const auto first = static_cast<unsigned char>(character[0]);
  if (character.size() == 1) return first;
  unsigned code = first & (0x7fu >> character.size());
  for (const char c : character.substr(1)) {
    code = code << 6 | (static_cast<unsigned char>(c) & 0x3fu);
  }
  return code;
}

// Whether a character may be shown as it is.  Characters are hidden if they end
// a line, control a terminal, reorder the text around them (Unicode's
// Bidi_Control) or are invisible.  The joiners U+200C and U+200D are shown,
// because words of some languages need them.
bool is_shown(unsigned code) {
  constexpr struct {
    unsigned first, last;
  } kHidden[] = {
      {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},       {0x61c, 0x61c},
      {0x200b, 0x200b}, {0x200e, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
      {0xfeff, 0xfeff}, {0xfff9, 0xfffb}, {0xe0000, 0xe0fff},
  };
  for (const auto& hidden : kHidden) {
    if (code >= hidden.first && code <= hidden.last) return false;
  }
  return true;
}

// Escapes as in C and C++: \n, \x1b, \u202e, \U000e0001.
void append_escape(std::string& text, unsigned code) {
  switch (code) {
    case '\n':
      text += "\\n";
      return;
    case '\r':
      text += "\\r";
      return;
    case '\t':
      text += "\\t";
      return;
  }
  text += code < 0x100 ? "\\x" : code < 0x10000 ? "\\u" : "\\U";
  const int bits = code < 0x100 ? 8 : code < 0x10000 ? 16 : 32;
  for (int shift = bits - 4; shift >= 0; shift -= 4) {
    text += hex_digit(static_cast<int>(code >> shift & 15));
  }
}

// Appends `text` with escapes for hidden characters, and with a backslash
// before each character that is one of `marked`.
void append_visible(std::string& to, std::string_view text,
                    std::string_view marked) {
  while (!text.empty()) {
    const std::size_t size = character_size(text);
    const std::string_view character =
        text.substr(0, std::max<std::size_t>(size, 1));
    if (size == 0) {
      append_escape(to, static_cast<unsigned char>(text[0]));
    } else if (!is_shown(code_point(character))) {
      append_escape(to, code_point(character));
    } else {
      if (marked.find(character) != marked.npos) to += '\\';
      to += character;
    }
    text.remove_prefix(character.size());
  }
}

}  // namespace

std::string join(Pieces pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  std::string text(size, '\0');
  char* to = text.data();
  for (const std::string_view piece : pieces) {
    to = std::copy(piece.begin(), piece.end(), to);
  }
  return text;
}

std::string_view utf8_part(std::string_view text) {
  std::size_t good = 0;
  while (const std::size_t size = character_size(text.substr(good))) {
    good += size;
  }
  return text.substr(0, good);
}

std::string_view cut_to(std::string_view text, std::size_t most_bytes) {
  constexpr std::size_t kLongest = 4;  // A character has at most 4 bytes.
  if (text.size() <= most_bytes) return text;
  const std::string_view cut = text.substr(0, most_bytes);
  for (std::size_t back = 1; back < kLongest && back <= most_bytes; ++back) {
    const std::size_t at = most_bytes - back;
    if (character_size(text.substr(at)) > back) return cut.substr(0, at);
  }
  return cut;
}

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  append_visible(line, text, "");
  return line;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMostQuoted = 200;
  const std::string_view start = cut_to(text, kMostQuoted);
  std::string quoted = "\"";
  append_visible(quoted, start, "\"\\");
  quoted += start.size() < text.size() ? "...\"" : "\"";
  return quoted;
}

std::string if_any(std::string_view before, std::string_view text,
                   std::string_view after) {
  return text.empty() ? std::string() : join({before, text, after});
}

std::string decimal(std::int64_t number) { return std::string(Digits(number)); }

void Digits::write(std::int64_t number) {
  size_ = static_cast<std::size_t>(
      std::to_chars(text_, std::end(text_), number).ptr - text_);
}

void Digits::write(std::uint64_t number) {
  size_ = static_cast<std::size_t>(
      std::to_chars(text_, std::end(text_), number).ptr - text_);
}

void append(std::string& text, Pieces pieces) {
  for (const std::string_view piece : pieces) text += piece;
}

void Text::set_room(std::size_t room) {
  std::string larger(room, '\0');
  copy({text_.data(), size_}, larger.data());
  text_.swap(larger);
  explicit_bzero(larger.data(), size_);
}

void Text::wipe() noexcept {
  constexpr std::size_t kUsualRoom = 4096;
  explicit_bzero(text_.data(), size_);
  size_ = 0;
  if (text_.size() > kUsualRoom) std::string().swap(text_);
}

bool begins_with(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool begins_with(std::string_view text, const char* with) {
  return sigv4::begins_with(text, std::string_view(with));
}

bool consists_of(std::string_view text, bool (*fits)(char)) {
  for (const char c : text) {
    if (!fits(c)) return false;
  }
  return true;
}

bool same_in_any_case(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && lower_case(a[i]) != lower_case(b[i])) return false;
  }
  return true;
}

bool is_visible(std::string_view text) {
  return sigv4::consists_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

bool is_alphanumeric(std::string_view text, std::string_view also) {
  for (const char c : text) {
    if (!is_letter(c) && !is_digit(c) && also.find(c) == also.npos) {
      return false;
    }
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && is_white_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_white_space(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view cut(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool is_among(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    if (sigv4::cut(words, ' ') == word) return true;
  }
  return false;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
