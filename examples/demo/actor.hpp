// A process on the stage, and what it was seen to do.
#ifndef DDBMUTEX_EXAMPLES_DEMO_ACTOR_HPP
#define DDBMUTEX_EXAMPLES_DEMO_ACTOR_HPP

#include <optional>
#include <string>
#include <vector>

#include "examples/demo/claims.hpp"
#include "examples/demo/event.hpp"
#include "examples/demo/process.hpp"
#include "examples/demo/screen.hpp"
#include "examples/demo/worker.hpp"

namespace demo {

// What of the scene a lane shows, and how.
struct Window {
  Time begin, now;
  Time cell;
  int cells;
};

class Actor {
 public:
  // Starts the process; its events go to `events`.
  Actor(const Part& part, int events);

  void tell();  // Go; later: it is enough.
  void kill();
  void stop();
  void wake();
  // Why its process is gone, before it was done or not in good order; empty if
  // all is well.
  std::string trouble();
  bool left();  // Done, and its process is gone.

  // Returns what there is to say of it; mostly nothing.
  std::string hear(const Event& event);
  Lane lane(const Window& window) const;

  char name() const { return part_.name; }
  pid_t pid() const { return process_.pid(); }
  bool ready() const { return ready_; }
  bool waits() const { return doing_ == Doing::waits; }
  int renewals() const { return renewals_; }
  int unlocks() const { return unlocks_; }
  // What its owns_lock() said first after wake().
  std::optional<bool> owned_on_waking() const { return owned_on_waking_; }
  // Its last unlock() was of a lock that it still had.
  bool freed_its_own() const { return freed_its_own_; }
  const std::vector<Hold>& holds() const { return holds_; }
  const std::vector<std::string>& losses() const { return losses_; }

 private:
  enum class Doing { nothing, waits, holds, works, stopped, dead };
  struct Span {
    char mark;
    Time begin;
  };

  void change(Doing doing, Time at, char mark);
  void suspend(Doing doing, char mark);
  void hear_holds(const Event& event);
  std::string hear_frees(const Event& event);
  std::string hear_writes(const Event& event);
  char mark_at(Time at) const;
  std::string status(Time now) const;

  const Part part_;
  Pipe stdin_;
  Process process_;
  std::string failure_;
  bool ready_ = false;
  bool done_ = false;
  bool ended_by_us_ = false;

  Doing doing_ = Doing::nothing;
  Time since_{};
  std::vector<Span> spans_;  // Each until the next begins.

  bool in_hold_ = false;
  std::vector<Hold> holds_;
  std::vector<std::string> losses_;
  int renewals_ = 0;
  int unlocks_ = 0;
  bool woken_ = false;
  std::optional<bool> owned_on_waking_;
  bool freed_its_own_ = false;
  int updates_ = 0;
  long long read_ = 0;
  Time read_at_{};
  long long written_ = -1;  // Under the present hold; -1: nothing.
};

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_ACTOR_HPP
