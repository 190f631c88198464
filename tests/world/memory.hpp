// Whose code a thread runs, and the memory of the library in it.
#ifndef DDBMUTEX_TESTS_WORLD_MEMORY_HPP
#define DDBMUTEX_TESTS_WORLD_MEMORY_HPP

#include "tests/world/world.hpp"

namespace world {

// Of the real thread that asks; there is none in one that is not the world's.
struct ThisThread {
  Process* const* process = nullptr;
  bool inside = false;
};
void set_this_thread(const ThisThread& thread);
bool is_inside();
// Null outside of all processes.
Process* process_of_this_thread();

// Whether memory runs out now, for what does not allocate by itself here but
// would in a real system.
bool runs_out_of_memory();

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_MEMORY_HPP
