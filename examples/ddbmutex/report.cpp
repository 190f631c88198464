#include "examples/ddbmutex/report.hpp"

#include <cstdio>
#include <system_error>

#include "examples/ddbmutex/told.hpp"

namespace command {
namespace {

using ddbmutex::Errc;

struct Advice {
  Errc code;
  Exit exit;
  const char* what_to_do;  // May be empty.
};
// All others are kFailed.
constexpr Advice kAdvice[] = {
    {Errc::bad_option, kUsage, ""},
    {Errc::no_keys, kNotAllowed,
     "log in as for the AWS CLI, or set AWS_PROFILE or AWS_ACCESS_KEY_ID and "
     "AWS_SECRET_ACCESS_KEY"},
    {Errc::bad_keys, kNotAllowed,
     "check the keys (`aws sts get-caller-identity`) and this host's clock"},
    {Errc::expired_keys, kNotAllowed, "log in again, as for the AWS CLI"},
    {Errc::access_denied, kNotAllowed,
     "attach the IAM policy in `man ddbmutex` to these keys"},
    {Errc::bad_certificate, kNotAllowed,
     "check --endpoint and HTTPS_PROXY, or name the CA in AWS_CA_BUNDLE"},
    {Errc::no_table, kUnfit, ""},
    {Errc::wrong_table, kUnfit,
     "give its key with --key and --sort-key, or another table with --table"},
    {Errc::unready_table, kUnfit,
     "try again later, or give another table with --table"},
    {Errc::replicated_table, kUnfit, "give another table with --table"},
    {Errc::bad_request, kUnfit, "check --table, --key and --endpoint"},
    {Errc::not_supported, kUnfit, "check --endpoint and --layout"},
    {Errc::bad_record, kUnfit,
     "check --layout and --keep-row, or use another name"},
    {Errc::kept_row, kUnfit, "give --keep-row, or use another name"},
    {Errc::no_row, kUnfit, "in this layout the item must exist beforehand"},
    {Errc::unreachable, kUnavailable, "check the network and --endpoint"},
    {Errc::disconnected, kUnavailable, "try again later"},
    {Errc::timed_out, kUnavailable, "check the network, or try again later"},
    {Errc::throttled, kUnavailable,
     "try again later, or give the table more throughput"},
    {Errc::unavailable, kUnavailable, "try again later"},
    {Errc::bad_answer, kUnavailable,
     "check --endpoint: does DynamoDB answer there?"},
    {Errc::lease_lost, kLost, ""},
    {Errc::ends_too_soon, kLost, ""},
};

const Advice* advice_on(const std::error_code& code) {
  for (const Advice& advice : kAdvice) {
    if (code == advice.code) return &advice;
  }
  return nullptr;
}

// `ddbmutex create-table` for just this table.
std::string create_table(const Settings& settings) {
  const ddbmutex::TableOptions table = table_of(settings);
  const ddbmutex::TableOptions usual;
  std::string words = "ddbmutex create-table";
  const auto add = [&words](const char* option, const std::string& value,
                            const std::string& default_value) {
    if (value != default_value) words += option + shell_quoted(value);
  };
  add(" --table ", table.name, usual.name);
  add(" --key ", table.key, usual.key);
  add(" --sort-key ", table.sort_key, usual.sort_key);
  add(" --region ", table.region, usual.region);
  add(" --endpoint ", table.endpoint, usual.endpoint);
  add(" --profile ", table.profile, usual.profile);
  return words;
}

// As the library says it, without what comes after the words for the code.
std::string in_short(const ddbmutex::Error& error) {
  const std::string text = error.what();
  const std::string why = error.code().message();
  const auto at = text.find(why);
  return at == text.npos ? text : text.substr(0, at + why.size());
}

// If no source has keys, the library's error lists them all, each with its
// reason, which is long.  If one source is wrong or fails, the error is about
// that source alone, and is shown in full.
bool lists_all_sources(const std::string& text) {
  return text.find("no access_key_id in the options; ") != text.npos;
}

}  // namespace

const std::vector<ExitMeaning>& exits() {
  static const std::vector<ExitMeaning> all = {
      {kDone, "done"},
      {kRefused, "unlock: the answer was no"},
      {kUsage, "wrong usage"},
      {kUnavailable, "DynamoDB is out of reach"},
      {kFailed, "something else failed, such as a system call"},
      {kBusy,
       "not acquired in time, unless -E is given; unlock: it has changed"},
      {kLost, "the lock was lost while COMMAND ran"},
      {kNotAllowed, "not allowed: there are no keys, or they may not do this"},
      {kUnfit, "there is no table, or it or the item is not for locks"},
      {kCannotRun, "COMMAND cannot be run"},
      {kNotFound, "COMMAND is not found"},
  };
  return all;
}

void complain(const std::string& text) {
  const std::string line = "ddbmutex: " + printable(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Verdict verdict_on(const std::exception& error, const Settings& settings) {
  if (dynamic_cast<const UsageError*>(&error) != nullptr) {
    return {kUsage, error.what()};
  }
  const auto* ours = dynamic_cast<const ddbmutex::Error*>(&error);
  const Advice* advice = ours != nullptr ? advice_on(ours->code()) : nullptr;
  if (advice == nullptr) return {kFailed, error.what()};
  std::string text = error.what();
  std::string hint = advice->what_to_do;
  if (advice->code == Errc::no_table) {
    text = in_short(*ours);
    hint = "create it with `" + create_table(settings) + "`";
  } else if (advice->code == Errc::no_keys && !settings.verbose &&
             lists_all_sources(text)) {
    text = in_short(*ours);
    hint += "; --verbose says where they were looked for";
  }
  return {advice->exit, text + (hint.empty() ? "" : "; " + hint)};
}

bool is_transient(const std::error_code& code) {
  const Advice* advice = advice_on(code);
  return advice != nullptr && advice->exit == kUnavailable;
}

std::string shell_quoted(const std::string& word) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "%+,-./:=@_";
  if (!word.empty() && word.find_first_not_of(kPlain) == word.npos) return word;
  std::string quoted = "'";
  for (const char byte : word) {
    if (byte == '\'') quoted += "'\\'";
    quoted += byte;
  }
  return quoted + "'";
}

}  // namespace command
