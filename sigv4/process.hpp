// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Objects that a forked child must not share with its parent.
//
// A forked child has copies of its parent's mutexes (perhaps locked by threads
// that it does not have), connections and locks.  It must not use, await or
// close any of these.  So the state of an object is kept in a PerProcess: a
// child abandons the parent's state and makes its own.
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_PROCESS_HPP
#define DDBMUTEX_SIGV4_PROCESS_HPP

#include <atomic>
#include <cstdint>
#include <utility>

#include "system.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// The part of PerProcess that does not depend on the type.
class OnePerProcess {
 protected:
  struct Node {
    explicit Node(void (*how)(Node*)) : destroy(how) {}
    void (*const destroy)(Node* self);
    const std::uint64_t process = this_process();
    Node* next = nullptr;  // In the list of abandoned nodes.
  };

  OnePerProcess() = default;
  OnePerProcess(const OnePerProcess&) = delete;
  OnePerProcess& operator=(const OnePerProcess&) = delete;
  ~OnePerProcess() { let_go(node_.load()); }

  // Null if this process has made none.
  Node* find() const noexcept;
  // Returns `fresh`; or the node of another thread that was faster.
  Node* install(Node* fresh);

 private:
  // Destroys a node of this process, and abandons one of another.
  static void let_go(Node* node);

  // A list, so that leak checkers do not take abandoned nodes for leaks.
  static std::atomic<Node*> abandoned_;
  std::atomic<Node*> node_{nullptr};
};

// One T for each process: made on first use, abandoned by a child.
template <class T>
class PerProcess : OnePerProcess {
 public:
  // Null if this process has made none.
  T* peek() const noexcept {
    Node* const node = find();
    return node != nullptr ? &static_cast<Made*>(node)->value : nullptr;
  }

  template <class... Arguments>
  T& get(Arguments&&... arguments) {
    if (T* value = peek()) return *value;
    Node* const fresh = new Made(std::forward<Arguments>(arguments)...);
    return static_cast<Made*>(install(fresh))->value;
  }

 private:
  struct Made : Node {
    template <class... Arguments>
    explicit Made(Arguments&&... arguments)
        : Node([](Node* self) { delete static_cast<Made*>(self); }),
          value(std::forward<Arguments>(arguments)...) {}
    T value;
  };
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROCESS_HPP
