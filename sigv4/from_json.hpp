// The JSON objects that hold keys, tokens and refusals of services, and the
// keys in them.
//
//   const auto answer = parse_json(http.body);
//   if (!answer) return broken_keys("no JSON object");
//   const Secret secret = answer->text("SecretAccessKey");
//
// An object is a view of its text, in which each look starts at the beginning:
// answers are short, and so nothing holds a copy of them that would have to be
// wiped.
//
// As strict as json_nodes.hpp.  Of equal names the last counts, as with Python
// and JavaScript.
//
// Pure functions, but for the boot clock.
#ifndef DDBMUTEX_SIGV4_FROM_JSON_HPP
#define DDBMUTEX_SIGV4_FROM_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "credentials.hpp"
#include "secret.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::size_t kMaxJsonBytes = 64 * 1024;

// Members that are strings, by their names.
using JsonTexts =
    std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Good for as long as its text is.
class JsonObject {
 public:
  // There, whatever it is, null apart.
  bool has(std::string_view name) const;
  bool has_text(std::string_view name) const;
  // Empty if there is none.
  Secret text(std::string_view name) const;
  // Nothing if there is none.  What stands before the point, also if it is
  // written as 1.5e3.
  std::optional<std::int64_t> number(std::string_view name) const;
  std::optional<JsonObject> object(std::string_view name) const;

 private:
  friend std::optional<JsonObject> parse_json(std::string_view text);
  friend Secret with_texts(const JsonObject&, JsonTexts);
  explicit JsonObject(std::string_view text) : text_(text) {}

  // As it is written; empty if there is none, or it is null.
  std::string_view value_of(std::string_view name) const;

  std::string_view text_;  // Well-formed, and begins with its '{'.
};

// Nothing if the text is not such an object, or longer than kMaxJsonBytes.
std::optional<JsonObject> parse_json(std::string_view text);

// `text` between quotes.  What of it is secret is the caller's to wipe.
// REQUIRES: UTF-8.
std::string json_string(std::string_view text);

// An object of these alone.
Secret json_object(JsonTexts texts);

// The object with these in the place of what it has of their names, or in
// addition.
Secret with_texts(const JsonObject& object, JsonTexts texts);

// How a service writes keys down.
struct KeyForm {
  KeyNames names{};
  const char* end = "Expiration";
  bool must_end = true;  // Without that and a token it is none.
  // An end is a time of ISO 8601, or a number since 1970, of which so many make
  // a second.
  std::int64_t units = 1;
};

// As STS and programs write them.
constexpr KeyForm kSessionForm = {
    {"AccessKeyId", "SecretAccessKey", "SessionToken"}, "Expiration", true, 1};

// Found, also if their time is over already; else broken, and the reason names
// the member.  `now`: UTC in seconds since 1970, when this is called.  An
// AccountId that is none is left out, with a warning.
KeyOutcome keys_in_document(const JsonObject& document, const KeyForm& form,
                            std::string_view place, std::int64_t now);

// The same of the object that is the text, or within it by those names; broken,
// too, if there is none.
KeyOutcome keys_in(std::string_view text,
                   std::initializer_list<std::string_view> names,
                   const KeyForm& form, std::string_view place,
                   std::int64_t now);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_JSON_HPP
