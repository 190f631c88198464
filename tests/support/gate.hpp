// A server before an engine: what comes goes on to the engine and its answer
// back, but for what a test wants otherwise.
//
//   Gate gate(EngineKind::dynoxide);
//   gate.always("UpdateItem", Gate::fails());  // No renewal gets through.
#ifndef DDBMUTEX_TESTS_SUPPORT_GATE_HPP
#define DDBMUTEX_TESTS_SUPPORT_GATE_HPP

#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

#include "tests/support/engine.hpp"
#include "tests/support/scripted_server.hpp"

namespace tests {

// "PutItem"
std::string action_of(const SeenRequest& request);

// "PutItem DeleteItem": what reached the server, in order.
std::string actions(const ScriptedServer& server);
int count_of(const ScriptedServer& server, const std::string& action);

// Any thread may call any member.
class Gate {
 public:
  using Rule = std::function<Reply(Engine&, const SeenRequest&)>;

  explicit Gate(EngineKind kind = any_engine_kind());
  ~Gate();

  // The next request of that action that no earlier rule waits for.
  void once(const std::string& action, Rule rule);
  // All of that action from now on.
  void always(const std::string& action, Rule rule);
  // No rules any more.
  void open();

  static Rule fails();
  // Not applied, nor answered, until the server's release().
  static Rule held();
  // Fails, without being applied, at the server's release().
  static Rule fails_late();
  // Applied at once, but the answer waits for the server's release().
  static Rule answered_late();
  static Rule answer_lost();

  // Tests that have a gate may well do more than look.
  ScriptedServer& server() const { return server_; }
  Engine& engine() const { return engine_; }

 private:
  Reply reply(const SeenRequest& request);
  Rule rule_for(const std::string& action);

  Engine& engine_;
  std::mutex mutex_;
  std::map<std::string, std::deque<Rule>> once_;  // GUARDED_BY(mutex_)
  std::map<std::string, Rule> always_;            // GUARDED_BY(mutex_)
  mutable ScriptedServer server_;                 // Last: its threads use all.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_GATE_HPP
