// What `run` says while it waits: who holds the lock, and how long ago the
// lease was taken or last renewed.  It says so after a second, and then every
// minute; on a terminal in one line that is updated every two seconds and
// cleared in the end.
//
// The main thread must be free for signals, so another thread reads the item,
// once for each message.  If that fails, the message says why.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_WAIT_REPORT_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_WAIT_REPORT_HPP

#include <future>
#include <memory>
#include <string>

#include "ddbmutex.hpp"
#include "examples/ddbmutex/bell.hpp"
#include "examples/ddbmutex/deadline.hpp"
#include "examples/ddbmutex/options.hpp"

namespace command {

class WaitReport {
 public:
  WaitReport(std::shared_ptr<ddbmutex::Table> table, const Settings& settings);
  // Closes the table if the item is being read, which ends that.
  ~WaitReport();
  WaitReport(const WaitReport&) = delete;
  WaitReport& operator=(const WaitReport&) = delete;

  // The wait begins.  `owner`: what the item says if this program has the lock.
  void begin(const std::string& owner);
  // For poll(): call proceed() once fd() is readable, or after timeout_ms().
  int fd() const { return bell_.fd(); }
  int timeout_ms() const;
  // Begins to read the item if it is time to, or says what was read.
  void proceed();
  // Erases the line on the terminal, if there is one.
  void clear();

 private:
  bool is_on_terminal() const;
  void begin_look();
  std::string look() const;
  void say(const std::string& text);

  const std::shared_ptr<ddbmutex::Table> table_;
  const Settings& settings_;
  std::string owner_;
  Time begun_{};
  Time next_at_ = Time::max();
  bool has_line_ = false;
  const Bell bell_;
  std::future<std::string> found_;  // Last: its thread uses the others.
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_WAIT_REPORT_HPP
