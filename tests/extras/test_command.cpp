// The command ddbmutex.  First its parts, as functions: how it reads its
// command line and what it prints.  Then the program itself, with engines, in
// pipes and in terminals.  test_command_run.cpp has `ddbmutex run`.
#include <rapidjson/document.h>
#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <future>
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
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/keyed_table.hpp"
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

// The settings that are not the default, as one line.
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
  if (settings.clean_up) add("clean_up", *settings.clean_up ? "yes" : "no");
  for (const auto& [key, value] : settings.tags) add("tag", key + ":" + value);
  add("json", flag(settings.json));
  add("verbose", flag(settings.verbose));
  return all;
}

// The settings of a command line and these variables; "! " and the error if it
// is refused.
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
  info.left = lease - age;
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
  return program_path("../examples/ddbmutex/ddbmutex");
}

Words environment_at(const Whereabouts& where) {
  Words all = environment_of(where);
  all.push_back("DDBMUTEX_TABLE=" + where.table);
  all.push_back("TERM=xterm");
  return all;
}

// Runs the program.  `line` follows its name, as in a shell.  Standard input is
// not a terminal.
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

// A table of an engine, and an environment in which the program finds it.
struct Stage {
  Stage() : place(environment_at(at(engine))) {
    // So that `list` shows no other test's locks.
    place.push_back("DDBMUTEX_PREFIX=" + prefix);
  }

  ddbmutex::TableOptions where() const {
    ddbmutex::TableOptions options = table_options(engine);
    options.prefix = prefix;
    return options;
  }
  // Holds the lock "job" as "somebody".
  std::unique_ptr<DdbMutex> holder(
      const std::function<void(ddbmutex::Options&)>& change = nullptr) const {
    auto options = on_table(std::make_shared<ddbmutex::Table>(where()));
    options.owner = "somebody";
    if (change) change(options);
    auto mutex = std::make_unique<DdbMutex>("job", options);
    mutex->lock();
    return mutex;
  }

  // What write_row() calls the lock of that name.
  std::string row(const std::string& name) const { return group + name; }

