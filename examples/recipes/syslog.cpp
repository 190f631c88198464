// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The library's log lines in syslog, and so in the journal if there is one.
//
//   flags=$(pkg-config --cflags --libs ddbmutex)
//   c++ -std=c++17 -o report syslog.cpp $flags
#include <syslog.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <mutex>
#include <string>

#include "ddbmutex.hpp"

namespace {

int priority_of(ddbmutex::LogLevel level) {
  switch (level) {
    case ddbmutex::LogLevel::debug:
      return LOG_DEBUG;
    case ddbmutex::LogLevel::info:
      return LOG_INFO;
    case ddbmutex::LogLevel::warning:
      return LOG_WARNING;
    case ddbmutex::LogLevel::error:
      break;
  }
  return LOG_ERR;
}

// For TableOptions::logger.  A thread of the library calls it; any thread may
// call syslog().
void to_syslog(ddbmutex::LogLevel level, const std::string& text) {
  syslog(priority_of(level), "%s", text.c_str());
}

void report() {
  ddbmutex::TableOptions where;
  where.logger = to_syslog;
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(where);

  ddbmutex::DdbMutex mutex("nightly-report", options);
  const std::lock_guard<ddbmutex::DdbMutex> guard(mutex);
  std::puts("page 1");
}

}  // namespace

int main() {
  openlog("nightly-report", LOG_PID | LOG_PERROR, LOG_CRON);
  try {
    report();
  } catch (const std::exception& error) {
    syslog(LOG_ERR, "%s", error.what());
    return 1;
  }
}
