// What the judge reads in the JSON of an item.
#ifndef DDBMUTEX_TESTS_WORLD_ROW_TEXT_HPP
#define DDBMUTEX_TESTS_WORLD_ROW_TEXT_HPP

#include <cstdint>
#include <string>
#include <string_view>

#include "ddbmutex.hpp"
#include "tests/support/layouts.hpp"

namespace world {

// What follows `before` in the text, up to the next quotation mark.
std::string value_after(std::string_view text, const std::string& before);

// 0 if there is no such number, or one that no program of a life writes.
std::int64_t number_in(const std::string& item, const std::string& name);

// The names of the attributes that say who holds the lock, and until when.
struct Names {
  const char* proof;
  const char* end;
};
Names names_of(tests::Layout layout);

std::string proof_in(const std::string& item, tests::Layout layout);
bool is_free(const std::string& item, tests::Layout layout);

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_ROW_TEXT_HPP
