#include "json.hpp"

#include <string.h>

#include <algorithm>
#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// --- Reading ---------------------------------------------------------------

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

bool is_space(char c) {
  return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

// The place behind the string whose first quote is before `at`; the text's end
// if the string does not end.
std::size_t after_string(std::string_view text, std::size_t at) {
  while (at < text.size() && text[at] != '"') at += text[at] == '\\' ? 2 : 1;
  return std::min(at + 1, text.size());
}

// How many nodes the text has if it is JSON: strings (also names), lists,
// objects, numbers and words.
std::size_t count_nodes(std::string_view text) {
  constexpr std::string_view kBetween = ",:]}";
  std::size_t count = 0;
  bool in_scalar = false;  // A number or a word, which is counted already.
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at++];
    const bool opens = c == '"' || c == '{' || c == '[';
    const bool between = is_space(c) || kBetween.find(c) != kBetween.npos;
    if (opens || (!between && !in_scalar)) ++count;
    in_scalar = !opens && !between;
    if (c == '"') at = after_string(text, at);
  }
  return count;
}

// Takes one thing after the other from the front of a text, in which it decodes
// strings; false if what is there is another.
class Reader {
 public:
  Reader(char* text, std::size_t size, JsonNode* nodes, std::uint32_t room)
      : at_(text), end_(text + size), nodes_(nodes), room_(room) {}

  const char* at() const { return at_; }
  // A value, with the blanks around it.
  bool value();

 private:
  void pass_blanks() {
    while (at_ != end_ && is_space(*at_)) ++at_;
  }
  bool take(char c) {
    const bool there = at_ != end_ && *at_ == c;
    if (there) ++at_;
    return there;
  }
  bool is_one_of(std::string_view set) const {
    return at_ != end_ && set.find(*at_) != set.npos;
  }
  // False if there are more than count_nodes() has counted: it is not JSON.
  bool add(const JsonNode& node) {
    if (count_ == room_) {
      at_ += end_ - at_;
      return false;
    }
    nodes_[count_++] = node;
    return true;
  }
  bool four_digits(unsigned& code);
  bool escape(char*& out);
  // Behind its first quote.  What it stands for goes there: it is no longer.
  bool string(std::uint32_t& size);
  bool digits();
  bool number();
  // A string, number or word.
  bool scalar();
  bool close();

  char* at_;
  const char* const end_;
  JsonNode* const nodes_;
  const std::uint32_t room_;
  std::uint32_t count_ = 0;
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
  out = put_utf8(out, code);
  return true;
}

