// The stand-ins for AWS's key services do what the real ones do: they check
// what those check, refuse in their words, and give out documents of their
// form, with keys that the gateway takes until they end; on command, what goes
// wrong goes wrong; and nothing secret is in their log.
#include <rapidjson/document.h>
#include <signal.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <cctype>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <map>
#include <ostream>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "sigv4/keys/dpop.hpp"
#include "sigv4/sigv4.hpp"
#include "sigv4/utc.hpp"
#include "tests/aws/client.hpp"
#include "tests/support/aws.hpp"
#include "tests/support/control_port.hpp"
#include "tests/support/files.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/login_kit.hpp"
#include "tests/support/scripted_server.hpp"

namespace {

using namespace std::chrono_literals;
using aws_tests::Answer;
using aws_tests::Ask;
using std::chrono::seconds;
using tests::Aws;
using tests::AwsFault;
using tests::AwsKeys;
using tests::AwsRole;
using tests::Gateway;
using tests::has;
using tests::ScriptedServer;

const AwsKeys kSource = {"AKIDSOURCE", "source-secret"};
const std::string kRole = "arn:aws:iam::123456789012:role/path/locker";
const std::string kWebIdentity = "eyJhbGciOi.a-web-identity.token";
const std::string kAccessToken = "an-access-token";
const std::string kRefreshToken = "a-refresh-token";
const std::string kForm =
    "Content-Type: application/x-www-form-urlencoded; charset=utf-8";

std::int64_t unix_now() {
  return std::chrono::system_clock::now().time_since_epoch() / 1s;
}

// --- What documents say ----------------------------------------------------

// The text of the only element of that name; empty: there is none.
std::string element(const std::string& xml, const std::string& name) {
  const std::string start = "<" + name + ">";
  const std::size_t at = xml.find(start);
  if (at == xml.npos) return "";
  const std::size_t from = at + start.size();
  BOOST_TEST(xml.find(start, from) == xml.npos, name << " is there twice");
  return xml.substr(from, xml.find("</" + name + ">", from) - from);
}

rapidjson::Document parsed(const std::string& json) {
  rapidjson::Document document;
  document.Parse(json.data(), json.size());
  BOOST_TEST_REQUIRE(!document.HasParseError(), "no JSON");
  return document;
}

// By name, of the object's texts; numbers as texts, too.
std::map<std::string, std::string> members(const rapidjson::Value& object) {
  std::map<std::string, std::string> all;
  for (const auto& one : object.GetObject()) {
    if (one.value.IsString()) all[one.name.GetString()] = one.value.GetString();
    if (one.value.IsInt64()) {
      all[one.name.GetString()] = std::to_string(one.value.GetInt64());
    }
  }
  return all;
}

std::map<std::string, std::string> members(const std::string& json) {
  return members(parsed(json));
}

// As documents write it; 0 if it is something else.
std::int64_t time_of(const std::string& text) {
  std::tm time = {};
  const char* end = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%SZ", &time);
  return end != nullptr && *end == '\0' ? timegm(&time) : 0;
}

AwsKeys keys_of_sts(const Answer& answer) {
  BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
  const std::string& xml = answer.body;
  const std::string end = element(xml, "Expiration");
  return {element(xml, "AccessKeyId"), element(xml, "SecretAccessKey"),
          element(xml, "SessionToken"), time_of(end), end};
}

// Of metadata and containers.
AwsKeys keys_of_document(const Answer& answer) {
  BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
  auto all = members(answer.body);
  const std::string end = all["Expiration"];
  return {all["AccessKeyId"], all["SecretAccessKey"], all["Token"],
          time_of(end), end};
}

AwsKeys keys_of_sso(const Answer& answer) {
  BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
  auto all = members(parsed(answer.body)["roleCredentials"]);
  const std::string end = all["expiration"];
  BOOST_TEST(end.size() == 13u);  // Milliseconds.
  return {all["accessKeyId"], all["secretAccessKey"], all["sessionToken"],
          std::stoll(end) / 1000, end};
}

// --- Signing ---------------------------------------------------------------

struct Signer {
  AwsKeys keys;
  std::string service = "sts";
  std::string region = "eu-west-1";
  seconds ahead{0};

  void sign(Ask& ask) const {
    const std::size_t slashes = ask.url.find("//") + 2;
    const std::size_t end = ask.url.find('/', slashes);
    std::vector<ddbmutex::sigv4::Header> headers;
    const std::string host = ask.url.substr(slashes, end - slashes);
    headers.push_back({"Host", host});
    for (const std::string& header : ask.headers) {
      const std::string_view line = header;
      const std::size_t colon = line.find(": ");
      headers.push_back({line.substr(0, colon), line.substr(colon + 2)});
    }
    const std::string hash = ddbmutex::sigv4::sha256_hex(ask.body);
    const ddbmutex::sigv4::Signed result = ddbmutex::sigv4::sign(
        {ask.method, "/", "", headers, hash},
        {keys.access_key_id, keys.secret_access_key, keys.session_token},
        {region, service}, std::time(nullptr) + ahead.count());
    ask.headers.push_back("X-Amz-Date: " + result.amz_date);
    ask.headers.push_back("Authorization: " + result.authorization);
    if (!keys.session_token.empty()) {
      ask.headers.push_back("X-Amz-Security-Token: " + keys.session_token);
    }
  }
};

// --- Asking ----------------------------------------------------------------

using Form = std::map<std::string, std::string>;

std::string encoded(const Form& form) {
  std::string text;
  for (const auto& [name, value] : form) {
    if (!text.empty()) text += "&";
    text += name + "=";
    for (const char byte : value) {
      if (std::isalnum(static_cast<unsigned char>(byte)) != 0) {
        text += byte;
      } else {
        constexpr char kDigits[] = "0123456789ABCDEF";
        const auto number = static_cast<unsigned char>(byte);
        text += {'%', kDigits[number >> 4], kDigits[number & 15]};
      }
    }
  }
  return text;
}

Form assume_role() {
  return {{"Action", "AssumeRole"},
          {"Version", "2011-06-15"},
          {"RoleArn", kRole},
          {"RoleSessionName", "session@x"}};
}

Form with_web_identity() {
  return {{"Action", "AssumeRoleWithWebIdentity"},
          {"Version", "2011-06-15"},
          {"RoleArn", kRole},
          {"RoleSessionName", "session@x"},
          {"WebIdentityToken", kWebIdentity}};
}

Aws::Settings with_tls(bool tls) {
  Aws::Settings settings;
  settings.tls = tls;
  return settings;
}

// Certificates take their time: only where they matter.
struct Running {
  Aws aws;
  Signer signer{kSource};
  const std::string login_key = tests::pem_of("P-256");

  explicit Running(bool tls = false) : aws(with_tls(tls)) {
    aws.user(kSource);
    aws.role({kRole});
    aws.web_identity(kWebIdentity, 1h);
    aws.sso_token(kAccessToken, 1h);
    aws.sso_client("client", "client-secret", 1h);
    aws.refresh_token(kRefreshToken, "client", 1h);
    aws.login_token(kRefreshToken, "client", login_key, 1h);
  }

  Ask asking(const std::string& method, const std::string& url) const {
    Ask ask;
    ask.method = method;
    ask.url = url;
    ask.ca_file = aws.ca_file();
    return ask;
  }
  Ask posting(const Form& form) const {
    Ask ask = asking("POST", aws.url("sts") + "/");
    ask.headers = {kForm};
    ask.body = encoded(form);
    return ask;
  }
  Answer post_signed(const Form& form) const {
    return post_signed(form, signer);
  }
  Answer post_signed(const Form& form, const Signer& by) const {
    Ask ask = posting(form);
    by.sign(ask);
    return perform(ask);
  }
  Answer post_bare(const Form& form) const { return perform(posting(form)); }

