#include "examples/ddbmutex/child.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "examples/ddbmutex/files.hpp"

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

// --- In the child: only calls that are safe after a fork ---------------------

// Not all files of ours are closed by exec: libcurl has some that are not.
void leave_files(const std::vector<int>& but) {
  auto kept = but.begin();
  for (int file = 0; file < most_files(); ++file) {
    while (kept != but.end() && *kept < file) ++kept;
    const bool is_kept = kept != but.end() && *kept == file;
    if (!is_kept) fcntl(file, F_SETFD, FD_CLOEXEC);
  }
}

[[noreturn]] void become(char* const* command, char* const* environment,
                         const Signals& signals, const std::vector<int>& files,
                         int gate) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // Should the watcher be killed with us.
  char word;
  if (recv(gate, &word, 1, 0) != 1) _exit(127);  // The program has ended.
  leave_files(files);
  signals.restore();
  execvpe(command[0], command, environment);
  const int error = errno;
  send(gate, &error, sizeof error, MSG_NOSIGNAL);
  _exit(127);
}

}  // namespace

Child::Child(const Words& command, const Words& environment,
             const Signals& signals, const std::vector<int>& files) {
  const std::vector<char*> words = pointers(command);
  const std::vector<char*> variables = pointers(environment);
  // What the command leaves behind comes to us when its parent ends: so it can
  // be seen when the group is empty, even where process 1 does not reap.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    throw std::system_error(errno, std::generic_category(), "no socket");
  }
  pid_ = fork();
  if (pid_ == 0) {
    close(ends[0]);  // Ours alone, so that it is seen when we end.
    become(words.data(), variables.data(), signals, files, ends[1]);
  }
  const int error = errno;
  close(ends[1]);
  gate_ = ends[0];
  if (pid_ < 0) {
    close(gate_);
    throw std::system_error(error, std::generic_category(), "cannot fork");
  }
  setpgid(pid_, pid_);  // Whoever comes first.
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

void Child::signal(int number) const { kill(-pid_, number); }

int Child::reap(pid_t but) {
  int stopped_by = 0;
  reap_group(stopped_by);
  reap_strangers(but);
  return stopped_by;
}

void Child::reap_group(int& stopped_by) {
  const auto next = [this](int* status) {
    // The command itself might have gone to another group.
    const pid_t pid =
        status_ ? 0 : waitpid(pid_, status, WNOHANG | WUNTRACED | WCONTINUED);
    return pid > 0 ? pid : waitpid(-pid_, status, WNOHANG);
  };
  int status = 0;
  for (pid_t pid; (pid = next(&status)) > 0;) {
    if (pid != pid_) continue;  // An orphan of its group.
    if (WIFSTOPPED(status)) stopped_by = WSTOPSIG(status);
    if (WIFCONTINUED(status)) stopped_by = 0;
    if (WIFEXITED(status) || WIFSIGNALED(status)) status_ = status;
  }
}

// Orphans that have left for a session of their own.  Others are not ours to
// reap: the library starts programs that fetch keys.
void Child::reap_strangers(pid_t but) const {
  siginfo_t info = {};
  while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid != 0 && info.si_pid != but &&
         getsid(info.si_pid) != getsid(0)) {
    waitpid(info.si_pid, nullptr, 0);
    info = {};
  }
}

bool Child::is_gone() const {
  return status_ && kill(-pid_, 0) != 0 && errno == ESRCH;
}

}  // namespace command
