// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#ifndef DDBMUTEX_NO_PROFILES
// Proofs of possession, as JSON Web Tokens signed with ES256 by OpenSSL.
#include "dpop.hpp"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <iterator>

#include "../base64.hpp"
#include "../json.hpp"
#include "../text.hpp"
#include "service_call.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kNumberBytes = 32;  // P-256 has numbers of 256 bits.

template <class Object>
using Owned = std::unique_ptr<Object, void (*)(Object*)>;

// RFC 4648, section 5: '-' and '_' for '+' and '/', and no padding.
std::string base64url(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.resize(std::min(text.find('='), text.size()));
  return text;
}

// The public key as a JSON Web Key; empty if it is not one of P-256.
std::string public_key_of(const EVP_PKEY* key) {
  char group[32];
  unsigned char point[1 + 2 * kNumberBytes];  // A 4, x and y.
  std::size_t size = 0;
  if (EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) != 1 ||
      std::string_view(group) != "prime256v1" ||
      EVP_PKEY_get_octet_string_param(key, OSSL_PKEY_PARAM_ENCODED_PUBLIC_KEY,
                                      point, sizeof point, &size) != 1 ||
      size != sizeof point) {
    return "";
  }
  const auto coordinate = [&](std::size_t begin) {
    const unsigned char* const first = point + begin;
    return base64url(std::string(first, first + kNumberBytes));
  };
  return with_texts("{}", {{"kty", "EC"},
                           {"crv", "P-256"},
                           {"x", coordinate(1)},
                           {"y", coordinate(1 + kNumberBytes)}});
}

// Otherwise OpenSSL would ask for a password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

// The 32 bytes of each of the two numbers that are the signature.  OpenSSL
// writes them in DER.
std::string signature_of(std::string_view text, EVP_PKEY* key) {
  unsigned char der[128];
  std::size_t size = sizeof der;
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new(), EVP_MD_CTX_free);
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) !=
          1 ||
      EVP_DigestSignUpdate(context.get(), text.data(), text.size()) != 1 ||
      EVP_DigestSignFinal(context.get(), der, &size) != 1) {
    return "";
  }
  const unsigned char* at = der;
  const Owned<ECDSA_SIG> numbers(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)), ECDSA_SIG_free);
  if (numbers == nullptr) return "";
  unsigned char both[2 * kNumberBytes];
  const bool fits =
      BN_bn2binpad(ECDSA_SIG_get0_r(numbers.get()), both, kNumberBytes) >= 0 &&
      BN_bn2binpad(ECDSA_SIG_get0_s(numbers.get()), both + kNumberBytes,
                   kNumberBytes) >= 0;
  if (!fits) return "";
  return std::string(std::begin(both), std::end(both));
}

}  // namespace

DpopKey::DpopKey(std::string_view pem) : key_(nullptr, EVP_PKEY_free) {
  const Owned<BIO> input(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all);
  if (input != nullptr) {
    key_.reset(
        PEM_read_bio_PrivateKey(input.get(), nullptr, no_password, nullptr));
  }
  // OpenSSL's configuration may allow no key of this kind, or no digest.
  const bool signs = key_ != nullptr && !signature_of("", key_.get()).empty();
  if (signs) public_key_ = public_key_of(key_.get());
  ERR_clear_error();  // libcurl would take these errors for its own.
}

std::string DpopKey::proof(std::string_view method, std::string_view url,
                           std::int64_t utc_now) const {
  Text header, claims;
  JsonWriter head(header), body(claims);
  head.begin_object();
  head.name("typ").text("dpop+jwt");
  head.name("alg").text("ES256");
  head.name("jwk").json({public_key_});
  head.end_object();
  body.begin_object();
  body.name("jti").text(random_id());
  body.name("htm").text(method);
  body.name("htu").text(url);
  body.name("iat").number(utc_now);
  body.end_object();
  const std::string signed_text =
      join({base64url(header), ".", base64url(claims)});
  const std::string signature = signature_of(signed_text, key_.get());
  ERR_clear_error();
  return join({signed_text, ".", base64url(signature)});
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
