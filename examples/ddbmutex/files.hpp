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

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_FILES_HPP
