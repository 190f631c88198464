#include "ddbmutex.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include "ddbmutex/attributes.hpp"
#include "ddbmutex/face.hpp"
#include "ddbmutex/failure.hpp"
#include "ddbmutex/keeper.hpp"
#include "ddbmutex/layouts.hpp"
#include "ddbmutex/mutex.hpp"
#include "ddbmutex/record.hpp"
#include "ddbmutex/table.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/memory.hpp"
#include "sigv4/profile.hpp"
#include "sigv4/shared.hpp"
#include "sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::failed;
using detail::Failure;
using detail::nanoseconds_of;
using detail::NoCancellation;
using detail::run;
using lock::News;
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

// --- Options -----------------------------------------------------------------

namespace {

milliseconds request_timeout_of(const Options& options) {
  return options.request_timeout.value_or(
      std::min(milliseconds(2000), options.ttl / 4));
}

milliseconds safe_time_of(const Options& options) {
  return options.safe_time.value_or(options.ttl / 4);
}

Failure check_times(const Options& options) {
  constexpr milliseconds kNone{0}, kLeast{1}, kMost = milliseconds::max();
  const milliseconds half = options.ttl / 2;
  const milliseconds below_half = half + options.ttl % 2 - kLeast;
  Failure bad;
  const auto check = [&bad](const char* field, milliseconds time,
                            milliseconds least, milliseconds most,
                            const char* why) {
    if (bad || (time >= least && time <= most)) return;
    const std::string text = sigv4::format("%s ms is %s", time.count(), why);
    bad = detail::bad_option({field, text.c_str()});
  };
  check("ttl", options.ttl, milliseconds(100), lock::kLongestLease,
        "not between 100 ms and 366 days");
  check("request_timeout", request_timeout_of(options), kLeast, below_half,
        "not more than 0 and less than ttl / 2");
  check("first_poll", options.first_poll, kLeast, kMost, "not more than 0");
  check("longest_poll", options.longest_poll, options.first_poll, kMost,
        "less than first_poll");
  check("safe_time", safe_time_of(options), kNone, below_half,
        "not at least 0 and less than ttl / 2");
  check("patience", options.patience, kNone, kMost, "less than 0");
  check("renew_after", options.renew_after.value_or(kLeast), kLeast, half,
        "not more than 0 and at most ttl / 2");
  check("max_hold", options.max_hold.value_or(kMost), kLeast, kMost,
        "not more than 0");
  return bad;
}

Failure check(const Options& options, const TableOptions& table) {
  const bool keeps = detail::keeps_rows(options.keep_row, table);
  const char* by_hand = options.auto_renew ? "" : "needs auto_renew";
  if (Failure bad = detail::check_all({
          {"renew_after", options.renew_after ? by_hand : ""},
          {"max_hold", options.max_hold ? by_hand : ""},
          {"alive", options.alive ? by_hand : ""},
          {"only_if_exists",
           options.only_if_exists && !keeps ? "needs keep_row" : ""},
          {"fencing", options.fencing && !keeps ? "needs keep_row" : ""},
          {"handover_limit",
           options.handover_limit < 0
               ? sigv4::format("%s is less than 0", options.handover_limit)
                     .c_str()
               : ""},
          {"owner",
           detail::not_text(options.owner, detail::kMaxKeyBytes,
                            "longer than 2,048 bytes"),
           options.owner},
      })) {
    return bad;
  }
  if (Failure bad = check_times(options)) return bad;
  if (Failure bad = detail::check_shared(options, table)) return bad;
  return detail::check_stored(options, table);
}

Loss loss_of(Verdict verdict) {
  return verdict == Verdict::taken     ? Loss::taken
         : verdict == Verdict::deleted ? Loss::deleted
                                       : Loss::expired;
}

using Kind = lock::Result::Kind;

constexpr struct {
  Kind kind;
  Errc code;
} kCodes[] = {
    {Kind::cancelled, Errc::cancelled},   {Kind::closed, Errc::closed},
    {Kind::bad_record, Errc::bad_record}, {Kind::kept_row, Errc::kept_row},
    {Kind::no_row, Errc::no_row},         {Kind::no_date, Errc::not_supported},
    {Kind::lost, Errc::lease_lost},
};

Errc code_of(Kind kind) {
  for (const auto& [of, code] : kCodes) {
    if (of == kind) return code;
  }
  return Errc::not_held;
}

}  // namespace

bool Asked::call(const lock::Listener& self, News news, Verdict why) {
  const Options& options = static_cast<const Asked&>(self).options;
  if (news == News::loss && options.on_lost) options.on_lost(loss_of(why));
  if (news == News::danger && options.on_danger) options.on_danger();
  return news == News::question && options.alive();
}

// --- What a mutex is inside --------------------------------------------------

