// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Runs a program and reads what it writes, until it ends or is ended.
//
// The program is in our process group, so it may ask a person something on the
// terminal.  It gets our environment, the default action for every signal, and
// none of our descriptors but stdin, and that only if it is a terminal.  If
// this process ignores its environment (settings.hpp), the program gets PATH
// and HOME alone.
//
// The program gets SIGTERM, and soon after SIGKILL, if its time is up, or if
// its keys are no longer wanted.  Processes that it has started are left alone.
// They delay nothing, even if they have its stdout open.
#ifndef DDBMUTEX_SIGV4_PROGRAM_HPP
#define DDBMUTEX_SIGV4_PROGRAM_HPP

#include <string>

#include "../../sigv4/keys/credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// How a program has ended.
struct ProgramResult {
  std::string failure;     // Empty: there is none.
  bool is_final = false;   // Another attempt would fail again.
  bool not_found = false;  // There is no such program.
  int status = 0;          // With which it exited.
  Secret output;
  Secret complaints;  // The end of its stderr.
};

// Both: texts, each with a NUL behind it.  `words`: the command.  `settings`:
// variables ("NAME=VALUE") that replace those of our environment.
ProgramResult run_program(std::string words, std::string settings,
                          const Fetch& fetch);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_PROGRAM_HPP
