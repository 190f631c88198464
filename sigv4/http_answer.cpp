#include "http_answer.hpp"

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

std::string_view HttpAnswer::header(std::string_view name) const {
  std::string_view left = headers;
  while (!left.empty()) {
    const std::string_view line = sigv4::cut(left, '\n');
    const std::size_t colon = name.size();
    if (line.size() > colon && line[colon] == ':' &&
        same_in_any_case(line.substr(0, colon), name)) {
      return sigv4::trimmed(line.substr(colon + 1));
    }
  }
  return {};
}

void HttpAnswer::reset() {
  transport = Transport::under_way;
  sent = false;
  status = 0;
  bytes_sent = bytes_received = 0;
  for (std::string* text : {&body, &headers, &error}) text->clear();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
