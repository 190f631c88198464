#ifndef DDBMUTEX_NO_ANY_OF
#include "any_of.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <mutex>
#include <random>
#include <set>
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
constexpr unsigned kOneIn = 8;  // Is put before all others.
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

bool is_passing(const std::error_code& code) {
  return code.category() == category() &&
         code.value() >= static_cast<int>(Errc::unreachable) &&
         code.value() <= static_cast<int>(Errc::bad_answer);
}

// The item is not as the pass saw it: gone, or no lock record any more.
bool is_of_the_item(const std::error_code& code) {
  return code == make_error_code(Errc::no_row) ||
         code == make_error_code(Errc::bad_record);
}

}  // namespace

// --- What a pass finds -------------------------------------------------------

namespace any_of {

// A row, and since when it has stood there as it does.  Only its place in line
// rests on this, so that hashes will do.
struct Seen {
  std::size_t item;
  std::size_t version;
  BootTime since;
};

std::size_t hash_of(const std::string& one, const std::string& other) {
  const std::hash<std::string> hash;
  return hash(one) * 31 + hash(other);
}

// An item that may be free.  The best to try are the least.
struct Candidate {
  bool after_others = true;
  BootTime since{};
  std::uint64_t token = 0;
  std::uint64_t chance = 0;
  std::string name{};
  std::string sort_value{};
  std::size_t item = 0;
  // Nothing says when its lease is over: it is held, and seen unchanged for so
  // long.  0 where that is known.
  nanoseconds unchanged_for{};
};

bool operator<(const Candidate& one, const Candidate& other) {
  const auto place = [](const Candidate& it) {
    return std::tie(it.after_others, it.since, it.token, it.chance);
  };
  return place(one) < place(other);
}

// Told all rows, one after the other.  `before` is sorted.
class Pass {
 public:
  Pass(const AnyOfOptions& options, milliseconds margin,
       const std::vector<Seen>& before, std::minstd_rand::result_type seed)
      : options_(options), margin_(margin), before_(before), random_(seed) {}

  // `clock`: as of the answer that told the row.
  void see(const LockInfo& info, const dynamodb::ServiceClock& clock);
  void end();  // Sorts `seen`.

  std::multiset<Candidate> candidates;
  std::vector<Seen> seen;
  std::size_t accepted = 0;

 private:
  BootTime since(const Seen& now) const;
  bool may_be_free(const LockInfo& info, const dynamodb::ServiceClock& clock,
                   Candidate& candidate) const;

  const AnyOfOptions& options_;
  const milliseconds margin_;  // For calendars.
  const std::vector<Seen>& before_;
  const BootTime begun_ = BootClock::now();
  std::minstd_rand random_;
};

void Pass::see(const LockInfo& info, const dynamodb::ServiceClock& clock) {
  if (!info.problem.empty() || (options_.accept && !options_.accept(info))) {
    return;
  }
  ++accepted;
  Candidate candidate;
  candidate.item = hash_of(info.name, info.sort_value);
  const std::size_t version =
      hash_of(info.uuid, sigv4::decimal(info.expires.count()));
  candidate.since = since({candidate.item, version, begun_});
  if (seen.size() < kMostRemembered) {
    seen.push_back({candidate.item, version, candidate.since});
  }
  if (!may_be_free(info, clock, candidate)) return;
  candidate.after_others = random_() % kOneIn != 0;
  candidate.token = info.token;
  candidate.chance = random_();
  candidate.name = info.name;
  candidate.sort_value = info.sort_value;
  candidates.insert(std::move(candidate));
  if (candidates.size() > kMostCandidates) {
    candidates.erase(std::prev(candidates.end()));
  }
}

// std::sort() is some 2 KB of code.
void Pass::end() {
  if (seen.empty()) return;
  std::qsort(seen.data(), seen.size(), sizeof(Seen),
             [](const void* one, const void* other) {
               const std::size_t a = static_cast<const Seen*>(one)->item;
               const std::size_t b = static_cast<const Seen*>(other)->item;
               return (a > b) - (a < b);
             });
}

BootTime Pass::since(const Seen& now) const {
  const auto known = std::lower_bound(
      before_.begin(), before_.end(), now,
      [](const Seen& one, const Seen& other) { return one.item < other.item; });
  const bool same = known != before_.end() && known->item == now.item &&
                    known->version == now.version;
  return same ? known->since : now.since;
}

bool Pass::may_be_free(const LockInfo& info,
                       const dynamodb::ServiceClock& clock,
                       Candidate& candidate) const {
  if (!info.exists || info.released) return true;
  if (clock.known() && info.expires < lock::kBeyondAllClocks) {
    const nanoseconds skew =
        std::max<nanoseconds>(lock::kFrontEndSkew, margin_);
    return clock.middle(BootClock::now()) - info.expires >= skew + kOverBy;
  }
  const bool told = info.lease > milliseconds::zero();
  candidate.unchanged_for =
      lock::waited_for(told ? info.lease : options_.each.ttl);
  return BootClock::now() - candidate.since >= candidate.unchanged_for;
}

}  // namespace any_of

