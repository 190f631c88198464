#include "queue.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// -- Waits -------------------------------------------------------------------

sigv4::Waker* Waits::begin() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (closed_) return nullptr;
  if (idle_.empty()) {
    lent_.push_back(std::make_unique<sigv4::Waker>());
  } else {
    lent_.push_back(std::move(idle_.back()));
    idle_.pop_back();
  }
  return lent_.back().get();
}

void Waits::end(sigv4::Waker* waker) {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto it =
      std::find_if(lent_.begin(), lent_.end(),
                   [waker](const auto& lent) { return lent.get() == waker; });
  if (idle_.size() < kMaxIdle) {
    // Also if it is not woken(): a wake amid a clear() may have left the
    // descriptor readable.
    waker->clear();
    idle_.push_back(std::move(*it));
  }
  *it = std::move(lent_.back());
  lent_.pop_back();
}

void Waits::close() {
  const std::lock_guard<std::mutex> guard(mutex_);
  closed_ = true;
  for (const auto& waker : lent_) waker->wake();
}

bool Waits::closed() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return closed_;
}

// -- Queue -------------------------------------------------------------------

std::uint64_t this_thread() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  thread_local std::uint64_t number = 0;
  if (number == 0) number = ++threads;
  return number;
}

namespace {

constexpr std::uint64_t kNoThread = UINT64_MAX;

}  // namespace

Queue::Entry Queue::enter(Waiter& waiter, bool wait) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (ended_) return Entry::refused;
  if (turn_ == nullptr && keeper_ == 0) {
    turn_ = &waiter;
    waiter.has_turn_ = true;
    return Entry::turn;
  }
  if (!wait) return Entry::refused;
  line_.push_back(&waiter);
  return Entry::line;
}

bool Queue::has_turn(const Waiter& waiter) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return waiter.has_turn_;
}

bool Queue::cancelled(const Waiter& waiter) const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return waiter.cancelled_;
}

bool Queue::keep(Waiter& waiter) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (ended_) return false;
  turn_ = nullptr;
  keeper_ = waiter.thread_;
  return true;
}

void Queue::leave(Waiter& waiter) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (turn_ == &waiter) {
    turn_ = nullptr;
    admit_next();
  } else {
    line_.erase(std::remove(line_.begin(), line_.end(), &waiter), line_.end());
  }
}

void Queue::let_go() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (keeper_ != 0) keeper_ = kNoThread;
}

void Queue::pass() {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (keeper_ == 0) return;  // Ended amid the taking.
  keeper_ = 0;
  admit_next();
}

bool Queue::kept_by_this_thread() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return keeper_ == this_thread();
}

void Queue::cancel() {
  const std::lock_guard<std::mutex> guard(mutex_);
  cancel_all();
}

void Queue::end() {
  const std::lock_guard<std::mutex> guard(mutex_);
  ended_ = true;
  cancel_all();
}

// Wakes only under the mutex, so that no wake comes after the waiter has left
// and its Waker serves another.
void Queue::admit_next() {
  if (line_.empty()) return;
  turn_ = line_.front();
  line_.erase(line_.begin());
  turn_->has_turn_ = true;
  turn_->waker_.wake();
}

void Queue::cancel_all() {
  const auto cancel = [](Waiter* waiter) {
    waiter->cancelled_ = true;
    waiter->waker_.wake();
  };
  if (turn_ != nullptr) cancel(turn_);
  std::for_each(line_.begin(), line_.end(), cancel);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
