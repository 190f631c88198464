#include "examples/demo/scenes.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "examples/demo/claims.hpp"
#include "examples/demo/stage.hpp"
#include "examples/demo/text.hpp"
#include "examples/demo/worker.hpp"

namespace demo {
namespace {

using std::chrono::milliseconds;

constexpr char kProcesses[] = "ABCDE";
constexpr int kUpdates = 6;

// For a person to see what is before something happens.
constexpr milliseconds kMoment{400};

// A machine that stands still for so long may cost a holder its lease.
constexpr milliseconds kStall{200};
// How often a scene is played.
constexpr int kRounds = 5;

// What a scene came to.
struct Outcome {
  Claims claims;
  Time stalled;  // As the stage tells it.
};

class Scenes {
 public:
  Scenes(Place& place, Screen& screen, const Folder& folder)
      : place_(place), screen_(screen), file_(folder.path("number")) {}

  Outcome without_lock();
  Outcome with_lock();
  Outcome killed();
  Outcome stopped();

  // Plays a scene again if it did not come out right and the machine stood
  // still meanwhile: then it says nothing about the lock.
  bool show(Outcome (Scenes::*scene)());

 private:
  Part part(char name) const;
  Count count_up(Stage& stage, bool with_lock);
  Actor& add_one(Stage& stage, char name);
  void queue_up(Stage& stage, Actor& actor);
  void wait_until_in(Stage& stage, const Actor& actor);
  void wake_sleeper(Stage& stage, Actor& sleeper, Stopped& seen);

