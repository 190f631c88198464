#include "tests/torture/history.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string_view>
#include <tuple>
#include <utility>

namespace torture {
namespace {

namespace fs = std::filesystem;

// The words of one line, from the left.
class Words {
 public:
  explicit Words(std::string_view line) : left_(line) {}

  std::string_view next() {
    const std::size_t size = std::min(left_.find(' '), left_.size());
    const std::string_view word = left_.substr(0, size);
    left_.remove_prefix(std::min(size + 1, left_.size()));
    return word;
  }
  template <class Number>
  bool number(Number& value) {
    const std::string_view word = next();
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    return error == std::errc() && end == word.data() + word.size();
  }
  template <class Rep, class Period>
  bool time(std::chrono::duration<Rep, Period>& value) {
    Rep count = 0;
    if (!number(count)) return false;
    value = std::chrono::duration<Rep, Period>(count);
    return true;
  }
  bool text(std::string& value) {
    value = next();
    return !value.empty();
  }
  std::string rest() { return std::string(std::exchange(left_, {})); }
  bool done() const { return left_.empty(); }

 private:
  std::string_view left_;
};

// Calls `understand` with each whole line until it returns false, and says with
// which it did; empty if with none.  True for `cut` if the last has no end.
template <class Understand>
std::string each_line(std::istream& in, bool& cut, Understand understand) {
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  std::string_view left = all;
  for (std::size_t end; (end = left.find('\n')) != left.npos;) {
    const std::string_view line = left.substr(0, end);
    if (!understand(Words(line)))
      return "unexpected '" + std::string(line) + "'";
    left.remove_prefix(end + 1);
  }
  cut = !left.empty();
  return {};
}

class LogReader {
 public:
  MutexLog read(std::istream& in) {
    bool cut_short = false;
    log_.problem = each_line(in, cut_short, [this](Words words) {
      return understand(words) && words.done();
    });
    log_.unfinished = cut_short || !waiting_.empty() || !open_.empty() ||
                      let_go_ < closed_.size();
    return std::move(log_);
  }

 private:
  // A call that has not returned.
  struct Wait {
    nanoseconds begin{};
    bool is_timed = false;
  };

  bool understand(Words& words) {
    const std::string_view word = words.next();
    if (word == "held") return held(words);
    if (word == "wants") return wants(words);
    if (word == "acquired") return acquired(words);
    if (word == "ended") return ended(words);
    if (word == "let_go") return let_go(words);
    if (word == "without") return without(words);
    if (word == "lost_seen") return lost_seen(words);
    if (word == "lost") return lost(words);
    if (word == "clocks") return clocks(words);
    if (word == "kept") log_.kept = true;
    return word == "kept";
  }

  bool clocks(Words& words) {
    Clocks clocks{};
    if (!words.time(clocks.calendar) || !words.time(clocks.boot)) return false;
    log_.clocks = clocks;
    return true;
  }

  bool wants(Words& words) {
    int thread = 0;
    Wait wait;
    if (!words.number(thread) || !words.time(wait.begin)) return false;
    const std::string_view kind = words.next();
    wait.is_timed = kind == "try_for" || kind == "try";
    if (kind != "lock" && !wait.is_timed) return false;
    return log_.clocks && waiting_.emplace(thread, wait).second;
  }

  // The wait that a thread's line ends, and when; nothing if there is none, or
  // the line says that it ended before it began.
  std::optional<Wait> end_wait(int thread, nanoseconds time) {
    const auto it = waiting_.find(thread);
    if (it == waiting_.end()) return std::nullopt;
    const Wait wait = it->second;
    waiting_.erase(it);
    if (time < wait.begin) return std::nullopt;
    return wait;
  }

  bool without(Words& words) {
    int thread = 0;
    Refusal refusal;
    if (!words.number(thread) || !words.time(refusal.at)) return false;
    const auto wait = end_wait(thread, refusal.at);
    if (!wait) return false;
    refusal.is_timed = wait->is_timed;
    refusal.why = words.rest();
    log_.refusals.push_back(refusal);
    return refusal.why == "busy" || refusal.why.rfind("error ", 0) == 0;
  }

