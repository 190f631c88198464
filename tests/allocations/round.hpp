// One round: a call of the library, or several, of whose allocations the n-th
// fails, and what must be true afterwards.
//
//   void unlock(Round& round) {
//     DdbMutex mutex(round.name(), round.options(round.warm_table()));
//     mutex.lock();
//     round.arm();
//     round.attempt("unlock()", [&] { mutex.unlock(); });
//     round.disarm();
//     round.expect_free();
//     round.expect_usable(mutex);
//   }
//
// The thread of a round is exempt from failures but in attempt(); the library's
// own threads never are.
#ifndef DDBMUTEX_TESTS_ALLOCATIONS_ROUND_HPP
#define DDBMUTEX_TESTS_ALLOCATIONS_ROUND_HPP

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <utility>

#include "ddbmutex.hpp"
#include "ddbmutex/lock/row.hpp"
#include "tests/allocations/allocator.hpp"
#include "tests/support/waiting.hpp"
#include "tests/support/whereabouts.hpp"

namespace allocations {

using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::LockInfo;
using ddbmutex::Options;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;

// No lock is freed, and no renewal comes, only because a lease is nearly over.
constexpr milliseconds kTtl{60000};
constexpr milliseconds kRenewAfter{50};
// Far below the lease, and far above what a machine that is busy needs.
inline const milliseconds kSoon =
    std::min<milliseconds>(tests::kPlenty, milliseconds(20000));
// What one failure leaves wrong for so long, as an answer that does not come,
// is told as an error.
inline const milliseconds kPatience = kSoon / 2;

// How a call ended.
struct Ended {
  enum class How { well, bad_alloc, error };
  How how = How::well;
  std::error_code code{};
  std::string text{};

  bool well() const { return how == How::well; }
};

// A whole line to the process that started this one.
inline void say(const std::string& line) {
  const std::string text = line + "\n";
  if (write(STDOUT_FILENO, text.data(), text.size()) < 0) std::abort();
}

// What all rounds of a process share: where the locks are, and a Table that no
// failure ever hits, which tells what is stored.
class Site {
 public:
  // `engine`: where the observer asks, whatever is between it and the rounds.
  Site(tests::Whereabouts where, std::string engine)
      : where_(std::move(where)), engine_(std::move(engine)) {}

  const tests::Whereabouts& where() const { return where_; }
  TableOptions table_options() const {
    TableOptions options;
    options.name = where_.table;
    options.region = where_.region;
    options.endpoint = where_.url;
    options.credentials = where_.keys;
    if (const char* file = std::getenv("AWS_CA_BUNDLE")) options.ca_file = file;
    return options;
  }
  const std::shared_ptr<Table>& observer() {
    if (observer_) return observer_;
    TableOptions options = table_options();
    options.endpoint = engine_;
    observer_ = std::make_shared<Table>(options);
    return observer_;
  }

 private:
  const tests::Whereabouts where_;
  const std::string engine_;
  std::shared_ptr<Table> observer_;
};

class Round {
 public:
  Round(Site& site, long n) : site_(site), n_(n) {}
  Round(const Round&) = delete;
  Round& operator=(const Round&) = delete;

  // --- What it is about ------------------------------------------------------

  Site& site() { return site_; }
  const std::string& name() const { return name_; }
  TableOptions table_options() const {
    TableOptions options = site_.table_options();
    options.patience = kPatience;
    return options;
  }
  std::shared_ptr<Table> cold_table() const {
    return std::make_shared<Table>(table_options());
  }
  // One that has a connection, its keys and DynamoDB's time.
  std::shared_ptr<Table> warm_table() const {
    std::shared_ptr<Table> table = cold_table();
    table->inspect(name_);
    return table;
  }
  Options options(std::shared_ptr<Table> table) const {
    Options options;
    options.table = std::move(table);
    options.ttl = kTtl;
    options.renew_after = kRenewAfter;
    options.request_timeout = kPatience;
    options.patience = kPatience;
    return options;
  }
  // Of another host, so to say.
  Options others_options() { return options(site_.observer()); }

