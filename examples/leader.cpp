// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Leader election: of all processes that run this, on any host, one leads.
//
//   leader TABLE NAME TTL_MS
//
// Prints "waiting", then "leading" once it holds the lock, and "lost: WHY" when
// it may not lead any longer; then it waits again.  If a leader dies or is cut
// off, another one follows within about TTL_MS.  SIGINT and SIGTERM end the
// program.  A leader then releases the lock, so that the next one need not wait
// for the lease to end.
#include <signal.h>

#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"

namespace {

void say(const std::string& what) {
  std::printf("%s\n", what.c_str());
  std::fflush(stdout);
}

class Candidate {
 public:
  Candidate(const std::string& table, const std::string& name,
            std::chrono::milliseconds ttl)
      : table_(open(table)), mutex_(name, options(ttl)) {}

  // Leads whenever it can, until stop() or an error, which it returns.
  std::error_code run() {
    for (;;) {
      say("waiting");
      std::error_code error;
      mutex_.lock(error);
      if (error == ddbmutex::Errc::closed) return {};
      if (error) return error;
      say("leading");
      const bool told_to_end = lead();
      // Also after a loss: this ends the term, and never releases the lock of
      // somebody else.
      mutex_.unlock();
      if (told_to_end) return {};
    }
  }

  // Any thread may call it, at any time.  close() is remembered, so a run()
  // that is just about to wait ends, too.  close() would also release a lock
  // that is held, so let the leader finish first.
  void stop() {
    std::unique_lock<std::mutex> guard(state_);
    stopping_ = true;
    changed_.notify_all();
    changed_.wait(guard, [this] { return !leading_; });
    table_->close();
  }

  std::string last_error() const { return mutex_.last_error(); }

 private:
  static std::shared_ptr<ddbmutex::Table> open(const std::string& name) {
    ddbmutex::TableOptions options;
    options.name = name;
    return std::make_shared<ddbmutex::Table>(options);
  }

  ddbmutex::Options options(std::chrono::milliseconds ttl) {
    ddbmutex::Options options;
    options.table = table_;
    options.ttl = ttl;
    // Called when the lease ends, before another can lead.  owns_lock() is
    // false by now, so it is enough to wake lead().
    options.on_lost = [this](ddbmutex::Loss why) {
      say(std::string("lost: ") + name_of(why));
      const std::lock_guard<std::mutex> guard(state_);
      changed_.notify_all();
    };
    return options;
  }

  // Leads until stop(), then returns true; or until the lock is lost.
  bool lead() {
    std::unique_lock<std::mutex> guard(state_);
    leading_ = true;
    while (!stopping_ && mutex_.owns_lock()) {
      // The leader's work goes here, in steps much shorter than the lease.
      changed_.wait_for(guard, std::chrono::milliseconds(100));
    }
    leading_ = false;
    changed_.notify_all();
    return stopping_;
  }

  const std::shared_ptr<ddbmutex::Table> table_;
  std::mutex state_;
  std::condition_variable changed_;
  bool stopping_ = false;  // GUARDED_BY(state_)
  bool leading_ = false;   // Likewise.
  // The last member, so that it is destroyed first: its callback uses the
  // others.
  ddbmutex::DdbMutex mutex_;
};

int run(const char* table, const char* name, std::chrono::milliseconds ttl) {
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGINT);
  sigaddset(&ends, SIGTERM);
  // Before any thread starts, so that these signals are blocked in all.
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);

  Candidate candidate(table, name, ttl);
  std::thread signals([&candidate, &ends] {
    int signal = 0;
    sigwait(&ends, &signal);
    candidate.stop();
  });
  const std::error_code error = candidate.run();
  if (error) {
    std::fprintf(stderr, "leader: %s\n", candidate.last_error().c_str());
    pthread_kill(signals.native_handle(), SIGTERM);
  }
  signals.join();
  return error ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: leader TABLE NAME TTL_MS\n");
    return 2;
  }
  try {
    return run(argv[1], argv[2], std::chrono::milliseconds(atol(argv[3])));
  } catch (const std::exception& error) {  // An option is wrong.
    std::fprintf(stderr, "leader: %s\n", error.what());
    return 2;
  }
}
