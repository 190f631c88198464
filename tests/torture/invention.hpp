// A made-up history, as a torture's are when all goes well: eight processes on
// eight names, stopped, killed and started anew, under faults and outages.
//
//   const Invention invention(seconds(600), 7);  // 100,000 acquisitions.
//   judge(invention.history());
#ifndef DDBMUTEX_TESTS_TORTURE_INVENTION_HPP
#define DDBMUTEX_TESTS_TORTURE_INVENTION_HPP

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "tests/torture/history.hpp"
#include "tests/torture/judge.hpp"

namespace torture {

using namespace std::chrono_literals;

class Invention {
 public:
  Invention(seconds time, unsigned seed) : end_(begin_ + time), random_(seed) {
    for (int process = 0; process < kOfEach; ++process) live(process);
    for (int name = 0; name < kOfEach; ++name) take(name_of(name));
    for (auto& [key, log] : logs_) history_.logs.push_back(std::move(log));
    trouble();
    history_.quiet = end_;
    complete(history_);
  }

  const History& history() const { return history_; }

 private:
  static constexpr int kOfEach = 8;  // Processes, names.
  static constexpr int kKept = 4;    // Names whose rows are.

  static std::string name_of(int name) {
    return (name < kKept ? "kept-" : "lock-") + std::to_string(name);
  }

  nanoseconds up_to(nanoseconds most) {
    return nanoseconds(
        std::uniform_int_distribution<std::int64_t>(0, most.count())(random_));
  }
  bool one_in(int many) {
    return std::uniform_int_distribution<int>(1, many)(random_) == 1;
  }

  // One life of a process after the other.
  void live(int process) {
    nanoseconds at = begin_ + up_to(100ms);
    for (int incarnation = 1; at < end_; ++incarnation) {
      Lifetime life;
      life.process = process;
      life.incarnation = incarnation;
      life.begin = at;
      if (one_in(2))
        life.calendar = seconds(up_to(24h).count() / 1000000000) - 12h;
      const nanoseconds end = std::min(at + 5s + up_to(50s), end_);
      for (nanoseconds t = at + up_to(20s); t + 4s < end;
           t += 4s + up_to(20s)) {
        life.stops.push_back({t, t + 100ms + up_to(3s)});
      }
      if (life.calendar != 0s && end - at > 20s) {
        life.jumps.push_back({at + 15s, -life.calendar});
      }
      life.exited = end;
      if (end < end_ || process % 2 == 0) {
        life.killed = end;
        life.status = 137;
      }
      at = end + 20ms + up_to(500ms);
      history_.lives[{process, incarnation}] = life;
    }
  }

  // The life of a process at a time; null if it is not alive or stopped.
  const Lifetime* alive(int process, nanoseconds at) const {
    auto it = history_.lives.lower_bound({process, 0});
    for (; it != history_.lives.end() && it->first.first == process; ++it) {
      const Lifetime& life = it->second;
      if (at < life.begin + 50ms || at >= *life.exited) continue;
      for (const Span& stop : life.stops) {
        if (at >= stop.begin && at < stop.end) return nullptr;
      }
      return &life;
    }
    return nullptr;
  }

  MutexLog& log(const Lifetime& life, const std::string& name) {
    MutexLog& log = logs_[{life.process, life.incarnation, name}];
    if (log.clocks) return log;
    log.process = life.process;
    log.incarnation = life.incarnation;
    log.name = name;
    log.clocks = Clocks{life.calendar, 0ns};
    log.kept = name.rfind("kept-", 0) == 0;
    log.ttl = 300ms + std::chrono::floor<milliseconds>(up_to(1700ms));
    return log;
  }

  // One claim after the other.
  void take(const std::string& name) {
    for (nanoseconds at = begin_ + 200ms; at < end_;) {
      at += 2ms + up_to(one_in(20) ? 300ms : 20ms);
      const int process =
          static_cast<int>(up_to(nanoseconds(kOfEach - 1)).count());
      const Lifetime* const life = alive(process, at);
      if (life == nullptr || at + 10ms >= *life->exited) continue;
      at = hold(log(*life, name), *life, at);
    }
  }

  // Returns when it is over.
  nanoseconds hold(MutexLog& log, const Lifetime& life, nanoseconds at) {
    Acquisition got;
    got.wanted = std::max(life.begin, at - up_to(50ms));
    got.acquired = at;
    if (log.kept) got.token = tokens_[log.name] += one_in(10) ? 2 : 1;
    if (log.kept) got.stored = stored_[log.name];
    nanoseconds end = at + up_to(one_in(100) ? nanoseconds(3 * log.ttl) : 10ms);
    nanoseconds over = end;
    got.ended = end;
    for (const Span& stop : life.stops) {
      if (stop.begin < at || stop.begin >= end) continue;
      lose(log, got, stop, over);
      end = stop.begin;
    }
    if (got.ended && end >= *life.exited && !life.killed) {
      end = over = *(got.ended = *life.exited - 2ms);
    }
    if (end >= *life.exited) {
      got.asked = *life.exited;
      got.ended.reset();
      over = got.promised = *life.exited + log.ttl * 99 / 100;
    }
    if (got.ended) {
      got.asked = got.promised = *got.ended;
      got.let_go = *got.ended + 1ms;
      over = *got.let_go;
      if (log.kept && one_in(3)) {
        log.stored.push_back(stored_[log.name] = got.token);
      }
    }
    Wait wait;
    wait.begin = got.wanted;
    wait.end = got.acquired;
    wait.acquired = true;
    log.waits.push_back(wait);
    log.acquisitions.push_back(got);
    return over;
  }

  void lose(MutexLog& log, Acquisition& got, const Span& stop,
            nanoseconds& over) {
    got.ended.reset();
    got.asked = stop.begin;
    got.promised = stop.begin + log.ttl * 7 / 10;
    got.lost_seen = std::max(stop.end, got.promised) + 1ms;
    got.let_go = *got.lost_seen + 5ms;
    log.losses.push_back({*got.lost_seen, "expired"});
    over = *got.let_go;
  }

  void trouble() {
    const std::vector<std::string> kinds = Bounds().fault_kinds;
    for (nanoseconds at = begin_; at < end_; at += up_to(200ms)) {
      const auto kind = static_cast<std::size_t>(
          up_to(nanoseconds(kinds.size() - 1)).count());
      const std::string name = name_of(static_cast<int>(kind) % kOfEach);
      history_.faults.push_back(
          {at, kinds[kind], "GetItem", "ddblock-" + name});
    }
    const char* const whats[] = {"cut-off", "hang", "engine"};
    int i = 0;
    for (nanoseconds at = begin_ + 3s; at < end_; at += 4s + up_to(16s)) {
      history_.outages.push_back(
          {whats[i++ % 3], {at, at + 300ms + up_to(2s)}});
    }
    nanoseconds at = end_ + 100ms;
    for (int name = 0; name < kOfEach; ++name) {
      at += up_to(200ms);
      const bool kept = name < kKept;
      const Token token = kept ? ++tokens_[name_of(name)] : 0;
      history_.taken.push_back({name_of(name), at, at - end_, token});
      if (kept) history_.rows.push_back({name_of(name), token, "intact"});
    }
    history_.left.push_back("lock-5");
  }

  const nanoseconds begin_ = 86400s;  // The machine is a day up.
  const nanoseconds end_;
  std::mt19937 random_;
  History history_;
  std::map<std::tuple<int, int, std::string>, MutexLog> logs_;
  std::map<std::string, Token> tokens_;  // The last that was given,
  std::map<std::string, Token> stored_;  // and stored.
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_INVENTION_HPP
