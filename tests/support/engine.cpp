#include "tests/support/engine.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <ostream>
#include <stdexcept>

#include "ddbmutex/dynamodb/answer.hpp"
#include "ddbmutex/dynamodb/ask.hpp"
#include "ddbmutex/dynamodb/item.hpp"
#include "ddbmutex/impl.hpp"
#include "ddbmutex/lock/row.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/keys/from_all.hpp"
#include "sigv4/keys/keys.hpp"
#include "sigv4/sigv4.hpp"
#include "sigv4/url.hpp"
#include "tests/support/exchanging.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/listening.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

using namespace ddbmutex;

namespace tests {
namespace {

constexpr std::chrono::minutes kTableTime{2};
constexpr int kAgain = 4;

std::string variable(const char* name, const char* otherwise) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// This file is tests/support/engine.cpp.
std::string tests_directory() {
  const std::string file = __FILE__;
  return file.substr(0, file.rfind("support/"));
}

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error("engine: " + what);
}

int free_port() {
  int port = 0;
  const int fd = socket_on_loopback(port);
  if (fd < 0) fail("no free port");
  close(fd);
  return port;
}

std::vector<std::string> command(EngineKind kind, int port) {
  const std::string engines = tests_directory() + "engines/";
  const std::string at = std::to_string(port);
  if (kind == EngineKind::dynoxide) {
    return {engines + "dynoxide/node_modules/@dynoxide/linux-x64/dynoxide",
            "--host", "127.0.0.1", "--port", at};
  }
  return {"node", engines + "dynalite/node_modules/dynalite/cli.js", "--host",
          "127.0.0.1", "--port", at,
          // Tables are there, and gone, at once.
          "--createTableMs", "1", "--deleteTableMs", "1"};
}

void sleep_a_moment() { poll(nullptr, 0, 5); }

// In the child: only calls that are safe after a fork of a threaded program.
[[noreturn]] void become(char* const* arguments, int log, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // It died before that.
  dup2(log, STDOUT_FILENO);
  dup2(log, STDERR_FILENO);
  execvp(arguments[0], arguments);
  const char* why = strerror(errno);
  if (write(log, why, strlen(why)) < 0) _exit(126);
  _exit(127);
}

pid_t spawn(const std::vector<std::string>& words, int log) {
  std::vector<char*> arguments;
  for (const std::string& argument : words) {
    arguments.push_back(const_cast<char*>(argument.c_str()));
  }
  arguments.push_back(nullptr);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(arguments.data(), log, parent);
  return child;
}

}  // namespace

const TableKey kUsualKey = {{"name"}};

sigv4::Credentials signing_keys(const Credentials& keys) {
  return {keys.access_key_id, keys.secret_access_key, keys.session_token, ""};
}

std::ostream& operator<<(std::ostream& out, EngineKind kind) {
  switch (kind) {
    case EngineKind::dynoxide:
      return out << "dynoxide";
    case EngineKind::dynalite:
      return out << "dynalite";
    case EngineKind::given:
      break;
  }
  return out << "the given engine";
}

std::unique_ptr<sigv4::Keys> found_keys(const std::string& region) {
  sigv4::ChainOptions options;
  options.region = {region, "AWS_REGION"};
  return std::make_unique<sigv4::Keys>(
      sigv4::chain_keys(options, detail::parts()),
      [] { return static_cast<std::int64_t>(std::time(nullptr)); });
}

std::string schema_of(const TableKey& key) {
  std::string types, roles;
  for (const KeyPart& part : key) {
    const bool first = types.empty();
    const std::string attribute = std::string(first ? "" : ",") +
                                  R"({"AttributeName":)" +
                                  json_string(part.name);
    types += attribute + R"(,"AttributeType":")" + part.type + R"("})";
    roles +=
        attribute + R"(,"KeyType":")" + (first ? "HASH" : "RANGE") + R"("})";
  }
  return R"("AttributeDefinitions":[)" + types + R"(],"KeySchema":[)" + roles +
         "]";
}

std::string prepared_table_name(const std::string& table, const TableKey& key,
                                int number) {
  std::string name = table;
  for (const KeyPart& part : key) {
    name += "-" + part.name + (part.type == "S" ? "" : "-" + part.type);
  }
  return name + "-" + std::to_string(number);
}

std::vector<EngineKind> engine_kinds() {
  const bool is_given = !variable("DDBMUTEX_TEST_ENDPOINT", "").empty();
  if (is_given && variable("DDBMUTEX_TEST_ENGINES", "") == "given") {
    return {EngineKind::given};
  }
  std::vector<EngineKind> kinds;
#if defined(__x86_64__)
  kinds.push_back(EngineKind::dynoxide);  // There is one for no other machine.
#endif
  kinds.push_back(EngineKind::dynalite);
  if (is_given) kinds.push_back(EngineKind::given);
  return kinds;
}

