#include "examples/demo/text.hpp"

#include <cstdarg>
#include <cstdio>

namespace demo {

std::string text(const char* format, ...) {
  char buffer[512];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(buffer, sizeof buffer, format, arguments);
  va_end(arguments);
  return buffer;
}

std::string in_words(Time time) {
  const double seconds = std::chrono::duration<double>(time).count();
  if (seconds < 0.9995) return text("%.0f ms", seconds * 1e3);
  return text("%.2f s", seconds);
}

}  // namespace demo
