#include "examples/ddbmutex/signals.hpp"

#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace command {
namespace {

bool is_ignored(int signal) {
  struct sigaction action = {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

Signals::Signals() : ignored_children_(is_ignored(SIGCHLD)) {
  // If it were ignored, it could not be known how a child ended.
  signal(SIGCHLD, SIG_DFL);
  sigset_t events;
  sigemptyset(&events);
  for (const int number : {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2,
                           SIGWINCH, SIGTSTP}) {
    if (!is_ignored(number)) sigaddset(&events, number);
  }
  sigaddset(&events, SIGCONT);
  sigaddset(&events, SIGCHLD);
  sigset_t blocked = events;
  sigaddset(&blocked, SIGTTOU);  // See Terminal.
  sigaddset(&blocked, SIGPIPE);  // Nobody may hear a complaint.
  fd_ = signalfd(-1, &events, SFD_CLOEXEC | SFD_NONBLOCK);
  if (fd_ < 0) {
    throw std::system_error(errno, std::generic_category(), "signalfd");
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &before_);
}

Signals::~Signals() { close(fd_); }

void Signals::restore() const {
  if (ignored_children_) signal(SIGCHLD, SIG_IGN);
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

int Signals::next() const {
  signalfd_siginfo info;
  const bool is_one = read(fd_, &info, sizeof info) == sizeof info;
  return is_one ? static_cast<int>(info.ssi_signo) : 0;
}

bool Signals::ends(int signal) {
  return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM ||
         signal == SIGHUP;
}

// No system call tells, so a process of our group tries it.
bool Signals::can_stop() {
  const pid_t probe = fork();
  if (probe == 0) {
    signal(SIGTSTP, SIG_DFL);
    suffer(SIGTSTP);
    _exit(0);
  }
  int status = 0;
  while (probe > 0 && waitpid(probe, &status, WUNTRACED) < 0 &&
         errno == EINTR) {
  }
  if (!WIFSTOPPED(status)) return false;
  kill(probe, SIGKILL);
  waitpid(probe, nullptr, 0);
  return true;
}

bool Signals::suffer(int signal) {
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, signal);
  raise(signal);
  sigset_t before;
  pthread_sigmask(SIG_UNBLOCK, &only, &before);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // A stop discards an earlier SIGCONT: one that is pending came after it.
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, SIGCONT) == 1;
}

}  // namespace command
