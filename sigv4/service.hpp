// What the answers of all of AWS's services have in common.  Pure functions.
#ifndef DDBMUTEX_SIGV4_SERVICE_HPP
#define DDBMUTEX_SIGV4_SERVICE_HPP

#include <string_view>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Whether it is one of the words, which have that mark between them.
bool is_among(std::string_view words, std::string_view word, char mark = ' ');

// What AWS's SDKs take for a call for fewer requests.
bool is_throttling_code(std::string_view code);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SERVICE_HPP
