// Text put together of pieces, with one allocation and little code at the place
// where it is asked for: operator+ makes a string, and its destruction, of
// every piece.  And cut into pieces.
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

// The pieces one behind the other: join({"table ", name, " is not there"}).
std::string join(Pieces pieces);

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

// An optional piece: the text with `before` and `after` around it, or nothing
// if it is empty: join({"cannot open ", in_quotes(path), if_any(": ",
// reason)}).
std::string if_any(std::string_view before, std::string_view text,
                   std::string_view after = {});

// "-12"
std::string decimal(std::int64_t number);

// The same for as long as the expression in which it stands: as a piece.
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
  // Which of C++'s types have 64 bits is not the same everywhere.
  void write(std::int64_t number);
  void write(std::uint64_t number);

  char text_[20];
  std::size_t size_;
};

// A lower-case hexadecimal digit.
constexpr char hex_digit(int value) {
  return static_cast<char>(value < 10 ? '0' + value : 'a' + value - 10);
}

// Two digits a byte.  `bytes` is a copy, which `to` cannot be in: so the
// compiler makes all digits at once.
template <std::size_t kCount>
void write_hex(std::array<unsigned char, kCount> bytes, char* to) {
  for (std::size_t i = 0; i < kCount; ++i) {
    to[2 * i] = hex_digit(bytes[i] >> 4);
    to[2 * i + 1] = hex_digit(bytes[i] & 15);
  }
}

// Text that grows by many small pieces, as a request does: std::string's += is
// a call that costs more than to copy one of them.  All memory that it has used
// is wiped before it is freed, for a request may hold a token.
class Text {
 public:
  Text() = default;
  explicit Text(std::size_t room) : text_(room, '\0') {}
  ~Text() { wipe(); }
  Text(Text&& other) noexcept
      : text_(std::exchange(other.text_, {})),
        size_(std::exchange(other.size_, 0)) {}
  Text& operator=(Text&&) = delete;

  // Not a view into it.
  void operator+=(std::string_view piece) {
    copy(piece, room_for(piece.size()));
  }
  void operator+=(char c) { *room_for(1) = c; }
  char& operator[](std::size_t at) { return text_[at]; }
  std::size_t size() const { return size_; }
  const char* data() const { return text_.data(); }
  operator std::string_view() const { return {text_.data(), size_}; }
  // From then on so much fits that no memory is needed for it.
  void reserve(std::size_t room) {
    if (text_.size() < room) set_room(room);
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
    if (text_.size() - size_ < more) set_room(2 * text_.size() + more);
    return text_.data() + std::exchange(size_, size_ + more);
  }
  static void copy(std::string_view piece, char* to) {
    std::string_view::traits_type::copy(to, piece.data(), piece.size());
  }
  void set_room(std::size_t room);

  std::string text_;  // And the room behind it.
  std::size_t size_ = 0;
};

// Puts the pieces behind `text`.  None of them may be a view into it.
void append(std::string& text, Pieces pieces);

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
