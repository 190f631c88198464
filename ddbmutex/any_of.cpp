#ifndef DDBMUTEX_NO_ANY_OF
#include "any_of.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <forward_list>
#include <functional>
#include <iterator>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/http.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/shared.hpp"
#include "../sigv4/text.hpp"
#include "ask.hpp"
#include "failure.hpp"
#include "listing.hpp"
#include "mutex.hpp"
#include "protocol.hpp"
#include "queue.hpp"
#include "table.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::Failure;
using detail::nanoseconds_of;
using dynamodb::Answer;
using dynamodb::Fault;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

constexpr std::size_t kMostCandidates = 1024;
constexpr std::size_t kMostRemembered = 65536;
constexpr std::size_t kMostWatched = 64;
constexpr std::size_t kLeastSpread = 16;
// One in 8 is put before all others, as if it had stood there for so long.
constexpr nanoseconds kOneIn{7};
constexpr std::chrono::hours kAge{1000000};
constexpr int kRefusedInARow = 5;
// So long a list of what was free is worth a try.
constexpr std::chrono::seconds kServesFor{1};
// By what a lease has to be over for a try to be worth it, beyond what a
// DdbMutex allows for clocks that differ.  What it does not know of DynamoDB's
// clock is less, mostly; if not, a try was in vain.
constexpr milliseconds kOverBy{1000};

milliseconds time_of_a_request(const Options& options) {
  return options.request_timeout.value_or(
      std::min(milliseconds(2000), options.ttl / 4));
}

// --- What a pass finds -------------------------------------------------------

// A row, and since when it has stood there as it does.  Only its place in line
// rests on this, so that hashes will do.
struct Seen {
  std::size_t item;
  std::size_t version;
  BootTime since;
};

int compare_items(const void* one, const void* other) {
  const std::size_t a = static_cast<const Seen*>(one)->item;
  const std::size_t b = static_cast<const Seen*>(other)->item;
  return (a > b) - (a < b);
}

// An item that may be free.  The best to try are the least.
struct Candidate {
  BootTime since{};
  std::uint64_t token = 0;
  nanoseconds chance{};
  std::string name{};
  std::string sort_value{};
  std::size_t item = 0;
  // Nothing says when its lease is over: it is held, and seen unchanged for so
  // long.  0 where that is known.
  nanoseconds unchanged_for{};
};

bool operator<(const Candidate& one, const Candidate& other) {
  const auto place = [](const Candidate& it) {
    return std::tie(it.since, it.token, it.chance);
  };
  return place(one) < place(other);
}

// One that others have not renewed, as far as it was seen, and the mutex that
// saw it when it was refused; null: none.
struct Watched {
  std::unique_ptr<DdbMutex> mutex;
  std::size_t item = 0;
  BootTime due{};
};

// What was found, and what is left of it.
struct Pass {
  void add(Candidate&& candidate);
  // Of that item, else one that is free; null if there is neither.
  Watched* place_of(std::size_t item);
  bool has_to_watch(std::size_t item) const;

  std::uint64_t number = 0;  // From 1 on; 0 until it is complete.
  const BootTime begun = BootClock::now();
  BootTime complete_at{};
  std::size_t accepted = 0;
  std::vector<Seen> seen;  // Sorted once it is complete.
  // In order, in no tree: they are few, and most rows are behind the last.
  std::forward_list<Candidate> candidates;
  std::size_t count = 0;
  const Candidate* last = nullptr;  // Null until there were too many.
  int refused_in_a_row = 0;
  Watched watched[kMostWatched];
};

void Pass::add(Candidate&& candidate) {
  if (last != nullptr && !(candidate < *last)) return;
  auto at = candidates.before_begin();
  while (std::next(at) != candidates.end() && *std::next(at) < candidate) ++at;
  candidates.insert_after(at, std::move(candidate));
  if (++count <= kMostCandidates) return;
  while (std::next(at, 2) != candidates.end()) ++at;
  candidates.erase_after(at);
  last = &*at;
  --count;
}

Watched* Pass::place_of(std::size_t item) {
  Watched* free = nullptr;
  for (Watched& one : watched) {
    if (one.mutex == nullptr) {
      free = &one;
    } else if (one.item == item) {
      return &one;
    }
  }
  return free;
}

