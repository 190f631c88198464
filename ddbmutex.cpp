#include "ddbmutex.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "ddbmutex/attributes.hpp"
#include "ddbmutex/face.hpp"
#include "ddbmutex/failure.hpp"
#include "ddbmutex/keeper.hpp"
#include "ddbmutex/mutex.hpp"
#include "ddbmutex/record.hpp"
#include "ddbmutex/table.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/profile.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::bad_option;
using detail::cannot;
using detail::failed;
using detail::Failure;
using detail::NoCancellation;
using lock::Verdict;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// --- Waits that another thread ends ------------------------------------------

struct detail::Wait::Impl {
  lock::Cancel cancel;
};

detail::Wait::Wait() : impl_(std::make_unique<Impl>()) {}
detail::Wait::~Wait() = default;
void detail::Wait::cancel() noexcept {
  const NoCancellation guard;
  impl_->cancel.cancel();
}

// --- DdbMutex ----------------------------------------------------------------

namespace {

constexpr milliseconds kShortestTtl{100};

std::string host_and_pid() {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return std::string(host) + ":" + std::to_string(getpid());
}

milliseconds request_timeout_of(const Options& options) {
  return options.request_timeout.value_or(
      std::min(milliseconds(2000), options.ttl / 4));
}

milliseconds safe_time_of(const Options& options) {
  return options.safe_time.value_or(options.ttl / 4);
}

Failure bad_time(const char* option, milliseconds time, const char* why) {
  return bad_option(option, std::to_string(time.count()) + " ms is " + why);
}

// Those that have to do with how the lease is renewed.
Failure check_renewal(const Options& options) {
  if (!options.auto_renew) {
    const char* needless = options.renew_after ? "renew_after"
                           : options.max_hold  ? "max_hold"
                           : options.alive     ? "alive"
                                               : nullptr;
    if (needless == nullptr) return {};
    return bad_option(needless, "without auto_renew");
  }
  const auto& age = options.renew_after;
  if (age && (*age <= milliseconds::zero() || *age > options.ttl / 2)) {
    return bad_time("renew_after", *age, "not above 0 and up to ttl / 2");
  }
  if (options.max_hold && *options.max_hold <= milliseconds::zero()) {
    return bad_time("max_hold", *options.max_hold, "not above 0");
  }
  return {};
}

Failure check_times(const Options& options) {
  const milliseconds ttl = options.ttl;
  if (ttl < kShortestTtl || ttl > lock::kLongestLease) {
    return bad_time("ttl", ttl, "not between 100 ms and 366 days");
  }
  const milliseconds half = (ttl + milliseconds(1)) / 2;  // What is below, is.
  const milliseconds request = request_timeout_of(options);
  if (request <= milliseconds::zero() || request >= half) {
    return bad_time("request_timeout", request,
                    "not above 0 and below ttl / 2");
  }
  if (options.first_poll <= milliseconds::zero()) {
    return bad_time("first_poll", options.first_poll, "not above 0");
  }
  if (options.longest_poll < options.first_poll) {
    return bad_time("longest_poll", options.longest_poll, "below first_poll");
  }
  const milliseconds safe = safe_time_of(options);
  if (safe < milliseconds::zero() || safe >= half) {
    return bad_time("safe_time", safe, "not from 0 to below ttl / 2");
  }
  if (options.patience < milliseconds::zero()) {
    return bad_time("patience", options.patience, "below 0");
  }
  return check_renewal(options);
}

Failure check(const Options& options, const TableOptions& table) {
  if (Failure bad = check_times(options)) return bad;
  if (!lock::is_utf8(options.owner)) return bad_option("owner", "not UTF-8");
  if (options.owner.size() > detail::kMaxKeyBytes) {
    return bad_option("owner", "longer than 2,048 bytes");
  }
  if (options.only_if_exists && !options.keep_row) {
    return bad_option("only_if_exists", "without keep_row");
  }
  const bool updates = options.keep_data.value_or(options.keep_row);
  if (updates && options.attributes.size() > detail::kMostChanges) {
    return bad_option("attributes",
                      "more than 100, with keep_row or keep_data");
  }
  return detail::check(options.attributes, table, "attributes");
}

Loss loss_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::taken:
      return Loss::taken;
    case Verdict::deleted:
      return Loss::deleted;
    default:
      return Loss::expired;
  }
}

}  // namespace

