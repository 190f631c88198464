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
  if (turn_ == nullptr && !locked_) {
    turn_ = &waiter;
    return Entry::turn;
  }
  if (!wait) return Entry::busy;
  line_.push_back(&waiter);
  return Entry::line;
}

void Queue::leave(Waiter& waiter) {
  if (has_turn(waiter)) {
    give_turn_to_next();
  } else {
    erase(line_, &waiter);
  }
}

void Queue::become_holder() {
  turn_ = nullptr;
  locked_ = true;
  holder_ = this_thread();
}

bool Queue::held_by_this_thread() const { return holder_ == this_thread(); }

void Queue::pass() {
  locked_ = false;
  give_turn_to_next();
}

void Queue::give_turn_to_next() {
  turn_ = nullptr;
  if (line_.empty()) return;
  turn_ = line_.front();
  line_.erase(line_.begin());
  turn_->waker_.wake();
}

void Queue::wake_line() {
  for (Waiter* waiter : line_) waiter->waker_.wake();
}

void Queue::cancel(const std::atomic<bool>* stopped) {
  const auto cancel_one = [stopped](Waiter& one) {
    if (stopped != nullptr && one.stopped_ != stopped) return;
    one.cancelled_ = true;
    one.waker_.wake();
  };
  if (turn_ != nullptr) cancel_one(*turn_);
  for (Waiter* waiter : line_) cancel_one(*waiter);
}

void Queue::end() {
  ended_ = true;
  cancel();
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
