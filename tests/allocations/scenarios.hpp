// What the rounds are about: calls that allocate, also within libcurl and
// OpenSSL, and what the library's threads do.  (In the simulated world, too,
// allocations fail, in every call, but only those of the library.)  Each
// scenario sets up with allocations that work, arms the failure, does what it
// is named after, and judges.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_SCENARIOS_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_SCENARIOS_HPP

#include <curl/curl.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "extras/admin.hpp"
#include "extras/any_of.hpp"
#include "extras/guarded_write.hpp"
#include "extras/keys/profile_sources.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/waiting.hpp"
#include "tests/allocations/round.hpp"

namespace allocations {

namespace sigv4 = ddbmutex::sigv4;
using ddbmutex::Loss;
using std::chrono::hours;

// Where the locks of a scenario are.
enum class Place {
  engine,
  late,     // Answers to a PutItem come 150 ms after it was done.
  failing,  // Each UpdateItem, as renewals are, is answered by a 500.
  https,
};

struct Scenario {
  const char* name;
  void (*play)(Round& round);
  Place place = Place::engine;
  // Each round in a process of its own: what is made once is met, too.
  bool fresh = false;
};

namespace scenario {

// --- Objects -----------------------------------------------------------------

inline void make_table(Round& round) {
  TableOptions options = round.table_options();
  options.logger = [](ddbmutex::LogLevel, const std::string&) {};
  std::shared_ptr<Table> table;
  round.arm();
  const Ended ended = round.attempt(
      "Table()", [&] { table = std::make_shared<Table>(options); });
  round.disarm();
  if (!ended.well()) table = std::make_shared<Table>(options);
  DdbMutex mutex(round.name(), round.options(table));
  round.expect_usable(mutex);
}

inline void make_any_of(Round& round) {
  ddbmutex::AnyOfOptions options;
  options.each = round.options(round.cold_table());
  round.arm();
  round.attempt("AnyOf()", [&] { const ddbmutex::AnyOf any(options); });
  round.disarm();
  DdbMutex mutex(round.name(), round.options(options.each.table));
  round.expect_usable(mutex);
}

// --- lock() ------------------------------------------------------------------

inline void judge_lock(Round& round, DdbMutex& mutex, const Ended& ended) {
  round.disarm();
  if (ended.well()) {
    round.expect_held(mutex);
    std::error_code ec;
    mutex.release(ec);
    if (ec) round.wrong("it cannot be unlocked: " + mutex.last_error());
  } else if (mutex.owns_lock()) {
    round.wrong("the call failed, and the lock is held: " + ended.text);
    mutex.unlock();
  }
  round.expect_free();
  round.expect_usable(mutex);
}

inline void lock_at(Round& round, std::shared_ptr<Table> table) {
  DdbMutex mutex(round.name(), round.options(std::move(table)));
  round.arm();
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  judge_lock(round, mutex, ended);
}

inline void lock_warm(Round& round) { lock_at(round, round.warm_table()); }
inline void lock_cold(Round& round) { lock_at(round, round.cold_table()); }

// --- Giving back -------------------------------------------------------------

inline void unlock(Round& round) {
  DdbMutex mutex(round.name(), round.options(round.warm_table()));
  mutex.lock();
  round.arm();
  round.attempt("unlock()", [&] { mutex.unlock(); });
  round.disarm();
  round.expect(!mutex.owns_lock(), "what was given back is still held");
  round.expect_free();
  round.expect_usable(mutex);
}

inline void close_table(Round& round) {
  const std::shared_ptr<Table> table = round.warm_table();
  std::vector<std::unique_ptr<DdbMutex>> all;
  for (int i = 0; i < 4; ++i) {
    all.push_back(std::make_unique<DdbMutex>(
        round.name() + "-" + std::to_string(i), round.options(table)));
    all.back()->lock();
  }
  round.arm();
  round.attempt("close()", [&] { table->close(); });
  round.disarm();
  for (const auto& mutex : all) {
    round.expect(!mutex->owns_lock(), "a lock of a closed table is held");
    round.expect_free(mutex->name());
  }
  for (const auto& mutex : all) mutex->unlock();
  std::error_code ec;
  all.front()->lock(ec);
  if (ec != Errc::closed) {
    round.wrong("lock() at a closed table says: " + ec.message());
  }
}

// --- While it is held --------------------------------------------------------

template <class Call>
void while_held(Round& round, const char* what, const Call& call) {
  Options options = round.options(round.warm_table());
  options.keep_row = true;
  options.owner = "an owner that is longer than a short string";
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  round.attempt(what, [&] { call(mutex); });
  round.disarm();
  round.expect_held(mutex);
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

inline void renew(Round& round) {
  while_held(round, "renew()", [](DdbMutex& mutex) { mutex.renew(); });
}

inline void guarded_write(Round& round) {
  const std::string other = round.name() + "-other";
  const std::string items = R"([{"Put":{"TableName":")" +
                            round.site().where().table +
                            R"(","Item":{"name":{"S":"ddblock-)" + other +
                            R"("},"value":{"S":"written"}}}}])";
  while_held(round, "guarded_write()", [&](DdbMutex& mutex) {
    ddbmutex::guarded_write(mutex, items);
    const Counting quiet(false);
    round.expect(!round.row_of(other).item.empty(),
                 "what was to be written is not there");
  });
}

