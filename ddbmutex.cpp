#include "ddbmutex.hpp"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <string>
#include <utility>

#include "dynamodb/client.hpp"
#include "dynamodb/endpoint.hpp"
#include "dynamodb/retry.hpp"
#include "dynamodb/table.hpp"
#include "lock/mutex.hpp"
#include "lock/record.hpp"
#include "lock/renewer.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/credentials.hpp"
#include "sigv4/http.hpp"
#include "sigv4/log.hpp"
#include "sigv4/process.hpp"
#include "sigv4/secret.hpp"
#include "sigv4/thread.hpp"
#ifndef DDBMUTEX_NO_CHAIN
#include "sigv4/chain/chain.hpp"
#include "sigv4/chain/imds.hpp"
#endif

namespace ddbmutex {
inline namespace v0 {

using dynamodb::Answer;
using dynamodb::Fault;
using lock::Verdict;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// --- Errors ------------------------------------------------------------------

namespace {

struct Meaning {
  Errc code;
  std::errc like;
  const char* words;
};

constexpr Meaning kMeanings[] = {
    {Errc::bad_option, std::errc::invalid_argument, "bad option"},
    {Errc::not_held, std::errc::operation_not_permitted, "not held"},
    {Errc::no_keys, std::errc::permission_denied, "no AWS keys"},
    {Errc::bad_keys, std::errc::permission_denied, "keys not accepted"},
    {Errc::expired_keys, std::errc::permission_denied, "keys have run out"},
    {Errc::access_denied, std::errc::permission_denied, "access denied"},
    {Errc::no_table, std::errc::no_such_file_or_directory, "no such table"},
    {Errc::wrong_table, std::errc::invalid_argument, "not a table for locks"},
    {Errc::replicated_table, std::errc::invalid_argument,
     "the table has eventually consistent replicas"},
    {Errc::bad_request, std::errc::invalid_argument, "refused as malformed"},
    {Errc::not_supported, std::errc::function_not_supported,
     "not supported by this engine"},
    {Errc::bad_certificate, std::errc::permission_denied,
     "the server's certificate is not trusted"},
    {Errc::bad_record, std::errc::bad_message, "the item is no lock record"},
    {Errc::kept_row, std::errc::bad_message,
     "the item is of a lock that keeps its row"},
    {Errc::unreachable, std::errc::host_unreachable, "unreachable"},
    {Errc::disconnected, std::errc::connection_reset, "disconnected"},
    {Errc::timed_out, std::errc::timed_out, "no answer in time"},
    {Errc::throttled, std::errc::resource_unavailable_try_again, "throttled"},
    {Errc::unavailable, std::errc::resource_unavailable_try_again,
     "the service failed"},
    {Errc::bad_answer, std::errc::protocol_error, "not an answer of DynamoDB"},
    {Errc::lease_lost, std::errc::operation_not_permitted, "the lock was lost"},
    {Errc::cancelled, std::errc::operation_canceled, "cancelled"},
    {Errc::closed, std::errc::operation_canceled, "the table was closed"},
};

const Meaning* meaning_of(int code) {
  for (const Meaning& meaning : kMeanings) {
    if (static_cast<int>(meaning.code) == code) return &meaning;
  }
  return nullptr;
}

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "ddbmutex"; }
  std::string message(int code) const override {
    const Meaning* meaning = meaning_of(code);
    return meaning != nullptr ? meaning->words : "unknown error";
  }
  std::error_condition default_error_condition(
      int code) const noexcept override {
    const Meaning* meaning = meaning_of(code);
    if (meaning == nullptr) return {code, *this};
    return std::make_error_condition(meaning->like);
  }
};

void print_and_abort(const std::error_code&, const char* what) {
  std::fprintf(stderr, "ddbmutex: %s\n", what);
  std::abort();
}

}  // namespace

const std::error_category& category() noexcept {
  // Never destroyed: errors may be compared until the very end.
  static const auto* const only = new Category;
  return *only;
}

