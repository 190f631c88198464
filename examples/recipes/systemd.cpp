// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A service that runs on all hosts and serves on one, for systemd.service, the
// unit beside this file.  Needs libsystemd-dev, as Debian calls it.
//
//   flags=$(pkg-config --cflags --libs ddbmutex libsystemd)
//   c++ -std=c++20 -o report-service systemd.cpp $flags
//
// The service is "starting" while another host has the lock, and "started" once
// it has the lock itself.  If it loses the lock, it ends at once, and systemd
// restarts it.  When systemd tells it to stop, it releases the lock.
#include <signal.h>
#include <systemd/sd-daemon.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"

namespace {

// Ends at once and cleans nothing up: once this is called, others may begin.
[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "report-service: %s\n", why);
  std::_Exit(1);
}

// The work, in short steps.
void work(const std::stop_token& told_to_stop) {
  std::mutex mutex;
  std::condition_variable_any changed;
  std::unique_lock<std::mutex> guard(mutex);
  while (!told_to_stop.stop_requested()) {
    std::puts("page");
    std::fflush(stdout);
    changed.wait_for(guard, told_to_stop, std::chrono::seconds(1),
                     [] { return false; });
  }
}

void serve(const std::stop_token& told_to_stop) try {
  ddbmutex::Options options;
  options.ttl = std::chrono::seconds(20);
  // Called before another host can have the lock, unless somebody has freed it
  // by force.
  options.on_lost = [](ddbmutex::Loss why) { fail(name_of(why)); };
  ddbmutex::DdbMutex mutex("report-service", options);

  sd_notify(0, "STATUS=Waiting for the lock");
  std::error_code error;
  mutex.lock(told_to_stop, error);
  if (error == ddbmutex::Errc::cancelled) return;
  if (error) fail(mutex.last_error().c_str());
  sd_notify(0, "READY=1\nSTATUS=Serving");
  work(told_to_stop);
  sd_notify(0, "STOPPING=1");
  mutex.unlock();
} catch (const std::exception& error) {  // An option is wrong.
  fail(error.what());
}

}  // namespace

int main() {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  // Before any thread starts, so that these signals are blocked in all.
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  const std::jthread service(serve);  // Its destructor asks serve() to stop.
  int signal = 0;
  sigwait(&ends, &signal);
}
