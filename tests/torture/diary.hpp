// What is written during a torture: by a worker for each of its mutexes, and
// by the driver of what it did to all of them.
//
//   Diary diary(diary_path(logs, {3, 12}, "lock-5"));
//   diary.wants(0, now(), "lock");
//   diary.acquired(0, now(), mutex.fencing_token());
//   diary.held(time, time + mutex.remaining());
//
// A line a write(2), so that what was said stands if its writer is killed; all
// threads of a process write to one diary.  Times are those of the boot clock
// (now()), which no library in front of the C library's clocks can change.
// A line that cannot be written ends the program: a run without its logs shows
// nothing.
#ifndef DDBMUTEX_TESTS_TORTURE_DIARY_HPP
#define DDBMUTEX_TESTS_TORTURE_DIARY_HPP

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

#include "tests/support/true_clock.hpp"

namespace torture {

using std::chrono::nanoseconds;

constexpr int kNames = 8;      // Locks,
constexpr int kKeptNames = 4;  // of which so many keep their rows.
constexpr int kProcesses = 8;  // At a time.
constexpr int kThreads = 2;    // Of each.

inline bool is_kept(int lock) { return lock < kKeptNames; }
inline std::string lock_name(int lock) {
  return (is_kept(lock) ? "kept-" : "lock-") + std::to_string(lock);
}

inline nanoseconds now() { return tests::true_time(CLOCK_BOOTTIME); }

// Processes of one number follow each other.
struct Life {
  int process = 0;
  int incarnation = 0;
};

inline std::string diary_path(const std::string& logs, const Life& life,
                              const std::string& name) {
  return logs + "/" + std::to_string(life.process) + "." +
         std::to_string(life.incarnation) + "." + name;
}

inline std::string events_path(const std::string& logs) {
  return logs + "/events";
}

// What both have in common.
class Writer {
 public:
  explicit Writer(const std::string& path)
      : fd_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC,
                 0600)) {}
  ~Writer() { close(fd_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

 protected:
  void say(const std::string& text) {
    const std::string line = text + '\n';
    const ssize_t size = write(fd_, line.data(), line.size());
    if (size == static_cast<ssize_t>(line.size())) return;
    std::fprintf(stderr, "cannot write '%s'\n", text.c_str());
    _exit(3);
  }
  static std::string word(nanoseconds time) {
    return " " + std::to_string(time.count());
  }
  static std::string word(int number) { return " " + std::to_string(number); }

 private:
  const int fd_;
};

// Of one mutex in one process.
class Diary : public Writer {
 public:
  using Writer::Writer;

  // How far off they are, as the library sees them.
  void clocks(nanoseconds calendar, nanoseconds boot) {
    say("clocks" + word(calendar) + word(boot));
  }
  void kept() { say("kept"); }
  void wants(int thread, nanoseconds time, const std::string& kind) {
    say("wants" + word(thread) + word(time) + " " + kind);
  }
  void without(int thread, nanoseconds time, const std::string& why) {
    say("without" + word(thread) + word(time) + " " + why);
  }
  void acquired(int thread, nanoseconds time) {
    say("acquired" + word(thread) + word(time));
  }
  // Of a kept row.
  void acquired(int thread, nanoseconds time, std::uint64_t token) {
    say("acquired" + word(thread) + word(time) + " " + std::to_string(token));
  }
  void held(nanoseconds time, nanoseconds until) {
    say("held" + word(time) + word(until));
  }
  void lost_seen(nanoseconds time) { say("lost_seen" + word(time)); }
  void ended(nanoseconds time) { say("ended" + word(time)); }
  void let_go(nanoseconds time, const std::string& error) {
    say("let_go" + word(time) + (error.empty() ? "" : " " + error));
  }
  void lost(const std::string& reason, nanoseconds time) {
    say("lost " + reason + word(time));
  }
};

// Of the driver.
class Events : public Writer {
 public:
  explicit Events(const std::string& logs) : Writer(events_path(logs)) {}

  void start(const Life& life, nanoseconds time,
             std::chrono::seconds calendar) {
    say("start" + word(life) + word(time) + " " +
        std::to_string(calendar.count()));
  }
  void kill(const Life& life, nanoseconds time) {
    say("kill" + word(life) + word(time));
  }
  void stop(const Life& life, nanoseconds time) {
    say("stop" + word(life) + word(time));
  }
  void go(const Life& life, nanoseconds time) {
    say("go" + word(life) + word(time));
  }
  void calendar(const Life& life, nanoseconds time,
                std::chrono::seconds offset) {
    say("calendar" + word(life) + word(time) + " " +
        std::to_string(offset.count()));
  }
  void exit(const Life& life, nanoseconds time, int status) {
    say("exit" + word(life) + word(time) + word(status));
  }
  void complaint(const Life& life, const std::string& text) {
    say("complaint" + word(life) + " " + on_one_line(text));
  }
  void hung(const Life& life, nanoseconds time) {
    say("hung" + word(life) + word(time));
  }
  void down(const std::string& what, nanoseconds time) {
    say("down " + what + word(time));
  }
  void up(const std::string& what, nanoseconds time) {
    say("up " + what + word(time));
  }
  // By somebody new, when all workers had ended.
  void taken(const std::string& name, std::uint64_t token) {
    say("taken " + name + " " + std::to_string(token));
  }

 private:
  using Writer::word;
  static std::string word(const Life& life) {
    return Writer::word(life.process) + Writer::word(life.incarnation);
  }
  static std::string on_one_line(std::string text) {
    for (char& c : text) {
      if (c == '\n') c = ' ';
    }
    return text;
  }
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_DIARY_HPP