  Answer credentials_of_sso(const std::string& token,
                            const std::string& role = "dev",
                            const std::string& account = "123456789012") {
    Ask ask = asking("GET", aws.url("sso") +
                                "/federation/credentials?role_name=" + role +
                                "&account_id=" + account);
    if (!token.empty()) ask.headers = {"x-amz-sso_bearer_token: " + token};
    return perform(ask);
  }
  Answer token_of_oidc(const std::string& refresh_token,
                       const std::string& secret = "client-secret",
                       const std::string& grant = "refresh_token") {
    Ask ask = asking("POST", aws.url("oidc") + "/token");
    ask.headers = {"Content-Type: application/json"};
    ask.body = R"({"clientId":"client","clientSecret":")" + secret +
               R"(","grantType":")" + grant + R"(","refreshToken":")" +
               refresh_token + R"("})";
    return perform(ask);
  }
  // What AWS Sign-In answers to a refresh.  `proof`: may be malformed.
  Answer keys_of_signin(const std::string& proof,
                        const std::string& refresh_token = kRefreshToken,
                        const std::string& client = "client",
                        const std::string& grant = "refresh_token") {
    Ask ask = asking("POST", aws.url("signin") + "/v1/token");
    ask.headers = {"Content-Type: application/json", "DPoP: " + proof};
    ask.body = R"({"clientId":")" + client + R"(","grantType":")" + grant +
               R"(","refreshToken":")" + refresh_token + R"("})";
    return perform(ask);
  }
  std::string proof_for_signin(const std::string& method = "POST",
                               const std::string& path = "/v1/token",
                               std::int64_t ahead = 0) const {
    return ddbmutex::sigv4::DpopKey(login_key).proof(
        method, aws.url("signin") + path, unix_now() + ahead);
  }
  Answer metadata(const std::string& path, const std::string& token) {
    Ask ask = asking("GET", aws.url("imds") + "/latest/" + path);
    if (!token.empty()) ask.headers = {"x-aws-ec2-metadata-token: " + token};
    return perform(ask);
  }
  Answer put_token(const std::vector<std::string>& headers) {
    Ask ask = asking("PUT", aws.url("imds") + "/latest/api/token");
    ask.headers = headers;
    return perform(ask);
  }
  std::string token() {
    const Answer answer =
        put_token({"x-aws-ec2-metadata-token-ttl-seconds: 21600"});
    BOOST_TEST_REQUIRE(answer.status == 200);
    return answer.body;
  }
  Answer task(const std::string& authorization = {},
              const std::string& path = "/v2/credentials/task") {
    Ask ask = asking("GET", aws.url("container") + path);
    if (!authorization.empty()) {
      ask.headers = {"Authorization: " + authorization};
    }
    return perform(ask);
  }
};

struct RunningTls : Running {
  RunningTls() : Running(true) {}
};

const std::string kRoles = "meta-data/iam/security-credentials/";

void check_refusal(const Answer& answer, int status, const std::string& code) {
  BOOST_TEST(answer.status == status, answer.body);
  BOOST_TEST(answer.header("Content-Type") == "text/xml");
  BOOST_TEST(has(answer.body,
                 "<ErrorResponse xmlns=\"https://"
                 "sts.amazonaws.com/doc/2011-06-15/\">"));
  BOOST_TEST(element(answer.body, "Code") == code);
  BOOST_TEST(element(answer.body, "Type") == "Sender");
  BOOST_TEST(element(answer.body, "RequestId") ==
             answer.header("x-amzn-RequestId"));
}

void check_error(const Answer& answer, int status, const std::string& code) {
  BOOST_TEST(answer.status == status, answer.body);
  BOOST_TEST(answer.header("x-amzn-ErrorType") == code);
}

// A gateway before an engine that says yes to all.
class Gate {
 public:
  explicit Gate(const Aws& aws) : gateway_(server_.url(), settings(aws)) {}

  Answer get(const AwsKeys& keys) {
    Ask ask;
    ask.method = "POST";
    ask.url = gateway_.url() + "/";
    ask.ca_file = gateway_.ca_file();
    ask.headers = {"Content-Type: application/x-amz-json-1.0",
                   "X-Amz-Target: DynamoDB_20120810.GetItem"};
    ask.body = "{}";
    Signer{keys, "dynamodb"}.sign(ask);
    return perform(ask);
  }
  bool takes(const AwsKeys& keys) { return get(keys).status == 200; }
  bool refuses(const AwsKeys& keys, const std::string& code) {
    const Answer answer = get(keys);
    return answer.status == 400 && has(answer.body, "#" + code + "\"");
  }
  Gateway& gateway() { return gateway_; }

 private:
  static Gateway::Settings settings(const Aws& aws) {
    Gateway::Settings settings = aws.gateway_settings();
    settings.users = {{"AKIDOTHER", "other/secret+=", ""},
                      {"AKIDTHIRD", "third-secret", "third/token+="}};
    return settings;
  }

  ScriptedServer server_;
  Gateway gateway_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(standins)

// --- Issued keys and the gateway -------------------------------------------

BOOST_FIXTURE_TEST_CASE(keys_of_every_service_pass_the_gateway, RunningTls) {
  Gate gate(aws);
  const std::vector<AwsKeys> all = {
      keys_of_sts(post_signed(assume_role())),
      keys_of_sts(post_bare(with_web_identity())),
      keys_of_sso(credentials_of_sso(kAccessToken)),
      keys_of_document(metadata(kRoles + "instance-role", token())),
      keys_of_document(task()),
      aws.issue(1h)};
  for (const AwsKeys& keys : all) {
    BOOST_TEST(gate.takes(keys));
    BOOST_TEST(keys.access_key_id.substr(0, 4) == "ASIA");
    BOOST_TEST(keys.expires >= unix_now() + 3500);
    BOOST_TEST(keys.expires <= unix_now() + 3600);
  }
  BOOST_TEST(gate.gateway().counts().good_signatures() == 6);
}

BOOST_FIXTURE_TEST_CASE(issued_keys_with_another_token_are_unrecognized,
                        Running) {
  Gate gate(aws);
  AwsKeys keys = aws.issue(1h);
  keys.session_token = aws.issue(1h).session_token;
  BOOST_TEST(gate.refuses(keys, "UnrecognizedClientException"));
  keys.session_token = "";
  BOOST_TEST(gate.refuses(keys, "UnrecognizedClientException"));
}

BOOST_FIXTURE_TEST_CASE(issued_keys_with_another_secret_sign_wrongly, Running) {
  Gate gate(aws);
  AwsKeys keys = aws.issue(1h);
  keys.secret_access_key = aws.issue(1h).secret_access_key;
  BOOST_TEST(gate.refuses(keys, "InvalidSignatureException"));
}

BOOST_FIXTURE_TEST_CASE(keys_issued_by_another_seed_are_unrecognized, Running) {
  Aws::Settings settings;
  settings.seed = "another";
  settings.tls = false;
  Aws another(settings);
  Gate gate(aws);
  BOOST_TEST(gate.refuses(another.issue(1h), "UnrecognizedClientException"));
}

BOOST_FIXTURE_TEST_CASE(issued_keys_that_are_over_are_expired, Running) {
  Gate gate(aws);
  aws.lifetime(-1s);
  const AwsKeys over = keys_of_document(task());
  BOOST_TEST(over.expires < unix_now());
  BOOST_TEST(gate.refuses(over, "ExpiredTokenException"));
  const auto counts = gate.gateway().counts();
  BOOST_TEST(counts.expired_keys() == 1);
  BOOST_TEST(counts.refused_signatures() == 1);
}

BOOST_FIXTURE_TEST_CASE(issued_keys_end_by_the_clock_of_the_gateway, Running) {
  Gate gate(aws);
  const AwsKeys keys = aws.issue(1h);
  gate.gateway().clock_offset(2h);
  BOOST_TEST(gate.refuses(keys, "ExpiredTokenException"));
  gate.gateway().clock_offset(0s);
  BOOST_TEST(gate.takes(keys));
}

BOOST_FIXTURE_TEST_CASE(gateway_takes_each_of_several_users, Running) {
  Gate gate(aws);
  BOOST_TEST(gate.takes({"AKIDEXAMPLE", "secret"}));
  BOOST_TEST(gate.takes({"AKIDOTHER", "other/secret+="}));
  BOOST_TEST(gate.takes({"AKIDTHIRD", "third-secret", "third/token+="}));
  BOOST_TEST(gate.refuses({"AKIDTHIRD", "third-secret"},
                          "UnrecognizedClientException"));
  BOOST_TEST(
      gate.refuses({"AKIDOTHER", "secret"}, "InvalidSignatureException"));
}

BOOST_AUTO_TEST_CASE(gateway_of_no_seed_takes_no_issued_keys) {
  ScriptedServer server;
  Aws aws(with_tls(false));
  Gateway::Settings settings = aws.gateway_settings();
  settings.issued_seed = "";
  Gateway gateway(server.url(), settings);
  Ask ask;
  ask.method = "POST";
  ask.url = gateway.plain_url() + "/";
  ask.headers = {"X-Amz-Target: DynamoDB_20120810.GetItem"};
  Signer{aws.issue(1h), "dynamodb"}.sign(ask);
  BOOST_TEST(has(perform(ask).body, "UnrecognizedClientException"));
}

BOOST_FIXTURE_TEST_CASE(lifetime_told_goes_before_what_is_asked, Running) {
  aws.lifetime(5s);
  Form form = assume_role();
  form["DurationSeconds"] = "900";
  const AwsKeys keys = keys_of_sts(post_signed(form));
  BOOST_TEST(keys.expires <= unix_now() + 5);
  aws.control("POST", "/lifetime", R"({"seconds":null})");
  BOOST_TEST(keys_of_sts(post_signed(form)).expires >= unix_now() + 800);
  BOOST_TEST(keys_of_sts(post_signed(form)).expires <= unix_now() + 900);
}

// --- STS -------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(assumed_role_is_told_as_sts_tells_it, RunningTls) {
  const Answer answer = post_signed(assume_role());
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.header("Content-Type") == "text/xml");
  BOOST_TEST(has(answer.body,
                 "<AssumeRoleResponse xmlns=\"https://sts.amazonaws.com/doc/"
                 "2011-06-15/\">"));
  BOOST_TEST(has(element(answer.body, "AssumeRoleResult"), "<Credentials>"));
  BOOST_TEST(element(answer.body, "Arn") ==
             "arn:aws:sts::123456789012:assumed-role/locker/session@x");
  BOOST_TEST(has(element(answer.body, "AssumedRoleId"), ":session@x"));
  BOOST_TEST(element(element(answer.body, "ResponseMetadata"), "RequestId") ==
             answer.header("x-amzn-RequestId"));
  const auto seen = aws.log().last("sts");
  BOOST_TEST(seen.operation == "AssumeRole");
  BOOST_TEST(seen.signature == "good");
  BOOST_TEST(seen.key == "AKIDSOURCE");
  BOOST_TEST(seen.region == "eu-west-1");
  BOOST_TEST(seen.door == "https");
  BOOST_TEST(seen.status == 200);
}

