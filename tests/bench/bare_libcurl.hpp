// Bare libcurl, that sends given requests in turn with nothing made, signed,
// read or decided: what any client on libcurl costs at least.
#ifndef DDBMUTEX_TESTS_BENCH_BARE_LIBCURL_HPP
#define DDBMUTEX_TESTS_BENCH_BARE_LIBCURL_HPP

#include <curl/curl.h>
#include <strings.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/bench/contestant.hpp"

namespace bench {

inline bool is_header(const std::string& line, std::string_view name) {
  return strncasecmp(line.c_str(), name.data(), name.size()) == 0;
}

// One request, ready for libcurl.  Its head but for the request line and what
// libcurl writes itself.
class Constant {
 public:
  explicit Constant(const std::string& wire) {
    const std::size_t head = wire.find("\r\n\r\n");
    if (head == wire.npos) return;
    body_ = wire.substr(head + 4);
    std::size_t from = wire.find("\r\n") + 2;
    while (from < head) {
      const std::size_t end = wire.find("\r\n", from);
      const std::string line = wire.substr(from, end - from);
      from = end + 2;
      if (is_header(line, "Content-Length:")) continue;
      is_signed_ = is_signed_ || is_header(line, "Authorization:");
      headers_ = curl_slist_append(headers_, line.c_str());
    }
    headers_ = curl_slist_append(headers_, "Accept:");  // Not sent.
  }
  ~Constant() { curl_slist_free_all(headers_); }
  Constant(Constant&& other) noexcept
      : body_(std::move(other.body_)),
        is_signed_(other.is_signed_),
        headers_(std::exchange(other.headers_, nullptr)) {}

  bool good() const { return is_signed_ && !body_.empty(); }

  void set(CURL* easy) const {
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers_);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE,
                     static_cast<long>(body_.size()));
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body_.data());
  }

 private:
  std::string body_;
  bool is_signed_ = false;
  curl_slist* headers_ = nullptr;
};

class BareCycle : public Contestant {
 public:
  BareCycle(const char* url, std::vector<Constant> requests)
      : easy_(curl_easy_init()), constants_(std::move(requests)) {
    curl_easy_setopt(easy_, CURLOPT_URL, url);
    curl_easy_setopt(easy_, CURLOPT_POST, 1L);
    curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(easy_, CURLOPT_WRITEDATA, &answer_);
    curl_easy_setopt(
        easy_, CURLOPT_WRITEFUNCTION,
        +[](char* data, std::size_t, std::size_t size, void* answer) {
          static_cast<std::string*>(answer)->append(data, size);
          return size;
        });
  }
  ~BareCycle() override { curl_easy_cleanup(easy_); }

  bool cycle() override {
    for (const Constant& constant : constants_) {
      answer_.clear();
      constant.set(easy_);
      const CURLcode code = curl_easy_perform(easy_);
      ++sent_;
      long status = 0;
      curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
      if (code == CURLE_OK && status == 200) continue;
      std::fprintf(stderr, "bare libcurl: %s, HTTP status %ld\n",
                   curl_easy_strerror(code), status);
      return false;
    }
    return true;
  }

  std::uint64_t requests() const override { return sent_; }

 private:
  CURL* const easy_;
  const std::vector<Constant> constants_;
  std::string answer_;
  std::uint64_t sent_ = 0;
};

// Files that each hold a whole request as it stands on the wire.
inline std::vector<Constant> requests_in(char** paths, int count) {
  curl_global_init(CURL_GLOBAL_DEFAULT);
  std::vector<Constant> requests;
  for (int i = 0; i < count; ++i) {
    std::ifstream file(paths[i], std::ios::binary);
    requests.emplace_back(
        std::string(std::istreambuf_iterator<char>(file), {}));
    if (requests.back().good()) continue;
    std::fprintf(stderr, "no signed request in %s\n", paths[i]);
    std::exit(2);
  }
  return requests;
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_BARE_LIBCURL_HPP
