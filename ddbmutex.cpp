// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The calls of a DdbMutex.  The constructor checks the options.  Each call asks
// the lock::Mutex of this process and turns its Result into an Error.
#include "ddbmutex.hpp"

#include <algorithm>
#include <utility>

#include "ddbmutex/errors.hpp"
#include "ddbmutex/impl.hpp"
#include "ddbmutex/lock/keeper.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "ddbmutex/row_options.hpp"
#include "ddbmutex/stored.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/memory.hpp"
#include "sigv4/profile.hpp"
#include "sigv4/text.hpp"

// The extras have more sources of keys and more endpoints than the core.
#ifdef DDBMUTEX_EXTRAS
#include "extras/parts.hpp"
const ddbmutex::sigv4::Parts& ddbmutex::detail::parts() {
  return sigv4::all_parts();
}
#else
const ddbmutex::sigv4::Parts& ddbmutex::detail::parts() {
  return sigv4::core_parts();
}
#endif

namespace ddbmutex {
inline namespace v0 {

using detail::ErrorPtr;
using detail::nanoseconds_of;
using detail::NoCancellation;
using lock::Verdict;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// --- Options -----------------------------------------------------------------

milliseconds detail::request_timeout_of(const Options& options) {
  return options.request_timeout.value_or(
      std::min(dynamodb::kLockRequestTimeout, options.ttl / 4));
}

namespace {

milliseconds safe_time_of(const Options& options) {
  return options.safe_time.value_or(options.ttl / 4);
}

ErrorPtr check_times(const Options& options) {
  constexpr milliseconds kZero{0}, kOne{1}, kNoLimit = milliseconds::max();
  const milliseconds half = options.ttl / 2;
  const milliseconds below_half = half + options.ttl % 2 - kOne;
  ErrorPtr bad;
  const auto check = [&bad](const char* field, milliseconds time,
                            milliseconds least, milliseconds most,
                            const char* why) {
    if (bad || (time >= least && time <= most)) return;
    const std::string text =
        sigv4::join({sigv4::Digits(time.count()), " ms is ", why});
    bad = detail::bad_option({field, text.c_str()});
  };
  check("ttl", options.ttl, milliseconds(100), lock::kLongestLease,
        "not between 100 ms and 366 days");
  check("request_timeout", detail::request_timeout_of(options), kOne,
        below_half, "not more than 0 and less than ttl / 2");
  check("first_poll", options.first_poll, kOne, kNoLimit, "not more than 0");
  check("longest_poll", options.longest_poll, options.first_poll, kNoLimit,
        "less than first_poll");
  check("safe_time", safe_time_of(options), kZero, below_half,
        "not at least 0 and less than ttl / 2");
  check("patience", options.patience, kZero, kNoLimit, "less than 0");
  check("renew_after", options.renew_after.value_or(kOne), kOne, half,
        "not more than 0 and at most ttl / 2");
  check("max_hold", options.max_hold.value_or(kNoLimit), kOne, kNoLimit,
        "not more than 0");
  return bad;
}

ErrorPtr check(const Options& options, const TableOptions& table) {
  const char* without_renewals = options.auto_renew ? "" : "needs auto_renew";
  const char* without_row =
      detail::keeps_rows(options.keep_row, table) ? "" : "needs keep_row";
  if (ErrorPtr bad = detail::check_all({
          {"renew_after", options.renew_after ? without_renewals : ""},
          {"max_hold", options.max_hold ? without_renewals : ""},
          {"only_if_exists", options.only_if_exists ? without_row : ""},
          {"fencing", options.fencing ? without_row : ""},
          {"owner",
           detail::text_problem(options.owner, detail::kMaxKeyBytes,
                                "longer than 2,048 bytes"),
           options.owner},
      })) {
    return bad;
  }
  if (ErrorPtr bad = check_times(options)) return bad;
  if (ErrorPtr bad = detail::check_for_layout(options, table)) return bad;
  return detail::check_stored(options, table);
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

struct Reason {
  std::error_code code{};  // Not set: there is no error.
  std::string details{};
};

// Why a call failed; no code if it did not, or if its answer says why.
Reason reason_of(const lock::Result& result) {
  const auto deadlock =
      std::make_error_code(std::errc::resource_deadlock_would_occur);
  switch (result.verdict) {
    case Verdict::ours:
    case Verdict::released:
    case Verdict::busy:
    case Verdict::again:
      return {};
    case Verdict::deadlock:
      return {deadlock, "this thread has locked it already"};
    case Verdict::deadlock_of_callback:
      return {deadlock,
              "another thread has locked it, and a callback that waited would "
              "hold up all others"};
    case Verdict::cancelled:
      return {Errc::cancelled};
    case Verdict::closed:
      return {Errc::closed};
    case Verdict::no_thread:
      return {std::make_error_code(std::errc::resource_unavailable_try_again),
              "cannot start a thread to renew the lease"};
    case Verdict::bad_record:
      return {Errc::bad_record, result.answer.message};
    case Verdict::kept_row:
      return {Errc::kept_row, "it has a fencing token; set keep_row"};
    case Verdict::no_row:
      return {Errc::no_row};
    case Verdict::no_date:
      return {Errc::not_supported, "DynamoDB's answers have no Date"};
    case Verdict::not_held:
      return {Errc::not_held};
    case Verdict::taken:
    case Verdict::deleted:
    case Verdict::expired:
      return {Errc::lease_lost, detail::loss_text(result)};
  }
  return {};
}

}  // namespace

// "expired 312 ms ago", "found taken 15 s ago"
std::string detail::loss_text(const lock::Result& result) {
  if (!lock::is_loss(result.verdict)) return {};
  const Loss loss = loss_of(result.verdict);
  const char* found = loss == Loss::expired ? "" : "found ";
  if (!result.lost_at) return sigv4::join({found, name_of(loss)});
  const auto ms = (BootClock::now() - *result.lost_at) / milliseconds(1);
  const bool is_long = ms >= 10'000;
  return sigv4::join({found, name_of(loss), " ",
                      sigv4::Digits(is_long ? ms / 1000 : ms),
                      is_long ? " s ago" : " ms ago"});
}

void Callbacks::on_lost(Verdict why) const {
  if (options.on_lost) options.on_lost(loss_of(why));
}

void Callbacks::on_danger() const {
  if (options.on_danger) options.on_danger();
}

// --- DdbMutex::Impl ----------------------------------------------------------

DdbMutex::Impl::Impl(std::string&& the_name, Options&& the_options)
    : name(std::move(the_name)),
      table(the_options.table),
      callbacks(std::make_shared<Callbacks>(the_options)),
      options(callbacks->options) {
  const Table::Impl& table_impl = *table->impl_;
  if (table_impl.unusable) {
    unusable = std::make_unique<Error>(*table_impl.unusable);
    return;
  }
  unusable = with_name(table_impl.check_name(name, options.sort_value));
  if (!unusable) unusable = with_name(check(options, table_impl.options));
}

ErrorPtr DdbMutex::Impl::with_name(ErrorPtr bad_option) const {
  if (!bad_option) return nullptr;
  return detail::make_error(bad_option->code(),
                            sigv4::join({bad_option->what(), " (mutex ",
                                         sigv4::in_quotes(name), ")"}),
                            bad_option->field());
}

lock::Mutex& DdbMutex::Impl::get() {
  if (lock::Mutex* own = state.peek()) return *own;
  lock::TableState& shared = table->impl_->get();
  return state.get(shared, settings(shared));
}

std::shared_ptr<lock::MutexSettings> DdbMutex::Impl::settings(
    lock::TableState& shared) const {
  const TableOptions& table_options = table->impl_->options;
  auto made =
      std::make_shared<lock::MutexSettings>(shared.client, shared.budget);
  made->prefix_bytes = static_cast<unsigned>(table_options.prefix.size());
  table->impl_->set_row_target(name, options.sort_value, made->place);
  made->place.owner = owner();
  made->place.attributes = detail::to_item(options.data, options.item);
  const bool keep = detail::keeps_rows(options.keep_row, table_options);
  lock::RowPolicy& policy = made->place.policy;
  policy.keeps_row = keep;
  policy.keep_data = options.keep_data.value_or(keep);
  policy.must_exist = options.only_if_exists;
  detail::set_row_policy(policy, options, table_options);

  made->request_timeout = detail::request_timeout_of(options);
  made->ttl = options.ttl;
  made->safe_time = safe_time_of(options);
  if (options.auto_renew) {
    made->renew_after = options.renew_after.value_or(options.ttl / 2);
  }
  if (options.max_hold) made->max_hold = nanoseconds_of(*options.max_hold);
  made->first_poll = nanoseconds_of(options.first_poll);
  made->longest_poll = nanoseconds_of(options.longest_poll);
  made->patience = nanoseconds_of(options.patience);
  made->hears_losses = options.on_lost != nullptr;
  made->hears_dangers = options.on_danger != nullptr;
  made->listener = callbacks;
  return made;
}

const std::string& DdbMutex::Impl::owner() const {
  if (unusable || !options.owner.empty()) return options.owner;
  return table->impl_->usual_owner();
}

std::string DdbMutex::Impl::cannot_text(const char* what) const {
  return detail::cannot_text(what, name, table->name());
}

ErrorPtr DdbMutex::Impl::error_of(const lock::Result& result,
                                  const char* what) const {
  if (result.verdict == Verdict::again) {
    if (result.answer.fault == dynamodb::Fault::no_memory) sigv4::no_memory();
    return detail::error_of(result.answer, cannot_text(what),
                            table->impl_->endpoint());
  }
  const Reason reason = reason_of(result);
  if (!reason.code) return nullptr;
  return detail::error_of(reason.code, cannot_text(what), reason.details);
}

ErrorPtr DdbMutex::Impl::call_if_made(
    const char* what, sigv4::FunctionRef<lock::Result(lock::Mutex&)> call) {
  lock::Mutex* own = state.peek();
  if (own == nullptr)
    return detail::error_of(Errc::not_held, cannot_text(what));
  return error_of(call(*own), what);
}

ErrorPtr DdbMutex::Impl::renew(const lock::ChangesPtr& changes) {
  return call_if_made("renew",
                      [&](lock::Mutex& own) { return own.renew(changes); });
}

ErrorPtr DdbMutex::Impl::release(const lock::ChangesPtr& changes) {
  return call_if_made("release",
                      [&](lock::Mutex& own) { return own.release(changes); });
}

ErrorPtr DdbMutex::Impl::ensure(nanoseconds min_remaining) {
  if (remaining() < min_remaining) {
    if (ErrorPtr error = renew(nullptr)) return error;
  }
  return require(min_remaining);
}

// 0 unless the lock is ours.
nanoseconds DdbMutex::Impl::remaining() const {
  const lock::Mutex* own = state.peek();
  if (own == nullptr) return nanoseconds::zero();
  BootTime end, now;
  do {  // Until no renewal came between the two readings.
    end = own->claim_end();
    now = BootClock::now();
  } while (end != own->claim_end());
  return now < end ? end - now : nanoseconds::zero();
}

ErrorPtr DdbMutex::Impl::require(nanoseconds min_remaining) const {
  const nanoseconds left = remaining();
  if (left > nanoseconds::zero() && left >= min_remaining) return nullptr;
  const char* const what = "rely on";
  const lock::Mutex* own = state.peek();
  if (own == nullptr) {
    return detail::error_of(Errc::not_held, cannot_text(what));
  }
  if (ErrorPtr error = error_of(own->state(), what)) return error;
  const std::string text = sigv4::join(
      {sigv4::Digits(left / milliseconds(1)), " ms remain, but ",
       sigv4::Digits(min_remaining / milliseconds(1)), " ms are asked for"});
  return detail::error_of(Errc::ends_too_soon, cannot_text(what), text);
}

// --- The calls ---------------------------------------------------------------

DdbMutex::DdbMutex(std::string name) : DdbMutex(std::move(name), Options()) {}

DdbMutex::DdbMutex(std::string name, Options options) {
  const NoCancellation guard;
  if (!options.table) options.table = Table::standard();
  impl_ = std::make_shared<Impl>(std::move(name), std::move(options));
  impl_->finish_construction(impl_);
}

DdbMutex::~DdbMutex() {
  const NoCancellation guard;
  if (lock::Mutex* own = impl_->state.peek()) own->end();
  impl_.reset();
}

// The same as run(), without its frames, because this call stack is the
// deepest.
bool DdbMutex::lock_within(nanoseconds time, const std::atomic<bool>* stopped,
                           std::error_code& ec) {
  const NoCancellation guard;
  // The destructor may end this wait, from another thread.
  const std::shared_ptr<Impl> impl = impl_;
  if (impl->unusable) {
    impl->report(impl->unusable.get(), ec);
    return false;
  }
  lock::Result result;
  ErrorPtr error;
  const bool had_memory = sigv4::try_with_memory([&] {
    result = impl->get().lock(time, stopped);
    error = impl->error_of(result, "lock");
  });
  if (had_memory) {
    impl->report(error.get(), ec);
  } else {
    impl->report_no_memory(ec);
  }
  return result.verdict == Verdict::ours;
}

void DdbMutex::lock(std::error_code& ec) {
  lock_within(detail::kForEver, nullptr, ec);
}

bool DdbMutex::try_lock(std::error_code& ec) {
  return lock_within(nanoseconds::zero(), nullptr, ec);
}

void DdbMutex::renew(std::error_code& ec) {
  detail::run(impl_, ec, [](Impl& impl) { return impl.renew(nullptr); });
}

void DdbMutex::ensure(detail::MinRemaining min_remaining, std::error_code& ec) {
  detail::run(impl_, ec,
              [&](Impl& impl) { return impl.ensure(min_remaining.time); });
}

void DdbMutex::stop_renewing() noexcept {
  const NoCancellation guard;
  if (lock::Mutex* own = impl_->state.peek()) own->stop_renewing();
}

void DdbMutex::unlock() noexcept {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  lock::Mutex* own = impl->state.peek();
  if (impl->unusable || own == nullptr) return;
  const lock::Result result = own->release(nullptr);
  if (result.verdict == Verdict::not_held) return;
  sigv4::try_with_memory([&] {  // Without memory, last_error() stays as it was.
    const ErrorPtr error = impl->error_of(result, "release");
    if (error) impl->remember(*error);
  });
}

void DdbMutex::release() {
  detail::run(impl_, detail::throws(),
              [](Impl& impl) { return impl.release(nullptr); });
}

void DdbMutex::release(std::error_code& ec) noexcept {
  detail::run(impl_, ec, [](Impl& impl) { return impl.release(nullptr); });
}

void DdbMutex::cancel() noexcept {
  const NoCancellation guard;
  if (lock::Mutex* own = impl_->state.peek()) own->cancel();
}

// A call that has not begun to wait yet sees that it is stopped.
void DdbMutex::stop(Impl& impl, std::atomic<bool>& stopped) noexcept {
  const NoCancellation guard;
  stopped = true;
  if (lock::Mutex* own = impl.state.peek()) own->cancel(&stopped);
}

bool DdbMutex::owns_lock() const noexcept {
  return remaining() > nanoseconds::zero();
}

nanoseconds DdbMutex::remaining() const noexcept { return impl_->remaining(); }

void DdbMutex::require(detail::MinRemaining min_remaining) const {
  detail::run(impl_, detail::throws(),
              [&](Impl& impl) { return impl.require(min_remaining.time); });
}

void DdbMutex::require(detail::MinRemaining min_remaining,
                       std::error_code& ec) const noexcept {
  detail::run(impl_, ec,
              [&](Impl& impl) { return impl.require(min_remaining.time); });
}

bool DdbMutex::in_danger() const noexcept {
  return remaining() <= safe_time_of(impl_->options);
}

std::uint64_t DdbMutex::fencing_token() const noexcept {
  const lock::Mutex* own = impl_->state.peek();
  return own == nullptr ? 0 : static_cast<std::uint64_t>(own->token());
}

const std::string& DdbMutex::name() const noexcept { return impl_->name; }

const std::string& DdbMutex::owner() const noexcept { return impl_->owner(); }

std::string DdbMutex::last_error() const { return impl_->last_error(); }

}  // namespace v0
}  // namespace ddbmutex