BOOST_FIXTURE_TEST_CASE(unsigned_assume_role_lacks_a_token, Running) {
  check_refusal(post_bare(assume_role()), 403, "MissingAuthenticationToken");
  BOOST_TEST(aws.log().last("sts").signature == "none");
}

BOOST_FIXTURE_TEST_CASE(wrongly_signed_assume_role_does_not_match, Running) {
  Signer wrong = signer;
  wrong.keys.secret_access_key += "x";
  check_refusal(post_signed(assume_role(), wrong), 403,
                "SignatureDoesNotMatch");
  BOOST_TEST(aws.log().last("sts").signature == "bad");
  Ask other_body = posting(assume_role());
  signer.sign(other_body);
  other_body.body += "&DurationSeconds=900";
  check_refusal(perform(other_body), 403, "SignatureDoesNotMatch");
}

BOOST_FIXTURE_TEST_CASE(signature_for_another_service_does_not_match, Running) {
  Signer wrong = signer;
  wrong.service = "dynamodb";
  const Answer refused = post_signed(assume_role(), wrong);
  check_refusal(refused, 403, "SignatureDoesNotMatch");
  BOOST_TEST(has(element(refused.body, "Message"), "correct service: 'sts'"));
}

BOOST_FIXTURE_TEST_CASE(signature_for_another_region_does_not_match, Running) {
  aws.control("POST", "/sts", R"({"region":"us-east-1"})");
  check_refusal(post_signed(assume_role()), 403, "SignatureDoesNotMatch");
  Signer right = signer;
  right.region = "us-east-1";
  BOOST_TEST(post_signed(assume_role(), right).status == 200);
}

BOOST_FIXTURE_TEST_CASE(signature_out_of_time_does_not_match, Running) {
  for (const seconds ahead : {-320s, 320s}) {
    Signer late = signer;
    late.ahead = ahead;
    check_refusal(post_signed(assume_role(), late), 403,
                  "SignatureDoesNotMatch");
  }
  aws.clock_offset(3h);
  const Answer refused = post_signed(assume_role());
  check_refusal(refused, 403, "SignatureDoesNotMatch");
  BOOST_TEST(has(element(refused.body, "Message"), "Signature expired"));
  // It can be put right by what the refusal tells.
  const auto date =
      ddbmutex::sigv4::parse_http_date(refused.header("Date")).value_or(0);
  Signer corrected = signer;
  corrected.ahead = seconds(date - unix_now());
  BOOST_TEST(post_signed(assume_role(), corrected).status == 200);
}

BOOST_FIXTURE_TEST_CASE(keys_that_sts_does_not_know_are_invalid, Running) {
  Signer unknown = signer;
  unknown.keys.access_key_id = "AKIDNOBODY";
  check_refusal(post_signed(assume_role(), unknown), 403,
                "InvalidClientTokenId");
  Signer other_token = signer;
  other_token.keys = aws.issue(1h);
  other_token.keys.session_token += "x";
  check_refusal(post_signed(assume_role(), other_token), 403,
                "InvalidClientTokenId");
}

BOOST_FIXTURE_TEST_CASE(user_told_anew_signs_with_the_new_secret, Running) {
  BOOST_TEST(post_signed(assume_role()).status == 200);
  Signer changed = signer;
  changed.keys.secret_access_key = "new-secret";
  aws.user(changed.keys);
  BOOST_TEST(post_signed(assume_role(), changed).status == 200);
  check_refusal(post_signed(assume_role()), 403, "SignatureDoesNotMatch");
}

BOOST_FIXTURE_TEST_CASE(source_keys_that_are_over_are_expired, Running) {
  Signer over = signer;
  over.keys = aws.issue(-1s);
  check_refusal(post_signed(assume_role(), over), 403, "ExpiredToken");
}

BOOST_FIXTURE_TEST_CASE(role_admits_its_sources_alone, Running) {
  aws.role({kRole, "", {"AKIDOTHER"}});
  check_refusal(post_signed(assume_role()), 403, "AccessDenied");
  aws.role({kRole, "", {"AKIDSOURCE"}});
  BOOST_TEST(post_signed(assume_role()).status == 200);
  aws.role({kRole, "", {"arn:aws:iam::123456789012:user/AKIDSOURCE"}});
  BOOST_TEST(post_signed(assume_role()).status == 200);
}

BOOST_FIXTURE_TEST_CASE(role_chained_from_another_admits_its_sessions,
                        Running) {
  const std::string last = "arn:aws:iam::210987654321:role/last";
  aws.role({last, "", {"arn:aws:iam::123456789012:role/locker"}, 12h});
  Form form = assume_role();
  form["RoleArn"] = last;
  check_refusal(post_signed(form), 403, "AccessDenied");
  Signer chained = signer;
  chained.keys = keys_of_sts(post_signed(assume_role()));
  BOOST_TEST(element(post_signed(form, chained).body, "Arn") ==
             "arn:aws:sts::210987654321:assumed-role/last/session@x");
  form["DurationSeconds"] = "3601";
  check_refusal(post_signed(form, chained), 400, "ValidationError");
}

BOOST_FIXTURE_TEST_CASE(role_of_an_external_id_wants_it_told, Running) {
  aws.role({kRole, "the-external-id"});
  check_refusal(post_signed(assume_role()), 403, "AccessDenied");
  Form form = assume_role();
  form["ExternalId"] = "another";
  check_refusal(post_signed(form), 403, "AccessDenied");
  form["ExternalId"] = "the-external-id";
  BOOST_TEST(post_signed(form).status == 200);
}

BOOST_FIXTURE_TEST_CASE(role_that_is_not_there_is_denied, Running) {
  Form form = assume_role();
  form["RoleArn"] = "arn:aws:iam::123456789012:role/nobody";
  check_refusal(post_signed(form), 403, "AccessDenied");
}

