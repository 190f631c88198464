#ifndef DDBMUTEX_NO_ANY_OF
#include "any_of.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <tuple>
#include <utility>

#include "../sigv4/boot_clock.hpp"
#include "../sigv4/memory.hpp"
#include "../sigv4/process.hpp"
#include "../sigv4/shared.hpp"
#include "../sigv4/system.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/waiting.hpp"
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
// So many refusals in a row say that others have had most of a list.
constexpr int kRefusedInARow = 5;
// So long a list of what was free is worth a try.
constexpr std::chrono::seconds kServesFor{1};
// By what a lease has to be over for a try to be worth it, beyond what a
// DdbMutex allows for clocks that differ.  What it does not know of DynamoDB's
// clock is less, mostly; if not, a try was in vain.
constexpr milliseconds kOverBy{1000};
// How often a caller's own clock is looked at in a wait: it may be set.
constexpr std::chrono::seconds kLookAtClock{1};

milliseconds time_of_a_request(const Options& options) {
  return options.request_timeout.value_or(
      std::min(milliseconds(2000), options.ttl / 4));
}

}  // namespace

// --- What a pass finds -------------------------------------------------------

// Members of AnyOf::Impl are made of these types.  In a namespace without a
// name, g++ would warn of that where several files are compiled as one.
namespace any_of_items {

// A row, and since when it has stood there as it does.  Only its place in line
// rests on this, so that hashes will do.
struct Seen {
  std::size_t item;
  std::size_t version;
  BootTime since;
};

inline bool by_item(const Seen& one, const Seen& other) {
  return one.item < other.item;
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

inline bool operator<(const Candidate& one, const Candidate& other) {
  const auto place = [](const Candidate& it) {
    return std::tie(it.since, it.token, it.chance);
  };
  return place(one) < place(other);
}

// One that others have not renewed, as far as it was seen, and the mutex that
// saw it when it was refused.
struct Watched {
  std::unique_ptr<DdbMutex> mutex;
  std::size_t item;
  BootTime due;
};

// What was found, and what is left of it.  While it is read it belongs to the
// call that reads it; after that it is shared, and GUARDED_BY(State::mutex).
struct Pass {
  // How much of the table was read.
  enum class Extent { nothing, part, all };

  void add(Candidate&& candidate);
  // Puts in order what was added.
  void finish();
  bool has_to_watch(std::size_t item) const;
  // Once all candidates were tried, none was free.
  bool tells_all() const { return extent == Extent::all && !left_out; }

  std::uint64_t number = 0;  // From 1 on, in the order in which they begin.
  const BootTime begun = BootClock::now();
  BootTime ended{};
  Extent extent = Extent::nothing;
  std::size_t accepted = 0;
  std::vector<Seen> seen;
  // The best are first.  A heap, the worst on top, until it is finished.
  std::vector<Candidate> candidates;
  // One that was free is no candidate any more, though no try has told that it
  // is held.
  bool left_out = false;
  int being_tried = 0;  // Candidates, each by a call.
  int refused_in_a_row = 0;
};

inline void Pass::add(Candidate&& candidate) {
  candidates.push_back(std::move(candidate));
  std::push_heap(candidates.begin(), candidates.end());
  if (candidates.size() <= kMostCandidates) return;
  std::pop_heap(candidates.begin(), candidates.end());
  candidates.pop_back();
  left_out = true;
}

inline void Pass::finish() {
  std::sort_heap(candidates.begin(), candidates.end());
  std::sort(seen.begin(), seen.end(), by_item);
}

inline bool Pass::has_to_watch(std::size_t item) const {
  for (const Candidate& one : candidates) {
    if (one.item == item && one.unchanged_for > nanoseconds::zero()) {
      return true;
    }
  }
  return false;
}

// What a call is to do next.
enum class Next { try_it, read, wait, all_are_held, give_up };

// How a try has ended.  Refused: the item is held by others, gone, or not
// wanted any more.
enum class Tried { got, refused, unknown };

}  // namespace any_of_items
using namespace any_of_items;

// --- What the calls of a process share ---------------------------------------

struct AnyOf::Impl : detail::Calls {
  explicit Impl(AnyOfOptions&& the_options);

