// Asks the stand-ins of tests/aws over HTTP, by libcurl itself and not by the
// library, whose way of asking is tested against them.
//
//   Ask ask;
//   ask.url = aws.url("sts");
//   ask.ca_file = aws.ca_file();
//   Answer answer = perform(ask);
//   answer.status;
#ifndef DDBMUTEX_TESTS_AWS_CLIENT_HPP
#define DDBMUTEX_TESTS_AWS_CLIENT_HPP

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace aws_tests {

struct Ask {
  std::string method = "GET";
  std::string url{};
  std::vector<std::string> headers{};  // "Name: value"
  std::string body{};
  std::string ca_file{};
  bool verifies = true;    // Looks at certificates.
  std::string proxy{};     // Empty: none.
  std::string password{};  // "user:password", for the proxy.
  std::chrono::milliseconds within = tests::kPlenty;
};

struct Answer {
  CURLcode ending = CURLE_OK;
  int status = 0;
  std::string headers;
  std::string body;

  // The value of the header "name: ", in this very spelling; empty: none.
  std::string header(const std::string& name) const {
    const std::string start = "\r\n" + name + ": ";
    const std::size_t at = headers.find(start);
    if (at == headers.npos) return "";
    const std::size_t from = at + start.size();
    return headers.substr(from, headers.find("\r\n", from) - from);
  }
};

inline std::size_t append(char* bytes, std::size_t size, std::size_t count,
                          void* text) {
  static_cast<std::string*>(text)->append(bytes, size * count);
  return size * count;
}

// For an exchange, with a connection of its own.
class Handle {
 public:
  Handle() : easy_(curl_easy_init()) {
    if (easy_ == nullptr) throw std::runtime_error("no handle of libcurl");
  }
  ~Handle() {
    curl_slist_free_all(headers_);
    curl_easy_cleanup(easy_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;

  template <typename Value>
  void set(CURLoption option, Value value) {
    if (curl_easy_setopt(easy_, option, value) != CURLE_OK) {
      throw std::runtime_error("libcurl does not know an option");
    }
  }
  void add(const std::string& header) {
    headers_ = curl_slist_append(headers_, header.c_str());
    set(CURLOPT_HTTPHEADER, headers_);
  }
  CURLcode perform() { return curl_easy_perform(easy_); }
  int status() const {
    long status = 0;
    curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
    return static_cast<int>(status);
  }

 private:
  CURL* const easy_;
  curl_slist* headers_ = nullptr;
};

inline Answer perform(const Ask& ask) {
  Handle handle;
  Answer answer;
  handle.set(CURLOPT_URL, ask.url.c_str());
  handle.set(CURLOPT_CUSTOMREQUEST, ask.method.c_str());
  handle.set(CURLOPT_PROXY, ask.proxy.c_str());  // "": not the environment's.
  handle.set(CURLOPT_NOPROXY, "");
  if (!ask.password.empty()) {
    handle.set(CURLOPT_PROXYUSERPWD, ask.password.c_str());
  }
  if (!ask.ca_file.empty()) handle.set(CURLOPT_CAINFO, ask.ca_file.c_str());
  handle.set(CURLOPT_SSL_VERIFYPEER, ask.verifies ? 1L : 0L);
  handle.set(CURLOPT_SSL_VERIFYHOST, ask.verifies ? 2L : 0L);
  handle.set(CURLOPT_NOSIGNAL, 1L);
  handle.set(CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
  handle.set(CURLOPT_TIMEOUT_MS, static_cast<long>(ask.within.count()));
  handle.set(CURLOPT_WRITEFUNCTION, append);
  handle.set(CURLOPT_WRITEDATA, static_cast<void*>(&answer.body));
  handle.set(CURLOPT_HEADERFUNCTION, append);
  handle.set(CURLOPT_HEADERDATA, static_cast<void*>(&answer.headers));
  for (const std::string& header : ask.headers) handle.add(header);
  if (!ask.body.empty()) {
    handle.set(CURLOPT_POSTFIELDS, ask.body.data());
    handle.set(CURLOPT_POSTFIELDSIZE, static_cast<long>(ask.body.size()));
  }
  answer.ending = handle.perform();
  answer.status = handle.status();
  return answer;
}

}  // namespace aws_tests

#endif  // DDBMUTEX_TESTS_AWS_CLIENT_HPP
