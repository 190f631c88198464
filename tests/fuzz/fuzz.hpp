// What is fuzzed: functions that read bytes of others' making, and what they
// promise for any bytes at all.
//
// A target is a function that takes the fuzzer's bytes, hands them to the
// library and claims what must hold:
//
//   void tests::fuzz::date(Bytes bytes) {
//     const auto time = sigv4::parse_http_date(bytes);
//     claim(!time || *time < kYear10000, "a Date has four digits of a year");
//   }
//
// It stands in tests/fuzz/NAME.cpp, in kTargets below, and in the runs of two:
// libFuzzer by way of main.cpp, and tests/test_protections.cpp with the kept
// corpus.
#ifndef DDBMUTEX_TESTS_FUZZ_FUZZ_HPP
#define DDBMUTEX_TESTS_FUZZ_FUZZ_HPP

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <string_view>

#include "sigv4/text.hpp"

namespace tests {
namespace fuzz {

using Bytes = std::string_view;

// A promise that was not kept.  Nothing to do with assert(): it is checked in
// every build.
struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};

inline void claim(bool holds, const char* promise) {
  if (!holds) throw Broken(promise);
}

void answer(Bytes bytes);
void date(Bytes bytes);
void headers(Bytes bytes);
void keys_json(Bytes bytes);
void profile(Bytes bytes);
void record(Bytes bytes);

struct Target {
  const char* name;
  void (*run)(Bytes);
};

constexpr Target kTargets[] = {
    {"answer", answer},   {"date", date},     {"headers", headers},
    {"profile", profile}, {"record", record}, {"keys_json", keys_json},
};

// Takes the bytes apart.  Choices are made so that '0' is the first of each:
// seeds can then be written by hand.
class Input {
 public:
  explicit Input(Bytes bytes) : bytes_(bytes) {}

  // One byte's worth, below `count`; 0 if there is none left.
  // REQUIRES: `count` divides 16.
  std::size_t choice(std::size_t count) { return byte() % count; }
  // From -48 to 207; '0' is 0, as is want of bytes.
  int number() { return static_cast<int>(byte()) - '0'; }
  // Up to the next record separator, which it passes, or to the end.
  Bytes part() {
    const std::size_t end = std::min(bytes_.find('\x1e'), bytes_.size());
    const Bytes part = bytes_.substr(0, end);
    bytes_.remove_prefix(std::min(end + 1, bytes_.size()));
    return part;
  }
  Bytes rest() const { return bytes_; }
  bool empty() const { return bytes_.empty(); }

 private:
  unsigned char byte() {
    if (bytes_.empty()) return '0';
    const auto first = static_cast<unsigned char>(bytes_.front());
    bytes_.remove_prefix(1);
    return first;
  }

  Bytes bytes_;
};

// Fit to be shown to people, whatever it was made of: it ends no line, and a
// terminal obeys none of it.
inline bool is_one_line(Bytes text) {
  return ddbmutex::sigv4::is_utf8(text) &&
         text.find("\xc2\x9b") == Bytes::npos &&
         text.find("\xe2\x80\xae") == Bytes::npos &&
         std::none_of(text.begin(), text.end(), [](char c) {
           const auto code = static_cast<unsigned char>(c);
           return code < ' ' || code == 0x7f;
         });
}

inline bool is_visible(Bytes text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace fuzz
}  // namespace tests

#endif  // DDBMUTEX_TESTS_FUZZ_FUZZ_HPP
