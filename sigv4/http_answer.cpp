// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "http_answer.hpp"

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

bool HeaderLines::next() {
  while (!rest_.empty()) {
    const std::string_view line = sigv4::cut(rest_, '\n');
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    name = line.substr(0, colon);
    value = sigv4::trimmed(line.substr(colon + 1));
    return true;
  }
  return false;
}

std::string_view HttpAnswer::header(std::string_view name) const {
  for (HeaderLines each(headers); each.next();) {
    if (same_in_any_case(each.name, name)) return each.value;
  }
  return {};
}

void HttpAnswer::reset() {
  transport = Transport::under_way;
  sent = false;
  status = 0;
  for (std::string* text : {&body, &headers, &error}) text->clear();
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
