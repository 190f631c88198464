// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Writes that come too late: without a guard they succeed, with one DynamoDB
// refuses them.
//
//   guarded_write TABLE
//
// A process sees that it has the lock, and is stopped before it writes.  Its
// lease ends, and another process takes the lock and writes.  The first one
// wakes up, knows nothing of that, and writes.  Set AWS_ENDPOINT_URL_DYNAMODB,
// AWS_REGION and keys in the environment.
#include "extras/guarded_write.hpp"

#include <curl/curl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>

#include "ddbmutex.hpp"

namespace {

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

size_t drop(char*, size_t size, size_t count, void*) { return size * count; }

// A PutItem that is not guarded, sent and signed by libcurl.
long put(const std::string& item) {
  const std::string url = variable("AWS_ENDPOINT_URL_DYNAMODB");
  const std::string scope = "aws:amz:" + variable("AWS_REGION") + ":dynamodb";
  const std::string keys =
      variable("AWS_ACCESS_KEY_ID") + ":" + variable("AWS_SECRET_ACCESS_KEY");
  curl_slist* headers = nullptr;
  for (const std::string& header :
       {std::string("Content-Type: application/x-amz-json-1.0"),
        std::string("X-Amz-Target: DynamoDB_20120810.PutItem"),
        "X-Amz-Security-Token:" + variable("AWS_SESSION_TOKEN")}) {
    if (header.back() == ':') continue;  // There is no token.
    headers = curl_slist_append(headers, header.c_str());
  }
  CURL* curl = curl_easy_init();
  curl_easy_setopt(curl, CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, scope.c_str());
  curl_easy_setopt(curl, CURLOPT_USERPWD, keys.c_str());
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, item.c_str());
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
  long status = 0;
  curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_cleanup(curl);
  curl_slist_free_all(headers);
  return status;
}

std::string item(const std::string& table, const char* name, const char* by) {
  return R"({"TableName":")" + table + R"(","Item":{"name":{"S":")" + name +
         R"("},"by":{"S":")" + by + R"("}}})";
}

ddbmutex::Options options(const std::string& table) {
  ddbmutex::Options options;
  options.table =
      std::make_shared<ddbmutex::Table>(ddbmutex::TableOptions{table});
  options.ttl = std::chrono::seconds(4);
  options.keep_row = true;
  return options;
}

// `to_second`: a pipe that tells the second process that the lock is held.
void be_first(const std::string& table, int to_second) {
  ddbmutex::DdbMutex mutex("report", options(table));
  mutex.lock();
  std::puts("first: has the lock");
  mutex.require(std::chrono::milliseconds(1));
  if (write(to_second, "!", 1) == 1) raise(SIGSTOP);
  std::printf("first: late, without the guard: HTTP status %ld\n",
              put(item(table, "unguarded", "first")));
  std::error_code ec;
  guarded_write(mutex, R"([{"Put":)" + item(table, "guarded", "first") + "}]",
                ec);
  std::printf("first: late, with the guard: %s\n",
              ec ? ec.message().c_str() : "written");
}

void be_second(const std::string& table, int from_first) {
  char byte;
  if (read(from_first, &byte, 1) != 1) return;  // The first has no lock.
  ddbmutex::DdbMutex mutex("report", options(table));
  mutex.lock();  // Waits until the lease of the first process is over.
  put(item(table, "unguarded", "second"));
  guarded_write(mutex, R"([{"Put":)" + item(table, "guarded", "second") + "}]");
  std::puts("second: has the lock, and has written");
}

}  // namespace

int main(int argc, char** argv) {
  int ends[2];  // A pipe: ends[0] is read, ends[1] is written.
  if (argc != 2 || pipe(ends) != 0) {
    std::fprintf(stderr, "usage: guarded_write TABLE\n");
    return 2;
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  const pid_t first = getpid();
  const pid_t second = fork();
  const bool is_first = second != 0;
  close(ends[is_first ? 0 : 1]);
  try {
    if (is_first) {
      be_first(argv[1], ends[1]);
    } else {
      be_second(argv[1], ends[0]);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "guarded_write: %s\n", error.what());
    if (is_first) return 1;
  }
  if (is_first) {
    waitpid(second, nullptr, 0);
  } else {
    kill(first, SIGCONT);
  }
  return 0;
}
