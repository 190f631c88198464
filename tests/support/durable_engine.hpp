// An engine that keeps its rows in a file, which is in memory if it can be, and
// that a test may kill and start again at the same address.
#ifndef DDBMUTEX_TESTS_SUPPORT_DURABLE_ENGINE_HPP
#define DDBMUTEX_TESTS_SUPPORT_DURABLE_ENGINE_HPP

#include <memory>
#include <string>

#include "tests/support/in_memory.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace tests {

// Of the kind of any_engine_kind().  What goes wrong throws std::runtime_error
// or ddbmutex::Error.
class DurableEngine {
 public:
  // Runs, and has a table `locks`.
  DurableEngine();
  DurableEngine(const DurableEngine&) = delete;
  DurableEngine& operator=(const DurableEngine&) = delete;

  const Whereabouts& where() const { return where_; }
  void kill();   // By SIGKILL.
  void start();  // REQUIRES: killed.

 private:
  bool starts();

  MemoryDirectory directory_;
  Whereabouts where_;
  int port_ = 0;
  std::unique_ptr<Process> process_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_DURABLE_ENGINE_HPP
