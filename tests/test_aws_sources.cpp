// Every source of keys, end to end: a process that finds its keys where AWS's
// tools do takes a lock through a gateway that checks each signature and each
// key's time, over TLS.  The key services are stand-ins that check what the
// real ones check (tests/aws).  Nothing that the process says, in its log, its
// errors and its counters, may hold a secret.
//
// Not here, for their addresses are AWS's own: a container's relative URI, and
// a metadata service that nobody has configured.
#include <sys/stat.h>

#include <boost/test/data/monomorphic.hpp>
#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <list>
#include <map>
#include <string>
#include <utility>
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
const std::string kOtherRole = "arn:aws:iam::123456789012:role/porter";
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
    aws.role({kOtherRole});
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
  // With `aws login`, which gave these keys.
  void login(const tests::AwsKeys& keys, const std::string& end) {
    config("[default]\nlogin_session = " + kAlice + "\n");
    const std::string key = tests::pem_of("P-256");
    aws.login_token(kLogin, "client", key, 1h);
    std::filesystem::create_directories(home.root / ".aws/login/cache");
    write(".aws/login/cache/" + ddbmutex::sigv4::sha256_hex(kAlice) + ".json",
          R"({"accessToken":{"accessKeyId":")" + keys.access_key_id +
              R"(","secretAccessKey":")" + keys.secret_access_key +
              R"(","sessionToken":")" + keys.session_token +
              R"(","accountId":"123456789012","expiresAt":")" + end +
              R"("},"clientId":"client","refreshToken":")" + kLogin +
              R"(","dpopKey":)" + tests::json_string(key) + "}");
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

void issued_in_environment(Stage& it) { it.static_keys(); }
void instance(Stage& it) { it.instance(); }
void container(Stage& it) { it.container(); }

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

std::string role_of(const std::string& source) {
  return "[default]\nrole_arn = " + kRole + "\n" + source + "\n";
}

