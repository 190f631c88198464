// The processes of one scene, from its begin to its end.
#ifndef DDBMUTEX_EXAMPLES_DEMO_STAGE_HPP
#define DDBMUTEX_EXAMPLES_DEMO_STAGE_HPP

#include <functional>
#include <list>
#include <string>

#include "examples/demo/actor.hpp"
#include "examples/demo/process.hpp"
#include "examples/demo/screen.hpp"

namespace demo {

class Stage {
 public:
  // `cell`: the time that a cell of the picture stands for.
  Stage(Screen& screen, Time cell);

  // Starts a process and waits until it is ready to begin.
  Actor& add(const Part& part);
  void begin();  // Times count from now on.

  // Shows what goes on.  These throw std::runtime_error if a process is in
  // trouble, or if it takes too long, and Interrupted.
  void run_until(const std::string& what, const std::function<bool()>& there);
  void run_for(Time time);

  // For how long the machine let this process wait, in all.
  Time stalled() const { return stalled_; }

  void note(const std::string& what);  // With the time.
  void finish();                       // The picture is complete.

  const std::list<Actor>& actors() const { return actors_; }

 private:
  void step(Time longest);
  bool read_events(Time longest);
  void hear(const Event& event);
  void check();
  std::vector<Lane> lanes() const;

  Screen& screen_;
  const Time cell_;
  Time begin_;
  Time drawn_{};
  Time stalled_{};
  const Pipe events_;
  std::string unread_;  // The begin of a line.
  std::list<Actor> actors_;
};

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_STAGE_HPP