Error::Error(std::error_code code, const std::string& what,
             const std::string& field, const std::string& request_id)
    : std::system_error(code),
      texts_(std::make_shared<Texts>(Texts{what, field, request_id})) {}

FailHandler fail_handler = print_and_abort;

const char* name_of(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      break;
  }
  return "error";
}

const char* name_of(Loss loss) noexcept {
  switch (loss) {
    case Loss::expired:
      return "expired";
    case Loss::taken:
      return "taken";
    case Loss::deleted:
      break;
  }
  return "deleted";
}

namespace {

// An Error to be.
struct Failure {
  std::error_code code;
  std::string text;
  std::string field;
  std::string request_id;
  explicit operator bool() const { return bool(code); }
};

[[noreturn]] void raise(const Failure& failure) {
#ifdef __cpp_exceptions
  throw Error(failure.code, failure.text, failure.field, failure.request_id);
#else
  fail_handler(failure.code, failure.text.c_str());
  std::abort();
#endif
}

// `doing`: "cannot lock".  `detail`: more than the code says; may be empty.
Failure failed(std::error_code code, const std::string& doing,
               const std::string& detail = {}) {
  Failure failure;
  failure.code = code;
  failure.text = doing + ": " + code.message();
  if (!detail.empty()) failure.text += ": " + detail;
  return failure;
}

Failure bad_option(const std::string& field, const std::string& why) {
  Failure bad;
  bad.code = Errc::bad_option;
  bad.text = "bad option `" + field + "`: " + why;
  bad.field = field;
  return bad;
}

Errc code_of(Fault fault) {
  switch (fault) {
    case Fault::no_keys:
    case Fault::keys_awaited:
      return Errc::no_keys;
    case Fault::no_target:
      return Errc::bad_option;
    case Fault::bad_keys:
    case Fault::skewed_time:
      return Errc::bad_keys;
    case Fault::expired_keys:
      return Errc::expired_keys;
    case Fault::access_denied:
      return Errc::access_denied;
    case Fault::no_table:
      return Errc::no_table;
    case Fault::wrong_key:
      return Errc::wrong_table;
    case Fault::unknown_action:
      return Errc::not_supported;
    case Fault::bad_certificate:
      return Errc::bad_certificate;
    case Fault::unreachable:
      return Errc::unreachable;
    case Fault::disconnected:
      return Errc::disconnected;
    case Fault::throttled:
      return Errc::throttled;
    case Fault::server_failure:
    case Fault::conflict:
      return Errc::unavailable;
    case Fault::bad_answer:
      return Errc::bad_answer;
    case Fault::cancelled:
      return Errc::cancelled;
    case Fault::bad_request:
    case Fault::table_in_use:
      return Errc::bad_request;
    case Fault::none:
    case Fault::condition_failed:
    case Fault::timed_out:
      break;
  }
  return Errc::timed_out;
}

bool is_about_keys(Fault fault) {
  return fault == Fault::bad_keys || fault == Fault::expired_keys ||
         fault == Fault::access_denied;
}

// The same words may come of the wrong place: who answered, or did not, is
// told, and whose keys it was that were not good enough.
Failure failure_of(const Answer& answer, const std::string& doing,
                   const std::string& endpoint) {
  const std::string where = endpoint.empty() ? "" : " at " + endpoint;
  Failure result = failed(code_of(answer.fault), doing + where, answer.message);
  result.field = answer.option;
  if (is_about_keys(answer.fault) && !answer.keys_from.empty()) {
    result.text += " (keys from " + answer.keys_from + ")";
  }
  result.request_id = answer.request_id;
  if (!answer.request_id.empty()) {
    result.text += " (request " + answer.request_id + ")";
  }
  return result;
}

// --- Small things ------------------------------------------------------------

// Calls are no points of thread cancellation: a thread that vanished amid one
// would leave a lock behind that nobody can unlock.
class NoCancellation {
 public:
  NoCancellation() { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_); }
  ~NoCancellation() { pthread_setcancelstate(old_, nullptr); }
  NoCancellation(const NoCancellation&) = delete;
  NoCancellation& operator=(const NoCancellation&) = delete;