DdbMutex::Impl::Impl(std::string the_name, Options the_options)
    : name(std::move(the_name)), options([&the_options] {
        if (!the_options.table) the_options.table = Table::standard();
        return std::move(the_options);
      }()) {
  const Table::Impl& table = *options.table->impl_;
  bad = table.bad;
  if (!bad) bad = of_this(table.check_name(name, options.sort_value));
  if (!bad) bad = of_this(check(options, table.options));
}

// Whose option it is that is bad.
Failure DdbMutex::Impl::of_this(Failure bad_one) const {
  if (bad_one) bad_one.text += " (mutex " + sigv4::in_quotes(name) + ")";
  return bad_one;
}

namespace {

lock::Holder::Callbacks callbacks_of(const Options& options) {
  lock::Holder::Callbacks callbacks;
  if (options.on_lost) {
    callbacks.on_lost = [tell = options.on_lost](Verdict why) {
      tell(loss_of(why));
    };
  }
  callbacks.on_danger = options.on_danger;
  callbacks.alive = options.alive;
  return callbacks;
}

lock::Holder::Terms terms_of(const std::string& name, const Options& options) {
  lock::Holder::Terms terms{name, options.ttl, safe_time_of(options), {}};
  if (options.auto_renew) {
    terms.renew_after = options.renew_after.value_or(options.ttl / 2);
  }
  if (options.max_hold) {
    terms.max_hold = detail::nanoseconds_of(*options.max_hold);
  }
  return terms;
}

lock::Mutex::Waiting waiting_of(const Options& options) {
  lock::Mutex::Waiting waiting;
  waiting.first_poll = detail::nanoseconds_of(options.first_poll);
  waiting.longest_poll = detail::nanoseconds_of(options.longest_poll);
  waiting.patience = detail::nanoseconds_of(options.patience);
  waiting.recursive = options.recursive;
  return waiting;
}

}  // namespace

DdbMutex::Impl::State& DdbMutex::Impl::get() {
  if (State* own = state.peek()) return *own;
  Table::Impl& table = *options.table->impl_;
  lock::Place place = table.place_of(name, options.sort_value);
  place.owner = owner();
  place.use.keep = options.keep_row;
  place.use.keep_data = options.keep_data.value_or(options.keep_row);
  place.use.must_exist = options.only_if_exists;
  place.attributes = detail::to_item(options.data, options.attributes);
  return state.get(table.get(), std::move(place), request_timeout_of(options),
                   terms_of(name, options), callbacks_of(options),
                   waiting_of(options));
}

const std::string& DdbMutex::Impl::owner() const {
  if (bad || !options.owner.empty()) return options.owner;
  if (const std::string* own = usual_owner.peek()) return *own;
  return usual_owner.get(host_and_pid());
}

Failure DdbMutex::Impl::failure_of(lock::Result& result,
                                   const char* what) const {
  using Kind = lock::Result::Kind;
  if (result.kind == Kind::done || result.kind == Kind::busy) return {};
  const std::string doing = cannot(what, name, options.table->name());
  switch (result.kind) {
    case Kind::deadlock:
      return failed(
          std::make_error_code(std::errc::resource_deadlock_would_occur), doing,
          "this thread has locked it");
    case Kind::no_thread:
      return failed(
          std::make_error_code(std::errc::resource_unavailable_try_again),
          doing, "no thread can be started to renew the lease");
    case Kind::cancelled:
      return failed(Errc::cancelled, doing);
    case Kind::closed:
      return failed(Errc::closed, doing);
    case Kind::bad_record:
      return failed(Errc::bad_record, doing, result.problem);
    case Kind::kept_row:
      return failed(Errc::kept_row, doing, "it bears a fencing token");
    case Kind::no_row:
      return failed(Errc::no_row, doing);
    case Kind::not_held:
      return failed(Errc::not_held, doing);
    case Kind::lost:
      return failed(Errc::lease_lost, doing, name_of(loss_of(result.loss)));
    default:
      return detail::failure_of(result.answer, doing,
                                options.table->impl_->endpoint());
  }
}

Failure DdbMutex::Impl::lock(const lock::Patience& patience, detail::Wait* wait,
                             bool& locked) {
  locked = false;
  if (bad) return bad;
  lock::Result result =
      get().lock(patience, wait != nullptr ? &wait->impl_->cancel : nullptr);
  locked = result.kind == lock::Result::Kind::done;
  return failure_of(result, "lock");
}

