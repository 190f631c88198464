// A process that does one thing with a large item, and tells how much memory
// that has taken at most:
//
//   large_items TABLE LAYOUT KEY look|take|take_kept|inspect|list|any_of
//
// The endpoint and the keys are those of the environment; the items are called
// "job-small" and "job-large".  The small one comes first, so that connections,
// threads and code are there.  It says one line, "what came of it: N bytes".
#include <fcntl.h>
#include <malloc.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"
#include "ddbmutex/any_of.hpp"

namespace {

using ddbmutex::AnyOf;
using ddbmutex::AnyOfOptions;
using ddbmutex::DdbMutex;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;

// Of /proc/self/status, in bytes.
long memory(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) != 0) continue;
    return std::atol(line.c_str() + name.size() + 1) * 1024;
  }
  return 0;
}

void forget_the_peak() {
  const int file = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  if (file < 0 || write(file, "5", 1) != 1) std::abort();
  close(file);
}

std::string words_of(const LockInfo& info) {
  return (info.exists ? "exists" : "is no record") +
         (" with " + std::to_string(info.attributes.size()) + " attributes") +
         (info.problem.empty() ? "" : ", " + info.problem);
}

struct Doing {
  std::shared_ptr<Table> table;
  Options options;

  std::string look(const std::string& name) const {
    DdbMutex mutex(name, options);
    return mutex.try_lock() ? "locked" : "busy";
  }
  std::string take(const std::string& name, bool keep_row) const {
    Options own = options;
    if (keep_row) own.keep_row = true;
    DdbMutex mutex(name, own);
    mutex.lock();
    const std::size_t attributes = mutex.attributes().size();
    mutex.unlock();
    return "locked with " + std::to_string(attributes) + " attributes";
  }
  std::string inspect(const std::string& name) const {
    return words_of(table->inspect(name));
  }
  std::string list(const std::string& name) const {
    std::string words;
    table->list([&](const LockInfo& info) {
      if (info.name == name) words = words_of(info);
      return true;
    });
    return words;
  }
  std::string any_of(const std::string& name) const {
    AnyOfOptions any;
    any.each = options;
    any.prefix = name;
    any.read = {"note"};
    const auto got = AnyOf(any).try_lock();
    return got ? "got " + got->name() : "none";
  }
  std::string once(const std::string& way, const std::string& name) const {
    if (way == "look") return look(name);
    if (way == "take") return take(name, false);
    if (way == "take_kept") return take(name, true);
    if (way == "inspect") return inspect(name);
    if (way == "list") return list(name);
    if (way == "any_of") return any_of(name);
    return "is no way";
  }
};

}  // namespace

int main(int, char** words) try {
  TableOptions where;
  where.name = words[1];
  where.layout = static_cast<ddbmutex::Layout>(std::atoi(words[2]));
  where.key = words[3];
  const std::string way = words[4];
  Doing doing{std::make_shared<Table>(where), {}};
  doing.options.table = doing.table;
  doing.options.request_timeout = std::chrono::seconds(20);
  doing.once(way, "job-small");
  forget_the_peak();
  const long before = memory("VmRSS");
  const std::string came = doing.once(way, "job-large");
  std::printf("%s: %ld bytes\n", came.c_str(), memory("VmHWM") - before);
  return 0;
} catch (const std::exception& error) {
  std::printf("%s: 0 bytes\n", error.what());
  return 1;
}
