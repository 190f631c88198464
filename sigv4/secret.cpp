#include "sigv4/secret.hpp"

#include <string.h>

#include <algorithm>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kMaxShownBytes = 300;
constexpr std::size_t kSecretPart = 12;

bool repeats(std::string_view text, const Secret& secret) {
  const std::string_view whole = secret;
  if (whole.empty()) return false;
  const std::size_t part = std::min(whole.size(), kSecretPart);
  for (std::size_t at = 0; at + part <= text.size(); ++at) {
    if (whole.find(text.substr(at, part)) != whole.npos) return true;
  }
  return false;
}

}  // namespace

void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // Within its memory: cannot fail.
  explicit_bzero(text.data(), text.size());
  text.clear();
}

std::string shown(std::string_view text, const std::vector<Secret>& secrets) {
  text = text.substr(0, text.find_first_of("\r\n"));
  const bool cut = text.size() > kMaxShownBytes;
  text = text.substr(0, kMaxShownBytes);
  for (const Secret& secret : secrets) {
    if (repeats(text, secret)) return "(not shown: it repeats a secret)";
  }
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; },
      '?');
  return cut ? result + "..." : result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
