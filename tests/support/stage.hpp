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

#include <map>
#include <string>
#include <vector>

#include "tests/support/aws.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gateway.hpp"
#include "tests/support/home.hpp"

namespace tests {

struct Stage {
  static constexpr const char* kRole = "arn:aws:iam::123456789012:role/locker";
  static constexpr const char* kIdentity =
      "header.payload-of-a-web-identity.signature";

  Stage();
  ~Stage();

  void set(const std::string& name, const std::string& value);
  // Writes a file of the home that nobody else may read; returns its path.
  std::string write(const std::string& name, const std::string& text) const;
  std::vector<std::string> environment() const;
  std::string log() const;

  // Writes what a credential_process prints; returns the file's path.
  std::string document(const AwsKeys& keys) const;

  // Each sets up one source of keys.
  void static_keys();
  void credentials_file(const AwsKeys& keys);
  void credential_process();
  // A profile assumes a role with the user's keys.
  void role_of(const AwsKeys& user);
  // The AWS CLI on the PATH is this shell script.
  void cli(const std::string& script);
  void web_identity();
  void instance();
  void container();

  // Which secret stands in the text; empty if none does.
  std::string secret_in(const std::string& text) const;

  Engine& engine = Engine::running(any_engine_kind());
  Home home;
  Aws aws;
  Gateway gateway{engine.url(), aws.gateway_settings()};
  std::map<std::string, std::string> variables;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_STAGE_HPP
