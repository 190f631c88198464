// A server before an engine: what comes goes on to the engine and its answer
// back, but for what a test wants otherwise.
//
//   Gate gate(EngineKind::dynoxide);
//   gate.always("UpdateItem", Gate::fails());  // No renewal gets through.
#ifndef DDBMUTEX_TESTS_SUPPORT_GATE_HPP
#define DDBMUTEX_TESTS_SUPPORT_GATE_HPP

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "tests/support/engine.hpp"
#include "tests/support/scripted_server.hpp"

namespace tests {

// "PutItem"
inline std::string action_of(const SeenRequest& request) {
  const std::string target = request.header("X-Amz-Target").value_or("");
  return target.substr(target.find('.') + 1);
}

// "PutItem DeleteItem": what reached the server, in order.
inline std::string actions(const ScriptedServer& server) {
  std::string text;
  for (const SeenRequest& request : server.requests()) {
    text += (text.empty() ? "" : " ") + action_of(request);
  }
  return text;
}

inline int count_of(const ScriptedServer& server, const std::string& action) {
  const auto all = server.requests();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const SeenRequest& request) {
        return action_of(request) == action;
      }));
}

// Any thread may call any member.
class Gate {
 public:
  using Rule = std::function<Reply(Engine&, const SeenRequest&)>;

  explicit Gate(EngineKind kind = any_engine_kind())
      : engine_(Engine::running(kind)),
        server_([this](const SeenRequest& request) { return reply(request); }) {
  }

  // The next request of that action that no earlier rule waits for.
  void once(const std::string& action, Rule rule) {
    const std::lock_guard<std::mutex> guard(mutex_);
    once_[action].push_back(std::move(rule));
  }
  // All of that action from now on.
  void always(const std::string& action, Rule rule) {
    const std::lock_guard<std::mutex> guard(mutex_);
    always_[action] = std::move(rule);
  }
  // No rules any more.
  void open() {
    const std::lock_guard<std::mutex> guard(mutex_);
    once_.clear();
    always_.clear();
  }

  static Rule fails() {
    return [](Engine&, const SeenRequest&) {
      return Reply::error(500, R"({"__type":"InternalServerError"})");
    };
  }
  // Not applied, nor answered, until the server's release().
  static Rule held() {
    return [](Engine& engine, const SeenRequest&) {
      Reply late;
      late.hangs = true;
      late.then = [&engine](const SeenRequest& request) {
        return engine.forward(request);
      };
      return late;
    };
  }
  // Fails, without being applied, at the server's release().
  static Rule fails_late() {
    return [](Engine&, const SeenRequest&) {
      Reply late = Reply::error(500, R"({"__type":"InternalServerError"})");
      late.hangs = true;
      return late;
    };
  }
  // Applied at once, but the answer waits for the server's release().
  static Rule answered_late() {
    return [](Engine& engine, const SeenRequest& request) {
      Reply late = engine.forward(request);
      late.hangs = true;
      return late;
    };
  }
  static Rule answer_lost() {
    return [](Engine& engine, const SeenRequest& request) {
      engine.forward(request);
      return Reply::gone(Ending::reset);
    };
  }

  // Tests that have a gate may well do more than look.
  ScriptedServer& server() const { return server_; }
  Engine& engine() const { return engine_; }

 private:
  Reply reply(const SeenRequest& request) {
    if (const Rule rule = rule_for(action_of(request))) {
      return rule(engine_, request);
    }
    return engine_.forward(request);
  }

  Rule rule_for(const std::string& action) {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::deque<Rule>& next = once_[action];
    if (!next.empty()) {
      Rule rule = std::move(next.front());
      next.pop_front();
      return rule;
    }
    const auto found = always_.find(action);
    return found != always_.end() ? found->second : nullptr;
  }

  Engine& engine_;
  std::mutex mutex_;
  std::map<std::string, std::deque<Rule>> once_;  // GUARDED_BY(mutex_)
  std::map<std::string, Rule> always_;            // GUARDED_BY(mutex_)
  mutable ScriptedServer server_;                 // Last: its threads use all.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_GATE_HPP
