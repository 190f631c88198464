// The tables of a run against AWS, which makes them, and deletes them whatever
// happens.  A table that was there before is never touched: it uses and deletes
// only those that its own CreateTable has made.
//
//   Tables tables({url, "eu-west-1"}, "my-test");
//   tables.refuse_if_any_exists();
//   tables.make();
//   ...
//   tables.remove();
//   tables.left();  // Those that are left, or may be.
#ifndef DDBMUTEX_TESTS_LIVE_TABLES_HPP
#define DDBMUTEX_TESTS_LIVE_TABLES_HPP

#include <chrono>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/lock/mutex.hpp"
#include "sigv4/boot_clock.hpp"
#include "sigv4/thread.hpp"
#include "tests/support/engine.hpp"
#include "tests/support/interrupted.hpp"

namespace live {

// Ctrl-C and TERM end a run in order: what it has made is deleted first.
inline void stop_if_interrupted() {
  if (tests::interrupted != 0) throw std::runtime_error("interrupted");
}

struct Place {
  std::string url;
  std::string region;
};

// For one thread.  Throws std::runtime_error if something goes wrong.
class Tables {
 public:
  Tables(const Place& place, const std::string& first);

  // The table `first`, then those with other keys, whose names begin with its
  // name.
  std::vector<std::string> names() const;

  // Also throws if the keys or the endpoint do not work.  Prints a warning if
  // this host's clock is off.
  void refuse_if_any_exists();
  // Returns once all can be used.
  void make();
  // Deletes all that make() has certainly made, however far it came.  Takes
  // some minutes at most.  Does not throw.
  void remove();
  // The tables that are still there, or may be.
  std::vector<std::string> left() const;

 private:
  enum class State { not_made, maybe_made, made };
  struct One {
    std::string name;
    tests::TableKey key;
    State state = State::not_made;
    bool was_seen = false;    // By DescribeTable, which may lag.
    std::string complaint{};  // Why it was not deleted, as it was told last.
  };

  ddbmutex::dynamodb::Answer ask(ddbmutex::dynamodb::Action action,
                                 const One& table,
                                 std::chrono::nanoseconds within);
  ddbmutex::dynamodb::Answer create_once(const One& table);
  void create(One& table);
  void wait_until_usable(One& table) const;
  bool is_done_with(One& table, ddbmutex::BootTime end);
  static void complain(One& table, const ddbmutex::dynamodb::Answer& answer);

  const Place place_;
  std::vector<One> tables_;
  ddbmutex::sigv4::CallWaker waker_;
  ddbmutex::lock::TableState state_;
};

}  // namespace live

#endif  // DDBMUTEX_TESTS_LIVE_TABLES_HPP