// By the library's threads.
inline void renewals(Round& round) {
  const std::shared_ptr<Table> table = round.warm_table();
  Options options = round.options(table);
  options.renew_after = milliseconds(20);
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  const auto sent = [&table] { return table->stats().update_item; };
  round.arm();
  const auto before = sent();
  round.leave_alone([&] { return sent() >= before + 3; });
  round.disarm();
  round.expect_held(mutex);
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

// They are tried again and again, also where there is no memory for the reason.
inline void failing_renewals(Round& round) {
  const std::shared_ptr<Table> table = round.warm_table();
  Options options = round.options(table);
  options.renew_after = milliseconds(20);
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  const auto tried = [&table, before = table->stats().update_item] {
    return table->stats().update_item - before;
  };
  round.arm();
  round.leave_alone([&] { return tried() >= 2; });
  round.disarm();
  const auto until_now = tried();
  round.expect(
      tests::eventually([&] { return tried() >= until_now + 2; }, kSoon),
      "a renewal that failed is not tried again");
  round.expect(mutex.owns_lock(), "a lock is lost long before its end");
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

// Told by a callback that needs no memory once it is there.
inline void loss(Round& round) {
  std::atomic<int> losses{0};
  std::atomic<Loss> told{Loss::expired};
  Options options = round.options(round.warm_table());
  options.renew_after = milliseconds(20);
  options.on_lost = [&](Loss loss) {
    told = loss;
    ++losses;
  };
  DdbMutex mutex(round.name(), options);
  mutex.lock();
  round.arm();
  std::error_code ec;  // It may have been renewed in between.
  for (int i = 0; i < 100 && !round.is_free(round.name()); ++i) {
    force_unlock(*round.site().observer(), round.row(), ec);
  }
  round.expect(tests::eventually([&] { return losses > 0; }, kSoon),
               "a loss is not told");
  round.disarm();
  round.expect(losses <= 1, "a loss is told twice");
  round.expect(losses == 0 || told == Loss::deleted,
               "a loss is told as another");
  round.expect(!mutex.owns_lock(), "a lock is held that was lost");
  mutex.unlock();
  round.expect_free();
  round.expect_usable(mutex);
}

// --- Keys --------------------------------------------------------------------

// A file, and the chain of places where keys are looked for.
inline void keys_of_a_profile(Round& round) {
  for (const char* name :
       {"ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN", "REGION"}) {
    unsetenv((std::string("AWS_") + name).c_str());
  }
  // One name for all rounds: what setenv() has replaced it never frees.
  const std::string file = std::filesystem::temp_directory_path() /
                           ("ddbmutex-profile-" + std::to_string(getpid()));
  setenv("AWS_CONFIG_FILE", file.c_str(), 1);
  TableOptions options = round.table_options();
  std::ofstream(file) << "[profile other]\nregion = nowhere\n"
                      << "[default]\nregion = "
                      << std::exchange(options.region, {})
                      << "\naws_access_key_id = "
                      << options.credentials.access_key_id
                      << "\naws_secret_access_key = "
                      << options.credentials.secret_access_key << "\n";
  options.credentials = {};
  std::shared_ptr<Table> table;
  round.arm();
  const Ended made = round.attempt(
      "Table()", [&] { table = std::make_shared<Table>(options); });
  if (!made.well()) table = std::make_shared<Table>(options);
  DdbMutex mutex(round.name(), round.options(table));
  const Ended ended = round.attempt("lock()", [&] { mutex.lock(); });
  judge_lock(round, mutex, ended);
  unlink(file.c_str());
}

// A program that tells them.
inline void keys_of_a_program(Round& round) {
  sigv4::Waker nobody;
  const sigv4::Fetch fetch{ddbmutex::BootClock::now() + kSoon, nobody, 0};
  const std::string command =
      R"(echo '{"Version":1,"AccessKeyId":"A","SecretAccessKey":"S"}')";
  sigv4::KeyOutcome outcome;
  round.arm();
  round.attempt("process_keys()", [&] {
    outcome = sigv4::process_keys(command, "a program", fetch);
  });
  round.disarm();
  const bool found = outcome.state == sigv4::KeyOutcome::State::found;
  round.expect(found || round.fired(), "a program's keys are not found");
}

// --- Looking, and making tables ----------------------------------------------

template <class Call>
void with_table(Round& round, const char* what, const Call& call) {
  DdbMutex other(round.name(), round.others_options());
  other.lock();
  const std::shared_ptr<Table> table = round.warm_table();
  round.arm();
  round.attempt(what, [&] { call(*table); });
  round.disarm();
  round.expect_held(other);
  other.unlock();
  round.expect_free();
  DdbMutex mutex(round.name(), round.options(table));
  round.expect_usable(mutex);
}

inline void inspect(Round& round) {
  with_table(round, "inspect()", [&](Table& table) {
    const LockInfo info = table.inspect(round.name());
    round.expect(info.exists, "a lock that is held is not seen");
  });
}

inline void list(Round& round) {
  with_table(round, "list()", [&](Table& table) {
    bool seen = false;
    list_locks(table, [&](const LockInfo& info) {
      seen = seen || info.name == round.name();
      return true;
    });
    round.expect(seen, "a lock that is held is not listed");
  });
}

inline void create(Round& round) {
  TableOptions options = round.table_options();
  options.name += "-" + round.name();
  ddbmutex::Creation how;
  how.tags = {{"purpose", "tests"}};
  Table table(options);
  round.arm();
  round.attempt("create()", [&] { create_table(table, how); });
  round.disarm();
  std::error_code ec;
  create_table(table, ec);
  if (ec) round.wrong("it cannot be created again: " + table.last_error());
}

// --- Answers that are late ---------------------------------------------------

// The call gives up before the answer comes; the rest is done in the
// background.
inline void take_given_up(Round& round) {
  Options options = round.options(round.warm_table());
  options.request_timeout = milliseconds(50);
  DdbMutex mutex(round.name(), options);
  round.arm();
  round.attempt(
      "try_lock()",
      [&] {
        std::error_code ec;
        static_cast<void>(mutex.try_lock(ec));
        return ec;
      },
      Errc::timed_out);
  round.leave_alone([&] { return round.is_free(round.name()); });
  round.disarm();
  mutex.unlock();
  round.expect_free();
}

// --- The first of a process --------------------------------------------------

inline void first_lock(Round& round) {
  // OpenSSL 3.5 hangs if it has no memory for the first locks that it makes.
  // This makes them.
  ERR_clear_error();
  round.arm();
  std::unique_ptr<DdbMutex> mutex;
  const Ended made = round.attempt("DdbMutex()", [&] {
    mutex = std::make_unique<DdbMutex>(round.name(),
                                       round.options(round.cold_table()));
  });
  if (!made.well()) {
    mutex = std::make_unique<DdbMutex>(round.name(),
                                       round.options(round.cold_table()));
  }
  const Ended ended = round.attempt("lock()", [&] { mutex->lock(); });
  judge_lock(round, *mutex, ended);
}

// --- Mistakes ----------------------------------------------------------------

// What a library could do wrong when memory is short.  Each is to be noticed.

inline void take_memory() { ::operator delete(::operator new(100)); }

inline bool gets_memory() {
  void* const block = ::operator new(100, std::nothrow);
  ::operator delete(block);
  return block != nullptr;
}

inline void mistake_ends_the_process(Round& round) {
  round.arm();
  round.attempt("a call", []() noexcept { take_memory(); });
}

inline void mistake_hangs(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    if (!gets_memory()) tests::pause(hours(1));
  });
}

