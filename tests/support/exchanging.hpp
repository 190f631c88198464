// An exchange that begins with texts that are there already.
#ifndef DDBMUTEX_TESTS_SUPPORT_EXCHANGING_HPP
#define DDBMUTEX_TESTS_SUPPORT_EXCHANGING_HPP

#include <string>
#include <string_view>

#include "sigv4/boot_clock.hpp"
#include "sigv4/http.hpp"

namespace tests {

inline void start(
    ddbmutex::sigv4::Exchange& exchange, const std::string& url,
    std::string_view headers, std::string_view body,
    ddbmutex::sigv4::Method method = ddbmutex::sigv4::Method::post) {
  exchange.headers() += headers;
  exchange.body() += body;
  exchange.start(url, ddbmutex::BootClock::now(), method);
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_EXCHANGING_HPP
