// Contestant: one signature by this library as a client of DynamoDB makes it,
// the body's hash and the headers' text included.
#include <string>
#include <string_view>

#include "sigv4/sigv4.hpp"
#include "sigv4/text.hpp"
#include "sigv4/utc.hpp"
#include "tests/bench/contestant.hpp"
#include "tests/bench/signing_case.hpp"

using namespace ddbmutex;

namespace {

class OurSignature : public bench::Contestant {
 public:
  bool cycle() override {
    headers_.wipe();
    const std::string hash = sigv4::sha256_hex(bench::kSigningBody);
    const sigv4::Request request = bench::signing_request(hash);
    const sigv4::Signed made = sigv4::sign(
        request, credentials_, key_, sigv4::amz_date(bench::kSigningTime));
    sigv4::append_headers(headers_, request, credentials_, made);
    return made.signature() == expected_;
  }

 private:
  const sigv4::Credentials credentials_ = bench::signing_credentials();
  // Made once a day.
  const sigv4::SigningKey key_{
      credentials_.secret_access_key,
      sigv4::scope_text(sigv4::amz_date(bench::kSigningTime),
                        bench::kSigningScope)};
  sigv4::Text headers_;
  const std::string expected_ = bench::expected_signature();
};

}  // namespace

int main() {
  OurSignature signature;
  return bench::Runs(signature, bench::Timing::whole_run).serve();
}
