#include "tests/support/engine.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <ostream>
#include <stdexcept>

#include "ddbmutex/record.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/credentials.hpp"
#include "tests/support/exchanging.hpp"

using namespace ddbmutex;

namespace tests {
namespace {

constexpr std::chrono::minutes kTableTime{2};

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
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  const bool bound =
      fd >= 0 && bind(fd, any, size) == 0 && getsockname(fd, any, &size) == 0;
  if (fd >= 0) close(fd);
  if (!bound) fail("no free port");
  return ntohs(address.sin_port);
}

std::vector<std::string> command(EngineKind kind, int port) {
  const std::string modules = tests_directory() + "node_modules/";
  const std::string at = std::to_string(port);
  if (kind == EngineKind::dynoxide) {
    return {modules + "@dynoxide/linux-x64/dynoxide", "--host", "127.0.0.1",
            "--port", at};
  }
  return {"node", modules + "dynalite/cli.js", "--host", "127.0.0.1", "--port",
          at,
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

std::vector<EngineKind> engine_kinds() {
  std::vector<EngineKind> kinds;
#if defined(__x86_64__)
  kinds.push_back(EngineKind::dynoxide);  // There is one for no other machine.
#endif
  kinds.push_back(EngineKind::dynalite);
  if (!variable("DDBMUTEX_TEST_ENDPOINT", "").empty()) {
    kinds.push_back(EngineKind::given);
  }
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
  } else {
    start_child();
  }
  try {
    table_ = create_table();
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
  const BootTime end = BootClock::now() + kPlenty;
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
    const auto found = sigv4::environment_keys();
    if (found.state != sigv4::KeyOutcome::State::found) return std::nullopt;
    return ddbmutex::Credentials{found.keys.access_key_id,
                                 found.keys.secret_access_key.str(),
                                 found.keys.session_token.str()};
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
       "",
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
  sigv4::Exchange exchange{sigv4::HttpOptions{}};
  start(exchange, url, headers, body);
  sigv4::Exchange* const driven = &exchange;
  if (exchange.under_way()) {
    sigv4::drive(&driven, 1, BootClock::now() + kPlenty, nullptr);
  }
  exchange.end(sigv4::Transport::timed_out);
  return std::move(exchange.answer());
}

std::string Engine::must_call(std::string_view action,
                              const std::string& body) {
  const sigv4::HttpAnswer answer = call(action, body);
  if (answer.status != 200) {
    fail(std::string(action) + ": " + std::to_string(answer.status) + " " +
         answer.body + answer.error);
  }
  return answer.body;
}

std::string Engine::create_table() {
  const std::string table = "ddbmutex-test-" + lock::fresh_uuid();
  const std::string name = R"("TableName":")" + table + R"(")";
  must_call("CreateTable",
            "{" + name +
                R"(,"BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":)"
                R"([{"AttributeName":"name","AttributeType":"S"}],"KeySchema":)"
                R"([{"AttributeName":"name","KeyType":"HASH"}]})");
  tables_.push_back(table);
  const BootTime end = BootClock::now() + kTableTime;
  while (must_call("DescribeTable", "{" + name + "}").find("\"ACTIVE\"") ==
         std::string::npos) {
    if (BootClock::now() >= end) fail("the table does not become ACTIVE");
    sleep_a_moment();
  }
  return table;
}

void Engine::delete_table(const std::string& table) {
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