struct Parameter {
  const char* name;
  const char* value;  // Null: it is left out.
  const char* code;   // Null: all is well.
};

std::ostream& operator<<(std::ostream& out, const Parameter& one) {
  return out << one.name << "=" << (one.value != nullptr ? one.value : "-");
}

const std::string kLongName(64, 'n');
const std::string kTooLongName(65, 'n');

const std::vector<Parameter> kParameters = {
    {"RoleArn", nullptr, "ValidationError"},
    {"RoleArn", "arn:aws:iam::1:r/x", "ValidationError"},
    {"RoleArn", "arn:aws:iam::123456789012:user/locker", "ValidationError"},
    {"RoleArn", "arn:aws:iam::12345678901:role/locker", "ValidationError"},
    {"RoleSessionName", nullptr, "ValidationError"},
    {"RoleSessionName", "x", "ValidationError"},
    {"RoleSessionName", "a b", "ValidationError"},
    {"RoleSessionName", "a/b", "ValidationError"},
    {"RoleSessionName", "a_b+c=d,e.f@g-h", nullptr},
    {"RoleSessionName", kLongName.c_str(), nullptr},
    {"RoleSessionName", kTooLongName.c_str(), "ValidationError"},
    {"DurationSeconds", "899", "ValidationError"},
    {"DurationSeconds", "900", nullptr},
    {"DurationSeconds", "3600", nullptr},
    {"DurationSeconds", "3601", "ValidationError"},
    {"DurationSeconds", "43201", "ValidationError"},
    {"DurationSeconds", "soon", "MalformedInput"},
    {"Policy", "no policy", "MalformedPolicyDocument"},
    {"Version", nullptr, "InvalidAction"},
    {"Version", "2010-05-08", "InvalidAction"},
    {"Action", "AssumeEverything", "InvalidAction"}};

BOOST_FIXTURE_TEST_CASE(parameters_are_validated_as_sts_does_it, Running) {
  for (const Parameter& one : kParameters) {
    BOOST_TEST_CONTEXT(one) {
      for (Form form : {assume_role(), with_web_identity()}) {
        const bool is_signed = form["Action"] == "AssumeRole";
        form.erase(one.name);
        if (one.value != nullptr) form[one.name] = one.value;
        const Answer answer = is_signed ? post_signed(form) : post_bare(form);
        if (one.code != nullptr) {
          check_refusal(answer, 400, one.code);
        } else {
          BOOST_TEST(answer.status == 200, answer.body);
        }
      }
    }
  }
}

BOOST_FIXTURE_TEST_CASE(longer_role_gives_longer_sessions, Running) {
  aws.role({kRole, "", {"*"}, 12h});
  Form form = assume_role();
  form["DurationSeconds"] = "43200";
  BOOST_TEST(keys_of_sts(post_signed(form)).expires > unix_now() + 43000);
  aws.role({kRole, "", {"*"}, 24h});
  form["DurationSeconds"] = "43201";
  check_refusal(post_signed(form), 400, "ValidationError");
}

BOOST_FIXTURE_TEST_CASE(what_is_no_form_is_no_operation, Running) {
  Ask get = posting(assume_role());
  get.method = "GET";
  Ask elsewhere = posting(assume_role());
  elsewhere.url += "sts";
  Ask json = posting(assume_role());
  json.headers = {"Content-Type: application/json"};
  for (Ask ask : {get, elsewhere, json}) {
    signer.sign(ask);
    BOOST_TEST(perform(ask).status == 404);
  }
}

BOOST_FIXTURE_TEST_CASE(web_identity_is_told_as_sts_tells_it, Running) {
  const Answer answer = post_bare(with_web_identity());
  BOOST_TEST(answer.status == 200);
  const std::string result =
      element(answer.body, "AssumeRoleWithWebIdentityResult");
  BOOST_TEST(has(result, "<Credentials>"));
  BOOST_TEST(element(result, "SubjectFromWebIdentityToken") ==
             "system:serviceaccount:default:locker");
  BOOST_TEST(element(result, "Arn") ==
             "arn:aws:sts::123456789012:assumed-role/locker/session@x");
  BOOST_TEST(aws.log().last("sts").token == "valid");
}

BOOST_FIXTURE_TEST_CASE(web_identity_that_is_no_good_is_refused, Running) {
  Form form = with_web_identity();
  form["WebIdentityToken"] = "of-nobody";
  check_refusal(post_bare(form), 400, "InvalidIdentityToken");
  aws.web_identity("old-token", -1s);
  form["WebIdentityToken"] = "old-token";
  check_refusal(post_bare(form), 400, "ExpiredTokenException");
  form.erase("WebIdentityToken");
  check_refusal(post_bare(form), 400, "ValidationError");
  form = with_web_identity();
  form["RoleArn"] = "arn:aws:iam::123456789012:role/nobody";
  check_refusal(post_bare(form), 403, "AccessDenied");
}

BOOST_FIXTURE_TEST_CASE(web_identity_that_is_signed_is_refused, Running) {
  check_refusal(post_signed(with_web_identity()), 403, "AccessDenied");
}

// --- SSO -------------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(sso_gives_keys_for_a_token_of_its_own, Running) {
  check_error(credentials_of_sso(""), 400, "InvalidRequestException");
  check_error(credentials_of_sso("of-nobody"), 401, "UnauthorizedException");
  aws.sso_token("old-token", -1s);
  check_error(credentials_of_sso("old-token"), 401, "UnauthorizedException");
  check_error(credentials_of_sso(kAccessToken, ""), 400,
              "InvalidRequestException");
  check_error(credentials_of_sso(kAccessToken, "dev", "12"), 400,
              "InvalidRequestException");
  BOOST_TEST(credentials_of_sso(kAccessToken).status == 200);
  const auto seen = aws.log().last("sso", "GetRoleCredentials");
  BOOST_TEST(seen.token == "valid");
  BOOST_TEST(seen.form.at("role_name") == "dev");
  BOOST_TEST(seen.form.at("account_id") == "123456789012");
}

BOOST_FIXTURE_TEST_CASE(sso_gives_no_role_that_is_not_assigned, Running) {
  aws.control("POST", "/sso",
              R"({"roles":[{"account_id":"123456789012","role_name":"dev"}]})");
  BOOST_TEST(credentials_of_sso(kAccessToken).status == 200);
  check_error(credentials_of_sso(kAccessToken, "admin"), 403,
              "ForbiddenException");
  check_error(credentials_of_sso(kAccessToken, "dev", "210987654321"), 403,
              "ForbiddenException");
}

BOOST_FIXTURE_TEST_CASE(refreshed_token_is_good_and_the_old_one_spent,
                        Running) {
  const Answer answer = token_of_oidc(kRefreshToken);
  BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
  auto told = members(answer.body);
  BOOST_TEST(told["tokenType"] == "Bearer");
  BOOST_TEST(told["expiresIn"] == "28800");
  BOOST_TEST(credentials_of_sso(told["accessToken"]).status == 200);
  check_error(token_of_oidc(kRefreshToken), 400, "InvalidGrantException");
  BOOST_TEST(token_of_oidc(told["refreshToken"]).status == 200);
}

BOOST_FIXTURE_TEST_CASE(refresh_without_rotation_gives_no_refresh_token,
                        Running) {
  aws.control("POST", "/oidc", R"({"rotate":false,"access_seconds":-1})");
  auto told = members(token_of_oidc(kRefreshToken).body);
  BOOST_TEST(told.count("refreshToken") == 0u);
  check_error(credentials_of_sso(told["accessToken"]), 401,
              "UnauthorizedException");
  BOOST_TEST(token_of_oidc(kRefreshToken).status == 200);
}