 private:
  int old_ = PTHREAD_CANCEL_ENABLE;
};

// Before anything static of a user's is made: what is initialised here is then
// cleaned up after it.
void prepare_process() {
  sigv4::init_http();
  sigv4::stop_all_at_exit();
}

std::string host_and_pid() {
  char host[256] = "";
  if (gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return std::string(host) + ":" + std::to_string(getpid());
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

// How an error about a lock begins.
std::string cannot(const char* what, const std::string& name,
                   const std::string& table) {
  return std::string("cannot ") + what + " " + quoted(name) + " in table " +
         quoted(table);
}

}  // namespace

// --- Table -------------------------------------------------------------------

namespace {

// For what is asked about the table itself.
constexpr std::chrono::seconds kTablePatience{30};
constexpr std::chrono::seconds kCreationPatience{60};

// How long keys of a user's source serve that does not say when they end.
constexpr std::chrono::seconds kKeysAge{60};

constexpr std::size_t kMaxKeyBytes = 2048;  // DynamoDB's.

bool is_table_name(const std::string& name) {
  if (name.compare(0, 4, "arn:") == 0) return name.size() <= 1024;
  const auto fits = [](unsigned char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '_' || c == '-' || c == '.';
  };
  return name.size() >= 3 && name.size() <= 255 &&
         std::all_of(name.begin(), name.end(), fits);
}

Failure check(const TableOptions& options) {
  if (!is_table_name(options.name)) {
    return bad_option("name", "a table's name is 3 to 255 of a-zA-Z0-9_.-");
  }
  if (!lock::is_utf8(options.prefix)) return bad_option("prefix", "not UTF-8");
  if (options.prefix.size() >= kMaxKeyBytes) {
    return bad_option("prefix", "leaves no room for a name");
  }
  const Credentials& keys = options.credentials;
  if (keys.access_key_id.empty() != keys.secret_access_key.empty()) {
    return bad_option("credentials", "half a pair of keys");
  }
  if (keys.access_key_id.empty() && !keys.session_token.empty()) {
    return bad_option("credentials", "a token without keys");
  }
  return {};
}

sigv4::Credentials to_sign_with(const Credentials& keys) {
  return {keys.access_key_id, keys.secret_access_key, keys.session_token,
          keys.account_id};
}

// Of keys that were given to us.
void wipe_secrets(Credentials& keys) {
  sigv4::wipe(keys.secret_access_key);
  sigv4::wipe(keys.session_token);
}

// What it throws is dealt with by who asks.
sigv4::KeyOutcome ask(const std::function<std::optional<Credentials>()>& source,
                      std::int64_t utc_now) {
  std::optional<Credentials> keys = source();
  if (!keys) return sigv4::no_keys("credentials_source has none");
  sigv4::KeyOutcome outcome =
      sigv4::judged(to_sign_with(*keys), "credentials_source",
                    {"access_key_id", "secret_access_key", "session_token"});
  wipe_secrets(*keys);
  outcome.ask_again = BootClock::now() + kKeysAge;
  if (!keys->expires) return outcome;
  outcome.ask_again = BootTime::max();
  outcome.ends =
      sigv4::ends_at(std::chrono::duration_cast<std::chrono::seconds>(
                         keys->expires->time_since_epoch())
                         .count(),
                     utc_now);
  return outcome;
}

sigv4::KeySourcePtr own_source(const TableOptions& options) {
  return sigv4::source_of(
      [source = options.credentials_source](const sigv4::Fetch& fetch) {
        return ask(source, fetch.utc_now);
      });
}

#ifdef DDBMUTEX_NO_CHAIN

bool instance_may_know_region(const TableOptions&) { return false; }

sigv4::KeySourcePtr key_source(const TableOptions& options,
                               const dynamodb::Target&) {
  if (options.credentials_source) return own_source(options);
  sigv4::KeyOptions keys;
  keys.keys = to_sign_with(options.credentials);
  keys.profile.name = options.profile;
  return sigv4::usual_keys(keys);
}

#else

sigv4::InstanceSettings instance_of(const TableOptions& options) {
  sigv4::ProfileOptions profile;
  profile.name = options.profile;
  return sigv4::instance_settings(sigv4::process_environment,
                                  sigv4::load_profile(profile));
}

bool instance_may_know_region(const TableOptions& options) {
  return instance_of(options).disabled.empty();
}

sigv4::KeySourcePtr key_source(const TableOptions& options,
                               const dynamodb::Target& target) {
  const bool no_region = target.region.empty();
  if (options.credentials_source) {
    return no_region
               ? sigv4::with_region(own_source(options), instance_of(options))
               : own_source(options);
  }
  sigv4::ChainOptions keys;
  keys.keys = to_sign_with(options.credentials);
  keys.profile.name = options.profile;
  keys.region = target.region;
  keys.ca_file = target.ca_file;
  keys.endpoints = target.settings.services;
  keys.find_region = no_region;
  return sigv4::chain_keys(keys);
}

#endif

// Lines for the user's logger, by a thread of their own; null if nobody wants
// to know.
std::shared_ptr<sigv4::LogQueue> lines_for(
    const std::function<void(LogLevel, const std::string&)>& logger) {
  if (!logger) return nullptr;
  return std::make_shared<sigv4::LogQueue>(
      [logger](sigv4::LogLevel level, const std::string& text) {
#ifdef __cpp_exceptions
        try {
          logger(static_cast<LogLevel>(level), text);
        } catch (...) {
        }
#else
        logger(static_cast<LogLevel>(level), text);
#endif
      });
}

sigv4::Log log_to(const std::shared_ptr<sigv4::LogQueue>& lines) {
  if (lines == nullptr) return nullptr;
  return [lines](sigv4::LogLevel level, const std::string& text) {
    lines->add(level, text);
  };
}

dynamodb::Target target_of(const TableOptions& options) {
  dynamodb::TargetOptions wanted;
  wanted.region = options.region;
  wanted.endpoint = options.endpoint;
  wanted.profile.name = options.profile;
  wanted.ca_file = options.ca_file;
  wanted.region_may_come_later = instance_may_know_region(options);
  return dynamodb::find_target(wanted);
}

}  // namespace

struct Table::Impl {
  explicit Impl(TableOptions the_options) : options(std::move(the_options)) {
    bad = check(options);
    if (bad) return;
    target = target_of(options);
    if (!target.error.empty()) bad = bad_option(target.option, target.error);
  }
  ~Impl() { wipe_secrets(options.credentials); }

  // Told to the end: what is made of it is destroyed before it.
  struct Lines {
    ~Lines() {
      if (queue != nullptr) queue->stop(end_by);
    }
    const std::shared_ptr<sigv4::LogQueue> queue;
    BootTime end_by{};
  };

  // All that a forked child must make anew.
  struct State : Lines, lock::Table {
    State(dynamodb::ClientOptions client_options,
          std::shared_ptr<sigv4::LogQueue> lines)
        : Lines{std::move(lines)}, lock::Table(std::move(client_options)) {}
    // All threads end together.
    ~State() {
      end_by = BootClock::now() + sigv4::kStopWithin;
      client->end_by(end_by);
    }

    std::mutex mutex;
    std::string last_error;  // GUARDED_BY(mutex)
  };

  State& get();
  std::string doing(const char* what) const {
    return std::string("cannot ") + what + " table " + quoted(options.name);
  }
  // A call that was woken, was woken by close().
  Failure failure_of(const Answer& answer, const std::string& doing) const {
    if (answer.fault == Fault::cancelled) return failed(Errc::closed, doing);
    return ddbmutex::failure_of(answer, doing, endpoint());
  }
  // Where requests go, as far as it is known.
  std::string endpoint() const {
    const State* own = state.peek();
    return own != nullptr ? own->client->endpoint() : target.endpoint;
  }
  Failure look_at(const dynamodb::TableDescription& table,
                  const char* what) const;
  Failure create();
  Failure exists(bool& there);
  Failure inspect(const std::string& name, LockInfo& info);
  // For the forms with a std::error_code&.
  void tell(const Failure& failure, std::error_code& ec);
  void remember(const Failure& failure);

  TableOptions options;  // Changed by none but the destructor.
  dynamodb::Target target;
  Failure bad;  // If no operation can succeed.
  sigv4::PerProcess<State> state;
};

Table::Impl::State& Table::Impl::get() {
  if (State* own = state.peek()) return *own;
  dynamodb::ClientOptions client;
  client.target = target;
  client.credentials = key_source(options, target);
  client.http.ca_file = target.ca_file;
  client.table = options.name;
  auto lines = lines_for(options.logger);
  client.log = log_to(lines);
  return state.get(std::move(client), std::move(lines));
}

Failure Table::Impl::look_at(const dynamodb::TableDescription& table,
                             const char* what) const {
  if (!dynamodb::is_keyed_by(table, lock::kKeyAttribute)) {
    return failed(Errc::wrong_table, doing(what),
                  "its key is not the string `name` alone");
  }
  if (table.eventual_replicas && !options.allow_replicas) {
    return failed(Errc::replicated_table, doing(what),
                  "what is locked in one region is not in the others");
  }
  return {};
}

Failure Table::Impl::create() {
  if (bad) return bad;
  State& own = get();
  const lock::Waits::One wait(own.waits);
  if (wait.waker() == nullptr) return failed(Errc::closed, doing("create"));
  const Answer answer = dynamodb::create_table(
      *own.client, *own.budget,
      {options.name, lock::kKeyAttribute, lock::kTtlAttribute,
       options.allow_replicas},
      BootClock::now() + kCreationPatience, wait.waker());
  if (answer.fault != Fault::none) return failure_of(answer, doing("create"));
  return look_at(*answer.table, "use");
}

Failure Table::Impl::exists(bool& there) {
  there = false;
  if (bad) return bad;
  State& own = get();
  const lock::Waits::One wait(own.waits);
  if (wait.waker() == nullptr) return failed(Errc::closed, doing("look at"));
  const Answer answer =
      dynamodb::describe_table(*own.client, *own.budget, options.name,
                               BootClock::now() + kTablePatience, wait.waker());
  if (answer.fault == Fault::no_table) return {};
  if (answer.fault != Fault::none) return failure_of(answer, doing("look at"));
  there = true;
  return look_at(*answer.table, "use");
}

namespace {

// Reads an item, passing faults tried again.
Answer read_item(dynamodb::Client& client, dynamodb::RetryBudget& budget,
                 const std::string& body, BootTime deadline,
                 sigv4::Waker& waker) {
  dynamodb::Retry retry(budget, dynamodb::Retry::Urgency::waits);
  for (;;) {
    const BootTime now = BootClock::now();
    Answer answer =
        client.call(dynamodb::Action::get_item, body,
                    std::min(deadline, now + std::chrono::seconds(2)), waker);
    if (answer.fault == Fault::none) retry.success();
    if (answer.fault == Fault::none || answer.fault == Fault::cancelled) {
      return answer;
    }
    const auto delay = retry.after(answer);
    if (!delay || BootClock::now() + *delay >= deadline) return answer;
    sigv4::drive(nullptr, 0, BootClock::now() + *delay, &waker);
  }
}

Failure check_name(const std::string& name, const std::string& prefix) {
  if (name.empty()) return bad_option("name", "empty");
  if (!lock::is_utf8(name)) return bad_option("name", "not UTF-8");
  if (name.size() + prefix.size() > kMaxKeyBytes) {
    return bad_option("name", "longer than 2,048 bytes with the prefix");
  }
  return {};
}

}  // namespace

Failure Table::Impl::inspect(const std::string& name, LockInfo& info) {
  if (bad) return bad;
  if (Failure wrong = check_name(name, options.prefix)) return wrong;
  const std::string doing = cannot("inspect", name, options.name);
  State& own = get();
  const lock::Waits::One wait(own.waits);
  if (wait.waker() == nullptr) return failed(Errc::closed, doing);
  lock::Request look;
  look.consistent = true;
  const Answer answer = read_item(
      *own.client, *own.budget,
      lock::write_request({options.name, options.prefix + name, ""}, look),
      BootClock::now() + kTablePatience, *wait.waker());
  if (answer.fault != Fault::none) return failure_of(answer, doing);
  info.name = name;
  if (!answer.item) return {};
  const lock::Row row = lock::read_row(*answer.item);
  if (row.kind == lock::Row::Kind::unknown) {
    return failed(Errc::bad_record, doing, row.problem);
  }
  info.exists = true;
  info.uuid = row.uuid;
  info.owner = row.owner;
  info.lease = row.lease.value_or(milliseconds::zero());
  info.expires = row.expires;
  return {};
}

void Table::Impl::tell(const Failure& failure, std::error_code& ec) {
  ec = failure.code;
  if (failure && !bad) remember(failure);
}

void Table::Impl::remember(const Failure& failure) {
  State& own = get();
  const std::lock_guard<std::mutex> guard(own.mutex);
  own.last_error = failure.text;
}

Table::Table(TableOptions options) {
  const NoCancellation guard;
  prepare_process();
  impl_ = std::make_shared<Impl>(std::move(options));
#ifdef __cpp_exceptions
  if (impl_->bad) raise(impl_->bad);
#endif
}

Table::~Table() {
  const NoCancellation guard;
  impl_.reset();
}

std::shared_ptr<Table> Table::standard() {
  static const std::shared_ptr<Table> table = std::make_shared<Table>();
  return table;
}

void Table::create() {
  const NoCancellation guard;
  if (const Failure failure = impl_->create()) raise(failure);
}

void Table::create(std::error_code& ec) {
  const NoCancellation guard;
  impl_->tell(impl_->create(), ec);
}

bool Table::exists() {
  const NoCancellation guard;
  bool there;
  if (const Failure failure = impl_->exists(there)) raise(failure);
  return there;
}

bool Table::exists(std::error_code& ec) {
  const NoCancellation guard;
  bool there;
  impl_->tell(impl_->exists(there), ec);
  return there;
}

LockInfo Table::inspect(const std::string& name) {
  const NoCancellation guard;
  LockInfo info;
  if (const Failure failure = impl_->inspect(name, info)) raise(failure);
  return info;
}

LockInfo Table::inspect(const std::string& name, std::error_code& ec) {
  const NoCancellation guard;
  LockInfo info;
  impl_->tell(impl_->inspect(name, info), ec);
  return info;
}

Stats Table::stats() const {
  Stats stats;
  const Impl::State* own = impl_->state.peek();
  if (own == nullptr) return stats;
  const dynamodb::Counts counts = own->client->counts();
  for (std::size_t i = 0; i < dynamodb::kActions; ++i) {
    switch (static_cast<dynamodb::Action>(i)) {
      case dynamodb::Action::get_item:
        stats.get_item = counts.sent[i];
        break;
      case dynamodb::Action::put_item:
        stats.put_item = counts.sent[i];
        break;
      case dynamodb::Action::update_item:
        stats.update_item = counts.sent[i];
        break;
      case dynamodb::Action::delete_item:
        stats.delete_item = counts.sent[i];
        break;
      default:
        stats.other += counts.sent[i];
    }
  }
  stats.throttled = counts.throttled;
  stats.failed = counts.failed;
  stats.retries = own->budget->retries();
  stats.bytes_sent = counts.bytes_sent;
  stats.bytes_received = counts.bytes_received;
  stats.write_units = counts.write_units;
  stats.read_units = counts.read_units;
  const lock::Renewer::Usage usage = own->renewer.usage();
  stats.held = usage.held;
  stats.held_hours = usage.held_s / 3600;
  return stats;
}

void Table::close() noexcept {
  const NoCancellation guard;
  if (!impl_->bad) impl_->get().waits.close();
}

std::string Table::last_error() const {
  if (impl_->bad) return impl_->bad.text;
  Impl::State* own = impl_->state.peek();
  if (own == nullptr) return {};
  const std::lock_guard<std::mutex> guard(own->mutex);
  return own->last_error;
}

const std::string& Table::name() const noexcept { return impl_->options.name; }

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

milliseconds request_timeout_of(const Options& options) {
  return options.request_timeout.value_or(
      std::min(milliseconds(2000), options.ttl / 4));
}

milliseconds safe_time_of(const Options& options) {
  return options.safe_time.value_or(options.ttl / 4);
}

Failure check(const Options& options) {
  const milliseconds ttl = options.ttl;
  if (ttl < kShortestTtl || ttl > lock::kLongestLease) {
    return bad_option("ttl", "not within 100 ms and 366 days");
  }
  const milliseconds half = (ttl + milliseconds(1)) / 2;  // What is below, is.
  const milliseconds request = request_timeout_of(options);
  if (request <= milliseconds::zero() || request >= half) {
    return bad_option("request_timeout", "not above 0 and below ttl / 2");
  }
  if (options.first_poll <= milliseconds::zero()) {
    return bad_option("first_poll", "not above 0");
  }
  if (options.longest_poll < options.first_poll) {
    return bad_option("longest_poll", "below first_poll");
  }
  const milliseconds safe = safe_time_of(options);
  if (safe < milliseconds::zero() || safe >= half) {
    return bad_option("safe_time", "not from 0 to below ttl / 2");
  }
  if (options.patience < milliseconds::zero()) {
    return bad_option("patience", "below 0");
  }
  if (!lock::is_utf8(options.owner)) return bad_option("owner", "not UTF-8");
  if (options.owner.size() > kMaxKeyBytes) {
    return bad_option("owner", "longer than 2,048 bytes");
  }
  return {};
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

struct DdbMutex::Impl {
  Impl(std::string the_name, Options the_options);

  // All that a forked child must make anew.
  struct State : lock::Mutex {
    using lock::Mutex::Mutex;
    std::mutex error_mutex;
    std::string last_error;  // GUARDED_BY(error_mutex)
  };

  State& get();
  Failure failure_of(lock::Result& result, const char* doing) const;
  Failure lock(const detail::Deadline& deadline, detail::Wait* wait,
               bool& locked);
  Failure release();
  Failure require(nanoseconds min_remaining) const;
  nanoseconds remaining() const;
  // For the forms with a std::error_code&.
  void tell(const Failure& failure, std::error_code& ec);
  void remember(const Failure& failure);

  const std::string name;
  const Options options;
  Failure bad;  // If no operation can succeed.
  sigv4::PerProcess<State> state;
};

DdbMutex::Impl::Impl(std::string the_name, Options the_options)
    : name(std::move(the_name)), options([&the_options] {
        if (!the_options.table) the_options.table = Table::standard();
        return std::move(the_options);
      }()) {
  const Table::Impl& table = *options.table->impl_;
  bad = table.bad;
  if (!bad) bad = check_name(name, table.options.prefix);
  if (!bad) bad = check(options);
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
  return callbacks;
}

}  // namespace

DdbMutex::Impl::State& DdbMutex::Impl::get() {
  if (State* own = state.peek()) return *own;
  Table::Impl& table = *options.table->impl_;
  lock::Driver::Settings settings;
  settings.place.table = table.options.name;
  settings.place.key = table.options.prefix + name;
  settings.place.owner = options.owner.empty() ? host_and_pid() : options.owner;
  settings.request_timeout = request_timeout_of(options);
  lock::Mutex::Waiting waiting;
  waiting.first_poll = detail::nanoseconds_of(options.first_poll);
  waiting.longest_poll = detail::nanoseconds_of(options.longest_poll);
  waiting.patience = detail::nanoseconds_of(options.patience);
  const lock::Holder::Terms terms{name, options.ttl, safe_time_of(options)};
  return state.get(table.get(), std::move(settings), terms,
                   callbacks_of(options), waiting);
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
    case Kind::not_held:
      return failed(Errc::not_held, doing);
    case Kind::lost:
      return failed(Errc::lease_lost, doing, name_of(loss_of(result.loss)));
    default:
      return ddbmutex::failure_of(result.answer, doing,
                                  options.table->impl_->endpoint());
  }
}

