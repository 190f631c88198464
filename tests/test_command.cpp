// The command ddbmutex: what it reads and says, alone; and the program, on
// engines, in pipes and in terminals.  test_command_run.cpp has `ddbmutex run`.
#include <rapidjson/document.h>
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "examples/ddbmutex/completion.hpp"
#include "examples/ddbmutex/help.hpp"
#include "examples/ddbmutex/names.hpp"
#include "examples/ddbmutex/options.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/told.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/process.hpp"
#include "tests/support/pty.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/shell.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace {

using namespace tests;
using namespace std::chrono_literals;
using command::Command;
using command::Settings;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using std::chrono::milliseconds;
namespace data = boost::unit_test::data;
using Words = std::vector<std::string>;
using Variables = std::map<std::string, std::string>;

// --- The command line, alone -------------------------------------------------

Words split(const std::string& line) { return all_matches(line, "([^ ]+)"); }

std::string joined(const Words& words) {
  std::string all;
  for (const std::string& word : words) {
    all += (all.empty() ? "" : "|") + word;
  }
  return all;
}

// What is not as it is without options; "! " and why it is refused.
std::string told_of(const Settings& settings) {
  std::string all = settings.command == Command::version
                        ? "version"
                        : command::about(settings.command).name;
  const Settings usual;
  const auto add = [&all](const char* name, const std::string& value,
                          const std::string& default_value = {}) {
    if (value != default_value) all += std::string(" ") + name + "=" + value;
  };
  const auto ms = [](std::optional<milliseconds> time) {
    return time ? std::to_string(time->count()) : std::string();
  };
  const auto flag = [](bool is) { return is ? "yes" : ""; };
  if (settings.help_of) add("of", command::about(*settings.help_of).name);
  add("name", settings.name);
  add("arguments", joined(settings.arguments));
  add("shell_name", settings.shell_name);
  add("table", settings.table, usual.table);
  add("layout", std::to_string(static_cast<int>(settings.layout)), "0");
  if (settings.key) add("key", *settings.key);
  add("sort_key", settings.sort_key);
  add("sort_value", settings.sort_value);
  if (settings.prefix) add("prefix", "\"" + *settings.prefix + "\"");
  add("margin", ms(settings.calendar_margin));
  add("region", settings.region);
  add("endpoint", settings.endpoint);
  add("profile", settings.profile);
  add("ttl", ms(settings.ttl), ms(usual.ttl));
  add("wait", ms(settings.wait));
  add("grace", ms(settings.grace));
  add("min_hold", ms(settings.min_hold), "0");
  add("conflict", std::to_string(settings.conflict_exit), "75");
  if (settings.keep_row) add("keep_row", *settings.keep_row ? "yes" : "no");
  add("owner", settings.owner);
  add("shell", flag(settings.shell));
  add("quiet", flag(settings.quiet));
  add("timeout", ms(settings.timeout), ms(usual.timeout));
  add("interval", ms(settings.interval), ms(usual.interval));
  add("yes", flag(settings.yes));
  add("json", flag(settings.json));
  add("verbose", flag(settings.verbose));
  return all;
}

