// One run of the torture as a picture (SVG): who held what, and what went wrong
// around it.
//
//   std::ofstream file("timeline.svg");
//   write_timeline(file, history, found, "seed 7");
//
// The run is folded into strips, one below the other.  Each has a lane for
// every name, coloured by the process that held it, and a thin one for every
// process: alive, stopped, killed, its calendar.  Outages are bands across all
// of it; violations are red.
#ifndef DDBMUTEX_TESTS_TORTURE_TIMELINE_HPP
#define DDBMUTEX_TESTS_TORTURE_TIMELINE_HPP

#include <ostream>
#include <string>

#include "tests/torture/judge.hpp"

namespace torture {

void write_timeline(std::ostream& out, const History& history,
                    const Findings& found, const std::string& title);

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_TIMELINE_HPP
