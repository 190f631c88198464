// What tests::Aside does; in a file of its own, for a thread costs a second to
// compile.
#include <unistd.h>

#include <exception>
#include <fstream>
#include <string>
#include <utility>

#include "tests/support/mutex_kit.hpp"

namespace tests {

Aside::Aside(std::function<void()> call)
    : call_(std::move(call)), thread_([this] { run(); }) {}

Aside::~Aside() {
  if (thread_.joinable()) thread_.join();
}

void Aside::run() {
  tid_ = ::gettid();
  try {
    thrown_ = thrown_by(call_);
  } catch (...) {
    surprised_ = std::current_exception();
  }
  ended_.set();
}

std::string Aside::thrown() {
  if (thread_.joinable()) thread_.join();
  if (surprised_) std::rethrow_exception(surprised_);
  return thrown_;
}

bool Aside::rests() const {
  int asleep = 0;
  return eventually([&] {
    asleep = is_asleep() ? asleep + 1 : 0;
    return asleep == 10;
  });
}

bool Aside::is_asleep() const {
  if (tid_ == 0) return false;
  std::ifstream file("/proc/self/task/" + std::to_string(tid_) + "/stat");
  std::string stat;
  std::getline(file, stat);
  // "TID (name) S ...", where the name may hold anything.
  const std::size_t end = stat.rfind(')');
  return end != stat.npos && stat.compare(end, 3, ") S") == 0;
}

}  // namespace tests
