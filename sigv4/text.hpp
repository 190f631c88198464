// Text put together of pieces, with one allocation and little code at the place
// where it is asked for: operator+ makes a string, and its destruction, of
// every piece.  And cut into pieces.
#ifndef DDBMUTEX_SIGV4_TEXT_HPP
#define DDBMUTEX_SIGV4_TEXT_HPP

#include <array>
#include <cstdarg>
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

// The pieces one behind the other: join({"table ", name, " is not there"}).
std::string join(Pieces pieces);

// The size in bytes of the first UTF-8 character of `text`; 0 if it does not
// begin with one.
std::size_t character_size(std::string_view text);
// The part before the first byte that is not UTF-8.
std::string_view utf8_part(std::string_view text);
inline bool is_utf8(std::string_view text) {
  return utf8_part(text).size() == text.size();
}

// At most `most_bytes` from the front, without a character that would be cut.
std::string_view cut_to(std::string_view text, std::size_t most_bytes);

// `text` as one line that is safe in a log or on a terminal.  Escapes ("\n",
// "\x1b", "\u202e") replace control characters, bytes that are not UTF-8, and
// characters that end a line, change the direction of text or are invisible.
std::string one_line(std::string_view text);

// The same in double quotes, for text from elsewhere.  It is cut to 200 bytes,
// and quotes and backslashes within it are escaped.
std::string in_quotes(std::string_view text);

// "-12"
std::string decimal(std::int64_t number);

// The same for as long as the expression in which it stands: as a piece.
class Digits {
 public:
  // Which of its types have 64 bits is not the same everywhere.
  template <typename Integer>
  explicit Digits(Integer number) {
    static_assert(std::is_integral_v<Integer>);
    if constexpr (std::is_signed_v<Integer>) {
      write(std::int64_t{number});
    } else {
      write(std::uint64_t{number});
    }
  }
  operator std::string_view() const {
    return {text_ + begin_, sizeof text_ - begin_};
  }

 private:
  void write(std::int64_t number);
  void write(std::uint64_t number);

  char text_[20];
  std::size_t begin_ = sizeof text_;  // It is written from the end.
};

// Two lower-case hexadecimal digits a byte.  REQUIRES: a multiple of 16 bytes.
void write_hex(const unsigned char* bytes, std::size_t count, char* to);

template <std::size_t kCount>
void write_hex(const std::array<unsigned char, kCount>& bytes, char* to) {
  static_assert(kCount % 16 == 0);
  write_hex(bytes.data(), kCount, to);
}

// Text that grows by many small pieces, as a request does: std::string's += is
// a call that costs more than to copy one of them.
class Text {
 public:
  Text() = default;
  explicit Text(std::size_t room) : text_(room, '\0') {}
  Text(Text&& other) noexcept
      : text_(std::exchange(other.text_, {})),
        size_(std::exchange(other.size_, 0)) {}
  Text& operator=(Text&&) = delete;

  // Not a view into it.
  void operator+=(std::string_view piece) {
    copy(piece, room_for(piece.size()));
  }
  // A literal, whose size the compiler knows.
  template <std::size_t kSize>
  void operator+=(const char (&literal)[kSize]) {
    *this += std::string_view(literal, kSize - 1);
  }
  void operator+=(char c) { *room_for(1) = c; }
  // Between quotes.
  void quote(std::string_view piece) {
    char* const at = room_for(piece.size() + 2);
    at[0] = at[piece.size() + 1] = '"';
    copy(piece, at + 1);
  }
  char& operator[](std::size_t at) { return text_[at]; }
  std::size_t size() const { return size_; }
  const char* data() const { return text_.data(); }
  operator std::string_view() const { return {text_.data(), size_}; }
  // From then on so much fits that no memory is needed for it.
  void reserve(std::size_t room) {
    if (text_.size() < room) text_.resize(room);
  }

  // It is empty from then on.
  std::string take() {
    text_.resize(std::exchange(size_, 0));
    return std::exchange(text_, {});
  }
  // Overwritten and empty, to be written anew: usual room stays.
  void wipe() noexcept;

