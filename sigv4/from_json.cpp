#include "from_json.hpp"

#include <algorithm>
#include <limits>

#include "text.hpp"
#include "utc.hpp"

// Only those need it that look for keys elsewhere.
#if !defined(DDBMUTEX_NO_HOSTS) || !defined(DDBMUTEX_NO_ROLES) || \
    !defined(DDBMUTEX_NO_SSO) || !defined(DDBMUTEX_NO_PROGRAMS)

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

using State = KeyOutcome::State;

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

void append_utf8(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
    return;
  }
  constexpr unsigned kFirst[] = {0, 0xc0, 0xe0, 0xf0};
  int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  out += static_cast<char>(kFirst[more] | code >> 6 * more);
  while (more-- > 0) {
    out += static_cast<char>(0x80 | (code >> 6 * more & 0x3f));
  }
}

// Takes one thing after the other from the front of a text; false if what is
// there is another.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_(text) {}

  // What is left behind blanks.
  std::string_view rest() {
    const std::size_t blanks = rest_.find_first_not_of(" \t\r\n");
    rest_.remove_prefix(std::min(blanks, rest_.size()));
    return rest_;
  }
  std::size_t left() const { return rest_.size(); }
  bool take(char c) { return rest(), take_next(c); }
  // With its quotes; what it stands for goes to `out`, unless that is null.
  bool string(std::string* out);
  // Whatever it is, with all that is in it.
  bool value();

 private:
  bool take_next(char c) {
    const bool there = !rest_.empty() && rest_[0] == c;
    if (there) rest_.remove_prefix(1);
    return there;
  }
  char next() {  // 0 if there is none.
    const char c = rest_.empty() ? '\0' : rest_[0];
    if (!rest_.empty()) rest_.remove_prefix(1);
    return c;
  }
  bool escape(std::string* out);
  bool four_digits(unsigned& code);
  bool digits();
  bool number();
  bool scalar();
  bool name() { return rest(), string(nullptr) && take(':'); }

  std::string_view rest_;
};

bool Scanner::four_digits(unsigned& code) {
  constexpr std::string_view kDigits = "0123456789abcdefABCDEF";
  code = 0;
  for (int i = 0; i < 4; ++i) {
    const std::size_t digit = kDigits.find(next());
    if (digit == kDigits.npos) return false;
    code = 16 * code + static_cast<unsigned>(digit < 16 ? digit : digit - 6);
  }
  return true;
}

// Behind the backslash.
bool Scanner::escape(std::string* out) {
  constexpr std::string_view kEscapes = "\"\\/bfnrt";
  constexpr std::string_view kMeant = "\"\\/\b\f\n\r\t";
  const char c = next();
  const std::size_t known = kEscapes.find(c);
  unsigned code = 0, second = 0;
  if (known != kEscapes.npos) {
    code = static_cast<unsigned char>(kMeant[known]);
  } else if (c != 'u' || !four_digits(code)) {
    return false;
  } else if (code >= 0xd800 && code < 0xe000) {  // Half a pair.
    if (code >= 0xdc00 || next() != '\\' || next() != 'u') return false;
    if (!four_digits(second) || second < 0xdc00 || second >= 0xe000) {
      return false;
    }
    code = 0x10000 + ((code - 0xd800) << 10) + (second - 0xdc00);
  }
  if (out != nullptr) append_utf8(*out, code);
  return true;
}

bool Scanner::string(std::string* out) {
  if (!take_next('"')) return false;
  while (!rest_.empty()) {
    const char c = next();
    if (c == '"') return true;
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c == '\\') {
      if (!escape(out)) return false;
    } else if (out != nullptr) {
      out->push_back(c);
    }
  }
  return false;
}

bool Scanner::digits() {
  const std::size_t before = rest_.size();
  while (!rest_.empty() && is_decimal(rest_[0])) rest_.remove_prefix(1);
  return rest_.size() < before;
}

