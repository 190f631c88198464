// Only those need it that look for keys elsewhere.
#if !defined(DDBMUTEX_NO_HOSTS) || !defined(DDBMUTEX_NO_ROLES) || \
    !defined(DDBMUTEX_NO_SSO) || !defined(DDBMUTEX_NO_PROGRAMS)
#include "from_json.hpp"

#include <algorithm>
#include <limits>

#include "json_nodes.hpp"
#include "text.hpp"
#include "utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

Secret decoded(std::string_view quoted) {
  std::string out(quoted.size(), '\0');
  char* const end = decode_json(quoted, out.data());
  out.resize(static_cast<std::size_t>(end - out.data()));
  return Secret(std::move(out));
}

// None if it is no JSON.
JsonNodes nodes_of(std::string_view text) {
  JsonNodes nodes;
  if (!read_json(text, nodes)) nodes.clear();
  return nodes;
}

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
    if (is_digit(c)) exponent = std::min(10 * exponent + (c - '0'), kFar);
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

// Why a member is not as keys need it, as a pattern; empty if it is.
const char* flaw_of(const JsonObject& document, const char* name, bool needed) {
  if (!document.has(name)) return needed ? "no %s in %s" : "";
  if (!document.has_text(name)) return "%s is not a string in %s";
  return needed && document.text(name).empty() ? "%s is empty in %s" : "";
}

}  // namespace

std::string_view JsonObject::value_of(std::string_view name) const {
  std::string_view found;
  const JsonNodes nodes = nodes_of(text_);
  const JsonNode* const end = nodes.data() + nodes.size();
  for (const JsonNode* one = nodes.data() + 1; one != end;
       one = one[1].after()) {
    if (std::string_view(decoded(one->raw())) == name) found = one[1].raw();
  }
  return found == "null" ? std::string_view() : found;
}

bool JsonObject::has(std::string_view name) const {
  return !value_of(name).empty();
}

bool JsonObject::has_text(std::string_view name) const {
  return value_of(name).substr(0, 1) == "\"";
}

Secret JsonObject::text(std::string_view name) const {
  return has_text(name) ? decoded(value_of(name)) : Secret();
}

std::optional<std::int64_t> JsonObject::number(std::string_view name) const {
  const std::string_view value = value_of(name);
  const bool is_number =
      !value.empty() && (value[0] == '-' || is_digit(value[0]));
  return is_number ? whole(value) : std::nullopt;
}

std::optional<JsonObject> JsonObject::object(std::string_view name) const {
  const std::string_view value = value_of(name);
  if (value.substr(0, 1) != "{") return std::nullopt;
  return JsonObject(value);
}

std::optional<JsonObject> parse_json(std::string_view text) {
  if (text.size() > kMaxJsonBytes) return std::nullopt;
  const JsonNodes nodes = nodes_of(text);
  if (nodes.empty() || nodes[0].first() != '{') return std::nullopt;
  return JsonObject(nodes[0].raw());
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

Secret json_object(JsonTexts texts) {
  return with_texts(*parse_json("{}"), texts);
}

Secret with_texts(const JsonObject& object, JsonTexts texts) {
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
  const JsonNodes nodes = nodes_of(object.text_);
  const JsonNode* const end = nodes.data() + nodes.size();
  for (const JsonNode* one = nodes.data() + 1; one != end;
       one = one[1].after()) {
    const Secret own = decoded(one->raw());
    bool stays = true;
    for (const auto& text : texts) stays = stays && text.first != own.str();
    if (stays) put(one->raw(), one[1].raw());
  }
  for (const auto& [name, text] : texts) {
    put(json_string(name), Secret(json_string(text)));
  }
  result += '}';
  return Secret(std::move(result));
}

KeyOutcome keys_in_document(const JsonObject& document, const KeyForm& form,
                            std::string_view place, std::int64_t now) {
  const auto& [id, secret, token] = form.names;
  for (const char* name : {id, secret, token}) {
    const char* flaw = flaw_of(document, name, name != token || form.must_end);
    if (*flaw != '\0') return broken_keys(flaw, name, place);
  }
  const bool ends = document.has(form.end);
  if (form.must_end && !ends) {
    return broken_keys("no %s in %s", form.end, place);
  }
  KeyOutcome outcome =
      judged({document.text(id), document.text(secret), document.text(token),
              document.text("AccountId")},
             place, form.names);
  if (outcome.state != State::found) return outcome;
  std::string& account = outcome.keys.account_id;
  if (document.has_text("AccountId") &&
      (account.empty() || !all_digits(account))) {
    account.clear();
    format_to(outcome.warnings,
              "AccountId in %s is not an account's number: left out\n", place);
  }
  if (!ends) return outcome;
  const bool is_text = document.has_text(form.end);
  const auto expires = is_text ? parse_iso8601(document.text(form.end))
                               : document.number(form.end);
  if (!expires) {
    return broken_keys("%s is no time of ISO 8601 with a zone in %s", form.end,
                       place);
  }
  outcome.ends = ends_at(is_text ? *expires : *expires / form.units, now);
  return outcome;
}

KeyOutcome keys_in(std::string_view text,
                   std::initializer_list<std::string_view> names,
                   const KeyForm& form, std::string_view place,
                   std::int64_t now) {
  auto object = parse_json(text);
  if (!object) return broken_keys("%s is no JSON object", place);
  for (const std::string_view name : names) {
    object = object->object(name);
    if (!object) return broken_keys("no %s in %s", name, place);
  }
  return keys_in_document(*object, form, place, now);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