std::string read(const Words& words, const Variables& variables = {}) {
  const auto environment = [&variables](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
  try {
    return told_of(command::parse(words, environment));
  } catch (const command::UsageError& error) {
    return std::string("! ") + error.what();
  }
}

std::string read(const std::string& line) { return read(split(line)); }

const std::string& man_page() {
  static const std::string page =
      replaced(read_file("examples/ddbmutex/ddbmutex.1"), "\\\\-", "-");
  return page;
}

// Of a section of the man page.
std::string section(const std::string& name) {
  return between(man_page(), "\n.SH " + name + "\n", "\n.SH ");
}

std::string time_read(const std::string& text) {
  try {
    return std::to_string(command::parse_time(text).count());
  } catch (const command::UsageError&) {
    return "!";
  }
}

ddbmutex::Error error_of(Errc code) {
  return {code, "cannot lock \"x\": " + make_error_code(code).message()};
}

// --- What is told of a lock --------------------------------------------------

LockInfo held(const std::string& name, milliseconds lease, milliseconds age) {
  LockInfo info;
  info.name = name;
  info.exists = true;
  info.uuid = "0123";
  info.owner = "host:1";
  info.lease = lease;
  info.age = age;
  return info;
}

rapidjson::Document parsed(const std::string& text) {
  rapidjson::Document document;
  document.Parse<rapidjson::kParseValidateEncodingFlag>(text.data(),
                                                        text.size());
  BOOST_TEST_REQUIRE(!document.HasParseError(), text);
  return document;
}

std::string text_in(const rapidjson::Value& object, const char* member) {
  BOOST_TEST_REQUIRE(object.HasMember(member), member);
  BOOST_TEST_REQUIRE(object[member].IsString(), member);
  return {object[member].GetString(), object[member].GetStringLength()};
}

// --- The program -------------------------------------------------------------

std::string program_here() {
  const char* build = std::getenv("DDBMUTEX_BUILD");
  BOOST_TEST_REQUIRE(build != nullptr,
                     "DDBMUTEX_BUILD does not name the build");
  return std::string(build) + "/examples/ddbmutex/ddbmutex";
}

Words environment_at(const Whereabouts& where) {
  Words all = environment_of(where);
  all.push_back("DDBMUTEX_TABLE=" + where.table);
  all.push_back("TERM=xterm");
  return all;
}

// `line`: what stands behind the program's name, for a shell.  Standard input
// is no terminal.
Ran ran_line(const std::string& line, const Words& environment) {
  std::string words = "env -i";
  for (const std::string& variable : environment) {
    words += " " + command::shell_quoted(variable);
  }
  return shell(words + " " + program_here() + " </dev/null " + line);
}

Words program_with(Words words) {
  words.insert(words.begin(), program_here());
  return words;
}

// A lock of an engine's table, and its program's surroundings.
struct Stage {
  explicit Stage(EngineKind kind = any_engine_kind())
      : engine(Engine::running(kind)), place(place_at(engine.url())) {}

  // `url`: of the engine, or of who stands before it.
  Words place_at(const std::string& url) const {
    Whereabouts where = at(engine);
    where.url = url;
    Words all = environment_at(where);
    // So that `list` finds no others.
    all.push_back("DDBMUTEX_PREFIX=" + prefix);
    return all;
  }
  ddbmutex::TableOptions where() const {
    ddbmutex::TableOptions options = table_options(engine);
    options.prefix = prefix;
    return options;
  }
  std::unique_ptr<DdbMutex> holder(
      const std::function<void(ddbmutex::Options&)>& change = nullptr) const {
    auto options = unhurried(std::make_shared<ddbmutex::Table>(where()));
    options.owner = "somebody";
    if (change) change(options);
    auto mutex = std::make_unique<DdbMutex>("job", options);
    mutex->lock();
    return mutex;
  }

  Engine& engine;
  const std::string prefix = fresh_name() + "-";
  const Words place;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(command_line)

BOOST_AUTO_TEST_CASE(words_are_read_as_they_stand) {
  const std::map<std::string, std::string> cases = {
      {"--help", "help"},
      {"-h", "help"},
      {"help", "help"},
      {"help run", "help of=run"},
      {"run --help", "help of=run"},
      {"list -h --nonsense", "help of=list"},
      {"--version", "version"},
      {"-V", "version"},
      {"run job true", "run name=job arguments=true"},
      {"run job -- true", "run name=job arguments=true"},
      {"run -- job -- true", "run name=job arguments=true"},
      {"run -- -job -- true", "run name=-job arguments=true"},
      {"run job -- -x --ttl 5", "run name=job arguments=-x|--ttl|5"},
      {"run job ls --json -- x", "run name=job arguments=ls|--json|--|x"},
      {"run job --ttl 5 -- ls", "run name=job arguments=ls ttl=5000"},
      {"run --ttl 5s job ls", "run name=job arguments=ls ttl=5000"},
      {"run --ttl=5s job ls", "run name=job arguments=ls ttl=5000"},
      {"run -w 10 job ls", "run name=job arguments=ls wait=10000"},
      {"run -w10 job ls", "run name=job arguments=ls wait=10000"},
      {"run -w 1 -w 2 job ls", "run name=job arguments=ls wait=2000"},
      {"run --try job ls", "run name=job arguments=ls wait=0"},
      {"run -nc job ls", "run name=job arguments=ls wait=0 shell=yes"},
      {"run -qn job ls", "run name=job arguments=ls wait=0 quiet=yes"},
      {"run --grace 1s --keep-row --owner me job ls",
       "run name=job arguments=ls grace=1000 keep_row=yes owner=me"},
      {"run --grace 1s --ttl 3s job ls",
       "run name=job arguments=ls ttl=3000 grace=1000"},
      {"run --keep-row=no job ls", "run name=job arguments=ls keep_row=no"},
      {"run -nE0 job ls", "run name=job arguments=ls wait=0 conflict=0"},
      {"run --conflict-exit-code 255 job ls",
       "run name=job arguments=ls conflict=255"},
      {"run --wait 0.5 --min-hold 1.5h job ls",
       "run name=job arguments=ls wait=500 min_hold=5400000"},
      {"show job", "show name=job"},
      {"show -j job -t other", "show name=job table=other json=yes"},
      {"show -- -j", "show name=-j"},
      {"show -", "show name=-"},
      {"show --timeout 1s job", "show name=job timeout=1000"},
      {"list --layout dynamolock --key id", "list layout=3 key=id"},
      {"list --sort-key s --sort-value v", "list sort_key=s sort_value=v"},
      {"list --prefix= --calendar-margin 3s", "list prefix=\"\" margin=3000"},
      {"list --region r --endpoint http://h:1 --profile p -v",
       "list region=r endpoint=http://h:1 profile=p verbose=yes"},
      {"watch", "watch"},
      {"watch -i 500ms job", "watch name=job interval=500"},
      {"unlock job -y", "unlock name=job yes=yes"},
      {"create-table", "create-table"},
      {"completion zsh", "completion shell_name=zsh"},
  };
  for (const auto& [line, told] : cases) {
    BOOST_TEST(read(line) == told, line << ": " << read(line));
  }
}

BOOST_AUTO_TEST_CASE(what_is_wrong_is_named) {
  const std::map<std::string, std::string> cases = {
      {"", "no subcommand is given"},
      {"lock", "no subcommand `lock`"},
      {"help lock", "no subcommand `lock`"},
      {"--table x list", "--table: options follow the subcommand"},
      {"run", "NAME is missing; say `ddbmutex run NAME"},
      {"run job", "COMMAND is missing"},
      {"run job --", "COMMAND is missing"},
      {"show", "NAME is missing; say `ddbmutex show NAME`"},
      {"show a b", "`b` is unexpected"},
      {"list a", "`a` is unexpected; say `ddbmutex list`"},
      {"unlock", "NAME is missing"},
      {"completion", "no shell is named"},
      {"run --tabel x job ls", "--tabel: there is no such option; `ddbmutex"},
      {"run -x job ls", "-x: there is no such option"},
      {"show --ttl 5 job", "--ttl: not an option of `show`"},
      {"show -w5 job", "-w: not an option of `show`"},
      {"run --ttl", "--ttl: its TIME is missing"},
      {"run -w", "-w: its TIME is missing"},
      {"run --ttl soon job ls", "--ttl: `soon` is not a time such as 90, 0.5"},
      {"run --ttl= job ls", "--ttl: `` is not a time"},
      {"run -w 1.2.3 job ls", "-w: `1.2.3` is not a time"},
      {"run -w 0.1234567890 job ls", "-w: `0.1234567890` has too many digits"},
      {"run --min-hold 367d job ls", "--min-hold: is more than 366 days"},
      {"run -E 256 job ls", "-E: must be a number from 0 to 255, not `256`"},
      {"run -E -1 job ls", "-E: must be a number from 0 to 255, not `-1`"},
      {"run -E 1000000000000 job ls", "-E: must be a number from 0 to 255"},
      {"run --conflict-exit-code= job ls",
       "--conflict-exit-code: must be a number"},
      {"show -E 5 job", "-E: not an option of `show`"},
      {"run --try --wait 5 job ls", "--try and --wait exclude each other"},
      {"run --grace 1s --ttl 2999ms job ls",
       "--grace: is more than a third of --ttl: 1.0s of 2.9s"},
      {"list --json=maybe", "--json: must be `yes` or `no`, not `maybe`"},
      {"list --layout other", "--layout: must be one of ddblock lockclient"},
      {"list --layout=", "--layout: must be one of"},
      {"list --table=", "--table: is empty"},
      {"watch -i 99ms", "-i: is less than 100ms: `99ms`"},
      {"list --timeout 0", "--timeout: is less than 100ms: `0`"},
      {"run --timeout 5 job ls", "--timeout: not an option of `run`"},
      {"watch --interval 2d", "--interval: is more than a day: `2d`"},
  };
  for (const auto& [line, told] : cases) {
    const std::string text = read(line);
    BOOST_TEST(text.rfind("! ", 0) == 0u, line << ": " << text);
    BOOST_TEST(has(text, told), line << ": " << text);
    BOOST_TEST(text.find('\n') == text.npos, line);
  }
  BOOST_TEST(has(read(Words{"show", ""}), "NAME is empty"));
}

BOOST_AUTO_TEST_CASE(times_have_units) {
  const std::map<std::string, std::string> cases = {
      {"90", "90000"},
      {"30s", "30000"},
      {"5m", "300000"},
      {"1h", "3600000"},
      {"2d", "172800000"},
      {"250ms", "250"},
      {"0", "0"},
      {"007", "7000"},
      {"", "!"},
      {"s", "!"},
      {"1 s", "!"},
      {"-1", "!"},
      {"1.5s", "1500"},
      {"1h30m", "!"},
      {"5M", "!"},
      {"999999999d", "86399999913600000"},
      {"1000000000", "!"},
      {"0.5", "500"},
      {".5", "500"},
      {"0.25m", "15000"},
      {"1.5h", "5400000"},
      {"0.125d", "10800000"},
      {"2.50ms", "3"},
      {"0.001", "1"},
      {"1.001", "1001"},
      {"0.000000001", "1"},
      {"0.0", "0"},
      {"0.29", "290"},
      {"4.35s", "4350"},
      {"0.999999999d", "86400000"},
      {".", "!"},
      {"5.", "!"},
      {".s", "!"},
      {"1..5", "!"},
      {"1.2.3", "!"},
      {"1,5", "!"},
      {"1.-5", "!"},
      {"1e3", "!"},
      {"+1", "!"},
      {"0x1", "!"},
      {"nan", "!"},
      {"1.5 s", "!"},
      {"0.1234567890", "!"},
      {"999999999.999999999d", "86400000000000000"},
  };
  for (const auto& [text, ms] : cases) {
    BOOST_TEST(time_read(text) == ms, text << ": " << time_read(text));
  }
}

BOOST_AUTO_TEST_CASE(variables_stand_for_options_and_come_after_them) {
  const Words words = {"run", "job", "ls"};
  BOOST_TEST(read(words, {{"DDBMUTEX_TABLE", "t"},
                          {"DDBMUTEX_TTL", "5s"},
                          {"DDBMUTEX_KEEP_ROW", "1"},
                          {"DDBMUTEX_OWNER", ""}}) ==
             "run name=job arguments=ls table=t ttl=5000 keep_row=yes");
  BOOST_TEST(read({"run", "-t", "x", "job", "ls"}, {{"DDBMUTEX_TABLE", "t"}}) ==
             "run name=job arguments=ls table=x");
  // What the command line says counts, whichever of the two it is.
  BOOST_TEST(read({"run", "-n", "job", "ls"}, {{"DDBMUTEX_WAIT", "9s"}}) ==
             "run name=job arguments=ls wait=0");
  // Those of other subcommands are not looked at.
  BOOST_TEST(read({"list"}, {{"DDBMUTEX_TTL", "soon"}}) == "list");
  BOOST_TEST(has(read(words, {{"DDBMUTEX_TTL", "soon"}}),
                 "! DDBMUTEX_TTL: `soon` is not a time"));
  BOOST_TEST(
      has(read({"run", "--ttl=10s", "job", "ls"}, {{"DDBMUTEX_GRACE", "20s"}}),
          "! DDBMUTEX_GRACE: is more than a third of --ttl"));
}

BOOST_AUTO_TEST_CASE(options_are_told_apart_and_named_alike) {
  std::set<std::string> names, letters;
  for (const command::Option& option : command::options()) {
    BOOST_TEST(names.insert(option.name).second, option.name);
    if (option.letter != 0) {
      BOOST_TEST(letters.insert(std::string(1, option.letter)).second,
                 option.name);
      BOOST_TEST((option.letter != 'h' && option.letter != 'V'));
    }
    std::string variable = std::string("DDBMUTEX_") + option.name;
    for (char& byte : variable) {
      byte = byte == '-' ? '_' : static_cast<char>(std::toupper(byte));
    }
    if (*option.variable != '\0') BOOST_TEST(option.variable == variable);
    BOOST_TEST(!option.commands.empty(), option.name);
  }
  BOOST_TEST(names.count("table") == 1u);
}

BOOST_AUTO_TEST_CASE(settings_are_the_librarys_options) {
  const auto parse = [](const std::string& line) {
    return command::parse(split(line), [](const char*) { return nullptr; });
  };
  const auto table = command::table_of(
      parse("list -t x --region r --endpoint http://h:1 --profile p "
            "--prefix q --sort-key s --sort-value v --calendar-margin 3s"));
  BOOST_TEST(table.name == "x");
  BOOST_TEST(table.region == "r");
  BOOST_TEST(table.endpoint == "http://h:1");
  BOOST_TEST(table.profile == "p");
  BOOST_TEST(table.prefix == "q");
  BOOST_TEST(table.sort_key == "s");
  BOOST_TEST(table.sort_value == "v");
  BOOST_TEST((table.calendar_margin == 3s));
  BOOST_TEST(!table.logger);
  BOOST_TEST((table.patience == 5s));
  BOOST_TEST((command::table_of(parse("list --timeout 9s")).patience == 9s));
  BOOST_TEST(!!command::table_of(parse("list -v")).logger);

  BOOST_TEST(command::table_of(parse("list")).key == "name");
  BOOST_TEST(command::table_of(parse("list -l awslabs")).key == "key");
  BOOST_TEST(command::table_of(parse("list -l awslabs --key k")).key == "k");
  BOOST_TEST((command::table_of(parse("list -l awslabs")).layout ==
              ddbmutex::Layout::awslabs));

  const auto options = command::options_of(
      parse("run --region us-east-1 --ttl 9s --keep-row --owner me job ls"));
  BOOST_TEST((options.ttl == 9s));
  BOOST_TEST((options.keep_row == true));
  BOOST_TEST(options.owner == "me");
  BOOST_TEST(options.table->name() == "locks");
}

BOOST_AUTO_TEST_CASE(help_fits_on_a_screen) {
  std::vector<std::optional<Command>> all = {std::nullopt};
  for (const auto& one : command::subcommands()) all.push_back(one.command);
  for (const auto& of : all) {
    const std::string text = command::help(of);
    BOOST_TEST(std::count(text.begin(), text.end(), '\n') <= 25, text);
    BOOST_TEST(all_matches(text, "^(.{80,})$").empty(), text);
    BOOST_TEST(text.rfind("Usage: ddbmutex ", 0) == 0u);
    if (!of) continue;
    for (const command::Option& option : command::options()) {
      const bool is_there =
          !all_matches(text, std::string("(--") + option.name + ")[ \n)]")
               .empty();
      BOOST_TEST(is_there == command::is_option_of(option, *of),
                 option.name << " in " << text);
    }
  }
  for (const auto& one : command::subcommands()) {
    BOOST_TEST(has(command::help({}), std::string("\n  ") + one.name));
  }
}

// --- Errors ------------------------------------------------------------------

BOOST_AUTO_TEST_CASE(errors_tell_what_to_do_and_end_with_their_code) {
  const Settings settings;
  const auto exit = [&](Errc code) {
    return static_cast<int>(command::verdict_on(error_of(code), settings).exit);
  };
  BOOST_TEST(exit(Errc::bad_option) == 64);
  for (const Errc code :
       {Errc::unreachable, Errc::disconnected, Errc::timed_out, Errc::throttled,
        Errc::unavailable, Errc::bad_answer}) {
    BOOST_TEST(exit(code) == 69);
    BOOST_TEST(command::is_passing(code));
  }
  for (const Errc code : {Errc::no_keys, Errc::bad_keys, Errc::expired_keys,
                          Errc::access_denied, Errc::bad_certificate}) {
    BOOST_TEST(exit(code) == 77);
    BOOST_TEST(!command::is_passing(code));
  }
  BOOST_TEST(exit(Errc::lease_lost) == 76);
  for (const Errc code :
       {Errc::no_table, Errc::wrong_table, Errc::replicated_table,
        Errc::bad_record, Errc::kept_row, Errc::no_row}) {
    BOOST_TEST(exit(code) == 78);
  }
  BOOST_TEST(exit(Errc::closed) == 70);
  BOOST_TEST(command::verdict_on(std::runtime_error("why"), settings).text ==
             "why");
  BOOST_TEST(command::verdict_on(error_of(Errc::kept_row), settings).text ==
             std::string(error_of(Errc::kept_row).what()) +
                 "; give --keep-row, or use another name");
}

BOOST_AUTO_TEST_CASE(table_that_is_not_there_is_made_by_a_line_to_copy) {
  const auto line = [](const std::string& words) {
    const Settings settings =
        command::parse(split(words), [](const char*) { return nullptr; });
    const std::string text =
        command::verdict_on(error_of(Errc::no_table), settings).text;
    return text.substr(text.find(';'));
  };
  BOOST_TEST(line("list") == "; create it with `ddbmutex create-table`");
  BOOST_TEST(
      line("list -t a'b --region r --layout awslabs --sort-key s") ==
      "; create it with `ddbmutex create-table --table 'a'\\''b' --key key "
      "--sort-key s --region r`");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(command_words)

BOOST_AUTO_TEST_CASE(state_is_told_by_the_age) {
  const auto state = [](const LockInfo& info) {
    return std::string(name_of(command::state_of(info)));
  };
  LockInfo info;
  BOOST_TEST(state(info) == "free");
  info = held("x", 30s, 29999ms);
  BOOST_TEST(state(info) == "held");
  BOOST_TEST((command::remaining_of(info) == 1ms));
  info.age = 30s;
  BOOST_TEST(state(info) == "expired");
  info.age = 40s;
  BOOST_TEST((command::remaining_of(info) == 0ms));
  info.age.reset();
  BOOST_TEST(state(info) == "held");
  BOOST_TEST(!command::remaining_of(info));
  info.released = true;
  BOOST_TEST(state(info) == "free");
  // The problem of a lock names an attribute that was left out.
  info.problem = "\"note\" was not read";
  BOOST_TEST(state(info) == "free");
  info = {};
  info.problem = "no uuid";
  BOOST_TEST(state(info) == "unreadable");
}

// What is free to one is not to another: `run` says what it lacks, and so do
// those that look.
BOOST_AUTO_TEST_CASE(what_it_takes_to_lock_is_told) {
  using ddbmutex::Layout;
  LockInfo absent, kept = held("x", 60s, 10s), bare, odd;
  kept.keep_row = bare.keep_row = true;
  odd.problem = "no uuid";
  const auto rows = [](const LockInfo& info, Layout layout) {
    return command::rows_of({info}, std::string::npos, layout).at(1);
  };
  for (const Layout layout : {Layout::ddblock, Layout::lease}) {
    const bool lease = layout == Layout::lease;
    const std::string none = lease ? "an item" : "";
    BOOST_TEST(command::need_of(absent, layout) == none);
    BOOST_TEST(command::need_of(kept, layout) == "--keep-row");
    BOOST_TEST(command::need_of(bare, layout) == "--keep-row");
    BOOST_TEST(command::need_of(odd, layout) == "");
    BOOST_TEST(command::need_of(held("x", 60s, 1s), layout) == "");
    BOOST_TEST(command::sentence_of(absent, layout) ==
               (lease ? "free, needs an item" : "free"));
    BOOST_TEST(has(command::lines_of(absent, layout),
                   "\nneeds  an item of that name") == lease);
    BOOST_TEST(has(command::json_of(absent, "", layout),
                   R"("needs":"an item")") == lease);
  }
  BOOST_TEST(command::sentence_of(kept) ==
             "held by host:1, 50.0s left, needs --keep-row");
  BOOST_TEST(has(command::lines_of(kept), "\nneeds  --keep-row, for `run`"));
  BOOST_TEST(has(rows(kept, Layout::ddblock), "  held, needs --keep-row  "));
  kept.age = 61s;
  BOOST_TEST(command::sentence_of(kept) ==
             "expired, was held by host:1, needs --keep-row");
  kept.released = true;
  BOOST_TEST(command::sentence_of(kept) == "free, needs --keep-row");
  BOOST_TEST(has(rows(bare, Layout::ddblock), "  free, needs --keep-row  "));
  const auto json = parsed(command::json_of(bare));
  BOOST_TEST(text_in(json, "state") == "free");
  BOOST_TEST(text_in(json, "needs") == "--keep-row");
}

BOOST_AUTO_TEST_CASE(who_waits_is_told_what_the_record_says) {
  using command::holder_in_words;
  LockInfo info = held("x", 60s, 12345ms);
  BOOST_TEST(holder_in_words(info) ==
             "held by host:1, taken or last renewed 12.3s ago");
  info.age = 64s;
  BOOST_TEST(holder_in_words(info) ==
             "host:1 has not renewed its lease, which ended 4.0s ago");
  info.age.reset();
  BOOST_TEST(holder_in_words(info) ==
             "held by host:1; its item does not say since when");
  info.owner.clear();
  BOOST_TEST(has(holder_in_words(info), "held by unknown"));
  info.released = true;
  BOOST_TEST(holder_in_words(info) == "nobody holds it at this moment");
  BOOST_TEST(holder_in_words({}) == "nobody holds it at this moment");
}

// No record says since when a lock is held.
BOOST_AUTO_TEST_CASE(time_of_the_last_renewal_is_called_what_it_is) {
  const std::string lines = command::lines_of(held("x", 60s, 1500ms));
  BOOST_TEST(has(lines, "\nlease  1m00s, renewed 1.5s ago\n"), lines);
  BOOST_TEST(!has(lines, "age"), lines);
  LockInfo undated = held("x", 60s, 0ms);
  undated.age.reset();
  BOOST_TEST(has(command::lines_of(undated), "\nlease  1m00s\n"));
  BOOST_TEST(has(command::rows_of({}).at(0), "RENEWED"));
  BOOST_TEST(has(command::help(Command::list), "RENEWED"));
  BOOST_TEST(has(section("DESCRIPTION"), "RENEWED"));
}

BOOST_AUTO_TEST_CASE(times_are_told_in_words) {
  using command::in_words;
  BOOST_TEST(in_words(0ms) == "0ms");
  BOOST_TEST(in_words(999ms) == "999ms");
  BOOST_TEST(in_words(12345ms) == "12.3s");
  BOOST_TEST(in_words(60s) == "1m00s");
  BOOST_TEST(in_words(2h + 5min) == "2h05m");
  BOOST_TEST(in_words(76h) == "3d04h");
}

BOOST_AUTO_TEST_CASE(terminal_is_given_no_controls) {
  using command::printable;
  BOOST_TEST(printable("caf\xc3\xa9 \xf0\x9f\x94\x92") ==
             "caf\xc3\xa9 \xf0\x9f\x94\x92");
  const std::string instead = "\xef\xbf\xbd";
  for (const char* bad : {"\x1b", "\n", "\x7f", "\xc2\x9b", "\xff", "\xc3",
                          "\xc0", "\xed", "\xe2\x80\xae", "\xe2\x81\xa6",
                          "\xe2\x80\xa8", "\xef\xbb\xbf", "\xf3\xa0\x81\x81"}) {
    BOOST_TEST(printable(std::string("a") + bad + "b") == "a" + instead + "b");
  }
  // A surrogate, a form that is too long, and one beyond Unicode.
  BOOST_TEST(!has(printable("\xed\xa0\x80"), "\xed"));
  BOOST_TEST(!has(printable("\xe0\x80\xaf"), "\xe0"));
  BOOST_TEST(!has(printable("\xf4\x90\x80\x80"), "\xf4"));
}

BOOST_AUTO_TEST_CASE(rows_stand_in_columns_and_fit) {
  LockInfo free;
  free.name = "caf\xc3\xa9";
  free.sort_value = "s";
  const std::vector<LockInfo> infos = {held("a-long-name", 60s, 1500ms), free};
  const Words rows = command::rows_of(infos);
  BOOST_TEST_REQUIRE(rows.size() == 3u);
  BOOST_TEST(rows[0] == "NAME         STATE  RENEWED   LEFT   HOLDER");
  BOOST_TEST(rows[1] == "a-long-name  held   1.5s ago  58.5s  host:1");
  BOOST_TEST(rows[2] == "caf\xc3\xa9 [s]     free   -         -      -");
  BOOST_TEST(command::rows_of(infos, 4)[2] == "caf\xc3\xa9");
}

BOOST_AUTO_TEST_CASE(json_is_right_whatever_is_in_it) {
  LockInfo info = held("a\"\\\n\x01\xff\xc3\xa9", 60s, 1s);
  info.sort_value = std::string("\0s", 2);
  info.token = 18446744073709551615u;
  info.data = std::string("\0\xff\x10\x80", 4);
  ddbmutex::Attribute list;
  list.name = "l";
  list.type = ddbmutex::Attribute::Type::list;
  list.members.resize(2);
  list.members[0].value = "text";
  list.members[1].type = ddbmutex::Attribute::Type::boolean;
  list.members[1].value = "false";
  ddbmutex::Attribute set;
  set.name = "s";
  set.type = ddbmutex::Attribute::Type::binary_set;
  set.members.resize(1);
  set.members[0].value = "M";
  info.attributes = {list, set};
  const std::string text = command::json_of(info, "\"freed\":true");
  BOOST_TEST(text.find('\n') == text.npos);
  const auto json = parsed(text);
  BOOST_TEST(text_in(json, "name") == "a\"\\\n\x01\xef\xbf\xbd\xc3\xa9");
  BOOST_TEST(text_in(json, "sort_value") == std::string("\0s", 2));
  BOOST_TEST(text_in(json, "state") == "held");
  BOOST_TEST(text_in(json, "holder") == "host:1");
  BOOST_TEST(json["lease_ms"].GetInt() == 60000);
  BOOST_TEST(json["age_ms"].GetInt() == 1000);
  BOOST_TEST(json["left_ms"].GetInt() == 59000);
  BOOST_TEST(json["token"].GetUint64() == info.token);
  BOOST_TEST(text_in(json, "data") == "AP8QgA==");
  BOOST_TEST(json["freed"].GetBool());
  BOOST_TEST(has(text, R"("attributes":{"l":{"L":[{"S":"text"},)"
                       R"({"BOOL":false}]},"s":{"BS":["TQ=="]}})"));

  // DEL and CSI, which terminals obey, and characters that reorder text or are
  // invisible.
  info = held("a\x7f", 60s, 1s);
  info.owner = "\xc2\x9b\xc2\xa0";
  const std::string escaped = command::json_of(info);
  BOOST_TEST(has(escaped, R"("name":"a\u007f")"), escaped);
  BOOST_TEST(has(escaped, "\"holder\":\"\\u009b\xc2\xa0\""), escaped);
  BOOST_TEST(text_in(parsed(escaped), "holder") == info.owner);
  BOOST_TEST(command::json_of(info.owner) == "\"\\u009b\xc2\xa0\"");
  BOOST_TEST(command::json_of("a\xe2\x80\xae"
                              "b\xf3\xa0\x81\x81") ==
             R"("a\u202eb\udb40\udc41")");

  info = {};
  info.name = "x";
  BOOST_TEST(command::json_of(info) == R"({"name":"x","state":"free"})");
  info = held("x", 0s, 0s);
  info.age.reset();
  BOOST_TEST(parsed(command::json_of(info))["left_ms"].IsNull());
  info.problem = "no uuid";
  BOOST_TEST(text_in(parsed(command::json_of(info)), "problem") == "no uuid");
  BOOST_TEST(command::json_of(std::string("a\"b")) == "\"a\\\"b\"");
}

BOOST_AUTO_TEST_SUITE_END()

// --- Completion and the man page ---------------------------------------------

namespace {

// What bash offers for the last of these words.
std::set<std::string> bash_offers(const Words& words) {
  const Home home;
  const std::string file = home.write("c", command::completion("bash"));
  std::string line = ". " + file + "; COMP_WORDS=(ddbmutex";
  for (const std::string& word : words) {
    line += " " + command::shell_quoted(word);
  }
  line += "); COMP_CWORD=" + std::to_string(words.size()) +
          "; COMP_LINE=\"${COMP_WORDS[*]}\"; COMP_POINT=${#COMP_LINE}"
          "; _ddbmutex; printf '%s\\n' \"${COMPREPLY[@]}\"";
  const Ran ran = shell("bash --norc -c " + command::shell_quoted(line));
  BOOST_TEST(ran.status == 0, ran.said);
  return as_set(all_matches(ran.said, "^(.+)$"));
}

bool is_installed(const char* program) {
  return shell(std::string("command -v ") + program).status == 0;
}

using Offers = std::set<std::string>;

}  // namespace

BOOST_AUTO_TEST_SUITE(command_pages)

BOOST_AUTO_TEST_CASE(bash_completes_subcommands_options_and_values) {
  BOOST_TEST((bash_offers({"cre"}) == Offers{"create-table"}));
  BOOST_TEST((bash_offers({"run", "--la"}) == Offers{"--layout"}));
  BOOST_TEST((bash_offers({"show", "--tt"}) == Offers{}));
  BOOST_TEST((bash_offers({"list", "--layout", "l"}) ==
              Offers{"lockclient", "lease"}));
  BOOST_TEST((bash_offers({"list", "-t", ""}) == Offers{}));
  BOOST_TEST((bash_offers({"completion", "z"}) == Offers{"zsh"}));
  BOOST_TEST((bash_offers({"help", "wa"}) == Offers{"watch"}));
  for (const auto& one : command::subcommands()) {
    const Offers offers = bash_offers({one.name, "--"});
    for (const command::Option& option : command::options()) {
      BOOST_TEST(offers.count(std::string("--") + option.name) ==
                     (command::is_option_of(option, one.command) ? 1u : 0u),
                 one.name << " --" << option.name);
    }
  }
  // From COMMAND on it is another program's line.
  for (const Words& words : {Words{"run", "job", "--", "env"},
                             Words{"run", "-w", "5", "job", "--", "env"},
                             Words{"run", "-n", "job", "env"},
                             Words{"run", "--", "job", "--", "env"},
                             Words{"run", "-t", "=", "x", "job", "env"},
                             Words{"run", "--endpoint", "http", ":", "//h", ":",
                                   "1", "a", ":", "b", "env"}}) {
    BOOST_TEST(bash_offers(words).count("env") == 1u);
  }
  BOOST_TEST((bash_offers({"run", "job", "--", "ls", "--tab"}) == Offers{}));
  BOOST_TEST((bash_offers({"run", "job", "--", "--tab"}) == Offers{}));
}

// As readline does: what it keeps of the last word, and what it replaces.
BOOST_AUTO_TEST_CASE(line_of_bash_is_split_as_the_shell_would) {
  const auto told = [](const std::string& line) {
    const command::TypedLine typed =
        command::split_line(line, " \t\n\"'@><=;|&(:");
    std::string all = joined(typed.words) + " " + std::to_string(typed.kept);
    if (typed.quote != '\0') all += std::string(" ") + typed.quote;
    return all;
  };
  const std::map<std::string, std::string> cases = {
      {"", " 0"},
      {"d show ", "d|show| 0"},
      {"d  show a", "d|show|a 0"},
      {"d show\ta\\ b", "d|show|a b 0"},
      {"d 'a b' c", "d|a b|c 0"},
      {"d 'a b", "d|a b 0 '"},
      {"d x\"a \\\" \\n", "d|xa \" \\n 1 \""},
      {"d 'it'\\''s", "d|it's 3 '"},
      {"d '' x", "d||x 0"},
      {"d a:b:c", "d|a:b:c 4"},
      {"d 'a:b:c", "d|a:b:c 0 '"},
      {"d a\\:b", "d|a:b 0"},
      {"d --table=x", "d|--table=x 8"},
      {"d $(x) `y` $Z", "d|$(x)|`y`|$Z 0"},
      {"d a\\", "d|a\\ 0"},
  };
  for (const auto& [line, expected] : cases) {
    BOOST_TEST(told(line) == expected, line << ": " << told(line));
  }
}

BOOST_AUTO_TEST_CASE(name_is_offered_in_the_quotes_that_are_open) {
  const std::string name = "a b:$'\"`!\\;";
  const auto offered = [&](const std::string& line) {
    return command::offer(command::split_line(line, " :\"'"), name)
        .value_or("none");
  };
  BOOST_TEST(offered("d ") == "a\\ b:\\$\\'\\\"\\`\\!\\\\\\;");
  BOOST_TEST(offered("d a\\ b:") == "\\$\\'\\\"\\`\\!\\\\\\;");
  BOOST_TEST(offered("d '") == "a b:$'\\''\"`!\\;");
  BOOST_TEST(offered("d 'a b:$") == "a b:$'\\''\"`!\\;");
  BOOST_TEST(offered("d \"") == "none");
  BOOST_TEST(offered("d b") == "none");
  const auto quoted =
      command::offer(command::split_line("d \"x", ""), "x\"$`\\y'");
  BOOST_TEST(quoted.value_or("none") == "x\\\"\\$\\`\\\\y'");
}

BOOST_AUTO_TEST_CASE(zsh_and_fish_read_their_scripts) {
  const Home home;
  for (const std::string name : {"zsh", "fish"}) {
    const std::string file = home.write(name, command::completion(name));
    for (const command::Option& option : command::options()) {
      const std::string said = name == "fish" ? " -l " : "--";
      BOOST_TEST(has(command::completion(name), said + option.name), name);
    }
    BOOST_TEST(has(command::completion(name),
                   "command ddbmutex completion names " + name + " "));
    if (!is_installed(name.c_str())) continue;
    const Ran ran = shell(name + " -n " + file);
    BOOST_TEST(ran.status == 0, ran.said);
    BOOST_TEST(ran.said == "");
  }
  BOOST_CHECK_THROW(command::completion("tcsh"), command::UsageError);
}

BOOST_AUTO_TEST_CASE(man_page_has_every_option_and_no_other) {
  std::set<std::string> told, there = {"-h, --help", "-V, --version"};
  for (const std::string& line :
       all_matches(section("OPTIONS"), "^\\.TP\n(.*)$")) {
    // ".BR -w ", " --wait " \fITIME\fR"", ".BI --ttl " TIME""
    std::string plain = replaced(line, "^\\.B[RI]? ", "");
    plain = replaced(plain, "\\\\f[IR]|\"", "");
    told.insert(replaced(plain, " +", " "));
  }
  for (const command::Option& option : command::options()) {
    std::string text = std::string("--") + option.name;
    if (option.letter != 0) {
      text = std::string("-") + option.letter + " , " + text;
    }
    if (!option.is_flag()) text += std::string(" ") + option.value;
    there.insert(replaced(text, " ,", ","));
  }
  std::set<std::string> said;
  for (const std::string& text : told) said.insert(replaced(text, " ,", ","));
  BOOST_TEST(said == there, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(man_page_has_every_variable_choice_and_exit_code) {
  std::set<std::string> variables;
  for (const command::Option& option : command::options()) {
    if (*option.variable != '\0') variables.insert(option.variable);
    for (const auto& choice : all_matches(option.choices, "(\\w+)")) {
      BOOST_TEST(has(section("OPTIONS"), choice), choice);
    }
  }
  BOOST_TEST(as_set(all_matches(section("ENVIRONMENT"), "(DDBMUTEX_\\w+)")) ==
                 variables,
             boost::test_tools::per_element());
  std::set<std::string> codes;
  for (const auto& one : command::exits()) {
    codes.insert(std::to_string(one.code));
  }
  BOOST_TEST(
      as_set(all_matches(section("EXIT STATUS"), "^\\.B (\\d+)$")) == codes,
      boost::test_tools::per_element());
  for (const auto& one : command::subcommands()) {
    BOOST_TEST(has(section("DESCRIPTION"),
                   std::string("\n.TP\n.B ") + one.name + "\n"),
               one.name);
  }
  BOOST_TEST(has(man_page(), "\"ddbmutex " DDBMUTEX_VERSION_STRING "\""));
}

BOOST_AUTO_TEST_CASE(man_page_is_well_formed) {
  if (!is_installed("groff")) return;
  const Ran ran =
      shell("groff -man -ww -Tutf8 examples/ddbmutex/ddbmutex.1 >/dev/null");
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "");
}

BOOST_AUTO_TEST_CASE(version_is_one_number) {
  const Words parts = {std::to_string(DDBMUTEX_VERSION_MAJOR),
                       std::to_string(DDBMUTEX_VERSION_MINOR),
                       std::to_string(DDBMUTEX_VERSION_PATCH)};
  BOOST_TEST(parts[0] + "." + parts[1] + "." + parts[2] ==
             DDBMUTEX_VERSION_STRING);
  const Ran ran = ran_line("--version", {});
  BOOST_TEST(ran.said == "ddbmutex " DDBMUTEX_VERSION_STRING "\n");
  BOOST_TEST(ran.status == 0);
}

BOOST_AUTO_TEST_SUITE_END()

// --- The program -------------------------------------------------------------

BOOST_AUTO_TEST_SUITE(command_program)

BOOST_AUTO_TEST_CASE(first_minute_without_a_table_says_how_to_make_it) {
  Engine engine(any_engine_kind());
  Whereabouts where = at(engine);
  where.table = "ddbmutex-test-" + fresh_name();
  const Words place = environment_at(where);
  const std::string words = "run job -- sh -c 'echo in'";
  Ran ran = ran_line(words, place);
  BOOST_TEST(ran.status == 78);
  BOOST_TEST(is_one_line(ran.said), ran.said);
  const std::string line = between(ran.said, "; create it with `", "`");
  BOOST_TEST(line == "ddbmutex create-table --table " + where.table);
  ran = ran_line(line.substr(std::string("ddbmutex ").size()), place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "Table " + where.table + " is created.\n");
  ran = ran_line(words, place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "in\n");

  ran = ran_line("create-table --json", place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said ==
             "{\"table\":\"" + where.table + "\",\"created\":false}\n");
  BOOST_TEST(ran_line("create-table --key other", place).status == 78);
  engine.delete_table(where.table);
}

BOOST_AUTO_TEST_CASE(errors_are_one_line_on_standard_error) {
  ScriptedServer server([](const SeenRequest&) {
    return Reply::error(
        400, R"({"__type":"com.amazon.coral.service#AccessDeniedException",)"
             R"("message":"not you"})");
  });
  const std::map<std::string, int> cases = {
      {"show --ttl 5 job", 64},
      {"show --endpoint nonsense job", 64},
      {"run --ttl 1ms job true", 64},
      {"show job", 77},
      {"list", 77},
      {"watch", 77},
      {"unlock --yes job", 77},
      {"create-table", 77},
      {"run --try job true", 77},
      {"run --try --endpoint http://127.0.0.1:9 job true", 69},
  };
  for (const auto& [line, status] : cases) {
    const Ran ran = ran_line(line + " 2>&1 >/dev/null",
                             environment_at({server.url(), "locks"}));
    BOOST_TEST(ran.status == status, line << ": " << ran.said);
    BOOST_TEST(is_one_line(ran.said), line << ": " << ran.said);
    BOOST_TEST(ran.said.rfind("ddbmutex: ", 0) == 0u, line << ran.said);
  }
  Words without_keys = clean_environment();
  without_keys.push_back("AWS_REGION=us-east-1");
  const Ran none = ran_line("show job", without_keys);
  BOOST_TEST(none.status == 77);
  BOOST_TEST(has(none.said, "log in as for the AWS CLI"), none.said);
  BOOST_TEST(is_one_line(none.said));
  // Where they were looked for is a long story.
  BOOST_TEST(!has(none.said, "AWS_WEB_IDENTITY_TOKEN_FILE"), none.said);
  const Ran all = ran_line("show -v job", without_keys);
  BOOST_TEST(has(all.said, "AWS_WEB_IDENTITY_TOKEN_FILE"), all.said);
}

// An error about one source of keys is short enough to be shown in full.
BOOST_AUTO_TEST_CASE(what_is_wrong_with_keys_is_told_without_verbose) {
  const Home home;
  home.write("broken", "echo 'run corp-login' >&2\n");
  home.write("colon", "[default]\nregion: x\n");
  home.write("config", "[default]\ncredential_process = /bin/sh '" +
                           (home.root / "broken").string() + "'\n");
  const auto told = [](const Words& variables) {
    Words all = clean_environment();
    all.push_back("AWS_REGION=us-east-1");
    all.insert(all.end(), variables.begin(), variables.end());
    const Ran ran = ran_line("show job", all);
    BOOST_TEST(is_one_line(ran.said), ran.said);
    return ran.said;
  };
  const std::string secret =
      told({"AWS_ACCESS_KEY_ID=a", "AWS_SECRET_ACCESS_KEY=b\nc"});
  BOOST_TEST(has(secret,
                 "AWS_SECRET_ACCESS_KEY in the environment has a line "
                 "break"),
             secret);
  const std::string half = told({"AWS_ACCESS_KEY_ID=a"});
  BOOST_TEST(has(half, "AWS_ACCESS_KEY_ID without AWS_SECRET_ACCESS_KEY"),
             half);
  const std::string program =
      told({"AWS_CONFIG_FILE=" + (home.root / "config").string()});
  BOOST_TEST(has(program, "the program wrote nothing: run corp-login"),
             program);
  const std::string line =
      told({"AWS_CONFIG_FILE=" + (home.root / "colon").string()});
  BOOST_TEST(has(line, "line 2: region is followed by ':', not by '='"), line);
}

BOOST_AUTO_TEST_CASE(errors_bear_no_controls) {
  const std::string controls = "\x1b[2J\xc2\x9b\x7f\xff";
  const Ran ran = ran_line("help " + command::shell_quoted("a" + controls), {});
  BOOST_TEST(ran.status == 64);
  BOOST_TEST(is_one_line(ran.said), ran.said);
  BOOST_TEST(has(ran.said, "no subcommand `a\xef\xbf\xbd[2J"), ran.said);
  for (const char* bad : {"\x1b", "\xc2\x9b", "\x7f", "\xff"}) {
    BOOST_TEST(!has(ran.said, bad), ran.said);
  }
}

// As a terminal can be given it.
BOOST_AUTO_TEST_CASE(region_that_is_none_is_told_with_its_value) {
  const std::string region =
      " --region " + command::shell_quoted("eu west\x1b[2J\n");
  for (const std::string& line :
       {"show" + region + " job", "list" + region, "watch" + region,
        "run -n" + region + " job true"}) {
    const Ran ran = ran_line(line, clean_environment());
    BOOST_TEST(ran.status == 64, ran.said);
    BOOST_TEST(is_one_line(ran.said), ran.said);
    BOOST_TEST(
        has(ran.said, "not the name of a region: \"eu west\\x1b[2J\\n\""),
        ran.said);
    BOOST_TEST(!has(ran.said, "\x1b"));
  }
}

BOOST_AUTO_TEST_CASE(who_looks_is_told_soon_that_nobody_answers) {
  ScriptedServer server([](const SeenRequest&) {
    Reply reply;
    reply.hangs = true;
    return reply;
  });
  for (const std::string line :
       {"show job", "list", "watch", "unlock -y job", "create-table"}) {
    const Ran ran = ran_line(line + " --timeout 200ms",
                             environment_at({server.url(), "locks"}));
    BOOST_TEST(ran.status == 69, line << ": " << ran.said);
    BOOST_TEST(is_one_line(ran.said), ran.said);
  }
}

BOOST_AUTO_TEST_CASE(lock_of_another_is_told_unless_that_is_not_wanted) {
  const Stage stage;
  const auto mutex = stage.holder();
  Ran ran = ran_line("run --try job true", stage.place);
  BOOST_TEST(ran.status == 75);
  BOOST_TEST(is_one_line(ran.said), ran.said);
  ran = ran_line("run -qn job true", stage.place);
  BOOST_TEST(ran.status == 75);
  BOOST_TEST(ran.said == "");
}

BOOST_AUTO_TEST_CASE(answer_that_cannot_be_written_is_an_error) {
  const Ran ran = ran_line("--help >/dev/full", {});
  BOOST_TEST(ran.status == 70);
  BOOST_TEST(has(ran.said, "ddbmutex: cannot write: "));
}

// Nor is it written to a file of the program that took its place.
BOOST_AUTO_TEST_CASE(answer_is_not_written_where_standard_output_is_closed) {
  const Stage stage;
  const Ran ran = ran_line("watch job >&-", stage.place);
  BOOST_TEST(ran.status == 70);
  BOOST_TEST(ran.said == "ddbmutex: cannot write: Bad file descriptor\n");
}

BOOST_DATA_TEST_CASE(lock_is_shown_and_listed, data::make(engine_kinds()),
                     kind) {
  const Stage stage(kind);
  Ran ran = ran_line("show job", stage.place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "name   job\nstate  free\n");
  BOOST_TEST(ran_line("list --json", stage.place).said == "[]\n");

  auto mutex = stage.holder([](ddbmutex::Options& options) {
    options.keep_row = true;
    options.owner = "a \"b\"\n\x1b[2J";
    options.data = "state";
  });
  ran = ran_line("show job", stage.place);
  BOOST_TEST(has(ran.said, "\nstate  held\n"), ran.said);
  BOOST_TEST(has(ran.said, "\nlease  1m00s, renewed "), ran.said);
  BOOST_TEST(has(ran.said, "\ntoken  1\n"), ran.said);
  BOOST_TEST(has(ran.said, "\ndata   state\n"), ran.said);
  BOOST_TEST(!has(ran.said, "\x1b"));
  const auto json = parsed(ran_line("show --json job", stage.place).said);
  BOOST_TEST(text_in(json, "state") == "held");
  BOOST_TEST(text_in(json, "holder") == "a \"b\"\n\x1b[2J");
  BOOST_TEST(text_in(json, "data") == "c3RhdGU=");
  BOOST_TEST(json["lease_ms"].GetInt() == 60000);
  BOOST_TEST(json["token"].GetInt() == 1);

  const Words lines = all_matches(ran_line("list", stage.place).said, "^(.+)$");
  BOOST_TEST_REQUIRE(lines.size() == 2u);
  BOOST_TEST(
      !all_matches(lines[0], "^NAME +STATE +RENEWED +LEFT +(HOLDER)").empty(),
      lines[0]);
  BOOST_TEST(lines[1].rfind("job   held, needs --keep-row  ", 0) == 0u);
  const auto all = parsed(ran_line("list --json", stage.place).said);
  BOOST_TEST_REQUIRE(all.Size() == 1u);
  BOOST_TEST(text_in(all[0], "holder") == "a \"b\"\n\x1b[2J");

  mutex->unlock();
  ran = ran_line("show job", stage.place);
  BOOST_TEST(has(ran.said, "\nstate  free\ntoken  1\n"), ran.said);
}

// Each of these rows, and each way of locking it: `run` does what `show` and
// `list` lead one to expect.
BOOST_DATA_TEST_CASE(what_is_shown_agrees_with_what_run_does,
                     data::make(engine_kinds()), kind) {
  struct Case {
    std::string name, attributes;  // "none": there is no item.
    std::string state, needs;
    std::string layout = "ddblock";
  };
  const auto row = [](std::chrono::nanoseconds expires,
                      const std::string& more = "") {
    return "," + record("theirs", expires) + more;
  };
  const std::string token = R"(,"token":{"N":"3"})";
  const std::string colour = R"(,"colour":{"S":"red"})";
  const std::string versioned =
      R"(,"ownerName":{"S":"o"},"recordVersionNumber":{"S":"x"})";
  const std::string go = versioned + R"(,"leaseDuration":{"S":"60s"})";
  const std::string java = versioned + R"(,"leaseDuration":{"S":"60000"})";
  const std::string released = R"(,"isReleased":{"S":"1"})";
  const std::string later = R"({"N":"4000000000000000000"})";
  const std::vector<Case> cases = {
      {"absent", "none", "free", ""},
      {"key-alone", "", "free", "--keep-row"},
      {"work", colour, "free", "--keep-row"},
      {"work-and-token", colour + token, "free", "--keep-row"},
      {"token-alone", token, "free", "--keep-row"},
      {"token-0", R"(,"token":{"N":"0"})", "free", "--keep-row"},
      {"released", row(0ns), "free", ""},
      {"kept", row(0ns, token), "free", "--keep-row"},
      {"kept-work", row(0ns, token + colour), "free", "--keep-row"},
      {"dead", row(1ns), "expired", ""},
      {"dead-and-kept", row(1ns, token), "expired", "--keep-row"},
      {"held", row(calendar() + 1h), "held", ""},
      {"held-and-kept", row(calendar() + 1h, token), "held", "--keep-row"},
      {"unreadable", R"(,"uuid":{"N":"5"})", "unreadable", ""},
      {"no-token-left", row(0ns, R"(,"token":{"N":"9000000000000000000"})"),
       "unreadable", ""},

      {"absent", "none", "free", "", "lockclient"},
      {"work", colour, "unreadable", "", "lockclient"},
      {"free", R"(,"identifier":{"S":"x"},"expiry":{"N":"0"})", "free", "",
       "lockclient"},
      {"held", R"(,"identifier":{"S":"x"},"expiry":)" + later, "held", "",
       "lockclient"},

      {"absent", "none", "free", "an item", "lease"},
      {"work", colour, "unreadable", "", "lease"},
      {"free", R"(,"LeaseUntil":{"N":"0"})" + colour, "free", "", "lease"},
      {"held", R"(,"ProcessID":{"S":"x"},"LeaseUntil":)" + later, "held", "",
       "lease"},

      {"absent", "none", "free", "", "dynamolock"},
      {"work", colour, "unreadable", "", "dynamolock"},
      {"free", go + released + colour, "free", "", "dynamolock"},
      {"held", go, "held", "", "dynamolock"},
      {"barred", go + released + R"(,"isNonAcquirable":{"S":"1"})",
       "unreadable", "", "dynamolock"},

      {"absent", "none", "free", "", "awslabs"},
      {"free", java + released, "free", "", "awslabs"},
      {"held", java, "held", "", "awslabs"},
  };
  const Stage stage(kind);
  const auto about = [&stage](const char* what, const std::string& name) {
    return R"({"TableName":")" + stage.engine.table() + R"(",")" + what +
           R"(":{"name":{"S":")" + stage.prefix + name + R"("})";
  };
  for (const Case& one : cases) {
    const std::string name = one.layout + "-" + one.name;
    BOOST_TEST_CONTEXT(name) {
      const std::string where =
          "--layout " + one.layout + " --key name " + name;
      const auto write = [&] {
        stage.engine.must_call("DeleteItem", about("Key", name) + "}}");
        if (one.attributes == "none") return;
        stage.engine.must_call("PutItem",
                               about("Item", name) + one.attributes + "}}");
      };
      write();
      const bool readable = one.state != "unreadable";
      const Ran shown = ran_line("show --json " + where, stage.place);
      BOOST_TEST(shown.status == (readable ? 0 : 78), shown.said);
      const auto told = [&one](const rapidjson::Value& json) {
        BOOST_TEST(text_in(json, "state") == one.state);
        BOOST_TEST(json.HasMember("needs") == !one.needs.empty());
        if (json.HasMember("needs")) {
          BOOST_TEST(text_in(json, "needs") == one.needs);
        }
      };
      if (readable) {
        told(parsed(shown.said));
        const Ran said = ran_line("show " + where, stage.place);
        BOOST_TEST(has(said.said, "\nstate  " + one.state + "\n"), said.said);
        BOOST_TEST(has(said.said, "\nneeds  " + one.needs) ==
                   !one.needs.empty());
      }
      if (one.attributes != "none") {
        const auto all = parsed(
            ran_line("list --json --layout " + one.layout + " --key name",
                     stage.place)
                .said);
        int found = 0;
        for (const auto& json : all.GetArray()) {
          if (text_in(json, "name") != name) continue;
          ++found;
          told(json);
        }
        BOOST_TEST(found == 1);
      }
      for (const std::string option : {"", "--keep-row", "--keep-row=no"}) {
        if (one.layout == "lease" && option == "--keep-row=no") continue;
        write();
        const bool fits = one.needs.empty() || one.needs == option;
        const int expected = !readable || !fits    ? 78
                             : one.state == "held" ? 75
                                                   : 0;
        const Ran ran =
            ran_line("run -n " + option + " " + where + " true", stage.place);
        BOOST_TEST(ran.status == expected, option << ": " << ran.said);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(list_is_by_name) {
  const Stage stage;
  const auto table = std::make_shared<ddbmutex::Table>(stage.where());
  std::vector<std::unique_ptr<DdbMutex>> held;
  for (const char* name : {"c", "a", "d", "b"}) {
    held.push_back(std::make_unique<DdbMutex>(name, unhurried(table)));
    held.back()->lock();
  }
  const auto all = parsed(ran_line("list -j", stage.place).said);
  std::string names;
  for (const auto& one : all.GetArray()) names += text_in(one, "name");
  BOOST_TEST(names == "abcd");
}

BOOST_DATA_TEST_CASE(lock_is_freed_by_force, data::make(engine_kinds()), kind) {
  const Stage stage(kind);
  auto mutex = stage.holder();
  // Nobody can be asked.
  Ran ran = ran_line("unlock job", stage.place);
  BOOST_TEST(ran.status == 64);
  BOOST_TEST(has(ran.said, "give --yes"), ran.said);
  mutex->renew();  // It is held still.

  ran = ran_line("unlock --yes job", stage.place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(has(ran.said, "\nholder somebody\n"), ran.said);
  BOOST_TEST(has(ran.said, "\nFreed.\n"), ran.said);
  std::error_code error;
  mutex->renew(error);
  BOOST_TEST((error == Errc::lease_lost));

  ran = ran_line("unlock --yes job", stage.place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(has(ran.said, "Nobody holds it.\n"), ran.said);
  ran = ran_line("unlock -y -j job", stage.place);
  BOOST_TEST(!parsed(ran.said)["freed"].GetBool());

  mutex = stage.holder();
  ran = ran_line("unlock -y -j job", stage.place);
  const auto json = parsed(ran.said);
  BOOST_TEST(json["freed"].GetBool());
  BOOST_TEST(text_in(json, "holder") == "somebody");
}

// The row may be work, which only its other attributes tell.
BOOST_DATA_TEST_CASE(lock_freed_by_force_leaves_the_row_where_others_share_it,
                     data::make(engine_kinds()), kind) {
  const std::map<std::string, std::string> rows = {
      {"lockclient",
       R"("identifier":{"S":"x"},"expiry":{"N":"4000000000000000000"})"},
      {"lease",
       R"("ProcessID":{"S":"x"},"LeaseUntil":{"N":"4000000000000000000"})"},
      {"dynamolock", R"("ownerName":{"S":"o"},"leaseDuration":{"S":"60s"},)"
                     R"("recordVersionNumber":{"S":"x"})"},
      {"awslabs", R"("ownerName":{"S":"o"},"leaseDuration":{"S":"60000"},)"
                  R"("recordVersionNumber":{"S":"x"})"},
  };
  const Stage stage(kind);
  for (const auto& [layout, row] : rows) {
    write_row(stage.engine, layout, row + R"(,"colour":{"S":"red"})");
    const std::string options =
        " --layout " + layout + " --key name --prefix= ddblock-" + layout;
    const Ran ran = ran_line("unlock --yes" + options, stage.place);
    BOOST_TEST(ran.status == 0, ran.said);
    BOOST_TEST(has(ran.said, "\nFreed.\n"), ran.said);
    BOOST_TEST(has(raw_row(stage.engine, layout), "colour 0 red\n"), layout);
    BOOST_TEST(
        has(ran_line("show" + options, stage.place).said, "\nstate  free\n"));
    BOOST_TEST(ran_line("run -n" + options + " true", stage.place).status == 0);
    delete_row(stage.engine, layout);
  }
}

BOOST_AUTO_TEST_CASE(unlock_asks_in_a_terminal) {
  const Stage stage;
  auto mutex = stage.holder();
  for (const char* answer : {"n\n", "\n", "yep\n", "\x04"}) {
    Pty terminal(program_with({"unlock", "job"}), stage.place);
    BOOST_TEST_REQUIRE(terminal.says("Free it? [y/N] "), terminal.text());
    BOOST_TEST(has(terminal.text(), "holder somebody"));
    terminal.type(answer);
    BOOST_TEST(terminal.end() == 1, answer << terminal.text());
  }
  mutex->renew();

  // Another has it by the time the answer comes.
  Pty late(program_with({"unlock", "job"}), stage.place);
  BOOST_TEST_REQUIRE(late.says("Free it? [y/N] "), late.text());
  mutex->unlock();
  mutex = stage.holder();
  late.type("y\n");
  BOOST_TEST(late.end() == 75);
  BOOST_TEST(has(late.text(), "has changed meanwhile"), late.text());
  mutex->renew();

  // He who was shown has it still.
  for (const Words& words :
       {Words{"unlock", "job"}, Words{"unlock", "-j", "job"}}) {
    Pty terminal(program_with(words), stage.place);
    BOOST_TEST_REQUIRE(terminal.says("holder somebody"), terminal.text());
    BOOST_TEST_REQUIRE(terminal.says("Free it? [y/N] "), terminal.text());
    mutex->renew();
    terminal.type("yes\n");
    BOOST_TEST(terminal.end() == 0, terminal.text());
    const bool is_json = words.size() == 3;
    BOOST_TEST(has(terminal.text(), is_json ? "\"freed\":true" : "Freed."),
               terminal.text());
    mutex = stage.holder();
  }
}

namespace {

// Whatever a shell could make of them.
const Words kNames = {"a b",          "it's",         "s\"ay", "$(echo >evil)",
                      "`echo >evil`", "x:y:z",        "-dash", "caf\xc3\xa9",
                      "!bang",        ";echo >evil",  "*",     "~root",
                      "b\\ackslash",  "<(echo>evil)", "#hash", "{c,d}"};

struct Locks {
  explicit Locks(const Stage& stage) {
    const auto table = std::make_shared<ddbmutex::Table>(stage.where());
    Words names = kNames;
    names.insert(names.end(), {"tab\tname", "esc\x1b[2J", "two\nlines"});
    for (const std::string& name : names) {
      held.push_back(std::make_unique<DdbMutex>(name, unhurried(table)));
      held.back()->lock();
    }
  }
  std::vector<std::unique_ptr<DdbMutex>> held;
};

}  // namespace

BOOST_AUTO_TEST_CASE(names_are_listed_for_the_shells) {
  const Stage stage;
  const Locks locks(stage);
  const auto offers = [&](const std::string& words) {
    const Ran ran =
        ran_line("completion names fish ddbmutex " + words, stage.place);
    BOOST_TEST(ran.status == 0);
    return as_set(all_matches(ran.said, "^(.+)$"));
  };
  Offers all = as_set(kNames);
  BOOST_TEST(offers("show --") == all, boost::test_tools::per_element());
  all.erase("-dash");  // It would be an option.
  for (const char* words : {"show", "run", "watch -j", "unlock --yes",
                            "run -qn --ttl=20s", "run -E 1"}) {
    BOOST_TEST(offers(words) == all, words);
  }
  // No NAME is due, or the table is not there.
  for (const char* words :
       {"", "list", "run -t", "show a", "run a", "run a --", "show --help",
        "run --nonsense", "run --ttl soon", "show -t none", "nonsense"}) {
    BOOST_TEST(offers(words) == Offers{}, words);
  }
}

// A table that others share may have very many items, and few of them locks.
BOOST_AUTO_TEST_CASE(names_are_not_waited_for_where_pages_have_none) {
  const Stage stage;
  const Locks locks(stage);
  constexpr int kMostPages = 100;
  std::atomic<int> pages{0};
  ScriptedServer server([&](const SeenRequest& request) {
    const int page = ++pages;
    Reply reply = page == 1 ? Reply::ok(stage.engine.forward(request).body)
                            : Reply::ok(R"({"Items":[],"Count":0})");
    if (page < kMostPages) {
      reply.body.insert(reply.body.rfind('}'),
                        R"(,"LastEvaluatedKey":{"name":{"S":"page )" +
                            std::to_string(page) + "\"}}");
    }
    if (page > 1) reply.delay = 100ms;
    return reply;
  });
  const Ran ran = ran_line("completion names fish ddbmutex show --",
                           stage.place_at(server.url()));
  BOOST_TEST(pages < kMostPages);
  BOOST_TEST(as_set(all_matches(ran.said, "^(.+)$")) == as_set(kNames),
             boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(bash_completes_names_of_locks_and_evaluates_none) {
  const Stage stage;
  const Locks locks(stage);
  const Home home;
  Words place = stage.place;
  const std::string program =
      std::filesystem::absolute(program_here()).string();
  place.push_back("PATH=" + program.substr(0, program.rfind('/')) +
                  ":/usr/bin:/bin");
  place.push_back("HOME=" + home.root.string());
  place.push_back("LC_ALL=C.UTF-8");
  place.push_back("HISTFILE=");
  Pty bash({"/bin/bash", "--norc", "--noprofile", "-i"}, place, 24, 200);
  bash.type(
      "PS1=; cd; . <(ddbmutex completion bash); "
      "bind 'set enable-bracketed-paste off'; echo re''ady\n");
  BOOST_TEST_REQUIRE(bash.says("ready\r\n"), bash.text());
  const std::map<std::string, std::string> cases = {
      {"show a", "a b"},
      {"show 'a", "a b"},
      {"show \"a", "a b"},
      {"show a\\ ", "a b"},
      {"show it", "it's"},
      {"show 'i", "it's"},
      {"show \"it'", "it's"},
      {"show s", "s\"ay"},
      {"show \"s", "s\"ay"},
      {"show \\$", "$(echo >evil)"},
      {"show '$", "$(echo >evil)"},
      {"show \\`", "`echo >evil`"},
      {"show x", "x:y:z"},
      {"show x:", "x:y:z"},
      {"show x:y:", "x:y:z"},
      {"show 'x:y", "x:y:z"},
      {"show -- -", "-dash"},
      {"show caf", "caf\xc3\xa9"},
      {"show \\!", "!bang"},
      {"show \\;", ";echo >evil"},
      {"show \\*", "*"},
      {"show \\~", "~root"},
      {"show b", "b\\ackslash"},
      {"show \\<", "<(echo>evil)"},
      {"show \\#", "#hash"},
      {"show \\{", "{c,d}"},
      {"show --timeout=3s -v --region us-east-1 x", "x:y:z"},
      {"show --endpoint " + stage.engine.url() + " a", "a b"},
      {"show --prefix='" + stage.prefix + "' a", "a b"},
  };
  for (const auto& [typed, name] : cases) {
    bash.type("clear -x; ddbmutex " + typed + "\t\n");
    BOOST_TEST_REQUIRE(bash.says("name   " + name + "\r\n"),
                       typed << " in " << bash.text());
  }
  bash.type("echo e*\n");
  BOOST_TEST(bash.says("e*\r\n"), bash.text());
}

// tail -f does the same.
BOOST_AUTO_TEST_CASE(watch_ends_when_its_reader_has_gone) {
  const Stage stage;
  const auto status = [&](const std::string& how) {
    const Home home;
    Process shell(
        {{"/bin/sh", "-c",
          how + "{ " + program_here() + " watch -i 1d job; echo $? >" +
              (home.root / "status").string() + "; } | head -1"},
         stage.place});
    const std::string line = shell.channel().line();
    BOOST_TEST(has(line, " job free"), line);
    BOOST_TEST(shell.wait() == 0);
    BOOST_TEST(shell.complaints() == "");
    return read_file(home.root / "status");
  };
  BOOST_TEST(status("") == "141\n");
  BOOST_TEST(status("trap '' PIPE; ") == "70\n");
}

BOOST_AUTO_TEST_CASE(watch_in_a_pipe_tells_each_change) {
  const Stage stage;
  const Words words = {"watch", "-i", "100ms"};
  Process all({program_with(words), stage.place});
  Process one(
      {program_with({"watch", "-i", "100ms", "-j", "job"}), stage.place});
  // What is free is told only of the one that is named.
  BOOST_TEST(text_in(parsed(one.channel().line()), "state") == "free");

  auto mutex = stage.holder();
  auto json = parsed(one.channel().line());
  BOOST_TEST(text_in(json, "state") == "held");
  BOOST_TEST(text_in(json, "holder") == "somebody");
  const std::string stamp = "\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\dZ";
  BOOST_TEST(!all_matches(text_in(json, "time"), "^(" + stamp + ")$").empty());
  std::string line = all.channel().line();
  BOOST_TEST(
      !all_matches(line, "^(" + stamp + ") job held by somebody, ").empty(),
      line);

  // A renewal is no change: what comes next is what comes after it.
  mutex->renew();
  mutex->unlock();
  BOOST_TEST(text_in(parsed(one.channel().line()), "state") == "free");
  line = all.channel().line();
  BOOST_TEST(has(line, "Z job free"), line);

  one.signal(SIGTERM);
  BOOST_TEST(one.wait() == 128 + SIGTERM);
  all.signal(SIGINT);
  BOOST_TEST(all.wait() == 128 + SIGINT);
  BOOST_TEST(one.complaints() == "");
}

BOOST_AUTO_TEST_CASE(watch_tells_a_lease_that_is_over_and_who_comes_next) {
  const Stage stage;
  // As of a holder that died.
  auto mutex = stage.holder([](ddbmutex::Options& options) {
    options.ttl = 1s;
    options.request_timeout.reset();
    options.auto_renew = false;
  });
  Process watch({program_with({"watch", "-i", "100ms", "job"}), stage.place});
  std::string line = watch.channel().line();
  while (!has(line, " job expired, was held by somebody")) {
    BOOST_TEST_REQUIRE(has(line, " job held by somebody"), line);
    line = watch.channel().line();
  }
  const auto next = stage.holder();
  line = watch.channel().line();
  BOOST_TEST(has(line, " job held by somebody"), line);
}

BOOST_AUTO_TEST_CASE(watch_tells_a_lock_that_changed_hands_between_two_looks) {
  const Stage stage;
  std::atomic<bool> hangs{false};
  std::atomic<int> hanging{0};
  ScriptedServer server([&](const SeenRequest& request) {
    if (!hangs) return stage.engine.forward(request);
    ++hanging;
    Reply reply;
    reply.hangs = true;
    reply.then = [&](const SeenRequest& late) {
      return stage.engine.forward(late);
    };
    return reply;
  });
  const Words place = stage.place_at(server.url());
  auto mutex = stage.holder();
  Process watch({program_with({"watch", "-i", "100ms"}), place});
  BOOST_TEST(has(watch.channel().line(), " job held by somebody"));
  hangs = true;
  BOOST_TEST(eventually([&] { return hanging > 0; }));
  mutex->unlock();
  mutex = stage.holder(
      [](ddbmutex::Options& options) { options.owner = "another"; });
  hangs = false;
  server.release();
  const std::string line = watch.channel().line();
  BOOST_TEST(has(line, " job held by another"), line);
}

BOOST_AUTO_TEST_CASE(watch_bears_with_what_may_pass) {
  const Stage stage;
  std::atomic<bool> is_down{false};
  ScriptedServer server([&](const SeenRequest& request) {
    return is_down ? Reply::error(500) : stage.engine.forward(request);
  });
  const Words place = stage.place_at(server.url());
  Process watch({program_with({"watch", "-i", "100ms", "job"}), place});
  BOOST_TEST(has(watch.channel().line(), " job free"));
  is_down = true;
  BOOST_TEST(eventually([&] { return has(watch.complaints(), "\n"); }));
  BOOST_TEST(watch.complaints().rfind("ddbmutex: cannot inspect", 0) == 0u,
             watch.complaints());
  const auto mutex = stage.holder();
  is_down = false;
  BOOST_TEST(has(watch.channel().line(), " job held by somebody"));
}

BOOST_AUTO_TEST_CASE(watch_in_a_terminal_redraws_and_leaves_it_as_it_was) {
  const Stage stage;
  const std::string enter = "\x1b[?1049h\x1b[?25l";
  const std::string leave = "\x1b[?25h\x1b[?1049l";
  auto mutex = stage.holder();
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Pty terminal(program_with({"watch", "-i", "100ms"}), stage.place);
    BOOST_TEST_REQUIRE(terminal.says("somebody\x1b[K"), terminal.text());
    BOOST_TEST(terminal.text().rfind(enter + "\x1b[H", 0) == 0u,
               terminal.text());
    BOOST_TEST(has(terminal.text(), "NAME  STATE  RENEWED"), terminal.text());
    BOOST_TEST(terminal.says("\x1b[H"));  // Again.
    if (signal == SIGINT) {
      terminal.type(Pty::kCtrlC);
    } else {
      kill(terminal.pid(), signal);
    }
    BOOST_TEST(terminal.end() == 128 + signal);
    BOOST_TEST(terminal.text().rfind(leave) + leave.size() ==
               terminal.text().size());
  }
}

BOOST_AUTO_TEST_CASE(watch_fits_the_terminal) {
  const Stage stage;
  const auto table = std::make_shared<ddbmutex::Table>(stage.where());
  std::vector<std::unique_ptr<DdbMutex>> held;
  for (int i = 0; i < 6; ++i) {
    held.push_back(std::make_unique<DdbMutex>(
        "a-name-that-is-long-" + std::to_string(i), unhurried(table)));
    held.back()->lock();
  }
  const auto first_screen = [&](int height) {
    Pty terminal(program_with({"watch", "-i", "100ms"}), stage.place, height,
                 30);
    BOOST_TEST_REQUIRE(terminal.says("\x1b[J"), terminal.text());
    return all_matches(between(terminal.text(), "\x1b[H", "\x1b[J"),
                       "([^\r\n]*)\x1b\\[K");
  };
  BOOST_TEST(first_screen(5).back() == "... 4 more");
  BOOST_TEST(first_screen(7).back() == "... 2 more");
  for (const int height : {5, 7, 8}) {
    const Words lines = first_screen(height);
    BOOST_TEST(static_cast<int>(lines.size()) == height);
    for (const std::string& line : lines) BOOST_TEST(line.size() <= 30u, line);
  }
  BOOST_TEST(has(first_screen(8).back(), "a-name-that-is-long-5"));
}

BOOST_AUTO_TEST_CASE(watch_stops_and_goes_on_as_others_do) {
  const Stage stage;
  Pty terminal(program_with({"watch", "-i", "100ms"}), stage.place);
  BOOST_TEST_REQUIRE(terminal.says("\x1b[J"), terminal.text());
  terminal.type(Pty::kCtrlZ);
  int status = 0;
  BOOST_TEST_REQUIRE(waitpid(terminal.pid(), &status, WUNTRACED) ==
                     terminal.pid());
  BOOST_TEST(WIFSTOPPED(status));
  BOOST_TEST(terminal.says("\x1b[?1049l"), terminal.text());
  kill(terminal.pid(), SIGCONT);
  BOOST_TEST(terminal.says("\x1b[?1049h"), terminal.text());
  BOOST_TEST(terminal.says("\x1b[H"), terminal.text());
  terminal.type(Pty::kCtrlC);
  BOOST_TEST(terminal.end() == 128 + SIGINT);
}

BOOST_AUTO_TEST_SUITE_END()
