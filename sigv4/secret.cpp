// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "secret.hpp"

#include <string.h>

#include <algorithm>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kMaxShownBytes = 300;
// How much of a text is searched: a secret may go on behind what is shown.
constexpr std::size_t kMaxSearchedBytes = 4096;
// Shorter secrets, such as "local", may be in a text by chance.
constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kSecretPart = 12;

bool repeats(std::string_view text, std::string_view secret) {
  if (secret.size() < kShortestSecret) return false;
  for (std::size_t at = 0; at + kSecretPart <= text.size(); ++at) {
    if (secret.find(text.substr(at, kSecretPart)) != secret.npos) return true;
  }
  return false;
}

}  // namespace

void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // Needs no memory.
  explicit_bzero(text.data(), text.size());
  text.clear();
}

void reserve_secret(std::string& text, std::size_t bytes) {
  if (bytes <= text.capacity()) return;
  std::string larger;
  larger.reserve(std::max(bytes, 2 * text.capacity()));
  larger.append(text);
  text.swap(larger);
  sigv4::wipe(larger);
}

void append_secret(std::string& text, Pieces pieces) {
  std::size_t size = text.size();
  for (const std::string_view piece : pieces) size += piece.size();
  reserve_secret(text, size);
  for (const std::string_view piece : pieces) text += piece;
}

Secret::Secret(std::string_view text) : text_(text) {}

// A short string is copied when it is moved, so the source is wiped.
Secret::Secret(std::string&& text) : text_(std::move(text)) {
  sigv4::wipe(text);
}

Secret::Secret(Secret&& other) noexcept : Secret(std::move(other.text_)) {}

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) *this = Secret(other);
  return *this;
}

// A short string is copied when it is swapped, up to its end.
Secret& Secret::operator=(Secret&& other) noexcept {
  sigv4::wipe(text_);
  text_.swap(other.text_);
  sigv4::wipe(other.text_);
  return *this;
}

Secret::~Secret() { sigv4::wipe(text_); }

bool operator==(const Secret& a, const Secret& b) noexcept {
  return a.text_ == b.text_;
}

std::string redacted(std::string_view text, const Secrets& secrets) {
  text = text.substr(0, text.find_first_of("\r\n"));
  for (const std::string_view secret : secrets) {
    if (repeats(text.substr(0, kMaxSearchedBytes), secret)) return "(hidden)";
  }
  const std::string_view start = cut_to(text, kMaxShownBytes);
  return one_line(start) + (start.size() < text.size() ? "..." : "");
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
