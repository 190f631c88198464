// A file by which processes show until when they have lived: each has a slot
// (tests/processes/stamper.cpp).
#ifndef DDBMUTEX_TESTS_SUPPORT_STAMPS_HPP
#define DDBMUTEX_TESTS_SUPPORT_STAMPS_HPP

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "sigv4/boot_clock.hpp"

namespace tests {

class Stamps {
 public:
  static constexpr int kSlots = 4;
  struct Slot {
    std::atomic<std::int64_t> pid{0};   // 0: nobody has begun.
    std::atomic<std::int64_t> last{0};  // Nanoseconds on the boot clock.
  };

  // Makes the file, or maps the one that is there.
  explicit Stamps(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    struct stat about = {};
    const bool is_new = fstat(fd, &about) == 0 && about.st_size == 0;
    void* memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, kSize) == 0) {
      memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (memory == MAP_FAILED) throw std::runtime_error("no stamps in " + path);
    file_ = static_cast<File*>(memory);  // Zeros are as good as constructed.
    if (is_new) file_->maker = getpid();
  }
  ~Stamps() { munmap(file_, kSize); }
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;

  Slot& slot(int number) const { return file_->slots[number]; }
  std::chrono::nanoseconds last(int number) const {
    return std::chrono::nanoseconds(slot(number).last.load());
  }
  // Somebody has begun to stamp there.
  bool is_used(int number) const { return slot(number).last != 0; }
  // Whoever does is there yet, and no mere zombie.
  bool is_alive(int number) const { return is_running(pid(number)); }
  bool is_stopped(int number) const { return state_of(pid(number)) == 'T'; }
  // The program that has made the file is there yet: else nobody looks.
  bool has_maker() const { return kill(file_->maker, 0) == 0; }

  static std::int64_t now() {
    return ddbmutex::BootClock::now().time_since_epoch().count();
  }
  static bool is_running(pid_t pid) {
    const char state = state_of(pid);
    return state != 0 && state != 'Z' && state != 'X';
  }

  // As /proc has it; 0: there is no such process.
  static char state_of(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    // "PID (name) S ...", where the name may hold anything.
    const auto end = text.rfind(')');
    return pid != 0 && end != text.npos ? text[end + 2] : '\0';
  }

 private:
  struct File {
    std::atomic<pid_t> maker;
    Slot slots[kSlots];
  };
  static constexpr std::size_t kSize = sizeof(File);

  pid_t pid(int number) const {
    return static_cast<pid_t>(slot(number).pid.load());
  }

  File* file_;
};

inline std::vector<pid_t> children_of(pid_t parent) {
  const std::string pid = std::to_string(parent);
  std::ifstream file("/proc/" + pid + "/task/" + pid + "/children");
  return {std::istream_iterator<pid_t>(file), {}};
}

// The watcher that a `ddbmutex run` has started; 0 if there is none.
inline pid_t watcher_of(pid_t parent) {
  for (const pid_t child : children_of(parent)) {
    std::ifstream name("/proc/" + std::to_string(child) + "/comm");
    std::string text;
    std::getline(name, text);
    if (text == "lease-watcher") return child;
  }
  return 0;
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_STAMPS_HPP
