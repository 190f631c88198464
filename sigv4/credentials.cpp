#include "sigv4/credentials.hpp"

#include <cstdlib>
#include <string>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::optional<Credentials> credentials_from_environment() {
  Credentials keys = {environment("AWS_ACCESS_KEY_ID"),
                      environment("AWS_SECRET_ACCESS_KEY"),
                      environment("AWS_SESSION_TOKEN")};
  if (keys.access_key_id.empty() || keys.secret_access_key.empty()) {
    return std::nullopt;
  }
  return keys;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
