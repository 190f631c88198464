// Header lines: those of an answer, as HttpAnswer::header() finds them, and
// those of a request, as its signature sees them.
#include <algorithm>
#include <string>
#include <vector>

#include "sigv4/http_answer.hpp"
#include "sigv4/sigv4.hpp"
#include "tests/fuzz/fuzz.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

struct Line {
  std::string name, value;
};

std::string lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// "Name: value" lines; those without ':' are left out.
std::vector<Line> lines_of(Bytes text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    const Bytes line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    const std::size_t colon = line.find(':');
    if (colon == line.npos) continue;
    lines.push_back({std::string(line.substr(0, colon)),
                     std::string(line.substr(colon + 1))});
  }
  return lines;
}

// Of a header that is looked up by each line's own name.
void check_found(const sigv4::HttpAnswer& answer, const Line& line) {
  if (line.name.empty()) return;
  const auto found = answer.header(line.name);
  claim(found.data() != nullptr, "a header is found by its name");
  claim(answer.header(lower(line.name)) == found,
        "a header's name has no case");
  claim(found.find('\n') == found.npos, "a header is one line");
  constexpr Bytes kBlanks = " \t\r";
  claim(found.empty() || (kBlanks.find(found.front()) == Bytes::npos &&
                          kBlanks.find(found.back()) == Bytes::npos),
        "a header's value is trimmed");
}

void check_answer(Bytes text, const std::vector<Line>& lines) {
  sigv4::HttpAnswer answer;
  answer.headers = text;
  for (const Line& line : lines) check_found(answer, line);
  answer.headers.insert(0, "X-First: one\r\n");
  claim(answer.header("x-first") == Bytes("one"), "the first header counts");
}

// Words, with a blank between each.
std::string folded(Bytes value) {
  std::string result;
  bool between = false;
  for (const char c : value) {
    const bool blank = Bytes(" \t\r\n").find(c) != Bytes::npos;
    if (!blank && between && !result.empty()) result += ' ';
    if (!blank) result += c;
    between = blank;
  }
  return result;
}

std::string canonical(const std::vector<sigv4::Header>& headers,
                      std::string& names) {
  sigv4::Request request;
  request.method = "POST";
  request.headers = headers;
  request.payload_hash = "HASH";
  const std::string text = sigv4::canonical_request(request).take();
  names = text.substr(0, text.rfind('\n'));
  names.erase(0, names.rfind('\n') + 1);
  return text;
}

// All under one name, which is signed.
void check_values(const std::vector<Line>& lines) {
  std::vector<sigv4::Header> headers;
  std::string expected = "POST\n/\n\n";
  for (const Line& line : lines) {
    expected += headers.empty() ? "x-a:" : ",";
    expected += folded(line.value);
    headers.push_back({headers.size() % 2 == 0 ? "X-A" : "x-a", line.value});
  }
  expected += headers.empty() ? "\n\nHASH" : "\n\nx-a\nHASH";
  std::string names;
  claim(canonical(headers, names) == expected,
        "values are folded, trimmed and joined in their order");
}

bool is_sorted_list(Bytes names) {
  std::vector<Bytes> list;
  while (!names.empty()) {
    list.push_back(names.substr(0, names.find(';')));
    names.remove_prefix(std::min(list.back().size() + 1, names.size()));
  }
  // Bytes compare without sign, as the signature wants it.
  return std::adjacent_find(list.begin(), list.end(),
                            std::greater_equal<Bytes>()) == list.end();
}

bool is_token(Bytes name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte > ' ' && byte != ';' && byte != ':' && byte != 0x7f;
  });
}

// Each under its own name; names with blanks or ';' would be split wrong here.
void check_names(const std::vector<Line>& lines) {
  std::vector<sigv4::Header> headers;
  for (const Line& line : lines) {
    if (is_token(line.name)) headers.push_back({line.name, line.value});
  }
  std::string names, again;
  const std::string text = canonical(headers, names);
  claim(lower(names) == names, "names are signed in lower case");
  claim(is_sorted_list(names), "names are signed sorted, each once");
  std::stable_sort(headers.begin(), headers.end(),
                   [](const sigv4::Header& a, const sigv4::Header& b) {
                     return lower(std::string(a.name)) >
                            lower(std::string(b.name));
                   });
  claim(canonical(headers, again) == text && again == names,
        "only the order of equal names counts");
}

}  // namespace

void headers(Bytes bytes) {
  const std::vector<Line> lines = lines_of(bytes);
  check_answer(bytes, lines);
  check_values(lines);
  check_names(lines);
}

}  // namespace fuzz
}  // namespace tests
