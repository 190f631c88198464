#include "secret.hpp"

#include <string.h>

#include <algorithm>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kMaxShownBytes = 300;
// Of a word that begins within them, so much more is looked at.
constexpr std::size_t kMaxWordBytes = 4096;
// Shorter ones stand in texts by chance: "local".
constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kSecretPart = 12;
constexpr std::string_view kMask = "(hidden)";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Whether a part of a secret that stands in the text reaches into that part.
bool has_secret(std::string_view text, std::size_t begin, std::size_t end,
                const Secrets& secrets) {
  const std::size_t first = begin - std::min(begin, kSecretPart - 1);
  const std::size_t last = std::min(end + kSecretPart - 1, text.size());
  for (const std::string_view secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    for (std::size_t at = first; at + kSecretPart <= last; ++at) {
      if (secret.find(text.substr(at, kSecretPart)) != secret.npos) return true;
    }
  }
  return false;
}

// The whole of a word goes that has a part of a secret in it: what stands
// around it may be the rest, written in another way.
std::string without_secrets(std::string_view text, const Secrets& secrets) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_blank(text[end]) == is_blank(text[begin])) {
      ++end;
    }
    const bool hidden =
        !is_blank(text[begin]) && has_secret(text, begin, end, secrets);
    result += hidden ? kMask : text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

}  // namespace

void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // Within its memory: cannot fail.
  explicit_bzero(text.data(), text.size());
  text.clear();
}

void reserve_secret(std::string& text, std::size_t bytes) {
  if (bytes <= text.capacity()) return;
  std::string larger;
  larger.reserve(std::max(bytes, 2 * text.capacity()));
  larger.append(text);
  text.swap(larger);
  wipe(larger);
}

// A short string is copied when moved from: nothing stays there either.
Secret::Secret(std::string&& text) : text_(std::move(text)) { wipe(text); }

Secret::Secret(Secret&& other) noexcept : Secret(std::move(other.text_)) {}

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) *this = Secret(other);
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  text_.swap(other.text_);
  wipe(other.text_);
  return *this;
}

Secret::~Secret() { wipe(text_); }

std::string shown(std::string_view text, const Secrets& secrets) {
  text = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t most = std::min(text.size(), kMaxShownBytes);
  const std::size_t end =
      std::min(text.find_first_of(" \t", most), text.size());
  bool cut = end < text.size();
  std::string result = without_secrets(
      text.substr(0, std::min(end, most + kMaxWordBytes)), secrets);
  cut = cut || result.size() > kMaxShownBytes;
  result.resize(std::min(result.size(), kMaxShownBytes));
  show(result);
  if (cut) result += "...";
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
