#include "from_program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <utility>

#include "from_json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using State = KeyOutcome::State;

namespace {

constexpr std::chrono::seconds kPatience{60};
// Between being told to end and being killed.
constexpr milliseconds kGrace{200};
constexpr KeyForm kForm = {
    {"AccessKeyId", "SecretAccessKey", "SessionToken"}, "Expiration", false, 1};
// A process that was killed ends at once, unless it waits for a device.
constexpr milliseconds kKilledPatience{1000};
// How often it is asked whether it has ended: SIGCHLD is the program's, and may
// be ignored.
constexpr milliseconds kFirstLook{1};
constexpr milliseconds kLongestLook{20};

// --- The command -----------------------------------------------------------

class Splitter {
 public:
  explicit Splitter(std::string_view command) : rest_(command) {}

  CommandWords split() {
    while (!rest_.empty() && result_.error.empty()) take();
    end_word();
    if (result_.error.empty() && result_.words.empty()) fail("it is empty");
    return std::move(result_);
  }

 private:
  void take() {
    const char c = next();
    if (c == ' ' || c == '\t' || c == '\r' || c == '\n') {
      end_word();
    } else if (c == '\'' || c == '"') {
      take_quoted(c);
    } else if (c == '\\') {
      if (rest_.empty()) return fail("nothing is behind its last backslash");
      put(next());
    } else if (c == '\0') {
      fail("it has a NUL");
    } else {
      put(c);
    }
  }

  void take_quoted(char quote) {
    in_word_ = true;  // Also if there is nothing between.
    while (!rest_.empty()) {
      const char c = next();
      if (c == quote) return;
      const bool escapes = c == '\\' && quote == '"' && !rest_.empty() &&
                           (rest_[0] == '"' || rest_[0] == '\\');
      put(escapes ? next() : c);
    }
    fail("a quote is not closed");
  }

  char next() {
    const char c = rest_[0];
    rest_.remove_prefix(1);
    return c;
  }
  void put(char c) {
    if (c == '\0') return fail("it has a NUL");
    word_ += c;
    in_word_ = true;
  }
  void end_word() {
    if (in_word_) result_.words.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }
  void fail(const char* why) {
    result_.words.clear();
    result_.error = why;
    in_word_ = false;
    rest_ = {};
  }

  std::string_view rest_;
  std::string word_;
  bool in_word_ = false;
  CommandWords result_;
};

// --- The program -----------------------------------------------------------

// How it is started.
class Spawning {
 public:
  Spawning() {
    posix_spawn_file_actions_init(&actions_);
    posix_spawnattr_init(&attributes_);
  }
  ~Spawning() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }
  Spawning(const Spawning&) = delete;
  Spawning& operator=(const Spawning&) = delete;

  // Returns an errno, 0 if it runs.
  int run(const std::vector<std::string>& words, int output, pid_t* pid) {
    std::vector<char*> arguments;
    for (const std::string& word : words) {
      arguments.push_back(const_cast<char*>(word.c_str()));
    }
    arguments.push_back(nullptr);
    if (const int error = prepare(output)) return error;
    return posix_spawnp(pid, arguments[0], &actions_, &attributes_,
                        arguments.data(), environ);
  }

 private:
  int prepare(int output) {
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETPGROUP |
                                               POSIX_SPAWN_SETSIGMASK |
                                               POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setpgroup(&attributes_, 0);  // Its own.
    posix_spawnattr_setsigmask(&attributes_, &none);
    posix_spawnattr_setsigdefault(&attributes_, &all);
    // The pipe first: it may be one of the three itself.
    int error = posix_spawn_file_actions_adddup2(&actions_, output, 1);
    for (const int fd : {0, 2}) {
      if (error != 0) return error;
      error = posix_spawn_file_actions_addopen(
          &actions_, fd, "/dev/null", fd == 0 ? O_RDONLY : O_WRONLY, 0);
    }
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
    // The library's own are closed by exec; this is for the program's.
    if (error == 0) {
      error = posix_spawn_file_actions_addclosefrom_np(&actions_, 3);
    }
#endif
    return error;
  }

  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

// Owns the process and our end of its pipe.
class Program {
 public:
  enum class End {
    under_way,
    exited,    // With `number` as its status.
    signaled,  // By the signal `number`.
    unseen,    // The program reaps all its children, or ignores SIGCHLD.
    late,
    stopped,  // For nobody waits for it.
    too_long,
  };