bool Reader::string(std::uint32_t& size) {
  const char* const begin = at_;
  char* out = at_;
  while (at_ != end_ && static_cast<unsigned char>(*at_) >= 0x20) {
    const char c = *at_++;
    if (c == '"') {
      size = static_cast<std::uint32_t>(out - begin);
      return true;
    }
    if (c != '\\') {
      *out++ = c;
    } else if (!escape(out)) {
      return false;
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

bool Reader::scalar() {
  const char* const begin = at_;
  std::uint32_t count = 1;
  const std::string_view rest(at_, static_cast<std::size_t>(end_ - at_));
  for (const std::string_view word : {"true", "false", "null"}) {
    if (sigv4::begins_with(rest, word)) at_ += word.size();
  }
  const bool good = at_ != begin || (take('"') ? string(count) : number());
  return good && add({begin, static_cast<std::uint32_t>(at_ - begin), count});
}

// The innermost, if it ends here, and the blanks behind it.
bool Reader::close() {
  JsonNode& node = nodes_[open_];
  if (!take(node.first() == '{' ? '}' : ']')) return false;
  const std::uint32_t around = node.count;
  node.size = static_cast<std::uint32_t>(at_ - node.begin);
  node.count = count_ - open_;
  open_ = around;
  pass_blanks();
  return true;
}

bool Reader::value() {
  for (pass_blanks();;) {
    const char* const begin = at_;
    const bool opens = take('{') || take('[');
    if (opens) {
      if (!add({begin, 0, open_})) return false;
      open_ = count_ - 1;
    } else if (!scalar()) {
      return false;
    }
    bool first = opens;  // Nothing is in it yet.
    for (pass_blanks(); open_ != kNone && close();) first = false;
    if (open_ == kNone) return true;
    if (!first && !take(',')) return false;
    pass_blanks();
    if (nodes_[open_].first() == '[') continue;
    if (!scalar() || nodes_[count_ - 1].first() != '"') return false;
    pass_blanks();
    if (!take(':')) return false;
    pass_blanks();
  }
}

// --- Writing ---------------------------------------------------------------

bool needs_escape(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\';
}

// How much there is in front of what is to be escaped; eight bytes are looked
// at at once.
std::size_t plain_size(std::string_view text) {
  constexpr std::uint64_t kEach = 0x0101010101010101;
  // Of some byte there remains its highest bit, which it had not.
  const auto below = [](std::uint64_t bytes, std::uint64_t bound) {
    return (bytes - bound * kEach) & ~bytes & 0x80 * kEach;
  };
  constexpr std::size_t kEight = sizeof kEach;
  const auto is_plain_at = [&](std::size_t at) {
    std::uint64_t eight;
    memcpy(&eight, text.data() + at, kEight);
    return (below(eight, 0x20) | below(eight ^ '"' * kEach, 1) |
            below(eight ^ '\\' * kEach, 1)) == 0;
  };
  std::size_t size = 0;
  while (text.size() - size >= kEight && is_plain_at(size)) size += kEight;
  // What is left may be looked at with some of what was before it.
  const bool few_left = size > 0 && text.size() - size < kEight;
  if (few_left && is_plain_at(text.size() - kEight)) return text.size();
  while (size < text.size() && !needs_escape(text[size])) ++size;
  return size;
}

}  // namespace

std::optional<std::string_view> Value::text() const {
  if (first() != '"') return std::nullopt;
  return node_->string();
}

std::optional<std::int64_t> Value::number() const {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  constexpr int kFar = 1000;  // No such number is one of ours.
  const bool negative = first() == '-';
  if (!negative && !is_digit(first())) return std::nullopt;
  std::string_view written(node_->begin, node_->size);
  if (negative) written.remove_prefix(1);
  const std::size_t e = std::min(written.find_first_of("eE"), written.size());
  int exponent = 0;
  for (const char c : written.substr(e)) {
    if (is_digit(c)) exponent = std::min(10 * exponent + (c - '0'), kFar);
  }
  if (written.find('-') != written.npos) exponent = -exponent;
  const std::size_t point = std::min(written.find('.'), e);
  const auto places = static_cast<std::int64_t>(point) + exponent;
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < places; ++i) {
    auto at = static_cast<std::size_t>(i);
    if (at >= point) ++at;
    const int digit = at < e ? written[at] - '0' : 0;
    if (value > (kLargest - digit) / 10) return std::nullopt;
    value = 10 * value + digit;
  }
  return negative ? -value : value;
}

std::size_t Value::size() const {
  std::size_t count = 0;
  for (Elements each(*this); each.next();) ++count;
  return count;
}

Value Value::operator[](const char* name) const {
  Value found;
  for (Elements each(*this); is_object() && each.next();) {
    if (each.name == name) found = each.value;
  }
  return found;
}

std::string_view Value::text(const char* name) const {
  return (*this)[name].text().value_or("");
}

Elements::Elements(Value of) : named_(of.is_object()) {
  if (!named_ && !of.is_list()) return;
  at_ = of.node_ + 1;
  end_ = of.node_->after();
}

bool Elements::next() {
  if (at_ == end_) return false;
  if (named_) name = at_++->string();
  value = Value(at_);
  at_ = at_->after();
  return true;
}

Document::Document(std::string&& text, Strings strings)
    : text_(std::move(text)) {
  const std::string_view all = text_;
  const std::size_t good =
      strings == Strings::utf8 ? sigv4::utf8_part(all).size() : all.size();
  if (good >= kNone) return;
  // Counted, not guessed: an answer may have megabytes.
  const auto room =
      static_cast<std::uint32_t>(count_nodes(all.substr(0, good)));
  nodes_.reset(new JsonNode[room]);
  Reader reader(text_.data(), good, nodes_.get(), room);
  const bool whole = reader.value();
  bad_at_ = static_cast<std::size_t>(reader.at() - all.data());
  if (!whole || bad_at_ < all.size()) nodes_.reset();
}

Document::~Document() = default;

Value Document::root() const {
  return is_json() ? Value(nodes_.get()) : Value();
}

void append_string(Text& json, std::string_view text) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::size_t plain = plain_size(text);
  if (plain == text.size()) return json.quote(text);
  json += '"';
  for (;; plain = plain_size(text)) {
    json += text.substr(0, plain);
    if (plain == text.size()) break;
    const char c = text[plain];
    if (c == '"' || c == '\\') {
      json += '\\';
      json += c;
    } else {
      json += c < 0x10 ? "\\u000" : "\\u001";
      json += kDigits[c & 0xf];
    }
    text.remove_prefix(plain + 1);
  }
  json += '"';
}

