// By which a blow finds a process while it holds a lock: a page that the
// process and the torture share, for neither has to wait for the other's word.
//
//   Target target("out/target.3");  // In both.
//   target.want();                  // The torture is about to strike.
//   if (target.wanted()) ...        // The process: its next hold is long,
//   target.holds(true);             // and now it has begun.
//   target.is_held()                // The torture: now.
#ifndef DDBMUTEX_TESTS_TORTURE_TARGET_HPP
#define DDBMUTEX_TESTS_TORTURE_TARGET_HPP

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <string>

namespace torture {

// Any thread of either process may call any member.
class Target {
 public:
  explicit Target(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof *page_) != 0) {
      throw std::runtime_error("cannot make " + path);
    }
    void* const page =
        mmap(nullptr, sizeof *page_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (page == MAP_FAILED) throw std::runtime_error("cannot map " + path);
    page_ = static_cast<Page*>(page);
  }
  ~Target() { munmap(page_, sizeof *page_); }
  Target(const Target&) = delete;
  Target& operator=(const Target&) = delete;

  void want() { page_->wanted = 1; }
  // True once for each time that it is wanted.
  bool wanted() { return page_->wanted.exchange(0) == 1; }

  void holds(bool now) { page_->held += now ? 1 : -1; }
  bool is_held() const { return page_->held > 0; }
  // Of a process that was killed.
  void forget() { page_->wanted = page_->held = 0; }

 private:
  // A new file is of zeros.
  struct Page {
    std::atomic<int> wanted;
    std::atomic<int> held;  // Locks that are held for long.
  };
  static_assert(std::atomic<int>::is_always_lock_free);

  Page* page_ = nullptr;
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_TARGET_HPP
