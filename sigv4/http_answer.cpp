#include "http_answer.hpp"

#include <algorithm>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

std::string_view HttpAnswer::header(std::string_view name) const {
  std::string_view value;
  const std::size_t size = name.size();
  find_headers(name.data(), 0, &size, &value, 1);
  return value;
}

void HttpAnswer::find_headers(const char* names, std::size_t width,
                              const std::size_t* sizes,
                              std::string_view* values,
                              std::size_t count) const {
  const std::string_view all = headers;
  for (std::size_t begin = 0, end = 0; begin < all.size(); begin = end + 1) {
    end = std::min(all.find('\n', begin), all.size());
    const std::string_view line = all.substr(begin, end - begin);
    for (std::size_t i = 0; i < count; ++i) {
      const char* const name = names + i * width;
      const std::size_t colon = sizes[i];
      if (line.size() <= colon || line[colon] != ':') continue;
      if (!same_in_any_case(line.substr(0, colon), {name, colon})) continue;
      if (values[i].data() == nullptr) {
        values[i] = sigv4::trimmed(line.substr(colon + 1));
      }
      break;
    }
  }
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
