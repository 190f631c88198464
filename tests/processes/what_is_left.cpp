// A process that takes and releases a lock, destroys its Table, and then tells
// how much of a secret is left in its memory:
//
//   what_is_left TABLE [options|source ID SECRET [TOKEN]]
//
// Keys are those of the environment's places, or SECRET's, in the options or of
// a credentials_source.  Once the Table is gone it says "done" (or the error),
// and then answers each line on its stdin, a text, with the number of places
// where that stands.
//
// All that it is told is disguised: each byte as two hexadecimal digits, with
// kDisguise over it.  So it has no copy of a secret but what the library made,
// or was given and is to wipe.
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "ddbmutex.hpp"

namespace {

constexpr unsigned kDisguise = 0x5a;

unsigned digit(char c) {
  return static_cast<unsigned>(c <= '9' ? c - '0' : c - 'a' + 10);
}

// Not more is uncovered than one byte at a time.
unsigned byte_at(std::string_view disguised, std::size_t i) {
  return (digit(disguised[2 * i]) << 4 | digit(disguised[2 * i + 1])) ^
         kDisguise;
}

// In memory of its final size: a string that grows leaves copies behind.
std::string uncovered(std::string_view disguised) {
  std::string text(disguised.size() / 2, '\0');
  for (std::size_t i = 0; i < text.size(); ++i) {
    text[i] = static_cast<char>(byte_at(disguised, i));
  }
  return text;
}

// --- Memory ------------------------------------------------------------------

struct Region {
  std::uintptr_t begin;
  std::uintptr_t end;
};

// What may be written to, except the main thread's stack.  A sanitizer's
// shadow, which is larger than any machine's memory, is left out.
std::vector<Region> writable_memory() {
  constexpr std::uintptr_t kTooLarge = std::uintptr_t{1} << 32;
  std::vector<Region> regions;
  std::FILE* const maps = std::fopen("/proc/self/maps", "re");
  if (maps == nullptr) return regions;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), maps) != nullptr) {
    Region region;
    std::array<char, 5> rights;
    if (std::sscanf(line.data(), "%lx-%lx %4s", &region.begin, &region.end,
                    rights.data()) != 3) {
      continue;
    }
    const bool ours = rights[0] == 'r' && rights[1] == 'w';
    const bool stack = std::strstr(line.data(), "[stack]") != nullptr;
    if (ours && !stack && region.end - region.begin < kTooLarge) {
      regions.push_back(region);
    }
  }
  std::fclose(maps);
  return regions;
}

// In place, for a copy of the memory would hold what is looked for.  What has
// been freed is looked at too, which a sanitizer would not let pass.
__attribute__((no_sanitize("address", "thread", "undefined"))) int copies_in(
    const Region& region, std::string_view disguised) {
  const std::size_t size = disguised.size() / 2;
  const unsigned char first = static_cast<unsigned char>(byte_at(disguised, 0));
  int found = 0;
  for (std::uintptr_t at = region.begin; at + size <= region.end; ++at) {
    const auto* const bytes = reinterpret_cast<const unsigned char*>(at);
    if (bytes[0] != first) continue;
    std::size_t same = 1;
    while (same < size && bytes[same] == byte_at(disguised, same)) ++same;
    if (same == size) ++found;
  }
  return found;
}

int copies_of(std::string_view disguised) {
  int found = 0;
  for (const Region& region : writable_memory()) {
    found += copies_in(region, disguised);
  }
  return found;
}

// --- The lock ----------------------------------------------------------------

ddbmutex::Credentials keys_of(char** told, int count) {
  ddbmutex::Credentials keys;
  keys.access_key_id = told[0];
  keys.secret_access_key = uncovered(told[1]);
  if (count > 2) keys.session_token = uncovered(told[2]);
  return keys;
}

ddbmutex::TableOptions options_of(int argc, char** argv) {
  ddbmutex::TableOptions options;
  options.name = argv[1];
  if (argc < 5) return options;
  char** const told = argv + 3;
  const int count = argc - 3;
  if (argv[2] == std::string("options")) {
    options.credentials = keys_of(told, count);
  } else {
    options.credentials_source = [told, count] { return keys_of(told, count); };
  }
  return options;
}

// What it came to.
std::string take_and_release(int argc, char** argv) {
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(options_of(argc, argv));
  options.request_timeout = std::chrono::seconds(20);  // However slow it is.
  ddbmutex::DdbMutex mutex("what-is-left:" + std::to_string(getpid()), options);
  std::error_code ec;
  mutex.lock(ec);
  if (!ec) mutex.release(ec);
  return ec ? mutex.last_error() : "done";
}

void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::exit(1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  // So that a test can see that the search finds something.
  static const std::string kept = argv[1];
  say(take_and_release(argc, argv));
  std::string line;
  char c;
  while (read(STDIN_FILENO, &c, 1) == 1) {
    if (c != '\n') {
      line += c;
      continue;
    }
    say(line.empty() ? "nothing asked" : std::to_string(copies_of(line)));
    line.clear();
  }
  return 0;
}
