// What the program says of itself, made from the tables of options.hpp.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_HELP_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_HELP_HPP

#include <optional>
#include <string>

#include "examples/ddbmutex/options.hpp"

namespace command {

// One screen, of a subcommand or of the program.
std::string help(std::optional<Command> of);
std::string version();  // "ddbmutex 0.1.0"

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_HELP_HPP
