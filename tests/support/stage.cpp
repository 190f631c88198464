#include "tests/support/stage.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace tests {

namespace {

// As lines of a profile.
std::string lines_of(const AwsKeys& keys) {
  const std::string token =
      keys.session_token.empty()
          ? ""
          : "aws_session_token = " + keys.session_token + "\n";
  return "aws_access_key_id = " + keys.access_key_id +
         "\naws_secret_access_key = " + keys.secret_access_key + "\n" + token;
}

}  // namespace

Stage::Stage() {
  for (const auto& [name, value] : aws.environment()) set(name, value);
  set("HOME", home.root.string());
  set("AWS_ENDPOINT_URL_DYNAMODB", gateway.url());
  set("AWS_REGION", engine.region());
  set("AWS_EC2_METADATA_DISABLED", "true");
  set("AGENT_LOG", (home.root / "log").string());
  const char* path = std::getenv("PATH");
  set("PATH", path != nullptr ? path : "");
  aws.role({kRole});
  aws.web_identity(kIdentity, std::chrono::hours(1));
}

Stage::~Stage() = default;

void Stage::set(const std::string& name, const std::string& value) {
  variables[name] = value;
}

std::string Stage::write(const std::string& name,
                         const std::string& text) const {
  std::filesystem::create_directories((home.root / name).parent_path());
  std::string path = home.write(name, text);
  chmod(path.c_str(), 0600);
  return path;
}

std::vector<std::string> Stage::environment() const {
  std::vector<std::string> all;
  for (const auto& [name, value] : variables) {
    all.push_back(name + "=" + value);
  }
  return all;
}

std::string Stage::log() const {
  std::ifstream file(home.root / "log");
  return {std::istreambuf_iterator<char>(file), {}};
}

void Stage::static_keys() {
  const AwsKeys keys = aws.issue(std::chrono::hours(1));
  set("AWS_ACCESS_KEY_ID", keys.access_key_id);
  set("AWS_SECRET_ACCESS_KEY", keys.secret_access_key);
  set("AWS_SESSION_TOKEN", keys.session_token);
}

void Stage::credentials_file(const AwsKeys& keys) {
  write(".aws/credentials", "[default]\n" + lines_of(keys));
}

std::string Stage::document(const AwsKeys& keys) const {
  return write("keys.json",
               R"({"Version":1,"AccessKeyId":")" + keys.access_key_id +
                   R"(","SecretAccessKey":")" + keys.secret_access_key +
                   R"(","SessionToken":")" + keys.session_token +
                   R"(","Expiration":")" + keys.expiration + R"("})");
}

void Stage::credential_process() {
  write(".aws/config", "[default]\ncredential_process = cat '" +
                           document(aws.issue(std::chrono::hours(1))) + "'\n");
}

void Stage::role_of(const AwsKeys& user) {
  aws.user(user);
  write(".aws/credentials", "[user]\n" + lines_of(user));
  write(".aws/config", std::string("[default]\nsource_profile = user\n") +
                           "role_arn = " + kRole + "\n");
}

void Stage::cli(const std::string& script) {
  const std::string path = write("bin/aws", "#!/bin/sh\n" + script);
  chmod(path.c_str(), 0700);
  set("PATH", (home.root / "bin").string() + ":/usr/bin:/bin");
}

void Stage::web_identity() {
  set("AWS_WEB_IDENTITY_TOKEN_FILE", write("token", kIdentity));
  set("AWS_ROLE_ARN", kRole);
}

void Stage::instance() {
  set("AWS_EC2_METADATA_DISABLED", "false");
  set("AWS_METADATA_SERVICE_TIMEOUT", "20");  // However slow it is.
  aws.control("POST", "/imds", R"({"role":"locker"})");
}

void Stage::container() {
  aws.control("POST", "/container",
              R"({"path":"/v2/keys","authorization":"container-token"})");
  set("AWS_CONTAINER_CREDENTIALS_FULL_URI",
      aws.plain_url("container") + "/v2/keys");
  set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token");
}

std::string Stage::secret_in(const std::string& text) const {
  std::vector<std::string> secrets = aws.secrets();
  for (const char* secret : {kIdentity, "container-token", "Signature="}) {
    secrets.push_back(secret);
  }
  for (const std::string& secret : secrets) {
    if (has(text, secret)) return secret;
  }
  return "";
}

}  // namespace tests
