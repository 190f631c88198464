// The library's system (sigv4/system.hpp), as it is in the world.
#include "sigv4/system.hpp"

#include <cstring>
#include <unordered_map>
#include <utility>

#include "sigv4/boot_clock.hpp"
#include "tests/world/memory.hpp"
#include "tests/world/world.hpp"

namespace {

using world::Address;
using world::Inside;
using world::Outside;
using world::Process;
using world::World;

World& the_world() { return World::the(); }

// Null before the first process starts: then only static objects ask.
const Process* here() { return world::process_of_this_thread(); }

// Mutexes that are locked.
std::unordered_map<Address, Process*>& locked() {
  static auto* const all = new std::unordered_map<Address, Process*>;
  return *all;
}

void unlock(Address mutex) {
  const Outside outside;
  locked().erase(mutex);
  the_world().notify(mutex);
}

}  // namespace

namespace ddbmutex {
inline namespace v0 {

BootTime BootClock::now() noexcept {
  const Process* const process = here();
  if (process == nullptr) return BootTime(std::chrono::hours(1));
  if (world::is_inside()) {
    the_world().step();
    the_world().tick();
  }
  return process->host->boot(the_world().now());
}

namespace sigv4 {

std::chrono::system_clock::time_point wall_clock() noexcept {
  std::chrono::nanoseconds wall = world::kEpoch;
  if (const Process* const process = here()) {
    wall += the_world().now() + process->host->wall_offset;
  }
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(wall));
}

void fill_with_randomness(void* begin, std::size_t size) noexcept {
  Process* const process = world::process_of_this_thread();
  auto* to = static_cast<unsigned char*>(begin);
  for (std::size_t i = 0; i < size; ++i) {
    to[i] = process == nullptr
                ? 7
                : static_cast<unsigned char>(process->randomness.next());
  }
}

std::uint64_t this_process() noexcept {
  const Process* const process = here();
  return process != nullptr ? static_cast<std::uint64_t>(process->number)
                            : UINT64_MAX;
}

void Mutex::lock() noexcept {
  if (here() == nullptr) return;
  the_world().step();
  const Outside outside;
  while (!locked().emplace(this, &the_world().process()).second) {
    the_world().wait({this}, BootTime::max());
  }
}

void Mutex::unlock() noexcept {
  if (here() == nullptr) return;
  ::unlock(this);
  the_world().step();
}

void Condition::wait(std::unique_lock<Mutex>& guard) {
  ::unlock(guard.mutex());
  the_world().wait({this}, BootTime::max());
  guard.mutex()->lock();
}

// One step, however long: the library's own looks at the clock every second.
void Condition::wait_until(std::unique_lock<Mutex>& guard, BootTime deadline) {
  ::unlock(guard.mutex());
  the_world().wait({this}, deadline);
  guard.mutex()->lock();
}

void Condition::notify_all() noexcept { the_world().notify(this); }

bool start_thread(pthread_t& thread, const char* name,
                  std::function<void()> run) {
  if (world::is_inside() && world::runs_out_of_memory()) return false;
  const Outside outside;
  thread =
      the_world().start_thread(name, true, [run = std::move(run)]() mutable {
        run();
        run = nullptr;  // Inside: the last owner may send and wait.
      });
  return true;
}

void join_thread(pthread_t thread) noexcept { the_world().join(thread); }

void detach_thread(pthread_t thread) noexcept { pthread_detach(thread); }

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
