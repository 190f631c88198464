#include "tests/world/world.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/world/memory.hpp"

namespace world {

using std::chrono::microseconds;
using std::chrono::milliseconds;

struct Thread {
  Thread(World& its_world, Process& its_process, std::string its_name,
         bool is_library, std::function<void()> what)
      : world(its_world),
        process(&its_process),
        name(std::move(its_name)),
        library(is_library),
        main(std::move(what)) {
    sem_init(&resume, 0, 0);
  }
  Thread(const Thread&) = delete;
  Thread& operator=(const Thread&) = delete;

  World& world;
  Process* process;
  const std::string name;
  const bool library;
  std::function<void()> main;
  pthread_t id{};
  sem_t resume;
  bool ended = false;
  bool planned = false;
  World::Queue::iterator place{};  // If planned.
  // What it waits for, and by which clock.
  std::vector<Address> addresses{};
  bool monotonic = false;
};

namespace {

// How long it takes at the most until a thread goes on that could.
constexpr nanoseconds kLongestWakeUp = microseconds(50);
// The same after its machine has slept.
constexpr nanoseconds kLongestThaw = milliseconds(1);
constexpr std::int64_t kBillion = 1'000'000'000;
// Many times the steps of a life in which nothing goes wrong.
constexpr std::uint64_t kMostSteps = 60'000'000;

World* the_world = nullptr;

nanoseconds product(nanoseconds time, std::int64_t by, std::int64_t divisor) {
  __extension__ using Wide = __int128;
  return nanoseconds(
      static_cast<std::int64_t>(Wide{time.count()} * by / divisor));
}

Time sum(Time time, nanoseconds more) {
  return more >= kNever - time ? kNever : time + more;
}

}  // namespace

// -- Clocks -------------------------------------------------------------------

BootTime Host::boot(Time now) const {
  if (now <= since_) return since_boot_;
  const nanoseconds passed = now - since_;
  return since_boot_ + passed + product(passed, ahead_per_second, kBillion);
}

Time Host::when(BootTime boot_time) const {
  if (boot_time == BootTime::max()) return kNever;
  if (boot_time <= since_boot_) return since_;
  const nanoseconds by_clock = boot_time - since_boot_;
  if (by_clock > kNever / 2) return kNever;
  return since_ + nanoseconds(1) +
         product(by_clock, kBillion, kBillion + ahead_per_second);
}

// -- The world ----------------------------------------------------------------

World::World(std::uint64_t seed, const Climate& climate)
    : seed_(seed), climate_(climate), schedule_(seed, 'w') {
  the_world = this;
  sem_init(&over_, 0, 0);
}

World::~World() = default;

World& World::the() { return *the_world; }

Host& World::add_host(double rate, nanoseconds wall_offset,
                      nanoseconds latency) {
  Host& host = hosts_.emplace_back();
  host.number = static_cast<int>(hosts_.size());
  host.ahead_per_second = std::llround((rate - 1) * 1e9);
  host.wall_offset = wall_offset;
  host.latency = latency;
  Random random(seed_, 'h', hosts_.size());
  host.since_boot_ = BootTime(
      random.between(std::chrono::minutes(1), std::chrono::hours(2400)));
  return host;
}

Process& World::start_process(Host& host, std::string name,
                              std::function<void()> main) {
  const Outside outside;
  Process& process = processes_.emplace_back();
  process.number = static_cast<int>(processes_.size());
  process.host = &host;
  process.name = std::move(name);
  process.randomness = Random(seed_, 'r', processes_.size());
  process.memory = Random(seed_, 'm', processes_.size());
  make_thread(process, "main", false, std::move(main));
  return process;
}

void World::become_forked_child() {
  const Outside outside;
  Process& parent = process();
  Process& child = processes_.emplace_back();
  child.number = static_cast<int>(processes_.size());
  child.host = parent.host;
  child.name = parent.name + "'s child";
  child.randomness = Random(seed_, 'r', processes_.size());
  child.memory = Random(seed_, 'm', processes_.size());
  child.failure_every = parent.failure_every;
  current_->process = &child;
  if (tells()) tell("forked from " + parent.name + ", which is gone");
  kill(parent);
}

void World::kill(Process& process) {
  process.alive = false;
  for (Thread& thread : threads_) {
    if (thread.process != &process || thread.ended) continue;
    stop_waiting(thread);
    unplan(thread);
    thread.ended = true;
    if (!thread.library) --programs_;
  }
  process.library_threads = 0;
}

void World::stop(Process& process, nanoseconds time) {
  process.stopped_until = std::max(process.stopped_until, sum(now_, time));
}

// False if it is frozen already.
bool World::freeze(Host& host, nanoseconds time) {
  if (host.frozen_until > now_) return false;
  host.frozen_until = now_ + time;
  host.frozen += time;
  return true;
}

void World::suspend(Host& host, nanoseconds time) {
  if (!freeze(host, time)) return;
  for (Thread& thread : threads_) {
    if (thread.process->host != &host || !thread.planned) continue;
    if (thread.monotonic) plan(thread, sum(thread.place->first.first, time));
  }
}

void World::pause(Host& host, nanoseconds time) {
  if (!freeze(host, time)) return;
  host.paused += time;
  host.paused_until = now_ + time;
  host.since_boot_ = host.boot(now_);
  host.since_ = now_ + time;
}

void World::at(Time when, std::function<void()> what) {
  const Outside outside;
  queue_.insert({{std::max(when, now_), schedule_.next()},
                 Event{nullptr, std::move(what)}});
}

bool World::takes_too_long() const { return steps_ > kMostSteps; }

bool World::is_over() const {
  return finished_ || takes_too_long() || programs_ == 0 || queue_.empty() ||
         queue_.begin()->first.first > end_;
}

std::vector<std::string> World::run(Time end) {
  end_ = end;
  finished_ = false;
  dispatch(nullptr);
  sem_wait(&over_);
  std::vector<std::string> still_there;
  for (const Thread& thread : threads_) {
    if (thread.library || thread.ended) continue;
    still_there.push_back(thread.process->name + ", " + thread.name);
  }
  return still_there;
}

// -- Threads ------------------------------------------------------------------

Process& World::process() { return *current_->process; }

Thread& World::make_thread(Process& process, std::string name, bool library,
                           std::function<void()> main) {
  Thread& thread = threads_.emplace_back(*this, process, std::move(name),
                                         library, std::move(main));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, std::size_t{1} << 20);
  if (pthread_create(&thread.id, &attributes, &run_thread, &thread) != 0) {
    std::perror("world: pthread_create");
    std::abort();
  }
  pthread_attr_destroy(&attributes);
  if (library) {
    ++process.library_threads;
  } else {
    ++programs_;
  }
  plan(thread, now_ + schedule_.between(nanoseconds(0), kLongestWakeUp));
  return thread;
}

