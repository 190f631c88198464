#ifndef DDBMUTEX_NO_PROFILES
// Keys from a program that the user names: a profile's credential_process.
//
// The command is split into words as by a POSIX shell, but no shell runs and
// nothing is expanded (so in botocore).  The program gets our environment,
// none of our descriptors, and the default action for every signal.  If this
// process ignores its environment (settings.hpp), the program gets PATH and
// HOME alone.  On stdout it writes at most 64 KiB:
//
//   {"Version": 1, "AccessKeyId": "...", "SecretAccessKey": "...",
//    "SessionToken": "...", "Expiration": "2030-01-01T00:00:00Z",
//    "AccountId": "..."}
//
// The last three may be missing.
//
// The terminal.  A program may ask a person for a password, so it must be able
// to use the terminal.  The kernel lets only the foreground process group use
// it, and stops any other process that tries.
//   * If our group is in the foreground, the program stays in it (so in
//     botocore).  The terminal is not handed over to a new group: our own
//     threads may use it meanwhile, and nothing has to be restored if we are
//     killed.  Ctrl-C and Ctrl-Z reach both.  The program has until the
//     deadline.
//   * Otherwise it gets a group of its own, no input, and one minute.  If the
//     kernel stops it because it uses the terminal, it is ended at once.  In
//     our group, the kernel would stop us too.
//
// When its time is up, or nobody waits for it any more, the program and its
// descendants get SIGTERM, and soon after SIGKILL.  They are found by their
// process group if they have one, else in /proc.
//
// The outcome is `broken` if another attempt would not help: the command is
// malformed, cannot be started or is not found (status 126 or 127), asks
// something in the background, or writes something else than keys.  It is
// `failed` if the program ended with another status (it may need the network),
// by a signal or not in time, and, like in botocore and AWS's JavaScript SDK,
// if its keys have expired already.  No text shows the command or its stdout.
// The last lines of its stderr are shown, without anything that is or looks
// like a key or a token.
#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <memory>
#include <mutex>
#include <utility>

#include "../memory.hpp"
#include "../process.hpp"
#include "../system.hpp"
#include "../text.hpp"
#include "from_json.hpp"
#include "from_profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using State = KeyOutcome::State;

namespace {

constexpr std::chrono::seconds kPatience{60};
// How many bytes of its stderr are kept, and how many of these are shown.
constexpr std::size_t kMostComplaints = 8192, kMostShown = 300;
// A word of at least this length that has digits and letters in both cases
// counts as a key or a token.  So does one that has digits, and a run of so
// many letters and digits in one case, as in hexadecimal keys.
constexpr std::size_t kLikeASecret = 20, kLikeASecretInOneCase = 32;
// From SIGTERM to SIGKILL.
constexpr milliseconds kGrace{200};
// A process that was killed ends at once, unless it waits for a device.
constexpr milliseconds kKilledPatience{1000};
// How often we look whether it has ended.  SIGCHLD is no use: the program that
// contains this library may handle or ignore it.
constexpr milliseconds kFirstLook{1};
constexpr milliseconds kLongestLook{20};

// --- The terminal ----------------------------------------------------------

constexpr const char* kTerminal = "/dev/tty";

// The programs of this process that use the terminal now, and its modes before
// the first of them.
struct TerminalUse {
  Mutex mutex;
  // All below: GUARDED_BY(mutex)
  int programs = 0;
  termios modes = {};
  bool to_restore = false;
};

// Never destroyed, because other threads may still run when this process exits.
TerminalUse& terminal_use() {
  static auto* const of_process = new PerProcess<TerminalUse>;
  return of_process->get();
}

// This process's terminal, which is_ours() if it is in the foreground there.
class Terminal {
 public:
  Terminal() : fd_(open(kTerminal, O_RDWR | O_NOCTTY | O_CLOEXEC)) {
    if (fd_ < 0 || !in_foreground()) return;
    const std::lock_guard<Mutex> guard(use_.mutex);
    is_ours_ = use_.programs > 0 || tcgetattr(fd_, &use_.modes) == 0;
    if (is_ours_) ++use_.programs;
  }
  ~Terminal() {
    if (is_ours_) leave();
    if (fd_ >= 0) close(fd_);
  }
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  bool is_ours() const { return is_ours_; }
  // Turns the echo on again, which a program leaves off if it is ended while it
  // reads a password.  Happens once no program of another thread is reading
  // one.
  void restore() const {
    if (!is_ours_) return;
    const std::lock_guard<Mutex> guard(use_.mutex);
    use_.to_restore = true;
  }