  struct State;
  class Call;
  State& get();
  Table::Impl& table() const { return *options.each.table->impl_; }
  milliseconds request_time() const { return time_of_a_request(options.each); }
  // How an error begins.
  std::string cannot_lock() const {
    return sigv4::format("cannot lock any of %q in table %q",
                         options.prefix + "...", options.each.table->name());
  }
  // Of the lock on one item.
  Options each(const std::string& sort_value) const;

  AnyOfOptions options;  // Changed by the constructor alone.
  sigv4::PerProcess<State> state;
};

struct AnyOf::Impl::State {
  State(lock::Table& the_table, nanoseconds the_pause, nanoseconds request_time)
      : table(the_table),
        first_pause(the_pause),
        reading_takes(request_time / 4),
        pause(the_pause) {}

  void cancel(const std::atomic<bool>* stopped);
  // For these the mutex is held.
  void wake_those_who_wait();
  std::vector<Watched>::iterator find_watched(std::size_t item) {
    return std::find_if(watched.begin(), watched.end(),
                        [&](const Watched& one) { return one.item == item; });
  }

  lock::Table& table;
  const nanoseconds first_pause;
  sigv4::Mutex mutex;
  // All below: GUARDED_BY(mutex)
  Call* calls = nullptr;    // The first.
  int reading = 0;          // Passes under way,
  std::uint64_t begun = 0;  // and all that ever were.
  // The last that ended and has found anything, or that there is nothing.
  std::shared_ptr<Pass> pass = std::make_shared<Pass>();
  // What passes have seen, sorted.
  std::shared_ptr<const std::vector<Seen>> seen =
      std::make_shared<const std::vector<Seen>>();
  std::optional<std::size_t> accepted;  // In the last that read all.
  nanoseconds reading_takes;  // As the last pass has shown; at first a guess.
  std::vector<Watched> watched;
  BootTime next_at{};  // A pass may begin that is not the first of its call.
  nanoseconds pause;
};

// One call under way, of one thread.
//
// Its end.  lock() has none.  try_lock_for() and try_lock_until() end at a
// time, but once a pass of their own has found something they try one item of
// it, so that a table which takes long to read is of use.  try_lock() has the
// time of a request for all its reading and for waiting for other threads'
// passes; `end_` moves on by what its tries take.
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
  // So late a pass can begin that is to be read by `end`.
  BootTime last_begin(BootTime end) const {
    return patience_.forever() ? BootTime::max()
                               : end - 2 * state_.reading_takes;
  }
  Failure failed(std::error_code why) const {
    return detail::failed(why, impl_.cannot_lock());
  }
  inline Failure ended() const;
  // `until`: to wait at the most.  The mutex: of a row that is watched.
  inline Next next(Candidate& candidate, std::unique_ptr<DdbMutex>& mutex,
                   BootTime& until);
  // For these State::mutex is held.
  inline Next next_of_own(Candidate& candidate,
                          std::unique_ptr<DdbMutex>& mutex, BootTime& until);
  Next begin_to_read();
  Next wait();
  bool take(const std::shared_ptr<Pass>& pass, Candidate& candidate,
            std::unique_ptr<DdbMutex>& found);
  inline bool is_due(const Candidate& candidate,
                     std::unique_ptr<DdbMutex>& found);

  inline void sleep(BootTime until);
  inline Failure read();
  inline void see(const LockInfo& info);
  inline bool may_be_free(const LockInfo& info, Candidate& candidate) const;
  std::shared_ptr<const std::vector<Seen>> seen_after(Pass& pass) const;
  void passed();
  inline Failure attempt(const Candidate& candidate,
                         std::unique_ptr<DdbMutex>& mutex);
  void tried(Tried how);
  inline Failure failed(std::error_code ec, Errc code, const DdbMutex& mutex);
  inline bool is_wanted(const Candidate& candidate,
                        const DdbMutex& mutex) const;
  inline void watch(const Candidate& candidate,
                    std::unique_ptr<DdbMutex> mutex);
  Failure given_up();

