// The JSON objects that hold keys, tokens and refusals of services.
//
//   const auto answer = parse_json(std::move(body));
//   if (!answer) return broken_keys("no JSON object");
//   const Secret secret = answer->text("SecretAccessKey").value_or("");
//
// The text is parsed within a copy of its own, which is wiped when the last
// JsonObject made of it goes: what text() gives is good until then.
//
// Strict: one object of RFC 8259 in UTF-8 and nothing behind it but blanks; no
// byte order mark, no NUL (in a string "\u0000" is one), no half of a surrogate
// pair, no number beyond what a double holds.  Of equal names the last counts,
// as with Python and JavaScript.  Depth costs no stack.
//
// Pure functions; the only place of the chain that knows RapidJSON.
#ifndef DDBMUTEX_SIGV4_FROM_JSON_HPP
#define DDBMUTEX_SIGV4_FROM_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "secret.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::size_t kMaxJsonBytes = 64 * 1024;

// Members that are strings, by their names.  Both in UTF-8.
using JsonTexts = std::vector<std::pair<std::string_view, std::string_view>>;

// Cheap to copy.
class JsonObject {
 public:
  // There, whatever it is, null apart.
  bool has(std::string_view name) const;
  // Nothing if there is none of that name and kind.
  std::optional<std::string_view> text(std::string_view name) const;
  // A whole number, also if it is written as 1.0 or 1e3; one with a fraction
  // or an exponent only up to 2^53, where a double is exact.
  std::optional<std::int64_t> number(std::string_view name) const;
  std::optional<bool> truth(std::string_view name) const;
  std::optional<JsonObject> object(std::string_view name) const;

 private:
  friend std::optional<JsonObject> parse_json(Secret text);
  friend Secret with_texts(const JsonObject&, const JsonTexts&);
  struct Parsed;  // Keeps RapidJSON out of this header.
  JsonObject(std::shared_ptr<const Parsed> parsed, const void* value)
      : parsed_(std::move(parsed)), value_(value) {}

  std::shared_ptr<const Parsed> parsed_;
  const void* value_;  // In *parsed_.
};

// Nothing if the text is not such an object, or longer than kMaxJsonBytes.
std::optional<JsonObject> parse_json(Secret text);

// `text` between quotes.  What of it is secret is the caller's to wipe.
// REQUIRES: UTF-8.
std::string json_string(std::string_view text);

// An object of these alone.
Secret json_object(const JsonTexts& texts);

// The object with these in the place of what it has of their names, or in
// addition.  What is nested deeper than eight levels is left out.
Secret with_texts(const JsonObject& object, const JsonTexts& texts);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_JSON_HPP
