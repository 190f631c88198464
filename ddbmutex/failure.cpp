#include "failure.hpp"

#include <cstdio>
#include <cstdlib>

#include "../sigv4/shared.hpp"
#include "../sigv4/text.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {

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
    {Errc::no_row, std::errc::no_such_file_or_directory,
     "there is no such item"},
    {Errc::condition_failed, std::errc::operation_not_permitted,
     "a condition of the write did not hold"},
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
      texts_(sigv4::share<Texts>(what, field, request_id)) {}

FailHandler fail_handler = print_and_abort;

// In the order of the enumerations.
const char* name_of(LogLevel level) noexcept {
  constexpr const char* kNames[] = {"debug", "info", "warning", "error"};
  return kNames[static_cast<int>(level)];
}

const char* name_of(Loss loss) noexcept {
  constexpr const char* kNames[] = {"expired", "taken", "deleted"};
  return kNames[static_cast<int>(loss)];
}

namespace detail {

using dynamodb::Answer;
using dynamodb::Fault;

namespace {

constexpr struct {
  Fault fault;
  Errc code;
} kCodes[] = {
    {Fault::no_keys, Errc::no_keys},
    {Fault::keys_awaited, Errc::no_keys},
    {Fault::no_target, Errc::bad_option},
    {Fault::bad_keys, Errc::bad_keys},
    {Fault::skewed_time, Errc::bad_keys},
    {Fault::expired_keys, Errc::expired_keys},
    {Fault::access_denied, Errc::access_denied},
    {Fault::no_table, Errc::no_table},
    {Fault::wrong_key, Errc::wrong_table},
    {Fault::unknown_action, Errc::not_supported},
    {Fault::bad_certificate, Errc::bad_certificate},
    {Fault::unreachable, Errc::unreachable},
    {Fault::disconnected, Errc::disconnected},
    {Fault::throttled, Errc::throttled},
    {Fault::server_failure, Errc::unavailable},
    {Fault::conflict, Errc::unavailable},
    {Fault::bad_answer, Errc::bad_answer},
    {Fault::cancelled, Errc::cancelled},
    {Fault::bad_request, Errc::bad_request},
    {Fault::table_in_use, Errc::bad_request},
};

// Nothing else leaves a call but that its time is up.
Errc code_of(Fault fault) {
  for (const auto& [of, code] : kCodes) {
    if (of == fault) return code;
  }
  return Errc::timed_out;
}

}  // namespace

Failure failure(std::error_code code, std::string_view text,
                std::string_view field, std::string_view request_id) {
  return std::make_unique<Error>(code, std::string(text), std::string(field),
                                 std::string(request_id));
}

Failure failed(std::error_code code, std::string_view doing,
               std::string_view more, std::string_view request_id) {
  return failure(code,
                 sigv4::format("%s: %s%s%s", {doing, code.message(),
                                              more.empty() ? "" : ": ", more}),
                 {}, request_id);
}

// The same words may come of the wrong place: who answered, or did not, is
// told.
Failure failure_of(const Answer& answer, std::string_view doing,
                   std::string_view endpoint) {
  const std::error_code code = code_of(answer.fault);
  const bool no_table = answer.fault == Fault::no_table;
  const bool known = !answer.request_id.empty();
  return failure(
      code,
      sigv4::format(
          "%s%s%s: %s%s%s%s%s%s%s",
          {doing, endpoint.empty() ? "" : " at ", endpoint, code.message(),
           answer.message.empty() ? "" : ": ", answer.message,
           no_table ? " (Table::create() makes one)" : "",
           known ? " (request " : "", answer.request_id, known ? ")" : ""}),
      answer.option, answer.request_id);
}

Failure bad_option(const Checked& option) {
  return failure(
      Errc::bad_option,
      sigv4::format("bad option `%s`: %s", {option.field, option.why}),
      option.field);
}

Failure check_all(std::initializer_list<Checked> options) {
  for (const Checked& option : options) {
    if (*option.why != '\0') return bad_option(option);
  }
  return nullptr;
}

const char* not_text(std::string_view text, std::size_t most,
                     const char* too_long) {
  if (!lock::is_utf8(text)) return "not UTF-8";
  return text.size() > most ? too_long : "";
}

std::string quoted(std::string_view text) {
  return sigv4::format("\"%s\"", {text});
}

std::string cannot(std::string_view what, std::string_view name,
                   std::string_view table) {
  return sigv4::format("cannot %s \"%s\" in table \"%s\"", {what, name, table});
}

namespace {

[[noreturn]] void raise(const Error& error) {
#ifdef __cpp_exceptions
  throw Error(error);
#else
  fail_handler(error.code(), error.what());
  std::abort();
#endif
}

}  // namespace

std::error_code& throws() noexcept {
  static std::error_code none;
  return none;
}

void Calls::end(const Error* error, std::error_code& ec) {
  if (&ec == &throws()) {
    if (error != nullptr) raise(*error);
    return;
  }
  ec = error != nullptr ? error->code() : std::error_code();
  if (error != nullptr && !bad) remember(*error);
}

void run(Calls& calls, std::error_code& ec,
         Failure (*call)(Calls& calls, const void* context),
         const void* context) {
  const NoCancellation guard;
  const std::shared_ptr<void> own = calls.hold();
  if (calls.bad) return calls.end(calls.bad.get(), ec);
  const Failure told = call(calls, context);
  calls.end(told.get(), ec);
}

void Calls::remember(const Error& error) {
  Last& last = last_.get();
  const std::lock_guard<std::mutex> guard(last.mutex);
  last.text = error.what();
}

std::string Calls::last_error() const {
  if (bad) return bad->what();
  Last* last = last_.peek();
  if (last == nullptr) return {};
  const std::lock_guard<std::mutex> guard(last->mutex);
  return last->text;
}

void Calls::made(const std::shared_ptr<void>& self) {
  self_ = self;
#ifdef __cpp_exceptions
  if (bad) raise(*bad);
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
