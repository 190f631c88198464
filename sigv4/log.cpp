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

void LogQueue::add(const std::shared_ptr<void>& queue, LogLevel level,
                   const std::string& text) {
  LogQueue& own = *static_cast<LogQueue*>(queue.get());
  const std::lock_guard<Mutex> guard(own.mutex_);
  if (own.stopping_) return;
  if (own.waiting_ >= kMostLines) {
    ++own.left_out_;
    return;
  }
  if (!own.started_) {
    if (!own.registered_) register_for_exit(queue, own);
    own.registered_ = true;
    // Without a thread there is nobody to tell it: perhaps with the next line.
    own.started_ =
        start_thread(own.thread_, "ddbmutex-log", queue,
                     [](void* it) { static_cast<LogQueue*>(it)->run(); });
    if (!own.started_) return;
  }
  own.end_->reset(new Line{level, text, nullptr});
  own.end_ = &(*own.end_)->next;
  ++own.waiting_;
  own.changed_.notify_all();
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
  line.swap(first_);
  first_.swap(line->next);
  if (first_ == nullptr) end_ = &first_;
  --waiting_;
  return line;
}

// One by one: a thousand destructors within each other want a large stack.
void LogQueue::drop_lines() {
  while (first_ != nullptr) first_ = std::move(first_->next);
  end_ = &first_;
  left_out_ = 0;
}

void LogQueue::run() {
  std::unique_lock<Mutex> guard(mutex_);
  for (;;) {
    while (!stopping_ && first_ == nullptr) changed_.wait(guard);
    std::unique_ptr<Line> line;
    if (!has_memory_for([&] { line = take(); })) {
      left_out_ = 0;  // Not told, then.
      continue;
    }
    if (line == nullptr) break;
    guard.unlock();
    tell_(*this, line->level, line->text);
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
    // One line at the most is being told; none is to follow.
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
