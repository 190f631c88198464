// Apart, and compiled with optimisation: what expressions cost in each file
// that has one, and in a test that reads a page by them, is seconds.
#include <mutex>
#include <regex>
#include <string>
#include <vector>

namespace tests {
namespace {

// libstdc++ lets expressions write into a cache of the locale unguarded.
std::mutex mutex;

}  // namespace

std::vector<std::string> all_matches(const std::string& text,
                                     const std::string& expression,
                                     std::size_t group) {
  const std::lock_guard<std::mutex> guard(mutex);
  const std::regex regex(expression, std::regex::multiline);
  std::vector<std::string> found;
  for (std::sregex_iterator it(text.begin(), text.end(), regex), end; it != end;
       ++it) {
    found.push_back((*it)[group]);
  }
  return found;
}

std::string replaced(const std::string& text, const std::string& expression,
                     const std::string& with) {
  const std::lock_guard<std::mutex> guard(mutex);
  const std::regex regex(expression, std::regex::multiline);
  return std::regex_replace(text, regex, with);
}

}  // namespace tests
