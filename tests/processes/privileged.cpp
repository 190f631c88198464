// What a program of other rights than its caller's makes of its environment:
//
//   privileged keys            looks for keys where they are usually found
//   privileged lock URL FILE   locks and unlocks there, with keys of its own
//
// Writes "secure" or "plain", and then "locked" or why not.
#include <sys/auxv.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "ddbmutex.hpp"

// The kernel lets nobody look into a program of other rights: not even the
// sanitizer that looks for leaks in the program itself.
extern "C" int __lsan_is_turned_off();
extern "C" int __lsan_is_turned_off() { return 1; }

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "";
  std::puts(getauxval(AT_SECURE) != 0 ? "secure" : "plain");
  ddbmutex::TableOptions where;
  where.region = "us-east-1";
  if (what == "lock" && argc == 4) {
    where.endpoint = argv[2];
    where.ca_file = argv[3];
    where.credentials = {"AKIDOWN", "secret-of-its-own", ""};
  } else {
    where.endpoint = "http://127.0.0.1:1";
  }
  ddbmutex::Options options;
  options.table = std::make_shared<ddbmutex::Table>(where);
  options.patience = std::chrono::milliseconds(0);
  ddbmutex::DdbMutex mutex("job", options);
  mutex.lock();
  mutex.unlock();
  std::puts("locked");
  return 0;
} catch (const std::exception& error) {
  std::puts(error.what());
  return 0;
}