bool Scanner::number() {
  take_next('-');
  if (!take_next('0') && !digits()) return false;
  if (take_next('.') && !digits()) return false;
  if (!take_next('e') && !take_next('E')) return true;
  if (!take_next('+')) take_next('-');
  return digits();
}

bool Scanner::scalar() {
  for (const std::string_view word : {"true", "false", "null"}) {
    if (rest_.substr(0, word.size()) != word) continue;
    rest_.remove_prefix(word.size());
    return true;
  }
  return string(nullptr) || number();
}

bool Scanner::value() {
  std::string ends;  // Of the objects and arrays around it.
  for (;;) {
    rest();
    bool opens = true;
    if (take_next('{')) {
      ends += '}';
    } else if (take_next('[')) {
      ends += ']';
    } else if (scalar()) {
      opens = false;
    } else {
      return false;
    }
    while (!ends.empty() && take(ends.back())) {
      ends.pop_back();
      opens = false;
    }
    if (ends.empty()) return true;
    if (!opens && !take(',')) return false;
    if (ends.back() == '}' && !name()) return false;
  }
}

Secret decoded(std::string_view string) {
  std::string out;
  out.reserve(string.size());  // Leaves no copy by growing.
  Scanner(string).string(&out);
  return Secret(std::move(out));
}

// A well-formed object's members, one by one.
class Members {
 public:
  explicit Members(std::string_view object) : scanner_(object) {
    scanner_.take('{');
  }
  // False behind the last.
  bool next() {
    if (scanner_.take('}')) return false;
    scanner_.take(',');
    name = one([this] { return scanner_.string(nullptr); });
    scanner_.take(':');
    value = one([this] { return scanner_.value(); });
    return true;
  }

  // As they are written.
  std::string_view name;
  std::string_view value;

 private:
  template <class Take>
  std::string_view one(const Take& take) {
    const std::string_view before = scanner_.rest();
    take();
    return before.substr(0, before.size() - scanner_.left());
  }

  Scanner scanner_;
};

// Of 12, -1.5 or 17e11 what stands before the point; nothing if that is too
// much.
std::optional<std::int64_t> whole(std::string_view number) {
  constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
  constexpr int kFar = 1000;  // No such number is one of ours.
  const bool negative = number[0] == '-';
  if (negative) number.remove_prefix(1);
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  int exponent = 0;
  for (const char c : number.substr(e)) {
    if (is_decimal(c)) exponent = std::min(10 * exponent + (c - '0'), kFar);
  }
  if (number.find('-') != number.npos) exponent = -exponent;
  std::string digits(number.substr(0, e));
  const std::size_t point = std::min(digits.find('.'), digits.size());
  digits.erase(point, 1);
  std::int64_t value = 0;
  const auto places = static_cast<std::int64_t>(point) + exponent;
  for (std::int64_t i = 0; i < places; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const int digit = at < digits.size() ? digits[at] - '0' : 0;
    if (value > (kLargest - digit) / 10) return std::nullopt;
    value = 10 * value + digit;
  }
  return negative ? -value : value;
}

// Why a member is not as keys need it; empty if it is.
std::string flaw_of(const JsonObject& document, const char* name, bool needed) {
  if (!document.has(name)) return needed ? join({"no ", name}) : "";
  const auto text = document.text(name);
  if (!text) return join({name, " is not a string"});
  return needed && text->empty() ? join({name, " is empty"}) : "";
}

}  // namespace

bool all_digits(std::string_view text) {
  return std::all_of(text.begin(), text.end(), is_decimal);
}

std::string_view JsonObject::value_of(std::string_view name) const {
  std::string_view found;
  for (Members members(text_); members.next();) {
    if (std::string_view(decoded(members.name)) == name) found = members.value;
  }
  return found == "null" ? std::string_view() : found;
}

std::optional<Secret> JsonObject::text(std::string_view name) const {
  const std::string_view value = value_of(name);
  if (value.substr(0, 1) != "\"") return std::nullopt;
  return decoded(value);
}

