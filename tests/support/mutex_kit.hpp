// What the tests of the public class need again and again: tables on a server
// or an engine, rows looked at and written past the library, conditions to wait
// for.
#ifndef DDBMUTEX_TESTS_SUPPORT_MUTEX_KIT_HPP
#define DDBMUTEX_TESTS_SUPPORT_MUTEX_KIT_HPP

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/boot_clock.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/gate.hpp"
#include "tests/support/home.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace tests {

// --- Tables and mutexes ----------------------------------------------------

inline ddbmutex::TableOptions table_options(const std::string& url) {
  ddbmutex::TableOptions options;
  options.endpoint = url;
  options.region = "us-east-1";
  options.credentials = {"AKIDEXAMPLE", "secret", ""};
  return options;
}

inline ddbmutex::TableOptions table_options(const Engine& engine) {
  ddbmutex::TableOptions options = table_options(engine.url());
  options.name = engine.table();
  options.region = engine.region();
  if (const auto keys = engine.credentials()) {
    options.credentials = {keys->access_key_id, keys->secret_access_key,
                           keys->session_token};
  }
  return options;
}

inline ddbmutex::TableOptions table_options(const Gate& gate) {
  ddbmutex::TableOptions options = table_options(gate.engine());
  options.endpoint = gate.server().url();
  return options;
}

inline ddbmutex::TableOptions table_options(const ScriptedServer& server) {
  return table_options(server.url());
}

// Until a Table has heard from DynamoDB what time it is, a lock begins with a
// look.  This one has, so the first request is the one that a test is about.
inline std::shared_ptr<ddbmutex::Table> with_clock(
    std::shared_ptr<ddbmutex::Table> table) {
  table->inspect(kAsksTheTime);
  return table;
}

// Each is to its locks as a process of its own: new, or with a clock.
template <class Where>
std::shared_ptr<ddbmutex::Table> new_table_at(const Where& where) {
  return std::make_shared<ddbmutex::Table>(table_options(where));
}
template <class Where>
std::shared_ptr<ddbmutex::Table> table_at(const Where& where) {
  return with_clock(new_table_at(where));
}

inline ddbmutex::Options on_table(
    std::shared_ptr<ddbmutex::Table> table,
    std::chrono::milliseconds ttl = std::chrono::minutes(1)) {
  ddbmutex::Options options;
  options.table = std::move(table);
  options.ttl = ttl;
  return options;
}

// For a minute, in which no request is given up because the machine is slow.
inline ddbmutex::Options unhurried(std::shared_ptr<ddbmutex::Table> table) {
  ddbmutex::Options options = on_table(std::move(table));
  options.request_timeout = std::chrono::seconds(25);
  return options;
}

// Of a lock nobody else has heard of.
inline std::string fresh_name() { return ddbmutex::lock::fresh_uuid(); }

// A lock, and two hosts that want it.
struct Rivals {
  explicit Rivals(EngineKind kind = any_engine_kind())
      : engine(Engine::running(kind)),
        ours(name, unhurried(table_at(engine))),
        theirs(name, unhurried(table_at(engine))) {}

  Engine& engine;
  const std::string name = fresh_name();
  ddbmutex::DdbMutex ours;
  ddbmutex::DdbMutex theirs;
};

// --- Rows, past the library ------------------------------------------------

inline std::string place_in(const Engine& engine, const char* item_or_key,
                            const std::string& name) {
  return R"({"TableName":")" + engine.table() + R"(",")" + item_or_key +
         R"(":{"name":{"S":"ddblock-)" + name + R"("})";
}

inline std::optional<ddbmutex::dynamodb::Item> item_of(
    Engine& engine, const std::string& name) {
  using namespace ddbmutex::dynamodb;
  auto http = engine.call(
      "GetItem", place_in(engine, "Key", name) + R"(},"ConsistentRead":true})");
  BOOST_REQUIRE(http.status == 200);
  return read_answer(Action::get_item, std::move(http), {}).item;
}

inline ddbmutex::lock::Row row_of(Engine& engine, const std::string& name) {
  const auto item = item_of(engine, name);
  return item ? ddbmutex::lock::read_row(*item) : ddbmutex::lock::Row{};
}

