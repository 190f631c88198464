#include "text.hpp"

#include <string.h>

#include <algorithm>
#include <cstddef>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

std::size_t size_of(Pieces pieces) {
  std::size_t size = 0;
  for (const std::string_view piece : pieces) size += piece.size();
  return size;
}

void copy(Pieces pieces, char* to) {
  for (const std::string_view piece : pieces) {
    to = std::copy(piece.begin(), piece.end(), to);
  }
}

}  // namespace

std::string join(Pieces pieces) {
  std::string text(sigv4::size_of(pieces), '\0');
  sigv4::copy(pieces, text.data());
  return text;
}

void show(std::string& text) {
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '?';
  }
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result = "\"";
  result += text.substr(0, kMost);
  result += text.size() > kMost ? "...\"" : "\"";
  sigv4::show(result);
  return result;
}

std::string formatted(const char* pattern, unsigned kinds, ...) {
  std::string text;
  std::va_list pieces;
  va_start(pieces, kinds);
  append_pieces(text, pattern, kinds, pieces);
  va_end(pieces);
  return text;
}

void append_formatted(std::string& text, const char* pattern, unsigned kinds,
                      ...) {
  std::va_list pieces;
  va_start(pieces, kinds);
  append_pieces(text, pattern, kinds, pieces);
  va_end(pieces);
}

void append_pieces(std::string& text, const char* pattern, unsigned kinds,
                   std::va_list pieces) {
  std::size_t group = 0;  // What may be left out begins there.
  bool whole = true;      // No piece of it is empty.
  std::string_view rest = pattern, piece;
  for (;;) {
    text += sigv4::cut(rest, '%');
    if (rest.empty()) return;
    const char mark = rest[0];
    rest.remove_prefix(1);
    if (mark == '[') {
      group = text.size();
      whole = true;
      continue;
    }
    if (mark == ']') {
      if (!whole) text.resize(group);
      continue;
    }
    const unsigned kind = kinds & 3;
    kinds >>= 2;
    std::string quoted;
    const Digits number(kind == 3 ? va_arg(pieces, std::int64_t) : 0);
    const void* const one = kind < 3 ? va_arg(pieces, const void*) : nullptr;
    if (kind == 0) {
      piece = static_cast<const char*>(one);
    } else if (kind == 1) {
      piece = *static_cast<const std::string*>(one);
    } else if (kind == 2) {
      piece = *static_cast<const std::string_view*>(one);
    } else {
      piece = number;
    }
    whole = whole && !piece.empty();
    if (mark == 'q') piece = quoted = sigv4::in_quotes(piece);
    text += piece;
  }
}

std::string decimal(std::int64_t number) { return std::string(Digits(number)); }

// As what is not negative: the smallest has no counterpart.
void Digits::write(std::int64_t number) {
  const auto bits = static_cast<std::uint64_t>(number);
  write(number < 0 ? 0 - bits : bits);
  if (number < 0) text_[--begin_] = '-';
}

void Digits::write(std::uint64_t number) {
  char* at = text_ + begin_;
  for (; number >= 10; number /= 100) {  // Two digits at once.
    const auto two = static_cast<unsigned>(number % 100);
    *--at = static_cast<char>('0' + two % 10);
    *--at = static_cast<char>('0' + two / 10);
  }
  if (number > 0 || at == text_ + begin_) {
    *--at = static_cast<char>('0' + number);
  }
  begin_ = static_cast<std::size_t>(at - text_);
}

// Sixteen bytes at once: each is spread to two, a half in each of them, which
// become digits; or letters, where 6 more than that is above 15.
void write_hex(const unsigned char* bytes, std::size_t count, char* to) {
  using Bytes = unsigned char __attribute__((vector_size(16)));
  using Pairs = std::uint16_t __attribute__((vector_size(32)));
  constexpr bool kLittleEndian = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
  for (; count >= 16; count -= 16, bytes += 16, to += 32) {
    Bytes some;
    memcpy(&some, bytes, sizeof some);
    Pairs pairs = __builtin_convertvector(some, Pairs);
    pairs = kLittleEndian ? pairs >> 4 | pairs << 8 : pairs << 4 | pairs;
    pairs &= 0x0f0f;
    const Pairs letters = (pairs + 0x0606) >> 4 & 0x0101;
    pairs += 0x0101 * '0' + letters * ('a' - 10 - '0');
    memcpy(to, &pairs, sizeof pairs);
  }
}

void append(std::string& text, Pieces pieces) {
  const std::size_t before = text.size();
  const std::size_t size = before + sigv4::size_of(pieces);
  // Never less than twice the room, or a text that grows by pieces is copied
  // with every one.
  if (size > text.capacity()) {
    text.reserve(text.empty() || size > 2 * text.capacity()
                     ? size
                     : 2 * text.capacity());
  }
  text.resize(size);  // At once: a check of the room for each costs more.
  sigv4::copy(pieces, text.data() + before);
}

void Text::grow(std::size_t more) { text_.resize(2 * text_.size() + more); }

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

bool is_visible(std::string_view text) {
  return sigv4::consists_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

bool is_alphanumeric(std::string_view text, std::string_view also) {
  for (const char c : text) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
    if (!letter && !is_digit(c) && also.find(c) == also.npos) return false;
  }
  return true;
}

std::string_view trimmed(std::string_view text) {
  const auto blank = [](char c) {
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
  };
  while (!text.empty() && blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && blank(text.back())) text.remove_suffix(1);
  return text;
}

std::string_view cut(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

bool is_among(std::string_view words, std::string_view word, char mark) {
  while (!words.empty()) {
    if (sigv4::cut(words, mark) == word) return true;
  }
  return false;
}

const char* word_at(const char* words, std::size_t number) {
  for (; number > 0; --number) words += strlen(words) + 1;
  return words;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
