#include "examples/demo/place.hpp"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <iterator>
#include <random>
#include <stdexcept>
#include <system_error>

#include "ddbmutex/dynamodb/ask.hpp"
#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "examples/demo/clock.hpp"
#include "examples/demo/text.hpp"
#include "extras/admin.hpp"
#include "extras/parts.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/from_all.hpp"
#include "sigv4/thread.hpp"

namespace demo {
namespace {

// A slow disk may take long to load an engine for the first time.
constexpr std::chrono::minutes kStartTime{2};
constexpr std::chrono::seconds kDeleteTime{60};

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
  if (!bound) throw std::runtime_error("no free port on 127.0.0.1");
  return ntohs(address.sin_port);
}

std::string contents(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string unique_table() {
  std::random_device random;
  return text("ddbmutex-demo-%08x%08x", random(), random());
}

}  // namespace

ddbmutex::TableOptions table_options(const std::string& table,
                                     const std::string& endpoint) {
  ddbmutex::TableOptions options;
  options.name = table;
  options.patience = std::chrono::seconds(5);
  if (endpoint.empty()) return options;
  options.endpoint = endpoint;
  options.region = "us-east-1";
  options.credentials = {"demo", "demo", ""};
  return options;
}

// --- The engine ------------------------------------------------------------

Place::Place(const std::vector<std::string>& engine, const Folder& folder)
    : table_(unique_table()) {
  if (!engine.empty()) start(engine, folder.path("engine.log"));
  handle_ = std::make_unique<ddbmutex::Table>(table_options(table_, endpoint_));
}

void Place::start(const std::vector<std::string>& engine,
                  const std::string& log) {
  // Somebody may be faster to a port that was free.
  for (int attempt = 0; attempt < 3; ++attempt) {
    const std::string port = std::to_string(free_port());
    std::vector<std::string> command = engine;
    command.insert(command.end(), {"--host", "127.0.0.1", "--port", port});
    const Fd file(
        open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    engine_.emplace(command, Process::Files{-1, file.get(), file.get()});
    endpoint_ = "http://127.0.0.1:" + port;
    if (is_listening(log)) return;
  }
  throw std::runtime_error("'" + engine.back() +
                           "' does not start: " + contents(log));
}

// It says so after it has the port: so it is ours that answers there.
bool Place::is_listening(const std::string& log) {
  const Time end = now() + kStartTime;
  while (now() < end && !engine_->ended()) {
    stop_if_interrupted();
    if (contents(log).find("istening") != std::string::npos) return true;
    poll(nullptr, 0, 5);
  }
  return false;
}

// --- The table -------------------------------------------------------------

Place::~Place() {
  try {
    delete_table();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
}

void Place::create_table() {
  std::error_code ec;
  // If DynamoDB cannot be reached, this says so before there is anything to
  // delete.
  ddbmutex::table_exists(*handle_, ec);
  if (!ec) {
    // One that was not waited for long enough is to be deleted, too.
    to_delete_ = !engine_;
    ddbmutex::create_table(*handle_, ec);
  }
  if (ec) throw std::runtime_error(handle_->last_error());
}

void Place::delete_table() {
  namespace dynamodb = ddbmutex::dynamodb;
  if (!to_delete_) return;
  to_delete_ = false;
  std::printf("Deleting the table ...\n");
  std::fflush(stdout);
  // The public class deletes no tables; this is what it stands on.
  dynamodb::ClientOptions options;
  options.target = dynamodb::find_target({}, ddbmutex::sigv4::all_parts());
  options.credentials =
      ddbmutex::sigv4::chain_keys({}, ddbmutex::sigv4::all_parts());
  ddbmutex::lock::TableState state(options);
  ddbmutex::sigv4::CallWaker waker;
  const auto end = ddbmutex::BootClock::now() + kDeleteTime;
  dynamodb::Answer answer;
  do {  // One that is still being made is not deleted yet.
    if (answer.fault != dynamodb::Fault::none) poll(nullptr, 0, 500);
    answer = dynamodb::ask(
        {*state.keeper, state.client, state.budget, end, &waker},
        dynamodb::Action::delete_table, "{\"TableName\":\"" + table_ + "\"}");
  } while (answer.fault == dynamodb::Fault::table_in_use);
  if (answer.fault == dynamodb::Fault::none) return;
  if (answer.fault == dynamodb::Fault::no_table) return;
  throw std::runtime_error("Please delete the table " + table_ +
                           ", which may still be there: " +
                           name_of(answer.fault) + ": " + answer.message);
}

std::string Place::described() const {
  if (engine_) return "an engine of our own, at " + endpoint_;
  const auto target =
      ddbmutex::dynamodb::find_target({}, ddbmutex::sigv4::all_parts());
  return target.endpoint + ", region " + target.region;
}

ddbmutex::LockInfo Place::inspect_lock() {
  std::error_code ec;
  const ddbmutex::LockInfo info = handle_->inspect(kLockName, ec);
  if (ec) throw std::runtime_error(handle_->last_error());
  return info;
}

}  // namespace demo
