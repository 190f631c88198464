// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The queue of log lines, and the thread that writes them.
#include "log.hpp"

#include <cstddef>
#include <mutex>
#include <utility>

#include "memory.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::size_t kMostLines = 1000;

}  // namespace

void LogQueue::add(LogLevel level, const std::string& line) {
  const std::lock_guard<Mutex> guard(mutex_);
  if (stopping_) return;
  if (lines_.size() >= kMostLines) {
    ++left_out_;
    return;
  }
  if (!started_) {
    const std::shared_ptr<LogQueue> self = shared_from_this();
    if (!registered_) register_for_exit(self);
    registered_ = true;
    // If no thread can be started now, the next line tries again.
    started_ = start_thread(thread_, "ddbmutex-log", [self] { self->run(); });
    if (!started_) return;
  }
  lines_.push_back({level, line});
  changed_.notify_all();
}

std::optional<LogQueue::Line> LogQueue::take() {
  if (lines_.empty()) return std::nullopt;
  if (stopping_ && BootClock::now() >= stop_by_) return std::nullopt;
  if (left_out_ != 0) {
    return Line{LogLevel::warning,
                sigv4::join({Digits(std::exchange(left_out_, 0)),
                             " log lines were left out: the logger is too "
                             "slow"})};
  }
  Line line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void LogQueue::write_line(const Line& line) {
#ifdef __cpp_exceptions
  try {
    write(line.level, line.text);
  } catch (...) {
  }
#else
  write(line.level, line.text);
#endif
}

void LogQueue::run() {
  std::unique_lock<Mutex> guard(mutex_);
  for (;;) {
    while (!stopping_ && lines_.empty()) changed_.wait(guard);
    std::optional<Line> line;
    if (!try_with_memory([&] { line = take(); })) {
      left_out_ = 0;  // There is no memory to report it.
      continue;
    }
    if (!line) break;
    guard.unlock();
    write_line(*line);
    guard.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

void LogQueue::tell_to_stop(BootTime by) {
  const std::lock_guard<Mutex> guard(mutex_);
  if (std::exchange(stopping_, true)) return;
  stop_by_ = by;
  changed_.notify_all();
}

void LogQueue::await_stop() {
  std::unique_lock<Mutex> guard(mutex_);
  const bool waits = started_ && !is_this_thread(thread_);
  while (waits && !ended_ &&
         sigv4::await(changed_, guard, stop_by_ + kStopGrace)) {
  }
  if (!std::exchange(started_, false)) return;  // Another call joins it.
  if (!ended_) {
    // The logger hangs in one line.  It must not be called with another.
    lines_.clear();
    left_out_ = 0;
    detach_thread(thread_);
    return;
  }
  guard.unlock();
  join_thread(thread_);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
