// Every source of keys, end to end: a process takes a lock with its keys.  And
// the same configurations beside AWS's own tools, which must find the same
// keys. The key services are stand-ins that check what the real ones check
// (tests/aws).
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/agent.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/stage.hpp"
#include "tests/support/stamps.hpp"
#include "tests/witness/answers.hpp"
#include "tests/witness/combination.hpp"
#include "tests/witness/ours.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tests::Agent;
using tests::eventually;
using tests::has;
using tests::Stage;
using witness::Combination;
using witness::Outcome;
using witness::Outcomes;
using witness::Placed;
using witness::Witness;

// --- End to end --------------------------------------------------------------

// A process finds its keys where AWS's tools would.  It takes a lock over TLS,
// through a gateway that checks each signature and that its keys have not
// expired.  Neither its log nor its errors and counters may contain a secret.
//
// Two sources are missing here, because their addresses are AWS's own: a
// container's relative URI, and a metadata service that nobody has configured.
BOOST_AUTO_TEST_SUITE(aws_sources)

namespace {

const tests::AwsKeys kUser = {"AKIDSOURCE", "the-secret-of-the-source-user"};

struct KeyStage : Stage {
  // The machine's proxy settings do not count.
  KeyStage() { set("no_proxy", "127.0.0.1,localhost"); }

  // Ends the agent, and returns the secret that it has told in its log, in its
  // complaints or in `more`; empty if it has told none.
  std::string secret_told_by(Agent& agent, const std::string& more = {}) {
    agent.end();
    const std::string all = more + log() + agent.process().complaints();
    return has(all, kUser.secret_access_key) ? kUser.secret_access_key
                                             : secret_in(all);
  }
};

struct Source {
  const char* name;
  const char* told;  // Part of what the log calls the source.
  std::function<void(KeyStage&)> set_up;
};

std::ostream& operator<<(std::ostream& out, const Source& source) {
  return out << source.name;
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = {
      {"credentials_file", "profile \"default\"",
       [](KeyStage& it) { it.credentials_file(it.aws.issue(1h)); }},
      {"role_of_a_source_profile", "role/locker",
       [](KeyStage& it) { it.role_of(kUser); }},
      {"credential_process", "credential_process",
       [](KeyStage& it) { it.credential_process(); }},
  };
  return all;
}

}  // namespace

BOOST_DATA_TEST_CASE(lock_is_taken_with_keys_of, sources(), source) {
  KeyStage it;
  source.set_up(it);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), "auto_renew=0");
  const std::string locked = agent.ask("lock a");
  BOOST_TEST(locked == "true", locked << ": " << agent.ask("why a"));
  BOOST_TEST(agent.ask("release a") == "true");
  const auto counts = it.gateway.counts();
  BOOST_TEST(counts.good_signatures() == 3);
  BOOST_TEST(counts.refused_signatures() == 0);
  BOOST_TEST(it.secret_told_by(agent, agent.ask("stats")) == "");
  const std::string log = it.log();
  BOOST_TEST(has(log, "info: keys found: "), log);
  BOOST_TEST(has(log, source.told), log);
}

namespace {

// How long to hold a lock with keys that expire; `make soak` holds it longer.
int seconds_of_holding() {
  const char* told = std::getenv("DDBMUTEX_HOLD_S");
  return told != nullptr ? std::atoi(told) : 12;
}

// Renews the lock again and again for that long, with whatever keys there are,
// and checks that it is held.
void hold_for(Agent& agent, std::chrono::nanoseconds time) {
  const auto end = ddbmutex::BootClock::now() + time;
  while (ddbmutex::BootClock::now() < end) {
    BOOST_TEST_REQUIRE(agent.ask("owns a") == "true");
    tests::pause(100ms);
    BOOST_TEST_REQUIRE(agent.ask("renew a") == "true", agent.ask("why a"));
  }
}

}  // namespace

