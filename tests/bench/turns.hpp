// How evenly hosts share a lock that each of them wants again and again, in a
// loop without a pause: for several numbers of hosts, times to hold the lock,
// and times to the engine and back.
//
// Each host is a Table of its own, and a thread.  All locks of one number of
// hosts are measured at once.
#ifndef DDBMUTEX_TESTS_BENCH_TURNS_HPP
#define DDBMUTEX_TESTS_BENCH_TURNS_HPP

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/bench/report.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/mutex_kit.hpp"

namespace bench {
namespace turns {

using std::chrono::milliseconds;

// A lock, and the hosts that want it.
class Contest {
 public:
  Contest(const ddbmutex::TableOptions& table, const std::string& name,
          int hosts, milliseconds hold)
      : hold_(hold) {
    for (int host = 0; host < hosts; ++host) {
      threads_.emplace_back([this, table, name, host] {
        ddbmutex::Options options;
        options.table = std::make_shared<ddbmutex::Table>(table);
        options.auto_renew = false;
        options.ttl = std::chrono::minutes(1);
        ddbmutex::DdbMutex mutex(name, options);
        while (!over_) {
          mutex.lock();
          if (!over_) order_.push_back(host);
          std::this_thread::sleep_for(hold_);
          mutex.unlock();
        }
      });
    }
  }
  ~Contest() { end(); }
  Contest(const Contest&) = delete;
  Contest& operator=(const Contest&) = delete;

  void end() {
    over_ = true;
    for (std::thread& thread : threads_) {
      if (thread.joinable()) thread.join();
    }
  }

  std::size_t turns() const { return order_.size(); }
  // Of an even share, in per cent, for each host.
  std::vector<double> shares() const {
    std::vector<double> shares(threads_.size());
    const double even = static_cast<double>(order_.size()) /
                        static_cast<double>(threads_.size());
    for (const int host : order_) {
      shares[static_cast<std::size_t>(host)] += 100 / even;
    }
    return shares;
  }
  // The longest wait of a host.  In one round each host could have had the lock
  // for as long as nobody took it from it.
  double longest_wait_in_rounds() const {
    std::vector<std::size_t> last(threads_.size());
    std::size_t longest = 0, stretches = 0;
    for (std::size_t i = 0; i < order_.size(); ++i) {
      if (i > 0 && order_[i] == order_[i - 1]) continue;
      ++stretches;
      std::size_t& at = last[static_cast<std::size_t>(order_[i])];
      longest = std::max(longest, stretches - at);
      at = stretches;
    }
    for (const std::size_t at : last) {
      longest = std::max(longest, stretches - at);
    }
    return static_cast<double>(longest) / static_cast<double>(last.size());
  }

 private:
  const milliseconds hold_;
  std::atomic<bool> over_{false};
  std::vector<int> order_;  // Who had it.  Guarded by the lock itself.
  std::vector<std::thread> threads_;
};

// Answers come so much later.
inline void delay_answers(tests::Gate& gate, milliseconds round_trip) {
  for (const char* action :
       {"GetItem", "PutItem", "UpdateItem", "DeleteItem"}) {
    gate.always(action, [round_trip](tests::Engine& engine,
                                     const tests::SeenRequest& request) {
      tests::Reply reply = engine.forward(request);
      reply.delay = round_trip;
      return reply;
    });
  }
}

inline void measure(int hosts, std::chrono::seconds time, Report& report) {
  tests::Gate gate;
  delay_answers(gate, milliseconds(6));
  const auto near = tests::table_options(gate.engine());
  const auto far = tests::table_options(gate);
  std::vector<std::unique_ptr<Contest>> contests;
  std::vector<std::string> names;
  for (const int hold : {5, 50, 500}) {
    for (const int round_trip : {0, 6}) {
      names.push_back(format("turns_%d_%dms_%dms", hosts, hold, round_trip));
      contests.push_back(std::make_unique<Contest>(round_trip == 0 ? near : far,
                                                   names.back(), hosts,
                                                   milliseconds(hold)));
    }
  }
  std::this_thread::sleep_for(time);
  for (const auto& contest : contests) contest->end();
  for (std::size_t i = 0; i < contests.size(); ++i) {
    report.line(
        names[i], figure_of(contests[i]->shares()), 0, "%",
        format("of an even share of %zu turns, median, least and most "
               "of a host; longest wait %.1f rounds",
               contests[i]->turns(), contests[i]->longest_wait_in_rounds()));
  }
}

}  // namespace turns

inline void hold_turns(const std::string&, unsigned turns, Report& report) {
  std::printf("Hosts that want a lock in a loop, their shares:\n");
  for (const int hosts : {2, 3, 8}) {
    turns::measure(hosts, std::chrono::seconds(4 * turns + 2), report);
  }
}

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_TURNS_HPP
