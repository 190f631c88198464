// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

#ifndef DDBMUTEX_NO_PROFILES
// Linux has no call that signals a process with all its descendants.  So each
// process in /proc is asked for its parent.
#include "descendants.hpp"

#include <dirent.h>
#include <signal.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "../secret.hpp"
#include "../text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

Descendants::Process Descendants::find(pid_t pid) {
  const SecretFile file(join({"/proc/", Digits(pid), "/stat"}), 4096);
  // The name, in parentheses, may contain blanks and more of them.
  const std::size_t name_end = file.text.rfind(')');
  if (name_end == std::string::npos) return {};
  Process process;
  // Fields 4 and 22: see proc(5).
  const int read = std::sscanf(
      file.text.c_str() + name_end,
      ") %*s %d %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s"
      " %*s %llu",
      &process.parent, &process.started);
  if (read == 2) process.pid = pid;
  return process;
}

std::vector<Descendants::Process> Descendants::find_all() {
  std::vector<Process> all;
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(opendir("/proc"),
                                                      &closedir);
  if (directory == nullptr) return all;
  while (const dirent* entry = readdir(directory.get())) {
    if (!is_digit(entry->d_name[0])) continue;
    const Process process = find(std::atoi(entry->d_name));
    if (process.pid != 0) all.push_back(process);
  }
  return all;
}

bool Descendants::knows(pid_t pid) const {
  for (const Process& one : known_) {
    if (one.pid == pid) return true;
  }
  return false;
}

// Drops those that have ended, because another process may have their number by
// now, and adds new ones.
void Descendants::update(pid_t ancestor) {
  const std::vector<Process> all = find_all();
  std::vector<Process> running;
  for (const Process& one : all) {
    for (const Process& known : known_) {
      if (is_same(one, known)) running.push_back(one);
    }
  }
  known_.swap(running);
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
    if (is_same(one, find(one.pid))) kill(one.pid, signal);
  }
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
