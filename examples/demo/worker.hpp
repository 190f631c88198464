// One of the processes that want to add to the number in the file.
#ifndef DDBMUTEX_EXAMPLES_DEMO_WORKER_HPP
#define DDBMUTEX_EXAMPLES_DEMO_WORKER_HPP

#include <chrono>
#include <string>
#include <vector>

namespace demo {

constexpr std::chrono::seconds kLease{3};

// What the process is to do.
struct Part {
  char name = '?';
  std::string file;  // Holds the number.
  int updates = 1;
  // Does the work of the first update until it is told that it is enough.
  bool until_told = false;
  // Where the lock is; no table: do it without.
  std::string table;
  std::string endpoint;  // Empty: found in the usual places.
};

std::vector<std::string> to_words(const Part& part);
// REQUIRES: `words` are from to_words().
Part read_part(const std::vector<std::string>& words);

// Plays it, in a process of its own: waits for a byte on standard input, then
// begins; another one means that it is enough.  Events go to standard output.
// Returns the exit status.
int play(const Part& part);

// The number in the file; the file is made or replaced.
long long read_number(const std::string& file);
void begin_file(const std::string& file);

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_WORKER_HPP
