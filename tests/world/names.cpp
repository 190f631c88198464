#include "tests/world/names.hpp"

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/world/network.hpp"
#include "tests/world/plan.hpp"
#include "tests/world/program.hpp"
#include "tests/world/world.hpp"

namespace world {
namespace {

using ddbmutex::DdbMutex;
using std::chrono::minutes;

constexpr minutes kBegins{15};
constexpr minutes kLasts{30};
constexpr minutes kHeld{60};

// Renewals that meet need a connection each.  With the longest lease, a
// connection is idle for minutes.
constexpr minutes kTtls[] = {minutes(1), minutes(1), minutes(1), minutes(9)};

std::string hold(World& world) {
  ddbmutex::Options options;
  {
    const Inside inside;
    options.table = std::make_shared<ddbmutex::Table>(table_options(Plan()));
  }
  std::vector<std::unique_ptr<DdbMutex>> all;
  for (const minutes ttl : kTtls) {
    const Inside inside;
    options.ttl = ttl;
    const std::string name = "lock " + std::to_string(all.size());
    all.push_back(std::make_unique<DdbMutex>(name, options));
    all.back()->lock();
  }
  world.sleep(kHeld);
  const Inside inside;
  std::string wrong;
  for (const auto& mutex : all) {
    const bool lasts = mutex->remaining() > std::chrono::seconds(20);
    if (!mutex->owns_lock() || !lasts) wrong += mutex->name() + " was lost; ";
  }
  all.clear();
  options.table.reset();
  return wrong;
}

std::string live(std::uint64_t seed, const Weather& weather,
                 Time Host::*trouble) {
  // Never destroyed: threads may refer to them.
  auto& world = *new World(seed, {});
  auto& service = *new Service;
  auto& network = *new Network(seed, service, {});
  service.create_table("locks", {"name", ""});
  network.set_weather(weather);
  Host& host = world.add_host(1, {}, std::chrono::milliseconds(5));
  world.at(kBegins, [&] { host.*trouble = kBegins + kLasts; });
  std::string wrong = "it never ended";
  world.start_process(host, "holder", [&] { wrong = hold(world); });
  world.run(kHeld * 2);
  const bool breaks = weather.broken > 0;
  if (breaks && network.faults() == 0) wrong += "no connection broke; ";
  return wrong;
}

}  // namespace

std::string hold_without_names(std::uint64_t seed) {
  Weather weather;
  weather.broken = 0.1;
  return live(seed, weather, &Host::no_names_until);
}

std::string hold_without_connections(std::uint64_t seed) {
  return live(seed, {}, &Host::no_connections_until);
}

}  // namespace world
