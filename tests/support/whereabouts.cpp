#include "tests/support/whereabouts.hpp"

#include <stdexcept>

namespace tests {

Whereabouts at(const Engine& engine) {
  const auto keys = engine.credentials();
  if (!keys) throw std::runtime_error("engine: no keys");
  return {engine.url(),
          engine.table(),
          engine.region(),
          {keys->access_key_id, keys->secret_access_key, keys->session_token}};
}

std::vector<std::string> environment_of(const Whereabouts& where) {
  std::vector<std::string> environment = clean_environment();
  environment.push_back("AWS_ENDPOINT_URL_DYNAMODB=" + where.url);
  environment.push_back("AWS_REGION=" + where.region);
  environment.push_back("AWS_ACCESS_KEY_ID=" + where.keys.access_key_id);
  environment.push_back("AWS_SECRET_ACCESS_KEY=" +
                        where.keys.secret_access_key);
  environment.push_back("AWS_SESSION_TOKEN=" + where.keys.session_token);
  return environment;
}

std::shared_ptr<ddbmutex::Table> table_at(const Whereabouts& where) {
  ddbmutex::TableOptions options;
  options.name = where.table;
  options.region = where.region;
  options.endpoint = where.url;
  options.credentials = where.keys;
  return std::make_shared<ddbmutex::Table>(options);
}

}  // namespace tests
