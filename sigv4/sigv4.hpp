// AWS Signature Version 4 in its header form, as pure functions: no clock, no
// environment, no I/O.  (request, credentials, scope, time) -> Authorization.
//
//   sigv4::Signed signed_request = sigv4::sign(
//       {"POST", "/", "", {{"Host", host}}, sigv4::sha256_hex(body)},
//       credentials, {"eu-west-1", "dynamodb"}, unix_seconds);
//   // Send the headers given, X-Amz-Date: signed_request.amz_date,
//   // Authorization: signed_request.authorization, and, with temporary keys,
//   // X-Amz-Security-Token: credentials.session_token.
//
// Each step of the specification ("Create a signed AWS API request", AWS IAM
// User Guide) is a function of its own, so a wrong signature can be traced to
// the step that went wrong.  Strings hold bytes; nothing here fails but for
// want of memory.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_SIGV4_SIGV4_HPP
#define DDBMUTEX_SIGV4_SIGV4_HPP

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "secret.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

struct Credentials {
  std::string access_key_id{};
  Secret secret_access_key{};
  Secret session_token{};    // Empty for long-lived keys.
  std::string account_id{};  // Whose keys they are, if that is known.
};

struct Header {
  std::string_view name;   // Any case.
  std::string_view value;  // May be folded over lines; trimmed when signed.
};

// What is signed.  Borrowed: every view must outlive the call.
struct Request {
  std::string_view method;  // As sent: "POST".
  std::string_view path;    // As sent, up to '?'; empty counts as "/".
  // As sent, behind the '?'.  Its percent sequences are decoded before all of
  // it is encoded as the signature wants it; a '+' is a plus, not a blank.
  std::string_view query;
  // What goes into the signature besides X-Amz-Date and X-Amz-Security-Token,
  // which sign() adds itself: all of them, so none that a proxy may change.
  // Repeated names are joined in this order.
  std::vector<Header> headers;
  std::string_view payload_hash;  // sha256_hex(body).
  bool normalize_path = true;  // Resolve "." and "..", merge slashes; S3: not.
};

struct Scope {
  std::string_view region;   // "eu-west-1"
  std::string_view service;  // "dynamodb"
};

struct Signed {
  std::string amz_date;       // Value of X-Amz-Date.
  std::string authorization;  // Value of Authorization; ends in the signature.

  std::string_view signature() const {  // 64 hexadecimal digits.
    return std::string_view(authorization).substr(authorization.size() - 64);
  }
};

// Appends `text` with all but letters, digits, -._~ and `also` percent-encoded
// (RFC 3986, section 2.3), as the signature encodes, and as a form may.
void append_encoded(std::string& out, std::string_view text, char also = '~');

// 32 bytes in lower-case hexadecimal, as a piece of text.
class Hex {
 public:
  using Digest = std::array<unsigned char, 32>;

  Hex() = default;  // To be assigned to.
  explicit Hex(const Digest& digest);
  operator std::string_view() const { return {text_, sizeof text_}; }

 private:
  char text_[64];
};

// SHA-256 of the pieces, one behind the other: they may hold secrets, of which
// no copy is made.
Hex sha256_of(Pieces pieces);

// Lower-case hexadecimal SHA-256.
std::string sha256_hex(std::string_view bytes);

// Lower-case hexadecimal SHA-1, which protects nothing: AWS's tools name files
// by it.
std::string sha1_hex(std::string_view bytes);

// Step 1.  Over the request's headers as they stand.
std::string canonical_request(Request request);

// "20150830/eu-west-1/dynamodb/aws4_request".  `amz_date` as utc.hpp writes it.
std::string scope_text(std::string_view amz_date, const Scope& scope);

// Steps 2 and 3.
std::string string_to_sign(std::string_view amz_date, std::string_view scope,
                           std::string_view canonical_request);

// HMAC(HMAC(HMAC(HMAC("AWS4" + secret, day), region), service),
// "aws4_request"), for the parts of a scope_text(); kept as SHA-256 stands when
// HMAC has hashed the two padded blocks of the key.  Wiped from memory when
// destroyed.
class SigningKey {
 public:
  SigningKey();  // HMAC's empty key; to be assigned to.
  SigningKey(std::string_view secret, std::string_view scope);
  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;
  ~SigningKey();

  // The HMAC of the pieces, one behind the other.
  Hex::Digest mac(Pieces message) const;

 private:
  void set_key(std::string_view key);

  char states_[2][112];  // OpenSSL's, which stays out of this header.
};

// Step 4.
std::string signature(const SigningKey& key, std::string_view string_to_sign);

// A POST without a query, like all requests that the library signs.  In AWS's
// JSON protocols a header names the action; a form names it in its body.
struct Post {
  std::string_view host;  // As it is sent: "dynamodb.eu-west-1.amazonaws.com"
  std::string_view type;  // "application/x-amz-json-1.0"
  std::string_view body;
  std::string_view api{};       // "DynamoDB_20120810"
  std::string_view action{};    // "GetItem"; empty: no header names it.
  std::string_view path = "/";  // As it is sent.
};

// Appends all its headers but Host, each with a '\n' behind: as they are always
// the same, they are sent as step 1 has them, by name, in lower case.  Needs no
// memory once it has made room, so that no text that grows, and none that a
// failure throws away, leaves a token behind.  `scope`: as scope_text() makes
// it for the day of `amz_date`.
Hex append_signed(Text& headers, const Post& post, const Credentials& keys,
                  std::string_view amz_date, std::string_view scope,
                  const SigningKey& key);

// All steps.  `unix_seconds` is the service's time, within five minutes.
// REQUIRES: the request has neither X-Amz-Date nor X-Amz-Security-Token.
Signed sign(Request request, const Credentials& credentials, const Scope& where,
            std::int64_t unix_seconds);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SIGV4_HPP
