// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The error codes that AWS's services share, as AWS's SDKs classify them.
#include "error_code.hpp"

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// From this difference on, aws-sdk-cpp and the JavaScript SDK correct the time.
constexpr std::chrono::minutes kSkewed{4};

constexpr struct {
  const char* codes;
  CodeMeaning meaning;
} kMeanings[] = {
    {"Throttling ThrottlingException ThrottledException RequestThrottled "
     "RequestThrottledException TooManyRequestsException "
     "ProvisionedThroughputExceededException RequestLimitExceeded "
     "BandwidthLimitExceeded LimitExceededException "
     "TransactionInProgressException PriorRequestNotComplete SlowDown "
     "EC2ThrottledException",
     CodeMeaning::throttled},
    {"InternalError InternalFailure InternalServerError "
     "InternalServerException ServiceUnavailable ServiceUnavailableException "
     "RequestTimeout RequestTimeoutException",
     CodeMeaning::transient},
    {"AuthFailure InvalidSignatureException SignatureDoesNotMatch "
     "RequestExpired RequestInTheFuture RequestTimeTooSkewed",
     CodeMeaning::bad_signature},
};

}  // namespace

std::string_view bare_code(std::string_view code) {
  code = sigv4::cut(code, ',');
  code = sigv4::cut(code, ':');
  return code.substr(code.rfind('#') + 1);  // npos + 1 is 0.
}

CodeMeaning meaning_of_code(std::string_view bare_code) {
  for (const auto& row : kMeanings) {
    if (sigv4::is_among(row.codes, bare_code)) return row.meaning;
  }
  return CodeMeaning::unknown;
}

bool may_mean_skew(std::string_view bare_code) {
  return meaning_of_code(bare_code) == CodeMeaning::bad_signature ||
         bare_code == "AccessDeniedException";
}

bool is_skewed(std::chrono::nanoseconds difference) {
  return difference >= kSkewed || difference <= -kSkewed;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
