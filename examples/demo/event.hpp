// What the processes of the demo tell the one that shows it: a line an event.
#ifndef DDBMUTEX_EXAMPLES_DEMO_EVENT_HPP
#define DDBMUTEX_EXAMPLES_DEMO_EVENT_HPP

#include <cstdint>
#include <optional>
#include <string>

#include "examples/demo/clock.hpp"

namespace demo {

struct Event {
  enum class Kind {
    ready,   // To begin.
    waits,   // Calls lock().
    holds,   // Has the lock until `number` (ns on the clock), then and there.
    reads,   // Has read `number` in the file.
    wakes,   // Was stopped; `number` is what owns_lock() said first then.
    finds,   // owns_lock() is false: nothing is written.
    writes,  // Has written `number` into the file.
    frees,   // Begins to unlock; its lease would last until `number`.
    freed,   // ... and is back.
    lost,    // on_lost tells: `text` is the reason.
    done,    // With all it was to do.
    fails,   // Cannot go on: `text` tells why.
  };
  char process = '?';
  Kind kind = Kind::ready;
  Time at{};
  std::int64_t number = 0;
  std::string text;
};

std::string to_line(const Event& event);  // Ends with '\n'.
std::optional<Event> read_line(const std::string& line);

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_EVENT_HPP
