// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Makes an Error, with its text, of a code or of an answer with a fault, and
// ends public calls with it.  Also the error category, and the names of Loss
// and LogLevel.
#include "errors.hpp"

#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>

#include "../sigv4/memory.hpp"
#include "../sigv4/text.hpp"
#include "../sigv4/thread.hpp"
#include "lock/row.hpp"

namespace ddbmutex {
inline namespace v0 {

namespace {

struct ErrcMeaning {
  Errc code;
  std::errc equal_to;
  const char* message;
};

constexpr ErrcMeaning kErrcMeanings[] = {
    {Errc::bad_option, std::errc::invalid_argument, "bad option"},
    {Errc::not_held, std::errc::operation_not_permitted, "not held"},
    {Errc::no_keys, std::errc::permission_denied, "no AWS keys"},
    {Errc::bad_keys, std::errc::permission_denied, "keys not accepted"},
    {Errc::expired_keys, std::errc::permission_denied, "keys have expired"},
    {Errc::access_denied, std::errc::permission_denied, "access denied"},
    {Errc::no_table, std::errc::no_such_file_or_directory, "no such table"},
    {Errc::wrong_table, std::errc::invalid_argument, "not a table for locks"},
    {Errc::unready_table, std::errc::device_or_resource_busy,
     "the table is not ready"},
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

// Null for a number that is no code of ours.
const ErrcMeaning* find_meaning(int code) {
  for (const ErrcMeaning& one : kErrcMeanings) {
    if (one.code == Errc(code)) return &one;
  }
  return nullptr;
}

class Category : public std::error_category {
 public:
  const char* name() const noexcept override { return "ddbmutex"; }
  std::string message(int code) const override {
    const ErrcMeaning* meaning = find_meaning(code);
    return meaning != nullptr ? meaning->message : "unknown error";
  }
  std::error_condition default_error_condition(
      int code) const noexcept override {
    const ErrcMeaning* meaning = find_meaning(code);
    if (meaning == nullptr) return {code, *this};
    return std::make_error_condition(meaning->equal_to);
  }
};

void print_and_abort(const std::error_code&, const char* what) {
  std::fprintf(stderr, "ddbmutex: %s\n", what);
  std::abort();
}

}  // namespace

const std::error_category& category() noexcept {
  // Never destroyed, because errors may be compared until the very end; not
  // allocated, because it may be needed to report that memory has run out.
  alignas(Category) static unsigned char memory[sizeof(Category)];
  static const Category& instance = *new (memory) Category;
  return instance;
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
      return "error";
  }
  return "";
}

const char* name_of(Loss loss) noexcept {
  switch (loss) {
    case Loss::expired:
      return "expired";
    case Loss::taken:
      return "taken";
    case Loss::deleted:
      return "deleted";
  }
  return "";
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
      return Errc::unready_table;
    case Fault::bad_request:
      return Errc::bad_request;
    case Fault::wrong_key:
      return Errc::wrong_table;
    case Fault::unknown_action:
      return Errc::not_supported;
    case Fault::bad_certificate:
      return Errc::bad_certificate;
    case Fault::no_thread:
      return std::make_error_code(std::errc::resource_unavailable_try_again);
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

ErrorPtr make_error(std::error_code code, const std::string& text,
                    std::string_view field, std::string_view request_id) {
  return std::make_unique<Error>(code, sigv4::one_line(text),
                                 std::string(field), std::string(request_id));
}

ErrorPtr error_of(std::error_code code, const std::string& cannot,
                  std::string_view details, std::string_view request_id) {
  const bool too_late = code == Errc::closed && sigv4::openssl_is_gone();
  if (too_late) details = "exit() has shut down OpenSSL";
  return make_error(
      code,
      sigv4::join({cannot, ": ", code.message(), sigv4::if_any(": ", details)}),
      {}, request_id);
}

ErrorPtr error_of(const Answer& answer, const std::string& cannot,
                  const std::string& endpoint) {
  const bool no_table = answer.fault == Fault::no_table;
  return error_of(answer, cannot, endpoint,
                  no_table ? " (create_table() creates it)" : "");
}

ErrorPtr error_of(const Answer& answer, const std::string& cannot,
                  const std::string& endpoint, const char* remark) {
  const std::error_code code = code_of(answer.fault);
  // The endpoint is named because a wrong one may answer in the same words.
  return make_error(
      code,
      sigv4::join({cannot, sigv4::if_any(" at ", endpoint), ": ",
                   code.message(), sigv4::if_any(": ", answer.message), remark,
                   sigv4::if_any(" (request ", answer.request_id, ")")}),
      answer.option, answer.request_id);
}

ErrorPtr bad_option(const CheckedOption& option) {
  const std::string value =
      option.value.empty() ? "" : ": " + sigv4::in_quotes(option.value);
  return make_error(
      Errc::bad_option,
      sigv4::join({"bad option `", option.field, "`: ", option.problem, value}),
      option.field);
}

ErrorPtr check_all(std::initializer_list<CheckedOption> options) {
  for (const CheckedOption& option : options) {
    if (*option.problem != '\0') return bad_option(option);
  }
  return nullptr;
}

const char* text_problem(const std::string& text, std::size_t most,
                         const char* too_long) {
  if (!sigv4::is_utf8(text)) return "not UTF-8";
  return text.size() > most ? too_long : "";
}

std::string cannot_text(const char* what, const std::string& name,
                        const std::string& table) {
  return sigv4::join({"cannot ", what, " ", sigv4::in_quotes(name),
                      " in table ", sigv4::in_quotes(table)});
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

// Whether a call was made without an error_code: the default argument stands
// for exceptions.
bool stands_for_exceptions(const std::error_code& ec) {
  return &ec == &throws();
}

}  // namespace

std::error_code& throws() noexcept {
  static std::error_code none;
  return none;
}

void ErrorReporter::report(const Error* error, std::error_code& ec) {
  if (stands_for_exceptions(ec)) {
    if (error != nullptr) raise(*error);
    return;
  }
  ec = error != nullptr ? error->code() : std::error_code();
  if (error == nullptr || unusable) return;
  sigv4::try_with_memory([&] { remember(*error); });
}

void run(ErrorReporter& reporter, std::error_code& ec,
         sigv4::FunctionRef<ErrorPtr()> call) {
  const NoCancellation guard;
  const std::shared_ptr<void> self = reporter.keep_alive();
  if (reporter.unusable) return reporter.report(reporter.unusable.get(), ec);
  ErrorPtr error;
  if (sigv4::try_with_memory([&] { error = call(); })) {
    reporter.report(error.get(), ec);
  } else {
    ErrorReporter::report_no_memory(ec);
  }
}

void ErrorReporter::report_no_memory(std::error_code& ec) {
  if (stands_for_exceptions(ec)) sigv4::no_memory();
  ec = std::make_error_code(std::errc::not_enough_memory);
}

void ErrorReporter::remember(const Error& error) {
  LastError& last = last_error_.get();
  const std::lock_guard<sigv4::Mutex> guard(last.mutex);
  last.text = error.what();
}

std::string ErrorReporter::last_error() const {
  if (unusable) return unusable->what();
  LastError* last = last_error_.peek();
  if (last == nullptr) return {};
  const std::lock_guard<sigv4::Mutex> guard(last->mutex);
  return last->text;
}

void ErrorReporter::finish_construction(const std::shared_ptr<void>& self) {
  self_ = self;
#ifdef __cpp_exceptions
  if (unusable) raise(*unusable);
#endif
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
