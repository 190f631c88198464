#include "tests/torture/rows.hpp"

#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/waiting.hpp"

namespace torture {
namespace {

using namespace std::chrono_literals;
using TablePtr = std::shared_ptr<ddbmutex::Table>;

ddbmutex::Attribute note() {
  ddbmutex::Attribute note;
  note.name = "note";
  note.value = "a row has more than its lock";
  return note;
}

ddbmutex::Options kept(TablePtr table) {
  ddbmutex::Options options;
  options.table = std::move(table);
  options.keep_row = true;
  options.ttl = 60s;  // However slow the machine is.
  options.request_timeout = 20s;
  return options;
}

void take(int lock, const TablePtr& table, Events& events) {
  ddbmutex::Options options = kept(table);
  options.keep_row = is_kept(lock);
  const std::string name = lock_name(lock);
  ddbmutex::DdbMutex mutex(name, options);
  std::error_code ec;
  if (mutex.try_lock_for(tests::kPlenty, ec)) {
    events.taken(name, mutex.fencing_token());
    mutex.release(ec);
  }
}

void look_at_row(const std::string& name, ddbmutex::Table& table,
                 Events& events) {
  const ddbmutex::LockInfo info = table.inspect(name);
  const bool noted = info.attributes == ddbmutex::Attributes{note()};
  events.row(name, info.token,
             !info.exists     ? "gone"
             : !info.released ? "not free"
             : !noted         ? "without what others stored"
                              : "intact");
}

}  // namespace

void make_rows(const TablePtr& table) {
  for (int i = 0; i < kNames; ++i) {
    if (!is_kept(i)) continue;
    ddbmutex::Options options = kept(table);
    options.attributes = {note()};
    ddbmutex::DdbMutex mutex(lock_name(i), options);
    mutex.lock();
    mutex.release();
  }
}

void take_all(const TablePtr& table, Events& events) {
  std::vector<std::thread> threads;
  for (int i = 0; i < kNames; ++i) {
    threads.emplace_back([i, &table, &events] { take(i, table, events); });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kNames; ++i) {
    if (is_kept(i)) look_at_row(lock_name(i), *table, events);
  }
}

}  // namespace torture
