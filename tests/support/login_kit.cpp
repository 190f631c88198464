#include "tests/support/login_kit.hpp"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <functional>
#include <memory>
#include <stdexcept>

namespace tests {
namespace {

using PrivateKey = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

// What is written to a BIO.
std::string written(const std::function<int(BIO*)>& write) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(BIO_new(BIO_s_mem()),
                                                          BIO_free_all);
  if (bio == nullptr || write(bio.get()) != 1) {
    throw std::runtime_error("OpenSSL does not write a key");
  }
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &text);
  return std::string(text, static_cast<std::size_t>(size));
}

PrivateKey read_key(const std::string& pem) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> bio(
      BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free_all);
  return {PEM_read_bio_PrivateKey(bio.get(), nullptr, nullptr, nullptr),
          EVP_PKEY_free};
}

}  // namespace

std::string pem_of(const char* curve) {
  const PrivateKey key(EVP_EC_gen(curve), EVP_PKEY_free);
  return written([&](BIO* bio) {
    return PEM_write_bio_PrivateKey_traditional(bio, key.get(), nullptr,
                                                nullptr, 0, nullptr, nullptr);
  });
}

std::string rsa_pem() {
  const PrivateKey key(EVP_RSA_gen(2048), EVP_PKEY_free);
  return written([&](BIO* bio) {
    return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0,
                                    nullptr, nullptr);
  });
}

std::string public_pem(const std::string& pem) {
  const PrivateKey key = read_key(pem);
  return written(
      [&](BIO* bio) { return PEM_write_bio_PUBKEY(bio, key.get()); });
}

std::string locked_pem(const std::string& pem) {
  const PrivateKey key = read_key(pem);
  unsigned char password[] = "password";
  return written([&](BIO* bio) {
    return PEM_write_bio_PrivateKey_traditional(
        bio, key.get(), EVP_aes_128_cbc(), password, sizeof password - 1,
        nullptr, nullptr);
  });
}

}  // namespace tests
