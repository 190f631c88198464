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
    char date[sigv4::kAmzDateBytes];
    sigv4::write_amz_date(bench::kSigningTime, date);
    headers_.wipe();
    const sigv4::Hex made =
        sigv4::append_signed(headers_, bench::kSigningCall, credentials_,
                             {date, sizeof date}, scope_, key_);
    return std::string_view(made) == expected_;
  }

 private:
  const sigv4::Credentials credentials_ = bench::signing_credentials();
  // Made once a day.
  const std::string scope_ = sigv4::scope_text(
      sigv4::amz_date(bench::kSigningTime), bench::kSigningScope);
  const sigv4::SigningKey key_{credentials_.secret_access_key, scope_};
  sigv4::Text headers_;
  const std::string expected_ = bench::expected_signature();
};

}  // namespace

int main() {
  OurSignature signature;
  return bench::Runs(signature, bench::Timing::whole_run).serve();
}
