#ifndef DDBMUTEX_NO_PROFILES
// Linux has no call that signals a process with all its descendants.  So each
// process in /proc is asked for its parent.
#include "descendants.hpp"

#include <dirent.h>
#include <signal.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

#include "../secret.hpp"
#include "../text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

pid_t number_in(std::string_view text) {
  pid_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

Descendants::Process Descendants::find(const std::string& pid) {
  constexpr int kParent = 4, kStarted = 22;  // Counted from 1: see proc(5).
  const SecretFile file(join({"/proc/", pid, "/stat"}), 4096);
  // Field 2 is the name in parentheses, which may contain blanks and more of
  // them.
  const std::size_t name_end = file.text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::string_view rest = std::string_view(file.text).substr(name_end);
  Process process;
  process.pid = number_in(pid);
  for (int field = 2; field <= kStarted; ++field) {
    const std::string_view value = sigv4::cut(rest, ' ');
    if (field == kParent) process.parent = number_in(value);
    if (field == kStarted) process.started = value;
  }
  return process;
}

std::vector<Descendants::Process> Descendants::find_all() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"),
                                                      &closedir);
  if (directory == nullptr) return all;
  while (const dirent* entry = readdir(directory.get())) {
    if (!is_digit(entry->d_name[0])) continue;
    Process process = find(entry->d_name);
    if (process.pid != 0) all.push_back(std::move(process));
  }
  return all;
}

bool Descendants::knows(pid_t pid) const {
  return std::any_of(known_.begin(), known_.end(),
                     [pid](const Process& one) { return one.pid == pid; });
}

// Drops those that have ended, because another process may have their number by
// now, and adds new ones.
void Descendants::update(pid_t ancestor) {
  const std::vector<Process> all = find_all();
  const auto has_ended = [&all](const Process& one) {
    return std::none_of(all.begin(), all.end(), [&one](const Process& running) {
      return is_same(one, running);
    });
  };
  known_.erase(std::remove_if(known_.begin(), known_.end(), has_ended),
               known_.end());
  // A child may stand before its parent in /proc.
  for (bool added = true; added;) {
    added = false;
    for (const Process& one : all) {
      const bool is_child = one.parent == ancestor || knows(one.parent);
      if (!is_child || knows(one.pid)) continue;
      known_.push_back(one);
      added = true;
    }
  }
}

void Descendants::signal(pid_t ancestor, int signal) {
  update(ancestor);
  for (const Process& one : known_) {
    if (is_same(one, find(decimal(one.pid)))) kill(one.pid, signal);
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
