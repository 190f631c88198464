#include "tests/live/tables.hpp"

#include <algorithm>
#include <cstdio>
#include <stdexcept>
#include <system_error>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/ask.hpp"
#include "ddbmutex/dynamodb/description.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "extras/admin.hpp"
#include "extras/parts.hpp"
#include "sigv4/keys/from_all.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/waiting.hpp"

namespace live {
namespace {

using namespace std::chrono_literals;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::Errc;
using ddbmutex::dynamodb::Action;
using ddbmutex::dynamodb::Answer;
using ddbmutex::dynamodb::Fault;
using tests::TableKey;

constexpr std::chrono::seconds kRequest{30};  // With its retries.
// AWS makes a table in ten seconds, and deletes it in less than a minute.
constexpr std::chrono::minutes kMaking{3};
constexpr std::chrono::minutes kDeleting{5};
constexpr std::chrono::milliseconds kBetweenLooks{1000};

// What the cases in cases.txt need: the keys of other libraries' layouts, sort
// keys, and keys that are wrong for locks.
const TableKey kOtherKeys[] = {
    {{"name"}},
    {{"key"}},
    {{"LockHashKeyName"}},
    {{"key"}, {"part"}},
    {{"LockHashKeyName"}, {"part"}},
    {{"pk"}, {"sk"}},
    {{"id"}},
    {{"name", "N"}},
    {{"name"}, {"at", "N"}},
};

ddbmutex::dynamodb::ClientOptions client_options(const Place& place) {
  ddbmutex::dynamodb::ClientOptions options;
  options.target = ddbmutex::dynamodb::find_target(
      {place.region, place.url}, ddbmutex::sigv4::all_parts());
  ddbmutex::sigv4::ChainOptions chain;
  chain.region = {place.region, "REGION"};
  options.credentials =
      ddbmutex::sigv4::chain_keys(chain, ddbmutex::sigv4::all_parts());
  return options;
}

[[noreturn]] void fail(const std::string& doing, const Answer& answer) {
  throw std::runtime_error(doing + ": " + name_of(answer.fault) +
                           (answer.message.empty() ? "" : ": ") +
                           answer.message);
}

std::string body_of(const std::string& table, const std::string& more = {}) {
  return R"({"TableName":)" + tests::json_string(table) + more + "}";
}

// Some suites compare this host's clock with DynamoDB's, which an answer tells
// to the second.
void tell_if_calendar_is_off(const Answer& answer) {
  if (!answer.date) return;
  const auto ahead = ddbmutex::dynamodb::Client::calendar() - *answer.date;
  if (ahead > -1s && ahead < 3s) return;
  std::printf(
      "The clock of this host is off DynamoDB's by %lld s: suites that compare "
      "the two may fail.\n\n",
      static_cast<long long>(ahead / 1s));
}

bool is_of_strings(const TableKey& key) {
  for (const tests::KeyPart& part : key) {
    if (part.type != "S") return false;
  }
  return true;
}

}  // namespace

Tables::Tables(const Place& place, const std::string& first)
    : place_(place), state_(client_options(place)) {
  tables_.push_back({first, tests::kUsualKey});
  for (const TableKey& key : kOtherKeys) {
    tables_.push_back({tests::prepared_table_name(first, key, 1), key});
  }
}

std::vector<std::string> Tables::names() const {
  std::vector<std::string> all;
  for (const One& table : tables_) all.push_back(table.name);
  return all;
}

Answer Tables::ask(Action action, const One& table,
                   std::chrono::nanoseconds within) {
  return ddbmutex::dynamodb::ask({*state_.keeper, state_.client, state_.budget,
                                  BootClock::now() + within, &waker_},
                                 action, body_of(table.name), nullptr,
                                 ddbmutex::dynamodb::read_table);
}

void Tables::refuse_if_any_exists() {
  for (const One& table : tables_) {
    stop_if_interrupted();
    const Answer answer = ask(Action::describe_table, table, kRequest);
    if (&table == &tables_.front()) tell_if_calendar_is_off(answer);
    if (answer.fault == Fault::none) {
      throw std::runtime_error("the table " + table.name +
                               " exists already, and is left as it is: choose "
                               "another TABLE");
    }
    if (answer.fault != Fault::no_table) {
      fail("cannot look whether the table " + table.name + " exists", answer);
    }
  }
}

// All at once, because each takes a while.
void Tables::make() {
  for (One& table : tables_) create(table);
  for (One& table : tables_) wait_until_usable(table);
}

// Sent once: if it were sent again, the answer could not tell whether the table
// is ours.
Answer Tables::create_once(const One& table) {
  return state_.keeper->carry(
      {Action::create_table,
       body_of(table.name,
               R"(,"BillingMode":"PAY_PER_REQUEST",)" + schema_of(table.key)),
       BootClock::now() + kRequest, ddbmutex::dynamodb::read_table},
      waker_);
}

void Tables::create(One& table) {
  const auto end = BootClock::now() + kMaking;
  for (;;) {
    stop_if_interrupted();
    const Answer answer = create_once(table);
    if (answer.fault == Fault::none) {
      table.state = State::made;
      return;
    }
    // AWS refuses to make too many tables at a time.
    const bool certainly_refused =
        answer.fault == Fault::throttled || !answer.sent;
    const bool transient = ddbmutex::dynamodb::is_transient(answer.fault);
    if (transient && !certainly_refused) table.state = State::maybe_made;
    if (!transient || !certainly_refused || BootClock::now() >= end) {
      fail("cannot make the table " + table.name, answer);
    }
    tests::pause(kBetweenLooks);
  }
}

// Waits with the public call, which also turns on the clean-up of the usual
// table.
void Tables::wait_until_usable(One& table) const {
  ddbmutex::TableOptions options;
  options.name = table.name;
  options.region = place_.region;
  options.endpoint = place_.url;
  options.key = table.key[0].name;
  if (table.key.size() > 1) options.sort_key = table.key[1].name;
  ddbmutex::Creation how;
  // create_once() has made it, which the public call cannot know.
  how.clean_up = table.name == tables_.front().name
                     ? ddbmutex::Creation::CleanUp::always
                     : ddbmutex::Creation::CleanUp::never;
  ddbmutex::Table made(options);
  const auto end = BootClock::now() + kMaking;
  std::error_code error;
  do {
    stop_if_interrupted();
    create_table(made, how, error);
  } while ((error == Errc::timed_out || error == Errc::unready_table) &&
           BootClock::now() < end);
  // A key that is not a string is refused, but only once the table is there.
  const bool is_there =
      !error || (error == Errc::wrong_table && !is_of_strings(table.key));
  if (!is_there) {
    throw std::runtime_error("the table " + table.name +
                             " does not become usable: " + error.message());
  }
  table.was_seen = true;
}

// --- Deleting ----------------------------------------------------------------

void Tables::remove() try {
  const auto end = BootClock::now() + kDeleting;
  std::vector<One*> left;
  for (One& table : tables_) {
    if (table.state == State::made) left.push_back(&table);
  }
  while (!left.empty() && BootClock::now() < end) {
    left.erase(std::remove_if(left.begin(), left.end(),
                              [this, end](One* table) {
                                return is_done_with(*table, end);
                              }),
               left.end());
    if (!left.empty()) tests::pause(kBetweenLooks);
  }
} catch (const std::exception& error) {
  std::printf("%s\n", error.what());
}

// True once the table is gone, or if its deletion is refused for good: then its
// name is told at the end.  Until then it is to be called again: a table cannot
// be deleted while it is being made or changed, and one that is not found may
// only be too new.
bool Tables::is_done_with(One& table, BootTime end) {
  const std::chrono::nanoseconds left = end - BootClock::now();
  const Answer answer = ask(Action::delete_table, table,
                            std::min<std::chrono::nanoseconds>(kRequest, left));
  switch (answer.fault) {
    case Fault::none:
    case Fault::table_in_use:
      table.was_seen = true;
      return false;
    case Fault::no_table:
      if (table.was_seen) table.state = State::not_made;
      return table.was_seen;
    default:
      complain(table, answer);
      return !ddbmutex::dynamodb::is_transient(answer.fault);
  }
}

// Once a reason.
void Tables::complain(One& table, const Answer& answer) {
  const std::string why =
      std::string(name_of(answer.fault)) + ": " + answer.message;
  if (why == table.complaint) return;
  table.complaint = why;
  std::printf("cannot delete the table %s%s: %s\n", table.name.c_str(),
              ddbmutex::dynamodb::is_transient(answer.fault) ? " yet" : "",
              why.c_str());
  std::fflush(stdout);
}

std::vector<std::string> Tables::left() const {
  std::vector<std::string> all;
  for (const One& table : tables_) {
    if (table.state != State::not_made) all.push_back(table.name);
  }
  return all;
}

}  // namespace live
