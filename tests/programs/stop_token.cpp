// A program of C++20: waits that a std::stop_token ends.
//
//   stop_token ENDPOINT REGION TABLE
//
// Exit status 0 if all was as it should be.
#include <chrono>
#include <cstdio>
#include <memory>
#include <stop_token>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"
#include "extras/any_of.hpp"

using namespace std::chrono_literals;
using ddbmutex::AnyOf;
using ddbmutex::AnyOfOptions;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;

namespace {

#ifndef __cpp_lib_jthread
#error "this standard library has no std::stop_token"
#endif

int failures = 0;

void expect(bool condition, const char* what) {
  if (condition) return;
  std::printf("not so: %s\n", what);
  ++failures;
}

// Keys come from the environment.
ddbmutex::Options on_table(char** arguments) {
  ddbmutex::TableOptions table;
  table.endpoint = arguments[1];
  table.region = arguments[2];
  table.name = arguments[3];
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(table);
  return options;
}

void stopped_before(DdbMutex& free, const std::stop_token& stop) {
  try {
    free.lock(stop);
    expect(false, "lock() throws when stopped before");
  } catch (const ddbmutex::Error& error) {
    expect(error.code() == Errc::cancelled, "stopped before: cancelled");
  }
  std::error_code ec;
  expect(!free.try_lock_for(10s, stop, ec), "try_lock_for(): not ours");
  expect(ec == Errc::cancelled, "try_lock_for(): cancelled");
  expect(!free.owns_lock(), "stopped before: not held");
}

void stopped_while_waiting(DdbMutex& held) {
  std::stop_source source;
  std::jthread other([&source] {
    std::this_thread::sleep_for(100ms);  // It is stopped sooner or later.
    source.request_stop();
  });
  std::error_code ec;
  held.lock(source.get_token(), ec);
  expect(ec == Errc::cancelled, "stopped while waiting: cancelled");
  expect(!held.owns_lock(), "stopped while waiting: not held");
}

void not_stopped(DdbMutex& free) {
  std::stop_source source;
  free.lock(source.get_token());
  source.request_stop();
  expect(free.owns_lock(), "a stop after the wait does nothing");
  free.release();
  expect(free.try_lock_for(60s, std::stop_token()), "no stop state: ours");
  free.release();
}

// Of items of which there is none, so that it waits.
void stopped_any_of(const ddbmutex::Options& options) {
  AnyOfOptions none;
  none.each = options;
  none.prefix = "stop-token-none-";
  none.first_pause = none.longest_pause = 10min;
  AnyOf any(none);
  std::stop_source before;
  before.request_stop();
  std::error_code ec;
  expect(!any.lock(before.get_token(), ec), "any, stopped before: none");
  expect(ec == Errc::cancelled, "any, stopped before: cancelled");
  expect(!any.try_lock_for(10min, before.get_token(), ec),
         "any, stopped before its time: none");
  expect(ec == Errc::cancelled, "any, stopped before its time: cancelled");
  for (const bool timed : {false, true}) {
    std::stop_source source;
    std::jthread other([&source] {
      std::this_thread::sleep_for(100ms);  // It is stopped sooner or later.
      source.request_stop();
    });
    const auto token = source.get_token();
    const auto got =
        timed ? any.try_lock_for(10min, token, ec) : any.lock(token, ec);
    expect(!got && ec == Errc::cancelled, "any, while waiting: cancelled");
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) return 2;
  DdbMutex holder("stop-token", on_table(arguments));
  DdbMutex waiter("stop-token", on_table(arguments));
  std::stop_source stopped;
  stopped.request_stop();
  stopped_before(waiter, stopped.get_token());
  holder.lock();
  stopped_while_waiting(waiter);
  holder.release();
  not_stopped(waiter);
  stopped_any_of(on_table(arguments));
  if (failures == 0) {
    std::puts("stopped before, while waiting, not at all");
  }
  return failures == 0 ? 0 : 1;
}