  bool acquired(Words& words) {
    Acquisition got;
    if (!words.number(got.thread) || !words.time(got.acquired)) return false;
    const auto wait = end_wait(got.thread, got.acquired);
    if (!wait) return false;
    got.wanted = wait->begin;
    got.asked = got.promised = got.acquired;
    if (log_.kept && !words.number(got.token)) return false;
    if (!open_.empty()) log_.doubles.push_back(log_.acquisitions.size());
    open_.push_back(log_.acquisitions.size());
    log_.acquisitions.push_back(got);
    return true;
  }

  // Of the acquisition that is not over, which one is enough to tell: what is
  // said of a holder names no thread.
  Acquisition* open() {
    return open_.empty() ? nullptr : &log_.acquisitions[open_.back()];
  }

  bool held(Words& words) {
    nanoseconds time{}, until{};
    if (!words.time(time) || !words.time(until)) return false;
    Acquisition* const got = open();
    if (got == nullptr || time < got->asked || until <= time) return false;
    got->asked = time;
    got->promised = std::max(got->promised, until);
    return true;
  }

  bool ended(Words& words) {
    nanoseconds time{};
    Acquisition* const got = open();
    if (!words.time(time) || got == nullptr || time < got->asked) return false;
    got->ended = time;
    close();
    return true;
  }

  bool lost_seen(Words& words) {
    nanoseconds time{};
    Acquisition* const got = open();
    if (!words.time(time) || got == nullptr || time < got->asked) return false;
    close();
    return true;
  }

  void close() {
    closed_.push_back(open_.back());
    open_.pop_back();
  }

  // The next thread may get in, and say so, before this is said.
  bool let_go(Words& words) {
    nanoseconds time{};
    if (!words.time(time) || let_go_ == closed_.size()) return false;
    Acquisition& got = log_.acquisitions[closed_[let_go_++]];
    got.let_go = time;
    got.error = words.rest();
    return true;
  }

  bool lost(Words& words) {
    const std::string_view reason = words.next();
    nanoseconds time{};
    if (!words.time(time)) return false;
    ++log_.losses;
    return reason == "expired" || reason == "taken" || reason == "deleted";
  }

  MutexLog log_;
  std::map<int, Wait> waiting_;      // By thread.
  std::vector<std::size_t> open_;    // Neither ended nor seen to be lost.
  std::vector<std::size_t> closed_;  // The others, as they were closed.
  std::size_t let_go_ = 0;           // How many of those.
};

class EventReader {
 public:
  explicit EventReader(History& history) : history_(history) {}

  void read(std::istream& in) {
    bool cut = false;
    history_.problem = each_line(in, cut, [this](Words words) {
      return understand(words) && words.done();
    });
  }

 private:
  bool understand(Words& words) {
    std::string word;
    if (!words.text(word)) return false;
    if (word == "down" || word == "up") return outage(words, word == "down");
    if (word == "taken") return taken(words);
    return of_a_process(word, words);
  }

  bool outage(Words& words, bool begins) {
    std::string what;
    nanoseconds time{};
    if (begins) ++history_.outages;
    return words.text(what) && words.time(time);
  }

  bool taken(Words& words) {
    Taken taken;
    if (!words.text(taken.name) || !words.number(taken.token)) return false;
    history_.taken.push_back(taken);
    return true;
  }

  bool of_a_process(const std::string& word, Words& words) {
    std::pair<int, int> key;
    if (!words.number(key.first) || !words.number(key.second)) return false;
    if (word == "start") return start(key, words);
    const auto it = history_.lives.find(key);
    if (it == history_.lives.end()) return false;
    Lifetime& life = it->second;
    if (word == "kill") return words.time(life.killed.emplace());
    if (word == "stop" || word == "go") return moment(words);
    if (word == "hung") return words.time(life.hung.emplace());
    if (word == "exit") {
      return words.time(life.exited.emplace()) && words.number(life.status);
    }
    if (word == "calendar") return jump(words);
    if (word == "complaint") life.complaints.push_back(words.rest());
    return word == "complaint";
  }