  Engine& engine = Engine::running(any_engine_kind());
  const std::string group = fresh_name() + "-";
  const std::string prefix = "ddblock-" + group;
  Words place;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(command_line)

BOOST_AUTO_TEST_CASE(words_of_the_command_line_become_settings) {
  const std::map<std::string, std::string> cases = {
      {"--help", "help"},
      {"run --help", "help of=run"},
      {"--version", "version"},
      {"run job true", "run name=job arguments=true"},
      {"run job -- true", "run name=job arguments=true"},
      {"run -- -job -- true", "run name=-job arguments=true"},
      {"run job -- -x --ttl 5", "run name=job arguments=-x|--ttl|5"},
      {"run job --ttl 5 -- ls", "run name=job arguments=ls ttl=5000"},
      {"run -w 10 job ls", "run name=job arguments=ls wait=10000"},
      {"run -w 1 -w 2 job ls", "run name=job arguments=ls wait=2000"},
      {"run --try job ls", "run name=job arguments=ls wait=0"},
      {"run -nc job ls", "run name=job arguments=ls wait=0 shell=yes"},
      {"run --grace 1s --keep-row --owner me job ls",
       "run name=job arguments=ls grace=1000 keep_row=yes owner=me"},
      {"run -nE0 job ls", "run name=job arguments=ls wait=0 conflict=0"},
      {"run --wait 0.5 --min-hold 1.5h job ls",
       "run name=job arguments=ls wait=500 min_hold=5400000"},
      {"show job", "show name=job"},
      {"show -j job -t other", "show name=job table=other json=yes"},
      {"show -- -j", "show name=-j"},
      {"list --layout dynamolock --key id", "list layout=3 key=id"},
      {"list --prefix= --calendar-margin 3s", "list prefix=\"\" margin=3000"},
      {"list --region r --endpoint http://h:1 --profile p -v",
       "list region=r endpoint=http://h:1 profile=p verbose=yes"},
      {"watch -i 500ms job", "watch name=job interval=500"},
      {"unlock job -y", "unlock name=job yes=yes"},
      {"create-table --clean-up", "create-table clean_up=yes"},
      {"create-table --clean-up=no --tag team=a=b --tag cost=",
       "create-table clean_up=no tag=team:a=b tag=cost:"},
  };
  for (const auto& [line, told] : cases) {
    BOOST_TEST(read(line) == told, line << ": " << read(line));
  }
}

BOOST_AUTO_TEST_CASE(wrong_command_line_is_refused_with_its_word) {
  const std::map<std::string, std::string> cases = {
      {"", "no subcommand is given"},
      {"lock", "no subcommand `lock`"},
      {"--table x list", "--table: options follow the subcommand"},
      {"run", "NAME is missing; say `ddbmutex run NAME"},
      {"run job", "COMMAND is missing"},
      {"show", "NAME is missing; say `ddbmutex show NAME`"},
      {"list a", "`a` is unexpected; say `ddbmutex list`"},
      {"run --tabel x job ls", "--tabel: there is no such option; `ddbmutex"},
      {"show --ttl 5 job", "--ttl: not an option of `show`"},
      {"run --ttl", "--ttl: its TIME is missing"},
      {"run --ttl soon job ls", "--ttl: `soon` is not a time such as 90, 0.5"},
      {"run -w 0.1234567890 job ls", "-w: `0.1234567890` has too many digits"},
      {"run -E 256 job ls", "-E: must be a number from 0 to 255, not `256`"},
      {"run --try --wait 5 job ls", "--try and --wait exclude each other"},
      {"run --grace 1s --ttl 2999ms job ls",
       "--grace: is more than a third of --ttl: 1.0s of 2.9s"},
      {"list --json=maybe", "--json: must be `yes` or `no`, not `maybe`"},
      {"list --layout other", "--layout: must be one of ddblock lockclient"},
      {"list --table=", "--table: is empty"},
      {"watch -i 99ms", "-i: is less than 100ms: `99ms`"},
      {"create-table --tag team", "--tag: must be KEY=VALUE, not `team`"},
      {"create-table --tag =x", "--tag: must be KEY=VALUE, not `=x`"},
      {"list --clean-up", "--clean-up: not an option of `list`"},
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
      {"90", "90000"},     {"5m", "300000"},  {"1h", "3600000"},
      {"250ms", "250"},    {"0", "0"},        {"", "!"},
      {"1 s", "!"},        {"-1", "!"},       {"1h30m", "!"},
      {"1000000000", "!"}, {"0.5", "500"},    {"1.5h", "5400000"},
      {"2.50ms", "3"},     {"4.35s", "4350"}, {".", "!"},
      {"5.", "!"},         {"1,5", "!"},      {"1.-5", "!"},
      {"1e3", "!"},        {"0x1", "!"},      {"0.1234567890", "!"},
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
  // --try on the command line also overrides the variable of --wait.
  BOOST_TEST(read({"run", "-n", "job", "ls"}, {{"DDBMUTEX_WAIT", "9s"}}) ==
             "run name=job arguments=ls wait=0");
  // Variables of other subcommands' options are ignored.
  BOOST_TEST(read({"list"}, {{"DDBMUTEX_TTL", "soon"}}) == "list");
  BOOST_TEST(has(read(words, {{"DDBMUTEX_TTL", "soon"}}),
                 "! DDBMUTEX_TTL: `soon` is not a time"));
  BOOST_TEST(
      has(read({"run", "--ttl=10s", "job", "ls"}, {{"DDBMUTEX_GRACE", "20s"}}),
          "! DDBMUTEX_GRACE: is more than a third of --ttl"));
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
    BOOST_TEST(command::is_transient(code));
  }
  for (const Errc code : {Errc::no_keys, Errc::bad_keys, Errc::expired_keys,
                          Errc::access_denied, Errc::bad_certificate}) {
    BOOST_TEST(exit(code) == 77);
    BOOST_TEST(!command::is_transient(code));
  }
  BOOST_TEST(exit(Errc::lease_lost) == 76);
  for (const Errc code : {Errc::no_table, Errc::wrong_table,
                          Errc::unready_table, Errc::replicated_table,
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

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(command_words)

BOOST_AUTO_TEST_CASE(controls_are_not_printed) {
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

BOOST_AUTO_TEST_CASE(json_is_valid_whatever_the_lock_contains) {
  LockInfo info = held("a\"\\\n\x01\xff\xc3\xa9", 60s, 1s);
  info.sort_value = std::string("\0s", 2);
  info.token = 18446744073709551615u;
  info.data = std::string("\0\xff\x10\x80", 4);
  info.item = R"({"l":{"L":[{"S":"text"},{"BOOL":false}]},)"
              R"("s":{"BS":["TQ=="]}})";
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

  // Controls that a terminal would obey.
  info.owner = "\xc2\x9b\x7f";
  BOOST_TEST(has(command::json_of(info), R"("holder":"\u009b\u007f")"));

  info = {};
  info.name = "x";
  BOOST_TEST(command::json_of(info) == R"({"name":"x","state":"free"})");
  info = held("x", 0s, 0s);
  info.age.reset();
  info.left.reset();
  BOOST_TEST(parsed(command::json_of(info))["left_ms"].IsNull());
  info.problem = "no uuid";
  BOOST_TEST(text_in(parsed(command::json_of(info)), "problem") == "no uuid");
  BOOST_TEST(command::json_of(std::string("a\"b")) == "\"a\\\"b\"");
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(command_completion)

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
  BOOST_TEST(has(ran.said, "Table " + where.table + " is created.  "),
             ran.said);
  ran = ran_line(words, place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "in\n");

  ran = ran_line("create-table --json", place);
  BOOST_TEST(ran.status == 0);
  BOOST_TEST(ran.said == "{\"table\":\"" + where.table +
                             "\",\"created\":false,\"clean_up\":false}\n");
  engine.delete_table(where.table);
}

// A pause between two requests takes 5 s at most.  So the one that goes beyond
// the first two seconds begins long before the time is up.  What `run` finds
// out about the holder meanwhile may come first.
BOOST_AUTO_TEST_CASE(what_takes_long_says_early_what_it_is_about) {
  std::vector<std::future<Ran>> all;
  for (const char* line :
       {"show --timeout 12s --endpoint http://127.0.0.1:9 job",
        "run --wait 12s --endpoint http://127.0.0.1:9 job true",
        "run --wait 12s --endpoint http://localhost.invalid job true"}) {
    all.push_back(std::async(std::launch::async, [line] {
      return ran_line(line + std::string(" 2>&1 >/dev/null"),
                      environment_at({"http://127.0.0.1:9", "locks"}));
    }));
  }
  for (std::future<Ran>& one : all) {
    const Ran ran = one.get();
    BOOST_TEST(ran.status == 69, ran.said);
    BOOST_TEST(all_matches(ran.said, "(ddbmutex: failing for )").size() == 1u,
               ran.said);
  }
}

BOOST_AUTO_TEST_CASE(errors_are_one_line_on_standard_error) {
  ScriptedServer server([](const SeenRequest&) {
    return Reply::error(
        400, R"({"__type":"com.amazon.coral.service#AccessDeniedException",)"
             R"("message":"not you"})");
  });
  const std::map<std::string, int> cases = {
      {"show --ttl 5 job", 64},
      {"run --ttl 1ms job true", 64},
      {"list", 77},
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
  // Where they were looked for is said only with -v.
  BOOST_TEST(!has(none.said, "AWS_WEB_IDENTITY_TOKEN_FILE"), none.said);
  const Ran all = ran_line("show -v job", without_keys);
  BOOST_TEST(has(all.said, "AWS_WEB_IDENTITY_TOKEN_FILE"), all.said);
}

BOOST_AUTO_TEST_CASE(lock_is_shown_and_listed) {
  const Stage stage;
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

// Between the end of a lease and the time when another gets the lock, it is
// still held.
BOOST_AUTO_TEST_CASE(lock_is_shown_as_expired_when_run_gets_it) {
  const Stage stage;
  for (const bool has_lease : {true, false}) {
    const std::string name = fresh_name();
    const auto end = calendar() + 1s;
    write_row(stage.engine, stage.row(name),
              has_lease ? record("u", end, 1s) : record_without_lease(end));
    const auto state = [&] {
      const auto json = parsed(ran_line("show -j " + name, stage.place).said);
      BOOST_TEST(json["left_ms"].IsInt64());
      return text_in(json, "state");
    };
    BOOST_TEST(eventually([&] { return state() == "expired"; }));
    const Words line =
        all_matches(ran_line("list", stage.place).said, "^(" + name + " .*)$");
    BOOST_TEST_REQUIRE(line.size() == 1u);
    BOOST_TEST(has(line[0], " expired "), line[0]);
    BOOST_TEST(ran_line("run -n " + name + " true", stage.place).status == 0);
  }
}

BOOST_AUTO_TEST_CASE(item_that_is_not_a_lock_is_called_that) {
  const Stage stage;
  const std::map<std::string, std::string> items = {
      {"bare", R"("colour":{"S":"red"})"},
      {"odd", R"("uuid":{"N":"5"})"},
      {"text", R"("uuid":{"S":"u"},"expires":{"S":"soon"})"}};
  for (const auto& [name, attributes] : items) {
    write_row(stage.engine, stage.row(name), attributes);
  }
  const auto all = parsed(ran_line("list -j", stage.place).said);
  BOOST_TEST_REQUIRE(all.Size() == items.size());
  for (const auto& one : all.GetArray()) {
    BOOST_TEST(text_in(one, "state") == "not a lock");
  }
  const Ran listed = ran_line("list", stage.place);
  for (const auto& [name, attributes] : items) {
    BOOST_TEST(has(listed.said, "\n" + name), listed.said);
    const Ran shown = ran_line("show " + name + " 2>&1", stage.place);
    BOOST_TEST(has(shown.said, "not a lock"), shown.said);
    BOOST_TEST(shown.status == (name == "bare" ? 0 : 78));
    Process watch({program_with({"watch", name}), stage.place});
    const std::string line = watch.channel().line();
    BOOST_TEST(has(line, "Z " + name + " not a lock"), line);
    watch.signal(SIGTERM);
    watch.wait();
  }
  BOOST_TEST(has(listed.said, "not a lock, needs --keep-row"), listed.said);
  BOOST_TEST(ran_line("run -n --keep-row bare true", stage.place).status == 0);
  BOOST_TEST(has(ran_line("show bare", stage.place).said, "state  free"));
}

BOOST_AUTO_TEST_CASE(table_of_another_key_is_refused_with_its_key) {
  Engine& engine = Engine::running(any_engine_kind());
  const KeyedTable keyed(engine, {{"id", "S"}});
  const Words place = environment_at({at(engine).url, keyed.name()});
  for (const std::string line :
       {"list", "list -j", "watch", "show x", "run -n x true", "create-table",
        "create-table --clean-up"}) {
    const Ran ran = ran_line(line + " 2>&1", place);
    BOOST_TEST(ran.status == 78, line << ": " << ran.said);
    BOOST_TEST(is_one_line(ran.said), line << ": " << ran.said);
    BOOST_TEST(has(ran.said, "its key is the string \"id\" alone"), ran.said);
    BOOST_TEST(has(ran.said, "give its key with --key "), ran.said);
  }
  BOOST_TEST(ran_line("list --key id", place).status == 0);
}

BOOST_AUTO_TEST_CASE(table_is_changed_only_by_the_option_for_it) {
  const std::string is =
      R"({"TableStatus":"ACTIVE","KeySchema":[{"AttributeName":"name",)"
      R"("KeyType":"HASH"}],"AttributeDefinitions":[{"AttributeName":"name",)"
      R"("AttributeType":"S"}]})";
  bool exists = true;
  ScriptedServer server([&](const SeenRequest& request) {
    const std::string action = action_of(request);
    if (action == "DescribeTable" && !exists) {
      return failure(400, "ResourceNotFoundException");
    }
    if (action == "DescribeTable") return Reply::ok(R"({"Table":)" + is + "}");
    if (action == "CreateTable") {
      return Reply::ok(R"({"TableDescription":)" + is + "}");
    }
    return Reply::ok(R"({"TimeToLiveSpecification":{}})");
  });
  const Words place = environment_at({server.url(), "locks"});
  const auto sent_by = [&](const std::string& line) {
    const auto before = server.requests().size();
    const Ran ran = ran_line("create-table " + line, place);
    BOOST_TEST(ran.status == 0, ran.said);
    std::string all;
    const auto requests = server.requests();
    for (std::size_t i = before; i < requests.size(); ++i) {
      all += action_of(requests[i]) + " ";
      if (has(requests[i].body, R"("Tags":[{"Key":"a","Value":"b"}])")) {
        all += "tagged ";
      }
    }
    return all + "| " + ran.said;
  };
  BOOST_TEST(sent_by("--tag a=b") ==
             "DescribeTable | Table locks exists, and is fit for locks.  Its "
             "clean-up of old items is not turned on (see --clean-up).\n");
  BOOST_TEST(sent_by("--clean-up=no") ==
             "DescribeTable | Table locks exists, and is fit for locks.\n");
  BOOST_TEST(sent_by("--clean-up") ==
             "DescribeTable UpdateTimeToLive | Table locks exists, and is fit "
             "for locks.  Its clean-up of old items is on.\n");
  BOOST_TEST(sent_by("--clean-up -j") ==
             "DescribeTable UpdateTimeToLive | "
             "{\"table\":\"locks\",\"created\":false,\"clean_up\":true}\n");
  exists = false;
  BOOST_TEST(sent_by("--tag a=b") ==
             "DescribeTable CreateTable tagged UpdateTimeToLive | Table locks "
             "is created.  Its clean-up of old items is on.\n");
  BOOST_TEST(sent_by("--clean-up=no") ==
             "DescribeTable CreateTable | Table locks is created.\n");
}

BOOST_AUTO_TEST_CASE(unlock_asks_in_a_terminal) {
  const Stage stage;
  auto mutex = stage.holder();
  for (const char* answer : {"\n", "yep\n"}) {
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

  // The holder that was shown still has it.
  Pty terminal(program_with({"unlock", "job"}), stage.place);
  BOOST_TEST_REQUIRE(terminal.says("Free it? [y/N] "), terminal.text());
  mutex->renew();
  terminal.type("yes\n");
  BOOST_TEST(terminal.end() == 0, terminal.text());
  BOOST_TEST(has(terminal.text(), "Freed."), terminal.text());
}

namespace {

// Names that a shell could misread.
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
      held.push_back(std::make_unique<DdbMutex>(name, on_table(table)));
      held.back()->lock();
    }
  }
  std::vector<std::unique_ptr<DdbMutex>> held;
};

}  // namespace

BOOST_AUTO_TEST_CASE(tab_in_bash_completes_subcommand_option_and_name) {
  const Stage stage;
  const auto mutex = stage.holder();
  Words environment = stage.place;
  const std::string program = std::filesystem::absolute(program_here());
  environment.push_back("PATH=" + program.substr(0, program.rfind('/')) +
                        ":/usr/bin:/bin");
  environment.push_back("INPUTRC=/dev/null");
  Pty bash({"/bin/bash", "--norc", "--noprofile", "-i"}, environment);
  bash.type("PS1=; . <(ddbmutex completion bash); echo rea''dy\n");
  BOOST_TEST_REQUIRE(bash.says("ready\r\n"), bash.text());
  bash.type("ddbmutex sh\t--js\tj\t\n");
  BOOST_TEST(bash.says(R"({"name":"job","state":"held")"), bash.text());
}

BOOST_AUTO_TEST_CASE(names_are_listed_for_the_shells) {
  const Stage stage;
  const Locks locks(stage);
  using Offers = std::set<std::string>;
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
  // No NAME is expected there, or there is no such table.
  for (const char* words :
       {"", "list", "run -t", "show a", "run a", "run a --", "show --help",
        "run --nonsense", "run --ttl soon", "show -t none", "nonsense"}) {
    BOOST_TEST(offers(words) == Offers{}, words);
  }
}

// As `tail -f` does.  If the signal PIPE is ignored, it ends with an error.
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
  // Free locks are reported only to those who name them.
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

  // A renewal is no change, so the next line tells the release.
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

BOOST_AUTO_TEST_SUITE_END()
