// Ends in the way that it is told, with locks in all stages of use:
//
//   exits CASE NAME OTHER_NAME
//
// NAME is for locks of its own, OTHER_NAME is held by somebody else.  All of
// them are of Table::standard(), so of what the environment says.  A line on
// stdout says that a case has come to where the teller may act.
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <openssl/crypto.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <thread>

#include "ddbmutex.hpp"
#include "extras/admin.hpp"
#include "extras/guarded_write.hpp"
#include "tests/support/forked_child.hpp"

namespace {

using ddbmutex::DdbMutex;
using ddbmutex::Options;
using ddbmutex::Table;
using namespace std::chrono_literals;

// The command line of this process, before main() has it.
std::string argument(int number) {
  std::FILE* file = std::fopen("/proc/self/cmdline", "r");
  std::string word;
  for (int c; number >= 0 && (c = std::fgetc(file)) != EOF;) {
    if (c != '\0') {
      word += static_cast<char>(c);
    } else if (number-- > 0) {
      word.clear();
    }
  }
  std::fclose(file);
  return word;
}

void say(const std::string& line) {
  if (write(STDOUT_FILENO, (line + "\n").c_str(), line.size() + 1) < 0) {
    _exit(99);
  }
}

// Of a lock that is released by the end, however slow the machine is.
Options with_time() {
  Options options;
  options.request_timeout = 20s;
  return options;
}

// Told what to do by those that use it.
std::function<void(ddbmutex::Loss)>& on_lost() {
  static auto* const callback =
      new std::function<void(ddbmutex::Loss)>([](ddbmutex::Loss) {});
  return *callback;
}

Options with_callback() {
  Options options;
  options.ttl = 1s;
  options.on_lost = [](ddbmutex::Loss loss) { on_lost()(loss); };
  return options;
}

std::ptrdiff_t threads() {
  namespace fs = std::filesystem;
  return std::distance(fs::directory_iterator("/proc/self/task"),
                       fs::directory_iterator());
}

// Made before anything of the library: outlived by none of its threads, which
// would meet libraries that have been cleaned up.
struct MadeFirst {
  std::ptrdiff_t most_threads = 0;  // 0: as many as there are.
  ~MadeFirst() {
    if (most_threads == 0 || threads() <= most_threads) return;
    std::fprintf(stderr, "threads are left\n");
    _exit(97);
  }
} made_first;

// Made before anything of the library, too.  So its destructor and its handler
// run when exit() has stopped the library and shut down OpenSSL.
struct RunsLast {
  std::function<void()> in_handler = [] {}, in_destructor = [] {};
  RunsLast();
  ~RunsLast() { in_destructor(); }
} runs_last;

RunsLast::RunsLast() {
  // Then OpenSSL is shut down after the handler.
  if (argument(1) == "handler_that_closes") {
    OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CRYPTO_STRINGS, nullptr);
  }
  std::atexit([] { runs_last.in_handler(); });
}

// Their destructors run after main(), the last one's first.
DdbMutex static_mutex(argument(2), with_time());

std::atomic<bool> in_wait{false};

// Destroyed right after `static_waiting`, which must have ended the wait.
struct OutlivesWaiting {
  ~OutlivesWaiting() {
    for (int ms = 0; in_wait; ++ms) {
      if (ms > 20000) {
        std::fprintf(stderr, "a wait outlives its mutex\n");
        _exit(95);
      }
      std::this_thread::sleep_for(1ms);
    }
  }
} outlives_waiting;

DdbMutex static_waiting(argument(3));

DdbMutex static_observed(argument(2) + "-observed", with_callback());

struct BeforeMain {
  BeforeMain() {
    if (argument(1) == "locked_before_main") static_mutex.lock();
  }
} locked_before_main_if_asked;

// Reached from here, so that no leak is reported; never destroyed.
DdbMutex* leaked = nullptr;

DdbMutex& leak(const std::string& name, const Options& options = with_time()) {
  leaked = new DdbMutex(name, options);
  return *leaked;
}

void must_lock(DdbMutex& mutex) {
  std::error_code ec;
  mutex.lock(ec);
  if (!ec) return;
  std::fprintf(stderr, "%s\n", mutex.last_error().c_str());
  _exit(98);
}

[[noreturn]] void sleep_for_ever() {
  for (;;) pause();
}

// A thread in the middle of a wait for what somebody else holds.  When the wait
// is over it touches nothing any more.
void wait_in_another_thread(DdbMutex& mutex) {
  const auto sent = [] { return Table::standard()->stats().get_item; };
  const auto before = sent();
  std::thread([&mutex] {
    std::error_code ec;
    mutex.lock(ec);
    in_wait = false;
    sleep_for_ever();
  }).detach();
  while (sent() < before + 2) std::this_thread::sleep_for(1ms);
}

