// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The library's log lines in spdlog.  Needs libspdlog-dev, as Debian calls it.
//
//   flags=$(pkg-config --cflags --libs ddbmutex spdlog)
//   c++ -std=c++17 -o report spdlog.cpp $flags
//
// Logs which keys were found, what is retried (spdlog::level::debug), and why a
// lock was lost.
#include <spdlog/sinks/stdout_color_sinks.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "ddbmutex.hpp"

namespace {

spdlog::level::level_enum level_of(ddbmutex::LogLevel level) {
  switch (level) {
    case ddbmutex::LogLevel::debug:
      return spdlog::level::debug;
    case ddbmutex::LogLevel::info:
      return spdlog::level::info;
    case ddbmutex::LogLevel::warning:
      return spdlog::level::warn;
    case ddbmutex::LogLevel::error:
      break;
  }
  return spdlog::level::err;
}

// For TableOptions::logger.  A thread of the library calls it, so the sinks
// have to be thread-safe ("_mt").
std::function<void(ddbmutex::LogLevel, const std::string&)> to_spdlog(
    std::shared_ptr<spdlog::logger> log) {
  return [log = std::move(log)](ddbmutex::LogLevel level,
                                const std::string& text) {
    log->log(level_of(level), "{}", text);  // The text may contain braces.
  };
}

void report() {
  ddbmutex::TableOptions where;
  where.logger = to_spdlog(spdlog::stderr_color_mt("ddbmutex"));
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(where);

  ddbmutex::DdbMutex mutex("nightly-report", options);
  const std::lock_guard<ddbmutex::DdbMutex> guard(mutex);
  std::puts("page 1");
}

}  // namespace

int main() {
  try {
    report();
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return 1;
  }
}
