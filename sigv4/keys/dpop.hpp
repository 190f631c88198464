// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Proofs that the sender of a token has the private key that the token was
// issued for (DPoP, RFC 9449).
//
//   const DpopKey key(pem);
//   if (!key) return refuse("not a P-256 private key");
//   headers += "DPoP: " + key.proof("POST", url, utc_now) + "\n";
//
// Thread safety: that of a std::string.
#ifndef DDBMUTEX_SIGV4_DPOP_HPP
#define DDBMUTEX_SIGV4_DPOP_HPP

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

struct evp_pkey_st;  // OpenSSL's EVP_PKEY.

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

class DpopKey {
 public:
  // `pem`: a P-256 private key in PEM, without a password.  Any other text
  // gives no key.  No text does if OpenSSL's configuration forbids such
  // signatures.
  explicit DpopKey(std::string_view pem);
  explicit operator bool() const { return !public_key_.empty(); }

  // A JSON Web Token for one request, signed with ES256.  `utc_now`: seconds
  // since 1970.  No two proofs are the same.  REQUIRES: there is a key.
  std::string proof(std::string_view method, std::string_view url,
                    std::int64_t utc_now) const;

 private:
  std::unique_ptr<evp_pkey_st, void (*)(evp_pkey_st*)> key_;
  std::string public_key_;  // A JSON Web Key; empty if there is no key.
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_DPOP_HPP