const std::vector<Source>& sources() {
  static const std::vector<Source> all = {
      {"environment", "the environment", issued_in_environment},
      {"credentials_file", "profile \"default\"",
       [](Stage& it) {
         const tests::AwsKeys keys = it.aws.issue(1h);
         it.credentials("[default]\naws_access_key_id = " + keys.access_key_id +
                        "\naws_secret_access_key = " + keys.secret_access_key +
                        "\naws_session_token = " + keys.session_token + "\n");
       }},
      {"role_of_a_source_profile", "role/locker",
       [](Stage& it) {
         it.config(role_of("source_profile = user"));
         it.source_user("user");
       }},
      {"role_of_a_role", "role/locker",
       [](Stage& it) {
         it.config(role_of("source_profile = porter") +
                   "[profile porter]\nrole_arn = " + kOtherRole +
                   "\nsource_profile = user\n");
         it.source_user("user");
       }},
      {"role_by_the_environment", "role/locker",
       [](Stage& it) {
         it.config("[profile role]\nrole_arn = " + kRole +
                   "\ncredential_source = Environment\n");
         // Named by an option: the environment's own keys would go first.
         issued_in_environment(it);
         it.set("AGENT_PROFILE", "role");
       }},
      {"role_by_the_instance", "role/locker",
       [](Stage& it) {
         it.config(role_of("credential_source = Ec2InstanceMetadata"));
         instance(it);
       }},
      {"role_by_the_container", "role/locker",
       [](Stage& it) {
         it.config(role_of("credential_source = EcsContainer"));
         container(it);
       }},
      {"web_identity_of_the_environment", "role/locker",
       [](Stage& it) {
         it.set("AWS_WEB_IDENTITY_TOKEN_FILE", it.write("token", kIdentity));
         it.set("AWS_ROLE_ARN", kRole);
         it.set("AWS_ROLE_SESSION_NAME", "night-shift");
       }},
      {"web_identity_of_a_profile", "role/locker",
       [](Stage& it) {
         it.config(role_of("web_identity_token_file = " +
                           it.write("token", kIdentity)));
       }},
      {"sign_on_by_session", "profile \"default\"",
       [](Stage& it) {
         it.config(
             "[default]\nsso_session = work\nsso_account_id = 123456789012\n"
             "sso_role_name = locker\n[sso-session work]\n"
             "sso_region = us-east-1\nsso_start_url = https://work.example\n");
         it.sign_on("work");
       }},
      {"sign_on_of_the_older_kind", "profile \"default\"",
       [](Stage& it) {
         it.config(
             "[default]\nsso_start_url = https://work.example\n"
             "sso_region = us-east-1\nsso_account_id = 123456789012\n"
             "sso_role_name = locker\n");
         it.sign_on("https://work.example");
       }},
      {"login", "login_session of profile \"default\"",
       [](Stage& it) { it.login(it.aws.issue(1h), "2099-01-01T00:00:00Z"); }},
      {"login_that_has_to_be_refreshed", "login_session of profile \"default\"",
       [](Stage& it) {
         it.login({"AKIDOLD", "old-secret-of-a-login", "old-token-of-a-login"},
                  "2001-01-01T00:00:00Z");
       }},
      {"credential_process", "credential_process", process},
      {"container", "AWS_CONTAINER_CREDENTIALS_FULL_URI", container},
      {"instance", "locker", instance},
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

BOOST_AUTO_TEST_CASE(two_processes_refresh_the_same_login) {
  Stage it;
  it.login({"AKIDOLD", "old-secret-of-a-login", "old-token-of-a-login"},
           "2001-01-01T00:00:00Z");
  std::list<Agent> agents;
  for (int i = 0; i < 2; ++i) {
    agents.emplace_back(it.engine.table(), it.environment());
    agents.back().make("a", tests::fresh_name(), "request_timeout=20000");
  }
  for (Agent& agent : agents) BOOST_TEST(agent.ask("begin a lock") == "begun");
  for (Agent& agent : agents) BOOST_TEST(agent.ask("join a") == "true");
  // A third agent can use what these two have written.
  Agent third(it.engine.table(), it.environment());
  third.make("a", tests::fresh_name());
  BOOST_TEST(third.ask("lock a") == "true", third.ask("why a"));
  for (Agent& agent : agents) BOOST_TEST(agent.ask("release a") == "true");
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

BOOST_AUTO_TEST_CASE(lock_is_held_while_new_keys_are_refused_at_times) {
  Stage it;
  it.web_identity();
  it.aws.lifetime(6s);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), kHeld);
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  it.aws.fault({"sts", "*", "500", 2});
  it.aws.fault({"sts", "*", "throttle", 2});
  it.aws.fault({"sts", "*", "reset", 1});
  BOOST_TEST(eventually([&] {
    hold_for(agent, 500ms);
    return it.aws.log().count("sts") > 5;
  }));
  BOOST_TEST(agent.ask("losses a") == "");
  BOOST_TEST(agent.ask("release a") == "true");
  BOOST_TEST(it.secret_told_by(agent) == "");
}

// The lease outlives the keys, and is lost when it ends: not before.
BOOST_AUTO_TEST_CASE(lock_is_lost_in_time_when_no_new_keys_can_be_had) {
  Stage it;
  it.web_identity();
  it.aws.lifetime(2s);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name(), "ttl=3000");
  BOOST_REQUIRE(agent.ask("lock a") == "true");
  it.aws.mode("sts", "hang");
  BOOST_TEST(std::stoll(agent.ask("await a expired")) > 0);
  BOOST_TEST(agent.ask("losses a") == "expired");
  agent.make("b", tests::fresh_name());
  const std::string said = agent.ask("try b");
  BOOST_TEST(said == tests::refused(ddbmutex::Errc::no_keys), said);
  const std::string why = agent.ask("why b");
  BOOST_TEST(has(why, "role/locker"), why);
  it.aws.mode("sts", "open");
  BOOST_TEST(agent.ask("lock b") == "true");
  BOOST_TEST(it.secret_told_by(agent, why) == "");
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

BOOST_AUTO_TEST_CASE(keys_are_found_and_replaced_by_a_host_hours_off) {
  std::list<Stage> stages;
  std::list<Agent> agents;
  for (const auto offset : {-3h, 3h}) {
    Stage& it = stages.emplace_back();
    it.config(role_of("source_profile = user"));
    it.source_user("user");
    it.aws.clock_offset(offset);
    it.gateway.clock_offset(offset);
    it.aws.lifetime(9s);
    Agent& agent = agents.emplace_back(it.engine.table(), it.environment());
    agent.make("a", tests::fresh_name(), kHeld);
    BOOST_TEST_REQUIRE(agent.ask("lock a") == "true", agent.ask("why a"));
  }
  for (int round = 0; round < 40; ++round) {
    for (Agent& agent : agents) hold_for(agent, 100ms);
  }
  auto agent = agents.begin();
  for (Stage& it : stages) {
    BOOST_TEST(agent->ask("events a") == "");
    BOOST_TEST(agent->ask("release a") == "true");
    ++agent;
    BOOST_TEST(it.aws.log().count("sts") >= 2);
    // Signed for the wrong time once at each of them, and then never again.
    const auto counts = it.gateway.counts();
    BOOST_TEST(counts.early_signatures() + counts.late_signatures() <= 1);
    BOOST_TEST(counts.expired_keys() == 0);
  }
}

// --- What is said ------------------------------------------------------------

BOOST_AUTO_TEST_CASE(no_keys_anywhere_is_told_with_every_place_looked_at) {
  Stage it;
  it.config("[default]\nregion = eu-west-1\n");
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  BOOST_TEST(agent.ask("lock a") == tests::refused(ddbmutex::Errc::no_keys));
  const std::string why = agent.ask("why a");
  for (const char* place :
       {"AWS_ACCESS_KEY_ID", "profile \"default\"", ".aws/config",
        ".aws/credentials", "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_EC2_METADATA_DISABLED"}) {
    BOOST_TEST(has(why, place), place << " in: " << why);
  }
}

// The instance has keys, but they are somebody else's.
BOOST_AUTO_TEST_CASE(profile_that_names_a_part_of_a_way_takes_no_lock) {
  for (const char* property :
       {"login_session", "source_profile", "credential_source", "sso_session",
        "sso_start_url", "sso_region", "sso_account_id", "sso_role_name",
        "role_arn", "web_identity_token_file"}) {
    Stage it;
    instance(it);
    it.config("[default]\n" + std::string(property) + " = it\n");
    Agent agent(it.engine.table(), it.environment());
    agent.make("a", tests::fresh_name());
    BOOST_TEST(agent.ask("lock a") == tests::refused(ddbmutex::Errc::no_keys),
               property);
    const std::string why = agent.ask("why a");
    BOOST_TEST(has(why, property), why);
    BOOST_TEST(it.aws.log().count("imds") == 0);
  }
}

BOOST_AUTO_TEST_CASE(refused_keys_are_told_with_their_source_and_the_endpoint) {
  Stage it;
  it.source_user("default");  // Whom the gateway does not know.
  it.set("AWS_ENDPOINT_URL_DYNAMODB", it.gateway.url());
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  BOOST_TEST(agent.ask("lock a") == tests::refused(ddbmutex::Errc::bad_keys));
  const std::string why = agent.ask("why a");
  for (const std::string& part : {std::string("profile \"default\""),
                                  it.gateway.url(), std::string("(request ")}) {
    BOOST_TEST(has(why, part), part << " in: " << why);
  }
  BOOST_TEST(it.secret_told_by(agent, why) == "");
}

BOOST_AUTO_TEST_CASE(credentials_file_that_others_may_read_is_warned_of) {
  Stage it;
  issued_in_environment(it);
  sources().at(1).set_up(it);
  it.variables.erase("AWS_ACCESS_KEY_ID");
  it.variables.erase("AWS_SECRET_ACCESS_KEY");
  it.variables.erase("AWS_SESSION_TOKEN");
  chmod((it.home.root / ".aws/credentials").c_str(), 0644);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  BOOST_TEST(agent.ask("lock a") == "true");
  agent.end();
  const std::string log = it.log();
  BOOST_TEST(has(log, "warning: "), log);
  BOOST_TEST(has(log, ".aws/credentials"), log);
}

BOOST_AUTO_TEST_CASE(region_of_the_instance_serves_where_nobody_has_said_one) {
  Stage it;
  instance(it);
  it.aws.control("POST", "/imds", R"({"region":"eu-central-1"})");
  it.variables.erase("AWS_REGION");
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  BOOST_TEST(agent.ask("lock a") == "true");
  BOOST_TEST(it.aws.log().count("imds", "GetRegion") == 1);
}

BOOST_AUTO_TEST_CASE(no_region_anywhere_is_an_error_of_the_first_call) {
  Stage it;
  instance(it);
  it.aws.mode("imds", "refuse");
  it.variables.erase("AWS_REGION");
  issued_in_environment(it);
  Agent agent(it.engine.table(), it.environment());
  agent.make("a", tests::fresh_name());
  BOOST_TEST(agent.ask("lock a") == tests::refused(ddbmutex::Errc::bad_option));
  const std::string why = agent.ask("why a");
  BOOST_TEST(has(why, "region"), why);
}

BOOST_AUTO_TEST_SUITE_END()