// No request is signed with expired keys, and the program notices nothing: new
// keys are fetched when a third of the time is left.
BOOST_AUTO_TEST_CASE(lock_is_held_while_keys_end_every_nine_seconds) {
  KeyStage it;
  it.web_identity();
  it.aws.lifetime(9s);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  agent.make("b", tests::fresh_name());
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  const int seconds = seconds_of_holding();
  const tests::Stopwatch watch;
  for (int second = 0; second < seconds; ++second) {
    hold_for(agent, 1s);
    BOOST_TEST_REQUIRE(agent.ask("lock b") == "true", agent.ask("why b"));
    BOOST_TEST_REQUIRE(agent.ask("release b") == "true", agent.ask("why b"));
  }
  BOOST_TEST(agent.ask("events a") == "");
  BOOST_TEST(agent.ask("release a") == "true");
  BOOST_TEST(it.gateway.counts().refused_signatures() == 0);
  BOOST_TEST(it.gateway.counts().expired_keys() == 0);
  // Fetched ahead, 6 s after the last time, but not all the time.
  const int fetches = it.aws.log().count("sts", "AssumeRoleWithWebIdentity");
  BOOST_TEST(fetches >= 1 + seconds / 9);
  BOOST_TEST(fetches <= 2 + watch.ms() / 5000);
  BOOST_TEST(it.secret_told_by(agent) == "");
}

// As when a session is ended early: the library learns it from DynamoDB.
BOOST_AUTO_TEST_CASE(keys_that_dynamodb_says_have_expired_are_replaced_unseen) {
  KeyStage it;
  it.web_identity();
  it.aws.lifetime(2s);
  tests::AwsFault wrong{"sts", "*", "alter"};
  wrong.set = {{"Expiration", "2099-01-01T00:00:00Z"}};
  it.aws.fault(wrong);
  Agent agent(it.engine.table(), it.environment());
  // No automatic renewal: two requests at once could both use the old keys.
  agent.make("a", tests::fresh_name(), "auto_renew=0");
  BOOST_REQUIRE(agent.ask("begin a lock") == "begun");
  const auto fetches = [&] {
    return it.aws.log().count("sts", "AssumeRoleWithWebIdentity");
  };
  BOOST_TEST(eventually([&] { return fetches() == 1; }));
  it.aws.lifetime(1h);
  BOOST_REQUIRE(agent.ask("join a") == "true");
  BOOST_TEST(eventually([&] {
    hold_for(agent, 100ms);
    return it.gateway.counts().expired_keys() >= 1;
  }));
  hold_for(agent, 1s);
  BOOST_TEST(agent.ask("events a") == "");
  BOOST_TEST(agent.ask("release a") == "true");
  BOOST_TEST(it.gateway.counts().expired_keys() == 1);
  BOOST_TEST(fetches() == 2);
}

// --- By the AWS CLI ----------------------------------------------------------

namespace {

// A profile whose keys the AWS CLI gets.  The CLI is a shell script here.
struct CliProfile {
  const char* name;
  std::string lines;
  const char* told;            // What the log and errors call the source.
  const char* deed;            // What a person has to do if there are no keys.
  const char* asked = "work";  // The profile that the CLI is asked for.
};

std::ostream& operator<<(std::ostream& out, const CliProfile& profile) {
  return out << profile.name;
}

const std::string kSso =
    "sso_session = corp\nsso_account_id = 123456789012\nsso_role_name = r\n"
    "[sso-session corp]\nsso_region = eu-west-1\n"
    "sso_start_url = https://corp.example\n";

const std::vector<CliProfile> kCliProfiles = {
    {"sso_session", kSso, "sso_account_id of profile \"work\"",
     "; to sign on, run: aws sso login --profile \"work\""},
    {"login_session", "login_session = arn:aws:iam::123456789012:user/alice\n",
     "login_session of profile \"work\"",
     "; to sign on, run: aws login --profile \"work\""},
    {"mfa_serial",
     "role_arn = arn:aws:iam::123456789012:role/locker\nmfa_serial = x\n"
     "source_profile = base\n[profile base]\naws_access_key_id = i\n"
     "aws_secret_access_key = s\n",
     "mfa_serial of profile \"work\"",
     "; to tell the code, run at a terminal: aws sts get-caller-identity "
     "--profile \"work\""},
    {"role_of_an_sso_session",
     "role_arn = arn:aws:iam::123456789012:role/locker\n"
     "source_profile = base\n[profile base]\n" +
         kSso,
     "sso_account_id of profile \"base\"",
     "; to sign on, run: aws sso login --profile \"base\"", "base"},
};

struct CliStage : KeyStage {
  explicit CliStage(const CliProfile& profile) {
    set("AWS_CONFIG_FILE", write("config", "[profile work]\n" + profile.lines));
    set("AWS_PROFILE", "work");
  }
  // The CLI writes these keys, and notes how it was run.
  void cli_gives(const tests::AwsKeys& keys) {
    aws.user(keys);
    cli("cd \"$HOME\"\necho \"$AWS_CONFIG_FILE $*\" >>runs\ncat '" +
        document(keys) + "'\n");
  }
  int runs() const {
    std::ifstream file(home.root / "runs");
    int lines = 0;
    for (std::string line; std::getline(file, line);) ++lines;
    return lines;
  }
  std::string first_run() const {
    std::ifstream file(home.root / "runs");
    std::string line;
    std::getline(file, line);
    return line;
  }
};

// Why a lock cannot be taken, once the error says that.
void check_that_lock_says(CliStage& it, const std::string& wanted,
                          const std::string& also) {
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), "patience=200");
  std::string why;
  BOOST_TEST(eventually([&] {
               const std::string locked = agent.ask("lock a");
               why = agent.ask("why a");
               return locked == tests::refused(ddbmutex::Errc::no_keys) &&
                      has(why, wanted);
             }),
             why << " should have " << wanted);
  BOOST_TEST(has(why, also), why);
  BOOST_TEST(it.secret_told_by(agent, why) == "");
}

}  // namespace

