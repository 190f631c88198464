// The signer: AWS's published requests, and what those do not cover.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <string>
#include <string_view>

#include "sigv4/sigv4.hpp"
#include "sigv4/utc.hpp"
#include "tests/sigv4_vectors.hpp"

namespace {

using namespace ddbmutex;

constexpr std::string_view kSecret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
constexpr std::int64_t kTime = 1440938160;  // 20150830T123600Z

sigv4::Credentials credentials(std::string_view session_token = "") {
  return {"AKIDEXAMPLE", std::string(kSecret), std::string(session_token)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sigv4_signer)

BOOST_AUTO_TEST_CASE(published_requests_get_the_published_authorization) {
  BOOST_TEST(sigv4_vectors().size() == 15u);  // 12 general, 3 of DynamoDB.
  for (const Sigv4Vector& vector : sigv4_vectors()) {
    BOOST_TEST_CONTEXT(vector.name) {
      const std::string hash = sigv4::sha256_hex(vector.body);
      const sigv4::Signed result = sigv4::sign(
          {vector.method, vector.path, vector.headers, hash},
          credentials(vector.session_token), vector.scope, vector.unix_seconds);
      BOOST_TEST(result.signature() == vector.signature);
      BOOST_TEST(result.authorization ==
                 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" +
                     sigv4::scope_text(result.amz_date, vector.scope) +
                     ", SignedHeaders=" + std::string(vector.signed_headers) +
                     ", Signature=" + std::string(vector.signature));
    }
  }
}

// HMAC hashes a key that is longer than a block of 64 bytes.  The key is "AWS4"
// and the secret, so 60 characters are the limit.  The expected values are from
// Python's hmac module.
BOOST_AUTO_TEST_CASE(secrets_of_every_length_derive_their_key) {
  const struct {
    std::size_t length;
    std::string_view signature;
  } cases[] = {
      {0, "ab0b515cc3356718672c7218b73084035fbbb2f294cd1a71789d532852bfbcc5"},
      {1, "80d4a1b8fcb978b4918ab4a8e658689d736b1f234934ecbe3d6eaf75258f5531"},
      {59, "12bd99a1da05e0daee7c018b03f9c46cfa868bb19fba4fe6ab59a332e0465232"},
      {60, "4d3f5c556ee3056d22f34d2172394da2096a8f86d9bdb742b9411b518193030b"},
      {61, "a00900b5ff55b73fdfb157133d183b1c8664ce7b0dc1aaf1cee6c26e22857c22"},
      {100, "414e60bbb33e622b7d0d0e51ce102f2d06687954246fe70149bcbaf655ae829f"},
  };
  for (const auto& c : cases) {
    const sigv4::SigningKey key(std::string(c.length, 'k'),
                                "20150830/us-east-1/iam/aws4_request");
    BOOST_TEST(std::string_view(sigv4::signature(key, "text")) == c.signature,
               c.length);
  }
}

// The key begins with its scope, a std::string, which is no secret.
BOOST_AUTO_TEST_CASE(destroyed_signing_key_leaves_no_bytes_behind) {
  alignas(sigv4::SigningKey) unsigned char memory[sizeof(sigv4::SigningKey)];
  auto* key = new (memory)
      sigv4::SigningKey(kSecret, "20150830/us-east-1/service/aws4_request");
  key->~SigningKey();
  const volatile unsigned char* bytes = memory;
  std::size_t left = 0;
  for (std::size_t i = sizeof(std::string); i < sizeof memory; ++i) {
    left += bytes[i] != 0;
  }
  BOOST_TEST(left == 0u);
}

// The headers that were signed are sent, except Host: the HTTP client adds it.
BOOST_AUTO_TEST_CASE(headers_are_sent_in_the_order_given_and_without_host) {
  const sigv4::Request request = {
      "POST", "/", {{"z", "1"}, {"host", "h"}, {"a", "2"}}, "payload-hash"};
  const sigv4::Signed made =
      sigv4::sign(request, credentials("t"), {"us-east-1", "service"}, kTime);
  sigv4::Text lines;
  sigv4::append_headers(lines, request, credentials("t"), made);
  BOOST_TEST(std::string(lines) ==
             "z:1\na:2\nx-amz-date:20150830T123600Z\nx-amz-security-token:t\n"
             "authorization:" +
                 made.authorization + "\n");
}

BOOST_AUTO_TEST_SUITE_END()
