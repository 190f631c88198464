// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "base64.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::size_t kMostBytes = 1u << 30;  // OpenSSL counts in int.

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  // OpenSSL also writes a NUL after the text, where the string has its own.
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(bytes_of(text), bytes_of(bytes),
                  static_cast<int>(bytes.size()));
  return text;
}

// OpenSSL ignores blanks, and bits that belong to no byte.  Encoding the bytes
// again shows whether there were any.
std::optional<std::string> base64_decode(std::string_view text) {
  if (text.empty()) return std::string();
  if (text.size() % 4 != 0 || text.size() > kMostBytes) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(bytes_of(bytes), bytes_of(text),
                                   static_cast<int>(text.size()));
  // OpenSSL counts the padding as bytes.
  const auto padding = std::count(text.end() - 2, text.end(), '=');
  if (size < padding) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size - padding));
  if (sigv4::base64_encode(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
