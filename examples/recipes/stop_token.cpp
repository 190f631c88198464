// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Work that a std::stop_token ends when the lock is lost.
//
//   flags=$(pkg-config --cflags --libs ddbmutex)
//   c++ -std=c++20 -o work stop_token.cpp $flags
//
// Prints "working" once it has the lock.  When it loses the lock, it prints
// "lost" and ends with status 1.
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <exception>
#include <mutex>
#include <stop_token>

#include "ddbmutex.hpp"

namespace {

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

// Whatever takes a token can be the work: a std::jthread, or a wait like this.
void work(const std::stop_token& lost) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock lock(mutex);
  changed.wait(lock, lost, [] { return false; });  // Until the stop.
}

void work_under_the_lock() {
  // The mutex is destroyed first, and its destructor waits for its callbacks.
  std::stop_source lost;
  ddbmutex::Options options;
  options.renew_after = std::chrono::seconds(1);  // To notice a loss soon.
  options.on_lost = [&lost](ddbmutex::Loss) { lost.request_stop(); };
  ddbmutex::DdbMutex mutex("stop-token", options);

  const std::lock_guard guard(mutex);
  say("working");
  work(lost.get_token());
}

}  // namespace

int main() {
  try {
    work_under_the_lock();
    say("lost");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "work: %s\n", error.what());
  }
  return 1;
}