void append_form(Text& json, std::string_view form,
                 std::initializer_list<std::string_view> values) {
  const std::string_view* value = values.begin();
  for (;;) {
    std::size_t slot = 0;
    while (slot < form.size() && form[slot] != '$' && form[slot] != '%') ++slot;
    json += form.substr(0, slot);
    if (slot == form.size()) return;
    if (form[slot] == '$') {
      append_string(json, *value++);
    } else {
      json += *value++;
    }
    form.remove_prefix(slot + 1);
  }
}

namespace {

// Writes objects with some members replaced.
class Rewriter {
 public:
  // `written`: the original text.  `decoded`: the start of its copy that was
  // parsed, whose nodes are at the same places.
  Rewriter(std::string_view written, const char* decoded, std::size_t room)
      : json_(room), written_(written), decoded_(decoded) {}

  void write(const JsonNode* object, JsonTexts texts,
             std::string_view inner_name, JsonTexts inner) {
    json_ += '{';
    std::string_view comma;
    const JsonNode* const end = object->after();
    for (const JsonNode* one = object + 1; one != end; one = one[1].after()) {
      if (is_replaced(*one, texts)) continue;
      append_form(json_, "%%:", {comma, as_written(*one)});
      comma = ",";
      if (one->string() == inner_name && one[1].first() == '{') {
        write(&one[1], inner, {}, {});
      } else {
        json_ += as_written(one[1]);
      }
    }
    for (const auto& [name, text] : texts) {
      append_form(json_, "%$:$", {comma, name, text});
      comma = ",";
    }
    json_ += '}';
  }
  std::string take() { return json_.take(); }

 private:
  static bool is_replaced(const JsonNode& name, JsonTexts texts) {
    for (const auto& text : texts) {
      if (text.first == name.string()) return true;
    }
    return false;
  }
  std::string_view as_written(const JsonNode& node) const {
    return written_.substr(static_cast<std::size_t>(node.begin - decoded_),
                           node.size);
  }

  Text json_;
  const std::string_view written_;
  const char* const decoded_;
};

}  // namespace

std::string with_texts(std::string_view object, JsonTexts texts,
                       std::string_view inner_name, JsonTexts inner) {
  std::size_t room = object.size() + 2;  // Leaves no copy by growing.
  for (const JsonTexts& some : {texts, inner}) {
    for (const auto& [name, text] : some) {
      room += 6 * (name.size() + text.size()) + 6;
    }
  }
  const Document document(std::string(object), Document::Strings::any_bytes);
  Rewriter rewriter(object, document.text_.str().data(), room);
  rewriter.write(document.nodes_.get(), texts, inner_name, inner);
  return rewriter.take();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
