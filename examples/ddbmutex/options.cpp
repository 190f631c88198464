#include "examples/ddbmutex/options.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include "examples/ddbmutex/deadline.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/told.hpp"

namespace command {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;

// --- Values ------------------------------------------------------------------

struct NamedLayout {
  std::string_view name;
  ddbmutex::Layout layout;
  std::string_view key;  // What its own library calls the partition key.
};
constexpr NamedLayout kLayouts[] = {
    {"ddblock", ddbmutex::Layout::ddblock, "name"},
    {"lockclient", ddbmutex::Layout::lockclient, "key"},
    {"lease", ddbmutex::Layout::lease, "name"},
    {"dynamolock", ddbmutex::Layout::dynamolock, "key"},
    {"awslabs", ddbmutex::Layout::awslabs, "key"},
};

// One of the option's `choices`, which the parser has checked.
ddbmutex::Layout layout_of(std::string_view name) {
  for (const NamedLayout& one : kLayouts) {
    if (one.name == name) return one.layout;
  }
  throw UsageError("there is no such layout");
}

bool parse_flag(std::string_view text) {
  if (text == "yes" || text == "true" || text == "1") return true;
  if (text == "no" || text == "false" || text == "0") return false;
  throw UsageError("is `yes` or `no`, not `" + std::string(text) + "`");
}

std::string parse_text(std::string_view text) {
  if (text.empty()) throw UsageError("is empty");
  return std::string(text);
}

milliseconds parse_interval(std::string_view text) {
  const milliseconds interval = parse_time(text);
  const char* wrong = interval < std::chrono::milliseconds(100)
                          ? "is less than 100ms"
                      : interval > std::chrono::hours(24) ? "is more than a day"
                                                          : nullptr;
  if (wrong == nullptr) return interval;
  throw UsageError(std::string(wrong) + ": `" + std::string(text) + "`");
}

}  // namespace

milliseconds parse_time(std::string_view text) {
  constexpr std::pair<std::string_view, milliseconds> kUnits[] = {
      {"ms", std::chrono::milliseconds(1)}, {"s", std::chrono::seconds(1)},
      {"", std::chrono::seconds(1)},        {"m", std::chrono::minutes(1)},
      {"h", std::chrono::hours(1)},         {"d", std::chrono::hours(24)},
  };
  constexpr std::size_t kMostDigits = 9;
  const auto digits =
      std::min(text.find_first_not_of("0123456789"), text.size());
  for (const auto& [name, unit] : kUnits) {
    if (text.substr(digits) != name) continue;
    if (digits == 0) break;
    if (digits > kMostDigits) {
      throw UsageError("`" + std::string(text) + "` is too long a time");
    }
    return unit * std::stol(std::string(text.substr(0, digits)));
  }
  throw UsageError("`" + std::string(text) +
                   "` is no time such as 90, 30s, 5m, 1h or 250ms");
}

// --- The tables --------------------------------------------------------------

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> all = {
      {Command::run, "run", "NAME [--] COMMAND [ARG...]",
       "hold the lock NAME while COMMAND runs",
       "Options stand before COMMAND.  COMMAND finds the lock's name in\n"
       "DDBMUTEX_NAME and, if its row is kept, the fencing token in\n"
       "DDBMUTEX_TOKEN."},
      {Command::show, "show", "NAME", "show who holds the lock NAME", ""},
      {Command::list, "list", "", "list the locks of the table",
       "RENEWED is when the lease was last renewed, or taken: not since when\n"
       "the lock is held.  STATE names the option that `run` needs, if any."},
      {Command::watch, "watch", "[NAME]",
       "show the locks, or the one, as they change",
       "In a terminal a table; else a line for each change, with its time."},
      {Command::unlock, "unlock", "NAME", "free the lock NAME by force",
       "Shows who holds it and asks.  If the holder lives, two may believe to\n"
       "hold the lock until its next renewal.  Nothing is changed if another\n"
       "has taken it meanwhile.  A lock that nobody holds is no error."},
      {Command::create_table, "create-table", "", "create the table",
       "One that exists is checked, and left as it is."},
      {Command::completion, "completion", "bash|zsh|fish",
       "print the completion for that shell",
       "In ~/.bashrc: eval \"$(ddbmutex completion bash)\"; in ~/.zshrc, "
       "after\n"
       "compinit: source <(ddbmutex completion zsh); in config.fish:\n"
       "ddbmutex completion fish | source."},
      {Command::help, "help", "[SUBCOMMAND]",
       "list the options of one, as --help does", ""},
  };
  return all;
}