 private:
  bool in_foreground() const { return tcgetpgrp(fd_) == getpgrp(); }
  // TCSANOW does not wait for pending output, which Ctrl-S may have stopped.
  void leave() const {
    const std::lock_guard<Mutex> guard(use_.mutex);
    if (--use_.programs > 0) return;
    const bool restores = std::exchange(use_.to_restore, false);
    if (restores && in_foreground()) tcsetattr(fd_, TCSANOW, &use_.modes);
  }

  TerminalUse& use_ = terminal_use();
  const int fd_;
  bool is_ours_ = false;
};

// --- Descendants of a program ----------------------------------------------

// A process.  Its number may be reused once it has ended, so it is identified
// by its start time too.
struct Process {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string began{};
};

pid_t number_in(std::string_view text) {
  pid_t number = 0;
  for (const char c : text.substr(0, 9)) {
    if (!is_digit(c)) return 0;
    number = 10 * number + (c - '0');
  }
  return number;
}

// What /proc says of it.  Its number is 0 if it has ended.
Process process_of(const std::string& pid) {
  constexpr int kParent = 4, kBegan = 22;  // Counted from 1: see proc(5).
  const SecretFile file(sigv4::join({"/proc/", pid, "/stat"}), 4096);
  const std::size_t name_ends = file.text.rfind(')');
  if (name_ends == std::string::npos) return {};
  std::string_view rest = std::string_view(file.text).substr(name_ends);
  Process process;
  for (int field = 2; field <= kBegan; ++field) {
    const std::string_view value = sigv4::cut(rest, ' ');
    if (field == kParent) process.parent = number_in(value);
    if (field == kBegan) process.began = value;
  }
  process.pid = number_in(pid);
  return process;
}

std::vector<Process> all_processes() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"),
                                                      &closedir);
  if (directory == nullptr) return all;
  while (const dirent* entry = readdir(directory.get())) {
    if (!is_digit(entry->d_name[0])) continue;
    Process process = process_of(entry->d_name);
    if (process.pid != 0) all.push_back(std::move(process));
  }
  return all;
}

// Adds the program's descendants to `known`, each once, and drops those that
// have ended: another process may have their number by now, and children.
void update_descendants(pid_t program, std::vector<Process>& known) {
  const std::vector<Process> all = all_processes();
  const auto has_ended = [&all](const Process& one) {
    return std::none_of(all.begin(), all.end(), [&one](const Process& running) {
      return running.pid == one.pid && running.began == one.began;
    });
  };
  known.erase(std::remove_if(known.begin(), known.end(), has_ended),
              known.end());
  const auto knows = [&known](pid_t pid) {
    return std::any_of(known.begin(), known.end(),
                       [pid](const Process& one) { return one.pid == pid; });
  };
  for (bool more = true; more;) {
    more = false;
    for (const Process& one : all) {
      const bool is_child = one.parent == program || knows(one.parent);
      if (!is_child || knows(one.pid)) continue;
      known.push_back(one);
      more = true;
    }
  }
}

// --- The program -----------------------------------------------------------

// As exec(3) takes them.  `words`: each with a NUL behind it.
std::vector<char*> pointers_to(std::string& words) {
  std::vector<char*> pointers;
  char* const end = words.data() + words.size();
  for (char* word = words.data(); word != end; word += strlen(word) + 1) {
    pointers.push_back(word);
  }
  pointers.push_back(nullptr);
  return pointers;
}

// The environment of the program if this process ignores its own.
std::string safe_environment() {
  std::string variables = sigv4::join({"PATH=/usr/bin:/bin", {"\0", 1}});
  const std::string home = process_environment("HOME");
  if (!home.empty()) {
    sigv4::append(variables, {"HOME=", home, {"\0", 1}});
  }
  return variables;
}

// How it is started.
struct Start {
  char* const* arguments;
  char* const* variables;
  int output;      // Becomes its stdout.
  int complaints;  // Becomes its stderr.
  bool own_group;  // Otherwise it stays in ours.
  bool reads_tty;  // Its stdin is the terminal; otherwise /dev/null.
};