bool Pass::has_to_watch(std::size_t item) const {
  for (const Candidate& one : candidates) {
    if (one.item == item && one.unchanged_for > nanoseconds::zero()) {
      return true;
    }
  }
  return false;
}

// What a call is to do next.
enum class Next { try_it, read, wait, give_up };

}  // namespace

// --- What the calls of a process share ---------------------------------------

struct AnyOf::Impl : detail::Calls {
  explicit Impl(AnyOfOptions&& the_options);

  struct State;
  class Call;
  State& get();
  Table::Impl& table() const { return *options.each.table->impl_; }
  // How an error begins.
  std::string cannot_lock() const {
    return sigv4::format("cannot lock any of \"%s...\" in table \"%s\"",
                         options.prefix, options.each.table->name());
  }
  // Of the lock on one item.
  Options each(const std::string& sort_value) const;

  AnyOfOptions options;  // Changed by the constructor alone.
  sigv4::PerProcess<State> state;
};

struct AnyOf::Impl::State {
  State(lock::Table& the_table, nanoseconds the_pause)
      : table(the_table), first_pause(the_pause), pause(the_pause) {}

  void cancel(const std::atomic<bool>* stopped);

  lock::Table& table;
  const nanoseconds first_pause;
  std::mutex mutex;
  // All below: GUARDED_BY(mutex)
  Call* calls = nullptr;  // The first.
  bool reading = false;
  std::uint64_t begun = 0;  // Passes.
  // The last that was complete.  Replaced by the call that reads alone, which
  // looks at what was seen then without the mutex.
  std::unique_ptr<Pass> pass = std::make_unique<Pass>();
  BootTime next_at{};  // A pass may begin that is not the first of its call.
  nanoseconds pause;
};

// One call under way, of one thread.
class AnyOf::Impl::Call {
 public:
  Call(Impl& impl, const detail::Deadline& deadline,
       const std::atomic<bool>* stopped);
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  Failure run(std::unique_ptr<DdbMutex>& got);

 private:
  friend struct State;

  BootTime end() const {
    return once_ || patience_.left == nullptr
               ? end_
               : lock::later(BootClock::now(), patience_.now());
  }
  bool time_is_up() const { return !once_ && BootClock::now() >= end(); }
  Failure failed(Errc why) const {
    return detail::failed(why, impl_.cannot_lock());
  }
  inline Failure ended() const;
  // `until`: to wait at the most.  The mutex: of a row that is watched.
  inline Next next(Candidate& candidate, std::unique_ptr<DdbMutex>& mutex,
                   BootTime& until);
  inline bool is_due(const Candidate& candidate,
                     std::unique_ptr<DdbMutex>& found);
  inline Failure read();
  inline void see(const LockInfo& info);
  inline bool may_be_free(const LockInfo& info, Candidate& candidate) const;
  void passed();
  inline Failure attempt(const Candidate& candidate,
                         std::unique_ptr<DdbMutex>& mutex);
  inline Failure failed(const std::error_code& ec, const DdbMutex& mutex);
  inline bool is_wanted(const Candidate& candidate,
                        const DdbMutex& mutex) const;
  inline void refused(const Candidate& candidate,
                      std::unique_ptr<DdbMutex>& mutex);

  Impl& impl_;
  State& state_;
  const lock::Patience patience_;
  const bool once_;
  const BootTime end_;  // once_: of waiting for another thread's pass.
  const std::atomic<bool>* const stopped_;
  const lock::Waits::One wait_;
  std::uint64_t after_ = 0;  // A pass with a higher number is the call's own.
  std::unique_ptr<Pass> pass_;  // That it reads, if it does.
  bool heard_ = false;          // Anything that was no passing error.
  BootTime failing_since_ = BootTime::max();
  Failure last_failure_;
  // GUARDED_BY(State::mutex)
  bool cancelled_ = false;
  DdbMutex* trying_ = nullptr;
  Call* next_ = nullptr;
};

