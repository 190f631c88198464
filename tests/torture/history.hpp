// What happened in one run of the torture, read from the logs of its workers
// and of its driver.
//
//   const History history = read_history("build/torture/logs");
//   for (const MutexLog& log : history.logs) look_at(log.acquisitions);
//
// The directory holds a file for each mutex of each worker, named
// PROCESS.INCARNATION.NAME ("3.12.lock-5"), and the driver's file `events`.
// All times are nanoseconds of the boot clock.  A file may end anywhere, since
// its writer may have been killed; and the lines of the worker's two threads
// and of the library's (`lost`) come in the order in which they were written,
// which is not always that of their times.
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

using std::chrono::nanoseconds;
using std::chrono::seconds;
using Token = std::uint64_t;

// [begin, end)
struct Span {
  nanoseconds begin{};
  nanoseconds end{};
};

// --- What the workers say ----------------------------------------------------

// How far off the clocks are, as the library sees them.
struct Clocks {
  nanoseconds calendar;
  nanoseconds boot;
};

// A call that returned without the lock.
struct Refusal {
  bool is_timed = false;  // try_lock() and try_lock_for(), not lock().
  nanoseconds at{};
  std::string why;  // "busy", "error ..."
};

// What became of one call that got the lock.
struct Acquisition {
  int thread = 0;
  nanoseconds wanted{};  // The call began.
  nanoseconds acquired{};
  // When the worker last asked whether it had the lock and it did, and until
  // when the library promised it then.
  nanoseconds asked{};
  nanoseconds promised{};
  std::optional<nanoseconds> ended;
  std::optional<nanoseconds> let_go;
  std::string error;  // What release() reported.
  Token token = 0;    // 0: the row is not kept.

  bool held() const { return promised > acquired; }
  // Nobody else may hold the lock meanwhile: until it was given up, or else
  // until the promised end.
  Span claim() const { return {acquired, ended ? *ended : promised}; }
};

struct MutexLog {
  int process = 0;
  int incarnation = 0;
  std::string name;

  std::optional<Clocks> clocks;
  bool kept = false;  // The row outlives the lock.
  std::vector<Acquisition> acquisitions;
  std::vector<Refusal> refusals;
  std::size_t losses = 0;  // Calls of on_lost.
  // Acquisitions that came before an earlier one of this mutex was over.
  std::vector<std::size_t> doubles;
  // A call had not returned, a lock was not released, or the last line is cut
  // short.
  bool unfinished = false;
  std::string problem;  // Empty if all lines were as they should be.

  std::string who() const;  // "process 3.12"
};

// Reads a worker's file.  Only the file's name says which worker's it is.
MutexLog read_log(std::istream& in);

// --- What the driver says ----------------------------------------------------

// What happened to one worker process.
struct Lifetime {
  int process = 0;
  int incarnation = 0;
  nanoseconds begin{};
  seconds calendar{};  // Offset at its start.
  std::optional<nanoseconds> killed;
  std::optional<nanoseconds> exited;
  int status = 0;  // If it exited.
  std::optional<nanoseconds> hung;
  std::vector<std::string> complaints;

  std::string who() const;  // "process 3.12"
};

// A lock that a new process took after the run.
struct Taken {
  std::string name;
  Token token = 0;
};

// --- All of it ---------------------------------------------------------------

struct History {
  std::vector<MutexLog> logs;
  std::map<std::pair<int, int>, Lifetime> lives;  // By process and incarnation.
  std::size_t outages = 0;                        // Of the gateway.
  std::vector<Taken> taken;
  std::string problem;  // What is wrong with the driver's events.

  nanoseconds begin{};  // The first start.

  std::set<std::string> names() const;
  const Lifetime* life_of(const MutexLog& log) const;  // May be null.
  // The exact time since the run began: "12.345678901 s".
  std::string moment(nanoseconds time) const;
};

void read_events(std::istream& in, History& history);

// One acquisition, and the log that it is from.
struct Held {
  const MutexLog* log;
  const Acquisition* got;
  Span span;  // got->claim()
};
// The acquisitions of each name in the order of their begins.  They refer to
// the history.
std::map<std::string, std::vector<Held>> held_by_name(const History& history);

// Called by read_history() after everything was read.  Sorts the logs and sets
// begin.
void complete(History& history);

// Throws std::runtime_error if the directory or its `events` cannot be read.
History read_history(const std::filesystem::path& directory);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_HISTORY_HPP
