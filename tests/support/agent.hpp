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

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/process.hpp"
#include "tests/support/whereabouts.hpp"

namespace tests {

// What an agent answers to a command that failed so.
inline std::string refused(ddbmutex::Errc code) {
  return "error " + make_error_code(code).message();
}

// What an agent and its forked children have in common.
class Teller {
 public:
  virtual ~Teller() = default;
  virtual Channel& channel() = 0;

  std::string ask(const std::string& command) {
    channel().say(command);
    return channel().line();
  }
  void make(const std::string& id, const std::string& name,
            const std::string& options = {}) {
    BOOST_REQUIRE_EQUAL(ask("new " + id + " " + name + " " + options), "done");
  }
};

class Agent : public Teller {
 public:
  explicit Agent(const Whereabouts& where)
      : process_({{program_path("processes/agent"), where.table},
                  environment_of(where)}) {}
  // With no other variables than these.
  Agent(const std::string& table, std::vector<std::string> environment)
      : process_({{program_path("processes/agent"), table},
                  std::move(environment)}) {}
  // What it complained of is a failure: a sanitizer's report is such a thing.
  ~Agent() override { BOOST_TEST(process_.complaints() == ""); }

  Channel& channel() override { return process_.channel(); }
  Process& process() { return process_; }

  // Lets it delete what it has and return from main().
  int end() {
    channel().hang_up();
    return process_.wait();
  }

 private:
  Process process_;
};

// A child that its parent, an agent too, has forked.
class ForkedAgent : public Teller {
 public:
  explicit ForkedAgent(Teller& parent, const std::string& how)
      : parent_(parent), pid_(fork_it(how)), channel_(reception_.accept()) {
    BOOST_REQUIRE_EQUAL(channel_.line(), "here");
  }
  ~ForkedAgent() override {
    if (!ended_) ::kill(pid_, SIGKILL);
  }

  Channel& channel() override { return channel_; }
  pid_t pid() const { return pid_; }

  // As of Agent; "0" if all was well.
  std::string end() {
    channel_.hang_up();
    return reap();
  }
  // By one of the commands that end it.
  std::string end_by(const std::string& command) {
    channel_.say(command);
    return reap();
  }

 private:
  pid_t fork_it(const std::string& how) {
    return std::stoi(parent_.ask(how + " " + reception_.path()));
  }
  std::string reap() {
    ended_ = true;
    return parent_.ask("reap " + std::to_string(pid_));
  }

  Teller& parent_;
  Reception reception_;
  const pid_t pid_;
  bool ended_ = false;
  Channel channel_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_AGENT_HPP
