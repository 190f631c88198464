// A DynamoDB engine for the tests: a child process of ours on 127.0.0.1, or
// the one that DDBMUTEX_TEST_ENDPOINT names.
//
//   Engine& engine = Engine::running(EngineKind::dynoxide);
//   engine.must_call("PutItem", "{...}");
//
// DDBMUTEX_TEST_ENDPOINT (with AWS_REGION; keys are looked for as the library
// does) has to let us create and delete tables; ours are named
// ddbmutex-test-....  With DDBMUTEX_TEST_ENGINES=given it is the only engine.
// With DDBMUTEX_TEST_TABLE no table is created or deleted: that table is there,
// and so are those that prepared_table_name() tells, as tests/live makes them.
#ifndef DDBMUTEX_TESTS_SUPPORT_ENGINE_HPP
#define DDBMUTEX_TESTS_SUPPORT_ENGINE_HPP

#include <sys/types.h>

#include <iosfwd>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ddbmutex.hpp"
#include "sigv4/http_answer.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {
struct Credentials;
class Keys;
}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

namespace tests {

struct Reply;
struct SeenRequest;

ddbmutex::sigv4::Credentials signing_keys(const ddbmutex::Credentials& keys);

// Those that the library finds by itself.
std::unique_ptr<ddbmutex::sigv4::Keys> found_keys(const std::string& region);

enum class EngineKind {
  dynoxide,  // Engine A: tells the row that refused a write.
  dynalite,  // Engine B: does not.
  given,     // By DDBMUTEX_TEST_ENDPOINT.
};
std::ostream& operator<<(std::ostream& out, EngineKind kind);

// A table's partition key and, if there is a second part, its sort key.
struct KeyPart {
  std::string name;
  std::string type = "S";  // Or "N" or "B".
};
using TableKey = std::vector<KeyPart>;
extern const TableKey kUsualKey;  // One part: name.

// Of CreateTable: "AttributeDefinitions":[...],"KeySchema":[...].
std::string schema_of(const TableKey& key);

// "TABLE-key-work-1": the first of the tables with that key that were made
// beforehand for the tests of a given engine.
std::string prepared_table_name(const std::string& table, const TableKey& key,
                                int number);

// Those to run the tests on, here.
std::vector<EngineKind> engine_kinds();
// One that is always there, for tests of what lies between it and us.
EngineKind any_engine_kind();

// Any thread may call any member.  What goes wrong throws std::runtime_error.
class Engine {
 public:
  // Started with its table when first asked for, stopped at the end of the
  // program.
  static Engine& running(EngineKind kind);

  explicit Engine(EngineKind kind);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  EngineKind kind() const { return kind_; }
  const std::string& url() const { return url_; }
  const std::string& region() const { return region_; }
  std::optional<ddbmutex::Credentials> credentials() const;
  bool has_prepared_tables() const { return !prepared_.empty(); }
  // A table with the key `name` for the locks of all tests.
  const std::string& table() const { return table_; }

  // As it stands in the protocol: "PutItem" and its JSON.
  ddbmutex::sigv4::HttpAnswer call(std::string_view action,
                                   const std::string& body);
  std::string must_call(std::string_view action, const std::string& body);

  // An empty table that nobody else uses; returns its name once it can be used.
  std::string create_table(const TableKey& key = kUsualKey);
  // The same with a name of the caller's.
  void create_table_named(const std::string& table, const TableKey& key);
  void delete_table(const std::string& table);

  // Signs and hands on what a client sent to a server of ours.
  Reply forward(const SeenRequest& request);

 private:
  void start_child();
  bool start_on_a_free_port();
  bool wait_until_listening();
  void stop_child();
  std::string child_said() const;
  std::string take_prepared_table(const TableKey& key);
  void empty(const std::string& table, const TableKey& key);
  bool delete_items(const std::string& table, const TableKey& key);

  const EngineKind kind_;
  std::string url_;
  std::string region_ = "us-east-1";
  std::string table_;
  std::vector<std::string> tables_;  // Of a given engine: to be deleted.
  std::string prepared_;  // DDBMUTEX_TEST_TABLE; empty: we make our own.
  std::mutex mutex_;
  std::set<std::string> taken_;  // Of those prepared.  GUARDED_BY(mutex_)
  std::unique_ptr<ddbmutex::sigv4::Keys> keys_;  // Of a given engine.
  pid_t child_ = -1;
  int log_ = -1;  // What the child writes.
};

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_ENGINE_HPP
