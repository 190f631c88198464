// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A Lambda function whose work only one invocation at a time does, of all
// functions and hosts.  It is a program for the runtime "provided.al2023": it
// uses Lambda's runtime API itself, with libcurl, which the library needs
// anyway.
//
//   flags=$(pkg-config --cflags --libs ddbmutex libcurl)
//   c++ -std=c++17 -o bootstrap lambda.cpp $flags
//
// Between invocations the process and all its threads are frozen, and it may
// never continue.  So each invocation takes and releases the lock, and no
// thread renews it (auto_renew = false): the work does, with ensure().  Set no
// callback and no logger, because these need threads.  If the function reaches
// its time limit, others get the lock once the lease is over.
//
// Tested with a server that stands in for the runtime API, never in Lambda.
#include <curl/curl.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "ddbmutex.hpp"

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using std::chrono::system_clock;

// --- The work ----------------------------------------------------------------

// Returns the answer to an event; both are JSON.  An exception becomes the
// error of the invocation, which Lambda or the caller may retry.
std::string handle(const std::string& event, system_clock::time_point end) {
  // Kept from one invocation to the next, with its connections and keys.
  static ddbmutex::DdbMutex mutex("nightly-report", [] {
    ddbmutex::Options options;
    options.auto_renew = false;
    options.ttl = seconds(30);
    return options;
  }());

  if (!mutex.try_lock_for((end - system_clock::now()) / 2)) {
    throw std::runtime_error("another has the lock");
  }
  const std::lock_guard<ddbmutex::DdbMutex> guard(mutex, std::adopt_lock);
  for (int page = 1; page <= 3; ++page) {
    // Renews the lease if less than this remains, and throws if the lock is
    // lost.  A step has to be shorter than this.
    mutex.ensure(seconds(10));
    std::fprintf(stderr, "page %d\n", page);
  }
  return event;
}

// --- The runtime API ---------------------------------------------------------

class Runtime {
 public:
  // Waits for the next event.
  struct Invocation {
    std::string event;
    std::string id;
    system_clock::time_point end;
  };
  Invocation next() {
    Invocation next;
    next.event = exchange("next", nullptr);
    next.id = header("Lambda-Runtime-Aws-Request-Id");
    next.end = system_clock::time_point(
        milliseconds(std::stoll(header("Lambda-Runtime-Deadline-Ms"))));
    return next;
  }

  // `how`: "response" or "error".
  void answer(const Invocation& to, const std::string& how,
              const std::string& json) {
    exchange(to.id + "/" + how, &json);
  }

 private:
  static std::size_t add(char* bytes, std::size_t, std::size_t count,
                         void* text) {
    static_cast<std::string*>(text)->append(bytes, count);
    return count;
  }

  std::string exchange(const std::string& path, const std::string* body) {
    const std::string url = base_ + path;
    std::string answer;
    curl_easy_reset(curl_.get());
    curl_easy_setopt(curl_.get(), CURLOPT_URL, url.c_str());
    curl_easy_setopt(curl_.get(), CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl_.get(), CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(curl_.get(), CURLOPT_WRITEFUNCTION, &add);
    curl_easy_setopt(curl_.get(), CURLOPT_WRITEDATA, &answer);
    if (body != nullptr) {
      curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDSIZE,
                       static_cast<long>(body->size()));
      curl_easy_setopt(curl_.get(), CURLOPT_POSTFIELDS, body->c_str());
    }
    const CURLcode result = curl_easy_perform(curl_.get());
    if (result != CURLE_OK) {
      throw std::runtime_error(url + ": " + curl_easy_strerror(result));
    }
    return answer;
  }

  std::string header(const char* name) {
    curl_header* found = nullptr;
    if (curl_easy_header(curl_.get(), name, 0, CURLH_HEADER, -1, &found) !=
        CURLHE_OK) {
      throw std::runtime_error(std::string("no header ") + name);
    }
    return found->value;
  }

  static std::string base() {
    const char* host = std::getenv("AWS_LAMBDA_RUNTIME_API");
    if (host == nullptr) throw std::runtime_error("this is not Lambda");
    return std::string("http://") + host + "/2018-06-01/runtime/invocation/";
  }

  const std::string base_ = base();
  const std::unique_ptr<CURL, void (*)(CURL*)> curl_{curl_easy_init(),
                                                     &curl_easy_cleanup};
};

}  // namespace

int main() {
  try {
    for (Runtime runtime;;) {
      const Runtime::Invocation invocation = runtime.next();
      try {
        runtime.answer(invocation, "response",
                       handle(invocation.event, invocation.end));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        runtime.answer(
            invocation, "error",
            R"({"errorType":"Failed","errorMessage":"see the log"})");
      }
    }
  } catch (const std::exception& error) {  // Lambda starts a new process.
    std::fprintf(stderr, "bootstrap: %s\n", error.what());
    return 1;
  }
}
