// What the demo shows.
#ifndef DDBMUTEX_EXAMPLES_DEMO_SCENES_HPP
#define DDBMUTEX_EXAMPLES_DEMO_SCENES_HPP

#include "examples/demo/place.hpp"
#include "examples/demo/process.hpp"
#include "examples/demo/screen.hpp"

namespace demo {

// True if all that was claimed of them was right.  Throws where a scene cannot
// go on.
bool show_scenes(Place& place, Screen& screen, const Folder& folder);

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_SCENES_HPP
