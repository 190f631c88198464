#include "tests/world/dynamodb/number.hpp"

#include <algorithm>

#include "tests/world/dynamodb/refusal.hpp"

namespace world::dynamodb {
namespace {

constexpr std::size_t kMostDigits = 38;
constexpr int kGreatestExponent = 125;
constexpr int kLeastExponent = -130;

std::string zeros(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), '0');
}

// The number 0.DIGITS times ten to the power of `point`.
std::string text_of(bool negative, std::string digits, int point) {
  const std::size_t begin = digits.find_first_not_of('0');
  if (begin == digits.npos) return "0";
  digits.erase(digits.find_last_not_of('0') + 1);
  digits.erase(0, begin);
  point -= static_cast<int>(begin);
  if (point - 1 > kGreatestExponent || point - 1 < kLeastExponent) {
    invalid(
        "Number overflow or underflow. Attempting to store a number with "
        "magnitude outside of the supported range");
  }
  if (digits.size() > kMostDigits) {
    invalid("Attempting to store more than 38 significant digits in a Number");
  }
  const int size = static_cast<int>(digits.size());
  if (point <= 0) {
    digits.insert(0, "0." + zeros(-point));
  } else if (point >= size) {
    digits += zeros(point - size);
  } else {
    digits.insert(static_cast<std::size_t>(point), ".");
  }
  return (negative ? "-" : "") + digits;
}

// Takes the digits from the front of a text.
std::string take_digits(std::string_view& text) {
  const std::size_t count =
      std::min(text.find_first_not_of("0123456789"), text.size());
  std::string digits(text.substr(0, count));
  text.remove_prefix(count);
  return digits;
}

bool take(char c, std::string_view& text) {
  if (text.empty() || text[0] != c) return false;
  text.remove_prefix(1);
  return true;
}

bool take_sign(std::string_view& text) {
  const bool negative = take('-', text);
  if (!negative) take('+', text);
  return negative;
}

bool is_negative(std::string_view number) { return number[0] == '-'; }

std::string_view magnitude_of(std::string_view number) {
  return number.substr(is_negative(number) ? 1 : 0);
}

int compare_magnitudes(std::string_view one, std::string_view other) {
  const std::size_t one_point = std::min(one.find('.'), one.size());
  const std::size_t other_point = std::min(other.find('.'), other.size());
  if (one_point != other_point) return one_point < other_point ? -1 : 1;
  return one.compare(other);
}

// The digits of a magnitude, with so many of them before the point and so many
// behind it.
std::string padded(std::string_view magnitude, int before, int behind) {
  std::string digits = take_digits(magnitude);
  digits.insert(0, zeros(before - static_cast<int>(digits.size())));
  if (take('.', magnitude)) digits += magnitude;
  return digits + zeros(before + behind - static_cast<int>(digits.size()));
}

}  // namespace

std::string read_number(std::string_view text) {
  std::string_view rest = text;
  const bool negative = take_sign(rest);
  std::string digits = take_digits(rest);
  int point = static_cast<int>(digits.size());
  if (take('.', rest)) digits += take_digits(rest);
  bool good = !digits.empty();
  if (take('e', rest) || take('E', rest)) {
    const bool below = take_sign(rest);
    const std::string exponent = take_digits(rest);
    good = good && !exponent.empty();
    // No number needs more than six digits of it.
    const int size = std::stoi("0" + exponent.substr(0, 6));
    point += below ? -size : size;
  }
  if (!good || !rest.empty()) {
    invalid("The parameter cannot be converted to a numeric value: " +
            std::string(text));
  }
  return text_of(negative, std::move(digits), point);
}

// Digit by digit, from the last one on.
std::string sum(std::string_view one, std::string_view other) {
  std::string_view greater = magnitude_of(one), smaller = magnitude_of(other);
  const bool swapped = compare_magnitudes(greater, smaller) < 0;
  if (swapped) std::swap(greater, smaller);
  const int sign = is_negative(one) == is_negative(other) ? 1 : -1;
  // One place more than they have before the point, for a carry.
  const int before =
      static_cast<int>(std::min(greater.find('.'), greater.size())) + 1;
  const int behind = static_cast<int>(std::max(one.size(), other.size()));
  std::string digits = padded(greater, before, behind);
  const std::string addend = padded(smaller, before, behind);
  int carry = 0;
  for (std::size_t at = digits.size(); at-- > 0;) {
    const int digit = digits[at] - '0' + sign * (addend[at] - '0') + carry;
    carry = digit > 9 ? 1 : digit < 0 ? -1 : 0;
    digits[at] = static_cast<char>('0' + digit - 10 * carry);
  }
  return text_of(is_negative(swapped ? other : one), std::move(digits), before);
}

int compare_numbers(std::string_view one, std::string_view other) {
  const bool negative = is_negative(one);
  if (negative != is_negative(other)) return negative ? -1 : 1;
  const int magnitude =
      compare_magnitudes(magnitude_of(one), magnitude_of(other));
  return negative ? -magnitude : magnitude;
}

// Two digits to a byte, and one byte more; another one for the sign.
std::size_t size_of_number(std::string_view number) {
  std::string digits(magnitude_of(number));
  digits.erase(std::remove(digits.begin(), digits.end(), '.'), digits.end());
  const std::size_t begin = digits.find_first_not_of('0');
  const std::size_t count =
      begin == digits.npos ? 0 : digits.find_last_not_of('0') + 1 - begin;
  return (count + 1) / 2 + 1 + (is_negative(number) ? 1 : 0);
}

}  // namespace world::dynamodb
