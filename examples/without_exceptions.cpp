// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The lock in a program without exceptions and RTTI: this file is compiled with
// -fno-exceptions -fno-rtti, and every call that can fail is given a
// std::error_code.
//
//   without_exceptions TABLE NAME TTL_MS
//
// Creates the table if there is none, waits up to a second for the lock, works,
// and releases it.  Exit status: 0; 1 if somebody else holds the lock; 2 if
// something went wrong.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <system_error>

#include "ddbmutex.hpp"
#include "extras/admin.hpp"

namespace {

using std::chrono::milliseconds;

int failure(const std::string& what) {
  std::fprintf(stderr, "without_exceptions: %s\n", what.c_str());
  return 2;
}

int print_holder(ddbmutex::Table& table, const std::string& name) {
  std::error_code error;
  const ddbmutex::LockInfo info = table.inspect(name, error);
  if (error) return failure(table.last_error());
  std::printf("held by %s\n", info.exists ? info.owner.c_str() : "nobody now");
  return 1;
}

int work(ddbmutex::DdbMutex& mutex, milliseconds ttl) {
  std::error_code error;
  mutex.require(ttl / 2, error);  // In longer work: before each step.
  if (error) return failure(mutex.last_error());
  std::printf("working as %s\n", mutex.owner().c_str());
  std::fflush(stdout);
  return 0;
}

int lock_and_work(const std::shared_ptr<ddbmutex::Table>& table,
                  const char* name, milliseconds ttl) {
  ddbmutex::Options options;
  options.table = table;
  options.ttl = ttl;
  // If the library was compiled without exceptions, too, the first call below
  // reports a wrong option.
  ddbmutex::DdbMutex mutex(name, options);

  std::error_code error;
  if (!mutex.try_lock_for(std::chrono::seconds(1), error)) {
    // No error means that the time is up and somebody else holds the lock.
    return error ? failure(mutex.last_error()) : print_holder(*table, name);
  }
  const int status = work(mutex, ttl);
  mutex.release(error);  // Or unlock(), if the error does not matter.
  if (error) return failure(mutex.last_error());
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::fprintf(stderr, "usage: without_exceptions TABLE NAME TTL_MS\n");
    return 2;
  }
  ddbmutex::TableOptions options;
  options.name = argv[1];
  const auto table = std::make_shared<ddbmutex::Table>(options);
  std::error_code error;
  create_table(*table, error);
  if (error) return failure(table->last_error());
  return lock_and_work(table, argv[2], milliseconds(atol(argv[3])));
}
