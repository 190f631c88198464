// Keys that a program of the user's gives: a profile's credential_process.
//
// The command is taken apart as a POSIX shell would, but no shell runs and
// nothing is expanded, as botocore has it.  The program gets our environment,
// no input, none of our files, a process group of its own and all signals as
// they are by default.  What it says on stderr nobody sees; on stdout it writes
// at most 64 KiB:
//
//   {"Version": 1, "AccessKeyId": "...", "SecretAccessKey": "...",
//    "SessionToken": "...", "Expiration": "2030-01-01T00:00:00Z",
//    "AccountId": "..."}
//
// The last three may be missing.  It has a minute, or until the deadline if
// that is sooner, or until nobody waits for it any more; then its group is told
// to end, and soon after killed.
//
// `broken` is what trying again does not mend: a command that cannot be taken
// apart or started, a document that is none.  `failed` is a program that ended
// with another status than 0 (it may want the network), by a signal or not in
// time, and, as with botocore and AWS's JavaScript SDK, keys whose time is over
// already.  No text shows what it wrote or what the command is.
#ifndef DDBMUTEX_SIGV4_FROM_PROGRAM_HPP
#define DDBMUTEX_SIGV4_FROM_PROGRAM_HPP

#include <string>
#include <string_view>

#include "credentials.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// Puts the words behind `words`, each with a NUL at its end, and returns why
// there are none: "a quote is not closed"; empty if there are.
//
// As Python's shlex.split() has it, which is what botocore goes by: words stand
// between blanks, tabs and line ends.  Within single quotes all is as it is,
// within double ones a backslash stands for itself but before a double quote or
// another backslash, and elsewhere the character behind a backslash is as it
// is.  Pure.
const char* split_command(std::string_view command, std::string& words);

// `place`: where the command stands, for people: `credential_process of profile
// "x" in "/home/u/.aws/config"`.
KeyOutcome process_keys(const std::string& command, const std::string& place,
                        const Fetch& fetch);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_PROGRAM_HPP