const Subcommand& about(Command command) {
  for (const Subcommand& one : subcommands()) {
    if (one.command == command) return one;
  }
  throw std::logic_error("no such subcommand");
}

namespace {

using S = Settings;
using V = std::string_view;

std::vector<Option> options_of_run() {
  const std::vector<Command> run = {Command::run};
  return {
      {"wait", 'w', "TIME", "", "DDBMUTEX_WAIT",
       "give up after that time; without: wait for ever", false, run,
       [](S& s, V v) { s.wait = parse_time(v); }},
      {"try", 'n', "", "", "", "give up at once: the same as --wait 0", false,
       run,
       [](S& s, V v) {
         if (parse_flag(v)) s.wait = milliseconds(0);
       }},
      {"quiet", 'q', "", "", "", "do not complain that another has the lock",
       false, run, [](S& s, V v) { s.quiet = parse_flag(v); }},
      {"ttl", 0, "TIME", "", "DDBMUTEX_TTL",
       "how long the lease lasts (60s); it is renewed", false, run,
       [](S& s, V v) { s.ttl = parse_time(v); }},
      {"grace", 0, "TIME", "", "DDBMUTEX_GRACE",
       "from TERM to KILL at a loss (ttl/4, at most ttl/3)", false, run,
       [](S& s, V v) { s.grace = parse_time(v); }},
      {"keep-row", 0, "", "", "DDBMUTEX_KEEP_ROW",
       "keep the item, for fencing tokens", false, run,
       [](S& s, V v) { s.keep_row = parse_flag(v); }},
      {"owner", 0, "TEXT", "", "DDBMUTEX_OWNER",
       "who holds it, for people (host and process)", false, run,
       [](S& s, V v) { s.owner = parse_text(v); }},
      {"shell", 'c', "", "", "", "have COMMAND run by /bin/sh -c", false, run,
       [](S& s, V v) { s.shell = parse_flag(v); }},
  };
}

std::vector<Option> options_of_looking() {
  const std::vector<Command> watch = {Command::watch};
  const std::vector<Command> unlock = {Command::unlock};
  const std::vector<Command> looking = {Command::show, Command::list,
                                        Command::watch, Command::unlock,
                                        Command::create_table};
  return {
      {"interval", 'i', "TIME", "", "DDBMUTEX_INTERVAL",
       "how often to look (2s)", false, watch,
       [](S& s, V v) { s.interval = parse_interval(v); }},
      {"timeout", 0, "TIME", "", "DDBMUTEX_TIMEOUT",
       "give up if nobody answers for so long (5s)", false, looking,
       [](S& s, V v) { s.timeout = parse_interval(v); }},
      {"yes", 'y', "", "", "", "do not ask", false, unlock,
       [](S& s, V v) { s.yes = parse_flag(v); }},
      {"json", 'j', "", "", "", "print JSON", false, looking,
       [](S& s, V v) { s.json = parse_flag(v); }},
  };
}

std::vector<Option> options_of_places() {
  const std::vector<Command> locks = {Command::run, Command::show,
                                      Command::list, Command::watch,
                                      Command::unlock};
  const std::vector<Command> places = {Command::run,    Command::show,
                                       Command::list,   Command::watch,
                                       Command::unlock, Command::create_table};
  return {
      {"table", 't', "TABLE", "", "DDBMUTEX_TABLE", "the table (locks)", false,
       places, [](S& s, V v) { s.table = parse_text(v); }},
      {"layout", 'l', "LAYOUT", "ddblock lockclient lease dynamolock awslabs",
       "DDBMUTEX_LAYOUT", "whose library shares the table (ddblock)", false,
       places, [](S& s, V v) { s.layout = layout_of(v); }},
      {"key", 0, "ATTRIBUTE", "", "DDBMUTEX_KEY",
       "its partition key (name, or as the layout has it)", true, places,
       [](S& s, V v) { s.key = parse_text(v); }},
      {"sort-key", 0, "ATTRIBUTE", "", "DDBMUTEX_SORT_KEY",
       "its sort key, if it has one", true, places,
       [](S& s, V v) { s.sort_key = parse_text(v); }},
      {"sort-value", 0, "TEXT", "", "DDBMUTEX_SORT_VALUE",
       "the sort key's value for the lock", true, locks,
       [](S& s, V v) { s.sort_value = parse_text(v); }},
      {"prefix", 0, "TEXT", "", "DDBMUTEX_PREFIX",
       "of each name in the table (ddblock-)", true, locks,
       [](S& s, V v) { s.prefix = std::string(v); }},
      {"calendar-margin", 0, "TIME", "", "DDBMUTEX_CALENDAR_MARGIN",
       "by which others' calendars may be off (as the layout has it)", true,
       locks, [](S& s, V v) { s.calendar_margin = parse_time(v); }},
      {"region", 0, "REGION", "", "",
       "its region (AWS_REGION, or as for the AWS CLI)", false, places,
       [](S& s, V v) { s.region = parse_text(v); }},
      {"endpoint", 0, "URL", "", "", "of another DynamoDB than the region's",
       false, places, [](S& s, V v) { s.endpoint = parse_text(v); }},
      {"profile", 0, "NAME", "", "", "of the AWS CLI's configuration", true,
       places, [](S& s, V v) { s.profile = parse_text(v); }},
      {"verbose", 'v', "", "", "", "tell what goes on, on standard error",
       false, places, [](S& s, V v) { s.verbose = parse_flag(v); }},
  };
}

}  // namespace

