// What happened in one run of the torture, read from the logs of its workers
// and of its driver.
//
//   const History history = read_history("build/torture/logs");
//   for (const MutexLog& log : history.logs) look_at(log.acquisitions);
//
// The directory holds a file for each mutex of each worker, named
// PROCESS.INCARNATION.NAME ("3.12.lock-5"), and the driver's file `events`.
// All times are nanoseconds of the boot clock.  A file may end anywhere, since
// its writer may have been killed; and lines of the library's timer thread
// (`lost`, `danger`) and of the worker's two threads come in the order in which
// they were written, which is not always that of their times.
#ifndef DDBMUTEX_TESTS_TORTURE_HISTORY_HPP
#define DDBMUTEX_TESTS_TORTURE_HISTORY_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <istream>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace torture {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;
using Token = std::uint64_t;

// [begin, end)
struct Span {
  nanoseconds begin{};
  nanoseconds end{};
};

// --- What the workers say ----------------------------------------------------

// How far off they are, as the library sees them.
struct Clocks {
  nanoseconds calendar;
  nanoseconds boot;
};

// One call that wanted the lock.
struct Wait {
  enum class Kind { lock, try_for, try_once };
  int thread = 0;
  Kind kind = Kind::lock;
  nanoseconds begin{};
  std::optional<nanoseconds> end;  // Nothing: it was killed while it waited.
  bool acquired = false;
  std::string why;  // "busy", "cancelled", "error ..."; of one without.
};

// What became of one call that got the lock.
struct Acquisition {
  int thread = 0;
  nanoseconds wanted{};  // The call began.
  nanoseconds acquired{};
  // Last seen to be held, asked at, and promised to be held until.
  nanoseconds asked{};
  nanoseconds promised{};
  std::optional<nanoseconds> ended;
  std::optional<nanoseconds> lost_seen;
  std::optional<nanoseconds> let_go;
  std::string error;  // Of release().
  // Of a kept row; 0: of none.
  Token token = 0;
  Token stored = 0;  // Was found with it: the token of one before; 0: none.

  bool held() const { return promised > acquired; }
  bool loss_was_seen() const;
  // When that was first.  REQUIRES: loss_was_seen().
  nanoseconds loss_seen_at() const;
  // Nobody else may hold the lock in it: it reaches to where it was given up,
  // else to the end of what was promised.
  Span claim() const { return {acquired, ended ? *ended : promised}; }
};

// A call of on_lost.
struct Told {
  nanoseconds at{};
  std::string reason;  // "expired"
};

struct MutexLog {
  int process = 0;
  int incarnation = 0;
  std::string name;

  std::optional<Clocks> clocks;
  milliseconds ttl{};
  bool kept = false;  // The row outlives the lock.
  std::vector<Wait> waits;
  std::vector<Acquisition> acquisitions;
  std::vector<Told> losses;
  std::vector<nanoseconds> dangers;
  std::vector<Span> stalls;   // In which its process did not get to run.
  std::vector<Token> stored;  // With confirmed releases: their own tokens.
  // The acquisitions that came while another of this mutex was not over.
  std::vector<std::size_t> doubles;
  bool cut_short = false;  // The last line has no end.
  std::string problem;     // Empty if all lines were as they should be.
};

// What a worker's file says; whose it is, only the file's name does.
MutexLog read_log(std::istream& in);

// --- What the driver says ----------------------------------------------------

struct Jump {
  nanoseconds at{};
  seconds offset{};
};

// Of one worker process.
struct Lifetime {
  int process = 0;
  int incarnation = 0;
  nanoseconds begin{};
  long pid = 0;
  seconds calendar{};  // Offset at its start.
  std::vector<Jump> jumps;
  std::vector<Span> stops;
  std::optional<nanoseconds> killed;
  std::optional<nanoseconds> exited;
  int status = 0;  // Of one that exited.
  std::optional<nanoseconds> hung;
  std::vector<std::string> complaints;
};

struct Outage {
  std::string what;  // "cut-off", "hang", "engine"
  Span span;
};

struct Fault {
  nanoseconds at{};
  std::string kind;
  std::string action;
  std::string key;
};

// Of a name after the run, by somebody new.
struct Taken {
  std::string name;
  nanoseconds at{};
  nanoseconds waited{};
  Token token = 0;
};

// A kept row in the end.
struct KeptRow {
  std::string name;
  Token token = 0;
  std::string state;  // "intact", or what is wrong with it.
};

// --- All of it ---------------------------------------------------------------

struct History {
  std::vector<MutexLog> logs;
  std::map<std::pair<int, int>, Lifetime> lives;  // By process and incarnation.
  std::vector<Outage> outages;                    // By time.
  std::vector<Fault> faults;                      // By time.
  std::vector<Span> slow;            // In which the table was; united.
  std::optional<nanoseconds> calm;   // All troubles were over.
  std::optional<nanoseconds> quiet;  // So were the workers.
  std::vector<std::string> left;
  std::vector<Taken> taken;
  std::vector<KeptRow> rows;
  std::string problem;  // Of the driver's events.

  // From the first start to the last that is known of.
  nanoseconds begin{};
  nanoseconds end{};

  std::set<std::string> names() const;
  std::set<std::string> kept_names() const;
  milliseconds longest_ttl() const;
  const Lifetime* life_of(const MutexLog& log) const;  // May be null.
  // In which its process was stopped or did not get to run; united.
  std::vector<Span> still(const MutexLog& log) const;
};

void read_events(std::istream& in, History& history);

// One acquisition, and whose it is.
struct Held {
  const MutexLog* log;
  const Acquisition* got;
  Span span;  // got->claim()
};
// Of each name, by when they began.  It refers to the history.
std::map<std::string, std::vector<Held>> held_by_name(const History& history);

// Once all was read: sorts, ends the stops and outages that were not ended, and
// sets begin and end.  read_history() calls it.
void complete(History& history);

// Throws std::runtime_error if the directory or its `events` cannot be read.
// May be called during the run.
History read_history(const std::filesystem::path& directory);

// --- Times -------------------------------------------------------------------

// As a waiter takes another's lease: 1 % longer.
constexpr nanoseconds longer(milliseconds lease) {
  return nanoseconds(lease) * 101 / 100;
}

// Sorted, those that touch joined into one, empty ones left out.
std::vector<Span> united(std::vector<Span> spans);
// How much of one lies outside of all others.  REQUIRES: those are united.
nanoseconds outside(const Span& span, const std::vector<Span>& others);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_HISTORY_HPP