std::optional<std::int64_t> JsonObject::number(std::string_view name) const {
  const std::string_view value = value_of(name);
  const bool is_number =
      !value.empty() && (value[0] == '-' || is_decimal(value[0]));
  return is_number ? whole(value) : std::nullopt;
}

std::optional<JsonObject> JsonObject::object(std::string_view name) const {
  const std::string_view value = value_of(name);
  if (value.substr(0, 1) != "{") return std::nullopt;
  return JsonObject(value);
}

std::optional<JsonObject> parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes) return std::nullopt;
  Scanner scanner(text);
  const JsonObject object(scanner.rest());
  const bool whole = object.text_.substr(0, 1) == "{" && scanner.value() &&
                     scanner.rest().empty();
  return whole ? std::optional(object) : std::nullopt;
}

std::string json_string(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string result;
  result.reserve(6 * text.size() + 2);  // Leaves no copy by growing.
  result += '"';
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      append(result, {"\\u00", c < 0x10 ? "0" : "1", {&kHex[c & 0xf], 1}});
    } else {
      result += c;
    }
  }
  result += '"';
  return result;
}

Secret json_object(const JsonTexts& texts) {
  return with_texts(*parse_json("{}"), texts);
}

Secret with_texts(const JsonObject& object, const JsonTexts& texts) {
  std::size_t room = object.text_.size() + 2;
  for (const auto& [name, text] : texts) {
    room += 6 * (name.size() + text.size()) + 6;
  }
  std::string result;
  result.reserve(room);  // Leaves no copy by growing.
  result += '{';
  const auto put = [&result](std::string_view name, std::string_view value) {
    append(result, {result.size() > 1 ? "," : "", name, ":", value});
  };
  for (Members member(object.text_); member.next();) {
    const Secret own = decoded(member.name);
    const bool stays =
        std::none_of(texts.begin(), texts.end(), [&own](const auto& text) {
          return text.first == std::string_view(own);
        });
    if (stays) put(member.name, member.value);
  }
  for (const auto& [name, text] : texts) {
    put(json_string(name), Secret(json_string(text)));
  }
  result += '}';
  return Secret(std::move(result));
}

KeyOutcome keys_in_document(const JsonObject& document, const KeyForm& form,
                            const std::string& place, std::int64_t now) {
  const auto& [id, secret, token] = form.names;
  std::string flaw = flaw_of(document, id, true);
  if (flaw.empty()) flaw = flaw_of(document, secret, true);
  if (flaw.empty()) flaw = flaw_of(document, token, form.must_end);
  if (flaw.empty() && form.must_end && !document.has(form.end)) {
    flaw = join({"no ", form.end});
  }
  if (!flaw.empty()) return broken_keys(join({flaw, " in ", place}));
  KeyOutcome outcome = judged({document.text(id)->str(), *document.text(secret),
                               document.text(token).value_or(Secret()), ""},
                              place, form.names);
  if (outcome.state != State::found) return outcome;
  if (const auto account = document.text("AccountId")) {
    if (!account->empty() && all_digits(*account)) {
      outcome.keys.account_id = account->str();
    } else {
      append(outcome.warnings, {"AccountId in ", place,
                                " is not an account's number: left out\n"});
    }
  }
  if (!document.has(form.end)) return outcome;
  const auto end = document.text(form.end);
  auto expires = end ? parse_iso8601(*end) : document.number(form.end);
  if (!expires) {
    return broken_keys(
        join({form.end, " is no time of ISO 8601 with a zone in ", place}));
  }
  outcome.ends = ends_at(end ? *expires : *expires / form.units, now);
  return outcome;
}

KeyOutcome keys_in(std::string_view text,
                   std::initializer_list<std::string_view> names,
                   const KeyForm& form, const std::string& place,
                   std::int64_t now) {
  auto object = parse_json(text);
  if (!object) return broken_keys(place + " is no JSON object");
  for (const std::string_view name : names) {
    object = object->object(name);
    if (!object) return broken_keys(join({"no ", name, " in ", place}));
  }
  return keys_in_document(*object, form, place, now);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif
