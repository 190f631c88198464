#include "service.hpp"

#include <cstddef>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr char kThrottling[] =
    "Throttling ThrottlingException ThrottledException RequestThrottled "
    "RequestThrottledException TooManyRequestsException "
    "ProvisionedThroughputExceededException RequestLimitExceeded "
    "BandwidthLimitExceeded LimitExceededException "
    "TransactionInProgressException PriorRequestNotComplete SlowDown "
    "EC2ThrottledException";

}  // namespace

bool is_among(std::string_view words, std::string_view word, char mark) {
  while (!words.empty()) {
    if (cut(words, mark) == word) return true;
  }
  return false;
}

bool is_throttling_code(std::string_view code) {
  return is_among(kThrottling, code);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