  bool start(const std::pair<int, int>& key, Words& words) {
    const auto [it, is_new] = history_.lives.try_emplace(key);
    Lifetime& life = it->second;
    life.process = key.first;
    life.incarnation = key.second;
    return is_new && words.time(life.begin) && words.time(life.calendar);
  }

  static bool jump(Words& words) {
    seconds offset{};
    return moment(words) && words.time(offset);
  }
  static bool moment(Words& words) {
    nanoseconds time{};
    return words.time(time);
  }

  History& history_;
};

std::string name_of(int process, int incarnation) {
  return "process " + std::to_string(process) + "." +
         std::to_string(incarnation);
}

// "3.12.lock-5"
bool name_log(const std::string& file, MutexLog& log) {
  const auto dot = file.find('.');
  const auto second = file.find('.', dot + 1);
  if (dot == file.npos || second == file.npos) return false;
  log.name = file.substr(second + 1);
  return !log.name.empty() && Words(file.substr(0, dot)).number(log.process) &&
         Words(file.substr(dot + 1, second - dot - 1)).number(log.incarnation);
}

std::ifstream opened(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw std::runtime_error("cannot read " + path.string());
  return in;
}

}  // namespace

std::string MutexLog::who() const { return name_of(process, incarnation); }

std::string Lifetime::who() const { return name_of(process, incarnation); }

std::set<std::string> History::names() const {
  std::set<std::string> names;
  for (const MutexLog& log : logs) names.insert(log.name);
  return names;
}

const Lifetime* History::life_of(const MutexLog& log) const {
  const auto it = lives.find({log.process, log.incarnation});
  return it == lives.end() ? nullptr : &it->second;
}

std::string History::moment(nanoseconds time) const {
  constexpr std::int64_t kSecond = 1000000000;
  const std::int64_t since = (time - begin).count();
  std::string fraction = std::to_string(std::abs(since) % kSecond);
  fraction.insert(0, 9 - fraction.size(), '0');
  return (since < 0 ? "-" : "") + std::to_string(std::abs(since) / kSecond) +
         "." + fraction + " s";
}

MutexLog read_log(std::istream& in) { return LogReader().read(in); }

void read_events(std::istream& in, History& history) {
  EventReader(history).read(in);
}

void complete(History& history) {
  history.begin = nanoseconds::max();
  for (const auto& [key, life] : history.lives) {
    history.begin = std::min(history.begin, life.begin);
  }
  std::sort(history.logs.begin(), history.logs.end(),
            [](const MutexLog& a, const MutexLog& b) {
              return std::tie(a.name, a.process, a.incarnation) <
                     std::tie(b.name, b.process, b.incarnation);
            });
}

History read_history(const fs::path& directory) {
  History history;
  std::ifstream events = opened(directory / "events");
  read_events(events, history);
  for (const auto& entry : fs::directory_iterator(directory)) {
    const std::string file = entry.path().filename().string();
    if (file == "events") continue;
    MutexLog named;
    if (!name_log(file, named)) continue;  // Somebody else's.
    std::ifstream in = opened(entry.path());
    MutexLog log = read_log(in);
    log.process = named.process;
    log.incarnation = named.incarnation;
    log.name = named.name;
    history.logs.push_back(std::move(log));
  }
  complete(history);
  return history;
}

std::map<std::string, std::vector<Held>> held_by_name(const History& history) {
  std::map<std::string, std::vector<Held>> held;
  for (const MutexLog& log : history.logs) {
    auto& all = held[log.name];
    for (const Acquisition& got : log.acquisitions) {
      all.push_back({&log, &got, got.claim()});
    }
  }
  for (auto& [name, all] : held) {
    std::sort(all.begin(), all.end(), [](const Held& a, const Held& b) {
      return a.span.begin < b.span.begin;
    });
  }
  return held;
}

}  // namespace torture
