#include "tests/world/rivals.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "ddbmutex/dynamodb/answer.hpp"
#include "sigv4/http_answer.hpp"
#include "tests/support/rival.hpp"
#include "tests/world/network.hpp"
#include "tests/world/random.hpp"

namespace world {
namespace {

using ddbmutex::BootClock;
using ddbmutex::dynamodb::Action;
using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Fault;
using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::Rival;

// How long their clients wait for an answer.
constexpr seconds kRequestTimeout{5};

Answer ask(Action action, const std::string& body) {
  const BootTime sent_at = BootClock::now();
  std::optional<Network::Answer> heard = Network::the().ask(
      ddbmutex::dynamodb::name_of(action), body, kRequestTimeout);
  if (!heard) {
    Answer none;
    none.action = action;
    none.fault = Fault::timed_out;
    return none;
  }
  ddbmutex::sigv4::HttpAnswer http;
  http.transport = ddbmutex::sigv4::Transport::complete;
  http.sent = true;
  http.status = heard->reply.status;
  http.headers = "Content-Type: application/x-amz-json-1.0\r\n";
  http.body = std::move(heard->reply.body);
  http.sent_at = sent_at;
  http.received_at = BootClock::now();
  return ddbmutex::dynamodb::read_answer(action, std::move(http), {});
}

// One step of its program: one client, and the lock that it wants.
class Step {
 public:
  Step(const Plan& plan, const ProgramPlan& own, int number, Judge& judge)
      : plan_(plan),
        judge_(judge),
        random_(own.seed, static_cast<std::uint64_t>(number)),
        lock_("lock-" + std::to_string(random_.below(
                            static_cast<std::uint64_t>(plan.locks)))),
        rival_(plan.layout, {"locks", key()}, plan.ttl, ask) {}

  void take() {
    sleep(random_.spread(milliseconds(1), plan_.longest_rest));
    if (!acquire()) return;
    hold(random_.spread(milliseconds(1), plan_.longest_hold));
    if (random_.below(8) == 0) return tell("leaves it as it is");
    judge_.rival_released(lock_, World::the().process());
    tell(rival_.release() ? "released" : "not released: ");
  }

 private:
  std::string key() const {
    return (plan_.layout == tests::Layout::ddblock ? "ddblock-" : "") + lock_;
  }
  void sleep(nanoseconds time) { World::the().sleep(time); }
  void tell(const std::string& what) {
    World::the().tell(lock_ + ": " + what + rival_.complaint());
  }

  // Tries for a few leases at the most.
  bool acquire() {
    const BootTime give_up =
        BootClock::now() + random_.spread(milliseconds(10), plan_.ttl * 4);
    do {
      if (claims([this] { return rival_.acquire(); })) return true;
      sleep(pause());
    } while (BootClock::now() < give_up);
    tell("not taken; ");
    return false;
  }
  nanoseconds pause() {
    const nanoseconds longest =
        std::max<nanoseconds>(plan_.ttl / 20, milliseconds(50));
    return random_.between(longest / 2, longest);
  }

  void hold(nanoseconds time) {
    const BootTime end = BootClock::now() + time;
    while (rival_.holds() && BootClock::now() < end) {
      sleep(std::min<nanoseconds>(plan_.ttl / 3, end - BootClock::now()));
      if (BootClock::now() >= end) return;
      if (!claims([this] { return rival_.heartbeat(); })) {
        return tell("no heartbeat; ");
      }
    }
  }
  // A lease counts from before the attempt that has brought it.
  template <class Attempt>
  bool claims(const Attempt& attempt) {
    const BootTime sent = BootClock::now();
    const Time sent_at = World::the().now();
    if (!attempt()) return false;
    if (!rival_.holds()) return true;  // It came too late.
    judge_.rival_acquired(lock_, World::the().process(), sent + plan_.ttl,
                          sent_at);
    tell("held");
    return true;
  }

  const Plan& plan_;
  Judge& judge_;
  Random random_;
  const std::string lock_;
  Rival rival_;
};

}  // namespace

void run_rival(const Plan& plan, const ProgramPlan& own, Judge& judge) {
  for (const int number : own.steps) {
    if (World::the().now() > plan.calm) return;
    Step(plan, own, number, judge).take();
  }
}

}  // namespace world