BOOST_FIXTURE_TEST_CASE(refresh_by_whoever_may_not_is_refused, Running) {
  check_error(token_of_oidc(kRefreshToken, "wrong"), 401,
              "InvalidClientException");
  check_error(token_of_oidc(kRefreshToken, "client-secret", "password"), 400,
              "UnsupportedGrantTypeException");
  check_error(token_of_oidc("of-nobody"), 400, "InvalidGrantException");
  aws.refresh_token("old", "client", -1s);
  check_error(token_of_oidc("old"), 400, "InvalidGrantException");
  aws.refresh_token("of-another", "another-client", 1h);
  check_error(token_of_oidc("of-another"), 400, "InvalidGrantException");
  aws.sso_client("client", "client-secret", -1s);
  check_error(token_of_oidc(kRefreshToken), 401, "InvalidClientException");
  BOOST_TEST(has(token_of_oidc(kRefreshToken).body, "\"invalid_client\""));
}

// --- AWS Sign-In ------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(signin_gives_keys_for_a_refresh_token_and_a_proof,
                        Running) {
  const Answer answer = keys_of_signin(proof_for_signin());
  BOOST_TEST_REQUIRE(answer.status == 200, answer.body);
  BOOST_TEST(has(answer.body, "\"tokenType\": \"aws_sigv4\""));
  BOOST_TEST(has(answer.body, "\"expiresIn\": 900"));
  BOOST_TEST(aws.log().last("signin").signature == "good");
  // The same again, unless each is good for one use.
  BOOST_TEST(keys_of_signin(proof_for_signin()).status == 200);
  aws.control("POST", "/signin", R"({"once": true})");
  BOOST_TEST(keys_of_signin(proof_for_signin()).status == 200);
  check_error(keys_of_signin(proof_for_signin()), 401, "AccessDeniedException");
}

BOOST_FIXTURE_TEST_CASE(signin_takes_no_proof_that_is_not_right, Running) {
  const std::string good = proof_for_signin();
  std::string wrong_signature = good;
  char& last = wrong_signature[wrong_signature.size() - 10];
  last = last == 'A' ? 'B' : 'A';
  const std::string others =
      ddbmutex::sigv4::DpopKey(tests::pem_of("P-256"))
          .proof("POST", aws.url("signin") + "/v1/token", unix_now());
  const std::string of_two =
      others.substr(0, others.rfind('.')) + good.substr(good.rfind('.'));
  for (const std::string& proof :
       {std::string("x"), std::string("a.b.c"), wrong_signature, others, of_two,
        proof_for_signin("GET"), proof_for_signin("POST", "/v1/other"),
        proof_for_signin("POST", "/v1/token", 400),
        proof_for_signin("POST", "/v1/token", -400)}) {
    BOOST_TEST_CONTEXT(proof) {
      check_error(keys_of_signin(proof), 400, "ValidationException");
    }
  }
  BOOST_TEST(keys_of_signin(good).status == 200);
  check_error(keys_of_signin(good), 400, "ValidationException");
}

BOOST_FIXTURE_TEST_CASE(signin_gives_nothing_to_whoever_may_not, Running) {
  check_error(keys_of_signin(proof_for_signin(), "of-nobody"), 401,
              "AccessDeniedException");
  aws.login_token("old", "client", login_key, -1s);
  check_error(keys_of_signin(proof_for_signin(), "old"), 401,
              "AccessDeniedException");
  check_error(keys_of_signin(proof_for_signin(), kRefreshToken, "another"), 400,
              "ValidationException");
  check_error(
      keys_of_signin(proof_for_signin(), kRefreshToken, "client", "password"),
      400, "ValidationException");
}

// --- EC2's metadata --------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(metadata_token_is_given_as_ec2_gives_it, Running) {
  const std::string ttl = "x-aws-ec2-metadata-token-ttl-seconds";
  for (const char* wrong : {"0", "21601", "-1", "soon", "1.5", "999999"}) {
    BOOST_TEST(put_token({ttl + ": " + wrong}).status == 400, wrong);
  }
  BOOST_TEST(put_token({}).status == 400);
  BOOST_TEST(put_token({ttl + ": 60", "X-Forwarded-For: 10.0.0.1"}).status ==
             403);
  const Answer answer = put_token({ttl + ": 60"});
  BOOST_TEST(answer.status == 200);
  BOOST_TEST(answer.body.size() == 56u);
  BOOST_TEST(answer.header(ttl) == "60");
  const auto seen = aws.log().last("imds", "PutToken");
  BOOST_TEST(seen.method == "PUT");
  BOOST_TEST(seen.headers.at(ttl) == "60");
}

BOOST_FIXTURE_TEST_CASE(metadata_is_told_to_those_with_a_token, Running) {
  for (const std::string& path : {kRoles, kRoles + "instance-role",
                                  std::string("meta-data/placement/region")}) {
    BOOST_TEST(metadata(path, "").status == 401);
    BOOST_TEST(metadata(path, "of-nobody").status == 401);
    BOOST_TEST(metadata(path, token()).status == 200);
  }
  BOOST_TEST(metadata(kRoles, token()).body == "instance-role");
  BOOST_TEST(metadata("meta-data/placement/region", token()).body ==
             "eu-west-1");
}

BOOST_FIXTURE_TEST_CASE(metadata_of_version_1_needs_no_token, Running) {
  aws.control("POST", "/imds", R"({"v1":true,"put_status":404})");
  BOOST_TEST(put_token({"x-aws-ec2-metadata-token-ttl-seconds: 60"}).status ==
             404);
  BOOST_TEST(metadata(kRoles, "").status == 200);
  BOOST_TEST(metadata(kRoles, "of-nobody").status == 401);
}

BOOST_FIXTURE_TEST_CASE(metadata_token_dies_when_it_is_told_to, Running) {
  const std::string known = token();
  aws.control("POST", "/imds", R"({"forget_tokens":true})");
  BOOST_TEST(metadata(kRoles, known).status == 401);
  BOOST_TEST(aws.log().last("imds").token == "wrong");
  aws.control("POST", "/imds", R"({"token_seconds":-1})");
  BOOST_TEST(metadata(kRoles, token()).status == 401);
  BOOST_TEST(aws.log().last("imds").token == "expired");
}

BOOST_FIXTURE_TEST_CASE(keys_of_an_instance_are_told_as_ec2_tells_them,
                        Running) {
  const Answer answer = metadata(kRoles + "instance-role", token());
  auto told = members(answer.body);
  BOOST_TEST(told.size() == 7u);
  BOOST_TEST(told["Code"] == "Success");
  BOOST_TEST(told["Type"] == "AWS-HMAC");
  BOOST_TEST(time_of(told["LastUpdated"]) <= unix_now());
  BOOST_TEST(time_of(told["Expiration"]) > unix_now());
  BOOST_TEST(metadata(kRoles + "another", token()).status == 404);
}

BOOST_FIXTURE_TEST_CASE(instance_without_a_role_has_no_keys, Running) {
  aws.control("POST", "/imds", R"({"role":null})");
  BOOST_TEST(metadata(kRoles, token()).status == 404);
  BOOST_TEST(metadata(kRoles + "instance-role", token()).status == 404);
}

BOOST_FIXTURE_TEST_CASE(extended_paths_are_there_only_if_told, Running) {
  const std::string path = "meta-data/iam/security-credentials-extended/";
  BOOST_TEST(metadata(path, token()).status == 404);
  aws.control("POST", "/imds", R"({"extended":true,"role":"other"})");
  BOOST_TEST(metadata(path, token()).body == "other");
  auto told = members(metadata(path + "other", token()).body);
  BOOST_TEST(told["AccountId"] == "123456789012");
}

BOOST_FIXTURE_TEST_CASE(document_stays_the_same_as_long_as_told, Running) {
  const auto key = [&] {
    return keys_of_document(metadata(kRoles + "instance-role", token()))
        .access_key_id;
  };
  BOOST_TEST(key() != key());
  aws.control("POST", "/imds", R"({"same_for":3600})");
  const std::string known = key();
  BOOST_TEST(key() == known);
  aws.clock_offset(2h);
  BOOST_TEST(key() != known);
}

// --- Containers ------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(keys_of_a_task_are_told_as_its_agent_tells_them,
                        Running) {
  auto told = members(task().body);
  BOOST_TEST(told.size() == 5u);
  BOOST_TEST(told["RoleArn"] == "arn:aws:iam::123456789012:role/task-role");
  aws.control("POST", "/container", R"({"account_id":"210987654321"})");
  BOOST_TEST(members(task().body)["AccountId"] == "210987654321");
}