BOOST_DATA_TEST_CASE(lock_is_taken_with_keys_of_the_cli, kCliProfiles,
                     profile) {
  CliStage it(profile);
  it.cli_gives(it.aws.issue(1h));
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), "auto_renew=0");
  const std::string locked = agent.ask("lock a");
  BOOST_TEST(locked == "true", locked << ": " << agent.ask("why a"));
  BOOST_TEST(agent.ask("release a") == "true");
  BOOST_TEST(it.first_run() == (it.home.root / "config").string() +
                                   " configure export-credentials --profile " +
                                   std::string(profile.asked) +
                                   " --format process");
  BOOST_TEST(it.runs() == 1);
  BOOST_TEST(it.gateway.counts().good_signatures() == 3);
  BOOST_TEST(it.secret_told_by(agent) == "");
  BOOST_TEST(has(it.log(), profile.told), it.log());
}

// As with every source, new keys are fetched when a third of the time is left.
BOOST_AUTO_TEST_CASE(keys_of_the_cli_are_replaced_before_they_end) {
  CliStage it(kCliProfiles[0]);
  it.cli_gives(it.aws.issue(9s));
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  it.cli_gives(it.aws.issue(1h));
  hold_for(agent, 10s);
  BOOST_TEST(it.runs() == 2);
  BOOST_TEST(agent.ask("release a") == "true");
  BOOST_TEST(it.gateway.counts().expired_keys() == 0);
}

BOOST_DATA_TEST_CASE(cli_that_fails_is_an_error_with_what_to_do, kCliProfiles,
                     profile) {
  CliStage it(profile);
  it.cli("echo 'Error: the token has expired' >&2\nexit 253\n");
  check_that_lock_says(
      it,
      ", by the AWS CLI: the program ended with exit status 253: Error: "
      "the token has expired" +
          std::string(profile.deed),
      profile.told);
}

BOOST_AUTO_TEST_CASE(cli_that_is_missing_or_too_old_is_an_error_at_once) {
  CliStage it(kCliProfiles[0]);
  it.set("PATH", "/nonexistent");
  check_that_lock_says(it, "there is no program \"aws\" on the PATH",
                       kCliProfiles[0].told);
  for (const char* status : {"2", "252"}) {  // Of version 1, and of 2.0 to 2.8.
    it.cli("echo 'aws: error: Invalid choice' >&2\nexit " +
           std::string(status) + "\n");
    check_that_lock_says(it,
                         "aws: error: Invalid choice; this AWS CLI is too old, "
                         "version 2.9 or later is needed",
                         kCliProfiles[0].told);
  }
}

BOOST_AUTO_TEST_CASE(cli_that_writes_no_keys_is_an_error) {
  for (const auto& [written, flaw] :
       {std::pair("Hello", "the program's output is not a JSON object"),
        std::pair("", "the program wrote nothing"),
        std::pair("{\"Version\":1,\"AccessKeyId\":\"AKID\"}",
                  "no SecretAccessKey in ")}) {
    CliStage it(kCliProfiles[1]);
    it.cli("printf '%s' '" + std::string(written) + "'\n");
    check_that_lock_says(it, flaw, kCliProfiles[1].told);
  }
}

// The error says who is asked.  The CLI is ended with the table.
BOOST_AUTO_TEST_CASE(cli_that_hangs_holds_up_no_call) {
  CliStage it(kCliProfiles[0]);
  it.cli("echo $$ >\"$HOME/pid\"\nexec sleep 1000\n");
  check_that_lock_says(it, "the program of sso_account_id of profile \"work\"",
                       ", by the AWS CLI is being asked");
  std::ifstream file(it.home.root / "pid");
  pid_t pid = 0;
  BOOST_TEST_REQUIRE(static_cast<bool>(file >> pid));
  BOOST_TEST(eventually([pid] { return !tests::Stamps::is_running(pid); }));
}