DdbMutex::Impl::Impl(std::string&& the_name, Options&& the_options)
    : name(std::move(the_name)),
      table(the_options.table),
      asked(sigv4::share<Asked>(the_options)),
      options(asked->options) {
  const Table::Impl& whole = *table->impl_;
  if (whole.bad) {
    bad = std::make_unique<Error>(*whole.bad);
    return;
  }
  bad = of_this(whole.check_name(name, options.sort_value));
  if (!bad) bad = of_this(check(options, whole.options));
}

Failure DdbMutex::Impl::of_this(Failure bad_one) const {
  if (!bad_one) return nullptr;
  return detail::failure(bad_one->code(),
                         sigv4::format("%s (mutex %q)", bad_one->what(), name),
                         bad_one->field());
}

lock::Mutex& DdbMutex::Impl::get() {
  if (lock::Mutex* own = state.peek()) return *own;
  Table::Impl& whole = *table->impl_;
  lock::Table& inner = whole.get();
  auto holder = sigv4::share<lock::Holder>(inner.client, inner.budget);
  holder->prefix_bytes = static_cast<unsigned>(whole.options.prefix.size());
  whole.put_place(name, options.sort_value, holder->place);
  holder->place.owner = owner();
  const bool keep = detail::keeps_rows(options.keep_row, whole.options);
  lock::RowUse& use = holder->place.use;
  use.keep = keep;
  use.keep_data = options.keep_data.value_or(keep);
  use.must_exist = options.only_if_exists;
  detail::suit(use, options, whole.options);
  holder->place.attributes = detail::to_item(options.data, options.attributes);
  holder->request_timeout = request_timeout_of(options);
  holder->ttl = options.ttl;
  holder->safe_time = safe_time_of(options);
  if (options.auto_renew) {
    holder->renew_after = options.renew_after.value_or(options.ttl / 2);
  }
  if (options.max_hold) holder->max_hold = nanoseconds_of(*options.max_hold);
  holder->first_poll = nanoseconds_of(options.first_poll);
  holder->longest_poll = nanoseconds_of(options.longest_poll);
  holder->patience = nanoseconds_of(options.patience);
  holder->recursive = options.recursive;
  // Else each acquisition is to have a whole lease, or a time of its own.
  if (options.auto_renew && !options.max_hold) {
    holder->handover_limit = options.handover_limit;
  }
  holder->hears_losses = options.on_lost != nullptr;
  holder->hears_dangers = options.on_danger != nullptr;
  holder->is_asked = options.alive != nullptr;
  holder->listener = asked;
  return state.get(inner, std::move(holder));
}

const std::string& DdbMutex::Impl::owner() const {
  if (bad || !options.owner.empty()) return options.owner;
  return table->impl_->usual_owner();
}

std::string DdbMutex::Impl::cannot(const char* what) const {
  return detail::cannot(what, name, table->name());
}

Failure DdbMutex::Impl::failure_of(const lock::Result& result,
                                   const char* what) const {
  std::error_code code = code_of(result.kind);
  std::string_view more;
  switch (result.kind) {
    case Kind::done:
    case Kind::busy:
      return nullptr;
    case Kind::failed:
      return detail::failure_of(result.answer, cannot(what),
                                table->impl_->endpoint());
    case Kind::kept_row:
      more = "it has a fencing token; set keep_row";
      break;
    case Kind::no_date:
      more = "DynamoDB's answers have no Date";
      break;
    case Kind::deadlock:
      code = std::make_error_code(std::errc::resource_deadlock_would_occur);
      more = "this thread has locked it already";
      break;
    case Kind::deadlock_of_callback:
      code = std::make_error_code(std::errc::resource_deadlock_would_occur);
      more =
          "another thread has locked it, and a callback that waited would hold "
          "up all others";
      break;
    case Kind::no_thread:
      code = std::make_error_code(std::errc::resource_unavailable_try_again);
      more = "cannot start a thread to renew the lease";
      break;
    case Kind::bad_record:
      more = result.answer.message;
      break;
    case Kind::lost:
      more = name_of(loss_of(result.loss));
      break;
    default:
      break;
  }
  return failed(code, cannot(what), more);
}

Failure DdbMutex::Impl::with_held(
    lock::Result (*call)(lock::Mutex& own, const lock::ChangesPtr& changes),
    const lock::ChangesPtr& changes, const char* what) {
  lock::Mutex* own = state.peek();
  if (own == nullptr) return failed(Errc::not_held, cannot(what));
  return failure_of(call(*own, changes), what);
}

Failure DdbMutex::Impl::ensure(nanoseconds min_remaining) {
  if (remaining() < min_remaining) {
    if (Failure failure = renew(nullptr)) return failure;
  }
  return require(min_remaining);
}

// 0 unless the lock is ours.
nanoseconds DdbMutex::Impl::remaining() const {
  const lock::Mutex* own = state.peek();
  if (own == nullptr) return nanoseconds::zero();
  const BootTime end = own->claim_end();
  const BootTime now = BootClock::now();  // After the end was read.
  return now < end ? end - now : nanoseconds::zero();
}

