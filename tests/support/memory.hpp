// What this process has in memory, and this thread in its registers: whether a
// secret is still somewhere in it.
//
//   const Needle needle("....");            // Never in memory as it is.
//   needle.write("/tmp/x/credentials", "[default]\naws_secret_access_key = ");
//   load();
//   BOOST_TEST(!needle.is_in_memory());
#ifndef DDBMUTEX_TESTS_SUPPORT_MEMORY_HPP
#define DDBMUTEX_TESTS_SUPPORT_MEMORY_HPP

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tests {

// Has the kernel write all registers of this thread to memory, as it does for
// every signal handler: on a stack that nothing else uses.
class RegisterDump {
 public:
  RegisterDump() : stack_(getauxval(AT_MINSIGSTKSZ) + (1 << 16)) {
    struct sigaction action = {};
    action.sa_handler = [](int) {};
    action.sa_flags = SA_ONSTACK;
    BOOST_TEST_REQUIRE(sigaction(kSignal, &action, nullptr) == 0);
  }

  // Calls nothing on its way that would use a vector register itself.
  void take() {
    stack_t own = {}, before = {};
    own.ss_sp = stack_.data();
    own.ss_size = stack_.size();
    const bool changed = sigaltstack(&own, &before) == 0;
    raise(kSignal);
    sigaltstack(&before, nullptr);
    BOOST_TEST_REQUIRE(changed);
  }
  std::string_view bytes() const { return {stack_.data(), stack_.size()}; }
  void wipe() { explicit_bzero(stack_.data(), stack_.size()); }

 private:
  static constexpr int kSignal = SIGUSR1;

  std::vector<char> stack_;
};

// A secret of 64 letters.  This process knows it by the bitwise complement of
// its bytes alone, until it reads it from where another has written it.
class Needle {
 public:
  explicit Needle(unsigned seed) {
    for (unsigned i = 0; i < 64; ++i) {
      seed = seed * 1103515245u + 12345u;
      hidden_ += static_cast<char>(~('a' + (seed >> 16) % 26));
    }
  }

  // Writes `before`, the secret and `after`, by a process of its own.
  void write(const std::string& path, const std::string& before,
             const std::string& after = "\n") const {
    const pid_t child = fork();
    BOOST_TEST_REQUIRE(child >= 0);
    if (child == 0) {
      const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      std::string text = before;
      for (const char c : hidden_) text += static_cast<char>(~c);
      text += after;
      const ssize_t put = ::write(fd, text.data(), text.size());
      _exit(put == static_cast<ssize_t>(text.size()) ? 0 : 1);
    }
    int status = -1;
    BOOST_TEST_REQUIRE(waitpid(child, &status, 0) == child);
    BOOST_TEST_REQUIRE(status == 0);
  }

  // A whole, or any 24 bytes of it.
  bool is_in(std::string_view text) const {
    for (std::size_t part = 0; part + kPart <= hidden_.size();
         part += kPart / 2) {
      const auto first = static_cast<char>(~hidden_[part]);
      for (std::size_t at = text.find(first); at != text.npos;
           at = text.find(first, at + 1)) {
        if (has_part(text.substr(at), part)) return true;
      }
    }
    return false;
  }

  // Of this thread, as they are when it is called.
  bool is_in_registers() {
    registers_.take();
    const bool found = is_in(registers_.bytes());
    registers_.wipe();
    return found;
  }

  // In all that this process may write to, or in this thread's registers.
  bool is_in_memory() {
    registers_.take();
    const int memory = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
    BOOST_TEST_REQUIRE(memory >= 0);
    std::string piece(kPiece, '\0');
    bool found = false;
    for (const auto& [begin, end] : writable()) {
      found = found || is_between(memory, begin, end, piece);
    }
    piece.assign(kPiece, '\0');  // The next search is not to find that.
    registers_.wipe();
    close(memory);
    return found;
  }

 private:
  static constexpr std::size_t kPart = 24;
  static constexpr std::size_t kPiece = 1 << 20;

  bool has_part(std::string_view text, std::size_t part) const {
    std::size_t same = 0;
    while (same < kPart && same < text.size() &&
           text[same] == static_cast<char>(~hidden_[part + same])) {
      ++same;
    }
    return same == kPart;
  }

  static std::vector<std::pair<std::uintptr_t, std::uintptr_t>> writable() {
    std::vector<std::pair<std::uintptr_t, std::uintptr_t>> all;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      std::istringstream words(line);
      std::uintptr_t begin = 0, end = 0;
      char hyphen = 0;
      std::string rights;
      words >> std::hex >> begin >> hyphen >> end >> rights;
      // What is larger is a sanitizer's own.
      const bool small = end - begin < (std::uintptr_t{1} << 30);
      if (rights.substr(0, 2) == "rw" && small) all.emplace_back(begin, end);
    }
    return all;
  }

  bool is_between(int memory, std::uintptr_t begin, std::uintptr_t end,
                  std::string& piece) const {
    for (std::uintptr_t at = begin; at < end; at += kPiece - kPart) {
      const ssize_t got =
          pread(memory, piece.data(), std::min<std::size_t>(kPiece, end - at),
                static_cast<off_t>(at));
      if (got <= 0) return false;
      std::fill(piece.begin() + got, piece.end(), '\0');
      if (is_in(piece)) return true;
    }
    return false;
  }

  std::string hidden_;
  RegisterDump registers_;
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_MEMORY_HPP
