// The pictures of README: drawn, not made up.
//
//   Lease lease;                             // By the protocol's own margins.
//   file << draw(lease);
//
//   Minute minute = minute_of(read_history(logs), "seed 7");
//   file << write(minute);                   // Once, after a torture;
//   picture << draw(read_minute(file));      // as often as one likes.
//
//   picture << draw(read_race(page));        // Of the table of `make bench`.
//
// Each has the colours of a light page and of a dark one, and paper of its own
// under them, for whoever shows it without asking which is wanted.
#ifndef DDBMUTEX_TESTS_PICTURES_PICTURES_HPP
#define DDBMUTEX_TESTS_PICTURES_PICTURES_HPP

#include <chrono>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/torture/history.hpp"

namespace pictures {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

// --- What all look like ------------------------------------------------------

// A class of the pictures' style sheet and what it is painted with.
struct Paint {
  const char* name;
  const char* light;
  const char* dark;
  enum Use { paper, text, mark } use;
};
const std::vector<Paint>& paints();

std::string style();

// --- What a lease is ---------------------------------------------------------

// A holder that renews once and is killed, and a waiter that takes the lock
// over.  Times since the holder's first request.
struct Lease {
  Lease();  // As the library counts.

  nanoseconds ttl;
  nanoseconds renewed;    // The renewal is sent.
  nanoseconds killed;     // The holder.
  nanoseconds claim_end;  // Until then the lock was the holder's.
  nanoseconds seen;       // The waiter receives the renewed record.
  nanoseconds taken;      // It takes the lock.
};
std::string draw(const Lease& lease);

// --- A minute of the torture -------------------------------------------------

// Times are milliseconds since the run began.
struct Minute {
  struct Stretch {
    milliseconds begin{}, end{};
  };
  struct Claim {
    int process = 0;
    Stretch held;             // As far as its holder saw it.
    milliseconds promised{};  // Later than that if it was killed or stopped.
  };
  struct Life {
    int process = 0;
    Stretch span;
    bool killed = false;
    std::vector<Stretch> stops;
  };
  struct Outage {
    std::string what;
    Stretch span;
  };

  std::string title;
  std::map<std::string, std::vector<Claim>> claims;  // By lock; by time.
  std::vector<Life> lives;
  std::vector<Outage> outages;
};

// The first minute of it.
Minute minute_of(const torture::History& history, const std::string& title);
std::string write(const Minute& minute);
// Throws std::runtime_error that names the line.
Minute read_minute(std::istream& in);
std::string draw(const Minute& minute);

// --- What the lock costs beside others ---------------------------------------

// CPU time of a lock taken and given back; that of ours is 1.
struct Race {
  struct Lane {
    std::string name;
    std::string metric{};  // Of the bench.  Ours has none.
    double times = 0;
  };
  std::string measured;  // When and where.
  std::vector<Lane> lanes;
};
// The page with the table that `make bench` writes.  Throws std::runtime_error
// that names the figure that it does not have.
Race read_race(std::istream& page);
std::string draw(const Race& race);

}  // namespace pictures

#endif  // DDBMUTEX_TESTS_PICTURES_PICTURES_HPP
