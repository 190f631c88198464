// The queue of log lines, and the thread that writes them.
#include "log.hpp"

#include <cstddef>
#include <mutex>
#include <utility>

#include "memory.hpp"
#include "text.hpp"
#include "thread.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
namespace {

constexpr std::size_t kMostLines = 1000;

}  // namespace

void LogQueue::add(LogLevel level, const std::string& line) {
  const std::lock_guard<Mutex> guard(mutex_);
  if (stopping_) return;
  if (waiting_ >= kMostLines) {
    ++left_out_;
    return;
  }
  if (!started_) {
    const std::shared_ptr<LogQueue> self = shared_from_this();
    if (!registered_) register_for_exit(self, *this);
    registered_ = true;
    // If no thread can be started now, the next line tries again.
    started_ = start_thread(thread_, "ddbmutex-log", self, [](void* queue) {
      static_cast<LogQueue*>(queue)->run();
    });
    if (!started_) return;
  }
  end_->reset(new Line{level, line, nullptr});
  end_ = &(*end_)->next;
  ++waiting_;
  changed_.notify_all();
}

std::unique_ptr<LogQueue::Line> LogQueue::take() {
  if (first_ == nullptr) return nullptr;
  if (stopping_ && BootClock::now() >= stop_by_) return nullptr;
  std::unique_ptr<Line> line;
  if (left_out_ != 0) {
    line.reset(new Line{LogLevel::warning, "", nullptr});
    sigv4::format_to(line->text,
                     "%s log lines were left out: the logger is too slow",
                     std::exchange(left_out_, 0));
    return line;
  }
  line = std::move(first_);
  first_ = std::move(line->next);
  if (first_ == nullptr) end_ = &first_;
  --waiting_;
  return line;
}

// One by one, because a thousand nested destructors need a large stack.
void LogQueue::drop_lines() {
  while (first_ != nullptr) first_ = std::move(first_->next);
  end_ = &first_;
  left_out_ = 0;
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
    while (!stopping_ && first_ == nullptr) changed_.wait(guard);
    std::unique_ptr<Line> line;
    if (!has_memory_for([&] { line = take(); })) {
      left_out_ = 0;  // There is no memory to report it.
      continue;
    }
    if (line == nullptr) break;
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
  if (!started_ || std::exchange(awaited_, true)) return;
  const bool own = is_this_thread(thread_);
  while (!own && !ended_ &&
         sigv4::await(changed_, guard, stop_by_ + kStopGrace)) {
  }
  if (!ended_) {
    // The logger hangs in one line.  No other may follow it.
    drop_lines();
    detach_thread(thread_);
    return;
  }
  guard.unlock();
  join_thread(thread_);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
