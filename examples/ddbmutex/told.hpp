// What is printed about a lock, for people and for programs.
#ifndef DDBMUTEX_EXAMPLES_DDBMUTEX_TOLD_HPP
#define DDBMUTEX_EXAMPLES_DDBMUTEX_TOLD_HPP

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ddbmutex.hpp"
#include "examples/ddbmutex/options.hpp"

namespace command {

enum class State {
  free,
  held,
  expired,  // Its holder did not renew it: whoever asks now gets it.
  no_lock,  // There is an item, but it is not a lock, or it is too large to be
            // read.
};
State state_of(const ddbmutex::LockInfo& info);
const char* name_of(State state);
// What `run` needs to lock it: its option "--keep-row", or "an item", which
// must be made first; empty: nothing.
std::string need_of(const ddbmutex::LockInfo& info, Layout layout);
// At least 0; nothing if the record does not say.
std::optional<std::chrono::milliseconds> remaining_of(
    const ddbmutex::LockInfo& info);

// --- For people --------------------------------------------------------------

// "850ms", "12.3s", "4m10s", "2h05m", "3d04h"
std::string in_words(std::chrono::milliseconds time);
// Safe for a terminal: invalid UTF-8, control characters, and characters that
// reorder text or are invisible are replaced.
std::string printable(std::string_view text);
// The part that fits into that many columns.
std::string cut(const std::string& text, std::size_t width);
// Name and, if there is one, sort value.
std::string label_of(const ddbmutex::LockInfo& info);
// "held by host:123, 12.3s left"
std::string sentence_of(const ddbmutex::LockInfo& info, Layout layout = {});
// "held by host:123, taken or last renewed 12.3s ago", for one who waits.
std::string holder_in_words(const ddbmutex::LockInfo& info);
// All that is known, in lines.
std::string lines_of(const ddbmutex::LockInfo& info, Layout layout = {});
// A heading and a line for each, none wider than that.
std::vector<std::string> rows_of(const std::vector<ddbmutex::LockInfo>& infos,
                                 std::size_t width = std::string::npos,
                                 Layout layout = {});

// --- For programs ------------------------------------------------------------

// An object in one line.  `more`: further members, as JSON.
std::string json_of(const ddbmutex::LockInfo& info,
                    const std::string& more = {}, Layout layout = {});
std::string json_of(const std::string& text);  // "\"text\""

}  // namespace command

#endif  // DDBMUTEX_EXAMPLES_DDBMUTEX_TOLD_HPP
