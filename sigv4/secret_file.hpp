// Files that hold keys or tokens: read into memory that is wiped, written so
// that nobody else can read them and nobody at all sees half of one.
//
//   const SecretFile file(path, 1 << 20);
//   if (!file.failure.empty()) return refuse(in_quotes(path) + file.failure);
//   use(file.text);
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_SECRET_FILE_HPP
#define DDBMUTEX_SIGV4_SECRET_FILE_HPP

#include <cstddef>
#include <string>
#include <string_view>

#include "secret.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// One that was read, as far as it could be.
struct SecretFile {
  // A file that is no regular one is not read: a FIFO would hang.
  SecretFile(const std::string& path, std::size_t most_bytes);
  ~SecretFile() { wipe(text); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  std::string text;     // Wiped when this goes.  Empty unless all of it came.
  std::string failure;  // Behind the file's name: "does not exist".
  bool missing = false;
  bool too_long = false;
  // Set if others than its owner may read it, or write to it: a sentence that
  // names the file.
  std::string warning;
};

// Puts the file into the place of another, or of none, all at once.  Its owner
// alone may read it.  Returns why that could not be; empty if it could.
std::string write_secret_file(const std::string& path, std::string_view text);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SECRET_FILE_HPP
