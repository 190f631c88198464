#include "failure.hpp"

#include <cstdio>
#include <cstdlib>
#include <iterator>

#include "../sigv4/shared.hpp"
#include "../sigv4/text.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {

namespace {

// Both in the order of Errc, which counts from 1.
constexpr std::errc kLikes[] = {std::errc::invalid_argument,
                                std::errc::operation_not_permitted,
                                std::errc::permission_denied,
                                std::errc::permission_denied,
                                std::errc::permission_denied,
                                std::errc::permission_denied,
                                std::errc::no_such_file_or_directory,
                                std::errc::invalid_argument,
                                std::errc::invalid_argument,
                                std::errc::invalid_argument,
                                std::errc::function_not_supported,
                                std::errc::permission_denied,
                                std::errc::bad_message,
                                std::errc::bad_message,
                                std::errc::no_such_file_or_directory,
                                std::errc::operation_not_permitted,
                                std::errc::host_unreachable,
                                std::errc::connection_reset,
                                std::errc::timed_out,
                                std::errc::resource_unavailable_try_again,
                                std::errc::resource_unavailable_try_again,
                                std::errc::protocol_error,
                                std::errc::operation_not_permitted,
                                std::errc::operation_canceled,
                                std::errc::operation_canceled};
constexpr char kWords[] =
    "bad option\0"
    "not held\0"
    "no AWS keys\0"
    "keys not accepted\0"
    "keys have run out\0"
    "access denied\0"
    "no such table\0"
    "not a table for locks\0"
    "the table has eventually consistent replicas\0"
    "refused as malformed\0"
    "not supported by this engine\0"
    "the server's certificate is not trusted\0"
    "the item is no lock record\0"
    "the item is of a lock that keeps its row\0"
    "there is no such item\0"
    "a condition of the write did not hold\0"
    "unreachable\0"
    "disconnected\0"
    "no answer in time\0"
    "throttled\0"
    "the service failed\0"
    "not an answer of DynamoDB\0"
    "the lock was lost\0"
    "cancelled\0"
    "the table was closed\0";

static_assert(std::size(kLikes) == static_cast<std::size_t>(Errc::closed));

bool is_ours(int code) {
  return code > 0 && code <= static_cast<int>(std::size(kLikes));
}

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "ddbmutex"; }
  std::string message(int code) const override {
    if (!is_ours(code)) return "unknown error";
    return sigv4::word_at(kWords, static_cast<std::size_t>(code - 1));
  }
  std::error_condition default_error_condition(
      int code) const noexcept override {
    if (!is_ours(code)) return {code, *this};
    return std::make_error_condition(kLikes[code - 1]);
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
  return sigv4::word_at("debug\0info\0warning\0error",
                        static_cast<std::size_t>(level));
}

const char* name_of(Loss loss) noexcept {
  return sigv4::word_at("expired\0taken\0deleted",
                        static_cast<std::size_t>(loss));
}

namespace detail {

using dynamodb::Answer;
using dynamodb::Fault;

namespace {

// In the order of Fault.  Nothing that has no code of its own leaves a call but
// that its time is up.
constexpr Errc kCodes[] = {
    Errc::timed_out,       Errc::timed_out,   Errc::no_keys,
    Errc::bad_option,      Errc::bad_keys,    Errc::expired_keys,
    Errc::access_denied,   Errc::no_table,    Errc::bad_request,
    Errc::wrong_table,     Errc::bad_request, Errc::not_supported,
    Errc::bad_certificate, Errc::no_keys,     Errc::unreachable,
    Errc::disconnected,    Errc::timed_out,   Errc::throttled,
    Errc::unavailable,     Errc::unavailable, Errc::bad_answer,
    Errc::bad_keys,        Errc::cancelled};
static_assert(std::size(kCodes) ==
              static_cast<std::size_t>(Fault::cancelled) + 1);

}  // namespace

Failure failure(std::error_code code, const std::string& text,
                std::string_view field, std::string_view request_id) {
  return std::make_unique<Error>(code, text, std::string(field),
                                 std::string(request_id));
}

Failure failed(std::error_code code, const std::string& doing,
               std::string_view more, std::string_view request_id) {
  return failure(code,
                 sigv4::format("%s: %s%[: %s%]", doing, code.message(), more),
                 {}, request_id);
}

// The same words may come of the wrong place: who answered, or did not, is
// told.
Failure failure_of(const Answer& answer, const std::string& doing,
                   const std::string& endpoint) {
  const std::error_code code = kCodes[static_cast<std::size_t>(answer.fault)];
  const bool no_table = answer.fault == Fault::no_table;
  return failure(code,
                 sigv4::format("%s%[ at %s%]: %s%[: %s%]%s%[ (request %s)%]",
                               doing, endpoint, code.message(), answer.message,
                               no_table ? " (Table::create() makes one)" : "",
                               answer.request_id),
                 answer.option, answer.request_id);
}

Failure bad_option(const Checked& option) {
  return failure(Errc::bad_option,
                 sigv4::format("bad option `%s`: %s", option.field, option.why),
                 option.field);
}

Failure check_all(std::initializer_list<Checked> options) {
  for (const Checked& option : options) {
    if (*option.why != '\0') return bad_option(option);
  }
  return nullptr;
}

const char* not_text(const std::string& text, std::size_t most,
                     const char* too_long) {
  if (!lock::is_utf8(text)) return "not UTF-8";
  return text.size() > most ? too_long : "";
}

std::string cannot(const char* what, const std::string& name,
                   const std::string& table) {
  return sigv4::format("cannot %s \"%s\" in table \"%s\"", what, name, table);
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
