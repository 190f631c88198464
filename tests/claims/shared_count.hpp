// A number that processes count together, in a page that they share: what one
// has counted stands if it is killed.
//
//   SharedCount grants(directory + "/grants");  // In each of them.
//   grants.add();
//   grants.now();
#ifndef DDBMUTEX_TESTS_CLAIMS_SHARED_COUNT_HPP
#define DDBMUTEX_TESTS_CLAIMS_SHARED_COUNT_HPP

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace claims {

// Any thread of any process may call any member.
class SharedCount {
 public:
  explicit SharedCount(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *count_) != 0) {
      throw std::runtime_error("cannot make " + path);
    }
    void* const page = mmap(nullptr, sizeof *count_, PROT_READ | PROT_WRITE,
                            MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    count_ = static_cast<std::atomic<std::uint64_t>*>(page);
  }
  ~SharedCount() { munmap(count_, sizeof *count_); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void add(std::uint64_t more = 1) { *count_ += more; }
  std::uint64_t now() const { return *count_; }

 private:
  static_assert(std::atomic<std::uint64_t>::is_always_lock_free);

  std::atomic<std::uint64_t>* count_ = nullptr;  // A new file is of zeros.
};

}  // namespace claims

#endif  // DDBMUTEX_TESTS_CLAIMS_SHARED_COUNT_HPP
