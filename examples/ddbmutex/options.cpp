#include "examples/ddbmutex/options.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "examples/ddbmutex/deadline.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/told.hpp"
#include "extras/layouts.hpp"

namespace command {
namespace {

using std::chrono::milliseconds;
using Words = std::vector<std::string>;

// --- Values ------------------------------------------------------------------

namespace layouts = ddbmutex::layouts;

struct NamedLayout {
  std::string_view name;
  Layout layout;
  std::string_view key;  // What its own library calls the partition key.
  const ddbmutex::lock::RowFormat* rows;
};
const NamedLayout kLayouts[] = {
    {"ddblock", Layout::ddblock, "name", nullptr},
    {"lockclient", Layout::lockclient, "key", &layouts::lockclient},
    {"lease", Layout::lease, "name", &layouts::lease},
    {"dynamolock", Layout::dynamolock, "key", &layouts::dynamolock},
    {"awslabs", Layout::awslabs, "key", &layouts::awslabs},
};

// One of the option's `choices`, which the parser has checked.
Layout layout_of(std::string_view name) {
  for (const NamedLayout& one : kLayouts) {
    if (one.name == name) return one.layout;
  }
  throw UsageError("there is no such layout");
}

bool parse_flag(std::string_view text) {
  if (text == "yes" || text == "true" || text == "1") return true;
  if (text == "no" || text == "false" || text == "0") return false;
  throw UsageError("must be `yes` or `no`, not `" + std::string(text) + "`");
}

std::string parse_text(std::string_view text) {
  if (text.empty()) throw UsageError("is empty");
  return std::string(text);
}

std::pair<std::string, std::string> parse_tag(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == text.npos || equals == 0) {
    throw UsageError("must be KEY=VALUE, not `" + std::string(text) + "`");
  }
  return {std::string(text.substr(0, equals)),
          std::string(text.substr(equals + 1))};
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

int parse_exit_status(std::string_view text) {
  const bool is_number = !text.empty() && text.size() <= 3 &&
                         text.find_first_not_of("0123456789") == text.npos;
  const int status = is_number ? std::stoi(std::string(text)) : -1;
  if (status >= 0 && status <= 255) return status;
  throw UsageError("must be a number from 0 to 255, not `" + std::string(text) +
                   "`");
}

milliseconds parse_min_hold(std::string_view text) {
  const milliseconds time = parse_time(text);
  if (time <= std::chrono::hours(24 * 366)) return time;
  throw UsageError("is more than 366 days: `" + std::string(text) + "`");
}

constexpr std::size_t kMostDigits =
    9;  // Of a time, before and after its point.

// Of up to kMostDigits digits.
std::int64_t number_in(std::string_view digits) {
  return digits.empty() ? 0 : std::stoll(std::string(digits));
}

// The part of the unit that these decimals are, rounded up.
milliseconds part_of(milliseconds unit, std::string_view decimals) {
  std::int64_t scale = 1;
  for (std::size_t i = 0; i < decimals.size(); ++i) scale *= 10;
  const std::int64_t parts = unit.count() * number_in(decimals);
  return milliseconds((parts + scale - 1) / scale);
}

}  // namespace

milliseconds parse_time(std::string_view text) {
  constexpr std::pair<std::string_view, milliseconds> kUnits[] = {
      {"ms", std::chrono::milliseconds(1)}, {"s", std::chrono::seconds(1)},
      {"", std::chrono::seconds(1)},        {"m", std::chrono::minutes(1)},
      {"h", std::chrono::hours(1)},         {"d", std::chrono::hours(24)},
  };
  const auto digits_from = [text](std::size_t begin) {
    const auto end = text.find_first_not_of("0123456789", begin);
    return text.substr(begin, std::min(end, text.size()) - begin);
  };
  const std::string_view whole = digits_from(0);
  std::size_t read = whole.size();
  std::string_view fraction;
  if (read < text.size() && text[read] == '.') {
    fraction = digits_from(read + 1);
    // "5." is not a number.
    if (!fraction.empty()) read += 1 + fraction.size();
  }
  for (const auto& [name, unit] : kUnits) {
    if (text.substr(read) != name || read == 0) continue;
    if (whole.size() > kMostDigits || fraction.size() > kMostDigits) {
      throw UsageError("`" + std::string(text) + "` has too many digits");
    }
    return unit * number_in(whole) + part_of(unit, fraction);
  }
  throw UsageError("`" + std::string(text) +
                   "` is not a time such as 90, 0.5, 30s, 5m, 1h or 250ms");
}

// --- The tables --------------------------------------------------------------

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> all = {
      {Command::run, "run", "NAME [--] COMMAND [ARG...]",
       "hold the lock NAME while COMMAND runs",
       "Options stand before COMMAND, which finds the lock's name in "
       "DDBMUTEX_NAME\n"
       "and, if the item is kept, the fencing token in DDBMUTEX_TOKEN."},
      {Command::show, "show", "NAME", "show who holds the lock NAME", ""},
      {Command::list, "list", "", "list the locks of the table",
       "RENEWED is how long ago the lease was last renewed or taken; nothing "
       "says how\n"
       "long the lock has been held.  STATE names the option that `run` needs, "
       "if any."},
      {Command::watch, "watch", "[NAME]",
       "show each change of all locks, or of one",
       "On a terminal it shows a table, elsewhere a line with the time of each "
       "change."},
      {Command::unlock, "unlock", "NAME", "free the lock NAME by force",
       "Shows who holds it and asks first.  A holder that is alive learns of "
       "it with\n"
       "its next renewal; until then two may believe that they hold the lock.  "
       "Nothing\n"
       "is changed if another has taken it meanwhile.  It is no error if "
       "nobody "
       "has it."},
      {Command::create_table, "create-table", "", "create the table",
       "If it exists, it is checked, and is only changed by --clean-up: from "
       "then on\n"
       "DynamoDB deletes all items whose attribute `ttl` is a number and a "
       "time in the\n"
       "past, whoever wrote them."},
      {Command::completion, "completion", "bash|zsh|fish",
       "print the completions for that shell",
       "In ~/.bashrc: eval \"$(ddbmutex completion bash)\"; in ~/.zshrc, "
       "after\n"
       "compinit: source <(ddbmutex completion zsh); in config.fish:\n"
       "ddbmutex completion fish | source.  Names of locks are read from the "
       "table."},
      {Command::help, "help", "[SUBCOMMAND]",
       "list the options of a subcommand", ""},
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
       "give up after TIME; by default wait for ever", false, run,
       [](S& s, V v) { s.wait = parse_time(v); }},
      {"try", 'n', "", "", "", "give up at once; the same as --wait 0", false,
       run,
       [](S& s, V v) {
         if (parse_flag(v)) s.wait = milliseconds(0);
       }},
      {"conflict-exit-code", 'E', "N", "", "",
       "exit status if the lock is not acquired (75)", false, run,
       [](S& s, V v) { s.conflict_exit = parse_exit_status(v); }},
      {"quiet", 'q', "", "", "", "do not say that another has the lock", false,
       run, [](S& s, V v) { s.quiet = parse_flag(v); }},
      {"min-hold", 0, "TIME", "", "DDBMUTEX_MIN_HOLD",
       "hold the lock for TIME even if COMMAND ends sooner", false, run,
       [](S& s, V v) { s.min_hold = parse_min_hold(v); }},
      {"ttl", 0, "TIME", "", "DDBMUTEX_TTL",
       "length of the lease (60s); it is renewed in time", false, run,
       [](S& s, V v) { s.ttl = parse_time(v); }},
      {"grace", 0, "TIME", "", "DDBMUTEX_GRACE",
       "from TERM to KILL if the lock is lost (ttl/4)", false, run,
       [](S& s, V v) { s.grace = parse_time(v); }},
      {"keep-row", 0, "", "", "DDBMUTEX_KEEP_ROW",
       "keep the item, which fencing tokens need", false, run,
       [](S& s, V v) { s.keep_row = parse_flag(v); }},
      {"owner", 0, "TEXT", "", "DDBMUTEX_OWNER",
       "name of the holder, for people (host and process)", false, run,
       [](S& s, V v) { s.owner = parse_text(v); }},
      {"shell", 'c', "", "", "", "run COMMAND with /bin/sh -c", false, run,
       [](S& s, V v) { s.shell = parse_flag(v); }},
  };
}