// Returns an errno, 0 if it runs.
int spawn(const Start& start, pid_t* pid) {
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (start.own_group) flags |= POSIX_SPAWN_SETPGROUP;
  posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // A pipe's end may be one of the three itself, but not the target of the
  // step before it: start() sees to that.
  int error = posix_spawn_file_actions_adddup2(&actions, start.output, 1);
  if (error == 0) {
    error = posix_spawn_file_actions_adddup2(&actions, start.complaints, 2);
  }
  if (error == 0) {
    error = posix_spawn_file_actions_addopen(
        &actions, 0, start.reads_tty ? kTerminal : "/dev/null",
        start.reads_tty ? O_RDWR : O_RDONLY, 0);
  }
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
  // Our own descriptors are closed by exec.  Those of the program that contains
  // this library may not be.
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  if (error == 0) {
    error = posix_spawnp(pid, start.arguments[0], &actions, &attributes,
                         start.arguments, start.variables);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// A pipe and what came through it, which is wiped because it may hold secrets.
class Pipe {
 public:
  // Keeps up to `most` bytes: the first, or with `keeps_end` the last.
  Pipe(std::size_t most, bool keeps_end)
      : keeps_end_(keeps_end), text_(most, '\0') {}
  ~Pipe() {
    if (fd_ >= 0) close(fd_);
    sigv4::wipe(text_);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  // Returns the end to write to, a descriptor above 2; -1 and errno on failure.
  int open();
  // Reads what has arrived, without waiting.
  void read_all();
  int fd() const { return fd_; }
  bool is_full() const { return size_ == text_.size(); }
  std::string_view text() const {
    return std::string_view(text_).substr(0, size_);
  }

 private:
  void drop_the_first();

  const bool keeps_end_;
  int fd_ = -1;
  std::string text_;  // Large enough from the start: leaves no copies.
  std::size_t size_ = 0;
};

int Pipe::open() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return -1;
  fd_ = ends[0];
  fcntl(fd_, F_SETFL, O_NONBLOCK);
  const int write_end = fcntl(ends[1], F_DUPFD_CLOEXEC, 3);
  const int error = errno;
  close(ends[1]);
  errno = error;
  return write_end;
}

// Drops the first half, and the rest of the word at its end: a secret that was
// cut in the middle would not be recognised.
void Pipe::drop_the_first() {
  const std::size_t blank = text_.find_first_of(" \n", size_ / 2);
  const std::size_t gone = std::min(blank, size_);
  std::copy(text_.begin() + static_cast<std::ptrdiff_t>(gone),
            text_.begin() + static_cast<std::ptrdiff_t>(size_), text_.begin());
  size_ -= gone;
}

void Pipe::read_all() {
  while (fd_ >= 0 && (keeps_end_ || !is_full())) {
    if (is_full()) drop_the_first();
    const ssize_t got = read(fd_, &text_[size_], text_.size() - size_);
    if (got > 0) {
      size_ += static_cast<std::size_t>(got);
    } else if (got == 0) {
      close(std::exchange(fd_, -1));
    } else if (errno != EINTR) {
      return;
    }
  }
}

// Owns the process and our ends of its pipes.
class Program {
 public:
  Program() = default;
  ~Program() {
    if (end_ == End::under_way) kill_all();
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int start(std::string& words);  // Returns an errno.
  // Returns why it gave nothing; empty if it ended well, or nobody knows how it
  // ended.  REQUIRES: it was started.
  std::string wait(const Fetch& fetch);
  // Whether it would fail again.
  bool failed_for_good() const { return failed_for_good_; }
  bool wrote_too_much() const { return output_.is_full(); }
  std::string_view output() const { return output_.text(); }
  std::string_view complaints() const { return complaints_.text(); }

 private:
  enum class End {
    under_way,
    exited,    // With `number_` as its status.
    signaled,  // By the signal `number_`.
    unseen,    // Nobody knows how: others reap it, or SIGCHLD is ignored.
  };

  bool has_ended();
  bool was_refused_the_terminal() const;
  void reap();
  void read_all();
  void signal_all(int signal);
  void kill_all();
  std::string give_up(const std::string& why);
  std::string verdict();

  const Terminal terminal_{};
  std::vector<Process> descendants_{};  // Those that were signalled.
  bool failed_for_good_ = false;
  pid_t pid_ = -1;
  End end_ = End::exited;
  int number_ = 0;
  Pipe output_{kMaxJsonBytes + 1, false};
  Pipe complaints_{kMostComplaints, true};
};

int Program::start(std::string& words) {
  // These may throw, so they come before the descriptors are opened.
  const std::vector<char*> arguments = pointers_to(words);
  std::string safe = safe_environment();
  const std::vector<char*> variables = pointers_to(safe);
  const int output = output_.open();
  const int complaints = output < 0 ? -1 : complaints_.open();
  int error = complaints < 0 ? errno : 0;
  if (error == 0) {
    const bool at_terminal = terminal_.is_ours();
    error = sigv4::spawn(
        {arguments.data(), ignores_environment() ? variables.data() : environ,
         output, complaints, !at_terminal, at_terminal && isatty(0) == 1},
        &pid_);
  }
  if (output >= 0) close(output);
  if (complaints >= 0) close(complaints);
  if (error == 0) end_ = End::under_way;
  return error;
}

// Leaves a zombie, so that its number and its group's are not reused.
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

void Program::read_all() {
  output_.read_all();
  complaints_.read_all();
}

// The kernel stops a program in a background group when it uses the terminal.
bool Program::was_refused_the_terminal() const {
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info,
             WSTOPPED | WNOHANG | WNOWAIT) != 0) {
    return false;
  }
  return info.si_pid == pid_ &&
         (info.si_status == SIGTTIN || info.si_status == SIGTTOU);
}

void Program::signal_all(int signal) {
  if (!terminal_.is_ours()) {
    kill(-pid_, signal);
  } else {
    // Must not throw, because a destructor calls this.  Without memory, some
    // descendants are not found.
    has_memory_for([&] {
      update_descendants(pid_, descendants_);
      for (const Process& one : descendants_) {
        const Process now = process_of(sigv4::decimal(one.pid));
        if (now.pid != 0 && now.began == one.began) kill(one.pid, signal);
      }
    });
  }
  kill(pid_, signal);  // It may have left its group.
}

// Waits for the program to end, but not for its descendants.
void Program::kill_all() {
  bool ended = has_ended();
  for (const auto& [signal, patience] :
       {std::pair(SIGTERM, kGrace), std::pair(SIGKILL, kKilledPatience)}) {
    if (end_ == End::unseen) return;  // Its number may be another's by now.
    signal_all(signal);
    const BootTime until = BootClock::now() + patience;
    while (!(ended = has_ended()) && BootClock::now() < until) {
      poll(nullptr, 0, 2);
    }
  }
  if (ended) reap();
  terminal_.restore();
}

std::string Program::give_up(const std::string& why) {
  kill_all();
  end_ = End::unseen;
  return why;
}

// Returns when the program has ended, even if another process still has its
// stdout open.
std::string Program::wait(const Fetch& fetch) {
  const BootTime began = BootClock::now();
  const BootTime deadline = terminal_.is_ours()
                                ? fetch.deadline
                                : std::min(fetch.deadline, began + kPatience);
  milliseconds look = kFirstLook;
  for (;;) {
    const bool ended = has_ended();
    read_all();  // After has_ended(), so that nothing it wrote is missed.
    if (ended) return verdict();
    const BootTime now = BootClock::now();
    if (now >= deadline) {
      return give_up(sigv4::format("the program did not end in %s ms",
                                   (now - began) / milliseconds(1)));
    }
    if (fetch.stop.woken()) {
      return give_up("given up, because nobody waits for it any more");
    }
    if (wrote_too_much()) return give_up("");
    if (was_refused_the_terminal()) {
      failed_for_good_ = true;
      return give_up(
          "the program asks something on the terminal, but this process is in "
          "the background");
    }
    pollfd fds[] = {{output_.fd(), POLLIN, 0},
                    {complaints_.fd(), POLLIN, 0},
                    {fetch.stop.fd(), POLLIN, 0}};
    poll(fds, 3, static_cast<int>(look.count()));
    look = std::min(look * 2, kLongestLook);
  }
}

// REQUIRES: has_ended()
std::string Program::verdict() {
  reap();
  if (end_ == End::unseen || wrote_too_much()) return "";
  if (end_ == End::signaled) {
    terminal_.restore();
    return sigv4::format("the program was ended by signal %s", number_);
  }
  if (number_ == 0) return "";
  // With these a shell says that a command cannot be executed or is not found.
  failed_for_good_ = number_ == 126 || number_ == 127;
  return sigv4::format("the program ended with exit status %s", number_);
}

// --- What it wrote to stderr -------------------------------------------------

bool is_like_a_secret(std::string_view word) {
  const auto has = [word](char first, char last) {
    return std::any_of(word.begin(), word.end(),
                       [=](char c) { return c >= first && c <= last; });
  };
  if (word.size() < kLikeASecret || !has('0', '9')) return false;
  if (has('a', 'z') && has('A', 'Z')) return true;
  std::size_t run = 0;
  for (const char c : word) {
    run = sigv4::is_alphanumeric({&c, 1}, "") ? run + 1 : 0;
    if (run >= kLikeASecretInOneCase) return true;
  }
  return false;
}

// The text with "(hidden)" in place of each word that is like a key or a token.
// A word is a run of the characters that these are made of.
std::string without_likely_secrets(std::string_view text) {
  std::string shown;
  while (!text.empty()) {
    std::size_t size = 0;
    while (size < text.size() &&
           sigv4::is_alphanumeric(text.substr(size, 1), "+/=_-.")) {
      ++size;
    }
    const std::string_view word = text.substr(0, size);
    shown += is_like_a_secret(word) ? "(hidden)" : word;
    text.remove_prefix(size);
    if (text.empty()) break;
    shown += text.front();
    text.remove_prefix(1);
  }
  return shown;
}

// The last lines of its stderr, joined into one, for an error message.
// `output`: its stdout; keys there are hidden if stderr repeats them.
std::string last_words(std::string_view complaints, std::string_view output) {
  std::string lines;
  while (!complaints.empty()) {
    const std::size_t before = complaints.find_last_of("\r\n");
    const std::size_t begin = before == complaints.npos ? 0 : before + 1;
    const std::string_view line = sigv4::trimmed(complaints.substr(begin));
    complaints = complaints.substr(0, begin == 0 ? 0 : before);
    if (line.empty()) continue;
    if (!lines.empty() && lines.size() + line.size() > kMostShown) break;
    const std::string after = std::move(lines);
    lines =
        sigv4::format("%s%[ / %s%]", line.substr(0, kMostComplaints), after);
  }
  const Document document = parse_json(output);
  const Secrets secrets = {document.root().text("SecretAccessKey"),
                           document.root().text("SessionToken"), ""};
  return sigv4::shown(without_likely_secrets(lines), secrets);
}

// --- Its keys --------------------------------------------------------------

KeyOutcome read_document(std::string_view text, const std::string& place,
                         std::int64_t now) {
  constexpr KeyForm kForm = {kSessionForm.names, kSessionForm.end, false, 1};
  if (text.empty()) return broken_keys("%s: the program wrote nothing", place);
  const Document document = parse_json(text);
  if (!document.root().is_object()) {
    return broken_keys("%s: the program's output is not a JSON object", place);
  }
  if (document.root()["Version"].number() != 1) {
    return broken_keys("%s: Version in the program's output is not 1", place);
  }
  KeyOutcome outcome = keys_in(document, {}, kForm, place, now);
  if (outcome.state == State::found && outcome.ends <= BootClock::now()) {
    return failed_keys("%s: the program gave keys that have already expired",
                       place);
  }
  return outcome;
}

}  // namespace