  Impl& impl_;
  State& state_;
  const lock::Patience patience_;
  const bool once_;  // try_lock()
  const std::uint64_t thread_ = lock::this_thread();
  BootTime end_;
  const std::atomic<bool>* const stopped_;
  const lock::Waits::One wait_;
  // Called by `accept`, which another call of this thread is asking.
  bool nested_ = false;
  std::uint64_t after_ = 0;  // A pass with a higher number is the call's own.
  bool had_own_ = false;     // One of those has ended.
  // once_: the one that is tried to its end, unless a newer one tells more.
  std::shared_ptr<Pass> own_;
  int most_refused_ = kRefusedInARow;  // Of it, before a newer one is read.
  // How long to wait for tries of own_ by other threads, once it waits.
  std::optional<BootTime> awaits_tries_until_;
  std::shared_ptr<Pass> pass_;  // That it reads, if it does,
  std::shared_ptr<const std::vector<Seen>> before_;  // seen until it began.
  bool just_read_ = false;
  std::shared_ptr<Pass> trying_from_;
  bool heard_ = false;  // Anything that was no passing error.
  BootTime failing_since_ = BootTime::max();
  Failure last_failure_;  // Of a try.
  Failure unread_;        // Why the table could not be read to its end.
  // GUARDED_BY(State::mutex)
  bool waits_ = false;
  bool cancelled_ = false;
  DdbMutex* trying_ = nullptr;
  Call* next_ = nullptr;
};

// Null: all calls.
void AnyOf::Impl::State::cancel(const std::atomic<bool>* stopped) {
  const std::lock_guard<sigv4::Mutex> guard(mutex);
  for (Call* call = calls; call != nullptr; call = call->next_) {
    if (stopped != nullptr && call->stopped_ != stopped) continue;
    call->cancelled_ = true;
    if (call->trying_ != nullptr) call->trying_->cancel();
    call->wait_.waker()->wake();
  }
}

// A call that reads would take it for a cancel().
void AnyOf::Impl::State::wake_those_who_wait() {
  for (Call* call = calls; call != nullptr; call = call->next_) {
    if (call->waits_) call->wait_.waker()->wake();
  }
}

// --- One call ----------------------------------------------------------------

AnyOf::Impl::Call::Call(Impl& impl, const detail::Deadline& deadline,
                        const std::atomic<bool>* stopped)
    : impl_(impl),
      state_(impl.get()),
      patience_{deadline.within, deadline.left, deadline.at},
      once_(patience_.now() <= nanoseconds::zero()),
      end_(lock::later(BootClock::now(),
                       once_ ? impl.request_time() : patience_.now())),
      stopped_(stopped),
      wait_(state_.table.waits) {
  if (wait_.waker() == nullptr) return;  // Closed: it can be woken by nobody.
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  for (const Call* call = state_.calls; call != nullptr; call = call->next_) {
    nested_ = nested_ || call->thread_ == thread_;
  }
  if (state_.calls == nullptr) state_.pause = state_.first_pause;
  next_ = std::exchange(state_.calls, this);
  after_ = state_.begun;
  cancelled_ = stopped_ != nullptr && *stopped_;
}

AnyOf::Impl::Call::~Call() {
  // `accept` has thrown.
  if (pass_ != nullptr) passed();
  if (trying_from_ != nullptr) tried(Tried::unknown);
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  Call** at = &state_.calls;
  while (*at != nullptr && *at != this) at = &(*at)->next_;
  if (*at != nullptr) *at = next_;
}

Failure AnyOf::Impl::Call::run(std::unique_ptr<DdbMutex>& got) {
  if (nested_) {
    return failed(
        std::make_error_code(std::errc::resource_deadlock_would_occur));
  }
  for (;;) {
    Failure failure = ended();
    if (failure) return failure;
    Candidate candidate;
    BootTime until{};
    const BootTime begun = BootClock::now();
    switch (next(candidate, got, until)) {
      case Next::try_it:
        failure = attempt(candidate, got);
        if (once_) end_ += BootClock::now() - begun;
        break;
      case Next::read:
        failure = read();
        passed();
        break;
      case Next::wait:
        sleep(until);
        break;
      case Next::all_are_held:
        return nullptr;
      case Next::give_up:
        return given_up();
    }
    if (failure || got != nullptr) return failure;
    wait_.waker()->clear();  // Before the look at what it may have been for.
  }
}

