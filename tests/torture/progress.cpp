#include "tests/torture/progress.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace torture {

using std::chrono::seconds;

// --- Tally -------------------------------------------------------------------

long Tally::acquisitions() {
  std::error_code ec;
  for (const auto& file : std::filesystem::directory_iterator(logs_, ec)) {
    const std::uintmax_t size = file.file_size(ec);
    const std::string path = file.path().string();
    if (!ec && size > read_[path]) read_on(path, size);
  }
  return acquisitions_;
}

// Whole lines only: the rest is read with the next.
void Tally::read_on(const std::string& path, std::uintmax_t size) {
  std::uintmax_t& read = read_[path];
  std::ifstream in(path, std::ios::binary);
  in.seekg(static_cast<std::streamoff>(read));
  std::string text(static_cast<std::size_t>(size - read), '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(in.gcount()));
  const std::size_t last = text.rfind('\n');
  if (last == std::string::npos) return;
  static const std::string kWord = "acquired ";
  for (std::size_t at = 0; at <= last; at = text.find('\n', at) + 1) {
    acquisitions_ += text.compare(at, kWord.size(), kWord) == 0;
  }
  read += last + 1;
}

// --- Progress ----------------------------------------------------------------

Progress::Progress(seconds time)
    : time_(time),
      terminal_(isatty(STDOUT_FILENO) == 1),
      interval_(terminal_ ? 1 : 10) {}

void Progress::show(seconds gone, const SoFar& so_far) {
  constexpr long kWidth = 24;
  const long all = std::max(static_cast<long>(time_.count()), 1L);
  const long now = std::min(static_cast<long>(gone.count()), all);
  const long full = kWidth * now / all;
  if (terminal_) {
    std::printf(
        "\r\033[K[%s%s] ",
        std::string(static_cast<std::size_t>(full), '#').c_str(),
        std::string(static_cast<std::size_t>(kWidth - full), '.').c_str());
  }
  std::printf(
      "%ld of %ld s: %ld acquisitions, %ld faults, %ld kills and stops%s", now,
      all, so_far.acquisitions, so_far.faults, so_far.blows,
      terminal_ ? "" : "\n");
  std::fflush(stdout);
}

void Progress::end() const {
  if (terminal_) std::printf("\n");
}

}  // namespace torture
