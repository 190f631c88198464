#include "tests/live/suites.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <utility>

#include "tests/live/interruption.hpp"
#include "tests/support/process.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace live {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

// Much more than any group takes from the other side of the world.
constexpr std::chrono::minutes kLongest{20};

// This file is tests/live/suites.cpp.
std::string list_of_cases() {
  const std::string file = __FILE__;
  return file.substr(0, file.rfind('/')) + "/cases.txt";
}

class Running {
 public:
  Running(const Group& group, const fs::path& logs)
      : name_(group.name),
        least_(group.cases.size()),
        log_(logs / (group.name + ".log")),
        counts_(logs / (group.name + ".counts")),
        process_(settings(group)) {}

  bool has_ended() { return process_.has_ended(); }
  const std::string& name() const { return name_; }
  const fs::path& log() const { return log_; }

  // True if all of its cases have passed.
  bool judge() {
    const int status = process_.wait();
    std::size_t passed = 0, failed = 0;
    std::ifstream(counts_) >> passed >> failed;
    const bool well = status == 0 && failed == 0 && passed >= least_;
    std::printf("  %-12s %3zu passed%s, %.0f s\n", name_.c_str(), passed,
                well ? "" : problem(status, passed, failed).c_str(),
                std::chrono::duration<double>(watch_.time()).count());
    if (!well) tell_complaints();
    std::fflush(stdout);
    return well;
  }

 private:
  tests::ProcessSettings settings(const Group& group) const {
    tests::ProcessSettings settings;
    settings.command = {"/bin/sh",
                        "-c",
                        "log=$1; shift; exec \"$@\" >$log 2>&1",
                        "sh",
                        log_.string(),
                        tests::program_path("tests"),
                        "--log_level=message",
                        "--report_level=no",
                        "--color_output=no"};
    for (const std::string& one : group.cases) {
      settings.command.push_back("--run_test=" + one);
    }
    fs::remove(counts_);  // Of an earlier run.
    settings.environment = tests::whole_environment();
    settings.environment.push_back("DDBMUTEX_TEST_COUNTS=" + counts_.string());
    return settings;
  }

  std::string problem(int status, std::size_t passed,
                      std::size_t failed) const {
    if (failed > 0) return ", " + std::to_string(failed) + " FAILED";
    if (status != 0) return ", ENDED with " + std::to_string(status);
    return ", but there are " + std::to_string(least_) + " (" +
           std::to_string(passed) + " RAN)";
  }

  void tell_complaints() const {
    std::ifstream file(log_);
    std::string line;
    for (int told = 0; told < 20 && std::getline(file, line);) {
      if (line.find("error") == std::string::npos) continue;
      std::printf("    %s\n", line.c_str());
      ++told;
    }
    std::printf("    its whole output: %s\n", log_.c_str());
  }

  const std::string name_;
  const std::size_t least_;
  const fs::path log_;
  const fs::path counts_;
  const tests::Stopwatch watch_;
  tests::Process process_;
};

using RunningPtr = std::unique_ptr<Running>;

// Removes the groups that have ended.  True if all their cases have passed.
bool judge_ended(std::vector<RunningPtr>& running) {
  bool well = true;
  for (RunningPtr& one : running) {
    if (!one->has_ended()) continue;
    well = one->judge() && well;
    one.reset();
  }
  running.erase(std::remove(running.begin(), running.end(), nullptr),
                running.end());
  return well;
}

}  // namespace

std::vector<Group> all_groups() {
  std::vector<Group> groups;
  std::ifstream file(list_of_cases());
  std::string line;
  while (std::getline(file, line)) {
    if (line.empty() || line[0] == '#') continue;
    if (line.back() == ':') {
      groups.push_back({line.substr(0, line.size() - 1), {}});
    } else if (!groups.empty()) {
      groups.back().cases.push_back(line);
    }
  }
  if (groups.empty())
    throw std::runtime_error("cannot read " + list_of_cases());
  return groups;
}

bool run_suites(const std::vector<Group>& groups, const std::string& logs) {
  fs::create_directories(logs);
  std::vector<RunningPtr> running;
  for (const Group& group : groups) {
    running.push_back(std::make_unique<Running>(group, logs));
  }
  const tests::Stopwatch watch;
  bool well = true;
  while (!running.empty()) {
    stop_if_interrupted();
    if (watch.time() > kLongest) {
      throw std::runtime_error(running.front()->name() + " does not end; see " +
                               running.front()->log().string());
    }
    well = judge_ended(running) && well;
    tests::pause(50ms);
  }
  return well;
}

}  // namespace live
