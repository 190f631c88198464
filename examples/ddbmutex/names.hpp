// Completes the NAME of a lock, for the scripts of completion.hpp.  They call
//
//   ddbmutex completion names bash LINE BREAKS   # up to the cursor
//   ddbmutex completion names zsh|fish ddbmutex WORD...  # before that
//
// and get what to offer, a line each: the names that could be read from the
// table within two seconds, or nothing if no NAME is due there.  The shells
// neither expand nor evaluate what they read.  Names with control characters
// are left out.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_NAMES_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_NAMES_HPP

#include <optional>
#include <string>
#include <vector>

#include "examples/ddbmutex/options.hpp"

namespace command {

// A line of bash up to the cursor.
struct TypedLine {
  std::vector<std::string> words;  // As the program would get them, but without
                                   // expansions; the last is to be completed.
  std::size_t kept = 0;  // So much of the last word readline leaves alone.
  char quote = '\0';     // The quote that is open, ' or "; or none.
};
// `breaks`: COMP_WORDBREAKS.
TypedLine split_line(const std::string& line, const std::string& breaks);

// What readline has to insert so that the last word becomes `name`; nothing if
// that is not possible.
std::optional<std::string> offer(const TypedLine& line,
                                 const std::string& name);

// Prints what to offer.
void complete_names(const std::vector<std::string>& arguments,
                    const Environment& environment);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_NAMES_HPP
