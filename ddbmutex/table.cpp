// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The calls of a Table, except inspect() (inspect.cpp): checks options,
// sets up the source of keys and the log, and releases all locks in close().
#include <unistd.h>

#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "../sigv4/function_ref.hpp"
#include "../sigv4/http.hpp"
#include "../sigv4/keys/credentials.hpp"
#include "../sigv4/keys/from_all.hpp"
#include "../sigv4/memory.hpp"
#include "../sigv4/secret.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/thread.hpp"
#include "../sigv4/waiting.hpp"
#include "dynamodb/retry.hpp"
#include "impl.hpp"
#include "lock/keeper.hpp"
#include "row_options.hpp"
#include "stored.hpp"

namespace ddbmutex {
inline namespace v0 {

using detail::bad_option;
using detail::ErrorPtr;
using detail::NoCancellation;
using dynamodb::Action;
using std::chrono::milliseconds;

namespace {

// How long keys from credentials_source are used if they have no `expires`.
constexpr std::chrono::seconds kKeysAge{60};

bool is_table_name(std::string_view name) {
  if (sigv4::begins_with(name, "arn:")) return name.size() <= 1024;
  return name.size() >= 3 && name.size() <= 255 &&
         sigv4::is_alphanumeric(name, "_-.");
}

// --- What is wrong with an option; "" if nothing is --------------------------

const char* attribute_problem(const lock::RowFormat& rows,
                              const std::string& name) {
  const char* const problem = detail::name_problem(name);
  if (*problem != '\0') return problem;
  return lock::is_record_attribute(rows, name)
             ? "the lock has an attribute of this name"
             : "";
}

const char* sort_key_problem(const lock::RowFormat& rows,
                             const TableOptions& options) {
  if (options.sort_key.empty()) return "";
  if (options.sort_key == options.key) return "the same as key";
  return attribute_problem(rows, options.sort_key);
}

const char* sort_value_problem(const std::string& value) {
  return detail::text_problem(value, 1024, "longer than 1,024 bytes");
}

const char* sort_value_problem(const TableOptions& options) {
  if (!options.sort_key.empty()) return sort_value_problem(options.sort_value);
  return options.sort_value.empty() ? "" : "set, but sort_key is not";
}

const char* credentials_problem(const Credentials& keys) {
  const bool no_keys = keys.access_key_id.empty();
  if (no_keys != keys.secret_access_key.empty()) {
    return "access_key_id or secret_access_key is missing";
  }
  return no_keys && !keys.session_token.empty() ? "session_token without keys"
                                                : "";
}

ErrorPtr check(const TableOptions& options) {
  if (ErrorPtr bad = detail::check_margin(options)) return bad;
  const lock::RowFormat& rows = *options.rows;
  if (!is_table_name(options.name)) {
    const std::string text = sigv4::in_quotes(options.name) +
                             " is not 3 to 255 characters of a-zA-Z0-9_.-";
    return bad_option({"table", text.c_str()});
  }
  return detail::check_all({
      {"prefix",
       detail::text_problem(options.prefix, detail::kMaxKeyBytes - 1,
                            "too long: it leaves no room for a name"),
       options.prefix},
      {"key", attribute_problem(rows, options.key), options.key},
      {"sort_value", sort_value_problem(options), options.sort_value},
      {"sort_key", sort_key_problem(rows, options), options.sort_key},
      {"credentials", credentials_problem(options.credentials)},
      {"patience", options.patience < milliseconds(0) ? "less than 0" : ""},
  });
}

// The error of a wrong region, endpoint, profile or ca_file.  bad_option()
// names the option, so a reason that begins with its name begins with "it".
ErrorPtr bad_target(const dynamodb::Target& target) {
  const std::string itself = sigv4::join({"option ", target.option});
  std::string_view problem = target.error;
  const bool named = sigv4::begins_with(problem, itself);
  if (named) problem.remove_prefix(itself.size());
  const std::string text = sigv4::join({named ? "it" : "", problem});
  return bad_option({target.option, text.c_str()});
}

// --- Keys and log ------------------------------------------------------------

sigv4::KeyTexts texts_of(const Credentials& keys) {
  return {keys.access_key_id, keys.secret_access_key, keys.session_token,
          keys.account_id};
}

void wipe_secrets(Credentials& keys) {
  sigv4::wipe(keys.secret_access_key);
  sigv4::wipe(keys.session_token);
}

// Calls TableOptions::credentials_source, whose exceptions the caller catches.
class UserSource final : public sigv4::KeySource {
 public:
  explicit UserSource(const TableOptions& options)
      : source_(options.credentials_source) {}

  sigv4::KeyOutcome fetch(const sigv4::Fetch& fetch) override {
    fetch.say("credentials_source is being asked");
    std::optional<Credentials> keys = source_();
    if (!keys) return sigv4::no_keys({"credentials_source has no keys"});
    sigv4::KeyOutcome outcome =
        sigv4::keys_of_options(texts_of(*keys), "credentials_source");
    wipe_secrets(*keys);
    if (!keys->expires) {
      outcome.ask_again = BootClock::now() + kKeysAge;
      return outcome;
    }
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
  const bool find_region = target.region.empty();
  sigv4::KeySourcePtr own;
  if (options.credentials_source) {
    own = std::make_shared<UserSource>(options);
    if (!find_region) return own;
  }
  return sigv4::chain_keys(
      {texts_of(options.credentials), std::move(own), options.profile,
       target.region_said, target.ca_file, find_region},
      detail::parts());
}

class UserLog final : public sigv4::LogQueue {
 public:
  explicit UserLog(const TableOptions& options) : logger_(options.logger) {}

 private:
  void write(sigv4::LogLevel level, const std::string& text) override {
    static_assert(static_cast<int>(LogLevel::error) ==
                      static_cast<int>(sigv4::LogLevel::error),
                  "both enumerations have the same levels");
    logger_(static_cast<LogLevel>(level), text);
  }

  const std::function<void(LogLevel, const std::string&)> logger_;
};

}  // namespace

Table::Impl::Impl(TableOptions&& the_options)
    : options(std::move(the_options)),
      target(dynamodb::find_target(
          {options.region, options.endpoint, options.profile, options.ca_file},
          detail::parts())) {
  detail::set_row_defaults(options);
  unusable = check(options);
  if (!unusable && !target.error.empty()) unusable = bad_target(target);
}

Table::Impl::~Impl() { wipe_secrets(options.credentials); }

Table::Impl::State::~State() {
  log.stop_by = BootClock::now() + sigv4::kStopWithin;
  table.client.stop_waiting_for_keys_at(log.stop_by);
}

lock::TableState& Table::Impl::get() {
  if (State* made = state_.peek()) return made->table;
  std::shared_ptr<sigv4::LogQueue> queue;
  if (options.logger) queue.reset(new UserLog(options));
  const dynamodb::ClientOptions client{target, key_source(options, target),
                                       queue, options.name};
  return state_.get(client, std::move(queue)).table;
}

const lock::TableState* Table::Impl::peek() const {
  const State* made = state_.peek();
  return made != nullptr ? &made->table : nullptr;
}

std::string Table::Impl::endpoint() const {
  const lock::TableState* table = peek();
  return table != nullptr ? table->client.endpoint() : target.endpoint;
}

const std::string& Table::Impl::usual_owner() const {
  if (const std::string* own = usual_owner_.peek()) return *own;
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return usual_owner_.get(sigv4::join({host, ":", sigv4::Digits(getpid())}));
}

void Table::Impl::set_row_target(const std::string& name,
                                 const std::string& sort_value,
                                 lock::RowTarget& row_target) const {
  row_target.format = options.rows;
  row_target.table = options.name;
  row_target.key = options.prefix;
  row_target.key += name;
  row_target.key_name = options.key;
  row_target.sort_name = options.sort_key;
  row_target.sort_value = sort_value.empty() ? options.sort_value : sort_value;
}

ErrorPtr Table::Impl::check_name(const std::string& name,
                                 const std::string& sort_value) const {
  const char* name_problem =
      name.empty() ? "empty"
                   : detail::text_problem(
                         name, detail::kMaxKeyBytes - options.prefix.size(),
                         "longer than 2,048 bytes with the prefix");
  const std::string& value =
      sort_value.empty() ? options.sort_value : sort_value;
  const char* value_problem = "";
  if (options.sort_key.empty()) {
    if (!sort_value.empty()) value_problem = "the table has no sort_key";
  } else {
    value_problem = value.empty() ? "empty" : sort_value_problem(value);
  }
  return detail::check_all(
      {{"name", name_problem, name}, {"sort_value", value_problem, value}});
}

Table::Table(TableOptions options) {
  const NoCancellation guard;
  // A static object may have a Table.  These calls return before its
  // constructor does, so what they set up is cleaned up after its destructor.
  sigv4::init_http();
  sigv4::stop_all_at_exit();
  impl_ = std::make_shared<Impl>(std::move(options));
  wipe_secrets(options.credentials);
  impl_->finish_construction(impl_);
}

Table::~Table() {
  const NoCancellation guard;
  impl_.reset();
}

// Never destroyed: destructors of static objects that were made earlier may
// still use it.
std::shared_ptr<Table> Table::standard() {
  static const auto& table =
      *new std::shared_ptr<Table>(std::make_shared<Table>());
  return table;
}

Stats Table::stats() const {
  Stats stats;
  const lock::TableState* table = impl_->peek();
  if (table == nullptr) return stats;
  const dynamodb::Counts counts = table->client.counts();
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
  stats.retries = table->budget.retries();
  stats.held = table->keeper->held_count();
  return stats;
}

namespace {

// Calls `step` again every 10 ms until it does not run out of memory, or until
// the deadline.
void retry_without_memory(BootTime deadline, sigv4::FunctionRef<void()> step) {
  constexpr milliseconds kPause{10};
  while (!sigv4::try_with_memory(step)) {
    const BootTime until = BootClock::now() + kPause;
    if (until >= deadline) return;
    sigv4::wait_until(until, nullptr);
  }
}

}  // namespace

Unreleased Table::Impl::unreleased(const lock::Released& lock) const {
  const std::string name(lock.hold->settings->name());
  const std::string cannot = detail::cannot_text("release", name, options.name);
  ErrorPtr error;
  if (lock::is_loss(lock.result.verdict)) {
    error = detail::error_of(Errc::lease_lost, cannot,
                             detail::loss_text(lock.result));
  } else if (lock.result.verdict == lock::Verdict::closed) {
    error = detail::error_of(Errc::closed, cannot);
  } else {
    error = detail::error_of(lock.result.answer, cannot, endpoint());
  }
  return {name, error->code(), error->what()};
}

std::vector<Unreleased> Table::close(detail::Timeout within) noexcept {
  const NoCancellation guard;
  std::vector<Unreleased> unreleased;
  if (impl_->unusable) return unreleased;
  const BootTime deadline = lock::add_saturating(BootClock::now(), within.time);
  std::vector<lock::Released> outcomes;
  retry_without_memory(deadline, [&] {
    lock::TableState& table = impl_->get();
    table.waits.close();
    outcomes = table.keeper->release_all(deadline);
  });
  // If memory runs out here, locks are missing from the list.  Their mutexes
  // still say that they do not own them.
  for (const lock::Released& lock : outcomes) {
    if (lock.result.verdict == lock::Verdict::released) continue;
    sigv4::try_with_memory(
        [&] { unreleased.push_back(impl_->unreleased(lock)); });
  }
  return unreleased;
}

std::string Table::last_error() const { return impl_->last_error(); }

const std::string& Table::name() const noexcept { return impl_->options.name; }

}  // namespace v0
}  // namespace ddbmutex
