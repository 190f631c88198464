// A proxy for everything in this process's own environment, for as long as one
// exists.
#ifndef DDBMUTEX_TESTS_SUPPORT_PROXIED_HPP
#define DDBMUTEX_TESTS_SUPPORT_PROXIED_HPP

#include <cstdlib>
#include <map>
#include <string>

namespace tests {

class Proxied {
 public:
  explicit Proxied(const std::string& url) {
    for (const char* name :
         {"no_proxy", "NO_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"}) {
      const char* before = getenv(name);
      if (before != nullptr) before_[name] = before;
      unsetenv(name);
    }
    for (const char* name : {"http_proxy", "https_proxy", "ALL_PROXY"}) {
      setenv(name, url.c_str(), 1);
    }
  }
  ~Proxied() {
    for (const char* name : {"http_proxy", "https_proxy", "ALL_PROXY"}) {
      unsetenv(name);
    }
    for (const auto& [name, value] : before_) setenv(name, value.c_str(), 1);
  }
  Proxied(const Proxied&) = delete;
  Proxied& operator=(const Proxied&) = delete;

 private:
  std::map<const char*, std::string> before_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PROXIED_HPP
