// A text as JSON writes it.
#ifndef DDBMUTEX_TESTS_SUPPORT_JSON_STRING_HPP
#define DDBMUTEX_TESTS_SUPPORT_JSON_STRING_HPP

#include <string>
#include <string_view>

#include "sigv4/json.hpp"

namespace tests {

// Between quotes.  REQUIRES: UTF-8.
inline std::string json_string(std::string_view text) {
  ddbmutex::sigv4::Text json;
  ddbmutex::sigv4::JsonWriter(json).text(text);
  return json.take();
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_JSON_STRING_HPP
