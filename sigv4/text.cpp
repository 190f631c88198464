#include "text.hpp"

#include <algorithm>
#include <charconv>
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

Digits::Digits(std::int64_t number) {
  const char* const end =
      std::to_chars(text_, text_ + sizeof text_, number).ptr;
  size_ = static_cast<std::size_t>(end - text_);
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

std::string_view cut(std::string_view& text, char mark) {
  const std::size_t end = std::min(text.find(mark), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
