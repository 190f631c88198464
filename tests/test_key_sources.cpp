// Every source of keys, end to end; and whether AWS's own tools find the same.
// The key services are stand-ins that check what the real ones check
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

#include "sigv4/sigv4.hpp"
#include "tests/support/agent.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/login_kit.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/stage.hpp"
#include "tests/witness/answers.hpp"
#include "tests/witness/combination.hpp"
#include "tests/witness/ours.hpp"

namespace fs = std::filesystem;
using namespace std::chrono_literals;
using tests::Agent;
using tests::eventually;
using tests::has;
using witness::Combination;
using witness::Outcome;
using witness::Outcomes;
using witness::Placed;
using witness::Witness;

// A process that finds its keys where AWS's tools do takes a lock through a
// gateway that checks each signature and each key's time, over TLS.  Nothing
// that it says, in its log, its errors and its counters, may hold a secret.
//
// Not here, for their addresses are AWS's own: a container's relative URI, and
// a metadata service that nobody has configured.
BOOST_AUTO_TEST_SUITE(aws_sources)

namespace {

const std::string kRole = tests::Stage::kRole;
const tests::AwsKeys kUser = {"AKIDSOURCE", "the-secret-of-the-source-user"};
const std::string kIdentity = tests::Stage::kIdentity;
const std::string kAlice = "arn:aws:iam::123456789012:user/alice";
const std::string kLogin = "refresh-token-of-a-login";
const std::string kSignOn = "access-token-of-a-sign-on";

// A process to be, with all that these sources need.
struct Stage : tests::Stage {
  Stage() {
    // An engine's own proxy settings are none of this.
    set("no_proxy", "127.0.0.1,localhost");
    aws.user(kUser);
    aws.sso_token(kSignOn, 1h);
  }

  void config(const std::string& text) const { write(".aws/config", text); }
  void credentials(const std::string& text) const {
    write(".aws/credentials", text);
  }
  void source_user(const std::string& profile) const {
    credentials("[" + profile +
                "]\naws_access_key_id = " + kUser.access_key_id +
                "\naws_secret_access_key = " + kUser.secret_access_key + "\n");
  }
  void sign_on(const std::string& name) const {
    fs::create_directories(home.root / ".aws/sso/cache");
    write(".aws/sso/cache/" + ddbmutex::sigv4::sha1_hex(name) + ".json",
          R"({"accessToken":")" + kSignOn +
              R"(","expiresAt":"2099-01-01T00:00:00Z"})");
  }
  // With `aws login`; its keys have ended.
  void login() {
    config("[default]\nlogin_session = " + kAlice + "\n");
    const std::string key = tests::pem_of("P-256");
    aws.login_token(kLogin, "client", key, 1h);
    fs::create_directories(home.root / ".aws/login/cache");
    write(".aws/login/cache/" + ddbmutex::sigv4::sha256_hex(kAlice) + ".json",
          R"({"accessToken":{"accessKeyId":"AKIDOLD",)"
          R"("secretAccessKey":"old-secret-of-a-login",)"
          R"("sessionToken":"old-token-of-a-login",)"
          R"("accountId":"123456789012","expiresAt":"2001-01-01T00:00:00Z"},)"
          R"("clientId":"client","refreshToken":")" +
              kLogin + R"(","dpopKey":)" + tests::json_string(key) + "}");
  }
  // Which secret stands in what the agent has said, its log whole; empty if
  // none does.
  std::string secret_told_by(Agent& agent, const std::string& more = {}) {
    agent.end();
    const std::string all = more + log() + agent.process().complaints();
    for (const auto& secret : {kUser.secret_access_key, kSignOn, kLogin,
                               std::string("PRIVATE KEY")}) {
      if (has(all, secret)) return secret;
    }
    return secret_in(all);
  }
};

struct Source {
  const char* name;
  const char* told;  // A part of what the log says where keys are from.
  std::function<void(Stage&)> set_up;
};

