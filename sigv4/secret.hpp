// Strings and files that leave nothing behind.
//
// Thread safety: any thread may call any of this.
#ifndef DDBMUTEX_SIGV4_SECRET_HPP
#define DDBMUTEX_SIGV4_SECRET_HPP

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Overwrites the processor's vector registers, which still hold what memcpy(3)
// or memcmp(3) had in them last.  The dynamic linker saves all of them on the
// stack when a function is called for the first time, and so does the kernel
// when a signal is handled.  So whoever has copied a secret calls this before
// anything else.
void wipe_registers() noexcept;

// As wipe_registers(), and overwrites the stack below the caller's frame, as
// far as glibc keeps it when a thread ends: 16 KiB.
void wipe_stack() noexcept;

// Overwrites all that the string's memory holds, and empties it.
void wipe(std::string& text) noexcept;

// Makes room for so many bytes in all, or more; memory that the text leaves for
// it is wiped.
void reserve_secret(std::string& text, std::size_t bytes);

// Puts the pieces behind `text` and leaves no other copy of them.  None of them
// may be a view into it.
void append_secret(std::string& text, Pieces pieces);

// A string whose memory is wiped when it goes, or takes another value.  What is
// copied out of it is the copier's to wipe().
class Secret {
 public:
  Secret() = default;
  Secret(const char* text) : Secret(std::string_view(text)) {}
  Secret(std::string_view text);
  Secret(const std::string& text) : Secret(std::string_view(text)) {}
  Secret(std::string&& text);
  Secret(const Secret& other) : Secret(other.text_) {}
  Secret(Secret&& other) noexcept;
  Secret& operator=(const Secret& other);
  Secret& operator=(Secret&& other) noexcept;
  ~Secret();

  const std::string& str() const noexcept { return text_; }
  char* data() noexcept { return text_.data(); }
  operator std::string_view() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }
  std::size_t size() const noexcept { return text_.size(); }

  friend bool operator==(const Secret& a, const Secret& b) noexcept;
  friend bool operator!=(const Secret& a, const Secret& b) noexcept {
    return !(a == b);
  }

 private:
  std::string text_;
};

// A service's text in a form that may be shown: its first line, cut to 300
// bytes and escaped by one_line().  Each word that repeats 12 bytes or more of
// a secret becomes "(hidden)".  Secrets of less than 16 characters are not
// looked for.
using Secrets = std::array<std::string_view, 3>;
std::string shown(std::string_view text, const Secrets& secrets);

// --- Files that hold keys or tokens -----------------------------------------

// One that was read, as far as it could be, into memory that is wiped:
//
//   const SecretFile file(path, 1 << 20);
//   if (!file.failure.empty()) return refuse(in_quotes(path) + file.failure);
//   use(file.text);
struct SecretFile {
  SecretFile() = default;
  SecretFile(const std::string& path, std::size_t most_bytes) {
    read(path, most_bytes);
  }
  ~SecretFile() { sigv4::wipe(text); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  // A file that is no regular one is not read: a FIFO would hang.  REQUIRES:
  // nothing was read before.
  void read(const std::string& path, std::size_t most_bytes);

  std::string text;     // Wiped when this goes.  Empty unless all of it came.
  std::string failure;  // Behind the file's name: "does not exist".
  bool missing = false;
  bool too_long = false;
  // Set if others than its owner may read it, or write to it: a sentence that
  // names the file.
  std::string warning;
};

// Puts the file into the place of another, or of none, all at once: nobody sees
// half of one.  Its owner alone may read it.  Returns why that could not be;
// empty if it could.
std::string write_secret_file(const std::string& path, std::string_view text);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SECRET_HPP
