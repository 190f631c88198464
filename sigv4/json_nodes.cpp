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
class Scanner {
 public:
  explicit Scanner(std::string_view text)
      : at_(text.data()), end_(at_ + text.size()) {}

  const char* at() const { return at_; }
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
  // With its quotes; what it stands for goes to `out`, unless that is null.
  bool string(char*& out);
  // A string, number or word.
  bool scalar();

 private:
  bool is_one_of(std::string_view set) const {
    return at_ != end_ && set.find(*at_) != set.npos;
  }
  bool escape(char*& out);
  bool four_digits(unsigned& code);
  bool digits();
  bool number();

  const char* at_;
  const char* const end_;
};

bool Scanner::four_digits(unsigned& code) {
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
bool Scanner::escape(char*& out) {
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

bool Scanner::string(char*& out) {
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

bool Scanner::digits() {
  const char* const before = at_;
  while (at_ != end_ && *at_ >= '0' && *at_ <= '9') ++at_;
  return at_ != before;
}

bool Scanner::number() {
  take('-');
  if (!take('0') && !digits()) return false;
  if (take('.') && !digits()) return false;
  if (!take('e') && !take('E')) return true;
  if (!take('+')) take('-');
  return digits();
}

bool Scanner::scalar() {
  char* nowhere = nullptr;
  const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
  for (const std::string_view word : {"true", "false", "null"}) {
    if (rest.substr(0, word.size()) != word) continue;
    at_ += word.size();
    return true;
  }
  return is_one_of("\"") ? string(nowhere) : number();
}

// Of a whole text.
class Reader {
 public:
  Reader(std::string_view text, JsonNodes& nodes)
      : scanner_(text), nodes_(nodes) {}

  // A value, with the blanks around it.
  bool value();
  const char* at() const { return scanner_.at(); }

 private:
  bool scalar();
  bool close();

  Scanner scanner_;
  JsonNodes& nodes_;
  // The innermost list or object that is open.  Its `count` is the one around
  // it meanwhile.
  std::uint32_t open_ = kNone;
};

bool Reader::value() {
  for (scanner_.pass_blanks();;) {
    const char* const begin = scanner_.at();
    const bool opens = scanner_.take('{') || scanner_.take('[');
    if (opens) {
      nodes_.push_back({begin, 0, open_});
      open_ = static_cast<std::uint32_t>(nodes_.size() - 1);
    } else if (!scalar()) {
      return false;
    }
    bool first = opens;  // Nothing is in it yet.
    for (scanner_.pass_blanks(); open_ != kNone && close();) first = false;
    if (open_ == kNone) return true;
    if (!first && !scanner_.take(',')) return false;
    scanner_.pass_blanks();
    if (nodes_[open_].first() == '[') continue;
    if (!scalar() || nodes_.back().first() != '"') return false;
    scanner_.pass_blanks();
    if (!scanner_.take(':')) return false;
    scanner_.pass_blanks();
  }
}

bool Reader::scalar() {
  const char* const begin = scanner_.at();
  if (!scanner_.scalar()) return false;
  const auto size = static_cast<std::uint32_t>(scanner_.at() - begin);
  nodes_.push_back({begin, size, 1});
  return true;
}

// The innermost, if it ends here, and the blanks behind it.
bool Reader::close() {
  JsonNode& node = nodes_[open_];
  if (!scanner_.take(node.first() == '{' ? '}' : ']')) return false;
  const std::uint32_t around = node.count;
  node.size = static_cast<std::uint32_t>(scanner_.at() - node.text);
  node.count = static_cast<std::uint32_t>(nodes_.size() - open_);
  open_ = around;
  scanner_.pass_blanks();
  return true;
}

}  // namespace

bool read_json(std::string_view text, JsonNodes& nodes, std::size_t* bad_at) {
  // Of items, that is room enough: there is no less than that about a value.
  nodes.reserve(text.size() / 4);
  Reader reader(text, nodes);
  const bool good = text.size() < kNone && reader.value();
  const auto read = static_cast<std::size_t>(reader.at() - text.data());
  if (bad_at != nullptr) *bad_at = read;
  return good && read == text.size();
}

char* decode_json(std::string_view quoted, char* out) {
  Scanner(quoted).string(out);
  return out;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