inline void mistake_leaks(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    void* const block = ::operator new(200);
    if (gets_memory()) ::operator delete(block);
  });
}

inline void mistake_forgets_a_handle(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    CURL* const handle = curl_easy_init();
    if (gets_memory()) curl_easy_cleanup(handle);
  });
}

// What allocates without failing (spared.hpp) may still leak.
inline void mistake_forgets_what_is_spared(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    BIO* const text = BIO_new(BIO_s_mem());
    if (gets_memory()) BIO_free(text);
  });
}

inline void mistake_leaves_a_descriptor_open(Round& round) {
  round.arm();
  round.attempt("a call", [] {
    const int fd = dup(STDOUT_FILENO);
    if (gets_memory()) close(fd);
  });
}

inline void mistake_leaves_it_locked(Round& round) {
  DdbMutex mutex(round.name(), round.others_options());
  DdbMutex waiter(round.name(), round.options(round.warm_table()));
  mutex.lock();
  round.arm();
  round.attempt("a call", [&] {
    if (gets_memory()) mutex.unlock();
  });
  round.disarm();
  round.expect_free();
  round.expect_usable(waiter);
}

}  // namespace scenario

inline const std::vector<Scenario>& scenarios() {
  using namespace scenario;
  static const std::vector<Scenario> all = {
      {"make_table", make_table},
      {"make_any_of", make_any_of},
      {"lock_warm", lock_warm},
      {"lock_cold", lock_cold},
      {"unlock", unlock},
      {"close_table", close_table},
      {"renew", renew},
      {"guarded_write", guarded_write},
      {"renewals", renewals},
      {"failing_renewals", failing_renewals, Place::failing},
      {"loss", loss},
      {"keys_of_a_profile", keys_of_a_profile},
      {"keys_of_a_program", keys_of_a_program},
      {"inspect", inspect},
      {"list", list},
      {"create", create},
      {"take_given_up", take_given_up, Place::late},
      {"lock_by_https", lock_cold, Place::https},
      {"first_lock", first_lock, Place::engine, true},
  };
  return all;
}

// Those that are wrong, so that it can be seen that this is noticed.
inline const std::vector<Scenario>& mistakes() {
  using namespace scenario;
  static const std::vector<Scenario> all = {
      {"mistake_ends_the_process", mistake_ends_the_process},
      {"mistake_hangs", mistake_hangs},
      {"mistake_leaks", mistake_leaks},
      {"mistake_forgets_a_handle", mistake_forgets_a_handle},
      {"mistake_forgets_what_is_spared", mistake_forgets_what_is_spared},
      {"mistake_leaves_a_descriptor_open", mistake_leaves_a_descriptor_open},
      {"mistake_leaves_it_locked", mistake_leaves_it_locked},
  };
  return all;
}

}  // namespace allocations

#endif  // DDBMUTEX_TESTS_ALLOCATIONS_SCENARIOS_HPP