using any_of::Candidate;
using any_of::Pass;
using any_of::Seen;

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
  Failure failed(Errc why) const { return detail::failed(why, cannot_lock()); }
  std::unique_ptr<DdbMutex> mutex_of(const std::string& name,
                                     const std::string& sort_value) const;

  AnyOfOptions options;  // Changed by the constructor alone.
  sigv4::PerProcess<State> state;
};

// What a call is to do next.
enum class Next { try_it, read, wait, give_up };

struct AnyOf::Impl::State {
  State(lock::Table& the_table, nanoseconds the_pause)
      : table(the_table), first_pause(the_pause), pause(the_pause) {}

  void enter(Call& call);
  void leave(Call& call, bool got);
  // `until`: to wait at the most.  The mutex: of a row that is watched.
  Next next(const Call& call, Candidate& candidate,
            std::unique_ptr<DdbMutex>& mutex, BootTime& until);
  // A pass is over; null: in vain.
  void passed(Pass* pass, const Call& by, nanoseconds longest_pause);
  void refused(const Candidate& candidate, std::unique_ptr<DdbMutex>& mutex);
  void cancel(const std::atomic<bool>* stopped);

  // One that others have not renewed, as far as it was seen, and the mutex that
  // saw it when it was refused; null: none.
  struct Watched {
    std::unique_ptr<DdbMutex> mutex;
    std::size_t item = 0;
    BootTime due{};
  };

  lock::Table& table;
  const nanoseconds first_pause;
  std::vector<Seen> seen;  // Of the call that reads.
  std::mutex mutex;
  // All below: GUARDED_BY(mutex)
  bool is_due(const Candidate& candidate, std::unique_ptr<DdbMutex>& found);
  // Of that item, else one that is free; null if there is neither.
  Watched* place_of(std::size_t item);
  Call* calls = nullptr;  // The first.
  bool reading = false;
  std::uint64_t begun = 0;     // Passes.
  std::uint64_t complete = 0;  // The last that was.
  BootTime complete_at{};
  BootTime next_at{};  // A pass may begin that is not the first of its call.
  nanoseconds pause;
  std::multiset<Candidate> candidates;
  int refused_in_a_row = 0;
  std::array<Watched, kMostWatched> watched;
  std::optional<std::size_t> accepted;
};

// One call under way, of one thread.
class AnyOf::Impl::Call {
 public:
  Call(Impl& impl, const detail::Deadline& deadline,
       const std::atomic<bool>* stopped)
      : impl_(impl),
        state_(impl.get()),
        patience_{deadline.within, deadline.left, deadline.at},
        once_(patience_.now() <= nanoseconds::zero()),
        end_(lock::later(
            BootClock::now(),
            once_ ? time_of_a_request(impl.options.each) : patience_.now())),
        stopped_(stopped),
        wait_(state_.table.waits) {}

  Failure run(std::unique_ptr<DdbMutex>& got);

 private:
  friend struct State;

