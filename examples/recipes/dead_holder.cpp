// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Waits just long enough to find out whether the holder of a lock is alive, and
// takes the lock if it is dead.
//
//   flags=$(pkg-config --cflags --libs ddbmutex)
//   c++ -std=c++17 -o repair dead_holder.cpp $flags
//
// Prints "locked" if it gets the lock.  If the holder has renewed it meanwhile,
// prints who that is, and ends with status 1.
#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>

#include "ddbmutex.hpp"

namespace {

constexpr std::chrono::milliseconds kRequestTimeout{2000};

// A waiter takes the lock when it has seen the same record for the lease and
// 1 % more.  The look before that and the take may need a request timeout each.
// The lease is 0 if there is no record, or if it does not say.
bool lock_unless_renewed(ddbmutex::DdbMutex& mutex, ddbmutex::Table& table) {
  const std::chrono::nanoseconds lease = table.inspect(mutex.name()).lease;
  return mutex.try_lock_for(lease + lease / 100 + 2 * kRequestTimeout);
}

int repair() {
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>();
  options.request_timeout = kRequestTimeout;
  ddbmutex::DdbMutex mutex("dead-holder", options);
  if (!lock_unless_renewed(mutex, *options.table)) {
    const ddbmutex::LockInfo info = options.table->inspect(mutex.name());
    std::printf("held by %s\n", info.owner.c_str());
    return 1;
  }
  std::puts("locked");
  return 0;  // The destructor releases the lock.
}

}  // namespace

int main() {
  try {
    return repair();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "repair: %s\n", error.what());
    return 2;
  }
}