BOOST_FIXTURE_TEST_CASE(agent_tells_keys_to_those_who_may_know, Running) {
  aws.control("POST", "/container",
              R"({"authorization":"Basic it","path":"/v1/credentials?id=7"})");
  const std::string path = "/v1/credentials?id=7";
  BOOST_TEST(task("Basic it", path).status == 200);
  BOOST_TEST(aws.log().last("container").token == "valid");
  BOOST_TEST(task("", path).status == 403);
  BOOST_TEST(aws.log().last("container").token == "absent");
  const Answer refused = task("it", path);
  BOOST_TEST(refused.status == 403);
  BOOST_TEST(members(refused.body)["code"] == "AccessDeniedException");
  BOOST_TEST(members(refused.body)["message"] != "");
  BOOST_TEST(task("Basic it", "/v1/credentials?id=8").status == 404);
}

// --- Faults ----------------------------------------------------------------

struct Failure {
  std::string service;
  std::string kind;
  int status;
  std::string words;
};

const std::vector<Failure> kFailures = {
    {"sts", "500", 500, "<Code>InternalFailure</Code>"},
    {"sts", "503", 503, "<Code>ServiceUnavailable</Code>"},
    {"sts", "throttle", 400, "<Code>Throttling</Code>"},
    {"sso", "500", 500, "InternalServerException"},
    {"sso", "503", 503, "ServiceUnavailableException"},
    {"sso", "throttle", 429, "TooManyRequestsException"},
    {"oidc", "500", 500, "server_error"},
    {"oidc", "throttle", 400, "slow_down"},
    {"signin", "500", 500, "server_error"},
    {"signin", "503", 503, "Service unavailable"},
    {"signin", "throttle", 429, "Too many requests"},
    {"imds", "500", 500, "Internal Server Error"},
    {"imds", "503", 503, "Service Unavailable"},
    {"imds", "throttle", 429, "Too Many Requests"},
    {"container", "500", 500, "\"code\""},
    {"container", "throttle", 429, "TooManyRequests"},
    {"*", "garbage", 200, "<html>"},
    {"*", "empty", 200, ""},
};

BOOST_FIXTURE_TEST_CASE(failures_are_told_in_each_services_words, Running) {
  for (const Failure& failure : kFailures) {
    BOOST_TEST_CONTEXT(failure.service << " " << failure.kind) {
      aws.fault({failure.service, "*", failure.kind});
      Answer answer;
      if (failure.service == "sso") {
        answer = credentials_of_sso(kAccessToken);
      } else if (failure.service == "oidc") {
        answer = token_of_oidc(kRefreshToken);
      } else if (failure.service == "signin") {
        answer = keys_of_signin(proof_for_signin());
      } else if (failure.service == "imds") {
        answer = metadata(kRoles, "x");
      } else if (failure.service == "container") {
        answer = task();
      } else {
        answer = post_signed(assume_role());
      }
      BOOST_TEST(answer.status == failure.status);
      BOOST_TEST(has(answer.body, failure.words));
      if (failure.words.empty()) BOOST_TEST(answer.body == "");
    }
  }
  // None of the refreshes was seen.
  BOOST_TEST(token_of_oidc(kRefreshToken).status == 200);
}

BOOST_FIXTURE_TEST_CASE(refusal_is_what_it_was_told_to_be, Running) {
  AwsFault fault{"sts", "AssumeRole", "refuse"};
  fault.status = 403;
  fault.code = "RegionDisabledException";
  fault.message = "not <here>";
  aws.fault(fault);
  BOOST_TEST(post_bare(with_web_identity()).status == 200);
  const Answer refused = post_signed(assume_role());
  check_refusal(refused, 403, "RegionDisabledException");
  BOOST_TEST(element(refused.body, "Message") == "not &lt;here&gt;");
  BOOST_TEST(aws.log().last("sts").fault == "refuse");
  BOOST_TEST(aws.log().last("sts").code == "RegionDisabledException");
  BOOST_TEST(post_signed(assume_role()).status == 200);
}

BOOST_FIXTURE_TEST_CASE(fault_hits_the_requests_that_it_counts, Running) {
  aws.fault({"container", "*", "500", 2, 2});
  std::string seen;
  for (int i = 0; i < 4; ++i) seen += task().status == 500 ? "5" : ".";
  BOOST_TEST(seen == ".55.");
  aws.fault({"container", "*", "500", 0});
  for (int i = 0; i < 3; ++i) BOOST_TEST(task().status == 500);
  aws.clear();
  BOOST_TEST(task().status == 200);
}

BOOST_FIXTURE_TEST_CASE(fault_ends_the_connection_as_it_says, Running) {
  const auto ending = [&](const char* kind) {
    aws.fault({"container", "*", kind});
    Ask ask = asking("GET", aws.plain_url("container") + "/");
    if (kind == std::string("hang")) ask.within = 200ms;
    return perform(ask).ending;
  };
  BOOST_TEST(ending("reset") == CURLE_RECV_ERROR);
  BOOST_TEST(ending("reset-answer") == CURLE_RECV_ERROR);
  BOOST_TEST(ending("truncate") == CURLE_PARTIAL_FILE);
  BOOST_TEST(ending("hang") == CURLE_OPERATION_TIMEDOUT);
}

BOOST_FIXTURE_TEST_CASE(answer_lost_was_given_nonetheless, Running) {
  aws.fault({"oidc", "*", "reset-answer"});
  BOOST_TEST(token_of_oidc(kRefreshToken).status == 0);
  check_error(token_of_oidc(kRefreshToken), 400, "InvalidGrantException");
}

BOOST_FIXTURE_TEST_CASE(slow_answer_takes_its_time, Running) {
  AwsFault fault{"container", "*", "slow"};
  fault.wait = 300ms;
  aws.fault(fault);
  const auto start = std::chrono::steady_clock::now();
  BOOST_TEST(task().status == 200);
  // Node's timers may be early by a millisecond.
  BOOST_TEST((std::chrono::steady_clock::now() - start >= 298ms));
}

BOOST_FIXTURE_TEST_CASE(document_lacks_what_it_was_told_to_lack, Running) {
  AwsFault fault{"*", "*", "missing", 0};
  fault.missing = {"SecretAccessKey", "secretAccessKey", "accessToken"};
  aws.fault(fault);
  BOOST_TEST(!has(task().body, "SecretAccessKey"));
  BOOST_TEST(has(task().body, "AccessKeyId"));
  BOOST_TEST(!has(post_signed(assume_role()).body, "SecretAccessKey"));
  BOOST_TEST(!has(credentials_of_sso(kAccessToken).body, "secretAccessKey"));
  BOOST_TEST(!has(token_of_oidc(kRefreshToken).body, "accessToken"));
}

BOOST_FIXTURE_TEST_CASE(document_says_what_it_was_told_to_say, Running) {
  AwsFault fault{"imds", "GetRole", "alter"};
  fault.set = {{"Code", "Failed"}, {"Expiration", "tomorrow"}};
  aws.fault(fault);
  auto told = members(metadata(kRoles + "instance-role", token()).body);
  BOOST_TEST(told["Code"] == "Failed");
  BOOST_TEST(told["Expiration"] == "tomorrow");
  AwsFault say{"imds", "GetRole", "say"};
  say.status = 299;
  say.body = "anything";
  aws.fault(say);
  const Answer said = metadata(kRoles + "instance-role", token());
  BOOST_TEST(said.status == 299);
  BOOST_TEST(said.body == "anything");
}

BOOST_FIXTURE_TEST_CASE(oversized_document_is_still_one, Running) {
  AwsFault fault{"container", "*", "oversized"};
  fault.bytes = 2000000;
  aws.fault(fault);
  const Answer answer = task();
  BOOST_TEST(answer.body.size() == 2000000u);
  BOOST_TEST(members(answer.body).count("AccessKeyId") == 1u);
}

BOOST_FIXTURE_TEST_CASE(redirect_that_is_followed_is_seen, RunningTls) {
  aws.fault({"container", "*", "redirect"});
  const Answer answer = task();
  BOOST_TEST(answer.status == 302);
  const std::string location = answer.header("Location");
  BOOST_TEST(location == aws.url("container") + "/redirected");
  BOOST_TEST(aws.log().count("container", "Redirected") == 0);
  perform(asking("GET", location));
  BOOST_TEST(aws.log().count("container", "Redirected") == 1);
  AwsFault elsewhere{"container", "*", "redirect"};
  elsewhere.location = aws.plain_url("sso") + "/redirected";
  aws.fault(elsewhere);
  BOOST_TEST(task().header("Location") == elsewhere.location);
}

