
#include "tests/world/watched.hpp"

#include <chrono>

namespace world {

using std::chrono::milliseconds;

Stopwatch Stopwatch::start(const Process& process) {
  const Time now = World::the().now();
  const Host& host = *process.host;
  return {&process, now, host.boot(now), process.stalled, host.frozen};
}

nanoseconds Stopwatch::kept() const {
  return (process->stalled - stalled) + (process->host->frozen - frozen);
}

nanoseconds Stopwatch::run() const {
  // By a clock that may be 1 % fast.
  return process->host->boot(World::the().now()) - boot - kept() - kept() / 50;
}

bool Stopwatch::was_frozen() const { return process->host->frozen != frozen; }

milliseconds ms(nanoseconds time) {
  return std::chrono::duration_cast<milliseconds>(time);
}

std::string time_text(Time time) {
  const auto count = ms(time).count();
  const std::string rest = std::to_string(1000 + count % 1000).substr(1);
  return std::to_string(count / 1000) + '.' + rest + " s";
}

std::string ms_text(nanoseconds time) {
  return std::to_string(ms(time).count()) + " ms";
}

std::string whose(const WatchedMutex& mutex) {
  return mutex.process->name + " on host " +
         std::to_string(mutex.process->host->number) + " (" + mutex.lock +
         ", ttl " + std::to_string(mutex.ttl.count()) + " ms)";
}

std::string text_of(const Call& call) {
  std::string text = call.what;
  if (call.mutex != nullptr) text += " of " + call.mutex->lock;
  return text + " in " + call.since.process->name;
}

}  // namespace world
