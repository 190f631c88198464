// Ranks what a pass has seen.  Each item that is wanted becomes a SeenRow, so
// that the next pass knows how long it has been unchanged.  If it may be free,
// it also becomes a Candidate.  The best 1,024 candidates are kept.
#include "any_of_pass.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <tuple>
#include <utility>

#include "dynamodb/clock.hpp"
#include "lock/protocol.hpp"

namespace ddbmutex {
inline namespace v0 {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace any_of {
namespace {

constexpr std::size_t kMostCandidates = 1024;
constexpr std::size_t kMostRemembered = 65536;
// A candidate is taken from the first quarter, but from at least so many.
constexpr std::size_t kLeastSpread = 16;
// One free item in 8 comes before all others, as if it had been unchanged for
// kPreferredAge, so that none waits for ever.
constexpr nanoseconds kOneIn{7};
constexpr std::chrono::hours kPreferredAge{1000000};
// A lease must have been over for so long, beyond what a DdbMutex allows for
// clocks that differ.  That covers, mostly, what the DdbMutex does not know
// exactly of DynamoDB's clock; if it does not, the try is refused.
constexpr milliseconds kOverBy{1000};

bool by_item(const SeenRow& one, const SeenRow& other) {
  return one.item < other.item;
}

bool is_better(const Candidate& one, const Candidate& other) {
  return std::tie(one.since, one.token, one.chance) <
         std::tie(other.since, other.token, other.chance);
}

SeenRow seen_at(const LockInfo& item, BootTime now) {
  const std::hash<std::string> hash;
  return {hash(item.name) * 31 + hash(item.sort_value),
          hash(item.uuid) + static_cast<std::size_t>(item.expires.count()),
          now};
}

}  // namespace

LeaseJudge::LeaseJudge(const dynamodb::Client& client,
                       nanoseconds calendar_margin, nanoseconds usual_lease)
    : client_(client),
      over_by_(std::max<nanoseconds>(lock::kFrontEndSkew, calendar_margin) +
               kOverBy),
      usual_lease_(usual_lease) {}

std::optional<nanoseconds> LeaseJudge::wait_for(const LockInfo& item) const {
  if (!item.exists || item.released) return nanoseconds::zero();
  const dynamodb::ServiceClock clock = client_.clock();
  if (clock.known() && item.expires < lock::kBeyondAllClocks) {
    const bool is_over =
        clock.middle(BootClock::now()) - item.expires >= over_by_;
    return is_over ? std::make_optional(nanoseconds::zero()) : std::nullopt;
  }
  const bool has_lease = item.lease > milliseconds::zero();
  return lock::waited_for(has_lease ? item.lease : usual_lease_);
}

Pass::Pass(std::uint64_t the_number, std::shared_ptr<const SeenRows> before)
    : number(the_number), before_(std::move(before)) {}

void Pass::see(const LockInfo& item, const LeaseJudge& leases,
               dynamodb::RetryBudget& random) {
  ++accepted;
  SeenRow row = seen_at(item, begun);
  const auto known =
      std::lower_bound(before_->begin(), before_->end(), row, by_item);
  if (known != before_->end() && known->item == row.item &&
      known->version == row.version) {
    row.since = known->since;
  }
  if (seen_.size() < kMostRemembered) seen_.push_back(row);

  const std::optional<nanoseconds> wait = leases.wait_for(item);
  if (!wait) return;
  const bool waits = *wait > nanoseconds::zero();
  if (waits && BootClock::now() - row.since < *wait) return;
  Candidate candidate{item.name, item.sort_value, item.token,
                      0,         row.since,       *wait};
  const bool preferred = random.jitter(kOneIn) == nanoseconds::zero();
  if (preferred) candidate.since -= kPreferredAge;
  candidate.chance =
      static_cast<std::uint64_t>(random.jitter(nanoseconds::max()).count());
  add(std::move(candidate));
}

void Pass::add(Candidate&& candidate) {
  candidates_.push_back(std::move(candidate));
  std::push_heap(candidates_.begin(), candidates_.end(), is_better);
  if (candidates_.size() <= kMostCandidates) return;
  std::pop_heap(candidates_.begin(), candidates_.end(), is_better);
  candidates_.pop_back();
  left_out = true;
}

std::shared_ptr<const SeenRows> Pass::end() {
  std::sort_heap(candidates_.begin(), candidates_.end(), is_better);
  SeenRows seen = std::move(seen_);
  std::sort(seen.begin(), seen.end(), by_item);
  const std::shared_ptr<const SeenRows> before = std::move(before_);
  if (extent == Extent::all) return std::make_shared<SeenRows>(std::move(seen));
  // Rows that this pass did not reach are as they were seen before.
  SeenRows both;
  std::set_union(seen.begin(), seen.end(), before->begin(), before->end(),
                 std::back_inserter(both), by_item);
  both.resize(std::min(both.size(), kMostRemembered));
  return std::make_shared<SeenRows>(std::move(both));
}

Candidate Pass::take_one(dynamodb::RetryBudget& random) {
  const std::size_t spread = std::max(kLeastSpread, candidates_.size() / 4);
  const std::size_t last = std::min(spread, candidates_.size()) - 1;
  const auto place =
      candidates_.begin() + random.jitter(nanoseconds(last)).count();
  Candidate candidate = std::move(*place);
  candidates_.erase(place);
  return candidate;
}

bool Pass::has_to_watch(const std::string& name,
                        const std::string& sort_value) const {
  const auto found = std::find_if(
      candidates_.begin(), candidates_.end(), [&](const Candidate& one) {
        return one.name == name && one.sort_value == sort_value;
      });
  return found != candidates_.end() && found->watch_for > nanoseconds::zero();
}

}  // namespace any_of
}  // namespace v0
}  // namespace ddbmutex