  Program() : output_(kMaxJsonBytes + 1, '\0') {}
  ~Program() {
    if (end_ == End::under_way) kill_all();
    if (pipe_ >= 0) close(pipe_);
    wipe(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int start(const std::vector<std::string>& words);  // Returns an errno.
  // REQUIRES: it was started.
  End wait(BootTime deadline, const Waker& stop);
  int number() const { return number_; }
  std::string_view output() const {
    return std::string_view(output_).substr(0, size_);
  }

 private:
  bool has_ended();
  void reap();
  void read_all();
  void signal_all(int signal) const;
  void kill_all();
  bool ends_within(milliseconds time);

  pid_t pid_ = -1;
  int pipe_ = -1;
  End end_ = End::exited;
  int number_ = 0;
  std::string output_;  // Large enough from the start: leaves no copies.
  std::size_t size_ = 0;
};

int Program::start(const std::vector<std::string>& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  pipe_ = ends[0];
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
  const int error = Spawning().run(words, ends[1], &pid_);
  close(ends[1]);
  if (error == 0) end_ = End::under_way;
  return error;
}

// It stays a zombie, so that its number and its group's remain its own.
bool Program::has_ended() {
  siginfo_t info = {};
  int result;
  do {
    result = waitid(P_PID, static_cast<id_t>(pid_), &info,
                    WEXITED | WNOHANG | WNOWAIT);
  } while (result != 0 && errno == EINTR);
  if (result != 0) {  // ECHILD: it was reaped by somebody else.
    end_ = End::unseen;
    return true;
  }
  if (info.si_pid != pid_) return false;
  end_ = info.si_code == CLD_EXITED ? End::exited : End::signaled;
  number_ = info.si_status;
  return true;
}

// REQUIRES: has_ended()
void Program::reap() {
  if (end_ == End::unseen) return;
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

// All that there is now, up to one byte too many.
void Program::read_all() {
  while (pipe_ >= 0 && size_ < output_.size()) {
    const ssize_t got = read(pipe_, &output_[size_], output_.size() - size_);
    if (got > 0) {
      size_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      close(std::exchange(pipe_, -1));
    } else if (errno != EINTR) {
      return;
    }
  }
}

// To the program itself too, should it have left its group.
void Program::signal_all(int signal) const {
  kill(-pid_, signal);
  kill(pid_, signal);
}

bool Program::ends_within(milliseconds time) {
  const BootTime until = BootClock::now() + time;
  while (!has_ended()) {
    if (BootClock::now() >= until) return false;
    poll(nullptr, 0, 2);
  }
  return true;
}

// What its descendants do about SIGTERM is not waited for.
void Program::kill_all() {
  if (has_ended() && end_ == End::unseen) return;
  signal_all(SIGTERM);
  const bool ended = ends_within(kGrace);
  if (end_ == End::unseen) return;  // Its number may be another's by now.
  signal_all(SIGKILL);
  if (ended || ends_within(kKilledPatience)) reap();
}

// Ends when the program does, whoever else still has its stdout.
Program::End Program::wait(BootTime deadline, const Waker& stop) {
  milliseconds look = kFirstLook;
  while (end_ == End::under_way) {
    const bool ended = has_ended();
    read_all();  // Afterwards: it writes nothing once it has ended.
    if (ended) {
      reap();
      break;
    }
    const bool late = BootClock::now() >= deadline;
    if (stop.woken() || late || size_ == output_.size()) {
      kill_all();
      return end_ = late           ? End::late
                    : stop.woken() ? End::stopped
                                   : End::too_long;
    }
    pollfd fds[] = {{pipe_, POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    poll(fds, 2, static_cast<int>(look.count()));
    look = std::min(look * 2, kLongestLook);
  }
  return size_ == output_.size() ? End::too_long : end_;
}

// --- Its keys --------------------------------------------------------------

KeyOutcome unstartable(const std::string& place, int error) {
  const std::string reason = place + ": the program cannot be started: " +
                             std::string(strerror(error));
  const bool passing = error == EAGAIN || error == ENOMEM || error == EMFILE ||
                       error == ENFILE || error == ETXTBSY;
  return passing ? failed_keys(reason) : broken_keys(reason);
}

// Why the way it ended is a failure; empty if it is none.
std::string failure_of(Program::End end, int number, nanoseconds took) {
  switch (end) {
    case Program::End::exited:
      if (number == 0) return "";
      return "the program ended with exit status " + std::to_string(number);
    case Program::End::signaled:
      return "the program was ended by signal " + std::to_string(number);
    case Program::End::late:
      return "the program did not end in " +
             std::to_string(
                 std::chrono::duration_cast<milliseconds>(took).count()) +
             " ms";
    case Program::End::stopped:
      return "given up, for nobody waits for it any more";
    case Program::End::too_long:
    case Program::End::unseen:
    case Program::End::under_way:
      break;
  }
  return "";
}

KeyOutcome read_document(std::string_view text, const std::string& place,
                         std::int64_t now) {
  if (text.empty()) return broken_keys(place + ": the program wrote nothing");
  const auto document = parse_json(text);
  if (!document) {
    return broken_keys(place + ": what the program wrote is no JSON object");
  }
  if (document->number("Version") != 1) {
    return broken_keys(place + ": Version in what the program wrote is not 1");
  }
  KeyOutcome outcome = keys_in_document(*document, kForm, place, now);
  if (outcome.state == State::found && outcome.ends <= BootClock::now()) {
    return failed_keys(place +
                       ": the program gave keys whose time is over already");
  }
  return outcome;
}

KeyOutcome keys_of(const std::vector<std::string>& words,
                   const std::string& place, const Fetch& fetch) {
  const BootTime began = BootClock::now();
  Program program;
  if (const int error = program.start(words)) return unstartable(place, error);
  fetch.asking("the program of " + place);
  const auto end =
      program.wait(std::min(fetch.deadline, began + kPatience), fetch.stop);
  if (end == Program::End::too_long) {
    return broken_keys(place + ": the program wrote more than 64 KiB");
  }
  const std::string failure =
      failure_of(end, program.number(), BootClock::now() - began);
  if (!failure.empty()) return failed_keys(place + ": " + failure);
  return read_document(program.output(), place, utc_now(fetch, began));
}

}  // namespace

CommandWords split_command(std::string_view command) {
  return Splitter(command).split();
}

KeySourcePtr process_keys(std::string command, std::string place) {
  CommandWords split = split_command(command);
  return source_of([split = std::move(split),
                    place = std::move(place)](const Fetch& fetch) {
    if (!split.error.empty()) {
      return broken_keys(place + ": the command is no good: " + split.error);
    }
    return keys_of(split.words, place, fetch);
  });
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
