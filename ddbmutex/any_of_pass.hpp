// What one pass over the table of an AnyOf has found: how many items there are,
// which of them may be free, and which to try first.
//
// A pass does not decide who gets an item, a DdbMutex does.  A pass that is
// wrong or old costs a refused write.  So the order of tries may rest on hashes
// and on chance.
//
// Thread safety: as an int.
#ifndef DDBMUTEX_ANY_OF_PASS_HPP
#define DDBMUTEX_ANY_OF_PASS_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../ddbmutex.hpp"
#include "../sigv4/boot_clock.hpp"
#include "dynamodb/client.hpp"
#include "dynamodb/retry.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace any_of {

// A row, and since when it has been unchanged, as far as this AnyOf has seen.
struct SeenRow {
  std::size_t item;     // A hash of the name and the sort value.
  std::size_t version;  // A hash of the record.
  BootTime since;
};
using SeenRows = std::vector<SeenRow>;  // Sorted by `item`.

// An item that may be free.
struct Candidate {
  std::string name{};
  std::string sort_value{};
  std::uint64_t token = 0;
  std::uint64_t chance = 0;  // Decides between items that are equal otherwise.
  BootTime since{};          // As in SeenRow.
  // The item is held, and its row does not say when the lease ends.  It may be
  // taken once a DdbMutex has seen it unchanged for so long.  Otherwise 0.
  std::chrono::nanoseconds watch_for{};
};

// Judges by the row alone whether a lease is over.
class LeaseJudge {
 public:
  // `usual_lease`: the lease of an item whose row names none.
  LeaseJudge(const dynamodb::Client& client,
             std::chrono::nanoseconds calendar_margin,
             std::chrono::nanoseconds usual_lease);

  // How long the row must have been unchanged before a try is worth it: 0 if it
  // may be tried now, nothing if it is certainly held.
  std::optional<std::chrono::nanoseconds> wait_for(const LockInfo& item) const;

 private:
  const dynamodb::Client& client_;
  const std::chrono::nanoseconds over_by_;
  const std::chrono::nanoseconds usual_lease_;
};

class Pass {
 public:
  enum class Extent { nothing, part, all };  // How much of the table was read.

  // The first one, before anything was read.
  Pass() = default;
  // `number`: from 1 on, in the order in which passes begin.  `before`: what
  // earlier passes have seen.
  Pass(std::uint64_t number, std::shared_ptr<const SeenRows> before);

  // Called for each item that is wanted, free or held.
  void see(const LockInfo& item, const LeaseJudge& leases,
           dynamodb::RetryBudget& random);
  // Puts in order what was seen, and returns the rows to remember.  REQUIRES:
  // the extent is set.
  std::shared_ptr<const SeenRows> end();

  // Takes out one of the best candidates, at random.  REQUIRES: there is one.
  Candidate take_one(dynamodb::RetryBudget& random);
  bool has_candidates() const { return !candidates_.empty(); }
  // Whether this is among the candidates, and has to be watched.
  bool has_to_watch(const std::string& name,
                    const std::string& sort_value) const;
  // True if nothing is free once all candidates were refused.
  bool is_complete() const { return extent == Extent::all && !left_out; }

  const std::uint64_t number = 0;
  const BootTime begun = BootClock::now();
  BootTime ended{};
  Extent extent = Extent::nothing;
  std::size_t accepted = 0;  // Items that are wanted, free or held.
  // An item that may be free is not among the candidates any more, though no
  // try was refused.
  bool left_out = false;
  int being_tried = 0;  // Candidates that were taken out by calls.
  int refused_in_a_row = 0;

 private:
  void add(Candidate&& candidate);

  std::shared_ptr<const SeenRows> before_;
  SeenRows seen_;
  // Until the pass ends, a heap with the worst on top; then the best are first.
  std::vector<Candidate> candidates_;
};

}  // namespace any_of
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ANY_OF_PASS_HPP
