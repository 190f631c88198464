// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A cron job that is in the crontab of all hosts and runs on one of them:
//
//   cron_job NAME SECONDS COMMAND
//
//   0 3 * * *  cron_job nightly-backup 300 'backup --all'
//
// Runs COMMAND in the shell, unless another host is running it now.  The lock
// is held for at least SECONDS, even if COMMAND takes only a moment.  So a host
// whose clock is late by less than that finds the lock held.  The lock is an
// item of the table `locks`.
//
// Exit status: COMMAND's; 0 if another host has the lock; 125 if the lock could
// not be asked for, or was lost while COMMAND ran.
#include <sys/wait.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "ddbmutex.hpp"

namespace {

int run(const char* name, std::chrono::seconds at_least, const char* command) {
  const auto begin = std::chrono::steady_clock::now();
  ddbmutex::DdbMutex mutex(name);
  if (!mutex.try_lock()) {
    std::printf("%s: another host does it\n", name);
    return 0;
  }
  const int status = std::system(command);
  std::this_thread::sleep_until(begin + at_least);
  mutex.release();  // Like unlock(), but throws if the lock was lost.
  return WIFEXITED(status) ? WEXITSTATUS(status) : 125;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: cron_job NAME SECONDS COMMAND\n");
    return 125;
  }
  try {
    return run(argv[1], std::chrono::seconds(atol(argv[2])), argv[3]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "cron_job: %s\n", error.what());
    return 125;
  }
}