// Null: all calls.
void AnyOf::Impl::State::cancel(const std::atomic<bool>* stopped) {
  const std::lock_guard<std::mutex> guard(mutex);
  for (Call* call = calls; call != nullptr; call = call->next_) {
    if (stopped != nullptr && call->stopped_ != stopped) continue;
    call->cancelled_ = true;
    if (call->trying_ != nullptr) call->trying_->cancel();
    call->wait_.waker()->wake();
  }
}

// --- One call ----------------------------------------------------------------

AnyOf::Impl::Call::Call(Impl& impl, const detail::Deadline& deadline,
                        const std::atomic<bool>* stopped)
    : impl_(impl),
      state_(impl.get()),
      patience_{deadline.within, deadline.left, deadline.at},
      once_(patience_.now() <= nanoseconds::zero()),
      end_(lock::later(
          BootClock::now(),
          once_ ? time_of_a_request(impl.options.each) : patience_.now())),
      stopped_(stopped),
      wait_(state_.table.waits) {
  if (wait_.waker() == nullptr) return;  // Closed: it can be woken by nobody.
  const std::lock_guard<std::mutex> guard(state_.mutex);
  if (state_.calls == nullptr) state_.pause = state_.first_pause;
  next_ = std::exchange(state_.calls, this);
  after_ = state_.begun;
  cancelled_ = stopped_ != nullptr && *stopped_;
}

AnyOf::Impl::Call::~Call() {
  if (pass_ != nullptr) passed();  // `accept` has thrown.
  const std::lock_guard<std::mutex> guard(state_.mutex);
  Call** at = &state_.calls;
  while (*at != nullptr && *at != this) at = &(*at)->next_;
  if (*at != nullptr) *at = next_;
}

Failure AnyOf::Impl::Call::run(std::unique_ptr<DdbMutex>& got) {
  for (;;) {
    Failure failure = ended();
    if (failure) return failure;
    Candidate candidate;
    BootTime until{};
    switch (next(candidate, got, until)) {
      case Next::try_it:
        failure = attempt(candidate, got);
        break;
      case Next::read:
        failure = read();
        passed();
        break;
      case Next::wait:
        sigv4::drive(nullptr, 0, std::min(until, end()), wait_.waker());
        if (BootClock::now() < end()) break;
        // Another thread's pass takes longer than a request may.
        if (once_) return failed(Errc::timed_out);
        return std::move(last_failure_);
      case Next::give_up:
        return std::move(last_failure_);
    }
    if (failure || got != nullptr) return failure;
    wait_.waker()->clear();  // Before the look at what it may have been for.
  }
}

Failure AnyOf::Impl::Call::ended() const {
  if (state_.table.waits.closed()) return failed(Errc::closed);
  const std::lock_guard<std::mutex> guard(state_.mutex);
  return cancelled_ ? failed(Errc::cancelled) : nullptr;
}

Next AnyOf::Impl::Call::next(Candidate& candidate,
                             std::unique_ptr<DdbMutex>& found,
                             BootTime& until) {
  const std::lock_guard<std::mutex> guard(state_.mutex);
  const BootTime now = BootClock::now();
  Pass& pass = *state_.pass;
  if (now - pass.complete_at > kServesFor ||
      pass.refused_in_a_row >= kRefusedInARow) {
    pass.candidates.clear();
    pass.count = 0;
  }
  const bool own = pass.number > after_;
  if (time_is_up()) return Next::give_up;
  while (pass.count > 0) {
    const std::size_t most = std::max(kLeastSpread, pass.count / 4);
    const auto last = std::min(most, pass.count) - 1;
    const nanoseconds drawn = state_.table.budget.jitter(nanoseconds(last));
    const auto before = std::next(pass.candidates.before_begin(),
                                  static_cast<std::ptrdiff_t>(drawn.count()));
    candidate = *std::next(before);
    pass.candidates.erase_after(before);
    --pass.count;
    if (is_due(candidate, found)) return Next::try_it;
  }
  if (own && once_) return Next::give_up;
  until = state_.reading ? BootTime::max() : state_.next_at;
  if (state_.reading || (own && now < state_.next_at)) return Next::wait;
  pass_ = std::make_unique<Pass>();
  state_.reading = true;
  ++state_.begun;
  return Next::read;
}

