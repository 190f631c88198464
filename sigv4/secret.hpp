// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Strings and files whose contents are wiped from memory.
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

// Overwrites all of the string's memory, and empties the string.
void wipe(std::string& text) noexcept;

// Like text.reserve(), but wipes the old memory if the text moves.
void reserve_secret(std::string& text, std::size_t bytes);

// Appends the pieces and leaves no other copy of them.  None may be a view of
// `text`.
void append_secret(std::string& text, Pieces pieces);

// A string whose memory is wiped when it is destroyed or gets another value.
// Whoever copies the text out of it must wipe() the copy.
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

// The secrets of one request: the secret key, the session token, the signature.
using Secrets = std::array<std::string_view, 3>;
// Makes a service's text safe to show: its first line, cut to 300 bytes and
// escaped by one_line().  If the text repeats 12 bytes or more of a secret,
// "(hidden)" is shown instead.  Secrets of less than 16 bytes are not looked
// for.
std::string redacted(std::string_view text, const Secrets& secrets);

// --- Files that hold keys or tokens -----------------------------------------

// A file, read into memory that is wiped:
//
//   const SecretFile file(path, 1 << 20);
//   if (!file.failure.empty()) return fail(path, file.failure);
//   use(file.text);
struct SecretFile {
  SecretFile() = default;
  // Calls SecretFile() first, so that the destructor runs, and wipes what was
  // read, also if memory runs out in read().
  SecretFile(const std::string& path, std::size_t most_bytes) : SecretFile() {
    read(path, most_bytes);
  }
  ~SecretFile() { sigv4::wipe(text); }
  SecretFile(const SecretFile&) = delete;
  SecretFile& operator=(const SecretFile&) = delete;

  // Reads only a regular file: a FIFO would hang.  REQUIRES: nothing was read
  // before.
  void read(const std::string& path, std::size_t most_bytes);

  std::string text;  // The whole file, or empty.
  // Why it was not read, without the file's name: "does not exist".
  std::string failure;
  bool missing = false;
  bool too_long = false;
  // A warning that names the file, if others than its owner may read or write
  // it; else empty.
  std::string warning;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_SECRET_HPP
