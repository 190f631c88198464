#include "secret.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kMaxShownBytes = 300;
// Of a word that begins within them, so much more is looked at.
constexpr std::size_t kMaxWordBytes = 4096;
// Shorter ones stand in texts by chance: "local".
constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kSecretPart = 12;
constexpr std::string_view kMask = "(hidden)";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Whether a part of a secret that stands in the text reaches into that part.
bool has_secret(std::string_view text, std::size_t begin, std::size_t end,
                const Secrets& secrets) {
  const std::size_t first = begin - std::min(begin, kSecretPart - 1);
  const std::size_t last = std::min(end + kSecretPart - 1, text.size());
  for (const std::string_view secret : secrets) {
    if (secret.size() < kShortestSecret) continue;
    for (std::size_t at = first; at + kSecretPart <= last; ++at) {
      if (secret.find(text.substr(at, kSecretPart)) != secret.npos) return true;
    }
  }
  return false;
}

// The whole of a word goes that has a part of a secret in it: what stands
// around it may be the rest, written in another way.
std::string without_secrets(std::string_view text, const Secrets& secrets) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_blank(text[end]) == is_blank(text[begin])) {
      ++end;
    }
    const bool hidden =
        !is_blank(text[begin]) && has_secret(text, begin, end, secrets);
    append(result, {hidden ? kMask : text.substr(begin, end - begin)});
    begin = end;
  }
  return result;
}

}  // namespace

void wipe(std::string& text) noexcept {
  text.resize(text.capacity());  // Within its memory: cannot fail.
  explicit_bzero(text.data(), text.size());
  text.clear();
}

void reserve_secret(std::string& text, std::size_t bytes) {
  if (bytes <= text.capacity()) return;
  std::string larger;
  larger.reserve(std::max(bytes, 2 * text.capacity()));
  larger.append(text);
  text.swap(larger);
  wipe(larger);
}

// A short string is copied when moved from: nothing stays there either.
Secret::Secret(std::string&& text) : text_(std::move(text)) { wipe(text); }

Secret::Secret(Secret&& other) noexcept : Secret(std::move(other.text_)) {}

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) *this = Secret(other);
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  text_.swap(other.text_);
  wipe(other.text_);
  return *this;
}

Secret::~Secret() { wipe(text_); }

std::string shown(std::string_view text, const Secrets& secrets) {
  text = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t most = std::min(text.size(), kMaxShownBytes);
  const std::size_t end =
      std::min(text.find_first_of(" \t", most), text.size());
  bool cut = end < text.size();
  std::string result = without_secrets(
      text.substr(0, std::min(end, most + kMaxWordBytes)), secrets);
  cut = cut || result.size() > kMaxShownBytes;
  result.resize(std::min(result.size(), kMaxShownBytes));
  for (char& c : result) {
    if (c < ' ' || c > '~') c = '?';
  }
  if (cut) append(result, {"..."});
  return result;
}

// --- Files -----------------------------------------------------------------

namespace {

// To read or to write.
constexpr mode_t kOthers = S_IRGRP | S_IWGRP | S_IROTH | S_IWOTH;

std::string system_words(int error) {
  return std::generic_category().message(error);
}

char last_octal_digit(mode_t mode) {
  return static_cast<char>('0' + (mode & 07U));
}

void warn(const std::string& path, mode_t mode, std::string& warning) {
  if ((mode & kOthers) == 0) return;
  const char digits[] = {last_octal_digit(mode >> 6),
                         last_octal_digit(mode >> 3), last_octal_digit(mode)};
  append(warning,
         "%q may be read or written by others than its owner (mode 0%s, should "
         "be 0600)",
         {path, {digits, sizeof digits}});
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

SecretFile::SecretFile(const std::string& path, std::size_t most_bytes) {
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
    append(failure, {"does not exist"});
  } else if (error != 0) {
    append(failure, "cannot be read (%s)", {system_words(error)});
  } else if (!regular) {
    append(failure, {"is not a regular file"});
  } else if (too_long) {
    append(failure, "is longer than %s bytes", {Digits(most_bytes)});
  } else {
    warn(path, status.st_mode, warning);
  }
  if (!failure.empty()) wipe(text);
}

std::string write_secret_file(const std::string& path, std::string_view text) {
  std::string draft = path + ".XXXXXX";
  const int fd = ::mkostemp(draft.data(), O_CLOEXEC);  // Mode 0600.
  if (fd < 0) return system_words(errno);
  int error = write_all(fd, text);
  ::close(fd);
  if (error == 0 && ::rename(draft.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0) return "";
  ::unlink(draft.c_str());
  return system_words(error);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
