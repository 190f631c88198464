// sigv4/from_roles: whatever STS, or somebody in its place, answers, is keys
// that are fit to be used, or nothing; and never shown as it came.
//
// The bytes: one for the action; the body.
#include <string>

#include "sigv4/keys/from_json.hpp"
#include "sigv4/keys/from_profile.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/json_string.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;
using State = sigv4::KeyOutcome::State;

// 300 bytes, each of them as "\x1b", and "..." behind.
constexpr std::size_t kLongestShown = 1203;
constexpr const char* kActions[] = {"AssumeRole", "AssumeRoleWithWebIdentity"};

std::string member(const std::string& name, const std::string& value) {
  return json_string(name) + ":" + value;
}

// The answer with these keys.
std::string written(const std::string& action, const sigv4::Credentials& keys) {
  const auto text = [](const char* name, Bytes value) {
    return member(name, json_string(value)) + ",";
  };
  const std::string result =
      member("Credentials",
             "{" + text("AccessKeyId", keys.access_key_id) +
                 text("SecretAccessKey", keys.secret_access_key) +
                 text("SessionToken", keys.session_token) +
                 member("Expiration", "0}")) +
      "," +
      member("AssumedRoleUser",
             "{" +
                 member("Arn", json_string("arn:aws:sts::" + keys.account_id +
                                           ":x}")) +
                 "}");
  return "{" +
         member(action + "Response",
                "{" + member(action + "Result", "{" + result + "}") + "}") +
         "}";
}

void check_keys(const std::string& action, Bytes body) {
  const auto found = sigv4::read_sts_keys(action, body, 1700000000);
  const sigv4::Credentials& keys = found.keys;
  claim(is_one_line(found.reason) && found.reason.size() < 200,
        "a reason is a line of our own");
  claim(found.state == State::found || found.state == State::broken,
        "an answer has keys or is broken");
  if (found.state != State::found) {
    claim(keys.access_key_id.empty() && keys.secret_access_key.empty() &&
              keys.session_token.empty(),
          "an answer with a flaw gives nothing");
    return;
  }
  for (const Bytes key :
       {Bytes(keys.access_key_id), Bytes(keys.secret_access_key),
        Bytes(keys.session_token)}) {
    claim(!key.empty() && is_visible(key) && key.find(' ') == key.npos,
          "keys are whole, and fit for a header");
  }
  claim(keys.account_id.empty() || keys.account_id.size() == 12,
        "an account has twelve digits, or is not known");
  const auto again =
      sigv4::read_sts_keys(action, written(action, keys), 1700000000);
  claim(again.state == State::found &&
            again.keys.access_key_id == keys.access_key_id &&
            again.keys.secret_access_key == keys.secret_access_key &&
            again.keys.session_token == keys.session_token &&
            again.keys.account_id == keys.account_id,
        "keys written and read are the same");
}

void check_refusal(Bytes body) {
  sigv4::HttpAnswer answer;
  answer.body = body;
  const sigv4::Refusal refusal = sigv4::read_refusal(answer);
  for (const std::string& text :
       {refusal.code, refusal.message, refusal.request_id}) {
    const std::string line = sigv4::shown(text, {});
    claim(is_one_line(line) && line.size() <= kLongestShown,
          "what is shown of a refusal is one short line");
  }
}

}  // namespace

void sts_json(Bytes bytes) {
  Input input(bytes);
  const std::string action = kActions[input.choice(2)];
  check_keys(action, input.rest());
  check_refusal(input.rest());
}

}  // namespace fuzz
}  // namespace tests