BOOST_FIXTURE_TEST_CASE(service_is_shut_and_opened_by_itself, RunningTls) {
  aws.mode("container", "refuse");
  BOOST_TEST(task().ending == CURLE_COULDNT_CONNECT);
  BOOST_TEST(credentials_of_sso(kAccessToken).status == 200);
  aws.mode("container", "hang");
  Ask ask = asking("GET", aws.url("container") + "/v2/credentials/task");
  ask.within = 200ms;
  BOOST_TEST(perform(ask).ending == CURLE_OPERATION_TIMEDOUT);
  aws.mode("*", "open");
  BOOST_TEST(task().status == 200);
}

// --- Clock -----------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(dates_and_ends_are_those_of_its_clock, Running) {
  aws.clock_offset(-48h);
  const Answer answer = task();
  const std::int64_t then = unix_now() - 48 * 3600;
  const auto date =
      ddbmutex::sigv4::parse_http_date(answer.header("Date")).value_or(0);
  BOOST_TEST(std::abs(date - then) <= 60);
  BOOST_TEST(std::abs(keys_of_document(answer).expires - then - 3600) <= 60);
  aws.dates(false);
  BOOST_TEST(task().header("Date") == "");
}

// --- Certificates ----------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(certificate_that_is_no_good_is_not_taken, RunningTls) {
  for (const char* name : {"expired", "other-host", "unknown-ca"}) {
    BOOST_TEST_CONTEXT(name) {
      Ask ask = asking("GET", aws.url_with(name));
      BOOST_TEST(perform(ask).ending == CURLE_PEER_FAILED_VERIFICATION);
      BOOST_TEST(aws.log().count("sts") == 0);
      ask.verifies = false;
      BOOST_TEST(perform(ask).status == 404);
      BOOST_TEST(aws.log().last("sts").door == name);
      aws.forget();
    }
  }
}

BOOST_FIXTURE_TEST_CASE(gateway_and_standins_share_a_certificate, RunningTls) {
  Gate gate(aws);
  BOOST_TEST(gate.gateway().ca_file() == aws.ca_file());
  BOOST_TEST(gate.takes(aws.issue(1h)));
}

BOOST_AUTO_TEST_CASE(certificate_stays_when_a_gateway_that_has_it_ends) {
  Aws aws;
  ScriptedServer server;
  { Gateway gateway(server.url(), aws.gateway_settings()); }
  BOOST_TEST(std::filesystem::exists(aws.ca_file()));
  Gateway another(server.url(), aws.gateway_settings());
  BOOST_TEST(another.ca_file() == aws.ca_file());
}

BOOST_AUTO_TEST_CASE(standins_without_tls_speak_plain_http) {
  Aws aws(with_tls(false));
  BOOST_TEST(aws.url("sts") == aws.plain_url("sts"));
  BOOST_TEST(aws.ca_file() == "");
  BOOST_CHECK_THROW(aws.url_with("expired"), std::runtime_error);
}

// --- The proxy -------------------------------------------------------------

BOOST_FIXTURE_TEST_CASE(proxy_tunnels_to_this_machine, RunningTls) {
  Ask ask = asking("GET", aws.url("container") + "/v2/credentials/task");
  ask.proxy = aws.proxy_url();
  BOOST_TEST(perform(ask).status == 200);
  const auto log = aws.log();
  BOOST_TEST(log.connects() == 1);
  BOOST_TEST(log.plain() == 0);
  const std::string target = aws.url("container").substr(8);
  BOOST_TEST(log.targets() == std::vector<std::string>{target},
             boost::test_tools::per_element());
}

BOOST_FIXTURE_TEST_CASE(proxy_hands_on_plain_requests, Running) {
  Ask ask = asking("GET", aws.plain_url("container") + "/v2/credentials/task");
  ask.proxy = aws.proxy_url();
  BOOST_TEST(perform(ask).status == 200);
  BOOST_TEST(aws.log().connects() == 0);
  BOOST_TEST(aws.log().plain() == 1);
}

BOOST_FIXTURE_TEST_CASE(proxy_that_wants_a_password_is_told_it, RunningTls) {
  aws.control("POST", "/proxy", R"({"auth":"user:pass word"})");
  Ask ask = asking("GET", aws.url("container") + "/v2/credentials/task");
  ask.proxy = aws.proxy_url();
  BOOST_TEST(perform(ask).ending != CURLE_OK);
  ask.password = "user:wrong";
  BOOST_TEST(perform(ask).ending != CURLE_OK);
  ask.password = "user:pass word";
  BOOST_TEST(perform(ask).status == 200);
  BOOST_TEST(aws.log().unauthorized() == 2);
  BOOST_TEST(aws.log().connects() == 1);
}

BOOST_FIXTURE_TEST_CASE(proxy_refuses_when_it_is_told_to, RunningTls) {
  aws.control("POST", "/proxy", R"({"refuse":503})");
  for (const std::string& url :
       {aws.url("container"), aws.plain_url("container")}) {
    Ask ask = asking("GET", url + "/v2/credentials/task");
    ask.proxy = aws.proxy_url();
    const Answer answer = perform(ask);
    BOOST_TEST((answer.ending != CURLE_OK || answer.status == 503));
  }
  BOOST_TEST(aws.log().refused() == 2);
  BOOST_TEST(aws.log().count("container") == 0);
}

BOOST_AUTO_TEST_CASE(proxy_leads_only_where_it_was_told) {
  const std::string host = "sts.eu-west-1.amazonaws.com";
  Aws::Settings settings;
  settings.names = {host};
  Aws aws(settings);
  Ask ask;
  ask.url = "https://" + host + "/";
  ask.ca_file = aws.ca_file();
  ask.proxy = aws.proxy_url();
  BOOST_TEST(perform(ask).ending != CURLE_OK);
  BOOST_TEST(aws.log().refused() == 1);
  const std::string port = aws.url("sts").substr(aws.url("sts").rfind(':') + 1);
  aws.control("POST", "/proxy",
              R"({"routes":{")" + host + R"(:443":)" + port + "}}");
  BOOST_TEST(perform(ask).status == 404);
  BOOST_TEST(aws.log().last("sts").headers.at("host") == host);
}

// --- AWS's own providers ---------------------------------------------------

// With a home of their own, before the stand-ins.
struct BeforeProviders : RunningTls {
  tests::Home home;
  Gate gate{aws};

  BeforeProviders() {
    home.variables["AWS_REGION"] = "eu-west-1";
    home.variables["AWS_CONFIG_FILE"] = (home.root / ".aws/config").string();
    home.variables["AWS_SHARED_CREDENTIALS_FILE"] =
        (home.root / ".aws/credentials").string();
    home.variables["AWS_EC2_METADATA_DISABLED"] = "true";
    home.variables["NODE_EXTRA_CA_CERTS"] = aws.ca_file();  // Node's own way.
    for (const auto& one : aws.environment()) home.variables.insert(one);
  }

  AwsKeys resolve() {
    std::vector<std::string> environment;
    for (const std::string& one : tests::clean_environment()) {
      const std::string name = one.substr(0, one.find('='));
      const bool is_theirs =
          name.rfind("AWS_", 0) == 0 || home.variables.count(name) != 0;
      if (!is_theirs) environment.push_back(one);
    }
    for (const auto& [name, value] : home.variables) {
      environment.push_back(name + "=" + value);
    }
    const std::string program =
        (tests::project() / "tests/aws/providers.js").string();
    tests::Process process({{"/usr/bin/env", "node", program}, environment});
    auto told = members(tests::first_line("providers", process));
    BOOST_TEST_REQUIRE(told["refused"] == "");
    return {told["key"], told["secret"], told["token"],
            std::stoll(told["expires"])};
  }

  void check_keys() {
    const AwsKeys keys = resolve();
    BOOST_TEST(gate.takes(keys));
    BOOST_TEST(keys.expires > unix_now());
    BOOST_TEST(keys.expires <= unix_now() + 3600);
  }
};

