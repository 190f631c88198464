#include "examples/ddbmutex/group.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace command {
namespace {

// The number that `text` is; 0 if it is none.
pid_t number_in(const char* text) {
  pid_t number = 0;
  for (; *text >= '0' && *text <= '9'; ++text) {
    number = number * 10 + (*text - '0');
  }
  return *text == '\0' ? number : 0;
}

// "/proc/123/stat"
class StatPath {
 public:
  explicit StatPath(pid_t pid) {
    char* end = text_ + sizeof text_ - 1;
    const auto put_before = [&end](const char* part) {
      const std::size_t size = std::strlen(part);
      end -= size;
      std::memcpy(end, part, size);
    };
    *end = '\0';
    put_before("/stat");
    for (; pid > 0; pid /= 10) *--end = static_cast<char>('0' + pid % 10);
    put_before("/proc/");
    begin_ = end;
  }
  const char* c_str() const { return begin_; }

 private:
  char text_[32];
  const char* begin_;
};

// Process 1 is another user's, unless we are root and may see everything.
bool shows_everything() {
  char self[32];
  const ssize_t size = readlink("/proc/self", self, sizeof self - 1);
  if (size <= 0) return false;
  self[size] = '\0';
  return number_in(self) == getpid() && access(StatPath(1).c_str(), R_OK) == 0;
}

}  // namespace

void signal_all(pid_t command, int number) {
  kill(-command, number);
  const pid_t group = getpgid(command);
  if (group >= 0 && group != command) kill(command, number);
}

// "PID (NAME) STATE ...": the number of threads is 17 fields after the state.
// The state is also Z where only the first of several threads has ended.
bool has_ended(pid_t pid) {
  char text[512];
  const int fd = open(StatPath(pid).c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof text - 1);
  if (fd >= 0) close(fd);
  if (size <= 0) return kill(pid, 0) != 0 && errno == ESRCH;
  text[size] = '\0';
  const char* field = std::strrchr(text, ')');
  if (field == nullptr || std::strlen(field) < 3) return false;
  field += 2;
  const char state = *field;
  for (int i = 0; i < 17 && field != nullptr; ++i) {
    field = std::strchr(field + 1, ' ');
  }
  const bool has_threads = field != nullptr && std::atoi(field) > 1;
  return (state == 'Z' || state == 'X') && !has_threads;
}

Processes::Processes() {
  if (!shows_everything()) return;
  fd_ = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

Processes::~Processes() {
  if (fd_ >= 0) close(fd_);
}

// By the system call: opendir() allocates memory, which is not safe after a
// fork.
pid_t Processes::next() {
  struct Head {
    std::uint64_t inode;
    std::int64_t offset;
    std::uint16_t size;
    std::uint8_t type;
  };
  constexpr std::size_t kNameAt = offsetof(Head, type) + 1;
  while (fd_ >= 0) {
    if (at_ >= size_) {
      const long count =
          syscall(SYS_getdents64, fd_, entries_, sizeof entries_);
      if (count <= 0) return 0;
      at_ = 0;
      size_ = static_cast<std::size_t>(count);
    }
    const char* entry = entries_ + at_;
    Head head;
    std::memcpy(&head, entry, kNameAt);
    at_ += head.size;
    if (const pid_t pid = number_in(entry + kNameAt); pid > 0) return pid;
  }
  return 0;
}

Left left_in_group_of(pid_t command) {
  Processes all;
  if (!all.are_all()) return Left::unknown;
  while (const pid_t pid = all.next()) {
    const bool is_of_group = pid != command && getpgid(pid) == command;
    if (is_of_group && !has_ended(pid)) return Left::some;
  }
  return Left::none;
}

}  // namespace command
