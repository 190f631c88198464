#include "tests/world/runner.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string_view>

#include "tests/world/world.hpp"

#if defined(__SANITIZE_ADDRESS__)
#define WORLD_HAS_ASAN
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define WORLD_HAS_ASAN
#endif
#endif

// For ThreadSanitizer: a life ends with its threads, and nobody joins them.
extern "C" const char* __tsan_default_options();
extern "C" const char* __tsan_default_options() {
  return "report_thread_leaks=0";
}

namespace world {
namespace {

using std::chrono::seconds;
using std::chrono::steady_clock;

// How long a life may compute, and how long it may take on a busy machine.
#ifdef WORLD_HAS_ASAN
constexpr int kLongSeconds = 120;
#else
constexpr int kLongSeconds = 20;
#endif
constexpr int kMostSeconds = 15 * kLongSeconds;

// -- In the life's process ----------------------------------------------------

int told_to = -1;

void write_all(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(told_to, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) _exit(3);
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

void write_line(std::string_view key, std::string_view text) {
  write_all(key);
  for (;;) {  // As one line, whatever is in the text.
    const auto end = text.find('\n');
    write_all(text.substr(0, end));
    if (end == text.npos) break;
    write_all(" ");
    text.remove_prefix(end + 1);
  }
  write_all("\n");
}

void tell_of_hang(int) {
  write_line("wrong ", "hang: the life takes too long");
  _exit(2);
}

void limit_time() {
  struct sigaction action {};
  action.sa_handler = &tell_of_hang;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  for (const int number : {SIGPROF, SIGALRM}) {
    sigaction(number, &action, nullptr);
  }
  itimerval limit{};
  limit.it_value.tv_sec = kLongSeconds;
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(kMostSeconds);
}

void run_on(int cpu) {
  if (cpu < 0) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(static_cast<unsigned>(cpu), &set);
  sched_setaffinity(0, sizeof set, &set);
}

// Ends with its parent: nobody would wait for the life any more.
[[noreturn]] void be_the_life(const Plan& plan, bool tells, int cpu) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  run_on(cpu);
  limit_time();
  Hear hear;
  if (tells) {
    hear = [](const std::string& line) { write_line("story ", line); };
  }
  const Outcome outcome = live(plan, hear);
  for (const std::string& wrong : outcome.wrong) write_line("wrong ", wrong);
  write_line("acquisitions ", std::to_string(outcome.acquisitions));
  write_line("faults ", std::to_string(outcome.faults));
  write_line("length ", std::to_string(outcome.length.count()));
  _exit(0);
}

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(2);
}

}  // namespace

// -- A life apart -------------------------------------------------------------

Apart::Apart(const Plan& plan, bool tells, int cpu)
    : began_(steady_clock::now()) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) give_up("world: pipe2");
  complaints_ = memfd_create("complaints", MFD_CLOEXEC);
  if (complaints_ < 0) give_up("world: memfd_create");
  std::fflush(nullptr);
  pid_ = fork();
  if (pid_ < 0) give_up("world: fork");
  if (pid_ == 0) {
    close(ends[0]);
    told_to = ends[1];
    dup2(complaints_, STDERR_FILENO);
    be_the_life(plan, tells, cpu);
  }
  close(ends[1]);
  pipe_ = ends[0];
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
}

Apart::~Apart() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(pipe_);
  close(complaints_);
}

bool Apart::is_too_late() const {
  return steady_clock::now() - began_ > seconds(kMostSeconds + 10);
}

bool Apart::goes_on() {
  char bytes[65536];
  for (;;) {
    const ssize_t got = read(pipe_, bytes, sizeof bytes);
    if (got > 0) {
      received_.append(bytes, static_cast<std::size_t>(got));
      continue;
    }
    if (got == 0) return false;
    if (errno == EINTR) continue;
    return !is_too_late();
  }
}

