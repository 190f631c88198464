// A service that runs on all hosts and serves on one: for systemd.service, the
// unit beside this file.  Needs libsystemd-dev, as Debian calls it.
//
//   flags=$(pkg-config --cflags --libs ddbmutex libsystemd)
//   c++ -std=c++20 -o report-service systemd.cpp $flags
//
// It is starting for as long as another has the lock, and started once it has
// it itself.  When the lock is lost it ends at once, and systemd starts it
// anew.  When systemd tells it to stop, it gives the lock back.
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

// Without another word to anybody: others may begin when this has been called.
[[noreturn]] void fail(const char* why) {
  std::fprintf(stderr, "report-service: %s\n", why);
  std::_Exit(1);
}

// The work, in steps that are short.
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
  // Called before another host can have the lock, unless one has freed it by
  // force.
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
  // Before any thread starts, so that all have them blocked.
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  const std::jthread service(serve);  // At its end it is told to stop.
  int signal = 0;
  sigwait(&ends, &signal);
}