// Returns when the callback of `mutex` runs, having told the teller to delete
// the row.
void wait_for_callback(DdbMutex& mutex, std::function<void()> callback) {
  static std::atomic<bool> running{false};
  on_lost() = [callback = std::move(callback)](ddbmutex::Loss) {
    running = true;
    callback();
  };
  must_lock(mutex);
  say("held");
  while (!running) std::this_thread::sleep_for(1ms);
}

// A table behind TLS.
std::shared_ptr<Table> table_of_its_own() {
  ddbmutex::TableOptions table;
  table.endpoint = std::getenv("EXITS_ENDPOINT");
  table.ca_file = std::getenv("EXITS_CA_FILE");
  return std::make_shared<Table>(table);
}

struct MadeLast {
  bool locks = false;
  ~MadeLast() {
    if (!locks) return;
    Options options = with_time();
    options.table = table_of_its_own();
    DdbMutex mutex(argument(2), options);
    must_lock(mutex);
  }
} made_last;

// --- Cases -------------------------------------------------------------------

int return_from_main() {
  must_lock(static_mutex);
  return 0;
}

int locked_before_main() { return static_mutex.owns_lock() ? 0 : 1; }

int exit_from_a_thread() {
  must_lock(static_mutex);
  std::thread([] { std::exit(0); }).detach();
  sleep_for_ever();
}

int handler_that_locks() {
  return std::atexit([] {
    must_lock(static_mutex);
    static_mutex.unlock();
  });
}

int leaked_mutex() {
  std::thread([] {}).join();  // A sanitizer starts its own with the first.
  made_first.most_threads = threads();
  must_lock(leak(argument(2)));
  return 0;
}

// What the library rests on must work until its last mutex has been destroyed:
// libcurl, OpenSSL and all.
int tls_in_a_static_destructor() {
  must_lock(static_mutex);
  static_mutex.unlock();
  made_last.locks = true;
  return 0;
}

// The error of a call that comes too late.
void must_be_too_late(const std::error_code& ec, const std::string& text) {
  if (ec == ddbmutex::Errc::closed &&
      text.find("exit() has shut down") != std::string::npos) {
    return;
  }
  std::fprintf(stderr, "%s: %s\n", ec.message().c_str(), text.c_str());
  _exit(96);
}

void lock_too_late(const std::shared_ptr<Table>& table) {
  Options options;
  options.table = table;
  DdbMutex mutex(argument(2), options);
  std::error_code ec;
  mutex.lock(ec);
  must_be_too_late(ec, mutex.last_error());
  const bool locked = mutex.try_lock_for(1h, ec);
  must_be_too_late(ec, mutex.last_error());
  mutex.unlock();
  if (locked || mutex.owns_lock()) _exit(94);
}

int destructor_that_locks_too_late() {
  must_lock(static_mutex);
  runs_last.in_destructor = [] { lock_too_late(nullptr); };
  return 0;
}

int handler_that_locks_too_late() {
  must_lock(static_mutex);
  runs_last.in_handler = [] { lock_too_late(nullptr); };
  return 0;
}

// A connection over TLS would crash.
int tls_too_late() {
  must_lock(static_mutex);
  runs_last.in_destructor = [] {
    const std::shared_ptr<Table> table = table_of_its_own();
    lock_too_late(table);
    std::error_code ec;
    table->inspect(argument(2), ec);
    must_be_too_late(ec, table->last_error());
    table_exists(*table, ec);
    must_be_too_late(ec, table->last_error());
  };
  return 0;
}

// What main() has locked can still be given back, over the connection that is
// there.
int destructor_that_unlocks() {
  DdbMutex& mutex = leak(argument(2));
  must_lock(mutex);
  runs_last.in_destructor = [&mutex] {
    std::error_code ec;
    mutex.renew(ec);
    must_be_too_late(ec, mutex.last_error());
    guarded_write(mutex, R"([{"Put": {}}])", ec);
    must_be_too_late(ec, mutex.last_error());
    mutex.release(ec);
    must_be_too_late(ec, mutex.last_error());
    if (mutex.owns_lock()) _exit(97);
  };
  return 0;
}

// The table of main() is behind TLS.
int destructor_that_unlocks_over_tls() {
  Options options = with_time();
  options.table = table_of_its_own();
  DdbMutex& mutex = leak(argument(2), options);
  must_lock(mutex);
  runs_last.in_destructor = [&mutex] {
    std::error_code ec;
    mutex.release(ec);
    must_be_too_late(ec, mutex.last_error());
  };
  return 0;
}