void Apart::read_line(const std::string& line, Outcome& outcome) const {
  const auto space = line.find(' ');
  const std::string key = line.substr(0, space);
  const std::string text = space == line.npos ? "" : line.substr(space + 1);
  if (key == "wrong") {
    outcome.wrong.push_back(text);
  } else if (key == "story") {
    outcome.story.push_back(text);
  } else if (key == "acquisitions") {
    outcome.acquisitions = std::stoull(text);
  } else if (key == "faults") {
    outcome.faults = std::stoull(text);
  } else if (key == "length") {
    outcome.length = Time(std::stoll(text));
  }
}

Outcome Apart::outcome() {
  if (is_too_late()) kill(pid_, SIGKILL);
  int status = 0;
  waitpid(pid_, &status, 0);
  pid_ = -1;
  Outcome outcome;
  std::size_t begin = 0;
  for (std::size_t end; (end = received_.find('\n', begin)) != received_.npos;
       begin = end + 1) {
    read_line(received_.substr(begin, end - begin), outcome);
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return outcome;
  // What it wrote to stderr before it died goes into the story.
  char bytes[4000];
  const ssize_t got = pread(complaints_, bytes, sizeof bytes, 0);
  if (outcome.wrong.empty()) {
    outcome.wrong.push_back(
        WIFSIGNALED(status)
            ? "crash: signal " + std::to_string(WTERMSIG(status))
            : "crash: status " + std::to_string(WEXITSTATUS(status)));
  }
  if (got > 0) {
    outcome.story.emplace_back(bytes, static_cast<std::size_t>(got));
  }
  return outcome;
}

Outcome live_apart(const Plan& plan, bool tells) {
  Apart life(plan, tells, -1);
  do {
    pollfd fd{life.fd(), POLLIN, 0};
    poll(&fd, 1, 1000);
  } while (life.goes_on());
  return life.outcome();
}

// -- Many lives ---------------------------------------------------------------

namespace {

std::vector<int> all_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<unsigned>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

class Crowd {
 public:
  explicit Crowd(const Many& many)
      : many_(many), next_(many.first), began_(steady_clock::now()) {
    for (const int cpu : all_cpus()) slots_.push_back({cpu, 0, nullptr});
  }

  Totals live() {
    for (Slot& slot : slots_) begin(slot);
    while (step()) {
    }
    return totals_;
  }

 private:
  struct Slot {
    int cpu;
    std::uint64_t seed;
    std::unique_ptr<Apart> life;
  };

  bool may_begin() const {
    if (many_.count && next_ - many_.first >= *many_.count) return false;
    if (many_.until_wrong) return totals_.wrong == 0 && computed() < many_.time;
    return steady_clock::now() - began_ < many_.time;
  }

  // The time that all ended lives have computed.  Unlike real time, it does not
  // depend on what else the machine does.
  static seconds computed() {
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    return seconds(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  }

  void begin(Slot& slot) {
    slot.life = nullptr;
    if (!may_begin()) return;
    slot.seed = next_++;
    slot.life = std::make_unique<Apart>(draw_plan(slot.seed), false, slot.cpu);
  }

  // False once nobody lives.
  bool step() {
    std::vector<pollfd> fds;
    for (const Slot& slot : slots_) {
      if (slot.life) fds.push_back({slot.life->fd(), POLLIN, 0});
    }
    if (fds.empty()) return false;
    poll(fds.data(), fds.size(), 500);
    for (Slot& slot : slots_) {
      if (!slot.life || slot.life->goes_on()) continue;
      count(slot.seed, slot.life->outcome());
      begin(slot);
    }
    return true;
  }

  void count(std::uint64_t seed, const Outcome& outcome) {
    ++totals_.lives;
    totals_.acquisitions += outcome.acquisitions;
    totals_.faults += outcome.faults;
    if (outcome.wrong.empty()) return;
    ++totals_.wrong;
    totals_.failures.push_back(seed);
    for (const std::string& wrong : outcome.wrong) {
      std::printf("seed %" PRIu64 ": %s\n", seed, wrong.c_str());
    }
    std::fflush(stdout);
  }

  const Many many_;
  std::uint64_t next_;
  const steady_clock::time_point began_;
  std::vector<Slot> slots_;
  Totals totals_;
};

}  // namespace

Totals live_many(const Many& many) { return Crowd(many).live(); }

}  // namespace world