const std::vector<Option>& options() {
  static const std::vector<Option> all = [] {
    std::vector<Option> joined = options_of_run();
    for (const auto& more : {options_of_looking(), options_of_places()}) {
      joined.insert(joined.end(), more.begin(), more.end());
    }
    return joined;
  }();
  return all;
}

bool is_option_of(const Option& option, Command command) {
  const auto& all = option.commands;
  return std::find(all.begin(), all.end(), command) != all.end();
}

// --- Reading -----------------------------------------------------------------

namespace {

bool is_choice(std::string_view choices, std::string_view value) {
  return !value.empty() && value.find(' ') == value.npos &&
         (" " + std::string(choices) + " ")
                 .find(" " + std::string(value) + " ") != std::string::npos;
}

// `said`: as the user knows it, "--table" or "DDBMUTEX_TABLE".
void set(const Option& option, Settings& settings, const std::string& said,
         std::string_view value) {
  try {
    if (*option.choices != '\0' && !is_choice(option.choices, value)) {
      throw UsageError("is one of " + std::string(option.choices) + ", not `" +
                       std::string(value) + "`");
    }
    option.set(settings, value);
  } catch (const UsageError& error) {
    throw UsageError(said + ": " + error.what());
  }
}

std::optional<Command> find_command(std::string_view name) {
  for (const Subcommand& one : subcommands()) {
    if (one.name == name) return one.command;
  }
  return {};
}

Command command_of(const std::string& name) {
  if (const auto command = find_command(name)) return *command;
  throw UsageError("there is no subcommand `" + name +
                   "`; `ddbmutex --help` lists them");
}

// What is left of a command line.
class Parser {
 public:
  Parser(Words words, Settings& settings)
      : words_(std::move(words)), settings_(settings) {}

