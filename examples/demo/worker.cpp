#include "examples/demo/worker.hpp"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <random>
#include <system_error>

#include "ddbmutex.hpp"
#include "examples/demo/event.hpp"
#include "examples/demo/place.hpp"
#include "examples/demo/text.hpp"

namespace demo {
namespace {

using std::chrono::milliseconds;

// What is between reading the number and writing it: as little as makes a
// difference, and what a person can see.
constexpr int kShortestWork = 30;  // ms
constexpr int kLongestWork = 90;
// Between one update and the next.
constexpr int kShortestPause = 20;
constexpr int kLongestPause = 150;
constexpr milliseconds kStep{5};
// A step that takes so long: the process was stopped.
constexpr milliseconds kSleep = kLease / 2;

// --- The file --------------------------------------------------------------

class File {
 public:
  explicit File(const std::string& path, int flags = O_RDWR)
      : fd_(open(path.c_str(), flags | O_CLOEXEC, 0600)) {
    if (fd_ < 0) fail("cannot open " + path);
  }
  ~File() { close(fd_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  long long read() const {
    char digits[32] = {};
    if (pread(fd_, digits, sizeof digits - 1, 0) <= 0) fail("cannot read");
    return std::atoll(digits);
  }
  // Of one width, so that it replaces what was there in one piece.
  void write(long long number) const {
    const std::string line = text("%12lld\n", number);
    const auto size = static_cast<ssize_t>(line.size());
    if (pwrite(fd_, line.data(), line.size(), 0) != size) fail("cannot write");
  }

 private:
  [[noreturn]] static void fail(const std::string& what) {
    throw std::system_error(errno, std::generic_category(), what);
  }
  const int fd_;
};

// --- The process -----------------------------------------------------------

class Worker {
 public:
  explicit Worker(const Part& part) : part_(part), file_(part.file) {}

  void play();

 private:
  void report(Event::Kind kind, Time at, long long number = 0,
              const std::string& more = {}) const {
    const std::string line = to_line({part_.name, kind, at, number, more});
    if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(1);
  }
  void report(Event::Kind kind, long long number = 0) const {
    report(kind, now(), number);
  }

  std::shared_ptr<ddbmutex::DdbMutex> make_mutex() const;
  void update();
  bool update(ddbmutex::DdbMutex& mutex);
  bool work_while_owned(const ddbmutex::DdbMutex& mutex);
  void report_lease(const ddbmutex::DdbMutex& mutex);
  bool enough();
  milliseconds between(int shortest, int longest);

  const Part part_;
  const File file_;
  std::mt19937 random_{std::random_device()()};
  Time work_ends_{};
  Time lease_ends_{};  // As was reported.
  bool may_be_told_ = false;
};

// True once a byte has come; also if nobody is left to send one.
bool told(int within) {
  pollfd in = {STDIN_FILENO, POLLIN, 0};
  if (poll(&in, 1, within) <= 0) return false;
  char byte;
  return read(STDIN_FILENO, &byte, 1) >= 0;
}

void rest(milliseconds time) {
  poll(nullptr, 0, static_cast<int>(time.count()));
}

void Worker::play() {
  const auto mutex = make_mutex();
  report(Event::Kind::ready);
  while (!told(-1)) continue;
  may_be_told_ = part_.until_told;
  for (int i = 0; i < part_.updates; ++i) {
    if (i > 0) rest(between(kShortestPause, kLongestPause));
    if (!mutex) {
      update();
    } else {
      while (!update(*mutex)) continue;
    }
  }
  report(Event::Kind::done);
}

std::shared_ptr<ddbmutex::DdbMutex> Worker::make_mutex() const {
  if (part_.table.empty()) return nullptr;
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(
      table_options(part_.table, part_.endpoint));
  options.owner =
      text("%c, process %d", part_.name, static_cast<int>(getpid()));
  options.ttl = kLease;
  options.request_timeout = std::chrono::seconds(1);
  options.longest_poll = milliseconds(100);
  options.on_lost = [this](ddbmutex::Loss loss) {
    report(Event::Kind::lost, now(), 0, name_of(loss));
  };
  return std::make_shared<ddbmutex::DdbMutex>(kLockName, options);
}

// Without the lock.
void Worker::update() {
  const long long number = file_.read();
  report(Event::Kind::reads, number);
  rest(between(kShortestWork, kLongestWork));
  file_.write(number + 1);
  report(Event::Kind::writes, number + 1);
}

// With it.  False if the lock was lost on the way, and nothing written.
bool Worker::update(ddbmutex::DdbMutex& mutex) {
  report(Event::Kind::waits);
  std::unique_lock<ddbmutex::DdbMutex> guard(mutex);
  lease_ends_ = Time::zero();
  report_lease(mutex);
  const long long number = file_.read();
  report(Event::Kind::reads, number);
  const bool owned = work_while_owned(mutex);
  if (owned) {
    file_.write(number + 1);
    report(Event::Kind::writes, number + 1);
  } else {
    report(Event::Kind::finds);
  }
  const Time at = now();
  report(Event::Kind::frees, at, (at + mutex.remaining()).count());
  guard.unlock();
  report(Event::Kind::freed);
  return owned;
}

bool Worker::work_while_owned(const ddbmutex::DdbMutex& mutex) {
  work_ends_ = now() + between(kShortestWork, kLongestWork);
  Time last = now();
  bool owned = true;
  bool woke = false;  // Right after owns_lock() was asked, or while it was.
  while (owned && !enough()) {
    const Time before = now();
    owned = mutex.owns_lock();
    const Time after = now();
    const bool slept_in_it = after - before >= kSleep;
    if (woke || before - last >= kSleep || (slept_in_it && !owned)) {
      report(Event::Kind::wakes, before, owned);
    }
    woke = slept_in_it && owned;
    last = after;
    if (owned) report_lease(mutex);
  }
  may_be_told_ = false;
  return owned && mutex.owns_lock();
}

// The clock is looked at first: so a process that is stopped in between claims
// too little, never too much.
void Worker::report_lease(const ddbmutex::DdbMutex& mutex) {
  const Time at = now();
  const Time left = mutex.remaining();
  if (left <= Time::zero()) return;
  const Time change = at + left - lease_ends_;
  if (change < kStep && -change < kStep) return;
  lease_ends_ = at + left;
  report(Event::Kind::holds, at, lease_ends_.count());
}

// Waits a little.
bool Worker::enough() {
  if (may_be_told_) {
    may_be_told_ = !told(static_cast<int>(kStep.count()));
    return !may_be_told_;
  }
  const Time left = work_ends_ - now();
  if (left <= Time::zero()) return true;
  rest(kStep);
  return false;
}

milliseconds Worker::between(int shortest, int longest) {
  return milliseconds(
      std::uniform_int_distribution<int>(shortest, longest)(random_));
}

}  // namespace

// --- Parts -----------------------------------------------------------------

std::vector<std::string> to_words(const Part& part) {
  return {std::string(1, part.name),
          part.file,
          std::to_string(part.updates),
          part.until_told ? "told" : "brief",
          part.table.empty() ? "-" : part.table,
          part.endpoint.empty() ? "-" : part.endpoint};
}

Part read_part(const std::vector<std::string>& words) {
  Part part;
  part.name = words.at(0).at(0);
  part.file = words.at(1);
  part.updates = std::atoi(words.at(2).c_str());
  part.until_told = words.at(3) == "told";
  if (words.at(4) != "-") part.table = words.at(4);
  if (words.at(5) != "-") part.endpoint = words.at(5);
  return part;
}

int play(const Part& part) try {
  Worker(part).play();
  return 0;
} catch (const std::exception& error) {
  const std::string line =
      to_line({part.name, Event::Kind::fails, now(), 0, error.what()});
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) return 2;
  return 1;
}

long long read_number(const std::string& file) { return File(file).read(); }

void begin_file(const std::string& file) {
  File(file, O_RDWR | O_CREAT | O_TRUNC).write(0);
}

}  // namespace demo
