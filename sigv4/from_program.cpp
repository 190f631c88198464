#if !defined(DDBMUTEX_NO_PROGRAMS) && !defined(DDBMUTEX_NO_PROFILES)
// Keys that a program of the user's gives: a profile's credential_process.
//
// The command is taken apart as a POSIX shell would, but no shell runs and
// nothing is expanded, as botocore has it.  The program gets our environment,
// no input, none of our files, a process group of its own and all signals as
// they are by default.  What it says on stderr nobody sees; on stdout it writes
// at most 64 KiB:
//
//   {"Version": 1, "AccessKeyId": "...", "SecretAccessKey": "...",
//    "SessionToken": "...", "Expiration": "2030-01-01T00:00:00Z",
//    "AccountId": "..."}
//
// The last three may be missing.  It has a minute, or until the deadline if
// that is sooner, or until nobody waits for it any more; then its group is told
// to end, and soon after killed.
//
// `broken` is what trying again does not mend: a command that cannot be taken
// apart or started, a document that is none.  `failed` is a program that ended
// with another status than 0 (it may want the network), by a signal or not in
// time, and, as with botocore and AWS's JavaScript SDK, keys whose time is over
// already.  No text shows what it wrote or what the command is.
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
#include "from_profile.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::chrono::milliseconds;
using State = KeyOutcome::State;

namespace {

constexpr std::chrono::seconds kPatience{60};
// Between being told to end and being killed.
constexpr milliseconds kGrace{200};
// A process that was killed ends at once, unless it waits for a device.
constexpr milliseconds kKilledPatience{1000};
// How often it is asked whether it has ended: SIGCHLD is the program's, and may
// be ignored.
constexpr milliseconds kFirstLook{1};
constexpr milliseconds kLongestLook{20};

// --- The program -----------------------------------------------------------

// Starts it, with `output` as its stdout.  Returns an errno, 0 if it runs.
int spawn(std::string& words, int output, pid_t* pid) {
  std::vector<char*> arguments;
  char* const end = words.data() + words.size();
  for (char* word = words.data(); word != end; word += strlen(word) + 1) {
    arguments.push_back(word);
  }
  arguments.push_back(nullptr);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP |
                                            POSIX_SPAWN_SETSIGMASK |
                                            POSIX_SPAWN_SETSIGDEF);
  posix_spawnattr_setpgroup(&attributes, 0);  // Its own.
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  // The pipe first: it may be one of the three itself.
  int error = posix_spawn_file_actions_adddup2(&actions, output, 1);
  for (const int fd : {0, 2}) {
    if (error != 0) break;
    error = posix_spawn_file_actions_addopen(&actions, fd, "/dev/null",
                                             fd == 0 ? O_RDONLY : O_WRONLY, 0);
  }
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
  // The library's own are closed by exec; this is for the program's.
  if (error == 0) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
#endif
  if (error == 0) {
    error = posix_spawnp(pid, arguments[0], &actions, &attributes,
                         arguments.data(), environ);
  }
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  return error;
}

// Owns the process and our end of its pipe.
class Program {
 public:
  Program() : output_(kMaxJsonBytes + 1, '\0') {}
  ~Program() {
    if (end_ == End::under_way) kill_all();
    if (pipe_ >= 0) close(pipe_);
    sigv4::wipe(output_);
  }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  int start(std::string& words);  // Returns an errno.
  // Returns why nothing is to be had of it; empty if it ended as it should, or
  // nobody knows how.  REQUIRES: it was started.
  std::string wait(BootTime deadline, const Waker& stop);
  bool wrote_too_much() const { return size_ == output_.size(); }
  std::string_view output() const {
    return std::string_view(output_).substr(0, size_);
  }

 private:
  enum class End {
    under_way,
    exited,    // With `number_` as its status.
    signaled,  // By the signal `number_`.
    unseen,    // The program reaps all its children, or ignores SIGCHLD.
  };

  bool has_ended();
  void reap();
  void read_all();
  void kill_all();