std::vector<Option> options_of_looking() {
  const std::vector<Command> watch = {Command::watch};
  const std::vector<Command> unlock = {Command::unlock};
  const std::vector<Command> creation = {Command::create_table};
  const std::vector<Command> looking = {Command::show, Command::list,
                                        Command::watch, Command::unlock,
                                        Command::create_table};
  return {
      {"interval", 'i', "TIME", "", "DDBMUTEX_INTERVAL",
       "time from one look to the next (2s)", false, watch,
       [](S& s, V v) { s.interval = parse_interval(v); }},
      {"timeout", 0, "TIME", "", "DDBMUTEX_TIMEOUT",
       "give up if DynamoDB does not answer for TIME (5s)", false, looking,
       [](S& s, V v) { s.timeout = parse_interval(v); }},
      {"yes", 'y', "", "", "", "do not ask", false, unlock,
       [](S& s, V v) { s.yes = parse_flag(v); }},
      {"clean-up", 0, "", "", "",
       "let DynamoDB delete old items, even if the table exists", false,
       creation, [](S& s, V v) { s.clean_up = parse_flag(v); }},
      {"tag", 0, "KEY=VALUE", "", "",
       "a tag of a table that is made; may be given several times", false,
       creation, [](S& s, V v) { s.tags.push_back(parse_tag(v)); }},
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
       "DDBMUTEX_LAYOUT", "the library that shares the table (ddblock)", false,
       places, [](S& s, V v) { s.layout = layout_of(v); }},
      {"key", 0, "ATTRIBUTE", "", "DDBMUTEX_KEY",
       "the table's partition key (name, or the layout's)", true, places,
       [](S& s, V v) { s.key = parse_text(v); }},
      {"sort-key", 0, "ATTRIBUTE", "", "DDBMUTEX_SORT_KEY",
       "the table's sort key, if it has one", true, places,
       [](S& s, V v) { s.sort_key = parse_text(v); }},
      {"sort-value", 0, "TEXT", "", "DDBMUTEX_SORT_VALUE",
       "the lock's value of the sort key", true, locks,
       [](S& s, V v) { s.sort_value = parse_text(v); }},
      {"prefix", 0, "TEXT", "", "DDBMUTEX_PREFIX",
       "what each name in the table begins with (ddblock-)", true, locks,
       [](S& s, V v) { s.prefix = std::string(v); }},
      {"calendar-margin", 0, "TIME", "", "DDBMUTEX_CALENDAR_MARGIN",
       "how far others' calendars may be off (the layout's)", true, locks,
       [](S& s, V v) { s.calendar_margin = parse_time(v); }},
      {"region", 0, "REGION", "", "",
       "the region (by default as the AWS CLI finds it)", false, places,
       [](S& s, V v) { s.region = parse_text(v); }},
      {"endpoint", 0, "URL", "", "", "a DynamoDB other than that of the region",
       false, places, [](S& s, V v) { s.endpoint = parse_text(v); }},
      {"profile", 0, "NAME", "", "",
       "the profile in the AWS CLI's configuration", true, places,
       [](S& s, V v) { s.profile = parse_text(v); }},
      {"verbose", 'v', "", "", "", "report keys and retries on standard error",
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

// `said`: what the user wrote or set, "--table" or "DDBMUTEX_TABLE".
void set(const Option& option, Settings& settings, const std::string& said,
         std::string_view value) {
  try {
    if (*option.choices != '\0' && !is_choice(option.choices, value)) {
      throw UsageError("must be one of " + std::string(option.choices) +
                       ", not `" + std::string(value) + "`");
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

// Reads what follows the subcommand.
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

// If there is no value, a flag's is `yes`, and another option's the next word.
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
  if (operands_.size() > most)
    refuse("`" + operands_[most] + "` is unexpected");
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

// Options that contradict each other.
void Parser::check() const {
  const auto was_given = [this](const char* name) {
    return std::find(given_.begin(), given_.end(), name) != given_.end();
  };
  if (was_given("try") && was_given("wait")) {
    throw UsageError("--try and --wait exclude each other");
  }
  // With a grace of a third of its time, the lease is renewed after 5/12 of it
  // (renewed_after()).  An eighth is then left for the renewal before TERM.
  if (settings_.grace && *settings_.grace > settings_.ttl / 3) {
    throw UsageError(
        std::string(was_given("grace") ? "--grace" : "DDBMUTEX_GRACE") +
        ": is more than a third of --ttl: " + in_words(*settings_.grace) +
        " of " + in_words(settings_.ttl));
  }
}

}  // namespace

Settings parse(const Words& words, const Environment& environment) {
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
    throw UsageError(first + ": options follow the subcommand");
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

// Locking, and looking who holds the lock, fail for the same reason.  It is
// said only once in this time.
constexpr std::chrono::seconds kBetweenFailures{10};

ddbmutex::TableOptions table_of(const Settings& settings) {
  ddbmutex::TableOptions table;
  table.name = settings.table;
  for (const NamedLayout& one : kLayouts) {
    if (one.layout != settings.layout) continue;
    table.rows = one.rows;
    table.key = one.key;
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
  table.logger = [verbose = settings.verbose, said_at = std::optional<Time>()](
                     ddbmutex::LogLevel level,
                     const std::string& text) mutable {
    if (verbose) return complain(std::string(name_of(level)) + ": " + text);
    // All else that the library warns of is in the error that ends the command.
    const bool is_failing = text.compare(0, 12, "failing for ") == 0;
    if (!is_failing || (said_at && now() - *said_at < kBetweenFailures)) return;
    said_at = now();
    complain(text);
  };
  return table;
}

ddbmutex::Creation creation_of(const Settings& settings) {
  using CleanUp = ddbmutex::Creation::CleanUp;
  ddbmutex::Creation creation;
  creation.tags = settings.tags;
  if (settings.clean_up) {
    creation.clean_up = *settings.clean_up ? CleanUp::always : CleanUp::never;
  }
  return creation;
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
