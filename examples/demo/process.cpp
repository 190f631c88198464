#include "examples/demo/process.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "examples/demo/text.hpp"

namespace demo {
namespace {

volatile sig_atomic_t caught = 0;

[[noreturn]] void become(char* const* arguments, const Process::Files& files,
                         pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // It died before that.
  signal(SIGPIPE, SIG_DFL);
  if (files.in >= 0) dup2(files.in, STDIN_FILENO);
  if (files.out >= 0) dup2(files.out, STDOUT_FILENO);
  if (files.error >= 0) dup2(files.error, STDERR_FILENO);
  execvp(arguments[0], arguments);
  const char* why = strerror(errno);
  if (write(STDERR_FILENO, why, strlen(why)) < 0) _exit(126);
  _exit(127);
}

pid_t spawn(const std::vector<std::string>& command,
            const Process::Files& files) {
  std::vector<char*> arguments;
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), files, parent);
  if (child < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot fork");
  }
  return child;
}

}  // namespace

// --- Files -----------------------------------------------------------------

Fd::~Fd() { close(fd_); }

Pipe::Ends Pipe::make() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) {
    throw std::system_error(errno, std::generic_category(), "no pipe");
  }
  return {ends[0], ends[1]};
}

// --- Process ---------------------------------------------------------------

Process::Process(const std::vector<std::string>& command, const Files& files)
    : pid_(spawn(command, files)) {}

Process::~Process() {
  send(SIGKILL);
  wait(0);
}

void Process::send(int signal) {
  // Until waited for, its pid is its own.
  if (!status_) kill(pid_, signal);
}

void Process::stop() {
  send(SIGSTOP);
  wait(WUNTRACED);
}

std::optional<int> Process::ended() {
  wait(WNOHANG);
  return status_;
}

void Process::wait(int options) {
  if (status_) return;
  int status = 0;
  pid_t changed;
  do {
    changed = waitpid(pid_, &status, options);
  } while (changed < 0 && errno == EINTR);
  if (changed == pid_ && !WIFSTOPPED(status)) status_ = status;
}

std::string described(int status) {
  if (WIFSIGNALED(status)) return text("killed by signal %d", WTERMSIG(status));
  return text("ended with status %d", WEXITSTATUS(status));
}

// --- Folder ----------------------------------------------------------------

Folder::Folder() {
  const char* base = std::getenv("TMPDIR");
  path_ = base != nullptr && *base != '\0' ? base : "/tmp";
  path_ += "/ddbmutex-demo-XXXXXX";
  if (mkdtemp(path_.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make " + path_);
  }
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

// --- Signals ---------------------------------------------------------------

void remember_signals() {
  struct sigaction action = {};
  action.sa_handler = [](int number) { caught = number; };
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) {
    sigaction(number, &action, nullptr);
  }
  // Whoever reads what we print may go; the table is to be deleted even so.
  signal(SIGPIPE, SIG_IGN);
}

int remembered_signal() { return caught; }

}  // namespace demo
