// The calls of an AnyOf, its options, and what its calls share in one process.
// What one call does is in any_of_call.cpp, what it finds in any_of_pass.cpp.
#include "any_of.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>

#include "../sigv4/text.hpp"
#include "any_of_impl.hpp"
#include "mutex_impl.hpp"

namespace ddbmutex {
inline namespace v0 {

using any_of::Candidate;
using any_of::Pass;
using detail::ErrorPtr;
using detail::nanoseconds_of;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

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

AnyOf::Impl::Impl(AnyOfOptions&& the_options)
    : options(std::move(the_options)) {
  if (!options.each.table) options.each.table = Table::standard();
  options.each.keep_row = true;
  options.each.only_if_exists = true;
  // A mutex with the same options finds what is wrong with them or with the
  // table, in its constructor or, without exceptions, in its first call.
  const bool sorted = !table().options.sort_key.empty();
  DdbMutex probe("any", each(sorted ? "any" : ""));
  std::error_code ec;
  probe.renew(ec);
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
  return sigv4::format("cannot lock any of %q in table %q",
                       options.prefix + "...", options.each.table->name());
}

AnyOf::Impl::Shared& AnyOf::Impl::get() {
  return shared.get(table().get(), nanoseconds_of(options.first_pause),
                    nanoseconds(request_timeout()));
}

// --- What the calls of a process share ---------------------------------------

AnyOf::Impl::Shared::Shared(lock::Table& the_table, nanoseconds the_pause,
                            nanoseconds request_timeout)
    : table(the_table),
      first_pause(the_pause),
      pass_takes(request_timeout / 4),
      pause(the_pause) {}

bool AnyOf::Impl::Shared::is_due(const Candidate& item,
                                 std::unique_ptr<DdbMutex>& found) {
  if (item.watch_for == nanoseconds::zero()) return true;
  const auto known = find_watched(item);
  if (known == watched.end()) return watched.size() < kMostWatched;
  if (BootClock::now() < known->due) return false;
  found = std::move(known->mutex);
  watched.erase(known);
  return true;
}

void AnyOf::Impl::Shared::watch(Candidate&& item,
                                std::unique_ptr<DdbMutex> refused) {
  // Another thread may have tried it at the same time.
  if (find_watched(item) != watched.end()) return;
  if (watched.size() >= kMostWatched) return;
  const BootTime due = BootClock::now() + item.watch_for;
  watched.push_back({std::move(refused), std::move(item), due});
}

std::vector<AnyOf::Impl::Shared::Watched>::iterator
AnyOf::Impl::Shared::find_watched(const Candidate& item) {
  return std::find_if(watched.begin(), watched.end(), [&](const Watched& one) {
    return one.item.name == item.name && one.item.sort_value == item.sort_value;
  });
}

void AnyOf::Impl::Shared::plan_next_pass(BootTime now,
                                         nanoseconds longest_pause) {
  next_pass_at = now + table.budget.jitter(pause);
  pause = pause < longest_pause / 2 ? 2 * pause : longest_pause;
}

void AnyOf::Impl::Shared::publish(
    const std::shared_ptr<Pass>& ended,
    std::shared_ptr<const any_of::SeenRows>&& rows,
    std::vector<Watched>& unneeded) {
  const bool read_all = ended->extent == Pass::Extent::all;
  const nanoseconds took = ended->ended - ended->begun;
  pass_takes = read_all ? took : std::max(took, pass_takes);
  seen = std::move(rows);
  if (read_all) {
    accepted = ended->accepted;
    const auto first_unneeded =
        std::partition(watched.begin(), watched.end(), [&](const Watched& one) {
          return ended->has_to_watch(one.item.name, one.item.sort_value);
        });
    std::move(first_unneeded, watched.end(), std::back_inserter(unneeded));
    watched.erase(first_unneeded, watched.end());
  }
  if (read_all || ended->has_candidates()) last_pass = ended;
}

// --- The calls ---------------------------------------------------------------

AnyOf::AnyOf(AnyOfOptions options) {
  const detail::NoCancellation guard;
  impl_ = std::make_shared<Impl>(std::move(options));
  impl_->finish_construction(impl_);
}

AnyOf::~AnyOf() {
  const detail::NoCancellation guard;
  cancel();
  impl_.reset();
}

std::unique_ptr<DdbMutex> AnyOf::lock_within(const detail::Deadline& deadline,
                                             std::atomic<bool>* stopped,
                                             std::error_code& ec) {
  std::unique_ptr<DdbMutex> locked;
  detail::run(impl_, ec, [&](Impl& impl) {
    return Impl::Call(impl, deadline, stopped).run(locked);
  });
  return locked;
}

std::unique_ptr<DdbMutex> AnyOf::lock(std::error_code& ec) {
  return lock_within({}, nullptr, ec);
}

std::unique_ptr<DdbMutex> AnyOf::try_lock(std::error_code& ec) {
  return lock_within({nanoseconds::zero()}, nullptr, ec);
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
