// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads keys from the JSON documents of services and programs.
#include "from_json.hpp"

#include <optional>
#include <string>

#include "../text.hpp"
#include "../utc.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

// Says why a member is not the text that keys need: "no Token in the answer".
// Empty if it is.
std::string flaw_of(Value member, const char* name, bool needed, bool is_token,
                    std::string_view place) {
  if (!member) {
    return needed ? join({"no ", name, " in ", place}) : "";
  }
  const auto text = member.text();
  if (!text) return join({name, " is not a string in ", place});
  const bool lacks_text = text->empty() && !is_token;
  return lacks_text ? join({name, " is empty in ", place}) : "";
}

// Seconds since 1970 of a time of ISO 8601 or a number (STS).
std::optional<std::int64_t> time_of(Value end) {
  const auto text = end.text();
  return text ? parse_iso8601(*text) : end.number();
}

}  // namespace

Document parse_json(std::string_view text) {
  const bool fits = text.size() <= kMaxJsonBytes;
  return Document(std::string(fits ? text : ""));
}

KeyOutcome keys_in(const Document& document,
                   std::initializer_list<const char*> names,
                   const KeyForm& form, std::string_view place,
                   std::int64_t now) {
  Value object = document.root();
  if (!object.is_object()) {
    return broken_keys({place, " is not a JSON object"});
  }
  for (const char* name : names) {
    object = object[name];
    if (!object.is_object()) {
      return broken_keys({"no ", name, " in ", place});
    }
  }
  const auto& [id, secret, token] = form.names;
  for (const char* name : {id, secret, token}) {
    const bool is_token = name == token;
    const bool needed = !is_token || form.must_end;
    const std::string flaw =
        flaw_of(object[name], name, needed, is_token, place);
    if (!flaw.empty()) return broken_keys({flaw});
  }
  const Value end = object["Expiration"];
  if (form.must_end && !end) {
    return broken_keys({"no Expiration in ", place});
  }
  const auto account = object["AccountId"].text();
  KeyOutcome outcome = judged({object.text(id), object.text(secret),
                               object.text(token), account.value_or("")},
                              place, form.names);
  if (outcome.state != State::found) return outcome;
  if (account && (account->empty() || !all_digits(*account))) {
    outcome.keys.account_id.clear();
    append(outcome.warnings,
           {"AccountId in ", place, " is not an account id: ignored\n"});
  }
  if (!end) return outcome;
  const auto expires = time_of(end);
  if (!expires) {
    return broken_keys(
        {"Expiration is not an ISO 8601 time with a zone in ", place});
  }
  outcome.ends = ends_at(*expires, now);
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