  BootTime end() const {
    return once_ || patience_.left == nullptr
               ? end_
               : lock::later(BootClock::now(), patience_.now());
  }
  bool time_is_up() const { return !once_ && BootClock::now() >= end(); }
  Failure ended() const;
  Failure go_on(std::unique_ptr<DdbMutex>& got, bool& over);
  Failure read();
  Failure attempt(const Candidate& candidate, std::unique_ptr<DdbMutex>& mutex);
  Failure failed(const std::error_code& ec, const DdbMutex& mutex);
  bool is_wanted(const Candidate& candidate, const DdbMutex& mutex) const;

  Impl& impl_;
  State& state_;
  const lock::Patience patience_;
  const bool once_;
  const BootTime end_;  // once_: of waiting for another thread's pass.
  const std::atomic<bool>* const stopped_;
  const lock::Waits::One wait_;
  std::uint64_t after_ = 0;  // A pass with a higher number is the call's own.
  bool heard_ = false;       // Anything that was no passing error.
  std::optional<BootTime> failing_since_;
  Failure last_failure_;
  // GUARDED_BY(State::mutex)
  bool cancelled_ = false;
  DdbMutex* trying_ = nullptr;
  Call* next_ = nullptr;
};

void AnyOf::Impl::State::enter(Call& call) {
  const std::lock_guard<std::mutex> guard(mutex);
  if (calls == nullptr) pause = first_pause;
  call.next_ = std::exchange(calls, &call);
  call.after_ = begun;
  call.cancelled_ = call.stopped_ != nullptr && *call.stopped_;
}

void AnyOf::Impl::State::leave(Call& call, bool got) {
  const std::lock_guard<std::mutex> guard(mutex);
  Call** at = &calls;
  while (*at != &call) at = &(*at)->next_;
  *at = call.next_;
  if (got) pause = first_pause;
}

Next AnyOf::Impl::State::next(const Call& call, Candidate& candidate,
                              std::unique_ptr<DdbMutex>& found,
                              BootTime& until) {
  const std::lock_guard<std::mutex> guard(mutex);
  const BootTime now = BootClock::now();
  if (now - complete_at > kServesFor || refused_in_a_row >= kRefusedInARow) {
    candidates.clear();
  }
  const bool own = complete > call.after_;
  if (call.time_is_up()) return Next::give_up;
  while (!candidates.empty()) {
    const std::size_t most = std::max(kLeastSpread, candidates.size() / 4);
    const auto last = std::min(most, candidates.size()) - 1;
    const nanoseconds drawn = table.budget.jitter(nanoseconds(last));
    const auto which = std::next(candidates.begin(),
                                 static_cast<std::ptrdiff_t>(drawn.count()));
    candidate = *which;
    candidates.erase(which);
    if (is_due(candidate, found)) return Next::try_it;
  }
  if (own && call.once_) return Next::give_up;
  until = reading ? BootTime::max() : next_at;
  if (reading || (own && now < next_at)) return Next::wait;
  reading = true;
  ++begun;
  return Next::read;
}

bool AnyOf::Impl::State::is_due(const Candidate& candidate,
                                std::unique_ptr<DdbMutex>& found) {
  if (candidate.unchanged_for == nanoseconds::zero()) return true;
  Watched* const place = place_of(candidate.item);
  if (place == nullptr) return false;
  if (place->mutex != nullptr && BootClock::now() < place->due) return false;
  found = std::move(place->mutex);
  return true;
}

