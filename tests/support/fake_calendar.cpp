#include "tests/support/fake_calendar.hpp"

#include <glob.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>

namespace tests {
namespace {

// Where distributions have it.
std::string library() {
  for (const char* pattern : {"/usr/lib/*/faketime/libfaketimeMT.so.1",
                              "/usr/lib*/faketime/libfaketimeMT.so.1"}) {
    glob_t found = {};
    std::string first;
    if (glob(pattern, 0, nullptr, &found) == 0) first = found.gl_pathv[0];
    globfree(&found);
    if (!first.empty()) return first;
  }
  throw std::runtime_error("fake calendar: no libfaketime");
}

}  // namespace

bool FakeCalendar::works() {
#if defined(__clang__) && defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  return false;
#endif
#endif
  return true;
}

FakeCalendar::FakeCalendar(std::chrono::seconds offset) {
  std::string name = "/tmp/ddbmutex-calendar-XXXXXX";
  const int fd = mkstemp(name.data());
  if (fd < 0) throw std::runtime_error("fake calendar: no file");
  close(fd);
  file_ = name;
  jump_to(offset);
}

FakeCalendar::~FakeCalendar() { unlink(file_.c_str()); }

void FakeCalendar::add_to(std::vector<std::string>& environment) const {
  environment.push_back("LD_PRELOAD=" + library());
  environment.push_back("FAKETIME_TIMESTAMP_FILE=" + file_);
  environment.push_back("FAKETIME_NO_CACHE=1");
  environment.push_back("FAKETIME_DONT_FAKE_MONOTONIC=1");
  environment.push_back("NO_FAKE_STAT=1");
  // ASan's library comes after the one that is preloaded, which does no harm.
  // First, since the first of two variables of one name counts.
  const char* asan = getenv("ASAN_OPTIONS");
  const std::string others = asan ? std::string(asan) + ":" : std::string();
  environment.insert(environment.begin(),
                     "ASAN_OPTIONS=" + others + "verify_asan_link_order=0");
}

void FakeCalendar::jump_to(std::chrono::seconds offset) {
  // Renamed into place: a reader sees the old one or the new one.
  const std::string next = file_ + ".next";
  std::FILE* file = std::fopen(next.c_str(), "w");
  if (file == nullptr) throw std::runtime_error("fake calendar: no file");
  std::fprintf(file, "%+lld\n", static_cast<long long>(offset.count()));
  std::fclose(file);
  if (std::rename(next.c_str(), file_.c_str()) != 0) {
    throw std::runtime_error("fake calendar: not to be renamed");
  }
  offset_ = offset;
}

}  // namespace tests
