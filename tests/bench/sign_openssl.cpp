// Contestant: what OpenSSL alone takes for the hashes in one signature: of the
// body, the canonical request, and HMAC's two over the string to sign.  All
// that is not hashing, the texts and the key, is made beforehand.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>

#include "sigv4/sigv4.hpp"
#include "sigv4/utc.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/signing_case.hpp"

using namespace ddbmutex;

namespace {

using Digest = std::array<unsigned char, 32>;

std::string_view text_of(const Digest& digest) {
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

Digest hmac(std::string_view key, std::string_view message) {
  Digest result;
  HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
       reinterpret_cast<const unsigned char*>(message.data()), message.size(),
       result.data(), nullptr);
  return result;
}

// Of HMAC: the key, filled up to a block and combined with `byte`.
std::string pad(std::string_view key, char byte) {
  std::string block(64, byte);
  for (std::size_t i = 0; i < key.size(); ++i) {
    block[i] = static_cast<char>(block[i] ^ key[i]);
  }
  return block;
}

class BareSignature : public bench::Contestant {
 public:
  BareSignature() {
    const auto credentials = bench::signing_credentials();
    const std::string date = sigv4::amz_date(bench::kSigningTime);
    const std::string hash = sigv4::sha256_hex(bench::kSigningBody);
    sigv4::Request request = bench::signing_request(hash);
    request.headers.push_back({"X-Amz-Date", date});
    canonical_ = std::string_view(sigv4::canonical_request(request));
    string_to_sign_ = sigv4::string_to_sign(
        date, sigv4::scope_text(date, bench::kSigningScope), canonical_);
    Digest key =
        hmac("AWS4" + credentials.secret_access_key.str(), date.substr(0, 8));
    key = hmac(text_of(key), bench::kSigningScope.region);
    key = hmac(text_of(key), bench::kSigningScope.service);
    key = hmac(text_of(key), "aws4_request");
    inner_pad_ = pad(text_of(key), 0x36);
    outer_pad_ = pad(text_of(key), 0x5c);
  }
  ~BareSignature() override {
    EVP_MD_CTX_free(context_);
    EVP_MD_free(sha256_);
  }

  bool cycle() override {
    return hash(bench::kSigningBody) && hash(canonical_) &&
           hash(inner_pad_, string_to_sign_) &&
           hash(outer_pad_, text_of(result_));
  }

  // Whether the work is the same: it must give the library's signature.
  bool agrees() {
    if (!cycle()) return false;
    std::string hex;
    for (const unsigned char byte : result_) {
      char digits[3];
      std::snprintf(digits, sizeof digits, "%02x", byte);
      hex += digits;
    }
    return hex == bench::expected_signature();
  }

 private:
  bool hash(std::string_view first, std::string_view second = {}) {
    return EVP_DigestInit_ex(context_, sha256_, nullptr) == 1 &&
           EVP_DigestUpdate(context_, first.data(), first.size()) == 1 &&
           (second.empty() ||
            EVP_DigestUpdate(context_, second.data(), second.size()) == 1) &&
           EVP_DigestFinal_ex(context_, result_.data(), nullptr) == 1;
  }

  EVP_MD* const sha256_ = EVP_MD_fetch(nullptr, "SHA256", nullptr);
  EVP_MD_CTX* const context_ = EVP_MD_CTX_new();
  std::string canonical_, string_to_sign_, inner_pad_, outer_pad_;
  Digest result_{};
};

}  // namespace

int main() {
  BareSignature signature;
  if (!signature.agrees()) {
    std::fprintf(stderr, "sign_openssl: not the library's signature\n");
    return 1;
  }
  return bench::Runs(signature, bench::Timing::whole_run).serve();
}
