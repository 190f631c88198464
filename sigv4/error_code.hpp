// What an error code means that any of AWS's services may answer with.
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
  unknown,        // No code that all services share.
  throttled,      // The service asks for fewer requests.
  transient,      // The service failed: worth another attempt.
  bad_signature,  // Or one for another time.
};
CodeMeaning meaning_of_code(std::string_view bare_code);

// Whether a refusal with this code may be due to the time that the request was
// signed for; and whether it is, judged by how far that time is from the Date
// of the refusal.
bool may_mean_skew(std::string_view bare_code);
bool is_skewed(std::chrono::nanoseconds difference);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_ERROR_CODE_HPP