Failure AnyOf::Impl::Call::ended() const {
  if (state_.table.waits.closed()) return failed(Errc::closed);
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  return cancelled_ ? failed(Errc::cancelled) : nullptr;
}

// The time is up.
Failure AnyOf::Impl::Call::given_up() {
  if (unread_ != nullptr) return std::move(unread_);
  if (once_) return failed(Errc::timed_out);
  return std::move(last_failure_);
}

Next AnyOf::Impl::Call::next(Candidate& candidate,
                             std::unique_ptr<DdbMutex>& found,
                             BootTime& until) {
  const BootTime at = end();  // Before, for it may read the clock itself.
  const BootTime now = BootClock::now();
  const bool just_read = std::exchange(just_read_, false);
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  const Pass& last = *state_.pass;
  if (last.number > after_) {
    had_own_ = true;
    if (once_ && own_ == nullptr) own_ = state_.pass;
  }
  if (own_ != nullptr) return next_of_own(candidate, found, until);
  if (!once_ && now >= at && !just_read) return Next::give_up;
  const bool serves =
      now - last.ended <= kServesFor && last.refused_in_a_row < kRefusedInARow;
  if (serves && take(state_.pass, candidate, found)) return Next::try_it;
  if (now >= at) return Next::give_up;
  if (had_own_) {
    until = state_.reading > 0 ? at : std::min(state_.next_at, at);
  } else if (state_.reading > 0) {
    // What others read may do; if not, there is time for its own.
    until = last_begin(at);
  }
  return now < until ? wait() : begin_to_read();
}

// try_lock(), which may say that all are held once all that its own pass found
// free were tried.  Others may have had most of it by then: so as not to try
// all in vain, it reads again after 5 refusals in a row, after 10 of the next
// pass, and so on, as long as there is time for that.
Next AnyOf::Impl::Call::next_of_own(Candidate& candidate,
                                    std::unique_ptr<DdbMutex>& found,
                                    BootTime& until) {
  const BootTime now = BootClock::now();
  Pass& own = *own_;
  const bool can_read = unread_ == nullptr && now < last_begin(end_);
  const bool useless = own.refused_in_a_row >= most_refused_ &&
                       !own.candidates.empty() && state_.reading == 0;
  if (useless && can_read) {
    most_refused_ *= 2;
    return begin_to_read();
  }
  if (take(own_, candidate, found)) return Next::try_it;
  if (own.being_tried > 0) {
    // By other threads; each of their tries ends within the time of a request.
    if (!awaits_tries_until_) awaits_tries_until_ = now + impl_.request_time();
    until = *awaits_tries_until_;
    return now < until ? wait() : Next::give_up;
  }
  if (own.tells_all()) return Next::all_are_held;
  return can_read ? begin_to_read() : Next::give_up;
}

Next AnyOf::Impl::Call::wait() {
  waits_ = true;
  return Next::wait;
}

Next AnyOf::Impl::Call::begin_to_read() {
  pass_ = std::make_shared<Pass>();
  pass_->number = ++state_.begun;
  before_ = state_.seen;
  ++state_.reading;
  return Next::read;
}

// One of the best, at random; false if there is none.
bool AnyOf::Impl::Call::take(const std::shared_ptr<Pass>& pass,
                             Candidate& candidate,
                             std::unique_ptr<DdbMutex>& found) {
  std::vector<Candidate>& left = pass->candidates;
  while (!left.empty()) {
    const std::size_t most = std::max(kLeastSpread, left.size() / 4);
    const auto last = std::min(most, left.size()) - 1;
    const nanoseconds drawn = state_.table.budget.jitter(nanoseconds(last));
    const auto at = left.begin() + drawn.count();
    candidate = std::move(*at);
    left.erase(at);
    if (!is_due(candidate, found)) continue;
    ++pass->being_tried;
    trying_from_ = pass;
    return true;
  }
  return false;
}

