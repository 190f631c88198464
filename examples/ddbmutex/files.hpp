// The numbers of files that are open: the caller's are for the command, those
// of this program for neither it nor the watcher.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_FILES_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_FILES_HPP

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace command {

// One more than the highest that is looked at.  Safe after a fork.
inline int most_files() {
  return static_cast<int>(std::min(sysconf(_SC_OPEN_MAX), 65536L));
}

// In order.
inline std::vector<int> open_files() {
  std::vector<int> all;
  for (int file = 0; file < most_files(); ++file) {
    if (fcntl(file, F_GETFD) >= 0) all.push_back(file);
  }
  return all;
}

// If file 0, 1 or 2 is closed, /dev/null takes its place, so that none of our
// own files gets that number.  Reads and writes still fail, as those of a
// closed file do.
inline void occupy_standard_files() {
  int fd;
  do {
    fd = open("/dev/null", O_PATH | O_CLOEXEC);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd >= 0) close(fd);
}

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_FILES_HPP
