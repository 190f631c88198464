// The signer, step by step: published vectors, then each rule by itself.
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

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

std::string canonical_text(const sigv4::Request& request) {
  return std::string(sigv4::canonical_request(request));
}

// Line `index` of a request made of these parts, in canonical form.
std::string canonical_line(std::size_t index, std::string_view path,
                           std::string_view query,
                           const std::vector<sigv4::Header>& headers,
                           bool normalize = true) {
  const std::string text =
      canonical_text({"GET", path, query, headers, "payload-hash", normalize});
  std::size_t begin = 0;
  for (; index > 0; --index) begin = text.find('\n', begin) + 1;
  return text.substr(begin, text.find('\n', begin) - begin);
}

std::string canonical_path(std::string_view path, bool normalize) {
  return canonical_line(1, path, "", {}, normalize);
}

std::string canonical_query(std::string_view query) {
  return canonical_line(2, "/", query, {});
}

std::string canonical_value(std::string_view value) {
  const std::string line = canonical_line(3, "/", "", {{"name", value}});
  BOOST_TEST_REQUIRE(line.substr(0, 5) == "name:");
  return line.substr(5);
}

std::string signed_names(const std::vector<sigv4::Header>& headers) {
  std::string text = canonical_text({"GET", "/", "", headers, "payload-hash"});
  text.resize(text.rfind('\n'));
  return text.substr(text.rfind('\n') + 1);
}

sigv4::Signed sign(const std::vector<sigv4::Header>& headers,
                   const sigv4::Credentials& keys_of_caller) {
  return sigv4::sign({"POST", "/", "", headers, "payload-hash"}, keys_of_caller,
                     {"us-east-1", "service"}, kTime);
}

// The request's headers and those that sign() adds, as one would send them.
sigv4::Request sent_request(const Sigv4Vector& vector, std::string_view date,
                            std::string_view payload_hash) {
  sigv4::Request request = {vector.method, vector.path,
                            vector.query,  vector.headers,
                            payload_hash,  vector.normalize_path};
  request.headers.push_back({"X-Amz-Date", date});
  if (!vector.session_token.empty()) {
    request.headers.push_back({"X-Amz-Security-Token", vector.session_token});
  }
  return request;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sigv4_signer)

BOOST_AUTO_TEST_CASE(there_are_vectors_of_both_kinds) {
  BOOST_TEST(sigv4_vectors().size() == 28u);  // 19 general, 9 of DynamoDB.
}

BOOST_AUTO_TEST_CASE(published_requests_pass_every_step) {
  for (const Sigv4Vector& vector : sigv4_vectors()) {
    BOOST_TEST_CONTEXT(vector.name) {
      const std::string date = sigv4::amz_date(vector.unix_seconds);
      const std::string hash = sigv4::sha256_hex(vector.body);
      const std::string canonical =
          canonical_text(sent_request(vector, date, hash));
      BOOST_TEST(canonical == vector.canonical_request);

      const std::string scope = sigv4::scope_text(date, vector.scope);
      BOOST_TEST(scope ==
                 date.substr(0, 8) + "/" + std::string(vector.scope.region) +
                     "/" + std::string(vector.scope.service) + "/aws4_request");
      const std::string to_sign = sigv4::string_to_sign(date, scope, canonical);
      BOOST_TEST(to_sign == "AWS4-HMAC-SHA256\n" + date + "\n" + scope + "\n" +
                                std::string(vector.canonical_request_hash));

      const sigv4::SigningKey key(kSecret, scope);
      BOOST_TEST(std::string_view(sigv4::signature(key, to_sign)) ==
                 vector.signature);
    }
  }
}

BOOST_AUTO_TEST_CASE(published_requests_get_the_published_authorization) {
  for (const Sigv4Vector& vector : sigv4_vectors()) {
    BOOST_TEST_CONTEXT(vector.name) {
      const std::string hash = sigv4::sha256_hex(vector.body);
      const sigv4::Signed result = sigv4::sign(
          {vector.method, vector.path, vector.query, vector.headers, hash,
           vector.normalize_path},
          credentials(vector.session_token), vector.scope, vector.unix_seconds);
      // The last line but one of the canonical request.
      std::string_view names = vector.canonical_request;
      names = names.substr(0, names.rfind('\n'));
      names = names.substr(names.rfind('\n') + 1);
      BOOST_TEST(result.signature() == vector.signature);
      BOOST_TEST(result.authorization ==
                 "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/" +
                     sigv4::scope_text(result.amz_date, vector.scope) +
                     ", SignedHeaders=" + std::string(names) +
                     ", Signature=" + std::string(vector.signature));
    }
  }
}