  // --- The failure -----------------------------------------------------------

  void arm() { allocations::arm(n_); }
  void disarm() { fired_ = allocations::disarm() || fired_; }
  bool fired() const { return fired_ || has_failed(); }
  // Leaves the library's threads to themselves, until one has met the failure
  // or there is `enough` of what they do.
  template <class Enough>
  void leave_alone(const Enough& enough) const {
    tests::eventually([&] { return has_failed() || enough(); }, kSoon);
  }

  // What it may end with: nothing, what the failure made of it, or, where
  // something else is wanted, an error of that code.
  template <class Call>
  Ended attempt(const char* what, const Call& call,
                std::error_code wanted = {}) {
    Ended ended = run(what, call);
    const bool explained = ended.well() || fired() || ended.code == wanted;
    if (!explained) {
      wrong(std::string(what) +
            " failed though no allocation did: " + ended.text);
    }
    return ended;
  }

  // --- What must be true afterwards ------------------------------------------

  void wrong(const std::string& what) {
    say("wrong " + what);
    right_ = false;
  }
  bool right() const { return right_; }
  void expect(bool holds, const char* what) {
    if (!holds) wrong(what);
  }

  LockInfo row() { return row_of(name_); }
  LockInfo row_of(const std::string& name) {
    for (int i = 0;; ++i) {
      std::error_code ec;
      LockInfo info = site_.observer()->inspect(name, ec);
      if (!ec || i == 9) return info;
    }
  }
  bool is_free(const std::string& name) {
    const LockInfo info = row_of(name);
    return !info.exists || info.released;
  }
  void expect_free() { expect_free(name_); }
  void expect_free(const std::string& name) {
    if (!tests::eventually([&] { return is_free(name); }, kSoon)) {
      wrong("the row is not free long before its lease is over");
    }
  }
  // Ours, by what the mutex says and by the table, and being renewed.
  void expect_held(DdbMutex& mutex) {
    if (!mutex.owns_lock()) return wrong("the lock is not held any more");
    const LockInfo before = row_of(mutex.name());
    if (!before.exists || before.released || before.owner != mutex.owner()) {
      return wrong("the lock is held, and the row does not say so");
    }
    const bool renewed = tests::eventually(
        [&] { return row_of(mutex.name()).expires > before.expires; }, kSoon);
    expect(renewed, "the lease is not renewed any more");
  }
  // It can be locked and unlocked as always.
  void expect_usable(DdbMutex& mutex) {
    std::error_code ec;
    const bool locked = mutex.try_lock_for(kSoon, ec);
    if (!locked) {
      return wrong("the mutex is stuck: " +
                   (ec ? mutex.last_error() : std::string("it stays locked")));
    }
    mutex.release(ec);
    if (ec) wrong("it cannot be unlocked: " + mutex.last_error());
    expect_free(mutex.name());
  }

 private:
  template <class Call>
  Ended run(const char* what, const Call& call) {
    try {
      const Counting counting(true);
      if constexpr (std::is_void_v<decltype(call())>) {
        call();
        return {};
      } else {
        const std::error_code code = call();
        if (!code) return {};
        const Counting quiet(false);
        return {Ended::How::error, code, code.message()};
      }
    } catch (const std::bad_alloc&) {
      return {Ended::How::bad_alloc, {}, "std::bad_alloc"};
    } catch (const ddbmutex::Error& error) {
      if (error.code() == std::errc::not_enough_memory) {
        wrong(std::string(what) + " threw an Error instead of std::bad_alloc");
      }
      return {Ended::How::error, error.code(), error.what()};
    } catch (const std::exception& error) {
      wrong(std::string(what) + " threw " + typeid(error).name() + ": " +
            error.what());
      return {Ended::How::error, {}, error.what()};
    }
  }

  Site& site_;
  const long n_;
  const std::string name_ = ddbmutex::lock::fresh_uuid();
  bool fired_ = false;
  std::atomic<bool> right_{true};
};

}  // namespace allocations

#endif  // DDBMUTEX_TESTS_ALLOCATIONS_ROUND_HPP
