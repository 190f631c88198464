#include "failure.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "../sigv4/memory.hpp"
#include "../sigv4/shared.hpp"
#include "../sigv4/text.hpp"
#include "record.hpp"

namespace ddbmutex {
inline namespace v0 {

namespace {

constexpr struct {
  Errc code;
  std::errc like;
  const char* words;
} kErrors[] = {
    {Errc::bad_option, std::errc::invalid_argument, "bad option"},
    {Errc::not_held, std::errc::operation_not_permitted, "not held"},
    {Errc::no_keys, std::errc::permission_denied, "no AWS keys"},
    {Errc::bad_keys, std::errc::permission_denied, "keys not accepted"},
    {Errc::expired_keys, std::errc::permission_denied, "keys have expired"},
    {Errc::access_denied, std::errc::permission_denied, "access denied"},
    {Errc::no_table, std::errc::no_such_file_or_directory, "no such table"},
    {Errc::wrong_table, std::errc::invalid_argument, "not a table for locks"},
    {Errc::replicated_table, std::errc::invalid_argument,
     "the table has eventually consistent replicas"},
    {Errc::bad_request, std::errc::invalid_argument,
     "the request was refused as invalid"},
    {Errc::not_supported, std::errc::function_not_supported,
     "not supported by this engine"},
    {Errc::bad_certificate, std::errc::permission_denied,
     "a certificate is not trusted"},
    {Errc::bad_record, std::errc::bad_message, "the item is not a lock record"},
    {Errc::kept_row, std::errc::bad_message,
     "the item belongs to a lock that keeps its row"},
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
    {Errc::bad_answer, std::errc::protocol_error,
     "not an answer from DynamoDB"},
    {Errc::lease_lost, std::errc::operation_not_permitted, "the lock was lost"},
    {Errc::ends_too_soon, std::errc::operation_not_permitted,
     "the lease ends too soon"},
    {Errc::cancelled, std::errc::operation_canceled, "cancelled"},
    {Errc::closed, std::errc::operation_canceled, "the table was closed"},
};

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "ddbmutex"; }
  std::string message(int code) const override {
    for (const auto& error : kErrors) {
      if (error.code == Errc(code)) return error.words;
    }
    return "unknown error";
  }
  std::error_condition default_error_condition(
      int code) const noexcept override {
    for (const auto& error : kErrors) {
      if (error.code == Errc(code)) {
        return std::make_error_condition(error.like);
      }
    }
    return {code, *this};
  }
};

void print_and_abort(const std::error_code&, const char* what) {
  std::fprintf(stderr, "ddbmutex: %s\n", what);
  std::abort();
}

}  // namespace

const std::error_category& category() noexcept {
  // Never destroyed: errors may be compared until the very end.  In memory of
  // its own: it may be needed to say that there is no other.
  alignas(Category) static unsigned char memory[sizeof(Category)];
  static const auto* const only = new (memory) Category;
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

// Faults without a code of their own are only ever reported as timed_out.
std::error_code code_of(Fault fault) {
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
    case Fault::table_in_use:
    case Fault::bad_request:
      return Errc::bad_request;
    case Fault::wrong_key:
      return Errc::wrong_table;
    case Fault::unknown_action:
      return Errc::not_supported;
    case Fault::bad_certificate:
      return Errc::bad_certificate;
    case Fault::no_memory:
      return std::make_error_code(std::errc::not_enough_memory);
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
    case Fault::none:
    case Fault::condition_failed:
    case Fault::timed_out:
      break;
  }
  return Errc::timed_out;
}

}  // namespace

Failure failure(std::error_code code, const std::string& text,
                std::string_view field, std::string_view request_id) {
  return std::make_unique<Error>(code, sigv4::one_line(text),
                                 std::string(field), std::string(request_id));
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
                   const std::string& endpoint, const char* remark) {
  const std::error_code code = code_of(answer.fault);
  if (remark == nullptr) {
    const bool no_table = answer.fault == Fault::no_table;
    remark = no_table ? " (Table::create() creates it)" : "";
  }
  return failure(code,
                 sigv4::format("%s%[ at %s%]: %s%[: %s%]%s%[ (request %s)%]",
                               doing, endpoint, code.message(), answer.message,
                               remark, answer.request_id),
                 answer.option, answer.request_id);
}

Failure bad_option(const Checked& option) {
  return failure(Errc::bad_option,
                 sigv4::format("bad option `%s`: %s%[: %q%]", option.field,
                               option.why, option.value),
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
  return sigv4::format("cannot %s %q in table %q", what, name, table);
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
  if (error == nullptr || bad) return;
  sigv4::has_memory_for([&] { remember(*error); });
}

void run(Calls& calls, std::error_code& ec,
         Failure (*call)(Calls& calls, const void* context),
         const void* context) {
  const NoCancellation guard;
  const std::shared_ptr<void> own = calls.hold();
  if (calls.bad) return calls.end(calls.bad.get(), ec);
  Failure told;
  const bool had_memory =
      sigv4::has_memory_for([&] { told = call(calls, context); });
  had_memory ? calls.end(told.get(), ec) : Calls::end_without_memory(ec);
}

void Calls::end_without_memory(std::error_code& ec) {
  if (&ec == &throws()) sigv4::no_memory();
  ec = std::make_error_code(std::errc::not_enough_memory);
}

void Calls::remember(const Error& error) {
  Last& last = last_.get();
  const std::lock_guard<sigv4::Mutex> guard(last.mutex);
  last.text = error.what();
}

std::string Calls::last_error() const {
  if (bad) return bad->what();
  Last* last = last_.peek();
  if (last == nullptr) return {};
  const std::lock_guard<sigv4::Mutex> guard(last->mutex);
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
