// How far a torture is, for who waits for its end: on a terminal a bar that is
// drawn anew in its place, else a line now and then.
//
//   Tally tally(logs);
//   Progress progress(minutes(10));
//   progress.show(seconds(61), {tally.acquisitions(), faults, blows});
//   progress.end();
#ifndef DDBMUTEX_TESTS_TORTURE_PROGRESS_HPP
#define DDBMUTEX_TESTS_TORTURE_PROGRESS_HPP

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace torture {

// Counts what the workers have written so far, without reading it twice.
class Tally {
 public:
  explicit Tally(std::string logs) : logs_(std::move(logs)) {}
  long acquisitions();

 private:
  void read_on(const std::string& path, std::uintmax_t size);

  const std::string logs_;
  std::map<std::string, std::uintmax_t> read_;  // Bytes of each file.
  long acquisitions_ = 0;
};

struct SoFar {
  long acquisitions = 0;
  long faults = 0;
  long blows = 0;  // Kills and stops.
};

class Progress {
 public:
  explicit Progress(std::chrono::seconds time);
  // Says it if it is time to.
  void show(std::chrono::seconds gone, const SoFar& so_far);
  void end() const;  // Of the bar's line.
  // How often it is worth to ask.
  std::chrono::seconds interval() const { return interval_; }

 private:
  const std::chrono::seconds time_;
  const bool terminal_;
  const std::chrono::seconds interval_;
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_PROGRESS_HPP
