#include "text.hpp"

#include <algorithm>
#include <cstddef>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

std::string join(std::initializer_list<std::string_view> pieces) {
  std::string text;
  append(text, pieces);
  return text;
}

std::string decimal(std::int64_t number) { return std::string(Digits(number)); }

// From the end, and as what is not negative: the smallest has no counterpart.
Digits::Digits(std::int64_t number) {
  auto left = static_cast<std::uint64_t>(number);
  if (number < 0) left = 0 - left;
  begin_ = sizeof text_;
  do {
    text_[--begin_] = static_cast<char>('0' + left % 10);
    left /= 10;
  } while (left != 0);
  if (number < 0) text_[--begin_] = '-';
}

void append(std::string& text, std::initializer_list<std::string_view> pieces) {
  std::size_t size = text.size();
  for (const std::string_view piece : pieces) size += piece.size();
  // Never less than twice the room, or a text that grows by pieces is copied
  // with every one.
  if (size > text.capacity()) {
    text.reserve(text.empty() || size > 2 * text.capacity()
                     ? size
                     : 2 * text.capacity());
  }
  const std::size_t before = text.size();
  text.resize(size);  // At once: a check of the room for each costs more.
  char* out = text.data() + before;
  for (const std::string_view piece : pieces) {
    out = std::copy(piece.begin(), piece.end(), out);
  }
}

bool begins_with(std::string_view text, std::string_view with) {
  return text.substr(0, with.size()) == with;
}

bool consists_of(std::string_view text, bool (*fits)(char)) {
  for (const char c : text) {
    if (!fits(c)) return false;
  }
  return true;
}

bool is_visible(std::string_view text) {
  return consists_of(text, [](char c) { return c > ' ' && c <= '~'; });
}

std::string_view cut(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