bool AnyOf::Impl::Call::is_due(const Candidate& candidate,
                               std::unique_ptr<DdbMutex>& found) {
  if (candidate.unchanged_for == nanoseconds::zero()) return true;
  Watched* const place = state_.pass->place_of(candidate.item);
  if (place == nullptr) return false;
  if (place->mutex != nullptr && BootClock::now() < place->due) return false;
  found.swap(place->mutex);
  return true;
}

// What it has read is complete where it has a number.
void AnyOf::Impl::Call::passed() {
  // This, or what it replaces, is destroyed without the mutex.
  std::unique_ptr<Pass> pass = std::move(pass_);
  const nanoseconds longest = nanoseconds_of(impl_.options.longest_pause);
  const std::lock_guard<std::mutex> guard(state_.mutex);
  const BootTime now = BootClock::now();
  nanoseconds& pause = state_.pause;
  state_.reading = false;
  state_.next_at = now + state_.table.budget.jitter(pause);
  pause = pause < longest / 2 ? 2 * pause : longest;
  if (pass->number != 0) {
    pass->complete_at = now;
    state_.pass.swap(pass);
    for (Watched& one : pass->watched) {
      if (one.mutex == nullptr || !state_.pass->has_to_watch(one.item))
        continue;
      *state_.pass->place_of(one.item) = std::move(one);
    }
  }
  for (Call* call = state_.calls; call != nullptr; call = call->next_) {
    if (call != this) call->wait_.waker()->wake();
  }
}

Failure AnyOf::Impl::Call::read() {
  const TableOptions& of_table = impl_.table().options;
  dynamodb::Selection selection =
      detail::selection_of(of_table, impl_.options.read);
  selection.prefix += impl_.options.prefix;
  const milliseconds request_time = time_of_a_request(impl_.options.each);
  const BootTime now = BootClock::now();
  const BootTime until =
      once_ ? now + request_time
      : patience_.forever()
          ? lock::later(now, nanoseconds_of(impl_.options.each.patience))
          : end();
  sigv4::Waker* const waker = wait_.waker();
  dynamodb::Items items(
      {state_.table.client, state_.table.budget, until, waker, request_time},
      selection);
  do {
    LockInfo info;
    if (!detail::tell_next(items, of_table, info)) break;
    see(info);
  } while (!waker->woken());
  const Answer& answer = items.answer();
  if (answer.fault == Fault::cancelled || waker->woken()) return nullptr;
  // Only the time was up: what was heard before holds.
  const bool cut_short = !once_ && until < lock::later(now, request_time);
  if (answer.fault == Fault::timed_out && heard_ && cut_short) return nullptr;
  if (answer.fault != Fault::none) {
    return detail::failure_of(answer, impl_.cannot_lock(),
                              impl_.table().endpoint());
  }
  heard_ = true;
  std::vector<Seen>& seen = pass_->seen;
  // std::sort() is some 2 KB of code.
  if (!seen.empty()) {
    std::qsort(seen.data(), seen.size(), sizeof(Seen), compare_items);
  }
  pass_->number = state_.begun;
  return nullptr;
}

void AnyOf::Impl::Call::see(const LockInfo& info) {
  const AnyOfOptions& asked = impl_.options;
  if (!info.problem.empty() || !sigv4::begins_with(info.name, asked.prefix) ||
      impl_.table().check_name(info.name, info.sort_value) ||
      (asked.accept && !asked.accept(info))) {
    return;
  }
  ++pass_->accepted;
  const std::hash<std::string> hash;
  Seen row{hash(info.name) * 31 + hash(info.sort_value),
           hash(info.uuid) + static_cast<std::size_t>(info.expires.count()),
           pass_->begun};
  const std::vector<Seen>& before = state_.pass->seen;
  const auto known = std::lower_bound(
      before.begin(), before.end(), row,
      [](const Seen& a, const Seen& b) { return compare_items(&a, &b) < 0; });
  if (known != before.end() && known->item == row.item &&
      known->version == row.version) {
    row.since = known->since;
  }
  if (pass_->seen.size() < kMostRemembered) pass_->seen.push_back(row);
  Candidate candidate;
  candidate.item = row.item;
  candidate.since = row.since;
  if (!may_be_free(info, candidate)) return;
  dynamodb::RetryBudget& chance = state_.table.budget;
  if (chance.jitter(kOneIn) == nanoseconds::zero()) candidate.since -= kAge;
  candidate.token = info.token;
  candidate.chance = chance.jitter(nanoseconds::max());
  candidate.name = info.name;
  candidate.sort_value = info.sort_value;
  pass_->add(std::move(candidate));
}