// close() must say why it cannot release the lock.
void close_too_late(const char* why) {
  const auto unreleased = Table::standard()->close();
  for (const ddbmutex::Unreleased& one : unreleased) {
    const bool is_right = one.code == ddbmutex::Errc::closed &&
                          one.text.find(why) != std::string::npos;
    if (!is_right) std::fprintf(stderr, "%s\n", one.text.c_str());
  }
  if (unreleased.size() != 1) _exit(93);
}

int destructor_that_closes() {
  must_lock(leak(argument(2)));
  runs_last.in_destructor = [] { close_too_late("exit() has shut down"); };
  return 0;
}

int handler_that_closes() {
  must_lock(leak(argument(2)));
  runs_last.in_handler = [] { close_too_late("the table was closed"); };
  return 0;
}

int quick_exit() {
  must_lock(static_mutex);
  std::quick_exit(0);
}

int while_a_thread_waits() {
  in_wait = true;
  wait_in_another_thread(static_waiting);
  return 0;
}

int while_a_thread_waits_for_a_leaked_one() {
  wait_in_another_thread(leak(argument(3)));
  return 0;
}

int while_a_callback_hangs() {
  wait_for_callback(leak(argument(2) + "-observed", with_callback()),
                    [] { sleep_for_ever(); });
  return 0;
}

int exit_from_a_callback() {
  must_lock(static_mutex);
  wait_for_callback(static_observed, [] { std::exit(0); });
  sleep_for_ever();
}

// As the recipes stop a program.
int signal_from_a_callback() {
  static std::atomic<bool> asked_to_end{false};
  std::signal(SIGTERM, [](int) { asked_to_end = true; });
  must_lock(static_mutex);
  wait_for_callback(static_observed, [] {
    std::raise(SIGTERM);
    if (asked_to_end) _exit(92);
    kill(getpid(), SIGTERM);
  });
  while (!asked_to_end) std::this_thread::sleep_for(1ms);
  return 0;
}

// A sandbox, or an old kernel.
template <int kError>
int without_getrandom() {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_getrandom, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | kError),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  const sock_fprog program = {std::size(filter), filter};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  char byte;
  if (syscall(SYS_getrandom, &byte, 1, 0) != -1 || errno != kError) return 91;
  must_lock(static_mutex);
  return 0;
}

int with_threads_that_lock() {
  static std::atomic<int> cycles{0};
  for (int i = 0; i < 4; ++i) {
    std::thread([name = argument(2) + std::to_string(i)] {
      DdbMutex& mutex = *new DdbMutex(name);
      for (;;) {
        std::error_code ec;
        mutex.lock(ec);
        mutex.unlock();
        ++cycles;
      }
    }).detach();
  }
  while (cycles < 20) std::this_thread::sleep_for(1ms);
  return 0;
}

int child_exits() {
  must_lock(static_mutex);
  const std::string uuid = Table::standard()->inspect(static_mutex.name()).uuid;
  const pid_t child = fork();
  if (child == 0) {
    tests::begin_as_child();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  const bool same =
      Table::standard()->inspect(static_mutex.name()).uuid == uuid;
  return status == 0 && same && static_mutex.owns_lock() ? 0 : 1;
}

const std::map<std::string, int (*)()>& cases() {
  static const std::map<std::string, int (*)()> kCases = {
      {"return_from_main", return_from_main},
      {"locked_before_main", locked_before_main},
      {"exit_from_a_thread", exit_from_a_thread},
      {"handler_that_locks", handler_that_locks},
      {"leaked_mutex", leaked_mutex},
      {"tls_in_a_static_destructor", tls_in_a_static_destructor},
      {"destructor_that_locks_too_late", destructor_that_locks_too_late},
      {"handler_that_locks_too_late", handler_that_locks_too_late},
      {"tls_too_late", tls_too_late},
      {"destructor_that_unlocks", destructor_that_unlocks},
      {"destructor_that_unlocks_over_tls", destructor_that_unlocks_over_tls},
      {"destructor_that_closes", destructor_that_closes},
      {"handler_that_closes", handler_that_closes},
      {"quick_exit", quick_exit},
      {"while_a_thread_waits", while_a_thread_waits},
      {"while_a_thread_waits_for_a_leaked_one",
       while_a_thread_waits_for_a_leaked_one},
      {"while_a_callback_hangs", while_a_callback_hangs},
      {"exit_from_a_callback", exit_from_a_callback},
      {"signal_from_a_callback", signal_from_a_callback},
      {"without_getrandom", without_getrandom<ENOSYS>},
      {"without_leave_to_getrandom", without_getrandom<EPERM>},
      {"with_threads_that_lock", with_threads_that_lock},
      {"child_exits", child_exits}};
  return kCases;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4 || cases().count(argv[1]) == 0) return 2;
  return cases().at(argv[1])();
}
