#include "tests/support/process.hpp"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "sigv4/boot_clock.hpp"

using ddbmutex::BootClock;
using ddbmutex::BootTime;

namespace tests {
namespace {

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("process: " + what);
}

// False if nothing came until `end`.
bool readable(int fd, BootTime end) {
  for (;;) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(end - BootClock::now());
    pollfd what = {fd, POLLIN, 0};
    const int count =
        poll(&what, 1, left.count() > 0 ? static_cast<int>(left.count()) : 0);
    if (count > 0) return true;
    if (count == 0 && BootClock::now() >= end) return false;
    if (count < 0 && errno != EINTR) fail("poll failed");
  }
}

std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> all;
  for (const std::string& word : words) {
    all.push_back(const_cast<char*>(word.c_str()));
  }
  all.push_back(nullptr);
  return all;
}

// In the child: only calls that are safe after a fork of a threaded program.
[[noreturn]] void become(char* const* command, char* const* environment,
                         int talk, int complaints, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // It died before that.
  dup2(talk, STDIN_FILENO);
  dup2(talk, STDOUT_FILENO);
  dup2(complaints, STDERR_FILENO);
  execve(command[0], command, environment);
  const char* why = strerror(errno);
  if (write(complaints, why, strlen(why)) < 0) _exit(126);
  _exit(127);
}

bool starts_with(const std::string& text, const char* with) {
  return text.compare(0, strlen(with), with) == 0;
}

}  // namespace

// --- Channel ---------------------------------------------------------------

Channel::Channel(Channel&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      received_(std::move(other.received_)) {}

Channel::~Channel() {
  if (fd_ >= 0) close(fd_);
}

void Channel::say(const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t sent = send(fd_, text.data(), text.size(), MSG_NOSIGNAL);
  if (sent != static_cast<ssize_t>(text.size())) {
    fail("nobody hears '" + line + "'");
  }
}

std::string Channel::line(std::chrono::nanoseconds within) {
  std::size_t end;
  while ((end = received_.find('\n')) == std::string::npos) receive(within);
  const std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void Channel::receive(std::chrono::nanoseconds within) {
  if (!readable(fd_, BootClock::now() + within)) fail("it says nothing");
  std::array<char, 4096> bytes;
  const ssize_t size = recv(fd_, bytes.data(), bytes.size(), 0);
  if (size <= 0) fail("it ended after '" + received_ + "'");
  received_.append(bytes.data(), static_cast<std::size_t>(size));
}

void Channel::hang_up() { shutdown(fd_, SHUT_WR); }

// --- Reception -------------------------------------------------------------

Reception::Reception() {
  std::string name = "/tmp/ddbmutex-XXXXXX";  // Short: a socket's path is.
  if (mkdtemp(name.data()) == nullptr) fail("no directory");
  directory_ = name;
  path_ = name + "/socket";
  fd_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  if (bind(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(fd_, 16) != 0) {
    fail("no socket at " + path_);
  }
}

Reception::~Reception() {
  close(fd_);
  unlink(path_.c_str());
  rmdir(directory_.c_str());
}

Channel Reception::accept() {
  if (!readable(fd_, BootClock::now() + kPlenty)) fail("nobody calls");
  return Channel(accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
}

// --- Process ---------------------------------------------------------------

std::vector<std::string> whole_environment() {
  std::vector<std::string> all;
  for (char** variable = environ; *variable != nullptr; ++variable) {
    all.emplace_back(*variable);
  }
  return all;
}

std::vector<std::string> clean_environment() {
  std::vector<std::string> kept;
  for (const std::string& text : whole_environment()) {
    if (starts_with(text, "AWS_") || starts_with(text, "FAKETIME") ||
        starts_with(text, "LD_PRELOAD=") || starts_with(text, "TERM=")) {
      continue;
    }
    kept.push_back(text);
  }
  kept.push_back("AWS_CONFIG_FILE=/dev/null");
  kept.push_back("AWS_SHARED_CREDENTIALS_FILE=/dev/null");
  kept.push_back("AWS_EC2_METADATA_DISABLED=true");
  return kept;
}

std::string program_path(const std::string& name) {
  const char* build = getenv("DDBMUTEX_BUILD");
  if (build == nullptr) fail("DDBMUTEX_BUILD does not name the build");
  return std::string(build) + "/tests/" + name;
}

Process::Process(const ProcessSettings& settings)
    : complaints_(memfd_create("complaints", MFD_CLOEXEC)) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    fail("no socket pair");
  }
  channel_.emplace(ends[0]);
  const std::vector<char*> command = pointers(settings.command);
  const std::vector<char*> environment = pointers(settings.environment);
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    become(command.data(), environment.data(), ends[1], complaints_, parent);
  }
  close(ends[1]);
  if (pid_ < 0) fail("cannot fork");
}

Process::~Process() {
  if (status_ < 0 && pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(complaints_);
  // What libfaketime leaves of a process that was killed.
  const std::string pid = std::to_string(pid_);
  unlink(("/dev/shm/faketime_shm_" + pid).c_str());
  unlink(("/dev/shm/sem.faketime_sem_" + pid).c_str());
}

void Process::signal(int number) const {
  if (status_ >= 0) fail("it has ended already");
  kill(pid_, number);
}

bool Process::has_ended() {
  int status = 0;
  if (status_ < 0 && waitpid(pid_, &status, WNOHANG) == pid_) {
    status_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return status_ >= 0;
}

int Process::wait(std::chrono::nanoseconds within) {
  const BootTime end = BootClock::now() + within;
  while (!has_ended()) {
    if (BootClock::now() >= end) fail("it does not end: " + complaints());
    poll(nullptr, 0, 2);
  }
  return status_;
}

void Process::wait_until_stopped() const {
  siginfo_t info = {};
  if (waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WNOWAIT) != 0 ||
      info.si_code != CLD_STOPPED) {
    fail("it was not stopped: " + complaints());
  }
}

std::string Process::complaints() const {
  std::string text(1 << 16, '\0');
  const ssize_t size = pread(complaints_, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

}  // namespace tests
