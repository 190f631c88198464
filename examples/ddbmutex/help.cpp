#include "examples/ddbmutex/help.hpp"

#include "examples/ddbmutex/report.hpp"

namespace command {
namespace {

constexpr std::size_t kHelpColumn = 29;

std::string padded(std::string text, std::size_t width) {
  if (text.size() < width) text.resize(width, ' ');
  return text;
}

std::string synopsis(const Subcommand& of) {
  return std::string(of.name) + (*of.operands == '\0' ? "" : " ") + of.operands;
}

std::string line_of(const Option& option) {
  std::string line = "      ";
  if (option.letter != 0) line = std::string("  -") + option.letter + ", ";
  line += std::string("--") + option.name;
  if (!option.is_flag()) line += std::string(" ") + option.value;
  return padded(line, kHelpColumn) + option.help + "\n";
}

// The rare ones are only named.
std::string help_of(const Subcommand& it) {
  std::string text = "Usage: ddbmutex " + synopsis(it) + "\n\n" + it.help;
  text[text.size() - std::string(it.help).size()] -= 'a' - 'A';
  text += ".\n" + std::string(it.more) + (*it.more == '\0' ? "\n" : "\n\n");
  std::string rare;
  for (const Option& option : options()) {
    if (!is_option_of(option, it.command)) continue;
    if (option.is_rare) {
      rare += std::string(rare.empty() ? "Also: --" : " --") + option.name;
    } else {
      text += line_of(option);
    }
  }
  text += padded("  -h, --help", kHelpColumn) + "show this\n";
  if (rare.empty()) return text;
  return text + "\n" + rare +
         "\nDDBMUTEX_TABLE etc. set options.  TIME: 90, 0.5, 30s, 5m, 1h, 2d "
         "or "
         "250ms.\n";
}

std::string help_of_program() {
  std::string text =
      "Usage: ddbmutex SUBCOMMAND [OPTION]...\n\n"
      "A lock for all hosts, held as one item in a DynamoDB table.\n\n";
  for (const Subcommand& one : subcommands()) {
    text += "  " + padded(synopsis(one), 34) + one.help + "\n";
  }
  text += "  " + padded("--version", 34) + "print the version\n";
  text +=
      "\nExit status of `run`: that of COMMAND, or 128 + n if signal n ended "
      "it.  Else:\n";
  for (const ExitMeaning& one : exits()) {
    if (one.code != kDone) {
      text += padded("  " + std::to_string(one.code), 6) + one.help + "\n";
    }
  }
  return text;
}

}  // namespace

std::string help(std::optional<Command> of) {
  return of ? help_of(about(*of)) : help_of_program();
}

std::string version() { return "ddbmutex " DDBMUTEX_VERSION_STRING "\n"; }

}  // namespace command
