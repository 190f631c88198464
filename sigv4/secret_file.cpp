#include "secret_file.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "profile.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// To read or to write.
constexpr mode_t kOthers = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

std::string system_words(int error) {
  return std::generic_category().message(error);
}

SecretFile unreadable(int error) {
  SecretFile file;
  file.missing = error == ENOENT;
  file.failure = file.missing ? "does not exist"
                              : "cannot be read (" + system_words(error) + ")";
  return file;
}

std::string warning_of(const std::string& path, mode_t mode) {
  if ((mode & kOthers) == 0) return "";
  std::array<char, 8> digits{};
  std::snprintf(digits.data(), digits.size(), "0%03o", mode & 0777U);
  return in_quotes(path) + " may be read or written by others than its owner " +
         "(mode " + digits.data() + ", should be 0600)";
}

// `text` with room for `bytes` in all; what it leaves is wiped.
void make_room(std::string& text, std::size_t bytes) {
  std::string larger;
  larger.reserve(bytes);
  larger.append(text);
  text.swap(larger);
  wipe(larger);
}

// Appends up to one byte more than the file may have.  Returns errno.
int read_into(std::string& text, int fd, std::size_t most) {
  make_room(text, 4096);
  while (text.size() <= most) {
    const std::size_t before = text.size();
    if (before == text.capacity()) make_room(text, 2 * before);
    text.resize(std::min(text.capacity(), most + 1));
    const ssize_t got = ::read(fd, &text[before], text.size() - before);
    const int error = errno;
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) break;
    if (got < 0 && error != EINTR) return error;
  }
  return 0;
}

// Returns errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t put = ::write(fd, text.data(), text.size());
    if (put < 0 && errno != EINTR) return errno;
    if (put > 0) text.remove_prefix(static_cast<std::size_t>(put));
  }
  // Else a crash could leave the new name on an empty file.
  return ::fsync(fd) == 0 ? 0 : errno;
}

}  // namespace

SecretFile read_secret_file(const std::string& path, std::size_t most_bytes) {
  // A FIFO is not waited for, a terminal does not become ours.
  const Descriptor fd(
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (fd.get() < 0) return unreadable(errno);
  struct stat status = {};
  if (::fstat(fd.get(), &status) != 0) return unreadable(errno);
  SecretFile file;
  if (!S_ISREG(status.st_mode)) {
    file.failure = "is not a regular file";
    return file;
  }
  std::string text;
  const int error = read_into(text, fd.get(), most_bytes);
  if (error == 0 && text.size() <= most_bytes) {
    file.text = std::move(text);
    file.warning = warning_of(path, status.st_mode);
    return file;
  }
  wipe(text);
  if (error != 0) return unreadable(error);
  file.too_long = true;
  file.failure = "is longer than " + std::to_string(most_bytes) + " bytes";
  return file;
}

std::string write_secret_file(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  int error = 0;
  {
    const Descriptor fd(::mkostemp(draft.data(), O_CLOEXEC));  // Mode 0600.
    if (fd.get() < 0) return system_words(errno);
    error = write_all(fd.get(), text);
  }
  if (error == 0 && ::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return "";
  ::unlink(draft.c_str());
  return system_words(error);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
