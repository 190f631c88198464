// The body of a request by itself.
#ifndef DDBMUTEX_TESTS_SUPPORT_BODY_OF_HPP
#define DDBMUTEX_TESTS_SUPPORT_BODY_OF_HPP

#include <string>

#include "ddbmutex/lock/requests.hpp"
#include "sigv4/text.hpp"

namespace tests {

inline std::string body_of(const ddbmutex::lock::RowTarget& place,
                           const ddbmutex::lock::Request& request) {
  ddbmutex::sigv4::Text body;
  ddbmutex::lock::write_request(place, request, body);
  return body.take();
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_BODY_OF_HPP