BOOST_FIXTURE_TEST_CASE(aws_own_providers_take_the_instance_for_one,
                        BeforeProviders) {
  home.variables.erase("AWS_EC2_METADATA_DISABLED");
  check_keys();
  BOOST_TEST(aws.log().last("imds", "GetRole").token == "valid");
}

BOOST_FIXTURE_TEST_CASE(aws_own_providers_take_the_agent_for_one,
                        BeforeProviders) {
  aws.control("POST", "/container", R"({"authorization":"Basic it"})");
  home.variables["AWS_CONTAINER_CREDENTIALS_FULL_URI"] =
      aws.plain_url("container") + "/v2/credentials/task";
  home.variables["AWS_CONTAINER_AUTHORIZATION_TOKEN"] = "Basic it";
  check_keys();
}

BOOST_FIXTURE_TEST_CASE(aws_own_providers_take_sts_for_it_unsigned,
                        BeforeProviders) {
  home.variables["AWS_WEB_IDENTITY_TOKEN_FILE"] =
      home.write("token", kWebIdentity);
  home.variables["AWS_ROLE_ARN"] = kRole;
  check_keys();
  BOOST_TEST(aws.log().last("sts").operation == "AssumeRoleWithWebIdentity");
}

BOOST_FIXTURE_TEST_CASE(aws_own_providers_take_sts_for_it_signed,
                        BeforeProviders) {
  home.write(".aws/config",
             "[default]\nrole_arn = " + kRole +
                 "\nsource_profile = base\nexternal_id = the-external-id\n"
                 "[profile base]\naws_access_key_id = AKIDSOURCE\n"
                 "aws_secret_access_key = source-secret\n");
  aws.role({kRole, "the-external-id"});
  check_keys();
  const auto seen = aws.log().last("sts", "AssumeRole");
  BOOST_TEST(seen.signature == "good");
  BOOST_TEST(seen.region == "eu-west-1");
}

BOOST_FIXTURE_TEST_CASE(aws_own_providers_take_sso_for_it, BeforeProviders) {
  home.write(".aws/config",
             "[default]\nsso_session = corp\nsso_account_id = 123456789012\n"
             "sso_role_name = dev\n[sso-session corp]\n"
             "sso_region = eu-west-1\n"
             "sso_start_url = https://corp.awsapps.com/start\n");
  std::filesystem::create_directories(home.root / ".aws/sso/cache");
  // By the SHA-1 of "corp".
  home.write(".aws/sso/cache/ee0bfd2552fbd840c02cc48b6e823320543c450f.json",
             R"({"accessToken":"old","expiresAt":"2001-01-01T00:00:00Z",)"
             R"("refreshToken":")" +
                 kRefreshToken +
                 R"(","clientId":"client","clientSecret":"client-secret",)"
                 R"("registrationExpiresAt":"2999-01-01T00:00:00Z",)"
                 R"("region":"eu-west-1","startUrl":"https://x"})");
  check_keys();
  BOOST_TEST(aws.log().count("oidc", "CreateToken") == 1);
  BOOST_TEST(aws.log().last("sso").form.at("role_name") == "dev");
}

BOOST_FIXTURE_TEST_CASE(aws_own_providers_take_signin_for_it, BeforeProviders) {
  home.write(".aws/config", "[default]\nlogin_session = alice\n");
  std::filesystem::create_directories(home.root / ".aws/login/cache");
  // By the SHA-256 of "alice".
  home.write(
      ".aws/login/cache/"
      "2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90.json",
      R"({"accessToken":{"accessKeyId":"x","secretAccessKey":"x",)"
      R"("sessionToken":"x","accountId":"123456789012",)"
      R"("expiresAt":"2001-01-01T00:00:00Z"},"clientId":"client",)"
      R"("refreshToken":")" +
          kRefreshToken + R"(","dpopKey":)" + tests::json_string(login_key) +
          "}");
  check_keys();
  BOOST_TEST(aws.log().count("signin", "CreateOAuth2Token") == 1);
}

// --- The log, the control port, the end ------------------------------------

BOOST_FIXTURE_TEST_CASE(log_holds_nothing_secret, Running) {
  const std::string metadata_token = token();
  const AwsKeys temporary = keys_of_sts(post_signed(assume_role()));
  Ask chained = posting(assume_role());
  Signer{temporary}.sign(chained);
  const std::string signature =
      chained.headers[2].substr(chained.headers[2].find("Signature=") + 10);
  perform(chained);
  post_bare(with_web_identity());
  credentials_of_sso(kAccessToken);
  token_of_oidc(kRefreshToken);
  const std::string proof = proof_for_signin();
  keys_of_signin(proof);
  metadata(kRoles + "instance-role", metadata_token);
  task("Basic it");
  const std::string log = aws.control("GET", "/log");
  BOOST_TEST(aws.log().count("sts") == 3);
  BOOST_TEST(signature.size() == 64u);
  for (const std::string& secret :
       {kSource.secret_access_key, temporary.secret_access_key,
        temporary.session_token, signature, kWebIdentity, kAccessToken,
        kRefreshToken, std::string("client-secret"), metadata_token, proof,
        std::string("Basic it")}) {
    BOOST_TEST(!has(log, secret));
  }
}

BOOST_FIXTURE_TEST_CASE(command_that_is_not_understood_changes_nothing,
                        Running) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"/lifetime", R"({"seconds":"5"})"},
      {"/lifetime", R"({})"},
      {"/roles", R"({"arn":7})"},
      {"/users", R"({"key":"x"})"},
      {"/sso", R"({"tokens":[{"token":"x"}]})"},
      {"/sso", R"({"tokens":[{"token":"x","seconds":1,"more":2}]})"},
      {"/signin", R"({"once":1})"},
      {"/signin", R"({"refresh_tokens":[{"token":"x","client_id":"y"}]})"},
      {"/imds", R"({"role":""})"},
      {"/imds", R"({"v1":"yes"})"},
      {"/proxy", R"({"routes":{"x":"y"}})"},
      {"/mode", R"({"service":"s3","mode":"hang"})"},
      {"/mode", R"({"service":"sts","mode":"ajar"})"},
      {"/rules", R"({"fault":"quake"})"},
      {"/rules", R"({"fault":"500","ms":5})"},
      {"/rules", R"({"fault":"slow","ms":-5})"},
      {"/rules", R"({"fault":"500","times":-1})"},
      {"/rules", "null"},
      {"/rules", "no JSON"},
      {"/nowhere", "{}"}};
  for (const auto& [path, body] : wrong) {
    BOOST_TEST_CONTEXT(path << " " << body) {
      BOOST_CHECK_THROW(aws.control("POST", path, body), std::runtime_error);
    }
  }
  BOOST_TEST(task().status == 200);
  BOOST_TEST(metadata(kRoles, token()).status == 200);
}

BOOST_FIXTURE_TEST_CASE(strange_requests_bring_nothing_down, Running) {
  for (const std::string& service : std::vector<std::string>{
           "sts", "sso", "oidc", "signin", "imds", "container"}) {
    for (const std::string& path : std::vector<std::string>{
             "//", "/%zz", "/?%zz",
             "/latest/meta-data/iam/security-credentials/%",
             "/federation/credentials", "/token", "/v1/token"}) {
      for (const std::string& method :
           std::vector<std::string>{"GET", "POST", "PUT", "DELETE"}) {
        Ask ask = asking(method, aws.plain_url(service) + path);
        ask.headers = {"Content-Type: application/json"};
        ask.body = "null";
        const Answer answer = perform(ask);
        BOOST_TEST(answer.ending == CURLE_OK);
        BOOST_TEST(answer.status >= 400);
      }
    }
  }
}

BOOST_AUTO_TEST_CASE(standins_end_with_their_input) {
  for (const bool by_signal : {false, true}) {
    Aws aws;
    aws.mode("*", "hang");
    if (by_signal) {
      aws.process().signal(SIGTERM);
    } else {
      aws.process().channel().hang_up();
    }
    BOOST_TEST(aws.process().wait() == (by_signal ? 1 : 0));
    BOOST_TEST(aws.process().complaints() == "");
  }
}

BOOST_AUTO_TEST_SUITE_END()
