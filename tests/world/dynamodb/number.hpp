// DynamoDB's numbers: decimal, with up to 38 significant digits, and zero or of
// a magnitude from 1E-130 to 9.99...E+125.
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_NUMBER_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_NUMBER_HPP

#include <string>
#include <string_view>

namespace world {
namespace dynamodb {

struct Number {
  bool negative = false;
  std::string digits;  // No zeros at either end; empty: the number is zero.
  int point = 0;       // The number is 0.DIGITS times ten to this power.
};

// These two refuse what is no such number.
Number read_number(std::string_view text);
Number sum(const Number& one, const Number& other);

Number negated(Number number);
int compare(const Number& one, const Number& other);  // Below, at, above 0.
std::string text_of(const Number& number);            // Without an exponent.

}  // namespace dynamodb
}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_NUMBER_HPP
