#include "tests/support/agent.hpp"

#include <signal.h>

#include <boost/test/unit_test.hpp>
#include <utility>

namespace tests {

std::string refused(ddbmutex::Errc code) {
  return "error " + make_error_code(code).message();
}

Teller::~Teller() = default;

std::string Teller::ask(const std::string& command) {
  channel().say(command);
  return channel().line();
}

void Teller::make(const std::string& id, const std::string& name,
                  const std::string& options) {
  BOOST_REQUIRE_EQUAL(ask("new " + id + " " + name + " " + options), "done");
}

Agent::Agent(const Whereabouts& where)
    : Agent(where.table, environment_of(where)) {}

Agent::Agent(const std::string& table, std::vector<std::string> environment)
    : process_(
          {{program_path("processes/agent"), table}, std::move(environment)}) {}

Agent::~Agent() { BOOST_TEST(process_.complaints() == ""); }

int Agent::end() {
  channel().hang_up();
  return process_.wait();
}

ForkedAgent::ForkedAgent(Teller& parent, const std::string& how)
    : parent_(parent), pid_(fork_it(how)), channel_(reception_.accept()) {
  BOOST_REQUIRE_EQUAL(channel_.line(), "here");
}

ForkedAgent::~ForkedAgent() {
  if (!ended_) ::kill(pid_, SIGKILL);
}

std::string ForkedAgent::end() {
  channel_.hang_up();
  return reap();
}

std::string ForkedAgent::end_by(const std::string& command) {
  channel_.say(command);
  return reap();
}

pid_t ForkedAgent::fork_it(const std::string& how) {
  return std::stoi(parent_.ask(how + " " + reception_.path()));
}

std::string ForkedAgent::reap() {
  ended_ = true;
  return parent_.ask("reap " + std::to_string(pid_));
}

}  // namespace tests
