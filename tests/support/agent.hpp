// Other processes with mutexes, that do what a test tells them: the program
// tests/processes/agent.cpp (which lists the commands), and its forked
// children.
//
//   Agent holder(at(engine));
//   holder.make("a", name, "ttl=600");
//   holder.ask("lock a");  // "true"
//   ForkedAgent child(holder, "fork");
//   child.ask("owns a");  // "false"
#ifndef DDBMUTEX_TESTS_SUPPORT_AGENT_HPP
#define DDBMUTEX_TESTS_SUPPORT_AGENT_HPP

#include <sys/types.h>

#include <string>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace tests {

// What an agent answers to a command that failed so.
std::string refused(ddbmutex::Errc code);

// What an agent and its forked children have in common.
class Teller {
 public:
  virtual ~Teller();
  virtual Channel& channel() = 0;

  std::string ask(const std::string& command);
  void make(const std::string& id, const std::string& name,
            const std::string& options = {});
};

class Agent : public Teller {
 public:
  explicit Agent(const Whereabouts& where);
  // With no other variables than these.
  Agent(const std::string& table, std::vector<std::string> environment);
  // What it complained of is a failure: a sanitizer's report is such a thing.
  ~Agent() override;

  Channel& channel() override { return process_.channel(); }
  Process& process() { return process_; }

  // Lets it delete what it has and return from main().
  int end();

 private:
  Process process_;
};

// A child that its parent, an agent too, has forked.
class ForkedAgent : public Teller {
 public:
  ForkedAgent(Teller& parent, const std::string& how);
  ~ForkedAgent() override;

  Channel& channel() override { return channel_; }
  pid_t pid() const { return pid_; }

  // As of Agent; "0" if all was well.
  std::string end();
  // By one of the commands that end it.
  std::string end_by(const std::string& command);

 private:
  pid_t fork_it(const std::string& how);
  std::string reap();

  Teller& parent_;
  Reception reception_;
  const pid_t pid_;
  bool ended_ = false;
  Channel channel_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_AGENT_HPP
