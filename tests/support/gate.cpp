#include "tests/support/gate.hpp"

#include <algorithm>
#include <utility>

namespace tests {

std::string action_of(const SeenRequest& request) {
  const std::string target = request.header("X-Amz-Target").value_or("");
  return target.substr(target.find('.') + 1);
}

std::string actions(const ScriptedServer& server) {
  std::string text;
  for (const SeenRequest& request : server.requests()) {
    text += (text.empty() ? "" : " ") + action_of(request);
  }
  return text;
}

int count_of(const ScriptedServer& server, const std::string& action) {
  const auto all = server.requests();
  return static_cast<int>(
      std::count_if(all.begin(), all.end(), [&](const SeenRequest& request) {
        return action_of(request) == action;
      }));
}

Gate::Gate(EngineKind kind)
    : engine_(Engine::running(kind)),
      server_([this](const SeenRequest& request) { return reply(request); }) {}

Gate::~Gate() = default;

void Gate::once(const std::string& action, Rule rule) {
  const std::lock_guard<std::mutex> guard(mutex_);
  once_[action].push_back(std::move(rule));
}

void Gate::always(const std::string& action, Rule rule) {
  const std::lock_guard<std::mutex> guard(mutex_);
  always_[action] = std::move(rule);
}

void Gate::open() {
  const std::lock_guard<std::mutex> guard(mutex_);
  once_.clear();
  always_.clear();
}

Gate::Rule Gate::fails() {
  return [](Engine&, const SeenRequest&) {
    return Reply::error(500, R"({"__type":"InternalServerError"})");
  };
}

Gate::Rule Gate::held() {
  return [](Engine& engine, const SeenRequest&) {
    Reply late;
    late.hangs = true;
    late.then = [&engine](const SeenRequest& request) {
      return engine.forward(request);
    };
    return late;
  };
}

Gate::Rule Gate::fails_late() {
  return [](Engine&, const SeenRequest&) {
    Reply late = Reply::error(500, R"({"__type":"InternalServerError"})");
    late.hangs = true;
    return late;
  };
}

Gate::Rule Gate::answered_late() {
  return [](Engine& engine, const SeenRequest& request) {
    Reply late = engine.forward(request);
    late.hangs = true;
    return late;
  };
}

Gate::Rule Gate::answer_lost() {
  return [](Engine& engine, const SeenRequest& request) {
    engine.forward(request);
    return Reply::gone(Ending::reset);
  };
}

Reply Gate::reply(const SeenRequest& request) {
  if (const Rule rule = rule_for(action_of(request))) {
    return rule(engine_, request);
  }
  return engine_.forward(request);
}

Gate::Rule Gate::rule_for(const std::string& action) {
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

}  // namespace tests
