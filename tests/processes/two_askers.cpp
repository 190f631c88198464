// Two threads of a process each ask a credential_process that asks a person
// something on the terminal, the second one while the first one is asked; then
// both are given up, the first one first.
//
//   two_askers COMMAND1 FILE1 COMMAND2 FILE2
//
// Each command writes its file once it has asked.
#include <unistd.h>

#include <chrono>
#include <ctime>
#include <string>
#include <thread>

#include "sigv4/keys/sources.hpp"

namespace {

using namespace ddbmutex;

class Asker {
 public:
  // Returns once the command has asked.
  Asker(const std::string& command, const char* file)
      : thread_([this, command] {
          const sigv4::Fetch fetch{
              BootClock::now() + std::chrono::minutes(5), stop_,
              static_cast<std::int64_t>(std::time(nullptr))};
          sigv4::process_keys(command, "somewhere", fetch);
        }) {
    while (access(file, F_OK) != 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
  }
  void give_up() {
    stop_.wake();
    thread_.join();
  }

 private:
  sigv4::Waker stop_;
  std::thread thread_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  Asker first(argv[1], argv[2]);
  Asker second(argv[3], argv[4]);
  first.give_up();
  second.give_up();
  return 0;
}