std::ostream& operator<<(std::ostream& out, const Source& source) {
  return out << source.name;
}

void process(Stage& it) {
  const tests::AwsKeys keys = it.aws.issue(1h);
  it.write("keys.json", R"({"Version":1,"AccessKeyId":")" + keys.access_key_id +
                            R"(","SecretAccessKey":")" +
                            keys.secret_access_key + R"(","SessionToken":")" +
                            keys.session_token + R"(","Expiration":")" +
                            keys.expiration + R"("})");
  it.config("[default]\ncredential_process = cat '" +
            (it.home.root / "keys.json").string() + "'\n");
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = {
      {"credentials_file", "profile \"default\"",
       [](Stage& it) {
         const tests::AwsKeys keys = it.aws.issue(1h);
         it.credentials("[default]\naws_access_key_id = " + keys.access_key_id +
                        "\naws_secret_access_key = " + keys.secret_access_key +
                        "\naws_session_token = " + keys.session_token + "\n");
       }},
      {"role_of_a_source_profile", "role/locker",
       [](Stage& it) {
         it.config("[default]\nrole_arn = " + kRole +
                   "\nsource_profile = user\n");
         it.source_user("user");
       }},
      {"sign_on_by_session", "profile \"default\"",
       [](Stage& it) {
         it.config(
             "[default]\nsso_session = work\nsso_account_id = 123456789012\n"
             "sso_role_name = locker\n[sso-session work]\n"
             "sso_region = us-east-1\nsso_start_url = https://work.example\n");
         it.sign_on("work");
       }},
      {"login_that_has_to_be_refreshed", "login_session of profile \"default\"",
       [](Stage& it) { it.login(); }},
      {"credential_process", "credential_process", process},
  };
  return all;
}

}  // namespace

BOOST_DATA_TEST_CASE(lock_is_taken_with_keys_of, sources(), source) {
  Stage it;
  source.set_up(it);
  Agent agent(it.engine.table(), it.environment());
  // No request but these three, however long it takes.
  agent.make("a", tests::fresh_name(), "auto_renew=0 request_timeout=20000");
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

// Seconds for which a lock is held with keys that end; `make soak` has more.
int seconds_of_holding() {
  const char* told = std::getenv("DDBMUTEX_HOLD_S");
  return told != nullptr ? std::atoi(told) : 12;
}

// Long enough for a machine that stands still.
constexpr const char* kHeld = "request_timeout=20000";

// Asks again and again, for that long, whether all is well, and has the lock
// renewed: with the keys that there are then.
void hold_for(Agent& agent, std::chrono::nanoseconds time) {
  const auto end = ddbmutex::BootClock::now() + time;
  while (ddbmutex::BootClock::now() < end) {
    BOOST_TEST_REQUIRE(agent.ask("owns a") == "true");
    tests::pause(100ms);
    BOOST_TEST_REQUIRE(agent.ask("renew a") == "true", agent.ask("why a"));
  }
}

}  // namespace

// No request is ever signed with keys that are over, and nobody hears of it.
// New ones are fetched when a third of the time is left.
BOOST_AUTO_TEST_CASE(lock_is_held_while_keys_end_every_nine_seconds) {
  Stage it;
  it.web_identity();
  it.aws.lifetime(9s);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), kHeld);
  agent.make("b", tests::fresh_name(), kHeld);
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  const int seconds = seconds_of_holding();
  for (int second = 0; second < seconds; ++second) {
    hold_for(agent, 1s);
    BOOST_TEST_REQUIRE(agent.ask("lock b") == "true", agent.ask("why b"));
    BOOST_TEST_REQUIRE(agent.ask("release b") == "true", agent.ask("why b"));
  }
  BOOST_TEST(agent.ask("events a") == "");
  BOOST_TEST(agent.ask("release a") == "true");
  BOOST_TEST(it.gateway.counts().refused_signatures() == 0);
  BOOST_TEST(it.gateway.counts().expired_keys() == 0);
  // Fetched ahead, but not all the time.
  const int fetches = it.aws.log().count("sts", "AssumeRoleWithWebIdentity");
  BOOST_TEST(fetches >= 1 + seconds / 9);
  BOOST_TEST(fetches <= seconds);
  BOOST_TEST(it.secret_told_by(agent) == "");
}

