#include "tests/support/stage.hpp"

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace tests {

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

void Stage::web_identity() {
  set("AWS_WEB_IDENTITY_TOKEN_FILE", write("token", kIdentity));
  set("AWS_ROLE_ARN", kRole);
}

void Stage::instance() {
  set("AWS_EC2_METADATA_DISABLED", "false");
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
