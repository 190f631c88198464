// ddbmutex: the lock for shells, cron and whatever else is not C++.
//
//   ddbmutex run nightly-report -- report --all
//
// `ddbmutex --help` and ddbmutex.1 say the rest.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include "examples/ddbmutex/completion.hpp"
#include "examples/ddbmutex/files.hpp"
#include "examples/ddbmutex/help.hpp"
#include "examples/ddbmutex/locks.hpp"
#include "examples/ddbmutex/names.hpp"
#include "examples/ddbmutex/options.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/run.hpp"
#include "examples/ddbmutex/watch.hpp"

using namespace command;

namespace {

int print(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  return kDone;
}

int carry_out(const Settings& settings) {
  // run() sees first which files its command is to have.
  if (settings.command != Command::run) occupy_standard_files();
  switch (settings.command) {
    case Command::run:
      return run(settings);
    case Command::show:
      return show(settings);
    case Command::list:
      return list(settings);
    case Command::watch:
      watch(settings);
    case Command::unlock:
      return unlock(settings);
    case Command::create_table:
      return create_table(settings);
    case Command::completion:
      return print(completion(settings.shell_name));
    case Command::version:
      return print(version());
    case Command::help:
      break;
  }
  return print(help(settings.help_of));
}

// What was printed may be the answer that a script acts on.
int flushed(int status) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
  complain(std::string("cannot write: ") + std::strerror(errno));
  return status == kDone ? kFailed : status;
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  try {
    if (argc > 2 && argv[1] == std::string("completion") &&
        argv[2] == std::string("names")) {
      complete_names({argv + 3, argv + argc}, std::getenv);
      return kDone;
    }
    settings = parse({argv + 1, argv + argc}, std::getenv);
    return flushed(carry_out(settings));
  } catch (const std::exception& error) {
    const Verdict verdict = verdict_on(error, settings);
    complain(verdict.text);
    return verdict.exit;
  }
}
