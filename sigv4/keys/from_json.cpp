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

// Why a member is not as keys need it, as a pattern; empty if it is.
const char* flaw_of(Value member, bool needed) {
  if (!member) return needed ? "no %s in %s" : "";
  const auto text = member.text();
  if (!text) return "%s is not a string in %s";
  return needed && text->empty() ? "%s is empty in %s" : "";
}

// Reads it if it is there.
const char* read_end(Value end, std::int64_t units, std::int64_t now,
                     BootTime& ends) {
  if (!end) return "";
  const auto text = end.text();
  const auto expires = text ? parse_iso8601(*text) : end.number();
  if (!expires) return "%s is not an ISO 8601 time with a zone in %s";
  ends = ends_at(text ? *expires : *expires / units, now);
  return "";
}

}  // namespace

Document parse_json(std::string_view text) {
  const bool fits = text.size() <= kMaxJsonBytes;
  return Document(std::string(fits ? text : ""), Document::Strings::any_bytes);
}

KeyOutcome keys_in(const Document& document,
                   std::initializer_list<const char*> names,
                   const KeyForm& form, std::string_view place,
                   std::int64_t now) {
  Value object = document.root();
  if (!object.is_object()) return broken_keys("%s is not a JSON object", place);
  for (const char* name : names) {
    object = object[name];
    if (!object.is_object()) return broken_keys("no %s in %s", name, place);
  }
  const auto& [id, secret, token] = form.names;
  for (const char* name : {id, secret, token}) {
    const char* flaw = flaw_of(object[name], name != token || form.must_end);
    if (*flaw != '\0') return broken_keys(flaw, name, place);
  }
  const Value end = object[form.end];
  if (form.must_end && !end) {
    return broken_keys("no %s in %s", form.end, place);
  }
  const auto account = object["AccountId"].text();
  KeyOutcome outcome = judged({object.text(id), object.text(secret),
                               object.text(token), account.value_or("")},
                              place, form.names);
  if (outcome.state != State::found) return outcome;
  if (account && (account->empty() || !sigv4::all_digits(*account))) {
    outcome.keys.account_id.clear();
    sigv4::format_to(outcome.warnings,
                     "AccountId in %s is not an account id: ignored\n", place);
  }
  const char* flaw = read_end(end, form.units, now, outcome.ends);
  if (*flaw != '\0') return broken_keys(flaw, form.end, place);
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