KeyOutcome process_keys(const std::string& command, const std::string& place,
                        const Fetch& fetch) {
  std::string words;
  const char* const flaw = split_words(command, words);
  if (*flaw != '\0') {
    return broken_keys("%s: the command is malformed: %s", place, flaw);
  }
  if (ignores_environment() && words[0] != '/') {
    return broken_keys(
        "%s: the command must begin with an absolute path (this program is "
        "set-uid or set-gid, or has capabilities)",
        place);
  }
  Program program;
  const int error = program.start(words);
  if (error != 0) {
    const bool passing = error == EAGAIN || error == ENOMEM ||
                         error == EMFILE || error == ENFILE || error == ETXTBSY;
    return sigv4::not_found(passing ? State::failed : State::broken,
                            "%s: the program cannot be started: %s", place,
                            static_cast<const char*>(strerror(error)));
  }
  fetch.say(sigv4::format("the program of %s is being asked", place));
  const std::string failure = program.wait(fetch);
  KeyOutcome outcome;
  if (!failure.empty()) {
    outcome = sigv4::not_found(
        program.failed_for_good() ? State::broken : State::failed, "%s: %s",
        place, failure);
  } else if (program.wrote_too_much()) {
    outcome = broken_keys("%s: the program wrote more than 64 KiB", place);
  } else {
    outcome = read_document(program.output(), place, fetch.now());
  }
  if (outcome.state != State::found) {
    sigv4::format_to(outcome.reason, "%[: %s%]",
                     last_words(program.complaints(), program.output()));
  }
  return outcome;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
