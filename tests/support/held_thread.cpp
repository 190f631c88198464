#include "tests/support/held_thread.hpp"

#include <semaphore.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "tests/support/waiting.hpp"

namespace tests {
namespace {

#ifdef SYS_poll
constexpr long kPoll = SYS_poll;
#else  // Not every architecture has it.
constexpr long kPoll = SYS_ppoll;
#endif

sem_t held;
sem_t go_on;

}  // namespace

std::set<pid_t> threads_by_id() {
  std::set<pid_t> all;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    all.insert(std::stoi(entry.path().filename()));
  }
  return all;
}

std::string thread_name(const std::string& thread) {
  std::ifstream file("/proc/self/task/" + thread + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

pid_t polling_thread(const std::set<pid_t>& before, const std::string& name) {
  pid_t polling = 0;
  const bool polls = eventually([&] {
    for (const pid_t thread : threads_by_id()) {
      const std::string id = std::to_string(thread);
      if (before.count(thread) != 0 || thread_name(id) != name) continue;
      std::ifstream file("/proc/self/task/" + id + "/syscall");
      long number = -1;
      file >> number;
      if (number == kPoll || number == SYS_ppoll) polling = thread;
    }
    return polling != 0;
  });
  if (!polls) throw std::runtime_error("no thread polls in " + name);
  return polling;
}

HeldThread::HeldThread(pid_t thread) {
  sem_init(&held, 0, 0);
  sem_init(&go_on, 0, 0);
  struct sigaction action = {};
  action.sa_handler = [](int) {
    const int saved = errno;
    sem_post(&held);
    while (sem_wait(&go_on) != 0) {
    }
    errno = saved;
  };
  sigaction(SIGTRAP, &action, &old_);
  if (syscall(SYS_tgkill, getpid(), thread, SIGTRAP) != 0) {
    throw std::runtime_error("no thread " + std::to_string(thread));
  }
  while (sem_wait(&held) != 0) {
  }
}

HeldThread::~HeldThread() { let_go(); }

void HeldThread::let_go() {
  if (!holds_) return;
  holds_ = false;
  sem_post(&go_on);
  sigaction(SIGTRAP, &old_, nullptr);
}

}  // namespace tests
