// Figures of a torture as people read them.
//
//   grouped(61234)            // "61,234"
//   lasting(nanoseconds(3))   // "3 ns"; "12.3 ms"; "4.56 s"
//   moment(since_the_start)   // "12.345678901 s"
#ifndef DDBMUTEX_TESTS_TORTURE_WORDS_HPP
#define DDBMUTEX_TESTS_TORTURE_WORDS_HPP

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>

namespace torture {

using std::chrono::nanoseconds;

inline std::string grouped(std::uint64_t number) {
  std::string digits = std::to_string(number);
  for (std::size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, ",");
  return digits;
}

// Exact.
inline std::string moment(nanoseconds since) {
  constexpr long long kSecond = 1000000000;
  const long long count = std::llabs(since.count());
  std::string fraction = std::to_string(count % kSecond);
  fraction.insert(0, 9 - fraction.size(), '0');
  return (since.count() < 0 ? "-" : "") + std::to_string(count / kSecond) +
         "." + fraction + " s";
}

// Rounded down to three digits or so.
inline std::string lasting(nanoseconds time) {
  constexpr const char* kUnits[] = {" ns", " us", " ms", " s"};
  long long count = std::llabs(time.count());
  const char* const sign = time.count() < 0 ? "-" : "";
  if (count < 1000) return sign + std::to_string(count) + kUnits[0];
  int unit = 1;
  for (; count >= 1000000 && unit < 3; ++unit) count /= 1000;
  std::string digits = std::to_string(count / 1000);
  if (digits.size() < 3) {
    const std::string fraction = std::to_string(1000 + count % 1000);
    digits += "." + fraction.substr(1, 3 - digits.size());
  }
  return sign + digits + kUnits[unit];
}

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_WORDS_HPP
