// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The public calls of an AnyOf, its options, what a pass finds, and what the
// calls of one process share.  What one call does is in any_of_call.cpp.
//
// A pass ranks what it sees.  Each row that is wanted is remembered, so that
// the next pass knows how long it has been unchanged.  If it may be free, it
// becomes a candidate.  The best 1,024 candidates are kept.
#include "any_of.hpp"

#include <algorithm>
#include <functional>
#include <iterator>
#include <mutex>
#include <tuple>
#include <utility>

#include "../ddbmutex/impl.hpp"
#include "../sigv4/memory.hpp"
#include "../sigv4/text.hpp"
#include "any_of_impl.hpp"

namespace ddbmutex {
inline namespace v0 {

using any_of::Candidate;
using any_of::Pass;
using detail::ErrorPtr;
using detail::nanoseconds_of;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kMostCandidates = 1024;
constexpr std::size_t kMostRemembered = 65536;
constexpr std::size_t kMostWatched = 64;
// A candidate is taken from the first quarter, but from at least so many.
constexpr std::size_t kLeastSpread = 16;
// This share of the free items comes before all others, as if they had been
// unchanged for kPreferredAge, so that none waits for ever.
constexpr double kPreferredShare = 1.0 / 8;
constexpr std::chrono::hours kPreferredAge{1000000};

ErrorPtr check(const AnyOfOptions& options) {
  const char* bad_name = "";
  for (const std::string& name : options.read) {
    if (name.empty()) bad_name = "an empty name";
    if (*bad_name == '\0') {
      bad_name = detail::text_problem(name, 65535, "longer than 65,535 bytes");
    }
  }
  const milliseconds first = options.first_pause;
  return detail::check_all({
      {"prefix", detail::text_problem(options.prefix, detail::kMaxKeyBytes,
                                      "longer than 2,048 bytes")},
      {"read", bad_name},
      {"first_pause", first <= milliseconds::zero() ? "not more than 0" : ""},
      {"longest_pause",
       options.longest_pause < first ? "less than first_pause" : ""},
  });
}

}  // namespace

// --- What an AnyOf is inside -------------------------------------------------

AnyOf::Impl::Impl(const AnyOfOptions& the_options) : options(the_options) {
  if (!options.each.table) options.each.table = Table::standard();
  options.each.keep_row = true;
  options.each.only_if_exists = true;
  // A mutex with the same options finds what is wrong with them or with the
  // table, in its constructor or, without exceptions, in its first call.
  const bool sorted = !table().options.sort_key.empty();
  DdbMutex probe("any", each(sorted ? "any" : ""));
  std::error_code ec;
  probe.renew(ec);
  if (ec == std::errc::not_enough_memory) sigv4::no_memory();
  unusable = ec == make_error_code(Errc::not_held)
                 ? check(options)
                 : detail::make_error(ec, probe.last_error());
}

Options AnyOf::Impl::each(const std::string& sort_value) const {
  Options each = options.each;
  each.sort_value = sort_value;
  return each;
}

milliseconds AnyOf::Impl::request_timeout() const {
  return detail::request_timeout_of(options.each);
}

std::string AnyOf::Impl::cannot_lock() const {
  return sigv4::join({"cannot lock any of ",
                      sigv4::in_quotes(options.prefix + "..."), " in table ",
                      sigv4::in_quotes(options.each.table->name())});
}

AnyOf::Impl::Shared& AnyOf::Impl::get() {
  return shared.get(table().get(), nanoseconds_of(options.first_pause),
                    nanoseconds(request_timeout()));
}

// --- What a pass finds -------------------------------------------------------

bool any_of::IsBetter::operator()(const Candidate& one,
                                  const Candidate& other) const {
  return std::tie(one.since, one.token, one.chance) <
         std::tie(other.since, other.token, other.chance);
}

Pass::Pass(std::uint64_t the_number,
           std::shared_ptr<const Pass> the_rows_before)
    : number(the_number), rows_before(std::move(the_rows_before)) {}

void Pass::see(const LockInfo& item, std::optional<nanoseconds> wait,
               dynamodb::RetryBudget& random) {
  ++accepted;
  const std::hash<std::string> hash;
  const std::size_t key = hash(item.name) * 31 + hash(item.sort_value);
  Row row{hash(item.uuid) + static_cast<std::size_t>(item.expires.count()),
          begun};
  const auto known = rows_before->rows.find(key);
  if (known != rows_before->rows.end() &&
      known->second.version == row.version) {
    row = known->second;
  }
  if (rows.size() < kMostRemembered) rows.emplace(key, row);

  if (!wait) return;
  const bool waits = *wait > nanoseconds::zero();
  if (waits && BootClock::now() - row.since < *wait) return;
  Candidate candidate{item.name, item.sort_value, row.since, item.token, 0,
                      *wait};
  const bool preferred = random.random_share() < kPreferredShare;
  if (preferred) candidate.since -= kPreferredAge;
  candidate.chance = random.random_share();
  candidates.insert(std::move(candidate));
  if (candidates.size() <= kMostCandidates) return;
  candidates.erase(std::prev(candidates.end()));
  left_out = true;
}

void Pass::keep_rows_before() {
  for (const auto& row : rows_before->rows) {
    if (rows.size() < kMostRemembered) rows.insert(row);
  }
}

Candidate Pass::take_one(dynamodb::RetryBudget& random) {
  const std::size_t spread = std::min(
      candidates.size(), std::max(kLeastSpread, candidates.size() / 4));
  const double at = random.random_share() * static_cast<double>(spread);
  const auto chosen =
      std::next(candidates.begin(), static_cast<std::ptrdiff_t>(at));
  return std::move(candidates.extract(chosen).value());
}

bool Pass::has_to_watch(const Candidate& item) const {
  for (const Candidate& one : candidates) {
    if (one.is_same_item(item)) return one.has_to_be_watched();
  }
  return false;
}

// --- What the calls of a process share ---------------------------------------

AnyOf::Impl::Shared::Shared(lock::TableState& the_table, nanoseconds the_pause,
                            nanoseconds request_timeout)
    : table(the_table),
      first_pause(the_pause),
      pass_takes(request_timeout / 4) {}

bool AnyOf::Impl::Shared::is_due(const Candidate& item,
                                 std::unique_ptr<DdbMutex>& found) {
  if (!item.has_to_be_watched()) return true;
  const auto known = find_watched(item);
  if (known == watched.end()) return watched.size() < kMostWatched;
  if (BootClock::now() < known->due) return false;
  found = std::move(known->mutex);
  watched.erase(known);
  return true;
}

void AnyOf::Impl::Shared::watch(const Candidate& item,
                                std::unique_ptr<DdbMutex>& refused) {
  // Another thread may have tried it at the same time.
  if (find_watched(item) != watched.end()) return;
  if (watched.size() >= kMostWatched) return;
  const BootTime due = BootClock::now() + item.watch_for;
  watched.push_back({item, std::move(refused), due});
}

std::list<AnyOf::Impl::Shared::Watched>::iterator
AnyOf::Impl::Shared::find_watched(const Candidate& item) {
  auto found = watched.begin();
  while (found != watched.end() && !found->item.is_same_item(item)) ++found;
  return found;
}

void AnyOf::Impl::Shared::plan_next_pass(BootTime now,
                                         nanoseconds longest_pause) {
  next_pass_at = now + backoff.next({first_pause, longest_pause},
                                    table.budget.random_share());
}

std::list<AnyOf::Impl::Shared::Watched> AnyOf::Impl::Shared::publish(
    const std::shared_ptr<Pass>& ended) {
  const bool read_all = ended->extent == Pass::Extent::all;
  const nanoseconds took = ended->ended - ended->begun;
  pass_takes = read_all ? took : std::max(took, pass_takes);
  last_rows = ended;
  if (read_all || !ended->candidates.empty()) last_pass = ended;
  std::list<Watched> unneeded;
  if (!read_all) return unneeded;
  accepted = ended->accepted;
  for (auto one = watched.begin(); one != watched.end();) {
    const auto next = std::next(one);
    if (!ended->has_to_watch(one->item)) {
      unneeded.splice(unneeded.end(), watched, one);
    }
    one = next;
  }
  return unneeded;
}

// --- The calls ---------------------------------------------------------------

AnyOf::AnyOf(const AnyOfOptions& options) {
  const detail::NoCancellation guard;
  impl_ = std::make_shared<Impl>(options);
  impl_->finish_construction(impl_);
}

AnyOf::~AnyOf() {
  const detail::NoCancellation guard;
  cancel();
  impl_.reset();
}

std::unique_ptr<DdbMutex> AnyOf::lock_within(nanoseconds time,
                                             std::atomic<bool>* stopped,
                                             std::error_code& ec) {
  std::unique_ptr<DdbMutex> locked;
  detail::run(impl_, ec, [&](Impl& impl) {
    return Impl::Call(impl, time, stopped).run(locked);
  });
  return locked;
}

std::unique_ptr<DdbMutex> AnyOf::lock(std::error_code& ec) {
  return lock_within(detail::kForEver, nullptr, ec);
}

std::unique_ptr<DdbMutex> AnyOf::try_lock(std::error_code& ec) {
  return lock_within(nanoseconds::zero(), nullptr, ec);
}

void AnyOf::stop(Impl& impl, std::atomic<bool>& stopped) noexcept {
  stopped = true;
  if (Impl::Shared* shared = impl.shared.peek()) shared->cancel(&stopped);
}

void AnyOf::cancel() noexcept {
  if (Impl::Shared* shared = impl_->shared.peek()) shared->cancel(nullptr);
}

std::optional<std::size_t> AnyOf::accepted() const noexcept {
  Impl::Shared* const shared = impl_->shared.peek();
  if (shared == nullptr) return std::nullopt;
  const std::lock_guard<sigv4::Mutex> guard(shared->mutex);
  return shared->accepted;
}

std::string AnyOf::last_error() const { return impl_->last_error(); }

}  // namespace v0
}  // namespace ddbmutex