EngineKind any_engine_kind() { return engine_kinds().front(); }

Engine& Engine::running(EngineKind kind) {
  static std::map<EngineKind, std::unique_ptr<Engine>> engines;
  std::unique_ptr<Engine>& engine = engines[kind];
  if (!engine) engine = std::make_unique<Engine>(kind);
  return *engine;
}

Engine::Engine(EngineKind kind) : kind_(kind) {
  sigv4::init_http();  // Its exit handlers are to run after ~Engine().
  if (kind == EngineKind::given) {
    url_ = variable("DDBMUTEX_TEST_ENDPOINT", "");
    region_ = variable("AWS_REGION", "us-east-1");
    prepared_ = variable("DDBMUTEX_TEST_TABLE", "");
    keys_ = found_keys(region_);
  } else {
    start_child();
  }
  try {
    table_ = prepared_.empty() ? create_table() : prepared_;
  } catch (...) {
    stop_child();
    throw;
  }
}

Engine::~Engine() {
  stop_child();
  if (log_ >= 0) close(log_);
  if (kind_ != EngineKind::given) return;
  for (const std::string& table : std::vector<std::string>(tables_)) {
    call("DeleteTable", R"({"TableName":")" + table + R"("})");
  }
}

// --- The child -------------------------------------------------------------

void Engine::start_child() {
  // Somebody may be faster to a port that was free.
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (start_on_a_free_port()) return;
  }
  const std::string said = child_said();
  close(log_);
  fail("'" + command(kind_, 0)[kind_ == EngineKind::dynalite ? 1 : 0] +
       "' does not start: " + said);
}

bool Engine::start_on_a_free_port() {
  const int port = free_port();
  if (log_ >= 0) close(log_);
  log_ = memfd_create("engine", MFD_CLOEXEC);
  child_ = spawn(command(kind_, port), log_);
  if (child_ < 0) fail("cannot fork");
  url_ = "http://127.0.0.1:" + std::to_string(port);
  if (wait_until_listening()) return true;
  stop_child();
  return false;
}

// Both engines say so, after they have the port: so it is our child that
// answers there.
bool Engine::wait_until_listening() {
  const BootTime end = BootClock::now() + kStarts;
  while (BootClock::now() < end) {
    if (child_said().find("istening") != std::string::npos &&
        call("ListTables", "{}").status == 200) {
      return true;
    }
    if (waitpid(child_, nullptr, WNOHANG) == child_) {
      child_ = -1;
      return false;
    }
    sleep_a_moment();
  }
  return false;
}

void Engine::stop_child() {
  if (child_ < 0) return;
  kill(child_, SIGKILL);  // All it has is in memory.
  waitpid(child_, nullptr, 0);
  child_ = -1;
}

std::string Engine::child_said() const {
  std::string text(4096, '\0');
  const ssize_t size = pread(log_, text.data(), text.size(), 0);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  return text;
}

// --- Calls -----------------------------------------------------------------

std::optional<ddbmutex::Credentials> Engine::credentials() const {
  if (kind_ == EngineKind::given) {
    ddbmutex::sigv4::CallWaker nobody;
    if (!keys_->await(BootClock::now() + kPlenty, nobody)) return std::nullopt;
    const auto found = keys_->now().outcome;
    return ddbmutex::Credentials{found->keys.access_key_id,
                                 found->keys.secret_access_key.str(),
                                 found->keys.session_token.str()};
  }
  return ddbmutex::Credentials{"AKIDEXAMPLE", "secret", ""};
}

sigv4::HttpAnswer Engine::call(std::string_view action,
                               const std::string& body) {
  const auto keys = credentials();
  const std::string url = sigv4::normal_url(url_);
  if (!keys || url.empty()) fail("no keys, or no URL");
  const std::string host(sigv4::parts_of(url).authority);
  const std::string target = "DynamoDB_20120810." + std::string(action);
  const std::string type = "application/x-amz-json-1.0";
  const std::string hash = sigv4::sha256_hex(body);
  const std::int64_t now =
      std::chrono::duration_cast<std::chrono::seconds>(
          std::chrono::system_clock::now().time_since_epoch())
          .count();
  const sigv4::Signed signature = sigv4::sign(
      {"POST",
       "/",
       {{"Content-Type", type}, {"Host", host}, {"X-Amz-Target", target}},
       hash},
      signing_keys(*keys), {region_, "dynamodb"}, now);
  std::string headers = "Host: " + host + "\nContent-Type: " + type +
                        "\nX-Amz-Target: " + target +
                        "\nX-Amz-Date: " + signature.amz_date +
                        "\nAuthorization: " + signature.authorization + "\n";
  if (!keys->session_token.empty()) {
    headers += "X-Amz-Security-Token: " + keys->session_token + "\n";
  }
  // A connection for each call: none that the engine may close meanwhile.
  sigv4::HttpOptions options;
  options.ca_file = variable("AWS_CA_BUNDLE", "");
  sigv4::Exchange exchange{options};
  start(exchange, url, headers, body);
  if (exchange.under_way()) {
    sigv4::drive(exchange, BootClock::now() + kPlenty, nullptr);
  }
  exchange.end(sigv4::Transport::timed_out);
  return std::move(exchange.answer());
}

