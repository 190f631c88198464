// Gets any one of the items of a table, works on it, and gives it back as done
// by one round more, until each has been done so often or its stdin is at its
// end:
//
//   any_of_worker TABLE PREFIX ROUNDS TTL_MS HOLD_MS SEED DIRECTORY NUMBER
//
// An item is a row whose attribute `rounds` says how often it was done.  Logs
// to NUMBER and NUMBER.done of the directory (tests/claims/tokens.hpp,
// items.hpp) and counts in its files `count`, `requests` and `passes`.
// Endpoint, region and keys are the environment's.
#include <poll.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <system_error>

#include "ddbmutex.hpp"
#include "ddbmutex/any_of.hpp"
#include "tests/claims/items.hpp"
#include "tests/claims/shared_count.hpp"
#include "tests/claims/tokens.hpp"
#include "tests/claims/witness.hpp"

namespace {

using ddbmutex::Attribute;
using ddbmutex::DdbMutex;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kLookEach{500};

int rounds_of(const ddbmutex::Attributes& attributes) {
  for (const Attribute& one : attributes) {
    if (one.name == "rounds") return std::stoi(one.value);
  }
  return 0;
}

struct Settings {
  std::string table, prefix;
  int rounds;
  milliseconds ttl, hold;
  unsigned seed;
  std::string directory, number;
};

ddbmutex::AnyOfOptions options_of(const Settings& settings) {
  ddbmutex::TableOptions table;
  table.name = settings.table;
  ddbmutex::AnyOfOptions options;
  options.each.table = std::make_shared<ddbmutex::Table>(table);
  options.each.ttl = settings.ttl;
  options.prefix = settings.prefix;
  options.read = {"rounds"};
  options.accept = [rounds = settings.rounds](const ddbmutex::LockInfo& item) {
    return rounds_of(item.attributes) < rounds;
  };
  options.longest_pause = milliseconds(1000);
  return options;
}

class Worker {
 public:
  explicit Worker(const Settings& settings)
      : settings_(settings),
        options_(options_of(settings)),
        any_(options_),
        log_(settings.directory + "/" + settings.number),
        done_(settings.directory + "/" + settings.number + ".done"),
        count_(settings.directory + "/count"),
        requests_(settings.directory + "/requests"),
        passes_(settings.directory + "/passes"),
        random_(settings.seed) {}

  bool work() {
    while (!is_told_to_end()) {
      std::error_code ec;
      const auto item = any_.try_lock_for(kLookEach, ec);
      count();
      // The engine is one process, and busy.
      const bool passing =
          ec && ec.value() >= static_cast<int>(ddbmutex::Errc::unreachable);
      if (ec && !passing) return fails(any_.last_error());
      if (item == nullptr && !ec && any_.accepted() == 0u) return true;
      if (item != nullptr && !hold(*item)) return false;
      count();
    }
    return true;
  }

 private:
  static bool is_told_to_end() {
    pollfd input = {STDIN_FILENO, POLLIN, 0};
    return poll(&input, 1, 0) > 0;
  }
  bool fails(const std::string& why) {
    log_.failed(why);
    return false;
  }

  void count() {
    const ddbmutex::Stats stats = options_.each.table->stats();
    requests_.add(stats.requests() - told_requests_);
    passes_.add(stats.other - told_passes_);
    told_requests_ = stats.requests();
    told_passes_ = stats.other;
  }

  bool hold(DdbMutex& item) {
    const int which = std::stoi(item.name().substr(settings_.prefix.size()));
    const int round = rounds_of(item.attributes()) + 1;
    const claims::Token token = item.fencing_token();
    const microseconds time(std::uniform_int_distribution<long>(
        0, microseconds(settings_.hold).count())(random_));
    const auto held = claims::hold(item, which, time, log_, count_);
    if (held != claims::Held::to_the_end) return held == claims::Held::lost;
    ddbmutex::Changes changes;
    changes.attributes = {
        {"rounds", Attribute::Type::number, std::to_string(round), {}}};
    std::error_code ec;
    item.release(changes, ec);
    return ec || done_.done(which, round, token, claims::boot_time());
  }

  const Settings settings_;
  const ddbmutex::AnyOfOptions options_;
  ddbmutex::AnyOf any_;
  claims::TokenLog log_;
  claims::DoneLog done_;
  claims::SharedCount count_, requests_, passes_;
  std::uint64_t told_requests_ = 0, told_passes_ = 0;
  std::mt19937 random_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 9) {
    std::fprintf(stderr,
                 "usage: any_of_worker TABLE PREFIX ROUNDS TTL HOLD "
                 "SEED DIRECTORY NUMBER\n");
    return 2;
  }
  const Settings settings = {argv[1],
                             argv[2],
                             std::stoi(argv[3]),
                             milliseconds(std::stol(argv[4])),
                             milliseconds(std::stol(argv[5])),
                             static_cast<unsigned>(std::stoul(argv[6])),
                             argv[7],
                             argv[8]};
  return Worker(settings).work() ? 0 : 1;
}
