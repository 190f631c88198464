// How the program ends, and what it says of an error: one line that says what
// to do.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_REPORT_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_REPORT_HPP

#include <exception>
#include <string>
#include <system_error>
#include <vector>

#include "examples/ddbmutex/options.hpp"

namespace command {

// As <sysexits.h> has them where it has them.
enum Exit {
  kDone = 0,
  kRefused = 1,
  kUsage = 64,
  kUnavailable = 69,
  kFailed = 70,
  kBusy = 75,
  kLost = 76,
  kNotAllowed = 77,
  kUnfit = 78,
  kCannotRun = 126,
  kNotFound = 127,
};
struct ExitMeaning {
  Exit code;
  const char* help;  // In one line.
};
const std::vector<ExitMeaning>& exits();

// Writes "ddbmutex: TEXT" to standard error, in one line whatever is in it.
void complain(const std::string& text);

// What went wrong and what to do about it, and what to end with.
struct Verdict {
  Exit exit;
  std::string text;
};
Verdict verdict_on(const std::exception& error, const Settings& settings);

// Whether it may work the next time.
bool is_transient(const std::error_code& code);

// As a shell reads it back: `job`, `'it''s'`.
std::string shell_quoted(const std::string& word);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_REPORT_HPP