namespace {

// Null if there are none.
std::shared_ptr<const lock::Changes> changes_of(const Changes& changes) {
  if (!changes.data && changes.attributes.empty() && changes.remove.empty()) {
    return nullptr;
  }
  return std::make_shared<const lock::Changes>(detail::to_changes(changes));
}

lock::Result not_held() {
  lock::Result result;
  result.kind = lock::Result::Kind::not_held;
  return result;
}

}  // namespace

Failure DdbMutex::Impl::renew(const Changes& changes) {
  if (bad) return bad;
  const TableOptions& table = options.table->impl_->options;
  if (Failure wrong = detail::check(changes, table)) return of_this(wrong);
  State* own = state.peek();
  lock::Result result = own ? own->renew(changes_of(changes)) : not_held();
  return failure_of(result, "renew");
}

Failure DdbMutex::Impl::ensure(nanoseconds min_remaining) {
  if (remaining() < min_remaining) {
    if (Failure failure = renew({})) return failure;
  }
  return require(min_remaining);
}

Failure DdbMutex::Impl::release(const Changes& changes) {
  if (bad) return bad;
  const TableOptions& table = options.table->impl_->options;
  if (Failure wrong = detail::check(changes, table)) return of_this(wrong);
  auto others = changes_of(changes);
  if (others != nullptr && !options.keep_row) {
    return of_this(
        bad_option("changes", "nothing stays of a row that is not kept"));
  }
  State* own = state.peek();
  lock::Result result = own ? own->release(std::move(others)) : not_held();
  return failure_of(result, "release");
}

// 0 unless the lock is ours.
nanoseconds DdbMutex::Impl::remaining() const {
  const State* own = state.peek();
  if (own == nullptr) return nanoseconds::zero();
  const BootTime end = own->claim_end();
  const BootTime now = BootClock::now();  // After the end was read.
  return now < end ? end - now : nanoseconds::zero();
}

Failure DdbMutex::Impl::require(nanoseconds min_remaining) const {
  if (bad) return bad;
  const nanoseconds left = remaining();
  if (left > nanoseconds::zero() && left >= min_remaining) return {};
  const std::string doing = cannot("rely on", name, options.table->name());
  const State* own = state.peek();
  if (own == nullptr || !own->is_locked()) return failed(Errc::not_held, doing);
  Failure failure = failed(Errc::lease_lost, doing);
  if (left > nanoseconds::zero()) {
    failure.text = doing + ": only " + std::to_string(left / milliseconds(1)) +
                   " ms remain, and " +
                   std::to_string(min_remaining / milliseconds(1)) +
                   " ms are asked for";
  }
  return failure;
}

void DdbMutex::Impl::finish(const Failure& failure, std::error_code* ec) {
  if (ec != nullptr) {
    *ec = failure.code;
    if (failure && !bad) remember(failure);
  } else if (failure) {
    detail::raise(failure);
  }
}

void DdbMutex::Impl::remember(const Failure& failure) {
  LastError& own = last_error.get();
  const std::lock_guard<std::mutex> guard(own.mutex);
  own.text = failure.text;
}

// --- The calls ---------------------------------------------------------------

DdbMutex::DdbMutex(std::string name, Options options) {
  const NoCancellation guard;
  detail::prepare_process();
  impl_ = std::make_shared<Impl>(std::move(name), std::move(options));
#ifdef __cpp_exceptions
  if (impl_->bad) detail::raise(impl_->bad);
#endif
}

DdbMutex::~DdbMutex() {
  const NoCancellation guard;
  if (Impl::State* own = impl_->state.peek()) own->end();
  impl_.reset();
}

namespace {

// A call on a mutex that a destructor may end meanwhile.
template <class Impl, class Call>
void run(std::shared_ptr<Impl> impl, std::error_code* ec, const Call& call) {
  const NoCancellation guard;
  impl->finish(call(*impl), ec);
}

}  // namespace

bool DdbMutex::lock_within(const detail::Deadline& deadline, detail::Wait* wait,
                           std::error_code* ec) {
  bool locked;
  run(impl_, ec, [&](Impl& impl) {
    return impl.lock({deadline.within, deadline.left, deadline.at}, wait,
                     locked);
  });
  return locked;
}

bool DdbMutex::lock_past_lease(milliseconds additional, std::error_code* ec) {
  lock::Patience patience;
  patience.within = detail::nanoseconds_of(additional);
  patience.past_lease = true;
  bool locked;
  run(impl_, ec,
      [&](Impl& impl) { return impl.lock(patience, nullptr, locked); });
  return locked;
}