void* World::run_thread(void* argument) {
  Thread& own = *static_cast<Thread*>(argument);
  while (sem_wait(&own.resume) != 0) {
  }
  set_this_thread({&own.process, own.library});
  own.main();
  own.main = nullptr;
  set_this_thread({});
  own.world.end(own);
  return nullptr;
}

void World::end(Thread& thread) {
  thread.ended = true;
  if (thread.library) {
    --thread.process->library_threads;
  } else {
    --programs_;
  }
  notify(&thread);
  dispatch(nullptr);
}

pthread_t World::start_thread(std::string name, bool library,
                              std::function<void()> main) {
  const Outside outside;
  return make_thread(process(), std::move(name), library, std::move(main)).id;
}

void World::join(pthread_t id) {
  const Outside outside;
  // An ID may have been another thread's before, which was detached.
  Thread& thread =
      *std::find_if(threads_.rbegin(), threads_.rend(),
                    [id](const Thread& one) { return one.id == id; });
  while (!thread.ended) wait({&thread}, BootTime::max());
  pthread_join(id, nullptr);  // Returns at once: the thread has ended.
}

// -- Waiting ------------------------------------------------------------------

void World::plan(Thread& thread, Time when) {
  unplan(thread);
  thread.place = queue_.insert(
      {{std::max(when, now_), schedule_.next()}, Event{&thread, {}}});
  thread.planned = true;
}

void World::unplan(Thread& thread) {
  if (!std::exchange(thread.planned, false)) return;
  queue_.erase(thread.place);
}

void World::stop_waiting(Thread& thread) {
  for (const Address address : thread.addresses) {
    const auto found = waiting_.find(address);
    auto& threads = found->second;
    threads.erase(std::find(threads.begin(), threads.end(), &thread));
    if (threads.empty()) waiting_.erase(found);
  }
  thread.addresses.clear();
  thread.monotonic = false;
}

