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
  begun_ = &waker_;
  next_ = std::exchange(waits_.first_, this);
}

Waits::One::~One() {
  if (begun_ == nullptr) return;
  const std::lock_guard<sigv4::Mutex> guard(waits_.mutex_);
  One** place = &waits_.first_;
  while (*place != this) place = &(*place)->next_;
  *place = next_;
}

void Waits::close() {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  closed_ = true;
  for (One* one = first_; one != nullptr; one = one->next_) one->waker_.wake();
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

void Queue::Waiter::cancel() {
  cancelled_ = true;
  waker_.wake();
}

Queue::Entry Queue::enter(Waiter& waiter, bool wait) {
  if (ended_) return Entry::refused;
  if (waiter.cancelled()) waiter.waker_.wake();
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

void Queue::cancel(const std::atomic<bool>* stopped) {
  const auto cancel_one = [stopped](Waiter& one) {
    if (stopped == nullptr || one.stopped_ == stopped) one.cancel();
  };
  if (turn_ != nullptr) cancel_one(*turn_);
  for (Waiter* one = line_; one != nullptr; one = one->next_) cancel_one(*one);
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
