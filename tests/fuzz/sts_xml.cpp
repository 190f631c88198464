// sigv4/from_xml and from_sts: whatever STS, or somebody in its place, answers,
// is keys that are fit to be used, or nothing; and never shown as it came.
//
// The bytes: one for the action; the body.
#include <algorithm>
#include <string>

#include "sigv4/from_sts.hpp"
#include "sigv4/from_xml.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

constexpr std::size_t kLongestShown = 303;
constexpr const char* kActions[] = {"AssumeRole", "AssumeRoleWithWebIdentity"};

bool has_blank(Bytes text) { return text.find(' ') != text.npos; }

void check_document(Bytes body) {
  const sigv4::XmlDocument document(body);
  claim(is_visible(document.error()) && document.error().size() < 100,
        "an error is a line of our own");
  claim(document.error().empty() != document.root().empty(),
        "a document has an outermost element, or is refused");
  const bool refused = !document.error().empty();
  claim(!refused || !document.text(document.root()),
        "of a document that is refused nothing is to be had");
  claim(refused || body.size() <= sigv4::kMaxXmlBytes,
        "a document that is too long is refused");
  claim(refused || body.find('<') != body.npos, "an element has a tag");
}

std::string escaped(Bytes text) {
  std::string result;
  for (const char c : text) {
    result += "&#" + std::to_string(static_cast<unsigned char>(c)) + ";";
  }
  return result;
}

std::string element(const std::string& name, const std::string& content) {
  return "<" + name + ">" + content + "</" + name + ">";
}

// The document with these keys as nobody would write it.
std::string written(const std::string& action, const sigv4::StsKeys& keys) {
  const auto of = [](const char* name, Bytes text) {
    return element(name, escaped(text));
  };
  const std::string result =
      element("Credentials",
              of("AccessKeyId", keys.keys.access_key_id) +
                  of("SecretAccessKey", keys.keys.secret_access_key) +
                  of("SessionToken", keys.keys.session_token) +
                  of("Expiration", "1970-01-01T00:00:00Z")) +
      element("AssumedRoleUser",
              of("Arn", "arn:aws:sts::" + keys.keys.account_id + ":x"));
  return element(action + "Response", element(action + "Result", result));
}

void check_keys(const std::string& action, Bytes body) {
  sigv4::StsKeys found;
  const std::string flaw = sigv4::read_sts_keys(action, body, found);
  const sigv4::Credentials& keys = found.keys;
  claim(is_visible(flaw) && flaw.size() < 200, "a flaw is a line of our own");
  if (!flaw.empty()) {
    claim(keys.access_key_id.empty() && keys.secret_access_key.empty() &&
              keys.session_token.empty() && found.expires == 0,
          "an answer with a flaw gives nothing");
    return;
  }
  for (const Bytes key :
       {Bytes(keys.access_key_id), Bytes(keys.secret_access_key),
        Bytes(keys.session_token)}) {
    claim(!key.empty() && is_visible(key) && !has_blank(key),
          "keys are whole, and fit for a header");
  }
  claim(keys.account_id.empty() || keys.account_id.size() == 12,
        "an account has twelve digits, or is not known");
  sigv4::StsKeys again;
  claim(sigv4::read_sts_keys(action, written(action, found), again).empty(),
        "keys that were read can be written and read");
  claim(again.keys.access_key_id == keys.access_key_id &&
            again.keys.secret_access_key == keys.secret_access_key &&
            again.keys.session_token == keys.session_token &&
            again.keys.account_id == keys.account_id && again.expires == 0,
        "keys written and read are the same");
}

void check_refusal(Bytes body) {
  const sigv4::Refusal refusal = sigv4::read_sts_refusal(body);
  for (const std::string& text :
       {refusal.code, refusal.message, refusal.request_id}) {
    const std::string line = sigv4::shown(text, {});
    claim(is_visible(line) && line.size() <= kLongestShown,
          "what is shown of a refusal is one short line");
  }
}

}  // namespace

void sts_xml(Bytes bytes) {
  Input input(bytes);
  const std::string action = kActions[input.choice(2)];
  check_document(input.rest());
  check_keys(action, input.rest());
  check_refusal(input.rest());
}

}  // namespace fuzz
}  // namespace tests
