// Every source of keys, end to end: a process that finds its keys where AWS's
// tools do takes a lock through a gateway that checks each signature and each
// key's time, over TLS.  The key services are stand-ins that check what the
// real ones check (tests/aws).  Nothing that the process says, in its log, its
// errors and its counters, may hold a secret.
//
// Not here, for their addresses are AWS's own: a container's relative URI, and
// a metadata service that nobody has configured.
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sigv4/sigv4.hpp"
#include "tests/support/agent.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/login_kit.hpp"
#include "tests/support/mutex_kit.hpp"
#include "tests/support/stage.hpp"

using namespace std::chrono_literals;
using tests::Agent;
using tests::eventually;
using tests::has;

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
    std::filesystem::create_directories(home.root / ".aws/sso/cache");
    write(".aws/sso/cache/" + ddbmutex::sigv4::sha1_hex(name) + ".json",
          R"({"accessToken":")" + kSignOn +
              R"(","expiresAt":"2099-01-01T00:00:00Z"})");
  }
  // With `aws login`; its keys have ended.
  void login() {
    config("[default]\nlogin_session = " + kAlice + "\n");
    const std::string key = tests::pem_of("P-256");
    aws.login_token(kLogin, "client", key, 1h);
    std::filesystem::create_directories(home.root / ".aws/login/cache");
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

BOOST_AUTO_TEST_SUITE(aws_sources)

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

// --- What is said ------------------------------------------------------------

BOOST_AUTO_TEST_SUITE_END()
