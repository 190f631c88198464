// The request that the signing contestants sign: a PutItem of a size that stays
// the same whatever the lock's own requests grow to, so that rates of different
// days can be compared.
#ifndef DDBMUTEX_TESTS_BENCH_SIGNING_CASE_HPP
#define DDBMUTEX_TESTS_BENCH_SIGNING_CASE_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "sigv4/sigv4.hpp"

namespace bench {

constexpr std::string_view kSigningBody =
    R"({"TableName":"shared-locks",)"
    R"("Item":{"name":{"S":"ddblock-nightly-report"},)"
    R"("uuid":{"S":"0123456789abcdef0123456789abcdef"},)"
    R"("expires":{"N":"1793251200000000000"}},)"
    R"("ConditionExpression":"attribute_not_exists(#n) OR #e < :now",)"
    R"("ExpressionAttributeNames":{"#n":"name","#e":"expires"},)"
    R"("ExpressionAttributeValues":{":now":{"N":"1793251140000000000"}},)"
    R"("ReturnValues":"NONE"})";
static_assert(kSigningBody.size() == 366, "the size is part of the metric");

constexpr std::int64_t kSigningTime = 1793251140;
constexpr ddbmutex::sigv4::Scope kSigningScope = {"eu-west-1", "dynamodb"};

inline ddbmutex::sigv4::Credentials signing_credentials() {
  return {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", ""};
}

inline ddbmutex::sigv4::Request signing_request(std::string_view payload_hash) {
  return {"POST",
          "/",
          "",
          {{"content-type", "application/x-amz-json-1.0"},
           {"host", "dynamodb.eu-west-1.amazonaws.com"},
           {"x-amz-target", "DynamoDB_20120810.PutItem"}},
          payload_hash};
}

// By a key that is made for it.
inline std::string expected_signature() {
  const std::string hash = ddbmutex::sigv4::sha256_hex(kSigningBody);
  return std::string(ddbmutex::sigv4::sign(signing_request(hash),
                                           signing_credentials(), kSigningScope,
                                           kSigningTime)
                         .signature());
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_SIGNING_CASE_HPP