BOOST_AUTO_TEST_SUITE_END()

// --- Beside AWS's own tools --------------------------------------------------

// The same configurations, read by ddbmutex, by botocore and by AWS's own
// JavaScript SDK: each finds the same keys, region and endpoint, or all refuse.
// tests/witness/combinations/ has them, with what differs and why.
BOOST_AUTO_TEST_SUITE(witness_of_configurations)

namespace {

constexpr std::size_t kFewest = 60;

// The exceptions in the combinations are about these versions: Debian 12's
// botocore, and the SDK of the lock file.  Another botocore is asked too, but
// its answers decide nothing.
const std::map<std::string, std::string> kVersions = {{"botocore", "1.29."},
                                                      {"js", "3.967."}};

struct Testimony {
  std::string who;
  Outcomes outcomes;
  bool is_binding;
};

Testimony testify(const std::string& who, Witness& witness,
                  const Placed& placed, const tests::Aws& aws) {
  Outcomes outcomes = witness.ask(placed, aws);
  const std::string& known = kVersions.at(who);
  const bool is_known = witness.version().compare(0, known.size(), known) == 0;
  BOOST_TEST((is_known || who == "botocore"), who << " is of another version");
  return {who, std::move(outcomes), is_known};
}

std::vector<Combination> read_all() {
  std::vector<fs::path> paths;
  const fs::path directory = tests::project() / "tests/witness/combinations";
  for (const auto& entry : fs::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Combination> all;
  for (const fs::path& path : paths) {
    std::ifstream file(path);
    witness::CombinationReader reader(file, path.filename().string());
    for (Combination& one : reader.read()) all.push_back(std::move(one));
  }
  return all;
}

// The text with the places for "{home}" and so on.
std::string filled_in(std::string text,
                      const std::map<std::string, std::string>& places) {
  for (const auto& [name, place] : places) {
    for (auto at = text.find(name); at != text.npos; at = text.find(name)) {
      text.replace(at, name.size(), place);
    }
  }
  return text;
}

void write(const fs::path& path, const std::string& text, bool is_script) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  BOOST_TEST_REQUIRE(chmod(path.c_str(), is_script ? 0700 : 0600) == 0);
}

// Places the combination in a new home directory.
Placed placed(const Combination& combination, const fs::path& root,
              std::map<std::string, std::string> places) {
  const fs::path home = root / combination.name;
  fs::remove_all(home);
  fs::create_directories(home);
  places["{home}"] = home.string();
  for (const witness::HomeFile& file : combination.files) {
    write(home / file.path, filled_in(file.text, places), file.is_script);
  }
  for (const std::string& path : combination.directories) {
    fs::create_directories(home / path);
  }
  Placed result{combination, {}};
  const char* path = std::getenv("PATH");
  result.variables = {{"HOME", home.string()},
                      {"PATH", path == nullptr ? "/usr/bin:/bin" : path},
                      // Else botocore 1.29 calls STS in us-east-1.
                      {"AWS_STS_REGIONAL_ENDPOINTS", "regional"},
                      // Seconds, for the metadata service.
                      {"AWS_METADATA_SERVICE_TIMEOUT", "20"},
                      {"AWS_EC2_METADATA_DISABLED", "true"}};
  for (const std::string& name : combination.without) {
    result.variables.erase(name);
  }
  for (const auto& [name, value] : combination.environment) {
    result.variables[name] = filled_in(value, places);
  }
  return result;
}

// Registers the users, roles and tokens that the combinations use.
void introduce(tests::Aws& aws) {
  aws.user({"AKIASOURCE", "secret-source"});
  aws.role({"arn:aws:iam::123456789012:role/locker"});
  aws.role({"arn:aws:iam::123456789012:role/second"});
  aws.role({"arn:aws:iam::123456789012:role/guarded", "from-outside"});
  aws.web_identity("web-token", 1h);
  aws.control("POST", "/container", R"({"authorization": "container-token"})");
}

std::map<std::string, std::string> places_of(const tests::Aws& aws) {
  std::map<std::string, std::string> places;
  for (const char* service : {"sts", "imds", "container"}) {
    places["{" + std::string(service) + "}"] = aws.plain_url(service);
  }
  const std::string container = aws.plain_url("container");
  places["{container-by-name}"] =
      "http://localhost" + container.substr(container.rfind(':'));
  return places;
}

std::string script(const std::string& name) {
  return (tests::project() / "tests/witness" / name).string();
}

// Whether that witness agrees.  It must, unless the combination has an
// exception for it; then it must not.
bool confirms(const Combination& combination, const Testimony& testimony,
              const std::string& facet, const Outcome& ours) {
  const auto& [who, outcomes, is_binding] = testimony;
  const Outcome& theirs = outcomes.at(facet);
  const bool same = ours == theirs;
  if (!is_binding) return same;
  const auto exception = combination.exceptions.find(who + " " + facet);
  if (exception == combination.exceptions.end()) {
    BOOST_TEST(same, combination.name << ", " << facet << ": here " << ours
                                      << ", " << who << " " << theirs
                                      << (ours.shown == theirs.shown
                                              ? " (secret or token differs)"
                                              : ""));
    return same;
  }
  BOOST_TEST(!same, combination.name
                        << ", " << facet << ": " << who << " agrees (" << ours
                        << "), although: " << exception->second.reason);
  return false;
}

// [n]: how many facets n witnesses confirm.
using Tally = std::array<int, 3>;

void compare(const Combination& combination, const Outcomes& ours,
             const std::vector<Testimony>& testimonies, Tally& tally) {
  const bool are_binding =
      std::all_of(testimonies.begin(), testimonies.end(),
                  [](const Testimony& one) { return one.is_binding; });
  for (const char* facet : witness::kFacets) {
    const Outcome& found = ours.at(facet);
    std::size_t confirmed = 0;
    for (const Testimony& one : testimonies) {
      confirmed += confirms(combination, one, facet, found);
    }
    ++tally.at(confirmed);
    const auto said = combination.ours.find(facet);
    const bool is_said = said != combination.ours.end();
    if (is_said) {
      BOOST_TEST(found.shown == said->second,
                 combination.name << ", " << facet << ": here " << found
                                  << ", should be " << said->second);
    }
    if (!are_binding) continue;
    BOOST_TEST((confirmed > 0) != is_said,
               combination.name << ", " << facet << ": here " << found
                                << (is_said ? ", confirmed, so needs no ours"
                                            : ", which nobody confirms"));
  }
}

// Every second one, beginning at the first or the second by the seed of
// `make test`; all of them in `make soak`.
std::vector<Combination> by_lot(const std::vector<Combination>& all) {
  BOOST_TEST(all.size() >= kFewest);
  if (std::getenv("DDBMUTEX_WITNESS_WHOLE") != nullptr) return all;
  const char* seed = std::getenv("DDBMUTEX_SEED");
  std::vector<Combination> some;
  for (std::size_t i = seed == nullptr ? 0
                                       : std::strtoul(seed, nullptr, 10) % 2;
       i < all.size(); i += 2) {
    some.push_back(all[i]);
  }
  return some;
}

void report(const std::vector<Combination>& all, const Tally& tally) {
  int differ = 0;
  int unknown = 0;
  for (const Combination& one : all) {
    for (const auto& [what, exception] : one.exceptions) {
      ++(exception.is_unknown ? unknown : differ);
    }
  }
  std::cout << "witnesses: of " << all.size() << " combinations, " << tally[2]
            << " facets as both have them, " << tally[1] << " as one, "
            << tally[0] << " as neither; " << differ
            << " answers of theirs differ, " << unknown
            << " are of settings that they do not know\n";
}

}  // namespace

BOOST_AUTO_TEST_CASE(keys_region_and_endpoint_are_those_of_the_witnesses) {
  const tests::Home home;
  // Nobody has signed on.
  write(home.root / "bin/aws", "#!/bin/sh\nexit 1\n", true);
  const tests::ProcessVariable path(
      "PATH",
      ((home.root / "bin").string() + ":" + std::getenv("PATH")).c_str());
  tests::Aws aws({false});
  introduce(aws);
  const auto places = places_of(aws);
  Witness botocore({"/usr/bin/python3", script("witness.py")});
  Witness js({"/usr/bin/env", "node", script("witness.js")});
  const std::vector<Combination> all = by_lot(read_all());
  Tally tally = {};
  for (const Combination& one : all) {
    const auto anew = [&] {
      aws.forget();
      return placed(one, home.root, places);
    };
    std::vector<Testimony> testimonies;
    testimonies.push_back(testify("botocore", botocore, anew(), aws));
    testimonies.push_back(testify("js", js, anew(), aws));
    compare(one, witness::ours(anew(), aws), testimonies, tally);
  }
  report(all, tally);
}

BOOST_AUTO_TEST_SUITE_END()