bool AnyOf::Impl::Call::is_due(const Candidate& candidate,
                               std::unique_ptr<DdbMutex>& found) {
  if (candidate.unchanged_for == nanoseconds::zero()) return true;
  std::vector<Watched>& watched = state_.watched;
  const auto known = state_.find_watched(candidate.item);
  if (known == watched.end()) return watched.size() < kMostWatched;
  if (BootClock::now() < known->due) return false;
  found = std::move(known->mutex);
  watched.erase(known);
  return true;
}

void AnyOf::Impl::Call::sleep(BootTime until) {
  if (patience_.left != nullptr) {
    until = std::min(until, BootClock::now() + kLookAtClock);
  }
  sigv4::drive(nullptr, 0, until, wait_.waker());
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  waits_ = false;
}

// Ends what this call reads.
std::shared_ptr<const std::vector<Seen>> AnyOf::Impl::Call::seen_after(
    Pass& pass) const {
  pass.finish();
  auto all = std::make_shared<std::vector<Seen>>(std::move(pass.seen));
  if (pass.extent == Pass::Extent::all) return all;
  // Of other rows it holds what was seen before.
  std::vector<Seen> own;
  own.swap(*all);
  std::set_union(own.begin(), own.end(), before_->begin(), before_->end(),
                 std::back_inserter(*all), by_item);
  all->resize(std::min(all->size(), kMostRemembered));
  return all;
}

void AnyOf::Impl::Call::passed() {
  std::shared_ptr<Pass> pass = std::move(pass_);
  using Extent = Pass::Extent;
  std::shared_ptr<const std::vector<Seen>> seen;
  // Others wait for the end of this pass: without memory it has read nothing.
  std::vector<Watched> unneeded;  // Destroyed without the mutex.
  const bool remembered = sigv4::has_memory_for([&] {
    unneeded.reserve(kMostWatched);
    if (pass->extent != Extent::nothing) seen = seen_after(*pass);
  });
  if (!remembered) pass->extent = Extent::nothing;
  const bool read_all = pass->extent == Extent::all;
  before_.reset();
  const nanoseconds longest = nanoseconds_of(impl_.options.longest_pause);
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  const BootTime now = BootClock::now();
  nanoseconds& pause = state_.pause;
  --state_.reading;
  state_.next_at = now + state_.table.budget.jitter(pause);
  pause = pause < longest / 2 ? 2 * pause : longest;
  if (pass->extent != Extent::nothing) {
    had_own_ = true;
    just_read_ = true;
    pass->ended = now;
    const nanoseconds took = now - pass->begun;
    state_.reading_takes =
        read_all ? took : std::max(took, state_.reading_takes);
    state_.seen = std::move(seen);
    if (read_all) {
      state_.accepted = pass->accepted;
      const auto first_unneeded = std::partition(
          state_.watched.begin(), state_.watched.end(),
          [&](const Watched& one) { return pass->has_to_watch(one.item); });
      std::move(first_unneeded, state_.watched.end(),
                std::back_inserter(unneeded));
      state_.watched.erase(first_unneeded, state_.watched.end());
    }
    if (once_ && (own_ == nullptr || !own_->tells_all() || pass->tells_all())) {
      own_ = pass;
      awaits_tries_until_.reset();
    }
    if (read_all || !pass->candidates.empty()) state_.pass.swap(pass);
  }
  state_.wake_those_who_wait();
}