void World::wait(std::initializer_list<Address> addresses, BootTime deadline,
                 bool monotonic) {
  const Outside outside;
  wait(std::vector<Address>(addresses), deadline, monotonic);
}

void World::wait(const std::vector<Address>& addresses, BootTime deadline,
                 bool monotonic) {
  const Outside outside;
  Thread& own = *current_;
  own.addresses = addresses;
  own.monotonic = monotonic;
  for (const Address address : addresses) waiting_[address].push_back(&own);
  plan(own, host().when(deadline));
  dispatch(&own);
  stop_waiting(own);
}

void World::notify(Address address) {
  const Outside outside;
  const auto found = waiting_.find(address);
  if (found == waiting_.end()) return;
  const std::vector<Thread*> threads = found->second;
  for (Thread* thread : threads) {
    stop_waiting(*thread);
    plan(*thread, now_ + schedule_.between(nanoseconds(0), kLongestWakeUp));
  }
}

void World::sleep(nanoseconds time) {
  const BootTime end = host().boot(now_) + time;
  while (host().boot(now_) < end) wait({}, end);
}

void World::step() {
  if (current_ == nullptr || !schedule_.chance(climate_.stalls)) return;
  const Outside outside;
  // Mostly, other threads just go first.
  nanoseconds time{};
  if (schedule_.below(4) == 0) {
    time = schedule_.between(nanoseconds(0), schedule_.below(16) == 0
                                                 ? climate_.longest_stall
                                                 : kLongestWakeUp);
  }
  hold_back(*current_, now_ + time);
  dispatch(current_);
}

void World::hold_back(Thread& thread, Time until) {
  thread.process->stalled += until - now_;
  thread.monotonic = false;  // Its timer is over.
  plan(thread, until);
}

Time World::held_back_until(const Thread& thread) const {
  return std::max(thread.process->host->frozen_until,
                  thread.process->stopped_until);
}

// Goes on with what is due next.  `self` is the calling thread, which is
// planned: dispatch() returns when it is its turn.  If `self` is null,
// dispatch() returns as soon as another thread was told to go on.
void World::dispatch(Thread* self) {
  current_ = nullptr;
  for (;;) {
    if (is_over()) {
      sem_post(&over_);
      break;
    }
    const auto first = queue_.begin();
    now_ = std::max(now_, first->first.first);
    ++steps_;
    Thread* const thread = first->second.thread;
    if (thread == nullptr) {
      const std::function<void()> what = std::move(first->second.what);
      queue_.erase(first);
      what();
      if (watch_) watch_();
      continue;
    }
    const Time held_back = held_back_until(*thread);
    if (held_back > now_) {
      hold_back(*thread, sum(held_back,
                             schedule_.between(nanoseconds(0), kLongestThaw)));
      continue;
    }
    unplan(*thread);
    if (watch_) watch_();
    current_ = thread;
    if (thread == self) return;
    sem_post(&thread->resume);
    break;
  }
  if (self == nullptr) return;
  while (sem_wait(&self->resume) != 0) {
  }
}

// -- The story ----------------------------------------------------------------

namespace {

std::string seconds_text(std::int64_t nano) {
  char text[48];
  std::snprintf(text, sizeof text, "%lld.%06lld",
                static_cast<long long>(nano / kBillion),
                static_cast<long long>(nano % kBillion / 1000));
  return text;
}

}  // namespace

void World::tell(const std::string& what) {
  if (!tells()) return;
  const Outside outside;
  if (current_ == nullptr) {
    hear_(seconds_text(now_.count()) + " s  " + what);
  } else {
    tell(*current_->process, current_->name + ": " + what);
  }
}

void World::tell(const Process& process, const std::string& what) {
  if (!tells()) return;
  const Outside outside;
  const Host& host = *process.host;
  const std::int64_t wall = (kEpoch + now_ + host.wall_offset).count();
  hear_(seconds_text(now_.count()) + " s  host " + std::to_string(host.number) +
        " (boot " + seconds_text(host.boot(now_).time_since_epoch().count()) +
        ", wall " + seconds_text(wall) + ")  " + process.name + ", " + what);
}

}  // namespace world
