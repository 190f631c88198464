// Base64 against the examples of RFC 4648, a second opinion in a few lines, and
// all that is almost base64.
#include <boost/test/unit_test.hpp>
#include <cstddef>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "sigv4/base64.hpp"

namespace {

using ddbmutex::sigv4::base64_decode;
using ddbmutex::sigv4::base64_encode;

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

// Six bits after six, as the RFC tells it.
std::string encoded_by_bits(const std::string& bytes) {
  std::string text;
  unsigned bits = 0;
  int count = 0;
  const auto put = [&](unsigned six) { text += kAlphabet[six & 63u]; };
  for (const char byte : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(byte);
    for (count += 8; count >= 6; count -= 6) put(bits >> (count - 6));
  }
  if (count > 0) put(bits << (6 - count));
  while (text.size() % 4 != 0) text += '=';
  return text;
}

std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::uniform_int_distribution<int> byte(0, 255);
  std::string bytes(size, '\0');
  for (char& c : bytes) c = static_cast<char>(byte(random));
  return bytes;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(base64)

BOOST_AUTO_TEST_CASE(examples_of_the_rfc_come_out) {
  const std::pair<const char*, const char*> examples[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"fooba", "Zm9vYmE="},
      {"foobar", "Zm9vYmFy"}};
  for (const auto& [bytes, text] : examples) {
    BOOST_TEST(base64_encode(bytes) == text);
    BOOST_TEST(base64_decode(text).value_or("?") == bytes);
  }
}

BOOST_AUTO_TEST_CASE(any_bytes_come_back_as_they_were) {
  std::mt19937 random(20261121);
  for (std::size_t size = 0; size < 300; ++size) {
    const std::string bytes = random_bytes(random, size);
    const std::string text = base64_encode(bytes);
    BOOST_TEST_REQUIRE(text == encoded_by_bits(bytes));
    BOOST_REQUIRE(base64_decode(text).has_value());
    BOOST_TEST_REQUIRE((*base64_decode(text) == bytes));
  }
}

// Around the size of the pieces that are encoded at a time.
BOOST_AUTO_TEST_CASE(megabytes_come_back_as_they_were) {
  std::mt19937 random(7);
  constexpr std::size_t kPiece = 3u << 20;
  const std::string bytes = random_bytes(random, 2 * kPiece + 2);
  for (const std::size_t size :
       {kPiece - 1, kPiece, kPiece + 1, 2 * kPiece, 2 * kPiece + 2}) {
    const std::string part = bytes.substr(0, size);
    const std::string text = base64_encode(part);
    BOOST_TEST_REQUIRE((text == encoded_by_bits(part)));
    const auto back = base64_decode(text);
    BOOST_TEST_REQUIRE((back.has_value() && *back == part));
  }
}

BOOST_AUTO_TEST_CASE(what_is_almost_base64_is_refused) {
  using namespace std::string_view_literals;
  for (const std::string_view text :
       {"Z"sv, "Zg"sv, "Zg="sv, "Zg==="sv, "Zg==Zg=="sv, "===="sv, "Z==="sv,
        "="sv, "Zg==\n"sv, "\nZg=="sv, " Zg=="sv, "Zg== "sv, "Zm9v\n"sv,
        "Zm 9v"sv, "Zm9v    "sv, "    Zm9v"sv, "    "sv, "\n\n\n\n"sv, "Zm9-"sv,
        "Zm9_"sv, "Z===Zm9v"sv, "Zg=Z"sv, "Zm8=Zm9v"sv, "Zm9v----"sv, "----"sv,
        "\0\0\0\0"sv, "Zm9\0"sv, "Zm9\xff"sv, "\xc3\xa9oo"sv,
        // Bits that belong to no byte.
        "Zh=="sv, "Zm9="sv, "A/=="sv}) {
    BOOST_TEST(!base64_decode(text).has_value(), text);
  }
}

BOOST_AUTO_TEST_CASE(
    each_byte_in_place_of_a_digit_is_refused_or_another_value) {
  for (int c = 0; c < 256; ++c) {
    for (std::size_t at = 0; at < 8; ++at) {
      std::string text = "Zm9vYmFy";
      text[at] = static_cast<char>(c);
      const bool digit = kAlphabet.find(text[at]) != kAlphabet.npos;
      const auto bytes = base64_decode(text);
      if (at == 7 && c == '=') {
        BOOST_TEST(!bytes.has_value());  // "YmF=" has a bit too many.
        continue;
      }
      BOOST_TEST(bytes.has_value() == digit, c << " at " << at);
      if (bytes) BOOST_TEST(base64_encode(*bytes) == text);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
