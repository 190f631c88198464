#include "log.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <utility>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::size_t kMostLines = 1000;

}  // namespace

LogQueue::LogQueue(Log sink) : sink_(std::move(sink)) {}

void LogQueue::add(LogLevel level, const std::string& text) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (stopping_) return;
  if (lines_.size() >= kMostLines) {
    ++left_out_;
    return;
  }
  if (!started_) {
    // Without a thread there is nobody to tell it: perhaps with the next line.
    started_ =
        start_thread(thread_, [self = shared_from_this()] { self->run(); });
    if (!started_) return;
    register_for_exit(shared_from_this());
  }
  lines_.push_back({level, text});
  changed_.notify_all();
}

bool LogQueue::take(Line& line) {
  if (stopping_ && BootClock::now() >= stop_by_) return false;
  if (left_out_ != 0) {
    line = {LogLevel::warning,
            decimal(std::exchange(left_out_, 0)) +
                " lines are left out: who reads them is too slow"};
    return true;
  }
  line = std::move(lines_.front());
  lines_.erase(lines_.begin());
  return true;
}

void LogQueue::run() {
  std::unique_lock<std::mutex> guard(mutex_);
  for (;;) {
    changed_.wait(guard, [&] { return stopping_ || !lines_.empty(); });
    Line line;
    if (lines_.empty() || !take(line)) break;
    guard.unlock();
    sink_(line.level, line.text);
    guard.lock();
  }
  ended_ = true;
  changed_.notify_all();
}

void LogQueue::tell_to_stop(BootTime by) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (std::exchange(stopping_, true)) return;
  stop_by_ = by;
  changed_.notify_all();
}

void LogQueue::await_stop() {
  std::unique_lock<std::mutex> guard(mutex_);
  if (!started_ || std::exchange(awaited_, true)) return;
  if (pthread_equal(pthread_self(), thread_) == 0) {
    const std::chrono::nanoseconds left =
        stop_by_ + kStopGrace - BootClock::now();
    changed_.wait_for(guard, std::max(left, std::chrono::nanoseconds::zero()),
                      [&] { return ended_; });
  }
  if (!ended_) {
    // One line at the most is being told; none is to follow.
    lines_.clear();
    left_out_ = 0;
    pthread_detach(thread_);
    return;
  }
  guard.unlock();
  pthread_join(thread_, nullptr);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