bool AnyOf::Impl::Call::may_be_free(const LockInfo& info,
                                    Candidate& candidate) const {
  if (!info.exists || info.released) return true;
  const dynamodb::ServiceClock clock = state_.table.client.clock();
  if (clock.known() && info.expires < lock::kBeyondAllClocks) {
    const nanoseconds margin =
        impl_.table().options.calendar_margin.value_or(milliseconds(0));
    const nanoseconds skew = std::max<nanoseconds>(lock::kFrontEndSkew, margin);
    return clock.middle(BootClock::now()) - info.expires >= skew + kOverBy;
  }
  const bool told = info.lease > milliseconds::zero();
  candidate.unchanged_for =
      lock::waited_for(told ? info.lease : impl_.options.each.ttl);
  return BootClock::now() - candidate.since >= candidate.unchanged_for;
}

// The mutex is null unless it is held, wanted and ours.
Failure AnyOf::Impl::Call::attempt(const Candidate& candidate,
                                   std::unique_ptr<DdbMutex>& mutex) {
  if (mutex == nullptr) {
    // std::make_unique() would move the options, see Impl's constructor.
    mutex.reset(new DdbMutex(candidate.name, impl_.each(candidate.sort_value)));
  }
  const auto trying = [this](DdbMutex* which) {
    const std::lock_guard<std::mutex> guard(state_.mutex);
    trying_ = which;
  };
  trying(mutex.get());
  std::error_code ec;
  const bool locked = mutex->try_lock(ec);
  trying(nullptr);
  Failure failure;
  if (ec) {
    failure = failed(ec, *mutex);
  } else {
    heard_ = true;
    failing_since_ = BootTime::max();
    last_failure_.reset();
  }
  if (locked && is_wanted(candidate, *mutex)) {
    const std::lock_guard<std::mutex> guard(state_.mutex);
    state_.pass->refused_in_a_row = 0;
    state_.pause = state_.first_pause;
    return nullptr;
  }
  if (locked) mutex->unlock();
  if (!failure) refused(candidate, mutex);
  mutex.reset();
  return failure;
}

// Null if the call goes on.
Failure AnyOf::Impl::Call::failed(const std::error_code& ec,
                                  const DdbMutex& mutex) {
  const Errc code = ec.category() == category() ? Errc(ec.value()) : Errc{};
  // The item is not as the pass saw it: gone, or no lock record any more.
  if (code == Errc::no_row || code == Errc::bad_record) return nullptr;
  if (code == Errc::cancelled) return nullptr;
  Failure failure = detail::failure(ec, mutex.last_error());
  const bool passing = code >= Errc::unreachable && code <= Errc::bad_answer;
  if (!passing || once_) return failure;
  const BootTime now = BootClock::now();
  failing_since_ = std::min(failing_since_, now);
  const nanoseconds patience = nanoseconds_of(impl_.options.each.patience);
  if (patience_.forever() && now >= lock::later(failing_since_, patience)) {
    return failure;
  }
  last_failure_ = std::move(failure);
  return nullptr;
}

// Others may have had it since it was read.
bool AnyOf::Impl::Call::is_wanted(const Candidate& candidate,
                                  const DdbMutex& mutex) const {
  if (!impl_.options.accept) return true;
  LockInfo info;
  info.name = candidate.name;
  info.sort_value = candidate.sort_value;
  info.exists = true;
  info.owner = mutex.owner();
  info.lease = impl_.options.each.ttl;
  info.token = mutex.fencing_token();
#ifndef DDBMUTEX_NO_ATTRIBUTES
  info.data = mutex.data();
  info.attributes = mutex.attributes();
#endif
  return impl_.options.accept(info);
}

