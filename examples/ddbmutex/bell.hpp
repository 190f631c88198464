// An event: another thread signals it, and the main thread polls it together
// with its other files.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_BELL_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_BELL_HPP

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace command {

class Bell {
 public:
  Bell() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_ < 0)
      throw std::system_error(errno, std::generic_category(), "bell");
  }
  ~Bell() { close(fd_); }
  Bell(const Bell&) = delete;
  Bell& operator=(const Bell&) = delete;

  int fd() const { return fd_; }
  // Makes fd() readable.
  void ring() const { eventfd_write(fd_, 1); }
  // Makes it unreadable again.
  void hush() const {
    eventfd_t count;
    eventfd_read(fd_, &count);
  }

 private:
  const int fd_;
};

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_BELL_HPP
