#include "failure.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

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

namespace detail {

using dynamodb::Answer;
using dynamodb::Fault;

void raise(const Failure& failure) {
#ifdef __cpp_exceptions
  throw Error(failure.code, failure.text, failure.field, failure.request_id);
#else
  fail_handler(failure.code, failure.text.c_str());
  std::abort();
#endif
}

Failure failed(std::error_code code, const std::string& doing,
               const std::string& more) {
  Failure failure;
  failure.code = code;
  failure.text = doing + ": " + code.message();
  if (!more.empty()) failure.text += ": " + more;
  return failure;
}

Failure bad_option(const std::string& field, const std::string& why) {
  Failure bad;
  bad.code = Errc::bad_option;
  bad.text = "bad option `" + field + "`: " + why;
  bad.field = field;
  return bad;
}

namespace {

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

}  // namespace

// The same words may come of the wrong place: who answered, or did not, is
// told.
Failure failure_of(const Answer& answer, const std::string& doing,
                   const std::string& endpoint) {
  const std::string where = endpoint.empty() ? "" : " at " + endpoint;
  Failure result = failed(code_of(answer.fault), doing + where, answer.message);
  result.field = answer.option;
  if (answer.fault == Fault::no_table) {
    result.text += " (Table::create() makes one)";
  }
  result.request_id = answer.request_id;
  if (!answer.request_id.empty()) {
    result.text += " (request " + answer.request_id + ")";
  }
  return result;
}

std::string quoted(const std::string& text) { return "\"" + text + "\""; }

std::string cannot(const char* what, const std::string& name,
                   const std::string& table) {
  return std::string("cannot ") + what + " " + quoted(name) + " in table " +
         quoted(table);
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
