// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#include "secret.hpp"

#include <string.h>

#include <algorithm>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::size_t kMaxShownBytes = 300;
// A word that begins within these bytes is searched up to here.
constexpr std::size_t kMaxWordBytes = 4096;
// Shorter secrets, such as "local", may be in a text by chance.
constexpr std::size_t kShortestSecret = 16;
constexpr std::size_t kSecretPart = 12;
constexpr std::string_view kMask = "(hidden)";

bool is_blank(char c) { return c == ' ' || c == '\t'; }

// Whether text[begin, end) overlaps a part of a secret.
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

// Hides each word that has a part of a secret in it, as a whole: what is around
// the part may be the rest of the secret, written in another way.
std::string without_secrets(std::string_view text, const Secrets& secrets) {
  std::string result;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_blank(text[end]) == is_blank(text[begin])) {
      ++end;
    }
    const bool hidden =
        !is_blank(text[begin]) && has_secret(text, begin, end, secrets);
    result += hidden ? kMask : text.substr(begin, end - begin);
    begin = end;
  }
  return result;
}

#ifdef __x86_64__

// XCR0: which registers the operating system saves, and so which exist.
unsigned saved_registers() {
  constexpr unsigned kHasXgetbv = 1u << 27;
  unsigned eax = 1, ebx, ecx = 0, edx;
  asm volatile("cpuid" : "+a"(eax), "=b"(ebx), "+c"(ecx), "=d"(edx));
  if ((ecx & kHasXgetbv) == 0) return 0;
  asm volatile("xgetbv" : "=a"(eax), "=d"(edx) : "c"(0));
  return eax;
}

#endif

}  // namespace

// Does nothing on other processors: neither memcpy(3) nor the dynamic linker
// uses vector registers there.  Not inline, because only the first statement
// names the registers that it changes: a compiler that does not use AVX-512
// does not know the names of the others.
[[gnu::noinline]] void wipe_registers() noexcept {
#if defined(__x86_64__)
  constexpr unsigned kAvx = 0x06, kAvx512 = 0xe6;
  static const unsigned saved = saved_registers();
  asm volatile(
      ".irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n"
      "pxor %%xmm\\n, %%xmm\\n\n"
      ".endr" ::
          : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
            "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#ifdef __AVX512F__
            ,
            "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22",
            "xmm23", "xmm24", "xmm25", "xmm26", "xmm27", "xmm28", "xmm29",
            "xmm30", "xmm31"
#endif
  );
  if ((saved & kAvx) == kAvx) asm volatile("vzeroall");
  if ((saved & kAvx512) == kAvx512) {
    asm volatile(
        ".irp n, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n"
        "vpxorq %%zmm\\n, %%zmm\\n, %%zmm\\n\n"
        ".endr" ::);
  }
#elif defined(__aarch64__)  // A function must preserve the low halves of 8-15.
  asm volatile(
      ".irp n, 0,1,2,3,4,5,6,7,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31"
      "\nmovi v\\n\\().2d, #0\n"
      ".endr" ::
          : "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18",
            "v19", "v20", "v21", "v22", "v23", "v24", "v25", "v26", "v27",
            "v28", "v29", "v30", "v31");
#endif
}

[[gnu::noinline]] void wipe_stack() noexcept {
  char below[16 * 1024];
  wipe_registers();
  explicit_bzero(below, sizeof below);
}

void wipe(std::string& text) noexcept {
  wipe_registers();
  text.resize(text.capacity());  // Needs no memory.
  explicit_bzero(text.data(), text.size());
  text.clear();
}

void reserve_secret(std::string& text, std::size_t bytes) {
  if (bytes <= text.capacity()) return;
  std::string larger;
  larger.reserve(std::max(bytes, 2 * text.capacity()));
  larger.append(text);
  text.swap(larger);
  sigv4::wipe(larger);
}

void append_secret(std::string& text, Pieces pieces) {
  std::size_t size = text.size();
  for (const std::string_view piece : pieces) size += piece.size();
  reserve_secret(text, size);
  for (const std::string_view piece : pieces) text += piece;
  wipe_registers();
}

Secret::Secret(std::string_view text) : text_(text) { wipe_registers(); }

// A short string is copied when it is moved, so the source is wiped.
Secret::Secret(std::string&& text) : text_(std::move(text)) {
  sigv4::wipe(text);
}

Secret::Secret(Secret&& other) noexcept : Secret(std::move(other.text_)) {}

Secret& Secret::operator=(const Secret& other) {
  if (this != &other) *this = Secret(other);
  return *this;
}

Secret& Secret::operator=(Secret&& other) noexcept {
  text_.swap(other.text_);
  sigv4::wipe(other.text_);
  return *this;
}

Secret::~Secret() { sigv4::wipe(text_); }

bool operator==(const Secret& a, const Secret& b) noexcept {
  const bool same = a.text_ == b.text_;
  wipe_registers();
  return same;
}

// A secret that was cut in the middle would not be recognised.  So the text is
// first cut at the end of a word, and shortened once more after masking.
std::string redacted(std::string_view text, const Secrets& secrets) {
  text = text.substr(0, text.find_first_of("\r\n"));
  const std::size_t most = std::min(text.size(), kMaxShownBytes);
  const std::size_t end =
      std::min(text.find_first_of(" \t", most), text.size());
  const std::string masked = without_secrets(
      text.substr(0, std::min(end, most + kMaxWordBytes)), secrets);
  const std::string_view start = cut_to(masked, kMaxShownBytes);
  std::string result = one_line(start);
  if (end < text.size() || start.size() < masked.size()) result += "...";
  return result;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
