// A proxy for everything in this process's own environment, for as long as one
// exists.
#ifndef DDBMUTEX_TESTS_SUPPORT_PROXIED_HPP
#define DDBMUTEX_TESTS_SUPPORT_PROXIED_HPP

#include <cstdlib>
#include <map>
#include <optional>
#include <string>

#include "sigv4/profile.hpp"

namespace tests {

class Proxied {
 public:
  explicit Proxied(const std::string& url) {
    for (const char* name :
         {"no_proxy", "NO_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"}) {
      before_[name] = ddbmutex::sigv4::process_environment(name);
      unsetenv(name);
    }
    for (const char* name : {"http_proxy", "https_proxy", "ALL_PROXY"}) {
      setenv(name, url.c_str(), 1);
    }
  }
  ~Proxied() {
    for (const auto& [name, value] : before_) {
      if (value) {
        setenv(name, value->c_str(), 1);
      } else {
        unsetenv(name);
      }
    }
  }
  Proxied(const Proxied&) = delete;
  Proxied& operator=(const Proxied&) = delete;

 private:
  std::map<const char*, std::optional<std::string>> before_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PROXIED_HPP