void AnyOf::Impl::Call::refused(const Candidate& candidate,
                                std::unique_ptr<DdbMutex>& mutex) {
  const std::lock_guard<std::mutex> guard(state_.mutex);
  ++state_.pass->refused_in_a_row;
  if (candidate.unchanged_for == nanoseconds::zero()) return;
  Watched* const place = state_.pass->place_of(candidate.item);
  if (place == nullptr) return;
  place->mutex.swap(mutex);
  place->item = candidate.item;
  place->due = BootClock::now() + candidate.unchanged_for;
}

// --- The calls ---------------------------------------------------------------

namespace {

Failure check(const AnyOfOptions& options) {
  const char* bad_name = "";
  for (const std::string& name : options.read) {
    if (name.empty()) bad_name = "an empty name";
    if (*bad_name == '\0') {
      bad_name = detail::not_text(name, 65535, "longer than 65,535 bytes");
    }
  }
  const milliseconds first = options.first_pause;
  return detail::check_all({
      {"prefix", detail::not_text(options.prefix, detail::kMaxKeyBytes,
                                  "longer than 2,048 bytes")},
      {"read", bad_name},
      {"first_pause", first <= milliseconds::zero() ? "not above 0" : ""},
      {"longest_pause",
       options.longest_pause < first ? "below first_pause" : ""},
  });
}

}  // namespace

// A move of Options, which nobody else makes, is 600 bytes of code.
AnyOf::Impl::Impl(AnyOfOptions&& the_options)
    : options{the_options.each,
              std::move(the_options.prefix),
              std::move(the_options.read),
              std::move(the_options.accept),
              the_options.first_pause,
              the_options.longest_pause} {
  if (!options.each.table) options.each.table = Table::standard();
  options.each.keep_row = true;
  options.each.only_if_exists = true;
  // What is wrong with the table or the options of each lock is told by any: by
  // this here, or, without exceptions, by its first call.
  const bool sorted = !table().options.sort_key.empty();
  DdbMutex any("any", each(sorted ? "any" : ""));
  std::error_code ec;
  any.renew(ec);
  bad = ec == make_error_code(Errc::not_held)
            ? check(options)
            : detail::failure(ec, any.last_error());
}

Options AnyOf::Impl::each(const std::string& sort_value) const {
  Options each = options.each;
  each.sort_value = sort_value;
  return each;
}

AnyOf::Impl::State& AnyOf::Impl::get() {
  return state.get(table().get(), nanoseconds_of(options.first_pause));
}

AnyOf::AnyOf(AnyOfOptions options) {
  const detail::NoCancellation guard;
  impl_ = sigv4::share<Impl>(std::move(options));
  impl_->made(impl_);
}

AnyOf::~AnyOf() {
  const detail::NoCancellation guard;
  cancel();
  impl_.reset();
}

std::unique_ptr<DdbMutex> AnyOf::lock_within(const detail::Deadline& deadline,
                                             std::atomic<bool>* stopped,
                                             std::error_code& ec) {
  std::unique_ptr<DdbMutex> got;
  detail::run(impl_, ec, [&](Impl& impl) {
    return Impl::Call(impl, deadline, stopped).run(got);
  });
  return got;
}

std::unique_ptr<DdbMutex> AnyOf::lock(std::error_code& ec) {
  return lock_within({}, nullptr, ec);
}

std::unique_ptr<DdbMutex> AnyOf::try_lock(std::error_code& ec) {
  return lock_within({nanoseconds::zero()}, nullptr, ec);
}

void AnyOf::stop(Impl& impl, std::atomic<bool>& stopped) noexcept {
  stopped = true;
  if (Impl::State* own = impl.state.peek()) own->cancel(&stopped);
}

void AnyOf::cancel() noexcept {
  if (Impl::State* own = impl_->state.peek()) own->cancel(nullptr);
}

std::optional<std::size_t> AnyOf::accepted() const noexcept {
  Impl::State* own = impl_->state.peek();
  if (own == nullptr) return std::nullopt;
  const std::lock_guard<std::mutex> guard(own->mutex);
  const Pass& last = *own->pass;
  return last.number == 0 ? std::nullopt : std::optional(last.accepted);
}

std::string AnyOf::last_error() const { return impl_->last_error(); }

}  // namespace v0
}  // namespace ddbmutex
#endif
