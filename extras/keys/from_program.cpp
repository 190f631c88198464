// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Keys from a program that the user names: a profile's credential_process.
//
// The command is split into words as by a POSIX shell, but no shell runs and
// nothing is expanded (so in botocore).  program.hpp runs it.  On stdout it
// writes at most 64 KiB:
//
//   {"Version": 1, "AccessKeyId": "...", "SecretAccessKey": "...",
//    "SessionToken": "...", "Expiration": "2030-01-01T00:00:00Z",
//    "AccountId": "..."}
//
// The last three may be missing.
//
// The outcome is `broken` if another attempt would not help: the command is
// malformed, cannot be started or is not found (status 126 or 127), or writes
// something else than keys.  It is `failed` if the program ended with another
// status (it may need the network), by a signal or not in time, and, like in
// botocore and AWS's JavaScript SDK, if its keys have expired already.  No text
// shows the command or its stdout.  The last lines of its stderr are shown,
// unless they repeat its keys, and without words that look like a key.
#include <utility>

#include "../../sigv4/keys/from_json.hpp"
#include "../../sigv4/text.hpp"
#include "profile_grammar.hpp"
#include "profile_sources.hpp"
#include "program.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using State = KeyOutcome::State;

namespace {

// How many bytes of its stderr are shown.
constexpr std::size_t kMostShown = 300;
// A word of at least this length that has digits and letters in both cases
// counts as a key or a token.  So does one that has digits, and a run of so
// many letters and digits in one case, as in hexadecimal keys.
constexpr std::size_t kLikeASecret = 20, kLikeASecretInOneCase = 32;

// --- What it wrote to stderr -------------------------------------------------

bool is_like_a_secret(std::string_view word) {
  const auto has = [word](char first, char last) {
    for (const char c : word) {
      if (c >= first && c <= last) return true;
    }
    return false;
  };
  if (word.size() < kLikeASecret || !has('0', '9')) return false;
  if (has('a', 'z') && has('A', 'Z')) return true;
  std::size_t run = 0;
  for (const char c : word) {
    run = is_letter(c) || is_digit(c) ? run + 1 : 0;
    if (run >= kLikeASecretInOneCase) return true;
  }
  return false;
}

// Replaces each word that looks like a key or a token by "(hidden)".  A word
// consists of characters that occur in keys and tokens.
std::string without_likely_secrets(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() &&
           sigv4::is_alphanumeric(text.substr(size, 1), "+/=_-.")) {
      ++size;
    }
    const std::string_view word = text.substr(0, size);
    shown += is_like_a_secret(word) ? "(hidden)" : word;
    text.remove_prefix(size);
    if (text.empty()) break;
    shown += text.front();
    text.remove_prefix(1);
  }
  return shown;
}

// The last lines of its stderr, joined into one, for an error message.
// `output`: its stdout; keys there are hidden if stderr repeats them.
std::string last_words(std::string_view complaints, std::string_view output) {
  std::string lines;
  while (!complaints.empty()) {
    const std::size_t before = complaints.find_last_of("\r\n");
    const std::size_t begin = before == complaints.npos ? 0 : before + 1;
    const std::string_view line = sigv4::trimmed(complaints.substr(begin));
    complaints = complaints.substr(0, begin == 0 ? 0 : before);
    if (line.empty()) continue;
    if (!lines.empty() && lines.size() + line.size() > kMostShown) break;
    lines = join({line, if_any(" / ", lines)});
  }
  const Document document = parse_json(output);
  const Secrets secrets = {document.root().text("SecretAccessKey"),
                           document.root().text("SessionToken"), ""};
  return sigv4::redacted(without_likely_secrets(lines), secrets);
}

// --- Its keys --------------------------------------------------------------

KeyOutcome read_document(std::string_view text, const std::string& place,
                         std::int64_t now) {
  constexpr KeyForm kForm = {kSessionForm.names, false};
  if (text.empty()) {
    return broken_keys({place, ": the program wrote nothing"});
  }
  const Document document = parse_json(text);
  if (!document.root().is_object()) {
    return broken_keys({place, ": the program's output is not a JSON object"});
  }
  if (document.root()["Version"].number() != 1) {
    return broken_keys({place, ": Version in the program's output is not 1"});
  }
  KeyOutcome outcome = keys_in(document, {}, kForm, place, now);
  if (outcome.state == State::found && outcome.ends <= BootClock::now()) {
    return failed_keys(
        {place, ": the program gave keys that have already expired"});
  }
  return outcome;
}

}  // namespace

KeyOutcome keys_by_program(Search& search) {
  const Setting command = search.profile->find("credential_process");
  if (!command) return {};
  return process_keys(command.value, command.source, search.fetch);
}

KeyOutcome process_keys(const std::string& command, const std::string& place,
                        const Fetch& fetch) {
  std::string words;
  const char* const flaw = split_words(command, words);
  if (*flaw != '\0') {
    return broken_keys({place, ": the command is malformed: ", flaw});
  }
  if (ignores_environment() && words[0] != '/') {
    return broken_keys(
        {place,
         ": the command must begin with an absolute path (this program is "
         "set-uid or set-gid, or has capabilities)"});
  }
  return run_for_keys(std::move(words), "", place, fetch).keys;
}

KeyRun run_for_keys(std::string words, std::string settings,
                    const std::string& place, const Fetch& fetch) {
  fetch.say(join({"the program of ", place, " is being asked"}));
  KeyRun run;
  run.program = run_program(std::move(words), std::move(settings), fetch);
  const ProgramResult& program = run.program;
  run.keys =
      program.failure.empty()
          ? read_document(program.output, place, fetch.now())
          : sigv4::not_found(program.is_final ? State::broken : State::failed,
                             {place, ": ", program.failure});
  if (run.keys.state != State::found) {
    run.keys.reason +=
        if_any(": ", last_words(program.complaints, program.output));
  }
  return run;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