// FIPS 180-4's examples, and one byte of every value.
BOOST_AUTO_TEST_CASE(sha256_is_in_lower_case_hexadecimal) {
  BOOST_TEST(
      sigv4::sha256_hex("") ==
      "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  BOOST_TEST(
      sigv4::sha256_hex("abc") ==
      "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
  BOOST_TEST(
      sigv4::sha256_hex(bytes) ==
      "40aff2e9d2d8922e47afd4648e6967497158785fbd1da870e7110266bf944880");
}

BOOST_AUTO_TEST_CASE(normalized_path_has_no_dots_and_no_double_slashes) {
  const struct {
    std::string_view path, expected;
  } cases[] = {
      {"", "/"},           {"/", "/"},
      {"//", "/"},         {"/.", "/"},
      {"/./", "/"},        {"/..", "/"},
      {"/../", "/"},       {"/../../a", "/a"},
      {"/a", "/a"},        {"/a/", "/a/"},
      {"/a//", "/a/"},     {"//a//b//", "/a/b/"},
      {"/a/.", "/a"},      {"/a/./", "/a/"},
      {"/a/b/..", "/a"},   {"/a/b/../", "/a/"},
      {"/a/b/../..", "/"}, {"/a/../b/./c/..//d", "/b/d"},
      {"/...", "/..."},    {"/.a/b./..c", "/.a/b./..c"},
      {"a/b", "/a/b"},  // Not a path that can be sent, but no reason to fail.
  };
  for (const auto& c : cases) {
    BOOST_TEST(canonical_path(c.path, true) == c.expected, c.path);
  }
}

BOOST_AUTO_TEST_CASE(unnormalized_path_keeps_dots_and_slashes) {
  for (const std::string_view path :
       {"/", "//", "/./", "/a/..", "/a/b/../..", "//a//b//", "/.."}) {
    BOOST_TEST(canonical_path(path, false) == path);
  }
  BOOST_TEST(canonical_path("", false) == "/");
}

BOOST_AUTO_TEST_CASE(encoded_path_is_the_sent_path_encoded_once_more) {
  const struct {
    std::string_view path, expected;
  } cases[] = {
      {"/a b", "/a%20b"},
      {"/a%20b", "/a%2520b"},
      {"/a%2Fb", "/a%252Fb"},
      {"/%2e%2E/a", "/%252e%252E/a"},  // Not dots yet, so not resolved.
      {"/\u1234", "/%E1%88%B4"},
      {"/-._~azAZ09", "/-._~azAZ09"},
      {"/!'()*;:@&=+$,", "/%21%27%28%29%2A%3B%3A%40%26%3D%2B%24%2C"},
      {std::string_view("/\0\x7f\x80\xff", 5), "/%00%7F%80%FF"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(canonical_path(c.path, true) == c.expected);
    BOOST_TEST(canonical_path(c.path, false) == c.expected);
  }
}

BOOST_AUTO_TEST_CASE(query_is_sorted_and_encoded_anew) {
  const struct {
    std::string_view query, expected;
  } cases[] = {
      {"", ""},
      {"a", "a="},
      {"a=", "a="},
      {"=b", "=b"},
      {"=", "="},
      {"a=b=c", "a=b%3Dc"},
      {"&&a=1&&b=2&", "a=1&b=2"},
      {"b=2&a=1", "a=1&b=2"},
      {"a=2&a=1&a=10", "a=1&a=10&a=2"},
      {"a=b&A=c", "A=c&a=b"},
      // By name first, although '-' is below '='.
      {"Param-3=x&Param=y", "Param=y&Param-3=x"},
      // By encoded name: '%' is below letters and digits.
      {"Param=1&\u1234=2&0=3", "%E1%88%B4=2&0=3&Param=1"},
      {"a=%7e&a=%7F", "a=%7F&a=~"},
      {"%61=%62&%41=1", "A=1&a=b"},
      {"a=1+2&b=1%202&c=1%2B2&d=1 2", "a=1%2B2&b=1%202&c=1%2B2&d=1%202"},
      {"a=%e1%88%b4", "a=%E1%88%B4"},
      {"a=%2f/&b=%2525", "a=%2F%2F&b=%2525"},
      {"a=%&b=%4&c=%zz&d=%%41&e=%4", "a=%25&b=%254&c=%25zz&d=%25A&e=%254"},
      {"a=-._~azAZ09", "a=-._~azAZ09"},
      {"a=\xff%FF", "a=%FF%FF"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(canonical_query(c.query) == c.expected, c.query);
  }
}

BOOST_AUTO_TEST_CASE(header_value_is_trimmed_and_its_blanks_are_single) {
  const struct {
    std::string_view value, expected;
  } cases[] = {
      {"", ""},
      {"  \t\r\n", ""},
      {"a", "a"},
      {"  a  ", "a"},
      {"a  b\t\tc", "a b c"},
      {"\"a   b   c\"", "\"a b c\""},
      {"a\r\n  b\n\tc", "a b c"},
      {"a ,  b", "a , b"},
      {"VALUE\u00a0\u1234", "VALUE\u00a0\u1234"},
      // The eight bytes at which the search for blanks takes its steps.
      {"12345678", "12345678"},
      {"1234567  9", "1234567 9"},
      {"12345678  9", "12345678 9"},
      {"1234567890123456\t\t89", "1234567890123456 89"},
      {"abcdefgh\x01\x7f\xff  i", "abcdefgh\x01\x7f\xff i"},
  };
  for (const auto& c : cases) {
    BOOST_TEST(canonical_value(c.value) == c.expected, c.value);
  }
}

BOOST_AUTO_TEST_CASE(blank_anywhere_in_a_value_is_found) {
  for (std::size_t size = 1; size < 40; ++size) {
    for (std::size_t at = 1; at + 1 < size; ++at) {
      std::string value(size, 'x');
      value[at] = '\t';
      std::string expected = value;
      expected[at] = ' ';
      BOOST_TEST(canonical_value(value) == expected);
    }
  }
}

BOOST_AUTO_TEST_CASE(headers_are_sorted_by_lower_case_name) {
  BOOST_TEST(signed_names({{"b", ""}, {"X-B", ""}, {"A", ""}, {"x-a", ""}}) ==
             "a;b;x-a;x-b");
  // A name that is the beginning of another; '_' between cases of letters.
  BOOST_TEST(signed_names({{"AB", ""}, {"a_", ""}, {"A", ""}, {"a-b", ""}}) ==
             "a;a-b;a_;ab");
  BOOST_TEST(canonical_line(3, "/", "", {{"MiXeD", "VaLuE"}}) == "mixed:VaLuE");
}

BOOST_AUTO_TEST_CASE(repeated_headers_are_joined_in_order_of_appearance) {
  const std::vector<sigv4::Header> headers = {
      {"B", "1"}, {"name", " z  y "}, {"a", "2"}, {"NAME", ""}, {"Name", "x"}};
  BOOST_TEST(canonical_line(5, "/", "", headers) == "name:z y,,x");
  BOOST_TEST(signed_names(headers) == "a;b;name");

  std::vector<sigv4::Header> many;
  const std::string values = "zyxwvutsrqponmlkjihgfedcba";
  std::string expected = "name:";
  for (std::size_t i = 0; i < values.size(); ++i) {
    many.push_back({i % 2 == 0 ? "name" : "NAME", {&values[i], 1}});
    if (i > 0) expected += ',';
    expected += values[i];
  }
  BOOST_TEST(canonical_line(3, "/", "", many) == expected);
}

BOOST_AUTO_TEST_CASE(payload_hash_ends_the_canonical_request_as_given) {
  const std::string text =
      canonical_text({"PUT", "/", "", {{"host", "h"}}, "UNSIGNED-PAYLOAD"});
  BOOST_TEST(text == "PUT\n/\n\nhost:h\n\nhost\nUNSIGNED-PAYLOAD");
}

BOOST_AUTO_TEST_CASE(token_of_the_request_is_signed_if_there_is_no_other) {
  const auto result =
      sign({{"host", "h"}, {"X-Amz-Security-Token", "t"}}, credentials());
  BOOST_TEST(result.authorization ==
             sign({{"host", "h"}}, credentials("t")).authorization);
}

// RFC 4231 has its keys as they are, ours come by way of the derivation; so
// HMAC's long-key rule shows in a secret over a block: it must be hashed.
// Expected values: Python's hmac module.
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

// Behind the scope, which is no secret.
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

// What is sent is what is signed; the HTTP client adds Host.
BOOST_AUTO_TEST_CASE(headers_are_sent_in_the_order_given_and_without_host) {
  const sigv4::Request request = {
      "POST", "/", "", {{"z", "1"}, {"host", "h"}, {"a", "2"}}, "payload-hash"};
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
