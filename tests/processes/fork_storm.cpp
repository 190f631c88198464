// Forks over and over while its other threads are inside calls:
//
//   fork_storm TABLE NAME FORKS
//
// Each child looks whether it holds nothing, takes and releases a lock of its
// own in the same Table, and ends by exit() or _exit() in turn.  One that hangs
// is killed.  The status is 0 if all was well.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/forked_child.hpp"

namespace {

using ddbmutex::DdbMutex;
using ddbmutex::Options;

class Storm {
 public:
  Storm(std::shared_ptr<ddbmutex::Table> table, const std::string& name)
      : name_(name),
        options_{options(std::move(table))},
        held_(name + "-held", options_),
        wanted_(name + "-wanted", options_),
        tried_(name + "-tried", options_) {}

  bool blow(int forks) {
    std::error_code ec;
    held_.lock(ec);
    if (ec) return complain("parent", held_.last_error());
    start_threads();
    bool well = true;
    for (int i = 0; i < forks && well; ++i) well = fork_one(i);
    stopping_ = true;
    for (std::thread& thread : threads_) thread.join();
    well = well && held_.owns_lock();
    held_.release(ec);
    return well && (!ec || complain("parent", held_.last_error()));
  }

 private:
  static Options options(std::shared_ptr<ddbmutex::Table> table) {
    Options options;
    options.table = std::move(table);
    options.request_timeout = std::chrono::seconds(20);  // However slow it is.
    return options;
  }

  static bool complain(const std::string& who, const std::string& what) {
    std::fprintf(stderr, "%s: %s\n", who.c_str(), what.c_str());
    return false;
  }

  void start_threads() {
    for (int i = 0; i < 2; ++i) {
      threads_.emplace_back([this] { lock_over_and_over(); });
    }
    threads_.emplace_back([this] { try_over_and_over(); });
    threads_.emplace_back([this] { make_over_and_over(); });
  }

  // Two threads: one waits for the other most of the time.
  void lock_over_and_over() {
    while (!stopping_) {
      std::error_code ec;
      wanted_.lock(ec);
      if (ec) std::fprintf(stderr, "%s\n", wanted_.last_error().c_str());
      wanted_.unlock();
    }
  }
  void try_over_and_over() {
    while (!stopping_) {
      std::error_code ec;
      if (tried_.try_lock(ec)) tried_.unlock();
      if (ec) std::fprintf(stderr, "%s\n", tried_.last_error().c_str());
    }
  }
  void make_over_and_over() {
    while (!stopping_) {
      DdbMutex made(name_ + "-made", options_);
      std::error_code ec;
      if (!made.try_lock(ec)) std::fprintf(stderr, "made: not ours\n");
      options_.table->stats();
    }
  }

  bool fork_one(int number) {
    const pid_t child = fork();
    if (child == 0) be_child(number);
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return false;
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
    return complain("child " + std::to_string(number),
                    WIFSIGNALED(status)
                        ? "signal " + std::to_string(WTERMSIG(status))
                        : "status " + std::to_string(WEXITSTATUS(status)));
  }

  [[noreturn]] void be_child(int number) {
    tests::begin_as_child();
    const int status = child_is_well(number) ? 0 : 1;
    if (number % 2 == 0) std::exit(status);
    _exit(status);
  }

  bool child_is_well(int number) {
    for (const DdbMutex* of_parent : {&held_, &wanted_, &tried_}) {
      if (of_parent->owns_lock() || of_parent->remaining().count() != 0) {
        return complain("child", "holds " + of_parent->name());
      }
    }
    held_.unlock();  // Must do nothing: the parent looks.
    DdbMutex own(name_ + "-child-" + std::to_string(number), options_);
    std::error_code ec;
    own.lock(ec);
    if (ec || !own.owns_lock()) return complain("child", own.last_error());
    own.release(ec);
    return !ec || complain("child", own.last_error());
  }

  const std::string name_;
  const Options options_;
  DdbMutex held_, wanted_, tried_;
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  ddbmutex::TableOptions options;
  options.name = argv[1];
  Storm storm(std::make_shared<ddbmutex::Table>(options), argv[2]);
  return storm.blow(std::stoi(argv[3])) ? 0 : 1;
}
