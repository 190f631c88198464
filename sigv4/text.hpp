// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Joins, cuts and compares text.  join() allocates once and needs little code
// where it is called.  operator+ would make a string for every piece.
#ifndef DDBMUTEX_SIGV4_TEXT_HPP
#define DDBMUTEX_SIGV4_TEXT_HPP

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using Pieces = std::initializer_list<std::string_view>;

// The pieces in a row: join({"table ", name, " is not there"}).
std::string join(Pieces pieces);

// The part before the first byte that is not UTF-8.
std::string_view utf8_part(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return utf8_part(text).size() == text.size();
}

// At most `most_bytes` from the front.  Cuts no UTF-8 character in two.
std::string_view cut_to(std::string_view text, std::size_t most_bytes);

// `text` as one line that is safe in a log or on a terminal.  Escapes ("\n",
// "\x1b", "\u202e") replace control characters, bytes that are not UTF-8, and
// characters that end a line, change the direction of text or are invisible.
std::string one_line(std::string_view text);

// The same in double quotes, for text from elsewhere.  It is cut to 200 bytes,
// and quotes and backslashes within it are escaped.
std::string in_quotes(std::string_view text);

// The text with `before` and `after` around it; nothing if the text is empty:
// join({"cannot open ", in_quotes(path), if_any(": ", reason)}).
std::string if_any(std::string_view before, std::string_view text,
                   std::string_view after = {});

// "-12"
std::string decimal(std::int64_t number);

// The same without an allocation, as one of the pieces for join().
class Digits {
 public:
  template <typename Integer>
  explicit Digits(Integer number) {
    static_assert(std::is_integral_v<Integer>);
    if constexpr (std::is_signed_v<Integer>) {
      write(std::int64_t{number});
    } else {
      write(std::uint64_t{number});
    }
  }
  operator std::string_view() const { return {text_, size_}; }

 private:
  // The constructor is a template because int64_t is `long` on some platforms
  // and `long long` on others: with overloads for int64_t and uint64_t, the
  // other of the two types would be ambiguous.
  void write(std::int64_t number);
  void write(std::uint64_t number);

  char text_[20];
  std::size_t size_;
};

// A lower-case hexadecimal digit.
constexpr char hex_digit(int value) {
  return static_cast<char>(value < 10 ? '0' + value : 'a' + value - 10);
}

// Writes two digits for each byte.  `bytes` is passed by value, so the compiler
// knows that writing to `to` does not change it, and makes all digits at once.
template <std::size_t kCount>
void write_hex(std::array<unsigned char, kCount> bytes, char* to) {
  for (std::size_t i = 0; i < kCount; ++i) {
    to[2 * i] = hex_digit(bytes[i] >> 4);
    to[2 * i + 1] = hex_digit(bytes[i] & 15);
  }
}

// Text that grows by many small pieces, such as a request.  std::string's += is
// a call that costs more than the copying of such a piece.  All memory is wiped
// before it is freed, because a request may hold a token.
class Text {
 public:
  Text() = default;
  explicit Text(std::size_t room) : text_(room, '\0') {}
  ~Text() { wipe(); }
  Text(Text&& other) noexcept
      : text_(std::exchange(other.text_, {})),
        size_(std::exchange(other.size_, 0)) {}
  Text& operator=(Text&&) = delete;

  // REQUIRES: `piece` is not a view of this text.
  void operator+=(std::string_view piece) {
    copy(piece, room_for(piece.size()));
  }
  void operator+=(char c) { *room_for(1) = c; }
  char& operator[](std::size_t at) { return text_[at]; }
  std::size_t size() const { return size_; }
  const char* data() const { return text_.data(); }
  operator std::string_view() const { return {text_.data(), size_}; }
  // A text of up to `room` bytes needs no more memory after this.
  void reserve(std::size_t room) {
    if (text_.size() < room) set_room(room);
  }

  // Returns the text, and leaves this empty.
  std::string take() {
    text_.resize(std::exchange(size_, 0));
    return std::exchange(text_, {});
  }
  // Overwrites and empties the text.  Keeps its memory for another text, unless
  // it is unusually large.
  void wipe() noexcept;

 private:
  char* room_for(std::size_t more) {
    if (text_.size() - size_ < more) set_room(2 * text_.size() + more);
    return text_.data() + std::exchange(size_, size_ + more);
  }
  static void copy(std::string_view piece, char* to) {
    std::string_view::traits_type::copy(to, piece.data(), piece.size());
  }
  void set_room(std::size_t room);

  std::string text_;  // Its size is the room; the text is its first part.
  std::size_t size_ = 0;
};

// Appends the pieces.  None of them may be a view of `text`.
void append(std::string& text, Pieces pieces);

// --- Questions about text ----------------------------------------------------

bool begins_with(std::string_view text, std::string_view with);
bool begins_with(std::string_view text, const char* with);

// Whether all characters fit.  std::all_of() would be compiled, and unrolled,
// for each function that it is given.
bool consists_of(std::string_view text, bool (*fits)(char));

// Whether the text is only visible ASCII.  Then it may stand in a header, where
// a line break would begin another header.
bool is_visible(std::string_view text);

// These look at ASCII only.  The C library's functions depend on the locale: in
// a Turkish one, 'i' is not the lower case of 'I'.

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

inline bool is_white_space(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

inline char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Whether they are equal, apart from upper and lower case.
bool same_in_any_case(std::string_view a, std::string_view b);

inline bool all_digits(std::string_view text) {
  return sigv4::consists_of(text, is_digit);
}

// Whether the text is only letters, digits and the characters `also`.
bool is_alphanumeric(std::string_view text, std::string_view also);

// The text without white space at its ends.
std::string_view trimmed(std::string_view text);

// Removes the text up to the first `mark` from `text`, and returns it without
// the mark.  If there is no mark, that is all of the text.
std::string_view cut(std::string_view& text, char mark);

// Whether `word` is one of `words`, which are separated by blanks.
bool is_among(std::string_view words, std::string_view word);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_TEXT_HPP
