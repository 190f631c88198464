#include "tests/world/dynamodb/number.hpp"

#include <algorithm>

#include "tests/world/dynamodb/refusal.hpp"

namespace world {
namespace dynamodb {
namespace {

constexpr std::size_t kMostDigits = 38;
constexpr int kGreatestExponent = 125;
constexpr int kLeastExponent = -130;

[[noreturn]] void no_number(std::string_view text) {
  invalid("The parameter cannot be converted to a numeric value" +
          (text.empty() ? "" : ": " + std::string(text)));
}

// Takes the digits from the front of a text.
std::string take_digits(std::string_view& text) {
  const std::size_t count =
      std::min(text.find_first_not_of("0123456789"), text.size());
  std::string digits(text.substr(0, count));
  text.remove_prefix(count);
  return digits;
}

bool take_sign(std::string_view& text) {
  const bool negative = !text.empty() && text[0] == '-';
  if (negative || (!text.empty() && text[0] == '+')) text.remove_prefix(1);
  return negative;
}

// Of what is behind the 'e'; no number needs more than six digits of it.
int read_exponent(std::string_view text, std::string_view whole) {
  const bool negative = take_sign(text);
  const std::string digits = take_digits(text);
  if (digits.empty() || !text.empty()) no_number(whole);
  const int size = std::stoi(digits.substr(0, 6));
  return negative ? -size : size;
}

// Without zeros at either end, and within DynamoDB's bounds.
Number normal(bool negative, std::string digits, int point) {
  const std::size_t begin = digits.find_first_not_of('0');
  if (begin == digits.npos) return {};
  digits.erase(digits.find_last_not_of('0') + 1);
  digits.erase(0, begin);
  point -= static_cast<int>(begin);
  if (point - 1 > kGreatestExponent) {
    invalid(
        "Number overflow. Attempting to store a number with magnitude larger "
        "than supported range");
  }
  if (point - 1 < kLeastExponent) {
    invalid(
        "Number underflow. Attempting to store a number with magnitude smaller "
        "than supported range");
  }
  if (digits.size() > kMostDigits) {
    invalid("Attempting to store more than 38 significant digits in a Number");
  }
  return {negative, std::move(digits), point};
}

int size_of(const Number& number) {
  return static_cast<int>(number.digits.size());
}

std::string zeros(int count) {
  return std::string(static_cast<std::size_t>(std::max(count, 0)), '0');
}

// The digits from the place `high` down to the place `low`.
std::string padded(const Number& number, int high, int low) {
  return zeros(high - number.point) + number.digits +
         zeros(number.point - size_of(number) - low);
}

// Digit by digit; both have the same length, and `one` is not the smaller one
// if `sign` is -1.
std::string combined(std::string one, const std::string& other, int sign) {
  int carry = 0;
  for (std::size_t at = one.size(); at-- > 0;) {
    const int digit = one[at] - '0' + sign * (other[at] - '0') + carry;
    carry = digit > 9 ? 1 : digit < 0 ? -1 : 0;
    one[at] = static_cast<char>('0' + digit - 10 * carry);
  }
  return one;
}

int compare_magnitudes(const Number& one, const Number& other) {
  if (one.point != other.point) return one.point < other.point ? -1 : 1;
  return one.digits.compare(other.digits);
}

}  // namespace

Number read_number(std::string_view text) {
  std::string_view rest = text;
  const bool negative = take_sign(rest);
  std::string digits = take_digits(rest);
  int point = static_cast<int>(digits.size());
  if (!rest.empty() && rest[0] == '.') {
    rest.remove_prefix(1);
    digits += take_digits(rest);
  }
  if (digits.empty()) no_number(text);
  if (!rest.empty()) {
    if (rest[0] != 'e' && rest[0] != 'E') no_number(text);
    point += read_exponent(rest.substr(1), text);
  }
  return normal(negative, std::move(digits), point);
}

Number negated(Number number) {
  number.negative = !number.digits.empty() && !number.negative;
  return number;
}

Number sum(const Number& one, const Number& other) {
  if (one.digits.empty()) return other;
  if (other.digits.empty()) return one;
  // One place more, for a carry.
  const int high = std::max(one.point, other.point) + 1;
  const int low =
      std::min(one.point - size_of(one), other.point - size_of(other));
  const bool one_is_greater = compare_magnitudes(one, other) >= 0;
  const Number& greater = one_is_greater ? one : other;
  const Number& smaller = one_is_greater ? other : one;
  return normal(greater.negative,
                combined(padded(greater, high, low), padded(smaller, high, low),
                         one.negative == other.negative ? 1 : -1),
                high);
}

int compare(const Number& one, const Number& other) {
  const bool one_is_zero = one.digits.empty();
  const bool other_is_zero = other.digits.empty();
  if (one_is_zero && other_is_zero) return 0;
  if (one_is_zero) return other.negative ? 1 : -1;
  if (other_is_zero || one.negative != other.negative) {
    return one.negative ? -1 : 1;
  }
  const int magnitude = compare_magnitudes(one, other);
  return one.negative ? -magnitude : magnitude;
}

std::string text_of(const Number& number) {
  if (number.digits.empty()) return "0";
  const std::string sign = number.negative ? "-" : "";
  if (number.point <= 0) {
    return sign + "0." + zeros(-number.point) + number.digits;
  }
  if (number.point >= size_of(number)) {
    return sign + number.digits + zeros(number.point - size_of(number));
  }
  const auto point = static_cast<std::size_t>(number.point);
  return sign + number.digits.substr(0, point) + "." +
         number.digits.substr(point);
}

}  // namespace dynamodb
}  // namespace world
