// What programs and metadata services say of keys: a JSON document, a time of
// ISO 8601, a command for credential_process, with record separators between.
#include <time.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>

#include "extras/keys/profile_grammar.hpp"
#include "sigv4/keys/from_json.hpp"
#include "sigv4/utc.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/json_string.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;
using sigv4::Document;
using sigv4::KeyOutcome;
using sigv4::Value;

constexpr const char* kNames[] = {"AccessKeyId",
                                  "SecretAccessKey",
                                  "Token",
                                  "SessionToken",
                                  "Expiration",
                                  "AccountId",
                                  "Version",
                                  "a",
                                  ""};

std::string as_text(Bytes text) { return std::string(text); }

bool is_object(Bytes text) {
  return sigv4::parse_json(text).root().is_object();
}

// --- A document ------------------------------------------------------------

void check_member(Value object, const char* name) {
  const Value member = object[name];
  const bool is_text = member.text().has_value();
  const int kinds = (is_text ? 1 : 0) + (member.number() ? 1 : 0) +
                    (member.is_object() ? 1 : 0);
  claim(kinds <= 1, "a member is of one kind");
  claim(kinds == 0 || member, "what can be read is there");
  const Bytes text = object.text(name);
  claim(is_text || text.empty(), "what is no text has none");
  if (!is_text) return;
  const std::string again = "{\"a\":" + json_string(text) + "}";
  if (again.size() > sigv4::kMaxJsonBytes) return;
  const Document reread = sigv4::parse_json(again);
  claim(reread.root()["a"].text() == text,
        "a text that is written again reads as it was");
}

void check_keys(const Document& document, const sigv4::KeyForm& form) {
  using State = KeyOutcome::State;
  const KeyOutcome outcome =
      sigv4::keys_in(document, {}, form, "the place", 1700000000);
  claim(outcome.state == State::found || outcome.state == State::broken,
        "a document has keys or is broken");
  claim(is_one_line(outcome.reason) && outcome.reason.size() < 100,
        "a reason is a short text for people");
  const sigv4::Credentials& keys = outcome.keys;
  const bool whole =
      !keys.access_key_id.empty() && !keys.secret_access_key.empty();
  claim(whole == (outcome.state == State::found), "found keys are whole");
  if (!whole) return;
  const Value object = document.root();
  claim(keys.access_key_id == object.text("AccessKeyId") &&
            Bytes(keys.secret_access_key) == object.text("SecretAccessKey") &&
            Bytes(keys.session_token) == object.text(form.names.token),
        "keys are what the document says");
  for (const Bytes key :
       {Bytes(keys.access_key_id), Bytes(keys.secret_access_key),
        Bytes(keys.session_token), Bytes(keys.account_id)}) {
    claim(is_visible(key) && key.find(' ') == Bytes::npos,
          "what goes into a header is visible");
  }
  claim(!form.must_end ||
            (outcome.ends != BootTime::max() && !keys.session_token.empty()) ||
            object["Expiration"],
        "keys that must end do");
}

void check_document(Bytes text) {
  const Document document = sigv4::parse_json(text);
  const Value object = document.root();
  const bool taken = object.is_object();
  const bool room = text.size() < sigv4::kMaxJsonBytes;
  if (room) {
    claim(is_object(as_text(text) + " ") == taken &&
              is_object("\n" + as_text(text)) == taken,
          "blanks around a document change nothing");
  }
  if (!taken) return;
  claim(text.size() <= sigv4::kMaxJsonBytes, "a document is not too long");
  for (const char* behind : {"x", "{}", "}", ","}) {
    claim(!is_object(as_text(text) + behind), "nothing is behind it");
  }
  claim(!is_object(text.substr(0, text.rfind('}'))),
        "a document is read to its end");
  for (const char* name : kNames) check_member(object, name);
  check_keys(document, {});
  check_keys(document,
             {{"AccessKeyId", "SecretAccessKey", "SessionToken"}, false});
}

// --- A time ----------------------------------------------------------------

void check_time(Bytes text) {
  const auto time = sigv4::parse_iso8601(text);
  if (!time) return;
  constexpr std::int64_t kDay = 86400;
  claim(*time >= -62167219200 - kDay && *time <= 253402300800 + kDay,
        "a year has four digits");
  claim(text.size() >= 20, "a time has its date, its second and its zone");
  claim(!sigv4::parse_iso8601(text.substr(1)) &&
            !sigv4::parse_iso8601(as_text(text) + " ") &&
            !sigv4::parse_iso8601(as_text(text) + "Z"),
        "nothing is before or behind a time");
  const time_t seconds = *time;
  tm parts = {};
  gmtime_r(&seconds, &parts);
  if (parts.tm_year < -1900 || parts.tm_year > 9999 - 1900) return;
  char written[64];
  std::snprintf(written, sizeof written, "%04d-%02d-%02dT%02d:%02d:%02d.9Z",
                parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                parts.tm_hour, parts.tm_min, parts.tm_sec);
  claim(sigv4::parse_iso8601(written) == time,
        "a time that is written by the C library's calendar is the same");
}

// --- A command -------------------------------------------------------------

// As one that is careful would write them.
std::string in_single_quotes(Bytes words) {
  std::string command = "'";
  for (const char c : words.substr(0, words.size() - 1)) {
    if (c == '\'') {
      command += "'\\''";
    } else if (c == '\0') {
      command += "' '";
    } else {
      command += c;
    }
  }
  return command + "'";
}

void check_command(Bytes text) {
  std::string words;
  const std::string error = sigv4::split_words(text, words);
  claim(is_one_line(error) && error.size() < 50,
        "why it is refused is a short text for people");
  claim(text.find('\0') == text.npos || !error.empty(), "no word has a NUL");
  if (!error.empty()) return;
  claim(!words.empty() && words.back() == '\0', "a command has words");
  const auto count = std::count(words.begin(), words.end(), '\0');
  claim(words.size() - static_cast<std::size_t>(count) <= text.size(),
        "nothing is expanded");
  std::string again;
  claim(*sigv4::split_words(in_single_quotes(words), again) == '\0' &&
            again == words,
        "quoted words are those words again");
}

}  // namespace

void keys_json(Bytes bytes) {
  Input input(bytes);
  check_document(input.part());
  check_time(input.part());
  check_command(input.rest());
}

}  // namespace fuzz
}  // namespace tests
