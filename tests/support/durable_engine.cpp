#include "tests/support/durable_engine.hpp"

#include <poll.h>
#include <signal.h>

#include <fstream>
#include <random>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/support/scripted_server.hpp"
#include "tests/support/waiting.hpp"

namespace tests {
namespace {

// None that the kernel gives to whoever asks for any: while the engine is down
// nobody else gets it.
int some_port() {
  std::ifstream range("/proc/sys/net/ipv4/ip_local_port_range");
  int lowest = 0;
  if (!(range >> lowest) || lowest < 20000) return ScriptedServer().port();
  std::random_device random;
  return std::uniform_int_distribution(10000, lowest - 1)(random);
}

std::vector<std::string> command(const std::string& directory, int port) {
  const std::string file = __FILE__;
  const std::string engines =
      file.substr(0, file.rfind("support/")) + "engines/";
  const std::string at = std::to_string(port);
  if (any_engine_kind() == EngineKind::dynoxide) {
    return {engines + "dynoxide/node_modules/@dynoxide/linux-x64/dynoxide",
            "--host",
            "127.0.0.1",
            "--port",
            at,
            "--db-path",
            directory + "/rows"};
  }
  return {"/usr/bin/env",
          "node",
          engines + "dynalite/node_modules/dynalite/cli.js",
          "--host",
          "127.0.0.1",
          "--port",
          at,
          "--path",
          directory + "/rows",
          "--createTableMs",
          "1"};
}

}  // namespace

DurableEngine::DurableEngine() {
  where_.table = "locks";
  // Somebody may have the port, or be faster to it.
  for (int attempt = 0; attempt < 10; ++attempt) {
    port_ = some_port();
    where_.url = "http://127.0.0.1:" + std::to_string(port_);
    if (starts()) {
      table_at(where_)->create();
      return;
    }
  }
  throw std::runtime_error("durable engine: it does not start");
}

void DurableEngine::kill() {
  process_->signal(SIGKILL);
  process_->wait();
  process_.reset();
}

void DurableEngine::start() {
  if (!eventually([this] { return starts(); })) {
    throw std::runtime_error("durable engine: it does not start");
  }
}

bool DurableEngine::starts() {
  process_ = std::make_unique<Process>(
      ProcessSettings{command(directory_.path(), port_), clean_environment()});
  const auto table = table_at(where_);
  const ddbmutex::BootTime end = ddbmutex::BootClock::now() + kPlenty;
  while (!process_->has_ended() && ddbmutex::BootClock::now() < end) {
    std::error_code ec;
    table->exists(ec);
    if (!ec) return true;
    poll(nullptr, 0, 5);
  }
  process_.reset();
  return false;
}

}  // namespace tests
