// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A lock in a program that uses Asio.  lock() blocks, so it waits on a thread
// of its own.  Its result goes to a handler, as with Asio's own operations, and
// Asio's cancellation ends the wait.  Needs libasio-dev, as Debian calls it.
//
//   flags=$(pkg-config --cflags --libs ddbmutex)
//   c++ -std=c++20 -o leader asio.cpp $flags
//
// Prints "waiting", then "leading" once it has the lock.  If it loses the lock,
// it prints "lost" and ends with status 1.  SIGINT and SIGTERM end it, and it
// releases the lock.
#include <signal.h>

#include <asio.hpp>
#include <chrono>
#include <cstdio>
#include <exception>
#include <optional>
#include <stop_token>
#include <system_error>
#include <utility>

#include "ddbmutex.hpp"

namespace {

void say(const char* what) {
  std::puts(what);
  std::fflush(stdout);
}

// Calls the handler with the result of lock(), on `context` unless the handler
// has its own executor.  If the wait is cancelled just as the lock is acquired,
// the handler has the lock.
template <class Token>
auto async_lock(ddbmutex::DdbMutex& mutex, asio::thread_pool& threads,
                asio::io_context& context, Token&& token) {
  const auto begin = [&mutex, &threads, &context](auto handler) {
    std::stop_source stop;
    auto slot = asio::get_associated_cancellation_slot(handler);
    if (slot.is_connected()) {
      slot.assign(
          [stop](asio::cancellation_type) mutable { stop.request_stop(); });
    }
    // Keeps run() from returning meanwhile.
    auto work = asio::make_work_guard(handler, context);
    asio::post(threads, [&mutex, stop, work = std::move(work),
                         handler = std::move(handler)]() mutable {
      std::error_code error;
      mutex.lock(stop.get_token(), error);
      asio::post(work.get_executor(),
                 [handler = std::move(handler), error]() mutable {
                   std::move(handler)(error);
                 });
    });
  };
  return asio::async_initiate<Token, void(std::error_code)>(begin, token);
}

// All its member functions are called on the thread of run().
class Leader {
 public:
  int run() {
    signals_.async_wait([this](std::error_code error, int) {
      if (!error) end(0);
    });
    say("waiting");
    async_lock(
        mutex_, threads_, context_,
        asio::bind_cancellation_slot(
            wait_.slot(), [this](std::error_code error) { locked(error); }));
    context_.run();
    return *status_;
  }

 private:
  ddbmutex::Options options() {
    ddbmutex::Options options;
    options.ttl = std::chrono::seconds(20);
    // Runs on a thread of the library, which it must not block.
    options.on_lost = [this](ddbmutex::Loss) {
      asio::post(context_, [this] {
        if (status_) return;
        say("lost");
        end(1);
      });
    };
    return options;
  }

  void locked(std::error_code error) {
    if (status_) return;  // If it has the lock, the destructor releases it.
    if (error) {
      std::fprintf(stderr, "leader: %s\n", mutex_.last_error().c_str());
      return end(1);
    }
    say("leading");
    lead();
  }

  // The work, in steps much shorter than the lease.
  void lead() {
    if (status_ || !mutex_.owns_lock()) return;
    timer_.expires_after(std::chrono::milliseconds(100));
    timer_.async_wait([this](std::error_code) { lead(); });
  }

  void end(int status) {
    status_ = status;
    wait_.emit(asio::cancellation_type::terminal);
    signals_.cancel();
    timer_.cancel();
  }

  asio::io_context context_;
  ddbmutex::DdbMutex mutex_{"leader", options()};
  // Destroyed before the mutex that it waits for.
  asio::thread_pool threads_{1};
  asio::cancellation_signal wait_;
  asio::signal_set signals_{context_, SIGINT, SIGTERM};
  asio::steady_timer timer_{context_};
  std::optional<int> status_;  // Set when the program is to end.
};

}  // namespace

int main() {
  try {
    return Leader().run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "leader: %s\n", error.what());
    return 1;
  }
}
