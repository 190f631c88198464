// A process to be that finds its settings and keys where AWS's tools do: its
// home, its variables, the services that it may ask, and the gateway before an
// engine to which it goes.  None of our own variables are its.
//
//   Stage it;
//   it.web_identity();
//   it.set("HTTPS_PROXY", it.aws.proxy_url());
//   Agent agent(it.engine.table(), it.environment());
//   ...
//   it.log();              // What the library told.
//   it.secret_in(text);    // "" if the text holds none.
#ifndef DDBMUTEX_TESTS_SUPPORT_STAGE_HPP
#define DDBMUTEX_TESTS_SUPPORT_STAGE_HPP

#include <sys/stat.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "tests/support/aws.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"
#include "tests/support/mutex_kit.hpp"

namespace tests {

struct Stage {
  static constexpr const char* kRole = "arn:aws:iam::123456789012:role/locker";
  static constexpr const char* kIdentity =
      "header.payload-of-a-web-identity.signature";

  Stage() {
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

  void set(const std::string& name, const std::string& value) {
    variables[name] = value;
  }
  // In the home; nobody else may read it.
  std::string write(const std::string& name, const std::string& text) const {
    std::string path = home.write(name, text);
    chmod(path.c_str(), 0600);
    return path;
  }
  std::vector<std::string> environment() const {
    std::vector<std::string> all;
    for (const auto& [name, value] : variables) {
      all.push_back(name + "=" + value);
    }
    return all;
  }
  std::string log() const {
    std::ifstream file(home.root / "log");
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // --- Where keys are from ---------------------------------------------------

  void static_keys() {
    const AwsKeys keys = aws.issue(std::chrono::hours(1));
    set("AWS_ACCESS_KEY_ID", keys.access_key_id);
    set("AWS_SECRET_ACCESS_KEY", keys.secret_access_key);
    set("AWS_SESSION_TOKEN", keys.session_token);
  }
  void web_identity() {
    set("AWS_WEB_IDENTITY_TOKEN_FILE", write("token", kIdentity));
    set("AWS_ROLE_ARN", kRole);
  }
  void instance() {
    set("AWS_EC2_METADATA_DISABLED", "false");
    aws.control("POST", "/imds", R"({"role":"locker"})");
  }
  void container() {
    aws.control("POST", "/container",
                R"({"path":"/v2/keys","authorization":"container-token"})");
    set("AWS_CONTAINER_CREDENTIALS_FULL_URI",
        aws.plain_url("container") + "/v2/keys");
    set("AWS_CONTAINER_AUTHORIZATION_TOKEN", "container-token");
  }

  // Which secret stands in the text; empty if none does.
  std::string secret_in(const std::string& text) const {
    std::vector<std::string> secrets = aws.secrets();
    for (const char* secret : {kIdentity, "container-token", "Signature="}) {
      secrets.push_back(secret);
    }
    for (const std::string& secret : secrets) {
      if (has(text, secret)) return secret;
    }
    return "";
  }

  Engine& engine = Engine::running(any_engine_kind());
  Home home;
  Aws aws;
  Gateway gateway{engine.url(), aws.gateway_settings()};
  std::map<std::string, std::string> variables;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_STAGE_HPP