// A service far away may fail for a moment.
std::string Engine::must_call(std::string_view action,
                              const std::string& body) {
  sigv4::HttpAnswer answer = call(action, body);
  for (int again = 0; again < kAgain && kind_ == EngineKind::given &&
                      (answer.status == 0 || answer.status >= 500);
       ++again) {
    sleep_a_moment();
    answer = call(action, body);
  }
  if (answer.status != 200) {
    fail(std::string(action) + ": " + std::to_string(answer.status) + " " +
         answer.body + answer.error);
  }
  return answer.body;
}

std::string Engine::create_table(const TableKey& key) {
  if (!prepared_.empty()) return take_prepared_table(key);
  const std::string table = "ddbmutex-test-" + lock::fresh_uuid();
  create_table_named(table, key);
  return table;
}

void Engine::create_table_named(const std::string& table, const TableKey& key) {
  const std::string name = R"("TableName":)" + json_string(table);
  must_call("CreateTable", "{" + name + R"(,"BillingMode":"PAY_PER_REQUEST",)" +
                               schema_of(key) + "}");
  tables_.push_back(table);
  // It may not be found at once.
  const BootTime end = BootClock::now() + kTableTime;
  while (call("DescribeTable", "{" + name + "}").body.find("\"ACTIVE\"") ==
         std::string::npos) {
    if (BootClock::now() >= end) fail("the table does not become ACTIVE");
    sleep_a_moment();
  }
}

// What a test before has left there is deleted.
std::string Engine::take_prepared_table(const TableKey& key) {
  std::string table;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    int number = 1;
    do {
      table = prepared_table_name(prepared_, key, number++);
    } while (!taken_.insert(table).second);
  }
  empty(table, key);
  return table;
}

void Engine::empty(const std::string& table, const TableKey& key) {
  while (delete_items(table, key)) {
  }
}

// Those of one page; false if there were none.
bool Engine::delete_items(const std::string& table, const TableKey& key) {
  const std::string name = R"({"TableName":)" + json_string(table);
  const dynamodb::Document page(
      call("Scan", name + R"(,"ConsistentRead":true})").body);
  const dynamodb::Value items = page.root()["Items"];
  if (!items.is_list()) fail(table + " cannot be read");
  for (dynamodb::Elements each(items); each.next();) {
    dynamodb::Item item;
    dynamodb::read_item(each.value, item);
    std::string place;
    for (const KeyPart& part : key) {
      place += (place.empty() ? "" : ",") + json_string(part.name) + R"(:{")" +
               part.type + R"(":)" +
               json_string(dynamodb::find(item, part.name)->value) + "}";
    }
    must_call("DeleteItem", name + R"(,"Key":{)" + place + "}}");
  }
  return items.size() > 0;
}

void Engine::delete_table(const std::string& table) {
  if (!prepared_.empty()) {
    const std::lock_guard<std::mutex> guard(mutex_);
    taken_.erase(table);
    return;
  }
  const std::string name = R"({"TableName":")" + table + R"("})";
  must_call("DeleteTable", name);
  const BootTime end = BootClock::now() + kTableTime;
  while (call("DescribeTable", name).status == 200) {
    if (BootClock::now() >= end) fail("the table does not go");
    sleep_a_moment();
  }
}

Reply Engine::forward(const SeenRequest& request) {
  const std::string target = request.header("X-Amz-Target").value_or("");
  const sigv4::HttpAnswer answer =
      call(target.substr(target.find('.') + 1), request.body);
  if (answer.status == 0) {  // Final for the client: its test fails.
    return Reply::error(400, R"({"__type":"NoEngine","message":"no engine"})");
  }
  Reply reply = Reply::error(answer.status, answer.body);
  reply.headers.emplace_back("Date", std::string(answer.header("Date")));
  return reply;
}

}  // namespace tests
