// What processes say of the times at which they held one lock, and whether two
// ever held it at once.
//
// Each process writes a log of its own, a line a write(2), so that what it had
// said stands if it is killed.  Times are nanoseconds of the boot clock, which
// all processes of a machine share:
//
//   clocks CALENDAR BOOT  how far off the clocks are that the library sees
//   acquired TIME         lock() had returned by then
//   held TIME             owns_lock() has been true since then, asked later
//   ended TIME            unlock() began then, or the lease was over
//   failed WHAT
//
// A claim is [acquired, ended); one that was never said to have ended, since
// its process was killed, reaches to the last `held`.
#ifndef DDBMUTEX_TESTS_CLAIMS_CLAIMS_HPP
#define DDBMUTEX_TESTS_CLAIMS_CLAIMS_HPP

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <istream>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace claims {

using std::chrono::nanoseconds;

// --- What a process writes ---------------------------------------------------

class LogWriter {
 public:
  explicit LogWriter(const std::string& path)
      : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 0600)) {}
  ~LogWriter() { close(fd_); }
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  bool clocks(nanoseconds calendar, nanoseconds boot) {
    return line("clocks " + std::to_string(calendar.count()) + " " +
                std::to_string(boot.count()));
  }
  bool acquired(nanoseconds time) { return line("acquired", time); }
  bool held(nanoseconds time) { return line("held", time); }
  bool ended(nanoseconds time) { return line("ended", time); }
  bool failed(const std::string& what) { return line("failed " + what); }

 protected:
  bool line(const char* word, nanoseconds time) {
    return line(word + (" " + std::to_string(time.count())));
  }
  // False if it could not be written.
  bool line(std::string text) {
    text += '\n';
    const ssize_t size = write(fd_, text.data(), text.size());
    return size == static_cast<ssize_t>(text.size());
  }

 private:
  const int fd_;
};

// --- What is read of it ------------------------------------------------------

struct Claim {
  int process;
  nanoseconds begin;
  nanoseconds end;  // Past it.
};

struct Clocks {
  nanoseconds calendar;
  nanoseconds boot;
};

struct Log {
  std::vector<Claim> claims;
  std::optional<Clocks> clocks;
  std::string problem;  // Empty if all lines were as they should be.
};

class LogReader {
 public:
  explicit LogReader(int process) : process_(process) {}

  // A last line without its end was cut short by a kill, and does not count.
  Log read(std::istream& in) {
    std::string line;
    while (std::getline(in, line) && !in.eof() && log_.problem.empty()) {
      if (!understand(line)) log_.problem = "unexpected '" + line + "'";
    }
    end_claim();
    return log_;
  }

 private:
  bool understand(const std::string& line) {
    std::istringstream words(line);
    std::string word;
    long long number = 0;
    words >> word;
    if (word == "failed") return false;
    if (!(words >> number)) return false;
    const nanoseconds time(number);
    if (word == "clocks") return clocks(time, words);
    if (word == "acquired") return acquired(time);
    if (word == "held") return reaches(time);
    if (word != "ended" || !reaches(time)) return false;
    end_claim();
    return true;
  }

  bool clocks(nanoseconds calendar, std::istream& words) {
    long long boot = 0;
    if (!(words >> boot)) return false;
    log_.clocks = Clocks{calendar, nanoseconds(boot)};
    return true;
  }
  bool acquired(nanoseconds time) {
    if (open_) return false;
    open_ = Claim{process_, time, time};
    return true;
  }
  bool reaches(nanoseconds time) {
    if (!open_) return false;
    open_->end = std::max(open_->end, time);
    return true;
  }
  void end_claim() {
    if (open_) log_.claims.push_back(*open_);
    open_.reset();
  }

  const int process_;
  Log log_;
  std::optional<Claim> open_;
};

// --- What is found -----------------------------------------------------------

struct Overlap {
  Claim first;
  Claim second;
};

struct Findings {
  std::vector<Overlap> overlaps;
  int claims = 0;
  int hand_overs = 0;         // From one process to another.
  std::set<int> got_in;       // The processes that ever held the lock.
  nanoseconds longest_gap{};  // In which nobody held it.
};

inline std::string words_of(const Claim& claim) {
  return "process " + std::to_string(claim.process) + " [" +
         std::to_string(claim.begin.count()) + ", " +
         std::to_string(claim.end.count()) + ")";
}

inline std::string words_of(const Overlap& overlap) {
  return words_of(overlap.first) + " and " + words_of(overlap.second);
}

// Of all processes together, in any order.
inline Findings judge(std::vector<Claim> claims) {
  std::sort(claims.begin(), claims.end(), [](const Claim& a, const Claim& b) {
    return a.begin < b.begin || (a.begin == b.begin && a.end < b.end);
  });
  Findings found;
  // Reaches furthest of those before: a long one may overlap many.
  const Claim* furthest = nullptr;
  const Claim* last = nullptr;
  for (const Claim& claim : claims) {
    if (claim.begin >= claim.end) continue;  // Lost before it was known of.
    if (furthest != nullptr && claim.begin < furthest->end) {
      found.overlaps.push_back({*furthest, claim});
    }
    if (last != nullptr) {
      found.hand_overs += last->process != claim.process;
      found.longest_gap =
          std::max(found.longest_gap, claim.begin - furthest->end);
    }
    if (furthest == nullptr || claim.end > furthest->end) furthest = &claim;
    last = &claim;
    found.got_in.insert(claim.process);
    ++found.claims;
  }
  return found;
}

}  // namespace claims

#endif  // DDBMUTEX_TESTS_CLAIMS_CLAIMS_HPP