Failure AnyOf::Impl::Call::read() {
  const TableOptions& of_table = impl_.table().options;
  dynamodb::Selection selection =
      detail::selection_of(of_table, impl_.options.read);
  selection.prefix += impl_.options.prefix;
  sigv4::Waker* const waker = wait_.waker();
  const bool forever = patience_.forever();
  dynamodb::Caller caller{state_.table.client, state_.table.budget,
                          BootTime::max(), waker, impl_.request_time()};
  if (!forever) caller.moving_deadline = [this] { return end(); };
  dynamodb::Items items(caller, selection,
                        forever ? nanoseconds_of(impl_.options.each.patience)
                                : nanoseconds::max());
  bool time_is_up = false;  // `accept` may be slow.
  while (!time_is_up) {
    LockInfo info;
    if (!detail::tell_next(items, of_table, info)) break;
    see(info);
    if (waker->woken()) break;
    time_is_up = BootClock::now() >= end();
  }
  const Answer& answer = items.answer();
  if (answer.fault == Fault::cancelled || waker->woken()) return nullptr;
  if (answer.fault == Fault::none && !time_is_up) {
    pass_->extent = Pass::Extent::all;
    heard_ = true;
    unread_.reset();
    return nullptr;
  }
  // Else the time is up, or there is too little left for another request.
  const bool only_time =
      answer.fault == Fault::none ||
      (answer.fault == Fault::timed_out && items.cut_short());
  Failure why = answer.fault == Fault::none
                    ? detail::failed(Errc::timed_out, impl_.cannot_lock(),
                                     "the table has not been read to its end")
                    : detail::failure_of(answer, impl_.cannot_lock(),
                                         impl_.table().endpoint());
  if (answer.fault != Fault::none && (forever || !is_passing(answer.fault))) {
    return why;
  }
  pass_->extent = Pass::Extent::part;
  // Where only the time was up, what was heard before holds.
  const bool said_before = heard_ || unread_ != nullptr;
  if (once_ || !only_time || !said_before) unread_ = std::move(why);
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
  const auto known =
      std::lower_bound(before_->begin(), before_->end(), row, by_item);
  if (known != before_->end() && known->item == row.item &&
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
    const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
    trying_ = which;
  };
  trying(mutex.get());
  std::error_code ec;
  const bool locked = mutex->try_lock(ec);
  trying(nullptr);
  if (locked && is_wanted(candidate, *mutex)) {
    tried(Tried::got);
    return nullptr;
  }
  Failure failure;
  if (ec) {
    const Errc code = ec.category() == category() ? Errc(ec.value()) : Errc{};
    // The item is not as the pass saw it: gone, or no lock record any more.
    const bool gone = code == Errc::no_row || code == Errc::bad_record;
    if (!gone && code != Errc::cancelled) failure = failed(ec, code, *mutex);
    tried(gone ? Tried::refused : Tried::unknown);
  } else {
    heard_ = true;
    failing_since_ = BootTime::max();
    last_failure_.reset();
    tried(Tried::refused);
  }
  if (locked) {
    mutex->unlock();
  } else if (!ec && candidate.unchanged_for > nanoseconds::zero()) {
    watch(candidate, std::move(mutex));
  }
  mutex.reset();
  return failure;
}

void AnyOf::Impl::Call::tried(Tried how) {
  const std::shared_ptr<Pass> pass = std::move(trying_from_);
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  if (how == Tried::got) {
    pass->refused_in_a_row = 0;
    state_.pause = state_.first_pause;
  } else if (how == Tried::refused) {
    ++pass->refused_in_a_row;
  } else {
    pass->left_out = true;
  }
  if (--pass->being_tried == 0) state_.wake_those_who_wait();
}

// Null if the call goes on.
Failure AnyOf::Impl::Call::failed(std::error_code ec, Errc code,
                                  const DdbMutex& mutex) {
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

void AnyOf::Impl::Call::watch(const Candidate& candidate,
                              std::unique_ptr<DdbMutex> mutex) {
  const std::lock_guard<sigv4::Mutex> guard(state_.mutex);
  // Another thread may have tried it at the same time.
  const bool known =
      state_.find_watched(candidate.item) != state_.watched.end();
  if (known || state_.watched.size() >= kMostWatched) return;
  state_.watched.push_back({std::move(mutex), candidate.item,
                            BootClock::now() + candidate.unchanged_for});
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
      {"first_pause", first <= milliseconds::zero() ? "not more than 0" : ""},
      {"longest_pause",
       options.longest_pause < first ? "less than first_pause" : ""},
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
  return state.get(table().get(), nanoseconds_of(options.first_pause),
                   nanoseconds(request_time()));
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
  const std::lock_guard<sigv4::Mutex> guard(own->mutex);
  return own->accepted;
}

std::string AnyOf::last_error() const { return impl_->last_error(); }

}  // namespace v0
}  // namespace ddbmutex
#endif
