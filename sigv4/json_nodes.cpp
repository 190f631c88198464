#include "json_nodes.hpp"

#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// No node: no text is so long.
constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

// Appends a character of UTF-8.
char* put_utf8(char* out, unsigned code) {
  if (code < 0x80) {
    *out++ = static_cast<char>(code);
    return out;
  }
  constexpr unsigned kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  *out++ = static_cast<char>(kFirst[more] | code >> 6 * more);
  while (more-- > 0) {
    *out++ = static_cast<char>(0x80 | (code >> 6 * more & 0x3f));
  }
  return out;
}

// Takes one thing after the other from the front of a text; false if what is
// there is another.
class Reader {
 public:
  explicit Reader(std::string_view text)
      : at_(text.data()), end_(at_ + text.size()) {}

  const char* at() const { return at_; }
  // With its quotes; what it stands for goes to `out`, unless that is null.
  bool string(char*& out);
  // A value, with the blanks around it.
  bool value(JsonNodes& nodes);

 private:
  void pass_blanks() {
    while (at_ != end_ &&
           (*at_ == ' ' || *at_ == '\n' || *at_ == '\r' || *at_ == '\t')) {
      ++at_;
    }
  }
  bool take(char c) {
    const bool there = at_ != end_ && *at_ == c;
    if (there) ++at_;
    return there;
  }
  bool is_one_of(std::string_view set) const {
    return at_ != end_ && set.find(*at_) != set.npos;
  }
  bool escape(char*& out);
  bool four_digits(unsigned& code);
  bool digits();
  bool number();
  // A string, number or word.
  bool scalar(JsonNodes& nodes);
  bool close(JsonNodes& nodes);

  const char* at_;
  const char* const end_;
  // The innermost list or object that is open.  Its `count` is the one around
  // it meanwhile.
  std::uint32_t open_ = kNone;
};

bool Reader::four_digits(unsigned& code) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  code = 0;
  for (int i = 0; i < 4; ++i) {
    if (!is_one_of(kDigits)) return false;
    const std::size_t digit = kDigits.find(*at_++);
    code = 16 * code + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
  }
  return true;
}

// Behind the backslash.
bool Reader::escape(char*& out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  unsigned code = 0, second = 0;
  if (is_one_of(kEscapes)) {
    code = static_cast<unsigned char>(kMeant[kEscapes.find(*at_++)]);
  } else if (!take('u') || !four_digits(code)) {
    return false;
  } else if (code >= 0xd800 && code < 0xe000) {  // Half a pair.
    if (code >= 0xdc00 || !take('\\') || !take('u')) return false;
    if (!four_digits(second) || second < 0xdc00 || second >= 0xe000) {
      return false;
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  if (out != nullptr) out = put_utf8(out, code);
  return true;
}

bool Reader::string(char*& out) {
  if (!take('"')) return false;
  while (at_ != end_ && static_cast<unsigned char>(*at_) >= 0x20) {
    const char c = *at_++;
    if (c == '"') return true;
    if (c == '\\') {
      if (!escape(out)) return false;
    } else if (out != nullptr) {
      *out++ = c;
    }
  }
  return false;
}

bool Reader::digits() {
  const char* const before = at_;
  while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
  return at_ != before;
}

bool Reader::number() {
  take('-');
  if (!take('0') && !digits()) return false;
  if (take('.') && !digits()) return false;
  if (!take('e') && !take('E')) return true;
  if (!take('+')) take('-');
  return digits();
}

bool Reader::scalar(JsonNodes& nodes) {
  const char* const begin = at_;
  char* nowhere = nullptr;
  const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
  for (const std::string_view word : {"true", "false", "null"}) {
    if (rest.substr(0, word.size()) == word) at_ += word.size();
  }
  const bool good =
      at_ != begin || (is_one_of("\"") ? string(nowhere) : number());
  nodes.push_back({begin, static_cast<std::uint32_t>(at_ - begin), 1});
  return good;
}

// The innermost, if it ends here, and the blanks behind it.
bool Reader::close(JsonNodes& nodes) {
  JsonNode& node = nodes[open_];
  if (!take(node.first() == '{' ? '}' : ']')) return false;
  const std::uint32_t around = node.count;
  node.size = static_cast<std::uint32_t>(at_ - node.text);
  node.count = static_cast<std::uint32_t>(nodes.size() - open_);
  open_ = around;
  pass_blanks();
  return true;
}

bool Reader::value(JsonNodes& nodes) {
  for (pass_blanks();;) {
    const char* const begin = at_;
    const bool opens = take('{') || take('[');
    if (opens) {
      nodes.push_back({begin, 0, open_});
      open_ = static_cast<std::uint32_t>(nodes.size() - 1);
    } else if (!scalar(nodes)) {
      return false;
    }
    bool first = opens;  // Nothing is in it yet.
    for (pass_blanks(); open_ != kNone && close(nodes);) first = false;
    if (open_ == kNone) return true;
    if (!first && !take(',')) return false;
    pass_blanks();
    if (nodes[open_].first() == '[') continue;
    if (!scalar(nodes) || nodes.back().first() != '"') return false;
    pass_blanks();
    if (!take(':')) return false;
    pass_blanks();
  }
}

}  // namespace

bool read_json(std::string_view text, JsonNodes& nodes, std::size_t* bad_at) {
  // Of items, that is room enough: there is no less than that about a value.
  nodes.reserve(text.size() / 4);
  Reader reader(text);
  const bool good = text.size() < kNone && reader.value(nodes);
  const auto read = static_cast<std::size_t>(reader.at() - text.data());
  if (bad_at != nullptr) *bad_at = read;
  return good && read == text.size();
}

char* decode_json(std::string_view quoted, char* out) {
  Reader(quoted).string(out);
  return out;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