 private:
  char* room_for(std::size_t more) {
    if (text_.size() - size_ < more) grow(more);
    return text_.data() + std::exchange(size_, size_ + more);
  }
  static void copy(std::string_view piece, char* to) {
    std::string_view::traits_type::copy(to, piece.data(), piece.size());
  }
  void grow(std::size_t more);

  std::string text_;  // And the room behind it.
  std::size_t size_ = 0;
};

// Puts the pieces behind `text`.  None of them may be a view into it.
void append(std::string& text, Pieces pieces);

// --- For people --------------------------------------------------------------

// What format() is made of.  The pieces' types are told by `kinds`, two bits
// each, the first lowest.  So a piece costs a pointer where it is named; a list
// of views has 20 bytes of code for each.
std::string formatted(const char* pattern, unsigned kinds, ...);
void append_formatted(std::string& text, const char* pattern, unsigned kinds,
                      ...);
void append_pieces(std::string& text, const char* pattern, unsigned kinds,
                   std::va_list pieces);

template <class Piece>
constexpr unsigned kind_of() {
  constexpr unsigned kKind = std::is_convertible_v<Piece, const char*> ? 0
                             : std::is_same_v<Piece, std::string>      ? 1
                             : std::is_same_v<Piece, std::string_view> ? 2
                             : std::is_integral_v<Piece>               ? 3
                                                                       : 4;
  static_assert(kKind < 4,
                "no piece of a text for people, as a Secret is none");
  return kKind;
}
template <class... Piece>
constexpr unsigned kinds_of() {
  static_assert(sizeof...(Piece) <= 16);
  unsigned kinds = 0, shift = 0;
  ((kinds |= kind_of<Piece>() << shift, shift += 2), ...);
  return kinds;
}
inline const void* passed(const char* piece) { return piece; }
inline const void* passed(const std::string& piece) { return &piece; }
inline const void* passed(const std::string_view& piece) { return &piece; }
template <class Integer, class = std::enable_if_t<std::is_integral_v<Integer>>>
std::int64_t passed(Integer piece) {
  return static_cast<std::int64_t>(piece);
}

// The pattern with the pieces in the place of its marks, one after the other:
// "%s" is one as it is, "%q" one in_quotes().  What stands between "%[" and
// "%]" is left out if a piece in it is empty.  A piece is a C string, a
// std::string, a view or a whole number.
//
//   format("cannot open %q%[: %s%]", path, why)
//
// It grows by pieces, which a secret must not.
template <class... Piece>
[[gnu::always_inline]] inline std::string format(const char* pattern,
                                                 const Piece&... pieces) {
  return formatted(pattern, kinds_of<Piece...>(), passed(pieces)...);
}
// The same behind `text`, into which no piece is a view.
template <class... Piece>
[[gnu::always_inline]] inline void format_to(std::string& text,
                                             const char* pattern,
                                             const Piece&... pieces) {
  append_formatted(text, pattern, kinds_of<Piece...>(), passed(pieces)...);
}

// --- Looked at ---------------------------------------------------------------

bool begins_with(std::string_view text, std::string_view with);
bool begins_with(std::string_view text, const char* with);

// Whether all of its characters are such.  std::all_of() is unrolled, and that
// for each function it is given.
bool consists_of(std::string_view text, bool (*fits)(char));

// Of visible ASCII alone: it may stand in a header, where a line break would be
// another one.
bool is_visible(std::string_view text);

// These look at ASCII only.  The C library's functions depend on the locale: in
// a Turkish one, 'i' is not the lower case of 'I'.

inline bool is_digit(char c) { return c >= '0' && c <= '9'; }

inline char lower_case(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Whether they are equal, apart from upper and lower case.
bool same_in_any_case(std::string_view a, std::string_view b);

inline bool all_digits(std::string_view text) {
  return sigv4::consists_of(text, is_digit);
}

// Letters and digits of ASCII, and what else may be.
bool is_alphanumeric(std::string_view text, std::string_view also);

// Without the blanks, tabs and line ends around it.
std::string_view trimmed(std::string_view text);

// Cuts the part before `mark` off `text`, and the mark with it; all of it if
// there is none.
std::string_view cut(std::string_view& text, char mark);

// Whether `word` is one of `words`, which are separated by `mark`.
bool is_among(std::string_view words, std::string_view word, char mark = ' ');

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_TEXT_HPP
