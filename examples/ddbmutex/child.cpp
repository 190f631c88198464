#include "examples/ddbmutex/child.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "examples/ddbmutex/files.hpp"
#include "examples/ddbmutex/group.hpp"

namespace command {
namespace {

std::vector<char*> pointers(const Child::Words& words) {
  std::vector<char*> all;
  for (const std::string& word : words) {
    all.push_back(const_cast<char*>(word.c_str()));
  }
  all.push_back(nullptr);
  return all;
}

// --- Variables that name a process -------------------------------------------

// systemd sets these for the process that it starts.  If that is this program,
// they are meant for the command.  (sd_listen_fds() and sd_watchdog_enabled()
// do nothing in any other process.)
constexpr const char* kNamesProcess[] = {
    "LISTEN_PID=", "SYSTEMD_EXEC_PID=", "WATCHDOG_PID="};
constexpr std::size_t kRoom = 12;  // For a process id and the final zero.

// Makes room for another process id in each variable that names this process.
// Returns where to write it.
std::vector<char*> make_room_for_process_ids(Child::Words& variables) {
  const std::string own = std::to_string(getpid());
  const bool listens = std::find(variables.begin(), variables.end(),
                                 "LISTEN_PID=" + own) != variables.end();
  // It identifies the same process by another number.  Programs do without it.
  const auto is_other_form = [listens](const std::string& one) {
    return listens && one.rfind("LISTEN_PIDFDID=", 0) == 0;
  };
  variables.erase(
      std::remove_if(variables.begin(), variables.end(), is_other_form),
      variables.end());
  std::vector<char*> rooms;
  for (std::string& variable : variables) {
    for (const std::string name : kNamesProcess) {
      if (variable != name + own) continue;
      variable.resize(name.size() + kRoom);
      rooms.push_back(&variable[name.size()]);
    }
  }
  return rooms;
}

// Orphans fall to the thread that runs main().  Children of other threads are
// not ours to reap: the library starts programs that fetch keys.
constexpr int kOfThisThread = __WNOTHREAD;

// --- In the child: only calls that are safe after a fork ---------------------

// snprintf() is not safe.
void write_process_id(char* to) {
  char digits[kRoom] = "";
  char* first = digits + kRoom - 1;
  for (pid_t left = getpid(); left > 0; left /= 10) {
    *--first = static_cast<char>('0' + left % 10);
  }
  std::copy(first, digits + kRoom, to);
}

// Has exec close all files except these.  (libcurl opens files without that.)
void close_on_exec_all_but(const std::vector<int>& inherited) {
  auto next = inherited.begin();
  for (int file = 0; file < most_files(); ++file) {
    while (next != inherited.end() && *next < file) ++next;
    const bool is_kept = next != inherited.end() && *next == file;
    if (!is_kept) fcntl(file, F_SETFD, FD_CLOEXEC);
  }
}

[[noreturn]] void become(char* const* command, char* const* environment,
                         const Signals& signals, const std::vector<int>& files,
                         int gate) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // In case the watcher is killed with us.
  char word;
  if (recv(gate, &word, 1, 0) != 1) _exit(127);  // The program has ended.
  close_on_exec_all_but(files);
  signals.restore();
  execvpe(command[0], command, environment);
  const int error = errno;
  send(gate, &error, sizeof error, MSG_NOSIGNAL);
  _exit(127);
}

}  // namespace

Child::Child(const Words& command, Words environment, const Signals& signals,
             const std::vector<int>& files) {
  const std::vector<char*> words = pointers(command);
  const std::vector<char*> rooms = make_room_for_process_ids(environment);
  const std::vector<char*> variables = pointers(environment);
  // Orphans of the command become our children, and we reap them.  So the group
  // is seen to be empty, even where process 1 does not reap.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "no socket");
  }
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);  // Only the parent has it: recv() then sees it end.
    for (char* room : rooms) write_process_id(room);
    become(words.data(), variables.data(), signals, files, ends[1]);
  }
  const int error = errno;
  close(ends[1]);
  gate_ = ends[0];
  if (pid_ < 0) {
    close(gate_);
    throw std::system_error(error, std::generic_category(), "cannot fork");
  }
  setpgid(pid_, pid_);  // The child does this too: whoever comes first.
}

Child::~Child() {
  if (gate_ < 0) return;
  close(gate_);
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

int Child::go() {
  const char word = 'g';
  send(gate_, &word, 1, MSG_NOSIGNAL);
  int error = 0;  // An exec that succeeds closes the other end.
  if (recv(gate_, &error, sizeof error, 0) != sizeof error) error = 0;
  close(gate_);
  gate_ = -1;
  return error;
}

void Child::signal(int number) const {
  if (is_buried_) {  // Its process id may be another process's by now.
    kill(-pid_, number);
  } else {
    signal_all(pid_, number);
  }
}

int Child::reap(pid_t watcher) {
  const int stopped_by = look_at_command();
  if (!ending_) {
    reap_orphans(watcher);
    return stopped_by;
  }
  reap_hidden_orphans(watcher);
  Left left = left_in_group_of(pid_);
  if (left == Left::unknown) {
    // Without /proc, whatever lives is only seen once the command is reaped.
    bury();
    reap_orphans(watcher);
    left = kill(-pid_, 0) != 0 && errno == ESRCH ? Left::none : Left::some;
  }
  is_gone_ = left == Left::none;
  return 0;
}

// The command may have moved to another group.
int Child::look_at_command() {
  int stopped_by = 0;
  siginfo_t info = {};
  while (!ending_ &&
         waitid(P_PID, static_cast<id_t>(pid_), &info,
                WSTOPPED | WCONTINUED | WNOHANG) == 0 &&
         info.si_pid != 0) {
    stopped_by = info.si_code == CLD_CONTINUED ? 0 : info.si_status;
    info = {};
  }
  info = {};
  if (!ending_ &&
      waitid(P_PID, static_cast<id_t>(pid_), &info,
             WEXITED | WNOHANG | WNOWAIT) == 0 &&
      info.si_pid != 0) {
    ending_.emplace();
    if (info.si_code == CLD_EXITED) {
      ending_->status = info.si_status;
    } else {
      ending_->signal = info.si_status;
    }
  }
  return stopped_by;
}

// Stops at the command or the watcher if one of them has ended: waitid() would
// find it again.
void Child::reap_orphans(pid_t watcher) const {
  const auto first = [] {
    siginfo_t info = {};
    waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT | kOfThisThread);
    return info.si_pid;
  };
  const pid_t command = is_buried_ ? 0 : pid_;
  for (pid_t pid; (pid = first()) != 0 && pid != command && pid != watcher;) {
    waitpid(pid, nullptr, 0);
  }
}

// The same while the command is a zombie.
void Child::reap_hidden_orphans(pid_t watcher) const {
  Processes all;
  while (const pid_t pid = all.next()) {
    if (pid == pid_ || pid == watcher) continue;
    waitpid(pid, nullptr, WNOHANG | kOfThisThread);
  }
}

void Child::bury() {
  if (is_buried_) return;
  is_buried_ = true;
  while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

}  // namespace command
