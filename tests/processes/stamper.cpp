// A command that shows how long it lives:
//
//   stamper FILE SLOT [ignores] [forks] [leaves] [moves] [stops]
//
// Writes its process id and, every few milliseconds, the time on the boot clock
// into the slot of the file (tests/support/stamps.hpp), for as long as the test
// that has made it is there to look.
//
//   ignores  TERM, INT and HUP
//   forks    twice, as a daemon does, and ends; what is left stamps
//   leaves   its session, and with it its process group
//   moves    to the process group of its parent
//   stops    itself, once it has stamped
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <string>

#include "tests/support/stamps.hpp"

int main(int argc, char** argv) try {
  if (argc < 3) return 2;
  const tests::Stamps stamps(argv[1]);
  auto& slot = stamps.slot(std::stoi(argv[2]));
  bool stops = false;
  for (int i = 3; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "ignores") {
      for (const int number : {SIGTERM, SIGINT, SIGHUP}) {
        signal(number, SIG_IGN);
      }
    } else if (word == "forks") {
      if (fork() != 0 || fork() != 0) return 0;
    } else if (word == "leaves") {
      if (setsid() < 0) return 3;
    } else if (word == "moves") {
      if (setpgid(0, getpgid(getppid())) != 0) return 3;
    } else if (word == "stops") {
      stops = true;
    } else {
      return 2;
    }
  }
  slot.pid = getpid();
  while (stamps.has_maker()) {
    slot.last = tests::Stamps::now();
    if (stops) raise(SIGSTOP);
    stops = false;
    poll(nullptr, 0, 3);
  }
  return 0;
} catch (const std::exception& error) {
  std::fprintf(stderr, "stamper: %s\n", error.what());
  return 1;
}
