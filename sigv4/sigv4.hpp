// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// AWS Signature Version 4 in its header form, without queries, as pure
// functions: no clock, no environment, no I/O.  (request, credentials, scope,
// time) -> Authorization.
//
//   const std::string hash = sigv4::sha256_hex(body);
//   sigv4::Request request = {"POST", "/", {{"host", host}}, hash};
//   sigv4::Signed signed_request = sigv4::sign(
//       request, credentials, {"eu-west-1", "dynamodb"}, unix_seconds);
//   sigv4::append_headers(lines, request, credentials, signed_request);
//
// Each step of the specification ("Create a signed AWS API request", AWS IAM
// User Guide) is a function of its own, so a wrong signature can be traced to
// the step that went wrong.  Strings hold bytes.  Nothing here fails unless
// memory runs out.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_SIGV4_SIGV4_HPP
#define DDBMUTEX_SIGV4_SIGV4_HPP

#include <openssl/sha.h>

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
  std::string account_id{};  // The AWS account of the keys, if known.
};

struct Header {
  std::string_view name;   // Any case.
  std::string_view value;  // May be folded over lines; trimmed when signed.
};

// What is signed.  Every view must outlive the call.
struct Request {
  std::string_view method;  // As sent: "POST".
  std::string_view path;    // As sent; empty counts as "/".
  // All of these are signed, so none of them may be changed by a proxy.
  // Values of a repeated name are joined in this order.  sign() adds
  // X-Amz-Date and X-Amz-Security-Token itself.
  std::vector<Header> headers;
  std::string_view payload_hash;  // sha256_hex(body).
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

// Appends `text` in percent-encoding.  Letters, digits, -._~ and `unencoded`
// stay as they are (RFC 3986, section 2.3).  For signatures and for forms.
void append_encoded(std::string& out, std::string_view text,
                    char unencoded = '~');

using Digest = std::array<unsigned char, 32>;  // Of SHA-256.

Digest sha256(std::string_view bytes);

// A digest in lower-case hexadecimal digits.
class HexDigest {
 public:
  explicit HexDigest(const Digest& digest) { sigv4::write_hex(digest, text_); }
  operator std::string_view() const { return {text_, sizeof text_}; }

 private:
  char text_[2 * std::tuple_size_v<Digest>];
};

// The digest of `bytes` in lower-case hexadecimal digits.
std::string sha256_hex(std::string_view bytes);

// Step 1.  Adds no headers to those of the request.  The result is wiped when
// it is destroyed, because it may hold a session token.
Text canonical_request(const Request& request);

// "20150830/eu-west-1/dynamodb/aws4_request".  `amz_date`: see utc.hpp.
std::string scope_text(std::string_view amz_date, const Scope& scope);

// Steps 2 and 3.
std::string string_to_sign(std::string_view amz_date, std::string_view scope,
                           std::string_view canonical_request);

// HMAC(HMAC(HMAC(HMAC("AWS4" + secret, day), region), service),
// "aws4_request").  It can sign all requests of its day.  It is wiped from
// memory when it is destroyed.
class SigningKey {
 public:
  SigningKey() = default;  // A key may be assigned to it.
  // `scope`: the result of scope_text().
  SigningKey(std::string_view secret, std::string scope);
  SigningKey(const SigningKey&) = default;
  SigningKey& operator=(const SigningKey&) = default;
  ~SigningKey();

  const std::string& scope() const { return scope_; }
  Digest mac(std::string_view text) const;

 private:
  void set_key(std::string_view key);

  std::string scope_{};
  // The two hashes of HMAC, which have taken in the key.
  SHA256_CTX inner_{}, outer_{};
};

// Step 4.
HexDigest signature(const SigningKey& key, std::string_view string_to_sign);

// All steps.  `unix_seconds` is the service's time, within five minutes.
// REQUIRES: the request has neither X-Amz-Date nor X-Amz-Security-Token.
Signed sign(const Request& request, const Credentials& credentials,
            const Scope& where, std::int64_t unix_seconds);

// The same with a key that was made earlier.
// REQUIRES: it is the key of these credentials and of the day of `amz_date`.
Signed sign(const Request& request, const Credentials& credentials,
            const SigningKey& key, std::string amz_date);

// Appends the headers to be sent, each with a '\n' at its end: those of the
// request and those of its signature.  Leaves out "host", which the HTTP client
// adds.
void append_headers(Text& lines, const Request& request,
                    const Credentials& credentials, const Signed& signature);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SIGV4_HPP
