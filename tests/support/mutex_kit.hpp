// What the tests of the public class need again and again: tables on a server
// or an engine, rows looked at and written past the library, conditions to wait
// for.
#ifndef DDBMUTEX_TESTS_SUPPORT_MUTEX_KIT_HPP
#define DDBMUTEX_TESTS_SUPPORT_MUTEX_KIT_HPP

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/function_ref.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace tests {

// --- Tables and mutexes ----------------------------------------------------

ddbmutex::TableOptions table_options(const std::string& url);
ddbmutex::TableOptions table_options(const Engine& engine);
ddbmutex::TableOptions table_options(const Gate& gate);
ddbmutex::TableOptions table_options(const ScriptedServer& server);

// Each is to its locks as a process of its own.
std::shared_ptr<ddbmutex::Table> new_table(
    const ddbmutex::TableOptions& options);
// Until a Table has heard from DynamoDB what time it is, a lock begins with a
// look.  This one has, so the first request is the one that a test is about.
std::shared_ptr<ddbmutex::Table> with_clock(
    std::shared_ptr<ddbmutex::Table> table);

template <class Where>
std::shared_ptr<ddbmutex::Table> new_table_at(const Where& where) {
  return new_table(table_options(where));
}
template <class Where>
std::shared_ptr<ddbmutex::Table> table_at(const Where& where) {
  return with_clock(new_table_at(where));
}

// The request_timeout is as long as may be, so that no request is given up
// because the machine is slow: 24 s with a lease of a minute.
ddbmutex::Options on_table(
    std::shared_ptr<ddbmutex::Table> table,
    std::chrono::milliseconds ttl = std::chrono::minutes(1));

// Of a lock nobody else has heard of.
std::string fresh_name();

// A lock, and two hosts that want it.
struct Rivals {
  explicit Rivals(EngineKind kind = any_engine_kind());
  ~Rivals();

  Engine& engine;
  const std::string name = fresh_name();
  ddbmutex::DdbMutex ours;
  ddbmutex::DdbMutex theirs;
};

// --- Rows, past the library ------------------------------------------------

// "TableName" and, under that name, the key: JSON that lacks two braces.
std::string place_in(const Engine& engine, const char* item_or_key,
                     const std::string& name);

std::optional<ddbmutex::dynamodb::Item> item_of(Engine& engine,
                                                const std::string& name);
ddbmutex::lock::Row row_of(Engine& engine, const std::string& name);

// All that stands there, in an order of its own; empty if there is none.
std::string raw_row(Engine& engine, const std::string& name);
bool is_free(Engine& engine, const std::string& name);

// Writes the row as somebody else would; `attributes` is JSON.
void write_row(Engine& engine, const std::string& name,
               const std::string& attributes);
void delete_row(Engine& engine, const std::string& name);

std::chrono::nanoseconds calendar();

// The attributes of a record of somebody else's.
std::string record(const std::string& uuid, std::chrono::nanoseconds expires,
                   std::chrono::milliseconds lease = std::chrono::minutes(1));
// One with an hour to go.
std::string live_record();
// One of the Go program ddblock, which stores no lease.
std::string record_without_lease(std::chrono::nanoseconds expires);

// --- Replies of a service that is no engine --------------------------------

Reply failure(int status, const std::string& code,
              const std::string& more = "");
Reply server_failure();
Reply hanging();
// The condition did not hold, because of a row of those attributes.
Reply refusal(const std::string& attributes);
// What a waiter's look finds.
Reply found(const std::string& attributes);
// A lock that somebody else holds, for an hour.
Reply held_by_another(const SeenRequest& request);

// Of a clock that is so far ahead.
std::string http_date(std::chrono::seconds ahead);

// --- Errors ----------------------------------------------------------------

// What the call throws; nothing if it does not.
std::optional<ddbmutex::Error> error_of(
    ddbmutex::sigv4::FunctionRef<void()> call);
// Its code, as words that a failed check can show; "none" if nothing is thrown.
std::string thrown_by(ddbmutex::sigv4::FunctionRef<void()> call);
std::string words(ddbmutex::Errc code);

// --- Threads ---------------------------------------------------------------

// What was told, in the order in which it was.
class Told {
 public:
  Told();
  ~Told();
  void add(std::string what);
  std::string text() const;  // "danger expired"
  bool wait_for(std::size_t count) const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> all_;  // GUARDED_BY(mutex_)
};

// Something that happens once, and that others wait for.
class Event {
 public:
  Event();
  ~Event();
  void set();
  bool is_set() const;
  bool wait() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool set_ = false;  // GUARDED_BY(mutex_)
};

// A call in a thread of its own, and what it throws.
class Aside {
 public:
  explicit Aside(std::function<void()> call);
  ~Aside();
  Aside(const Aside&) = delete;
  Aside& operator=(const Aside&) = delete;

  bool done() const { return ended_.is_set(); }
  bool ends() const { return ended_.wait(); }
  // As thrown_by(); waits.
  std::string thrown();

  // Waits until the thread has come to rest in the call: it was asleep each
  // time that one looked, for a while.  REQUIRES: there it waits for other
  // threads of this process, not for answers.
  bool rests() const;

 private:
  void run();
  bool is_asleep() const;

  const std::function<void()> call_;
  std::atomic<pid_t> tid_{0};
  std::string thrown_;            // By an Error, as words;
  std::exception_ptr surprised_;  // by anything else.
  Event ended_;
  std::thread thread_;  // Last: it uses the others.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_MUTEX_KIT_HPP
