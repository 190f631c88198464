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

bool is_among(std::string_view words, std::string_view word) {
  while (!words.empty()) {
    if (cut(words, ' ') == word) return true;
  }
  return false;
}

bool is_throttling_code(std::string_view code) {
  return is_among(kThrottling, code);
}

bool has_lone_surrogate(std::string_view json) {
  std::size_t at = 0;
  while ((at = json.find('\\', at)) != json.npos) {
    const std::string_view escape = json.substr(at, 4);  // "\udc"
    at += 2;
    if (escape.size() < 4 || escape[1] != 'u') continue;
    if (escape[2] != 'd' && escape[2] != 'D') continue;
    constexpr std::string_view kFirst = "89abAB", kSecond = "cdefCDEF";
    if (kSecond.find(escape[3]) != kSecond.npos) return true;
    if (kFirst.find(escape[3]) != kFirst.npos) at += 10;  // And its second.
  }
  return false;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
