// Where the locks of a test are: for this process, and for programs of ours
// that are told by their environment.
#ifndef DDBMUTEX_TESTS_SUPPORT_WHEREABOUTS_HPP
#define DDBMUTEX_TESTS_SUPPORT_WHEREABOUTS_HPP

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/process.hpp"

namespace tests {

struct Whereabouts {
  std::string url;
  std::string table;
  std::string region = "us-east-1";
  ddbmutex::Credentials keys = {"AKIDEXAMPLE", "secret", ""};
};

inline Whereabouts at(const Engine& engine) {
  const auto keys = engine.credentials();
  if (!keys) throw std::runtime_error("engine: no keys");
  return {engine.url(),
          engine.table(),
          engine.region(),
          {keys->access_key_id, keys->secret_access_key, keys->session_token}};
}

// For a program that is told the table otherwise.
inline std::vector<std::string> environment_of(const Whereabouts& where) {
  std::vector<std::string> environment = clean_environment();
  environment.push_back("AWS_ENDPOINT_URL_DYNAMODB=" + where.url);
  environment.push_back("AWS_REGION=" + where.region);
  environment.push_back("AWS_ACCESS_KEY_ID=" + where.keys.access_key_id);
  environment.push_back("AWS_SECRET_ACCESS_KEY=" +
                        where.keys.secret_access_key);
  environment.push_back("AWS_SESSION_TOKEN=" + where.keys.session_token);
  return environment;
}

inline std::shared_ptr<ddbmutex::Table> table_at(const Whereabouts& where) {
  ddbmutex::TableOptions options;
  options.name = where.table;
  options.region = where.region;
  options.endpoint = where.url;
  options.credentials = where.keys;
  return std::make_shared<ddbmutex::Table>(options);
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_WHEREABOUTS_HPP
