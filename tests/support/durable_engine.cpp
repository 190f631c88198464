#include "tests/support/durable_engine.hpp"

#include <poll.h>
#include <signal.h>
#include <stdlib.h>

#include <filesystem>
#include <stdexcept>
#include <system_error>
#include <vector>

#include "sigv4/boot_clock.hpp"
#include "tests/support/scripted_server.hpp"

namespace tests {
namespace {

constexpr std::chrono::seconds kStartTime{20};

std::vector<std::string> command(const std::string& directory, int port) {
  const std::string file = __FILE__;
  const std::string modules =
      file.substr(0, file.rfind("support/")) + "node_modules/";
  const std::string at = std::to_string(port);
  if (any_engine_kind() == EngineKind::dynoxide) {
    return {modules + "@dynoxide/linux-x64/dynoxide",
            "--host",
            "127.0.0.1",
            "--port",
            at,
            "--db-path",
            directory + "/rows"};
  }
  return {"/usr/bin/env",
          "node",
          modules + "dynalite/cli.js",
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
  std::string name = "/tmp/ddbmutex-rows-XXXXXX";
  if (mkdtemp(name.data()) == nullptr) {
    throw std::runtime_error("durable engine: no directory");
  }
  directory_ = name;
  // Somebody may be faster to a port that was free.
  for (int attempt = 0; attempt < 3; ++attempt) {
    port_ = ScriptedServer().port();
    where_.url = "http://127.0.0.1:" + std::to_string(port_);
    where_.table = "locks";
    if (starts()) {
      table_at(where_)->create();
      return;
    }
  }
  throw std::runtime_error("durable engine: it does not start");
}

DurableEngine::~DurableEngine() {
  process_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

void DurableEngine::kill() {
  process_->signal(SIGKILL);
  process_->wait();
  process_.reset();
}

void DurableEngine::start() {
  if (!starts()) throw std::runtime_error("durable engine: it does not start");
}

bool DurableEngine::starts() {
  process_ = std::make_unique<Process>(
      ProcessSettings{command(directory_, port_), clean_environment()});
  const auto table = table_at(where_);
  const ddbmutex::BootTime end = ddbmutex::BootClock::now() + kStartTime;
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
