// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The ten lines: of all hosts that run this, one at a time prints its report.
//
//   ten_lines
//
// The lock is an item of the table `locks`.  Region and keys are found where
// AWS's own tools find them.  Start it twice: the second waits for the first.
#include <chrono>
#include <cstdio>
#include <exception>
#include <mutex>
#include <string>
#include <vector>

#include "ddbmutex.hpp"

namespace {

std::vector<std::string> pages() { return {"page 1", "page 2", "page 3"}; }

void print(const std::string& page) { std::printf("%s\n", page.c_str()); }

}  // namespace

void report() {
  static ddbmutex::DdbMutex mutex("nightly-report");
  std::lock_guard guard(mutex);  // One host at a time.
  for (const auto& page : pages()) {
    mutex.require(std::chrono::seconds(5));  // Throws unless 5 s remain.
    print(page);
  }
}

int main() {
  try {
    report();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ten_lines: %s\n", error.what());
    return 1;
  }
}
