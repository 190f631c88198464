// What processes say of the items that they have done, beside the tokens under
// which they held them (tokens.hpp): was each round of an item done once, was
// none given out again after its last, and for how many others did it wait?
//
//   DoneLog log(directory + "/3.done");   // In each process.
//   log.done(item, round, token, now());  // Its release has succeeded.
//
//   done ITEM ROUND TOKEN TIME
#ifndef DDBMUTEX_TESTS_CLAIMS_ITEMS_HPP
#define DDBMUTEX_TESTS_CLAIMS_ITEMS_HPP

#include <algorithm>
#include <cstddef>
#include <istream>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/claims/claims.hpp"
#include "tests/claims/tokens.hpp"

namespace claims {

class DoneLog : private LogWriter {
 public:
  using LogWriter::LogWriter;
  // False: it could not be written.
  bool done(int item, int round, Token token, nanoseconds time) {
    return line("done " + std::to_string(item) + " " + std::to_string(round) +
                " " + std::to_string(token) + " " +
                std::to_string(time.count()));
  }
};

// One round of an item, counted from 1; what the next had to wait from.
struct Done {
  int item;
  int round;
  Token token;
  nanoseconds time;
};

// A last line without its end was cut short by a kill, and does not count.
inline std::vector<Done> read_done(std::istream& in) {
  std::vector<Done> all;
  for (std::string line; std::getline(in, line) && !in.eof();) {
    std::istringstream words(line);
    std::string word;
    Done done{};
    long long time = 0;
    words >> word >> done.item >> done.round >> done.token >> time;
    done.time = nanoseconds(time);
    if (words && word == "done") all.push_back(done);
  }
  return all;
}

struct ItemFindings {
  std::vector<std::string> wrong;
  // So many acquisitions of others began while an item that had been given back
  // was free.  One that a process got which was killed before it could say so
  // was not free: its number is missing.
  std::size_t longest_wait = 0;
};

// Of all processes together, in any order.  `grants` are those that were held.
inline ItemFindings judge_items(const std::vector<Done>& all,
                                const std::vector<Grant>& grants, int rounds) {
  ItemFindings found;
  std::vector<nanoseconds> begun;
  std::map<int, std::map<nanoseconds, Token>> begun_of;
  for (const Grant& grant : grants) {
    if (!grant.claim) continue;
    begun.push_back(grant.claim->begin);
    begun_of[grant.lock][grant.claim->begin] = grant.token;
  }
  std::sort(begun.begin(), begun.end());

  std::map<std::pair<int, int>, int> times_done;
  for (const Done& done : all) {
    const std::string name = "item " + std::to_string(done.item);
    if (++times_done[{done.item, done.round}] == 2) {
      found.wrong.push_back(name + ": round " + std::to_string(done.round) +
                            " was done twice");
    }
    const auto& own = begun_of[done.item];
    const auto next = own.upper_bound(done.time);
    if (next == own.end()) continue;
    if (done.round >= rounds) {
      found.wrong.push_back(name + ": was given out after it was done");
    }
    if (next->second != done.token + 1) continue;
    const auto waited =
        std::lower_bound(begun.begin(), begun.end(), next->first) -
        std::upper_bound(begun.begin(), begun.end(), done.time);
    found.longest_wait =
        std::max(found.longest_wait, static_cast<std::size_t>(waited));
  }
  return found;
}

}  // namespace claims

#endif  // DDBMUTEX_TESTS_CLAIMS_ITEMS_HPP
