// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Reads and replaces files that hold keys or tokens.
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "secret.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

// Reading and writing by others than the owner.
constexpr mode_t kOthers = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

std::string system_words(int error) {
  return std::generic_category().message(error);
}

// A file that is open, or -1.  Is closed even if there is no memory to read it.
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

// Reads into the text itself, because a buffer would have to be wiped.  Reads
// one byte more than the file may have, so that a file that is too long is
// noticed.  Returns errno.
int read_into(std::string& text, int fd, std::size_t most) {
  while (text.size() <= most) {
    const std::size_t before = text.size();
    // Doubles the capacity if it is used up.
    reserve_secret(text, std::max<std::size_t>(before + 1, 4096));
    text.resize(std::min(text.capacity(), most + 1));
    const ssize_t got = ::read(fd, &text[before], text.size() - before);
    const int error = errno;
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    if (got == 0) return 0;
    if (got < 0 && error != EINTR) return error;
  }
  return 0;
}

// In a 32-bit program, fstat() fails for a file with a 64-bit inode number.
#ifdef _LARGEFILE64_SOURCE
using Status = struct stat64;
int status_of(int fd, Status& status) { return ::fstat64(fd, &status); }
#else
using Status = struct stat;
int status_of(int fd, Status& status) { return ::fstat(fd, &status); }
#endif

}  // namespace

void SecretFile::read(const std::string& path, std::size_t most_bytes) {
  Status status = {};
  // open() does not wait for the other end of a FIFO, and a terminal does not
  // become the controlling terminal of this process.
  const Descriptor file(
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  int error = 0;
  if (file.get() < 0 || status_of(file.get(), status) != 0) error = errno;
  const bool regular = S_ISREG(status.st_mode);
  if (error == 0 && regular) error = read_into(text, file.get(), most_bytes);
  missing = error == ENOENT;
  too_long = text.size() > most_bytes;
  if (missing) {
    failure = "does not exist";
  } else if (error != 0) {
    failure = join({"cannot be read (", system_words(error), ")"});
  } else if (!regular) {
    failure = "is not a regular file";
  } else if (too_long) {
    failure = join({"is longer than ", Digits(most_bytes), " bytes"});
  } else if ((status.st_mode & kOthers) != 0) {
    // The mode as three octal digits.
    const mode_t mode = status.st_mode;
    warning = join({in_quotes(path),
                    " may be read or written by others than its owner (mode 0",
                    Digits((mode >> 6) & 7), Digits((mode >> 3) & 7),
                    Digits(mode & 7), ", should be 0600)"});
  }
  if (!failure.empty()) sigv4::wipe(text);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