// All that stands there, in an order of its own; empty if there is none.
inline std::string raw_row(Engine& engine, const std::string& name) {
  auto item = item_of(engine, name);
  if (!item) return "";
  std::sort(item->begin(), item->end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  std::string text;
  for (const auto& attribute : *item) {
    text += attribute.name + " " +
            std::to_string(static_cast<int>(attribute.type)) + " " +
            attribute.value + "\n";
  }
  return text;
}

inline bool is_free(Engine& engine, const std::string& name) {
  return row_of(engine, name).kind == ddbmutex::lock::Row::Kind::absent;
}

// Writes the row as somebody else would; `attributes` is JSON.
inline void write_row(Engine& engine, const std::string& name,
                      const std::string& attributes) {
  engine.must_call("PutItem",
                   place_in(engine, "Item", name) + "," + attributes + "}}");
}

inline void delete_row(Engine& engine, const std::string& name) {
  engine.must_call("DeleteItem", place_in(engine, "Key", name) + "}}");
}

inline std::chrono::nanoseconds calendar() {
  return std::chrono::system_clock::now().time_since_epoch();
}

// The attributes of a record of somebody else's.
inline std::string record(
    const std::string& uuid, std::chrono::nanoseconds expires,
    std::chrono::milliseconds lease = std::chrono::minutes(1)) {
  return R"("uuid":{"S":")" + uuid + R"("},"expires":{"N":")" +
         std::to_string(expires.count()) + R"("},"lease":{"N":")" +
         std::to_string(lease.count()) + R"("},"owner":{"S":"elsewhere:7"})";
}

// One with an hour to go.
inline std::string live_record() {
  return record("theirs", calendar() + std::chrono::hours(1));
}

// --- Replies of a service that is no engine --------------------------------

inline Reply failure(int status, const std::string& code,
                     const std::string& more = "") {
  return Reply::error(status, R"({"__type":"com.amazon.coral.service#)" + code +
                                  R"(","message":"as the test wants")" + more +
                                  "}");
}

// Of a clock that is so far ahead.
inline std::string http_date(std::chrono::seconds ahead) {
  const std::time_t when = std::time(nullptr) + ahead.count();
  std::tm utc{};
  gmtime_r(&when, &utc);
  char text[64];
  std::strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

inline Reply server_failure() { return failure(500, "InternalServerError"); }

inline Reply hanging() {
  Reply reply;
  reply.hangs = true;
  return reply;
}

// The condition did not hold, because of a row of those attributes.
inline Reply refusal(const std::string& attributes) {
  return failure(400, "ConditionalCheckFailedException",
                 R"(,"Item":{"name":{"S":"ddblock-x"},)" + attributes + "}");
}

// What a waiter's look finds.
inline Reply found(const std::string& attributes) {
  return Reply::ok(R"({"Item":{"name":{"S":"ddblock-x"},)" + attributes + "}}");
}

// A lock that somebody else holds, for an hour.
inline Reply held_by_another(const SeenRequest& request) {
  return action_of(request) == "GetItem" ? found(live_record())
                                         : refusal(live_record());
}

// --- Errors ----------------------------------------------------------------

// What the call throws; nothing if it does not.
template <class Call>
std::optional<ddbmutex::Error> error_of(const Call& call) {
  try {
    call();
  } catch (const ddbmutex::Error& error) {
    return error;
  }
  return std::nullopt;
}

// Its code, as words that a failed check can show; "none" if nothing is thrown.
template <class Call>
std::string thrown_by(const Call& call) {
  const auto error = error_of(call);
  return error ? error->code().message() : "none";
}

inline std::string words(ddbmutex::Errc code) {
  return make_error_code(code).message();
}

// --- Threads ---------------------------------------------------------------

// What was told, in the order in which it was.
class Told {
 public:
  void add(std::string what) {
    const std::lock_guard<std::mutex> guard(mutex_);
    all_.push_back(std::move(what));
    changed_.notify_all();
  }
  // "danger expired"
  std::string text() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::string text;
    for (const std::string& what : all_)
      text += (text.empty() ? "" : " ") + what;
    return text;
  }
  bool wait_for(std::size_t count) const {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPlenty,
                             [&] { return all_.size() >= count; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<std::string> all_;  // GUARDED_BY(mutex_)
};

// Something that happens once, and that others wait for.
class Event {
 public:
  void set() {
    const std::lock_guard<std::mutex> guard(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool is_set() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return set_;
  }
  bool wait() const {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, kPlenty, [&] { return set_; });
  }

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
