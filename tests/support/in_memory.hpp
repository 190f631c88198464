// A directory in memory, if the machine has a place for that: where a test
// writes much, its disk is not what is tested, and may be busy for seconds.
#ifndef DDBMUTEX_TESTS_SUPPORT_IN_MEMORY_HPP
#define DDBMUTEX_TESTS_SUPPORT_IN_MEMORY_HPP

#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <system_error>

namespace tests {

class MemoryDirectory {
 public:
  MemoryDirectory() {
    namespace fs = std::filesystem;
    const fs::path memory = "/dev/shm";
    const fs::path parent =
        fs::exists(memory) ? memory : fs::temp_directory_path();
    path_ = (parent / "ddbmutex-XXXXXX").string();
    if (mkdtemp(path_.data()) == nullptr) {
      throw std::runtime_error("no directory in " + parent.string());
    }
  }
  ~MemoryDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  MemoryDirectory(const MemoryDirectory&) = delete;
  MemoryDirectory& operator=(const MemoryDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_IN_MEMORY_HPP
