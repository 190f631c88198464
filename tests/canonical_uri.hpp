// Paths and queries as a signature wants them, from any that may be sent.  The
// library has no such requests, but AWS's published cases do.
#ifndef DDBMUTEX_TESTS_CANONICAL_URI_HPP
#define DDBMUTEX_TESTS_CANONICAL_URI_HPP

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>
#include <string_view>

#include "sigv4/sigv4.hpp"
#include "sigv4/text.hpp"

namespace tests {

using ddbmutex::sigv4::append;
using ddbmutex::sigv4::append_encoded;
using ddbmutex::sigv4::cut;
using ddbmutex::sigv4::join;

// As AWS's signers do: "/a/.." is "/", "/a/b/.." is "/a" with no slash behind,
// and a ".." too many is dropped.
inline std::string normalized(std::string_view path) {
  const bool slash = !path.empty() && path.back() == '/';
  std::string out;
  while (!path.empty()) {
    const std::string_view segment = cut(path, '/');
    if (segment == "..") {
      out.resize(std::min(out.rfind('/'), out.size()));
    } else if (!segment.empty() && segment != ".") {
      append(out, {"/", segment});
    }
  }
  if (out.empty() || slash) out += '/';
  return out;
}

// Whatever was encoded in the query and however, the signature wants one
// spelling.  A '%' with no two digits behind it stands for itself.
inline std::string reencoded(std::string_view text) {
  const auto is_digit = [&](std::size_t at) {
    return std::isxdigit(static_cast<unsigned char>(text[at])) != 0;
  };
  std::string decoded, out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && is_digit(i + 1) &&
        is_digit(i + 2)) {
      const char digits[] = {text[i + 1], text[i + 2], '\0'};
      decoded += static_cast<char>(std::strtoul(digits, nullptr, 16));
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  append_encoded(out, decoded);
  return out;
}

// Sorted by encoded name, then by encoded value.
inline std::string canonical_query(std::string_view query) {
  std::multiset<std::string> parameters;  // "name\nvalue": '\n' sorts first.
  while (!query.empty()) {
    std::string_view value = cut(query, '&');
    if (value.empty()) continue;  // "a=1&&b=2", or a '&' at either end.
    const std::string name = reencoded(cut(value, '='));
    parameters.insert(join({name, "\n", reencoded(value)}));
  }
  std::string out;
  for (std::string_view value : parameters) {
    const std::string_view name = cut(value, '\n');
    append(out, {out.empty() ? "" : "&", name, "=", value});
  }
  return out;
}

inline std::string canonical_path(std::string_view path, bool normalize) {
  std::string out;
  if (path.empty()) path = "/";
  append_encoded(out, normalize ? normalized(path) : path, '/');
  return out;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_CANONICAL_URI_HPP
