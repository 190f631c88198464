// A simulated world for the shipped library: true time, hosts with clocks of
// their own, processes, and real threads of which one runs at a time.
//
// The library is linked with this world's definitions of sigv4/system.hpp,
// sigv4/waiting.hpp and sigv4/http.hpp (system.cpp and http.cpp here). Whenever
// a thread waits, locks, reads a clock or gets an answer, the world may let
// another one run.  Time passes only while all threads wait.  So a day of
// idleness takes no time, and everything that happens follows from the seed.
//
// There is one World in a (real) process, and it lives once: threads of
// simulated processes that were killed stay where they are until the real
// process ends.
#ifndef DDBMUTEX_TESTS_WORLD_WORLD_HPP
#define DDBMUTEX_TESTS_WORLD_WORLD_HPP

#include <pthread.h>
#include <semaphore.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/world/random.hpp"

namespace world {

using ddbmutex::BootTime;
using std::chrono::nanoseconds;

// True time since the world began.  Only the judge knows it.
using Time = nanoseconds;
constexpr Time kNever = Time::max();

// The time of day when the world begins, by the service's clock.
constexpr std::chrono::seconds kEpoch{1'800'000'000};

struct Thread;

struct Host {
  int number = 0;
  // How many nanoseconds the boot clock gains in a second of true time.
  std::int64_t ahead_per_second = 0;
  nanoseconds wall_offset{};  // How far its calendar is ahead of the service.
  nanoseconds latency{};      // What a request or an answer usually takes.

  BootTime boot(Time now) const;
  // When the boot clock will show `boot_time`, unless the host is paused.
  Time when(BootTime boot_time) const;

  // No thread runs until then.
  Time frozen_until{};
  // How long all its threads have been kept from running so far.
  nanoseconds frozen{};
  nanoseconds paused{};  // Of that, while the boot clock stood still.
  Time paused_until{};   // When the last such pause ends.
  // No message leaves or arrives until then.
  Time cut_off_until{};
  // No name resolves until then; no connection can be made until then.
  Time no_names_until{}, no_connections_until{};

 private:
  friend class World;
  // The boot clock shows `since_boot_` until `since_`, and then goes on.
  Time since_{};
  BootTime since_boot_{};
};

struct Process {
  int number = 0;  // From 1 on; a forked child has another.
  Host* host = nullptr;
  std::string name;
  bool alive = true;
  Time stopped_until{};  // As by SIGSTOP.
  // How long threads of it have been kept from running when they could have
  // run, added up: stops, freezes, and stalls between two instructions.
  nanoseconds stalled{};
  std::size_t library_threads = 0;  // Started by the library, still running.
  std::uint64_t requests = 0;       // That the library has sent.
  // When the latest of the answered requests was sent, and when the last answer
  // came.
  Time answered_sent{}, answered{};
  // Memory that the library has and its program does not.
  std::int64_t bytes = 0;
  // One in so many allocations of the library fails, on average; 0: none does.
  std::uint64_t failure_every = 0;
  Random memory{0};  // Draws which allocations fail.
  // Draws what the library gets as the system's randomness.
  Random randomness{0};
};

// An address that a thread can wait for: a mutex, a waker, an exchange.
using Address = const void*;

// How adverse the world is.
struct Climate {
  // How likely a thread is to stop between two instructions, and for how long
  // at the most.
  double stalls = 0;
  nanoseconds longest_stall{};
};

class World {
 public:
  World(std::uint64_t seed, const Climate& climate);
  ~World();
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  // The only one.
  static World& the();

  Time now() const { return now_; }

  Host& add_host(double rate, nanoseconds wall_offset, nanoseconds latency);
  std::deque<Host>& hosts() { return hosts_; }
  std::deque<Process>& processes() { return processes_; }

  // Starts a process whose main thread runs `main`.  If that returns, the
  // process goes on until its other threads have ended.
  Process& start_process(Host& host, std::string name,
                         std::function<void()> main);
  // As fork(2) followed by the parent's end: the calling thread is the only one
  // of the child, which has the parent's memory.  The parent is gone as if
  // killed.
  void become_forked_child();
  void kill(Process& process);
  void stop(Process& process, nanoseconds time);
  // The machine sleeps: its boot clock goes on, its threads do not.
  void suspend(Host& host, nanoseconds time);
  // The machine stands still, boot clock included, and does not know.
  void pause(Host& host, nanoseconds time);

  // An event of the world itself, which must not wait.
  void at(Time when, std::function<void()> what);

  // Called whenever another thread goes on, or time has passed.
  void on_step(std::function<void()> watch) { watch_ = std::move(watch); }

  // Lets the world go on until no thread of a program (see start_thread) is
  // left, or until true time `end`.  Returns the names of the programs' threads
  // that still wait then.
  std::vector<std::string> run(Time end);
  // run() was ended because too much happened.
  bool takes_too_long() const;
  // Threads stall no more.
  void calm_down() { climate_ = {}; }
  // Ends run() when the next event is due.
  void finish() { finished_ = true; }

  // --- For the thread that runs ---

  Process& process();
  Host& host() { return *process().host; }

  // A thread of this process.  `library`: run() does not wait for it.
  // `main` is destroyed on that thread.
  pthread_t start_thread(std::string name, bool library,
                         std::function<void()> main);
  void join(pthread_t thread);

  // Waits until one of the addresses is notified, or until the boot clock shows
  // `deadline`.  `monotonic`: the time of a suspend does not count.  May return
  // early.
  void wait(std::initializer_list<Address> addresses, BootTime deadline,
            bool monotonic = false);
  void wait(const std::vector<Address>& addresses, BootTime deadline,
            bool monotonic = false);
  // Lets threads of any process that wait for the address go on.
  void notify(Address address);
  // At least so long by the boot clock.
  void sleep(nanoseconds time);
  // Another thread may run now, and time may pass.
  void step();
  // A little time passes, so that a thread that reads the clock in a loop comes
  // to an end.
  void tick() { now_ += nanoseconds(200); }

  // --- The story ---

  // Whether anybody wants to hear it.
  bool tells() const { return static_cast<bool>(hear_); }
  void tell_story_to(std::function<void(const std::string& line)> hear) {
    hear_ = std::move(hear);
  }
  // One line, with the time and the clocks of the host whose thread runs.
  void tell(const std::string& what);
  void tell(const Process& process, const std::string& what);

 private:
  struct Event;
  using Queue = std::multimap<std::pair<Time, std::uint64_t>, Event>;
  struct Event {
    Thread* thread = nullptr;
    std::function<void()> what{};
  };
  friend struct Thread;

  Thread& make_thread(Process& process, std::string name, bool library,
                      std::function<void()> main);
  void end(Thread& thread);
  void hold_back(Thread& thread, Time until);
  bool is_over() const;
  static void* run_thread(void* thread);
  void plan(Thread& thread, Time when);
  void unplan(Thread& thread);
  void dispatch(Thread* self);
  Time held_back_until(const Thread& thread) const;
  bool freeze(Host& host, nanoseconds time);
  void stop_waiting(Thread& thread);

  const std::uint64_t seed_;
  Climate climate_;
  Random schedule_;
  Time now_{};
  Time end_ = kNever;
  std::uint64_t steps_ = 0;
  Queue queue_;
  std::deque<Host> hosts_;
  std::deque<Process> processes_;
  std::list<Thread> threads_;
  std::unordered_map<Address, std::vector<Thread*>> waiting_;
  Thread* current_ = nullptr;
  std::function<void()> watch_;
  std::size_t programs_ = 0;  // Threads of programs that still run.
  bool finished_ = false;
  std::function<void(const std::string& line)> hear_;
  sem_t over_;
};

// Which code a thread runs: the library's, or a program's or the world's.
// Allocations of the library are counted and may fail, and another thread may
// go on whenever the library locks a mutex or reads a clock.  The library's
// threads begin inside, those of programs outside.
class Side {
 public:
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

 protected:
  explicit Side(bool inside);
  ~Side();

 private:
  const bool before_;
};

// Around each call of the library.
struct Inside : Side {
  Inside() : Side(true) {}
};

// Around what the library calls: callbacks, and the world itself.
struct Outside : Side {
  Outside() : Side(false) {}
};

// While it lives, this thread reads the clocks of that process, although it is
// none of its threads: the judge asks the process's mutexes in this way.
// REQUIRES: Outside.  Must not wait.
class As {
 public:
  explicit As(Process& process);
  ~As();
  As(const As&) = delete;
  As& operator=(const As&) = delete;

 private:
  Process* before_;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_WORLD_HPP