// As when a session is ended before its time: the first that the library hears
// of it is DynamoDB's word.
BOOST_AUTO_TEST_CASE(keys_that_dynamodb_says_have_expired_are_replaced_unseen) {
  Stage it;
  it.web_identity();
  it.aws.lifetime(2s);
  tests::AwsFault wrong{"sts", "*", "alter"};
  wrong.set = {{"Expiration", "2099-01-01T00:00:00Z"}};
  it.aws.fault(wrong);
  Agent agent(it.engine.table(), it.environment());
  // Renewed by hand alone: of two at once both would find the old keys.
  agent.make("a", tests::fresh_name(), std::string(kHeld) + " auto_renew=0");
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

BOOST_AUTO_TEST_SUITE_END()

// --- Beside AWS's own tools --------------------------------------------------

// The same configurations, read by ddbmutex, by botocore and by AWS's own
// JavaScript SDK: each finds the same keys, region and endpoint, or all refuse.
// tests/witness/combinations/ has them, with what differs and why.
BOOST_AUTO_TEST_SUITE(witness_of_configurations)

namespace {

constexpr std::size_t kFewest = 60;

// What is excepted is so of these versions: Debian 12's, and that which the
// lock file has.  Later ones of botocore know more and differ elsewhere; these
// are heard, but decide nothing.
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

// `text` with what stands for {home} and so on.
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

// In a home directory of its own, made anew: who has read a token may have
// written another one.
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
                      // To botocore, which else calls STS in us-east-1; later
                      // versions do so by themselves.
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

// In PEM, of whoever has signed on with `aws login`.
const std::string& login_key() {
  static const std::string pem = tests::pem_of("P-256");
  return pem;
}

// Whom the combinations mean.
void introduce(tests::Aws& aws) {
  aws.user({"AKIASOURCE", "secret-source"});
  aws.role({"arn:aws:iam::123456789012:role/locker"});
  aws.role({"arn:aws:iam::123456789012:role/second"});
  aws.role({"arn:aws:iam::123456789012:role/guarded", "from-outside"});
  aws.web_identity("web-token", 1h);
  aws.sso_token("sso-access", 1h);
  aws.sso_client("sso-client", "sso-client-secret", 1h);
  aws.refresh_token("sso-refresh", "sso-client", 1h);
  aws.login_token("login-refresh", "arn:aws:signin:::devtools/same-device",
                  login_key(), 1h);
  // One for whoever asks.
  aws.control("POST", "/oidc", R"({"rotate": false})");
  aws.control("POST", "/container", R"({"authorization": "container-token"})");
}

std::map<std::string, std::string> places_of(const tests::Aws& aws) {
  std::map<std::string, std::string> places;
  for (const char* service :
       {"sts", "sso", "oidc", "signin", "imds", "container"}) {
    places["{" + std::string(service) + "}"] = aws.plain_url(service);
  }
  const std::string container = aws.plain_url("container");
  places["{container-by-name}"] =
      "http://localhost" + container.substr(container.rfind(':'));
  // Within a text of JSON.
  const std::string key = tests::json_string(login_key());
  places["{login-key}"] = key.substr(1, key.size() - 2);
  return places;
}

std::string script(const std::string& name) {
  return (tests::project() / "tests/witness" / name).string();
}

// Whether that witness agrees; it has to, unless it is excepted, and then it
// must not.
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

// By how many witnesses a facet is confirmed; how often each.
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

// Half of them, by the seed of `make test`; `make soak` has all.
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
