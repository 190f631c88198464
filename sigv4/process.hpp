// Which process this is, and what it must leave alone.
//
// A forked child has copies of its parent's mutexes (perhaps locked by threads
// that it does not have), connections and locks.  None of that may be used,
// waited for or closed there.  So whatever has a state knows which process made
// it, and starts anew in another.
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_PROCESS_HPP
#define DDBMUTEX_SIGV4_PROCESS_HPP

#include <atomic>
#include <cstdint>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Another number in a forked child, however it came about; a load and no system
// call.  (Before Linux 4.14, and where a sandbox has no MADV_WIPEONFORK, it is
// the process ID.)
std::uint64_t this_process() noexcept;

// Keeps what was abandoned within reach, so that no leak checker of a child
// takes it for lost.
class Abandoned {
 protected:
  ~Abandoned() = default;
  void abandon() noexcept;

 private:
  Abandoned* next_ = nullptr;
};

// One T for each process: made on first use, abandoned by a child.
template <class T>
class PerProcess {
 public:
  PerProcess() = default;
  PerProcess(const PerProcess&) = delete;
  PerProcess& operator=(const PerProcess&) = delete;
  ~PerProcess() { let_go(node_.load()); }

  // Null if this process has made none.
  T* peek() const noexcept {
    Node* node = node_.load(std::memory_order_acquire);
    return node != nullptr && node->process == this_process() ? &node->value
                                                              : nullptr;
  }

  template <class... Arguments>
  T& get(Arguments&&... arguments) {
    if (T* value = peek()) return *value;
    Node* seen = node_.load(std::memory_order_acquire);
    Node* fresh = new Node(std::forward<Arguments>(arguments)...);
    while (seen == nullptr || seen->process != fresh->process) {
      if (!node_.compare_exchange_weak(seen, fresh)) continue;
      let_go(seen);
      return fresh->value;
    }
    delete fresh;  // Another thread was faster.
    return seen->value;
  }

 private:
  struct Node : Abandoned {
    template <class... Arguments>
    explicit Node(Arguments&&... arguments)
        : value(std::forward<Arguments>(arguments)...) {}
    using Abandoned::abandon;
    const std::uint64_t process = this_process();
    T value;
  };

  static void let_go(Node* node) {
    if (node == nullptr) return;
    if (node->process == this_process()) {
      delete node;
    } else {
      node->abandon();
    }
  }

  std::atomic<Node*> node_{nullptr};
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROCESS_HPP
