// A program of C++20: waits that a std::stop_token ends, and a token that tells
// of a loss.
//
//   stop_token ENDPOINT REGION TABLE
//
// Exit status 0 if all was as it should be.
#include <chrono>
#include <cstdio>
#include <memory>
#include <semaphore>
#include <stop_token>
#include <string>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"
#include "ddbmutex/any_of.hpp"

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

// Waits for it, as whoever works under the lock would.
void awaits_the_loss(DdbMutex& mutex, const std::stop_token& lost) {
  std::binary_semaphore told(0);
  const std::stop_callback tell(lost, [&] {
    expect(!mutex.owns_lock(), "told of a loss: not held any more");
    told.release();
  });
  expect(told.try_acquire_for(60s), "told of a loss");
  expect(lost.stop_requested(), "told of a loss: asked to stop");
}

// By the end of a lease that nobody renews; by somebody's hand, which the next
// renewal finds out.
void told_of_a_loss(ddbmutex::Options options) {
  for (const bool renewed : {false, true}) {
    options.ttl = renewed ? 60s : 6s;
    options.auto_renew = renewed;
    if (renewed) options.renew_after = 200ms;
    DdbMutex mutex("stop-token-lost", options);
    expect(mutex.lost().stop_requested(), "not held: asked to stop at once");
    mutex.lock();
    const std::stop_token lost = mutex.lost();
    expect(!lost.stop_requested(), "held: not asked to stop");
    expect(mutex.lost() == lost, "held: one token");
    if (renewed) {
      expect(options.table->force_unlock(options.table->inspect(mutex.name())),
             "freed by hand");
    }
    awaits_the_loss(mutex, lost);
    mutex.unlock();
  }
}

void not_told_of_an_unlock(const ddbmutex::Options& options) {
  DdbMutex mutex("stop-token-unlocked", options);
  mutex.lock();
  const std::stop_token first = mutex.lost();
  mutex.unlock();
  expect(!first.stop_requested(), "unlocked: not asked to stop");
  expect(!first.stop_possible(), "unlocked: never will be");
  mutex.lock();
  expect(mutex.lost() != first, "locked again: another token");
  expect(!mutex.lost().stop_requested(), "locked again: not asked to stop");
}

void not_told_once_destroyed(ddbmutex::Options options) {
  std::unique_ptr<DdbMutex> mutex;
  std::binary_semaphore gone(0);
  bool late = false;
  options.ttl = 6s;
  options.auto_renew = false;
  options.on_lost = [&](ddbmutex::Loss) { late = true; };
  mutex = std::make_unique<DdbMutex>("stop-token-destroyed", options);
  mutex->lock();
  const std::stop_callback destroy(mutex->lost(), [&] {
    mutex.reset();
    gone.release();
  });
  expect(gone.try_acquire_for(60s), "destroyed when told of the loss");
  options.table->close();
  options.table.reset();  // Its threads have ended.
  expect(!late, "on_lost is not called once its mutex is gone");
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
  told_of_a_loss(on_table(arguments));
  not_told_of_an_unlock(on_table(arguments));
  not_told_once_destroyed(on_table(arguments));
  stopped_any_of(on_table(arguments));
  if (failures == 0) {
    std::puts("stopped before, while waiting, not at all; told of a loss");
  }
  return failures == 0 ? 0 : 1;
}