void DdbMutex::lock() { lock_within({}, nullptr, nullptr); }
void DdbMutex::lock(std::error_code& ec) { lock_within({}, nullptr, &ec); }

bool DdbMutex::try_lock() {
  return lock_within({nanoseconds::zero()}, nullptr, nullptr);
}

bool DdbMutex::try_lock(std::error_code& ec) {
  return lock_within({nanoseconds::zero()}, nullptr, &ec);
}

bool DdbMutex::try_lock_past_lease(milliseconds additional) {
  return lock_past_lease(additional, nullptr);
}

bool DdbMutex::try_lock_past_lease(milliseconds additional,
                                   std::error_code& ec) {
  return lock_past_lease(additional, &ec);
}

void DdbMutex::renew(const Changes& changes) {
  run(impl_, nullptr, [&](Impl& impl) { return impl.renew(changes); });
}

void DdbMutex::renew(std::error_code& ec) { renew({}, ec); }

void DdbMutex::renew(const Changes& changes, std::error_code& ec) {
  run(impl_, &ec, [&](Impl& impl) { return impl.renew(changes); });
}

void DdbMutex::ensure(nanoseconds min_remaining) {
  run(impl_, nullptr, [&](Impl& impl) { return impl.ensure(min_remaining); });
}

void DdbMutex::ensure(nanoseconds min_remaining, std::error_code& ec) {
  run(impl_, &ec, [&](Impl& impl) { return impl.ensure(min_remaining); });
}

void DdbMutex::unlock() noexcept {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  const Failure failure = impl->release({});
  if (failure && failure.code != Errc::not_held && !impl->bad) {
    impl->remember(failure);
  }
}

void DdbMutex::release() { release(Changes()); }

void DdbMutex::release(std::error_code& ec) noexcept { release({}, ec); }

void DdbMutex::release(const Changes& changes) {
  run(impl_, nullptr, [&](Impl& impl) { return impl.release(changes); });
}

void DdbMutex::release(const Changes& changes, std::error_code& ec) {
  run(impl_, &ec, [&](Impl& impl) { return impl.release(changes); });
}

void DdbMutex::cancel() noexcept {
  const NoCancellation guard;
  if (Impl::State* own = impl_->state.peek()) own->cancel();
}

bool DdbMutex::owns_lock() const noexcept {
  return remaining() > nanoseconds::zero();
}

nanoseconds DdbMutex::remaining() const noexcept { return impl_->remaining(); }

void DdbMutex::require(nanoseconds min_remaining) const {
  impl_->finish(impl_->require(min_remaining), nullptr);
}

void DdbMutex::require(nanoseconds min_remaining,
                       std::error_code& ec) const noexcept {
  impl_->finish(impl_->require(min_remaining), &ec);
}

bool DdbMutex::in_danger() const noexcept {
  return remaining() <= safe_time_of(impl_->options);
}

std::shared_ptr<void> DdbMutex::loss_signal(std::shared_ptr<void> (*make)(),
                                            void (*tell)(void*)) const {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  std::shared_ptr<void> signal;
  if (Impl::State* own = impl->state.peek()) {
    signal = own->signal_loss([&] { return lock::Signal{make(), tell}; });
  }
  if (signal != nullptr) return signal;
  signal = make();
  tell(signal.get());
  return signal;
}

std::uint64_t DdbMutex::fencing_token() const noexcept {
  const Impl::State* own = impl_->state.peek();
  return own == nullptr ? 0 : static_cast<std::uint64_t>(own->token());
}

std::optional<std::string> DdbMutex::data() const {
  const Impl::State* own = impl_->state.peek();
  const auto held = own == nullptr ? std::nullopt : own->possession();
  if (!held) return std::nullopt;
  return detail::data_of(*held->others);
}

Attributes DdbMutex::attributes() const {
  const Impl::State* own = impl_->state.peek();
  const auto held = own == nullptr ? std::nullopt : own->possession();
  if (!held) return {};
  return detail::attributes_of(*held->others,
                               impl_->options.table->impl_->options);
}

const std::string& DdbMutex::name() const noexcept { return impl_->name; }

const std::string& DdbMutex::owner() const noexcept { return impl_->owner(); }

std::string DdbMutex::last_error() const {
  if (impl_->bad) return impl_->bad.text;
  Impl::LastError* own = impl_->last_error.peek();
  if (own == nullptr) return {};
  const std::lock_guard<std::mutex> guard(own->mutex);
  return own->text;
}

}  // namespace v0
}  // namespace ddbmutex
