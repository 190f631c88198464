#include "base64.hpp"

#include <openssl/evp.h>

#include <cstddef>
#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

// Of bytes, for one call: a multiple of three, whose texts may be joined, and
// few enough for an int.
constexpr std::size_t kPiece = 3u << 20;

unsigned char* writable(std::string& text, std::size_t at) {
  return reinterpret_cast<unsigned char*>(text.data() + at);
}

const unsigned char* readable(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

std::string base64_encode(std::string_view bytes) {
  // A NUL is written behind each piece; the last one falls on the string's own.
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  std::size_t at = 0;
  while (!bytes.empty()) {
    const std::string_view piece = bytes.substr(0, kPiece);
    const int size = EVP_EncodeBlock(writable(text, at), readable(piece),
                                     static_cast<int>(piece.size()));
    at += static_cast<std::size_t>(size);
    bytes.remove_prefix(piece.size());
  }
  return text;
}

// OpenSSL passes over blanks, and bits that belong to no byte: what it makes of
// the bytes again shows whether there were any.
std::optional<std::string> base64_decode(std::string_view text) {
  if (text.empty()) return std::string();
  constexpr auto kMost =
      static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (text.size() % 4 != 0 || text.size() > kMost) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  const int size = EVP_DecodeBlock(writable(bytes, 0), readable(text),
                                   static_cast<int>(text.size()));
  // Padding is counted as bytes.
  const std::size_t padding = text[text.size() - 1] != '='   ? 0
                              : text[text.size() - 2] != '=' ? 1
                                                             : 2;
  if (size < static_cast<int>(padding)) return std::nullopt;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  if (base64_encode(bytes) != text) return std::nullopt;
  return bytes;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