  // Options and operands in any order; for `run` up to COMMAND.
  void read();

 private:
  bool has_more() const { return next_ < words_.size(); }
  bool is_all_read() const {
    return settings_.command == Command::run && operands_.size() == 1;
  }
  void read_long(const std::string& word);
  void read_letters(const std::string& word);
  template <class Is>
  const Option& find(const std::string& said, const Is& is) const;
  void give(const Option& option, const std::string& said,
            const std::string* value);
  void read_rest();
  void take_operands();
  void check() const;
  [[noreturn]] void refuse(const std::string& why) const;

  const Words words_;
  Settings& settings_;
  std::size_t next_ = 0;
  Words operands_;
  Words given_;  // Names of options.
};

void Parser::read() {
  bool ended = false;
  while (has_more()) {
    const std::string& word = words_[next_];
    const bool is_option = !ended && word.size() > 1 && word[0] == '-';
    if (!is_option && is_all_read()) break;
    ++next_;
    if (!is_option) {
      operands_.push_back(word);
    } else if (word == "--") {
      ended = true;
      if (is_all_read()) break;
    } else if (word == "-h" || word == "--help") {
      settings_.help_of = settings_.command;
      settings_.command = Command::help;
      return;
    } else if (word[1] == '-') {
      read_long(word);
    } else {
      read_letters(word);
    }
  }
  read_rest();
  take_operands();
  check();
}

void Parser::read_long(const std::string& word) {
  const auto equals = word.find('=');
  const std::string said = word.substr(0, equals);
  const Option& option =
      find(said, [&](const Option& one) { return said.substr(2) == one.name; });
  if (equals == word.npos) return give(option, said, nullptr);
  const std::string value = word.substr(equals + 1);
  give(option, said, &value);
}

// "-n", "-nv", "-w 5s" or "-w5s"
void Parser::read_letters(const std::string& word) {
  for (std::size_t i = 1; i < word.size(); ++i) {
    const std::string said = {'-', word[i]};
    const Option& option =
        find(said, [&](const Option& one) { return word[i] == one.letter; });
    const std::string rest = word.substr(i + 1);
    if (!option.is_flag() && !rest.empty()) return give(option, said, &rest);
    give(option, said, nullptr);
  }
}

template <class Is>
const Option& Parser::find(const std::string& said, const Is& is) const {
  const std::string whose = about(settings_.command).name;
  const auto found = std::find_if(options().begin(), options().end(), is);
  if (found == options().end()) {
    throw UsageError(said + ": there is no such option; `ddbmutex " + whose +
                     " --help` lists them");
  }
  if (!is_option_of(*found, settings_.command)) {
    throw UsageError(said + ": not an option of `" + whose + "`");
  }
  return *found;
}

// Without a value: a flag's is `yes`, another's the next word.
void Parser::give(const Option& option, const std::string& said,
                  const std::string* value) {
  given_.push_back(option.name);
  if (value != nullptr) return set(option, settings_, said, *value);
  if (option.is_flag()) return set(option, settings_, said, "yes");
  if (!has_more())
    throw UsageError(said + ": its " + option.value + " is missing");
  set(option, settings_, said, words_[next_++]);
}

// COMMAND and its arguments; "--" may stand before them once more.
void Parser::read_rest() {
  if (has_more() && words_[next_] == "--") ++next_;
  settings_.arguments.assign(
      words_.begin() + static_cast<std::ptrdiff_t>(next_), words_.end());
}

void Parser::refuse(const std::string& why) const {
  const Subcommand& it = about(settings_.command);
  throw UsageError(why + "; say `ddbmutex " + it.name +
                   (*it.operands == '\0' ? "" : " ") + it.operands + "`");
}

void Parser::take_operands() {
  const Command command = settings_.command;
  const bool takes_none =
      command == Command::list || command == Command::create_table;
  const bool may_have_none =
      takes_none || command == Command::watch || command == Command::help;
  if (operands_.empty() && !may_have_none) {
    refuse(command == Command::completion ? "no shell is named"
                                          : "NAME is missing");
  }
  const std::size_t most = takes_none ? 0 : 1;
  if (operands_.size() > most) refuse("`" + operands_[most] + "` is too much");
  const std::string first = operands_.empty() ? "" : operands_[0];
  if (!operands_.empty() && first.empty()) refuse("NAME is empty");
  if (command == Command::help) {
    if (!first.empty()) settings_.help_of = command_of(first);
  } else if (command == Command::completion) {
    settings_.shell_name = first;
  } else {
    settings_.name = first;
  }
  if (command == Command::run && settings_.arguments.empty()) {
    refuse("COMMAND is missing");
  }
}

// What fits each by itself, but not together.
void Parser::check() const {
  const auto was_given = [this](const char* name) {
    return std::find(given_.begin(), given_.end(), name) != given_.end();
  };
  if (was_given("try") && was_given("wait")) {
    throw UsageError("--try and --wait exclude each other");
  }
  // The lease is renewed at half of it, or a moment before: time is left to do
  // so.
  if (settings_.grace && *settings_.grace > settings_.ttl / 3) {
    throw UsageError(
        std::string(was_given("grace") ? "--grace" : "DDBMUTEX_GRACE") +
        ": is more than a third of --ttl: " + in_words(*settings_.grace) +
        " of " + in_words(settings_.ttl));
  }
}

}  // namespace

