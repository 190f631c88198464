// Which code this thread runs, and the memory that the library allocates.
#ifndef DDBMUTEX_TESTS_WORLD_MEMORY_HPP
#define DDBMUTEX_TESTS_WORLD_MEMORY_HPP

#include "tests/world/world.hpp"

namespace world {

// What is known of the calling thread; no process if it is not the world's.
struct ThisThread {
  Process* const* process = nullptr;
  bool inside = false;
};
void set_this_thread(const ThisThread& thread);
bool is_inside();
// Null if the thread belongs to no process.
Process* process_of_this_thread();

// Whether memory runs out now.  Asked where a real system would allocate and
// the world does not.
bool runs_out_of_memory();

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_MEMORY_HPP