Failure DdbMutex::Impl::lock(const detail::Deadline& deadline,
                             detail::Wait* wait, bool& locked) {
  locked = false;
  if (bad) return bad;
  lock::Result result =
      get().lock({deadline.within, deadline.left, deadline.at},
                 wait != nullptr ? &wait->impl_->cancel : nullptr);
  locked = result.kind == lock::Result::Kind::done;
  return failure_of(result, "lock");
}

Failure DdbMutex::Impl::release() {
  if (bad) return bad;
  State* own = state.peek();
  lock::Result result;
  if (own != nullptr) {
    result = own->release();
  } else {
    result.kind = lock::Result::Kind::not_held;
  }
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
  Failure failure = failed(Errc::lease_lost, doing);
  if (left > nanoseconds::zero()) {
    failure.text = doing + ": only " + std::to_string(left / milliseconds(1)) +
                   " ms remain, and " +
                   std::to_string(min_remaining / milliseconds(1)) +
                   " ms are asked for";
  }
  return failure;
}

void DdbMutex::Impl::tell(const Failure& failure, std::error_code& ec) {
  ec = failure.code;
  if (failure && !bad) remember(failure);
}

void DdbMutex::Impl::remember(const Failure& failure) {
  State& own = get();
  const std::lock_guard<std::mutex> guard(own.error_mutex);
  own.last_error = failure.text;
}