Failure DdbMutex::Impl::require(nanoseconds min_remaining) const {
  const nanoseconds left = remaining();
  if (left > nanoseconds::zero() && left >= min_remaining) return nullptr;
  const std::string doing = cannot("rely on");
  const lock::Mutex* own = state.peek();
  if (own == nullptr || own->held() == nullptr)
    return failed(Errc::not_held, doing);
  if (left == nanoseconds::zero()) return failed(Errc::lease_lost, doing);
  const std::string text =
      sigv4::format("%s ms remain, but %s ms are asked for",
                    left / milliseconds(1), min_remaining / milliseconds(1));
  return failed(Errc::ends_too_soon, doing, text);
}

// --- The calls ---------------------------------------------------------------

DdbMutex::DdbMutex(std::string name) : DdbMutex(std::move(name), Options()) {}

DdbMutex::DdbMutex(std::string name, Options options) {
  const NoCancellation guard;
  if (!options.table) options.table = Table::standard();
  impl_ = sigv4::share<Impl>(std::move(name), std::move(options));
  impl_->made(impl_);
}

DdbMutex::~DdbMutex() {
  const NoCancellation guard;
  if (lock::Mutex* own = impl_->state.peek()) own->end();
  impl_.reset();
}

// Not by run(): few frames stand between a user and the network.
bool DdbMutex::lock_within(const detail::Deadline& deadline, detail::Wait* wait,
                           std::error_code& ec) {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;  // A destructor may end this wait.
  if (impl->bad) {
    impl->end(impl->bad.get(), ec);
    return false;
  }
  lock::Result result;
  result.kind = Kind::failed;
  Failure failure;
  const bool had_memory = sigv4::has_memory_for([&] {
    result = impl->get().lock({deadline.within, deadline.left, deadline.at},
                              wait != nullptr ? &wait->impl_->cancel : nullptr);
    failure = impl->failure_of(result, "lock");
  });
  had_memory ? impl->end(failure.get(), ec) : impl->end_without_memory(ec);
  return result.kind == Kind::done;
}

bool DdbMutex::try_lock_past_lease(milliseconds additional,
                                   std::error_code& ec) {
  bool locked = false;
  detail::run(impl_, ec, [&](Impl& impl) {
    const lock::Result result = impl.get().lock(
        {nanoseconds_of(additional), nullptr, nullptr, true}, nullptr);
    locked = result.kind == lock::Result::Kind::done;
    return impl.failure_of(result, "lock");
  });
  return locked;
}

void DdbMutex::lock(std::error_code& ec) { lock_within({}, nullptr, ec); }

bool DdbMutex::try_lock(std::error_code& ec) {
  return lock_within({nanoseconds::zero()}, nullptr, ec);
}

void DdbMutex::renew(std::error_code& ec) {
  detail::run(impl_, ec, [](Impl& impl) { return impl.renew(nullptr); });
}

void DdbMutex::ensure(nanoseconds min_remaining, std::error_code& ec) {
  detail::run(impl_, ec,
              [&](Impl& impl) { return impl.ensure(min_remaining); });
}

void DdbMutex::unlock() noexcept {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  lock::Mutex* own = impl->state.peek();
  if (impl->bad || own == nullptr) return;
  const lock::Result result = own->release();
  if (result.kind == Kind::not_held) return;
  sigv4::has_memory_for([&] {  // What went wrong is for people.
    const Failure failure = impl->failure_of(result, "release");
    if (failure) impl->remember(*failure);
  });
}

void DdbMutex::release() {
  detail::run(impl_, detail::throws(),
              [](Impl& impl) { return impl.release(); });
}

void DdbMutex::release(std::error_code& ec) noexcept {
  detail::run(impl_, ec, [](Impl& impl) { return impl.release(); });
}

void DdbMutex::cancel() noexcept {
  const NoCancellation guard;
  if (lock::Mutex* own = impl_->state.peek()) own->cancel();
}

bool DdbMutex::owns_lock() const noexcept {
  return remaining() > nanoseconds::zero();
}

nanoseconds DdbMutex::remaining() const noexcept { return impl_->remaining(); }

void DdbMutex::require(nanoseconds min_remaining) const {
  detail::run(impl_, detail::throws(),
              [&](Impl& impl) { return impl.require(min_remaining); });
}

void DdbMutex::require(nanoseconds min_remaining,
                       std::error_code& ec) const noexcept {
  detail::run(impl_, ec,
              [&](Impl& impl) { return impl.require(min_remaining); });
}

bool DdbMutex::in_danger() const noexcept {
  return remaining() <= safe_time_of(impl_->options);
}

std::shared_ptr<void> DdbMutex::loss_signal(std::shared_ptr<void> (*make)(),
                                            void (*tell)(void*)) const {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  std::shared_ptr<void> signal;
  if (lock::Mutex* own = impl->state.peek()) {
    signal = own->signal_loss(make, tell);
  }
  if (signal != nullptr) return signal;
  signal = make();
  tell(signal.get());
  return signal;
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