AnyOf::Impl::State::Watched* AnyOf::Impl::State::place_of(std::size_t item) {
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

void AnyOf::Impl::State::passed(Pass* pass, const Call& by,
                                nanoseconds longest_pause) {
  // Destroyed without the mutex.
  std::array<std::unique_ptr<DdbMutex>, kMostWatched> gone;
  const std::lock_guard<std::mutex> guard(mutex);
  reading = false;
  const BootTime now = BootClock::now();
  next_at = now + table.budget.jitter(pause);
  pause = pause < longest_pause / 2 ? 2 * pause : longest_pause;
  if (pass != nullptr) {
    complete = begun;
    complete_at = now;
    accepted = pass->accepted;
    candidates.swap(pass->candidates);
    seen.swap(pass->seen);
    refused_in_a_row = 0;
    for (std::size_t i = 0; i < kMostWatched; ++i) {
      bool stays = false;
      for (const Candidate& candidate : candidates) {
        if (candidate.unchanged_for == nanoseconds::zero()) continue;
        stays = stays || candidate.item == watched[i].item;
      }
      if (!stays) gone[i].swap(watched[i].mutex);
    }
  }
  for (Call* call = calls; call != nullptr; call = call->next_) {
    if (call != &by) call->wait_.waker()->wake();
  }
}

void AnyOf::Impl::State::refused(const Candidate& candidate,
                                 std::unique_ptr<DdbMutex>& found) {
  const std::lock_guard<std::mutex> guard(mutex);
  ++refused_in_a_row;
  if (candidate.unchanged_for == nanoseconds::zero()) return;
  Watched* const place = place_of(candidate.item);
  if (place == nullptr) return;
  place->mutex.swap(found);
  place->item = candidate.item;
  place->due = BootClock::now() + candidate.unchanged_for;
}

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

Failure AnyOf::Impl::Call::run(std::unique_ptr<DdbMutex>& got) {
  if (wait_.waker() == nullptr) {
    return impl_.failed(Errc::closed);
  }
  // Leaves whatever `accept` throws.
  struct Presence {
    Presence(Call& the_call, const std::unique_ptr<DdbMutex>& the_lock)
        : call(the_call), lock(the_lock) {
      call.state_.enter(call);
    }
    ~Presence() { call.state_.leave(call, lock != nullptr); }
    Call& call;
    const std::unique_ptr<DdbMutex>& lock;
  } const presence(*this, got);
  for (bool over = false;;) {
    if (Failure why = ended()) return why;
    Failure failure = go_on(got, over);
    if (over || failure || got) return failure;
    wait_.waker()->clear();  // Before the look at what it may have been for.
  }
}

Failure AnyOf::Impl::Call::ended() const {
  if (state_.table.waits.closed()) {
    return impl_.failed(Errc::closed);
  }
  const std::lock_guard<std::mutex> guard(state_.mutex);
  if (!cancelled_) return nullptr;
  return impl_.failed(Errc::cancelled);
}

Failure AnyOf::Impl::Call::go_on(std::unique_ptr<DdbMutex>& got, bool& over) {
  Candidate candidate;
  std::unique_ptr<DdbMutex> mutex;
  BootTime until{};
  switch (state_.next(*this, candidate, mutex, until)) {
    case Next::try_it: {
      Failure failure = attempt(candidate, mutex);
      if (mutex != nullptr && !failure) got = std::move(mutex);
      return failure;
    }
    case Next::read:
      return read();
    case Next::wait:
      sigv4::drive(nullptr, 0, std::min(until, end()), wait_.waker());
      over = BootClock::now() >= end();
      // Another thread's pass takes longer than a request may.
      if (over && once_) {
        return impl_.failed(Errc::timed_out);
      }
      return over ? std::move(last_failure_) : nullptr;
    case Next::give_up:
      break;
  }
  over = true;
  return std::move(last_failure_);
}

Failure AnyOf::Impl::Call::read() {
  const Options& each = impl_.options.each;
  const TableOptions& of_table = impl_.table().options;
  dynamodb::Selection selection =
      detail::selection_of(of_table, impl_.options.read);
  selection.prefix += impl_.options.prefix;
  const milliseconds request_time = time_of_a_request(each);
  const BootTime now = BootClock::now();
  const BootTime until = once_                 ? now + request_time
                         : patience_.forever() ? lock::later(now, each.patience)
                                               : end();
  Pass pass(impl_.options,
            impl_.table().options.calendar_margin.value_or(milliseconds(0)),
            state_.seen,
            static_cast<std::minstd_rand::result_type>(
                state_.table.budget.jitter(std::chrono::seconds(2)).count()));
  struct Reading {  // Ends whatever `accept` throws.
    Reading(Call& the_call) : call(the_call) {}
    ~Reading() {
      call.state_.passed(whole, call,
                         nanoseconds_of(call.impl_.options.longest_pause));
    }
    Call& call;
    Pass* whole = nullptr;
  } reading(*this);
  const Answer answer = detail::tell_all(
      state_.table, of_table, selection, {until, wait_.waker(), request_time},
      [&](const LockInfo& info) {
        if (info.name.compare(0, impl_.options.prefix.size(),
                              impl_.options.prefix) == 0 &&
            !impl_.table().check_name(info.name, info.sort_value)) {
          pass.see(info, state_.table.client.clock());
        }
        return !wait_.waker()->woken();
      });
  if (answer.fault == Fault::cancelled || wait_.waker()->woken()) {
    return nullptr;
  }
  // Only the time was up: what was heard before holds.
  const bool cut_short = !once_ && until < lock::later(now, request_time);
  if (answer.fault == Fault::timed_out && heard_ && cut_short) return nullptr;
  if (answer.fault != Fault::none) {
    return detail::failure_of(answer, impl_.cannot_lock(),
                              impl_.table().endpoint());
  }
  heard_ = true;
  pass.end();
  reading.whole = &pass;
  return nullptr;
}

// The mutex is null unless it is held, wanted and ours.
Failure AnyOf::Impl::Call::attempt(const Candidate& candidate,
                                   std::unique_ptr<DdbMutex>& mutex) {
  if (mutex == nullptr) {
    mutex = impl_.mutex_of(candidate.name, candidate.sort_value);
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
    failing_since_.reset();
    last_failure_.reset();
  }
  if (locked && is_wanted(candidate, *mutex)) {
    const std::lock_guard<std::mutex> guard(state_.mutex);
    state_.refused_in_a_row = 0;
    return nullptr;
  }
  if (locked) mutex->unlock();
  if (!failure) state_.refused(candidate, mutex);
  mutex.reset();
  return failure;
}

// Null if the call goes on.
Failure AnyOf::Impl::Call::failed(const std::error_code& ec,
                                  const DdbMutex& mutex) {
  if (is_of_the_item(ec) || ec == make_error_code(Errc::cancelled)) {
    return nullptr;
  }
  Failure failure = detail::failure(ec, mutex.last_error());
  if (!is_passing(ec) || once_) return failure;
  const BootTime now = BootClock::now();
  if (!failing_since_) failing_since_ = now;
  const nanoseconds patience = nanoseconds_of(impl_.options.each.patience);
  if (patience_.forever() && now >= lock::later(*failing_since_, patience)) {
    return failure;
  }
  last_failure_ = std::move(failure);
  return nullptr;
}

// Others may have had it since it was read.
bool AnyOf::Impl::Call::is_wanted(const Candidate& candidate,
                                  const DdbMutex& mutex) const {
  if (!impl_.options.accept) return true;
  const LockInfo info{
      candidate.name,
      candidate.sort_value,
      true,   // exists
      false,  // released
      {},
      mutex.owner(),
      impl_.options.each.ttl,
      {},
      {},
      mutex.fencing_token(),
#ifndef DDBMUTEX_NO_ATTRIBUTES
      mutex.data(),
      mutex.attributes(),
#endif
  };
  return impl_.options.accept(info);
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

AnyOf::Impl::Impl(AnyOfOptions&& the_options)
    : options(std::move(the_options)) {
  if (!options.each.table) options.each.table = Table::standard();
  options.each.keep_row = true;
  options.each.only_if_exists = true;
  if (table().bad) {
    bad = std::make_unique<Error>(*table().bad);
    return;
  }
  bad = check(options);
  if (bad) return;
  // What is wrong with the options of each lock is told by any: by this here,
  // or, without exceptions, by its first call.
  const bool sorted = !table().options.sort_key.empty();
  const std::unique_ptr<DdbMutex> any = mutex_of("any", sorted ? "any" : "");
  std::error_code ec;
  any->renew(ec);
  if (ec != make_error_code(Errc::not_held)) {
    bad = detail::failure(ec, any->last_error());
  }
}

std::unique_ptr<DdbMutex> AnyOf::Impl::mutex_of(
    const std::string& name, const std::string& sort_value) const {
  Options each = options.each;
  each.sort_value = sort_value;
  return std::make_unique<DdbMutex>(name, std::move(each));
}

AnyOf::Impl::State& AnyOf::Impl::get() {
  if (State* own = state.peek()) return *own;
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
  return own->accepted;
}

std::string AnyOf::last_error() const { return impl_->last_error(); }

}  // namespace v0
}  // namespace ddbmutex
#endif
