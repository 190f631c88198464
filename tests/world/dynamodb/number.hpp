// DynamoDB's numbers: decimal, with up to 38 significant digits, and zero or of
// a magnitude from 1E-130 to 9.99...E+125.  Here they are texts without an
// exponent or needless zeros, such as "-12.5".
#ifndef DDBMUTEX_TESTS_WORLD_DYNAMODB_NUMBER_HPP
#define DDBMUTEX_TESTS_WORLD_DYNAMODB_NUMBER_HPP

#include <cstddef>
#include <string>
#include <string_view>

namespace world::dynamodb {

// Refuses a text that is no such number.  It may have an exponent and needless
// zeros.
std::string read_number(std::string_view text);
// Refuses a sum that is no such number.
std::string sum(std::string_view one, std::string_view other);
// Below, at or above 0.
int compare_numbers(std::string_view one, std::string_view other);
// In bytes, as DynamoDB stores it.
std::size_t size_of_number(std::string_view number);

}  // namespace world::dynamodb

#endif  // DDBMUTEX_TESTS_WORLD_DYNAMODB_NUMBER_HPP
