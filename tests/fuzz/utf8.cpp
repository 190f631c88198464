// is_utf8, against the table of the Unicode Standard; and what passes it, as a
// lock's name: the requests that bear it are JSON, and say just that name.
#include <rapidjson/document.h>

#include <string>

#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/body_of.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;

// Table 3-7 of the Unicode Standard, "Well-Formed UTF-8 Byte Sequences": lead
// bytes, what the second byte may be, how many more there are.
struct Sequence {
  unsigned first, last, low, high;
  std::size_t more;
};
constexpr Sequence kSequences[] = {
    {0x00, 0x7f, 0x00, 0xff, 0}, {0xc2, 0xdf, 0x80, 0xbf, 1},
    {0xe0, 0xe0, 0xa0, 0xbf, 2}, {0xe1, 0xec, 0x80, 0xbf, 2},
    {0xed, 0xed, 0x80, 0x9f, 2}, {0xee, 0xef, 0x80, 0xbf, 2},
    {0xf0, 0xf0, 0x90, 0xbf, 3}, {0xf1, 0xf3, 0x80, 0xbf, 3},
    {0xf4, 0xf4, 0x80, 0x8f, 3},
};

unsigned byte_at(Bytes text, std::size_t i) {
  return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u;
}

// How many bytes the character at the front has; 0 if it is none.
std::size_t length_of_first(Bytes text) {
  for (const Sequence& s : kSequences) {
    if (byte_at(text, 0) < s.first || byte_at(text, 0) > s.last) continue;
    if (s.more == 0) return 1;
    if (byte_at(text, 1) < s.low || byte_at(text, 1) > s.high) return 0;
    for (std::size_t i = 2; i <= s.more; ++i) {
      if (byte_at(text, i) < 0x80 || byte_at(text, i) > 0xbf) return 0;
    }
    return s.more + 1;
  }
  return 0;
}

bool is_well_formed(Bytes text) {
  while (!text.empty()) {
    const std::size_t length = length_of_first(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

rapidjson::Document parse(const std::string& body) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(body.data(),
                                                        body.size());
  claim(!document.HasParseError() && document.IsObject(),
        "a request is a JSON object");
  return document;
}

void check_key(const rapidjson::Value& item, Bytes name) {
  const rapidjson::Value& key = item[lock::kKeyAttribute]["S"];
  claim(Bytes(key.GetString(), key.GetStringLength()) == name,
        "a request bears the name that it was given");
}

void check_requests(const std::string& name) {
  lock::RowTarget place;
  place.table = "locks";
  place.key = name;
  lock::Request request;
  for (const auto verb :
       {lock::Request::Verb::take, lock::Request::Verb::renew,
        lock::Request::Verb::release, lock::Request::Verb::look}) {
    request.verb = verb;
    const auto body = parse(tests::body_of(place, request));
    const bool takes = verb == lock::Request::Verb::take;
    check_key(body[takes ? "Item" : "Key"], name);
  }
}

}  // namespace

void utf8(Bytes bytes) {
  const bool expected = is_well_formed(bytes);
  claim(dynamodb::is_utf8(bytes) == expected,
        "UTF-8 is what the Unicode Standard says it is");
  if (expected) check_requests(std::string(bytes));
}

}  // namespace fuzz
}  // namespace tests
