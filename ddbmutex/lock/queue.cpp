// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "queue.hpp"

#include <mutex>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

// -- Waits -------------------------------------------------------------------

Waits::One::One(Waits& waits) : waits_(waits) {
  const std::lock_guard<sigv4::Mutex> guard(waits_.mutex_);
  if (waits_.closed()) return;
  if (waits_.idle_count_ == 0) {
    waker_ = std::make_unique<sigv4::Waker>();
  } else {
    waker_.swap(waits_.idle_[--waits_.idle_count_]);
  }
  next_ = std::exchange(waits_.first_, this);
}

Waits::One::~One() {
  if (waker_ == nullptr) return;
  const std::lock_guard<sigv4::Mutex> guard(waits_.mutex_);
  One** place = &waits_.first_;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
  if (waits_.idle_count_ == kMaxIdle) return;
  // Also if it is not woken(): a wake amid a clear() may have left the
  // descriptor readable.
  waker_->clear();
  waker_.swap(waits_.idle_[waits_.idle_count_++]);
}

void Waits::close() {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  closed_ = true;
  for (One* one = first_; one != nullptr; one = one->next_) one->waker_->wake();
}

// -- Cancel ------------------------------------------------------------------

// Wakes only under the mutex, so that no wake comes after the call has ended.
void Cancel::cancel() {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  cancelled_ = true;
  if (waker_ != nullptr) waker_->wake();
}

void Cancel::attach(sigv4::Waker* waker) {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  waker_ = waker;
  if (waker_ != nullptr && cancelled_) waker_->wake();
}

// -- Queue -------------------------------------------------------------------

std::uint64_t this_thread() noexcept {
  static std::atomic<std::uint64_t> threads{0};
  thread_local std::uint64_t number = 0;
  if (number == 0) number = ++threads;
  return number;
}

namespace {

constexpr std::uint64_t kNobody = UINT64_MAX;

}  // namespace

Queue::Waiter::Waiter(sigv4::Waker& waker, Cancel* cancel)
    : waker_(waker), cancel_(cancel) {
  if (cancel_ != nullptr) cancel_->attach(&waker_);
}

Queue::Waiter::~Waiter() {
  if (cancel_ != nullptr) cancel_->attach(nullptr);
}

bool Queue::Waiter::cancelled() const {
  return cancelled_ || (cancel_ != nullptr && cancel_->cancelled());
}

void Queue::Waiter::cancel() {
  cancelled_ = true;
  waker_.wake();
}

Queue::Entry Queue::enter(Waiter& waiter, bool wait) {
  if (ended_) return Entry::refused;
  if (turn_ == nullptr && holder_ == 0) {
    turn_ = &waiter;
    waiter.has_turn_ = true;
    return Entry::turn;
  }
  if (!wait) return Entry::refused;
  waiter.next_ = nullptr;
  Waiter** end = &line_;
  while (*end != nullptr) end = &(*end)->next_;
  *end = &waiter;
  return Entry::line;
}

bool Queue::become_holder(Waiter& waiter) {
  if (ended_) return false;
  turn_ = nullptr;
  holder_ = waiter.thread_;
  return true;
}

void Queue::leave(Waiter& waiter) {
  if (turn_ == &waiter) {
    turn_ = nullptr;
    return admit_next();
  }
  Waiter** place = &line_;
  while (*place != &waiter) place = &(*place)->next_;
  *place = waiter.next_;
}

void Queue::let_go() {
  if (holder_ != 0) holder_ = kNobody;
}

void Queue::pass() {
  if (holder_ == 0) return;  // Ended amid the taking.
  holder_ = 0;
  admit_next();
}

void Queue::end() {
  ended_ = true;
  cancel();
}

// Wakes while nobody else can enter or leave, so that no wake comes after the
// waiter has left and its Waker serves another.
void Queue::admit_next() {
  if (line_ == nullptr || turn_ != nullptr) return;
  turn_ = std::exchange(line_, line_->next_);
  turn_->has_turn_ = true;
  turn_->waker_.wake();
}

void Queue::wake_line() {
  for (Waiter* one = line_; one != nullptr; one = one->next_) {
    one->waker_.wake();
  }
}

void Queue::cancel() {
  if (turn_ != nullptr) turn_->cancel();
  for (Waiter* one = line_; one != nullptr; one = one->next_) one->cancel();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
