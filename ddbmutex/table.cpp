#include "table.hpp"

#include <unistd.h>

#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../sigv4/http.hpp"
#include "../sigv4/keys/credentials.hpp"
#include "../sigv4/keys/from_all.hpp"
#include "../sigv4/memory.hpp"
#include "../sigv4/secret.hpp"
#include "../sigv4/shared.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/thread.hpp"
#include "../sigv4/waiting.hpp"
#include "dynamodb/retry.hpp"
#include "layout_options.hpp"
#include "lock/renewer.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::bad_option;
using detail::ErrorPtr;
using detail::NoCancellation;
using dynamodb::Action;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

namespace {

// How long keys of a user's source serve that does not say when they end.
constexpr std::chrono::seconds kKeysAge{60};

bool is_table_name(std::string_view name) {
  if (sigv4::begins_with(name, "arn:")) return name.size() <= 1024;
  return name.size() >= 3 && name.size() <= 255 &&
         sigv4::is_alphanumeric(name, "_-.");
}

// Why that cannot be the name of a key attribute; empty if it can.
const char* not_a_key(const lock::Layout& layout, const std::string& name) {
  if (name.empty() || name.size() > 255) return "not 1 to 255 bytes long";
  if (!lock::is_utf8(name)) return "not UTF-8";
  return lock::is_of_record(layout, name)
             ? "the lock has an attribute of this name"
             : "";
}

const char* not_a_sort_value(const std::string& value) {
  return detail::text_problem(value, 1024, "longer than 1,024 bytes");
}

ErrorPtr check(const TableOptions& options) {
  if (ErrorPtr bad = detail::check_layout(options)) return bad;
  const lock::Layout& layout = *detail::find_layout(options);
  const Credentials& keys = options.credentials;
  const bool no_keys = keys.access_key_id.empty();
  const bool sorted = !options.sort_key.empty();
  std::string no_name;
  if (!is_table_name(options.name)) {
    sigv4::format_to(no_name, "%q is not 3 to 255 characters of a-zA-Z0-9_.-",
                     options.name);
  }
  return detail::check_all({
      {"table", no_name.c_str()},
      {"prefix",
       detail::text_problem(options.prefix, detail::kMaxKeyBytes - 1,
                            "too long: it leaves no room for a name"),
       options.prefix},
      {"key", not_a_key(layout, options.key), options.key},
      {"sort_value",
       sorted                       ? not_a_sort_value(options.sort_value)
       : options.sort_value.empty() ? ""
                                    : "set, but sort_key is not",
       options.sort_value},
      {"sort_key",
       !sorted                           ? ""
       : options.sort_key == options.key ? "the same as key"
                                         : not_a_key(layout, options.sort_key),
       options.sort_key},
      {"credentials", no_keys != keys.secret_access_key.empty()
                          ? "access_key_id or secret_access_key is missing"
                      : no_keys && !keys.session_token.empty()
                          ? "session_token without keys"
                          : ""},
  });
}

sigv4::KeyTexts texts_of(const Credentials& keys) {
  return {keys.access_key_id, keys.secret_access_key, keys.session_token,
          keys.account_id};
}

// Of keys that were given to us.
void wipe_secrets(Credentials& keys) {
  sigv4::wipe(keys.secret_access_key);
  sigv4::wipe(keys.session_token);
}

class OwnSource final : public sigv4::KeySource {
 public:
  explicit OwnSource(const TableOptions& options)
      : source_(options.credentials_source) {}
  // What the source throws is dealt with by who asks.
  sigv4::KeyOutcome fetch(const sigv4::Fetch& fetch) override {
    fetch.say("credentials_source is being asked");
    std::optional<Credentials> keys = source_();
    if (!keys) return sigv4::no_keys("credentials_source has no keys");
    sigv4::KeyOutcome outcome =
        sigv4::keys_of_options(texts_of(*keys), "credentials_source");
    wipe_secrets(*keys);
    outcome.ask_again = BootClock::now() + kKeysAge;
    if (!keys->expires) return outcome;
    outcome.ask_again = BootTime::max();
    outcome.ends =
        sigv4::ends_at(std::chrono::duration_cast<std::chrono::seconds>(
                           keys->expires->time_since_epoch())
                           .count(),
                       fetch.utc_now);
    return outcome;
  }

