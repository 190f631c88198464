// The control ports of programs of ours that are commanded by JSON over HTTP
// (tests/gateway/json_port.js).
//
//   call_control("gateway", port, "POST", "/mode", R"({"mode":"hang"})");
//
// What goes wrong throws std::runtime_error, and so does a refusal.
#ifndef DDBMUTEX_TESTS_SUPPORT_CONTROL_PORT_HPP
#define DDBMUTEX_TESTS_SUPPORT_CONTROL_PORT_HPP

#include <string>

#include "tests/support/process.hpp"

namespace tests {

// The answer's body.  `who` is for people.
std::string call_control(const std::string& who, int port,
                         const std::string& method, const std::string& path,
                         const std::string& json);

// The first line of a program, by which it says that it listens; throws with
// its complaints if it does not.
std::string first_line(const std::string& who, Process& process);

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_CONTROL_PORT_HPP