  pid_t pid_ = -1;
  int pipe_ = -1;
  End end_ = End::exited;
  int number_ = 0;
  std::string output_;  // Large enough from the start: leaves no copies.
  std::size_t size_ = 0;
};

int Program::start(std::string& words) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return errno;
  pipe_ = ends[0];
  fcntl(pipe_, F_SETFL, O_NONBLOCK);
  const int error = sigv4::spawn(words, ends[1], &pid_);
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

// What its descendants do about SIGTERM is not waited for.
void Program::kill_all() {
  bool ended = has_ended();
  for (const auto& [signal, patience] :
       {std::pair(SIGTERM, kGrace), std::pair(SIGKILL, kKilledPatience)}) {
    if (end_ == End::unseen) return;  // Its number may be another's by now.
    kill(-pid_, signal);
    kill(pid_, signal);  // Should it have left its group.
    const BootTime until = BootClock::now() + patience;
    while (!(ended = has_ended()) && BootClock::now() < until) {
      poll(nullptr, 0, 2);
    }
  }
  if (ended) reap();
}

// Ends when the program does, whoever else still has its stdout.
std::string Program::wait(BootTime deadline, const Waker& stop) {
  const BootTime began = BootClock::now();
  milliseconds look = kFirstLook;
  for (;;) {
    const bool ended = has_ended();
    read_all();  // Afterwards: it writes nothing once it has ended.
    if (ended) break;
    const BootTime now = BootClock::now();
    if (now >= deadline || stop.woken() || wrote_too_much()) {
      kill_all();
      end_ = End::unseen;
      if (now >= deadline) {
        return sigv4::format("the program did not end in %s ms",
                             (now - began) / milliseconds(1));
      }
      return stop.woken() ? "given up, because nobody waits for it any more"
                          : "";
    }
    pollfd fds[] = {{pipe_, POLLIN, 0}, {stop.fd(), POLLIN, 0}};
    poll(fds, 2, static_cast<int>(look.count()));
    look = std::min(look * 2, kLongestLook);
  }
  reap();
  if (end_ == End::unseen || wrote_too_much()) return "";
  if (end_ == End::signaled) {
    return sigv4::format("the program was ended by signal %s", number_);
  }
  if (number_ == 0) return "";
  return sigv4::format("the program ended with exit status %s", number_);
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

const char* split_command(std::string_view command, std::string& words) {
  if (command.find('\0') != command.npos) return "it contains a NUL";
  bool in_word = false;  // Also behind quotes with nothing between.
  char quote = '\0';     // That is open.
  for (std::size_t i = 0; i < command.size(); ++i) {
    char c = command[i];
    const char behind = i + 1 < command.size() ? command[i + 1] : '\0';
    const bool escapes =
        c == '\\' &&
        (quote == '\0' || (quote == '"' && (behind == '"' || behind == '\\')));
    const bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
    if (quote == '\0' && blank) {
      if (std::exchange(in_word, false)) words += '\0';
      continue;
    }
    in_word = true;
    if (escapes) {
      if (++i == command.size()) return "nothing follows its last backslash";
      words += behind;
    } else if (quote == '\0' && (c == '\'' || c == '"')) {
      quote = c;
    } else if (c == quote) {
      quote = '\0';
    } else {
      words += c;
    }
  }
  if (quote != '\0') return "a quote is not closed";
  if (in_word) words += '\0';
  return words.empty() ? "it is empty" : "";
}

KeyOutcome process_keys(const std::string& command, const std::string& place,
                        const Fetch& fetch) {
  std::string words;
  const char* const flaw = split_command(command, words);
  if (*flaw != '\0') {
    return broken_keys("%s: the command is malformed: %s", place, flaw);
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
  const std::string failure = program.wait(
      std::min(fetch.deadline, BootClock::now() + kPatience), fetch.stop);
  if (!failure.empty()) return failed_keys("%s: %s", place, failure);
  if (program.wrote_too_much()) {
    return broken_keys("%s: the program wrote more than 64 KiB", place);
  }
  return read_document(program.output(), place, fetch.now());
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