 private:
  const std::function<std::optional<Credentials>()> source_;
};

sigv4::KeySourcePtr key_source(const TableOptions& options,
                               const dynamodb::Target& target) {
  const bool find_region = sigv4::kRegionMayComeLater && target.region.empty();
  sigv4::KeySourcePtr own;
  if (options.credentials_source) {
    own = sigv4::share<OwnSource>(options);
    if (!find_region) return own;
  }
  return sigv4::chain_keys({texts_of(options.credentials), std::move(own),
                            options.profile, target.region_said, target.ca_file,
                            find_region});
}

// Lines for the user's logger, by a thread of their own.
struct UserLog : sigv4::LogQueue {
  explicit UserLog(const TableOptions& options)
      : LogQueue(tell), logger(options.logger) {}
  static void tell(LogQueue& self, sigv4::LogLevel level,
                   const std::string& text) {
#ifdef __cpp_exceptions
    try {
#endif
      static_cast<UserLog&>(self).logger(static_cast<LogLevel>(level), text);
#ifdef __cpp_exceptions
    } catch (...) {
    }
#endif
  }

  const std::function<void(LogLevel, const std::string&)> logger;
};

// The option that is bad is named once.
ErrorPtr bad_target(const dynamodb::Target& target) {
  const std::string itself = sigv4::format("option %s", target.option);
  const char* why = target.error.c_str();
  const bool named = sigv4::begins_with(target.error, itself);
  const std::string text = sigv4::format("%s%s", named ? "it" : "",
                                         why + (named ? itself.size() : 0));
  return bad_option({target.option, text.c_str()});
}

}  // namespace

Table::Impl::Impl(TableOptions&& the_options)
    : options(std::move(the_options)),
      target(dynamodb::find_target({options.region, options.endpoint,
                                    options.profile, options.ca_file})) {
  detail::set_layout_defaults(options);
  unusable = check(options);
  if (!unusable && !target.error.empty()) unusable = bad_target(target);
}

Table::Impl::~Impl() { wipe_secrets(options.credentials); }

Table::Impl::State::~State() {
  end_by = BootClock::now() + sigv4::kStopWithin;
  client.end_by(end_by);
}

std::string Table::Impl::endpoint() const {
  const State* own = state.peek();
  return own != nullptr ? own->client.endpoint() : target.endpoint;
}

const std::string& Table::Impl::usual_owner() const {
  if (const std::string* own = usual_owner_.peek()) return *own;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return usual_owner_.get(sigv4::format("%s:%s", host, getpid()));
}

void Table::Impl::put_place(const std::string& name,
                            const std::string& sort_value,
                            lock::RowTarget& place) const {
  place.layout = detail::find_layout(options);
  place.table = options.name;
  place.key = options.prefix;
  place.key += name;
  place.key_name = options.key;
  place.sort_name = options.sort_key;
  place.sort_value = sort_value.empty() ? options.sort_value : sort_value;
}

ErrorPtr Table::Impl::check_name(const std::string& name,
                                 const std::string& sort_value) const {
  const std::string& value =
      sort_value.empty() ? options.sort_value : sort_value;
  return detail::check_all({
      {"name",
       name.empty() ? "empty"
                    : detail::text_problem(
                          name, detail::kMaxKeyBytes - options.prefix.size(),
                          "longer than 2,048 bytes with the prefix"),
       name},
      {"sort_value",
       options.sort_key.empty()
           ? sort_value.empty() ? "" : "the table has no sort_key"
       : value.empty() ? "empty"
                       : not_a_sort_value(value),
       value},
  });
}

