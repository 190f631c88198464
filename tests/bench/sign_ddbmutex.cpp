// Contestant: one signature by this library, the body's hash included.
#include <cstdio>
#include <string>

#include "sigv4/sigv4.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/signing_case.hpp"

using namespace ddbmutex;

namespace {

class OurSignature : public bench::Contestant {
 public:
  bool cycle() override {
    const std::string hash = sigv4::sha256_hex(bench::kSigningBody);
    const sigv4::Signed made =
        sigv4::sign(bench::signing_request(hash), credentials_,
                    bench::kSigningScope, bench::kSigningTime, keys_);
    return made.signature().size() == 64;
  }

 private:
  const sigv4::Credentials credentials_ = bench::signing_credentials();
  sigv4::SigningKeys keys_;
};

}  // namespace

int main() {
  OurSignature signature;
  return bench::Runs(signature, bench::Timing::whole_run).serve();
}
