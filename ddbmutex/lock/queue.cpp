// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "queue.hpp"

#include <algorithm>
#include <mutex>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

namespace {

template <class Element>
void erase(std::vector<Element*>& all, Element* one) {
  all.erase(std::find(all.begin(), all.end(), one));
}

}  // namespace

// -- Waits -------------------------------------------------------------------

Waits::One::One(Waits& waits) : waits_(waits) {
  const std::lock_guard<sigv4::Mutex> guard(waits_.mutex_);
  if (waits_.closed()) return;
  waits_.wakers_.push_back(&waker_);
  registered_ = true;
}

Waits::One::~One() {
  if (!registered_) return;
  const std::lock_guard<sigv4::Mutex> guard(waits_.mutex_);
  erase(waits_.wakers_, &waker_);
}

void Waits::close() {
  const std::lock_guard<sigv4::Mutex> guard(mutex_);
  closed_ = true;
  for (sigv4::CallWaker* waker : wakers_) waker->wake();
}

std::uint64_t this_thread() {
  static std::atomic<std::uint64_t> threads{0};
  thread_local std::uint64_t number = 0;
  if (number == 0) number = ++threads;
  return number;
}

// -- Queue -------------------------------------------------------------------

Queue::Entry Queue::enter(Waiter& waiter, bool wait) {
  if (ended_ || waiter.cancelled()) return Entry::ended;
  const bool is_free = line_.empty() && !locked_;
  if (!is_free && !wait) return Entry::busy;
  line_.push_back(&waiter);
  return is_free ? Entry::turn : Entry::line;
}

void Queue::leave(Waiter& waiter) {
  const bool had_turn = has_turn(waiter);
  erase(line_, &waiter);
  if (had_turn) wake_first();
}

void Queue::become_holder() {
  line_.erase(line_.begin());
  locked_ = true;
  holder_ = this_thread();
}

bool Queue::held_by_this_thread() const { return holder_ == this_thread(); }

void Queue::end_release() {
  locked_ = false;
  wake_first();
}

void Queue::wake_first() {
  if (!line_.empty()) line_.front()->waker_.wake();
}

// Does not wake the one that has the turn: that would end its take.
void Queue::wake_line() {
  for (Waiter* waiter : line_) {
    if (!has_turn(*waiter)) waiter->waker_.wake();
  }
}

void Queue::cancel(const std::atomic<bool>* stopped) {
  for (Waiter* waiter : line_) {
    if (stopped != nullptr && waiter->stopped_ != stopped) continue;
    waiter->cancelled_ = true;
    waiter->waker_.wake();
  }
}

void Queue::end() {
  ended_ = true;
  cancel();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