Table::Impl::State& Table::Impl::get() {
  if (State* own = state.peek()) return *own;
  std::shared_ptr<sigv4::LogQueue> lines;
  if (options.logger) lines = sigv4::share<UserLog>(options);
  const dynamodb::ClientOptions client{target, key_source(options, target),
                                       sigv4::LogQueue::log(lines),
                                       options.name};
  return state.get(client, std::move(lines));
}

Table::Table(TableOptions options) {
  sigv4::wipe_registers();  // The keys have just been copied, for all we know.
  const NoCancellation guard;
  // Before anything static of a user's is made, for all that has a table: what
  // is initialised here is then cleaned up after it.
  sigv4::init_http();
  sigv4::stop_all_at_exit();
  impl_ = sigv4::share<Impl>(std::move(options));
  wipe_secrets(options.credentials);
  impl_->finish_construction(impl_);
}

Table::~Table() {
  const NoCancellation guard;
  impl_.reset();
}

std::shared_ptr<Table> Table::standard() {
  static const std::shared_ptr<Table> table =
      sigv4::share<Table, const TableOptions&>(TableOptions());
  return table;
}

Stats Table::stats() const {
  Stats stats;
  const Impl::State* own = impl_->state.peek();
  if (own == nullptr) return stats;
  const dynamodb::Counts counts = own->client.counts();
  const auto sent = [&counts](Action action) {
    return counts.sent[static_cast<std::size_t>(action)];
  };
  stats.get_item = sent(Action::get_item);
  stats.put_item = sent(Action::put_item);
  stats.update_item = sent(Action::update_item);
  stats.delete_item = sent(Action::delete_item);
  stats.other = std::accumulate(counts.sent.begin(), counts.sent.end(),
                                std::uint64_t{0}) -
                stats.requests();
  stats.throttled = counts.throttled;
  stats.failed = counts.failed;
  stats.retries = own->budget.retries();
  stats.bytes_sent = counts.bytes_sent;
  stats.bytes_received = counts.bytes_received;
  const lock::Renewer::Usage usage = own->renewer->usage();
  stats.held = usage.held;
  stats.held_hours = usage.held_s / 3600;
  return stats;
}

namespace {

// Does it again until there is memory for it, or the time is up: false.
template <class Step>
bool insist(BootTime deadline, const Step& step) {
  constexpr milliseconds kPause{10};
  while (!sigv4::has_memory_for(step)) {
    if (BootClock::now() + kPause >= deadline) return false;
    sigv4::drive(nullptr, 0, BootClock::now() + kPause, nullptr);
  }
  return true;
}

}  // namespace

Unreleased Table::Impl::unreleased(const lock::Unreleased& lock) const {
  const std::string name(lock.held->holder->name());
  const std::string doing = detail::cannot("release", name, options.name);
  const ErrorPtr error =
      lock.result.kind == lock::Result::Kind::lost
          ? detail::error_of(Errc::lease_lost, doing)
          : detail::error_of(lock.result.answer, doing, endpoint());
  return {name, error->code(), error->what()};
}

std::vector<Unreleased> Table::close(milliseconds within) noexcept {
  const NoCancellation guard;
  std::vector<Unreleased> told;
  if (impl_->unusable) return told;
  const BootTime deadline =
      lock::later(BootClock::now(), detail::nanoseconds_of(within));
  std::vector<lock::Unreleased> left;
  insist(deadline, [&] {
    Impl::State& own = impl_->get();
    own.waits.close();
    left = own.renewer->release_all(deadline);
  });
  // Who is not told for want of memory sees that owns_lock() is false.
  sigv4::has_memory_for([&] { told.reserve(left.size()); });
  for (const lock::Unreleased& one : left) {
    if (one.result.kind == lock::Result::Kind::done) continue;
    sigv4::has_memory_for([&] { told.push_back(impl_->unreleased(one)); });
  }
  return told;
}

std::string Table::last_error() const { return impl_->last_error(); }

const std::string& Table::name() const noexcept { return impl_->options.name; }

}  // namespace v0
}  // namespace ddbmutex
