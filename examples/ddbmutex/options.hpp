// The command line: the subcommands and their options, each in one table that
// the parser, the help, the completions and the check of the man page read.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_OPTIONS_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_OPTIONS_HPP

#include <chrono>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "extras/admin.hpp"

namespace command {

// What is wrong with the command line, in one line that names it.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

enum class Command {
  run,
  show,
  list,
  watch,
  unlock,
  create_table,
  completion,
  help,
  version,
};

// How items are written: ours, or as another library does.
enum class Layout { ddblock, lockclient, lease, dynamolock, awslabs };

// All settings, from the command line and the environment.
struct Settings {
  Command command = Command::help;
  // Which subcommand's help is wanted; nothing: the program's.
  std::optional<Command> help_of;
  std::string name;                    // Of the lock; empty if none is given.
  std::vector<std::string> arguments;  // COMMAND [ARG...]
  std::string shell_name;              // Of `completion`: "bash".

  // Where the lock is.
  std::string table = ddbmutex::TableOptions().name;
  Layout layout = Layout::ddblock;
  std::optional<std::string> key;  // Nothing: the layout's.
  std::string sort_key, sort_value;
  std::optional<std::string> prefix;
  std::optional<std::chrono::milliseconds> calendar_margin;
  std::string region, endpoint, profile;  // Empty: found as by the AWS CLI.

  // Of `run`.
  std::chrono::milliseconds ttl = ddbmutex::Options().ttl;
  std::optional<std::chrono::milliseconds> wait;   // Nothing: for ever; 0: try.
  std::optional<std::chrono::milliseconds> grace;  // Nothing: ttl / 4.
  std::chrono::milliseconds min_hold{0};  // At least, though COMMAND has ended.
  int conflict_exit = 75;                 // If the lock is not acquired.
  std::optional<bool> keep_row;           // Nothing: the layout's.
  std::string owner;                      // Empty: host and process.
  bool shell = false;
  bool quiet = false;  // Does not say that another has the lock.

  // Of the other subcommands.
  std::chrono::milliseconds timeout{5000};   // How long answers may take.
  std::chrono::milliseconds interval{2000};  // Of `watch`.
  bool yes = false;                          // Of `unlock`.
  // Of `create-table`.
  std::optional<bool> clean_up;  // Not set: only if it makes the table.
  std::vector<std::pair<std::string, std::string>> tags;
  bool json = false;
  bool verbose = false;
};

// --- The tables --------------------------------------------------------------

struct Subcommand {
  Command command;
  const char* name;
  const char* operands;  // "NAME -- COMMAND [ARG...]"
  const char* help;      // In one line.
  const char* more;      // Further lines of its own help; may be empty.
};
const std::vector<Subcommand>& subcommands();
const Subcommand& about(Command command);

struct Option {
  const char* name;      // "table", for --table
  char letter;           // 't', for -t; 0: none
  const char* value;     // "TABLE"; empty: a flag.
  const char* choices;   // What the value may be, if that is a list: "a b".
  const char* variable;  // Of the environment; empty: none.
  const char* help;      // In one line.
  bool is_rare;          // The help only names it.
  std::vector<Command> commands;  // Those that have it.
  // Throws UsageError that says what is wrong with the value.
  std::function<void(Settings& settings, std::string_view value)> set;

  bool is_flag() const { return *value == '\0'; }
};
const std::vector<Option>& options();
bool is_option_of(const Option& option, Command command);

// --- Reading -----------------------------------------------------------------

// Like std::getenv().
using Environment = std::function<const char*(const char*)>;

// Reads what follows the program's name.  Throws UsageError.
Settings parse(const std::vector<std::string>& words,
               const Environment& environment);

// "90", "0.5", "30s", "5m", "1.5h", "2d" or "250ms".  A part of a millisecond
// counts as a whole one.  Throws UsageError.
std::chrono::milliseconds parse_time(std::string_view text);

// --- What it means for the library -------------------------------------------

ddbmutex::TableOptions table_of(const Settings& settings);
ddbmutex::Creation creation_of(const Settings& settings);
// Options of the lock that `run` holds, with a new Table.
ddbmutex::Options options_of(const Settings& settings);

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_OPTIONS_HPP
