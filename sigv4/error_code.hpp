// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The meaning of error codes that all of AWS's services use.
//
// Pure functions.
#ifndef DDBMUTEX_SIGV4_ERROR_CODE_HPP
#define DDBMUTEX_SIGV4_ERROR_CODE_HPP

#include <chrono>
#include <string_view>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// "Code" of "com.amazonaws.dynamodb.v20120810#Code" and "Code:http://...", the
// spellings of "__type" and of the header x-amzn-ErrorType.
std::string_view bare_code(std::string_view code);

enum class CodeMeaning {
  unknown,        // Not a code that all services use.
  throttled,      // The service asks for fewer requests.
  transient,      // The service failed: worth another attempt.
  bad_signature,  // The signature is wrong, or was made for another time.
};
CodeMeaning meaning_of_code(std::string_view bare_code);

// Whether a refusal with this code may mean that the request was signed for the
// wrong time.
bool may_mean_skew(std::string_view bare_code);
// Whether it was.  `difference`: from that time to the Date of the refusal.
bool is_skewed(std::chrono::nanoseconds difference);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_ERROR_CODE_HPP
