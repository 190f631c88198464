// Where keys come from.
#ifndef DDBMUTEX_SIGV4_CREDENTIALS_HPP
#define DDBMUTEX_SIGV4_CREDENTIALS_HPP

#include <optional>

#include "sigv4/sigv4.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if set, AWS_SESSION_TOKEN;
// nothing if one of the first two is unset or empty.  Reads the environment
// anew each time: not to be called while another thread changes it.
std::optional<Credentials> credentials_from_environment();

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_CREDENTIALS_HPP
