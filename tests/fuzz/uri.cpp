// The canonical URI and query string of sigv4: a path, a record separator, a
// query.  Encoding loses nothing and leaves no other spelling.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/sigv4.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

constexpr Bytes kHash = "HASH";

// What stands between the method and the (empty) headers.
std::string canonical(Bytes path, Bytes query, bool normalize) {
  sigv4::Request request;
  request.method = "GET";
  request.path = path;
  request.query = query;
  request.payload_hash = kHash;
  request.normalize_path = normalize;
  const std::string text = sigv4::canonical_request(request).take();
  const std::string tail = "\n\n\n" + std::string(kHash);
  claim(text.substr(0, 4) == "GET\n" && text.size() >= 4 + tail.size() &&
            text.substr(text.size() - tail.size()) == tail,
        "a canonical request has its lines");
  return text.substr(4, text.size() - 4 - tail.size());
}

std::string canonical_path(Bytes path, bool normalize) {
  const std::string text = canonical(path, "", normalize);
  claim(!text.empty() && text.back() == '\n', "no query, an empty line");
  return text.substr(0, text.size() - 1);
}

std::string canonical_query(Bytes query) {
  const std::string text = canonical("", query, true);
  claim(text.substr(0, 2) == "/\n", "an empty path is a slash");
  return text.substr(2);
}

int hex(char c) {
  const std::size_t at = Bytes("0123456789ABCDEF0123456789abcdef").find(c);
  return at == Bytes::npos ? -1 : static_cast<int>(at % 16);
}

// A '%' without two digits behind it stands for itself.
std::string decoded(Bytes text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 2 < text.size() && hex(text[i + 1]) >= 0 &&
        hex(text[i + 2]) >= 0) {
      result += static_cast<char>(hex(text[i + 1]) * 16 + hex(text[i + 2]));
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

// Unreserved characters and those given stand for themselves, all others as
// '%' and two digits in upper case.
bool is_encoded(Bytes text, Bytes as_is) {
  constexpr Bytes kUnreserved =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      if (kUnreserved.find(text[i]) == Bytes::npos &&
          as_is.find(text[i]) == Bytes::npos) {
        return false;
      }
      continue;
    }
    constexpr Bytes kDigits = "0123456789ABCDEF";
    if (i + 2 >= text.size()) return false;
    const std::size_t high = kDigits.find(text[i + 1]);
    const std::size_t low = kDigits.find(text[i + 2]);
    if (high == Bytes::npos || low == Bytes::npos) return false;
    const std::string byte = decoded(text.substr(i, 3));
    if (kUnreserved.find(byte) != Bytes::npos) return false;
    i += 2;
  }
  return true;
}

std::vector<std::string> split(Bytes text, char at) {
  std::vector<std::string> parts;
  for (;;) {
    const std::size_t end = text.find(at);
    parts.emplace_back(text.substr(0, end));
    if (end == Bytes::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

// Segment by segment, as RFC 3986 would, but for empty ones.
std::string normalized(Bytes path) {
  std::vector<std::string> kept;
  for (const std::string& segment : split(path, '/')) {
    if (segment.empty() || segment == ".") continue;
    if (segment != "..") {
      kept.push_back(segment);
    } else if (!kept.empty()) {
      kept.pop_back();
    }
  }
  std::string result;
  for (const std::string& segment : kept) result += "/" + segment;
  const bool slash = path.empty() || path.back() == '/' || kept.empty();
  return slash ? result + "/" : result;
}

void check_path(Bytes path) {
  const std::string encoded = canonical_path(path, false);
  claim(is_encoded(encoded, "/"), "a path is encoded throughout");
  claim(decoded(encoded) == (path.empty() ? Bytes("/") : path),
        "encoding a path loses nothing");
  claim(canonical_path(path, true) == canonical_path(normalized(path), false),
        "a path is normalised by segments, then encoded");
}

// Of "a=1&&b": (a, 1), (b, ""); decoded.
std::vector<std::pair<std::string, std::string>> parameters(Bytes query) {
  std::vector<std::pair<std::string, std::string>> result;
  for (const std::string& piece : split(query, '&')) {
    if (piece.empty()) continue;
    const std::size_t equals = std::min(piece.find('='), piece.size());
    result.emplace_back(
        decoded(piece.substr(0, equals)),
        decoded(equals < piece.size() ? piece.substr(equals + 1) : ""));
  }
  std::sort(result.begin(), result.end());
  return result;
}

// By encoded name, then by encoded value.
bool is_sorted(Bytes query) {
  std::vector<std::pair<std::string, std::string>> pairs;
  if (query.empty()) return true;
  for (const std::string& piece : split(query, '&')) {
    const std::size_t equals = piece.find('=');
    if (equals == piece.npos) return false;
    pairs.emplace_back(piece.substr(0, equals), piece.substr(equals + 1));
  }
  return std::is_sorted(pairs.begin(), pairs.end());
}

void check_query(Bytes query) {
  const std::string once = canonical_query(query);
  claim(is_encoded(once, "=&"), "a query is encoded throughout");
  claim(is_sorted(once), "a query's parameters are sorted, each with its '='");
  claim(parameters(once) == parameters(query),
        "a canonical query says what the query said");
  claim(canonical_query(once) == once,
        "a query made canonical twice is one made so once");
}

}  // namespace

void uri(Bytes bytes) {
  Input input(bytes);
  check_path(input.part());
  check_query(input.rest());
}

}  // namespace fuzz
}  // namespace tests
