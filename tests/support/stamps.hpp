// A file by which processes show until when they have lived: each has a slot
// (tests/processes/stamper.cpp).
#ifndef DDBMUTEX_TESTS_SUPPORT_STAMPS_HPP
#define DDBMUTEX_TESTS_SUPPORT_STAMPS_HPP

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <stdexcept>
#include <string>

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
    void* memory = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, kSize) == 0) {
      memory = mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    }
    close(fd);
    if (memory == MAP_FAILED) throw std::runtime_error("no stamps in " + path);
    slots_ = static_cast<Slot*>(memory);  // Zeros are as good as constructed.
  }
  ~Stamps() { munmap(slots_, kSize); }
  Stamps(const Stamps&) = delete;
  Stamps& operator=(const Stamps&) = delete;

  Slot& slot(int number) const { return slots_[number]; }
  std::chrono::nanoseconds last(int number) const {
    return std::chrono::nanoseconds(slots_[number].last.load());
  }
  // Somebody has begun to stamp there.
  bool is_used(int number) const { return slots_[number].last != 0; }
  // Whoever does is there yet, and no mere zombie.
  bool is_alive(int number) const {
    return is_running(static_cast<pid_t>(slots_[number].pid.load()));
  }

  // For a test that has failed: nothing is to be left of it.
  void kill_all() const {
    for (int i = 0; i < kSlots; ++i) {
      if (is_alive(i)) kill(static_cast<pid_t>(slots_[i].pid.load()), SIGKILL);
    }
  }

  static std::int64_t now() {
    return ddbmutex::BootClock::now().time_since_epoch().count();
  }
  static bool is_running(pid_t pid) {
    std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
    std::string text;
    std::getline(file, text);
    // "PID (name) S ...", where the name may hold anything.
    const auto end = text.rfind(')');
    return pid != 0 && end != text.npos && text.compare(end, 3, ") Z") != 0 &&
           text.compare(end, 3, ") X") != 0;
  }

 private:
  static constexpr std::size_t kSize = kSlots * sizeof(Slot);

  Slot* slots_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_STAMPS_HPP