// --- The calls ---------------------------------------------------------------

DdbMutex::DdbMutex(std::string name, Options options) {
  const NoCancellation guard;
  prepare_process();
  impl_ = std::make_shared<Impl>(std::move(name), std::move(options));
#ifdef __cpp_exceptions
  if (impl_->bad) raise(impl_->bad);
#endif
}

DdbMutex::~DdbMutex() {
  const NoCancellation guard;
  if (Impl::State* own = impl_->state.peek()) own->end();
  impl_.reset();
}

bool DdbMutex::lock_within(const detail::Deadline& deadline, detail::Wait* wait,
                           std::error_code* ec) {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;  // A destructor may come meanwhile.
  bool locked;
  const Failure failure = impl->lock(deadline, wait, locked);
  if (ec != nullptr) {
    impl->tell(failure, *ec);
  } else if (failure) {
    raise(failure);
  }
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

void DdbMutex::unlock() noexcept {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  const Failure failure = impl->release();
  if (failure && failure.code != Errc::not_held && !impl->bad) {
    impl->remember(failure);
  }
}

void DdbMutex::release() {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  if (const Failure failure = impl->release()) raise(failure);
}

void DdbMutex::release(std::error_code& ec) noexcept {
  const NoCancellation guard;
  const std::shared_ptr<Impl> impl = impl_;
  impl->tell(impl->release(), ec);
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
  if (const Failure failure = impl_->require(min_remaining)) raise(failure);
}

void DdbMutex::require(nanoseconds min_remaining,
                       std::error_code& ec) const noexcept {
  impl_->tell(impl_->require(min_remaining), ec);
}

const std::string& DdbMutex::name() const noexcept { return impl_->name; }

const std::string& DdbMutex::owner() const noexcept {
  if (impl_->bad) return impl_->options.owner;
  return impl_->get().settings().place.owner;
}

std::string DdbMutex::last_error() const {
  if (impl_->bad) return impl_->bad.text;
  Impl::State* own = impl_->state.peek();
  if (own == nullptr) return {};
  const std::lock_guard<std::mutex> guard(own->error_mutex);
  return own->last_error;
}

}  // namespace v0
}  // namespace ddbmutex
