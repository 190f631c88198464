#ifndef DDBMUTEX_NO_PROFILES
#include "dpop.hpp"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>

#include <algorithm>
#include <array>

#include "../base64.hpp"
#include "../json.hpp"
#include "../system.hpp"
#include "../text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kNumberBytes = 32;  // P-256 has numbers of 256 bits.

template <class Object, void (*free)(Object*)>
struct Freed {
  void operator()(Object* object) const { free(object); }
};
template <class Object, void (*free)(Object*)>
using Owned = std::unique_ptr<Object, Freed<Object, free>>;

// RFC 4648, section 5: '-' and '_' for '+' and '/', and no padding.
std::string base64url(std::string_view bytes) {
  std::string text = base64_encode(bytes);
  std::replace(text.begin(), text.end(), '+', '-');
  std::replace(text.begin(), text.end(), '/', '_');
  text.resize(std::min(text.find('='), text.size()));
  return text;
}

// Its 32 bytes, the most significant first; empty if it does not fit into them.
std::string bytes_of(const BIGNUM* number) {
  unsigned char bytes[kNumberBytes];
  if (BN_bn2binpad(number, bytes, sizeof bytes) < 0) return "";
  return std::string(bytes, bytes + sizeof bytes);
}

// A coordinate of the public key.
std::string coordinate(const EVP_PKEY* key, const char* name) {
  BIGNUM* number = nullptr;
  if (EVP_PKEY_get_bn_param(key, name, &number) != 1) return "";
  const Owned<BIGNUM, BN_free> owned(number);
  return bytes_of(number);
}

bool is_of_p256(const EVP_PKEY* key) {
  char group[32];
  return EVP_PKEY_get_group_name(key, group, sizeof group, nullptr) == 1 &&
         std::string_view(group) == "prime256v1";
}

// Otherwise OpenSSL would ask for a password on the terminal.
int no_password(char*, int, int, void*) { return -1; }

std::string random_id() {
  std::array<unsigned char, 16> bits;
  fill_with_randomness(bits.data(), bits.size());
  char digits[2 * bits.size()];
  sigv4::write_hex(bits, digits);
  return std::string(digits, sizeof digits);
}

// An ES256 signature is two numbers, one behind the other.  OpenSSL gives them
// in DER.
std::string signature_of(std::string_view text, EVP_PKEY* key) {
  const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
  unsigned char der[128];
  std::size_t size = sizeof der;
  const Owned<EVP_MD_CTX, EVP_MD_CTX_free> context(EVP_MD_CTX_new());
  if (context == nullptr ||
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) !=
          1 ||
      EVP_DigestSign(context.get(), der, &size, bytes, text.size()) != 1) {
    return "";
  }
  const unsigned char* at = der;
  const Owned<ECDSA_SIG, ECDSA_SIG_free> numbers(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(size)));
  if (numbers == nullptr) return "";
  return bytes_of(ECDSA_SIG_get0_r(numbers.get())) +
         bytes_of(ECDSA_SIG_get0_s(numbers.get()));
}

}  // namespace

void DpopKey::Free::operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }

DpopKey::DpopKey(std::string_view pem) {
  const Owned<BIO, BIO_free_all> input(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  if (input != nullptr) {
    key_.reset(
        PEM_read_bio_PrivateKey(input.get(), nullptr, no_password, nullptr));
  }
  if (key_ != nullptr && is_of_p256(key_.get())) {
    const std::string x = coordinate(key_.get(), OSSL_PKEY_PARAM_EC_PUB_X);
    const std::string y = coordinate(key_.get(), OSSL_PKEY_PARAM_EC_PUB_Y);
    if (!x.empty() && !y.empty()) {
      public_key_ = with_texts("{}", {{"kty", "EC"},
                                      {"crv", "P-256"},
                                      {"x", base64url(x)},
                                      {"y", base64url(y)}});
    }
  }
  ERR_clear_error();  // libcurl would take these errors for its own.
}

std::string DpopKey::proof(std::string_view method, std::string_view url,
                           std::int64_t utc_now) const {
  Text header, claims;
  append_form(header, R"({"typ":"dpop+jwt","alg":"ES256","jwk":%})",
              {public_key_});
  append_form(claims, R"({"jti":$,"htm":$,"htu":$,"iat":%})",
              {random_id(), method, url, decimal(utc_now)});
  const std::string signed_text =
      sigv4::join({base64url(header), ".", base64url(claims)});
  const std::string signature = signature_of(signed_text, key_.get());
  ERR_clear_error();
  return sigv4::join({signed_text, ".", base64url(signature)});
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