  Place& place_;
  Screen& screen_;
  const std::string file_;
};

Part Scenes::part(char name) const {
  Part part;
  part.name = name;
  part.file = file_;
  part.table = place_.table();
  part.endpoint = place_.endpoint();
  return part;
}

std::optional<Hold> first_hold(const Actor& actor) {
  if (actor.holds().empty()) return std::nullopt;
  return actor.holds().front();
}

// --- Scenes 1 and 2: many at once ------------------------------------------

Count Scenes::count_up(Stage& stage, bool with_lock) {
  begin_file(file_);
  std::vector<Actor*> actors;
  for (const char name : std::string(kProcesses)) {
    Part part = this->part(name);
    part.updates = kUpdates;
    if (!with_lock) part.table.clear();
    actors.push_back(&stage.add(part));
  }
  stage.begin();
  for (Actor* actor : actors) actor->tell();
  stage.run_until("all updates", [&] {
    return std::all_of(actors.begin(), actors.end(),
                       [](Actor* actor) { return actor->left(); });
  });
  stage.finish();
  return {kUpdates * static_cast<int>(actors.size()), read_number(file_)};
}

Outcome Scenes::without_lock() {
  screen_.say("1. Five processes add 1 to the number in a file, six times");
  screen_.say("   each, without a lock.  # is from reading it to writing it.");
  Stage stage(screen_, milliseconds(20));
  const Count count = count_up(stage, false);
  return {claims_without_lock(count), stage.stalled()};
}

Outcome Scenes::with_lock() {
  screen_.say("2. The same processes with one DdbMutex.  # holds the lock,");
  screen_.say("   . waits for it.");
  Stage stage(screen_, milliseconds(50));
  const Count count = count_up(stage, true);
  std::vector<Hold> holds;
  for (const Actor& actor : stage.actors()) {
    holds.insert(holds.end(), actor.holds().begin(), actor.holds().end());
  }
  return {claims_with_lock(count, holds), stage.stalled()};
}

// --- Scenes 3 and 4: one after the other -----------------------------------

Actor& Scenes::add_one(Stage& stage, char name) {
  Part part = this->part(name);
  part.until_told = true;
  return stage.add(part);
}

void Scenes::queue_up(Stage& stage, Actor& actor) {
  actor.tell();
  stage.run_until(text("%c asks for the lock", actor.name()),
                  [&] { return actor.waits() || !actor.holds().empty(); });
}

void Scenes::wait_until_in(Stage& stage, const Actor& actor) {
  stage.run_until(text("%c gets the lock", actor.name()),
                  [&] { return !actor.holds().empty(); });
  stage.note(text("%c has the lock", actor.name()));
}

// A holder is killed.
Outcome Scenes::killed() {
  screen_.say(
      "3. The holder is killed.  = is what is left of its lease, which");
  screen_.say(text("   is of %s and renewed in time while the holder lives.",
                   in_words(kLease).c_str()));
  Killed seen = {};
  seen.lease = kLease;
  seen.before = read_number(file_);
  Stage stage(screen_, milliseconds(100));
  Actor& a = add_one(stage, 'A');
  Actor& b = add_one(stage, 'B');
  stage.begin();
  a.tell();
  wait_until_in(stage, a);
  queue_up(stage, b);
  stage.run_until("A's lease is renewed",
                  [&] { return a.renewals() > 0 || !a.losses().empty(); });
  if (a.renewals() > 0) stage.note("A's lease was renewed");
  seen.renewals = a.renewals();
  stage.run_for(kMoment);
  seen.killed = now();
  a.kill();
  stage.note(text("A, process %d, is killed (SIGKILL)", a.pid()));
  wait_until_in(stage, b);
  stage.run_for(kMoment);
  b.tell();
  stage.run_until("B's update", [&] { return b.left(); });
  stage.finish();
  seen.dead = first_hold(a);
  seen.next = first_hold(b);
  seen.after = read_number(file_);
  return {claims_of_killed(seen), stage.stalled()};
}

// A holder is stopped.
Outcome Scenes::stopped() {
  screen_.say("4. The holder is stopped (-) until its lease is over and");
  screen_.say("   another has the lock; then it is woken.");
  Stopped seen = {};
  seen.before = read_number(file_);
  Stage stage(screen_, milliseconds(120));
  Actor& a = add_one(stage, 'A');
  Actor& b = add_one(stage, 'B');
  stage.begin();
  a.tell();
  wait_until_in(stage, a);
  queue_up(stage, b);
  stage.run_for(kMoment);
  a.stop();
  seen.stopped = now();
  stage.note(text("A, process %d, is stopped (SIGSTOP)", a.pid()));
  wait_until_in(stage, b);
  stage.run_for(kMoment);
  wake_sleeper(stage, a, seen);
  b.tell();
  stage.run_until("the last updates", [&] { return a.left() && b.left(); });
  stage.finish();
  seen.sleeper = first_hold(a);
  seen.next = first_hold(b);
  seen.owned_on_waking = a.owned_on_waking();
  seen.losses = a.losses();
  seen.next_kept_it = b.freed_its_own() && b.losses().empty();
  seen.after = read_number(file_);
  return {claims_of_stopped(seen), stage.stalled()};
}

void Scenes::wake_sleeper(Stage& stage, Actor& sleeper, Stopped& seen) {
  const ddbmutex::LockInfo row = place_.inspect_lock();
  stage.note("the row in DynamoDB names " + row.owner);
  seen.uuid_before_unlock = row.uuid;
  seen.woken = now();
  stage.note("A is woken (SIGCONT)");
  sleeper.wake();
  stage.run_until("A looks around", [&] {
    return sleeper.unlocks() > 0 &&
           (!sleeper.losses().empty() || sleeper.left());
  });
  seen.uuid_after_unlock = place_.inspect_lock().uuid;
  stage.note("A has unlocked, and waits for the lock again");
}

bool Scenes::show(Outcome (Scenes::*scene)()) {
  for (int round = 1;; ++round) {
    const Outcome outcome = (this->*scene)();
    const bool right =
        std::all_of(outcome.claims.begin(), outcome.claims.end(),
                    [](const Claim& claim) { return claim.right; });
    if (right || outcome.stalled < kStall || round == kRounds) {
      return screen_.judge(outcome.claims);
    }
    screen_.say(text("This machine stood still for %s meanwhile: once more.",
                     in_words(outcome.stalled).c_str()));
    screen_.say("");
  }
}

}  // namespace

bool show_scenes(Place& place, Screen& screen, const Folder& folder) {
  Scenes scenes(place, screen, folder);
  bool right = scenes.show(&Scenes::without_lock);
  right = scenes.show(&Scenes::with_lock) && right;
  right = scenes.show(&Scenes::killed) && right;
  return scenes.show(&Scenes::stopped) && right;
}

}  // namespace demo
