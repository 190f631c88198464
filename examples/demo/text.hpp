// Short texts for people.
#ifndef DDBMUTEX_EXAMPLES_DEMO_TEXT_HPP
#define DDBMUTEX_EXAMPLES_DEMO_TEXT_HPP

#include <string>

#include "examples/demo/clock.hpp"

namespace demo {

// As printf() would.
[[gnu::format(printf, 1, 2)]] std::string text(const char* format, ...);

std::string in_words(Time time);  // "62 ms", "2.94 s"

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_TEXT_HPP
