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

// To read or to write.
constexpr mode_t kOthers = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

std::string system_words(int error) {
  return std::generic_category().message(error);
}

// Appends up to one byte more than the file may have, straight from the file: a
// copy would leave traces on the stack.  Returns errno.
int read_into(std::string& text, int fd, std::size_t most) {
  ssize_t got = 1;
  while (text.size() <= most && got != 0) {
    const std::size_t before = text.size();
    reserve_secret(text, std::max<std::size_t>(before + 1, 4096));
    text.resize(std::min(text.capacity(), most + 1));
    got = ::read(fd, &text[before], text.size() - before);
    const int error = errno;
    text.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
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

// Programs of 32 bits would not be told of a file whose number has more.
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
  // A FIFO is not waited for, a terminal does not become ours.
  const int fd =
      ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  int error = fd < 0 || status_of(fd, status) != 0 ? errno : 0;
  const bool regular = S_ISREG(status.st_mode);
  if (error == 0 && regular) error = read_into(text, fd, most_bytes);
  if (fd >= 0) ::close(fd);
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
    const mode_t mode = status.st_mode;
    warning = join({in_quotes(path),
                    " may be read or written by others than its owner (mode 0",
                    Digits(mode >> 6 & 7), Digits(mode >> 3 & 7),
                    Digits(mode & 7), ", should be 0600)"});
  }
  if (!failure.empty()) sigv4::wipe(text);
}

std::string write_secret_file(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  const int fd = ::mkostemp(draft.data(), O_CLOEXEC);  // Mode 0600.
  if (fd < 0) return system_words(errno);
  int error = sigv4::write_all(fd, text);
  ::close(fd);
  if (error == 0 && ::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return "";
  ::unlink(draft.c_str());
  return system_words(error);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