Settings parse(const Words& words,
               const std::function<const char*(const char*)>& environment) {
  Settings settings;
  if (words.empty()) {
    throw UsageError("no subcommand is given; `ddbmutex --help` lists them");
  }
  const std::string& first = words[0];
  if (first == "--help" || first == "-h") return settings;
  if (first == "--version" || first == "-V") {
    settings.command = Command::version;
    return settings;
  }
  if (first[0] == '-') {
    throw UsageError(first + ": options stand behind the subcommand");
  }
  settings.command = command_of(first);
  for (const Option& option : options()) {
    if (!is_option_of(option, settings.command)) continue;
    if (*option.variable == '\0') continue;
    const char* value = environment(option.variable);
    if (value == nullptr || *value == '\0') continue;
    set(option, settings, option.variable, value);
  }
  Parser({words.begin() + 1, words.end()}, settings).read();
  return settings;
}

// --- What it means for the library -------------------------------------------

ddbmutex::TableOptions table_of(const Settings& settings) {
  ddbmutex::TableOptions table;
  table.name = settings.table;
  table.layout = settings.layout;
  for (const NamedLayout& one : kLayouts) {
    if (one.layout == settings.layout) table.key = one.key;
  }
  if (settings.key) table.key = *settings.key;
  table.sort_key = settings.sort_key;
  table.sort_value = settings.sort_value;
  if (settings.prefix) table.prefix = *settings.prefix;
  table.calendar_margin = settings.calendar_margin;
  table.region = settings.region;
  table.endpoint = settings.endpoint;
  table.profile = settings.profile;
  table.patience = settings.timeout;
  if (settings.verbose) {
    table.logger = [](ddbmutex::LogLevel level, const std::string& text) {
      complain(std::string(name_of(level)) + ": " + text);
    };
  }
  return table;
}

ddbmutex::Options options_of(const Settings& settings) {
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(table_of(settings));
  options.ttl = settings.ttl;
  options.keep_row = settings.keep_row;
  options.owner = settings.owner;
  const Time ttl = settings.ttl;
  options.renew_after = std::chrono::duration_cast<std::chrono::milliseconds>(
      renewed_after(ttl, settings.grace.value_or(settings.ttl / 4)));
  return options;
}

}  // namespace command
