// What the judge says about guarded writes: only the holder's are made, and
// once.
#include "tests/support/layouts.hpp"
#include "tests/world/judge.hpp"
#include "tests/world/row_text.hpp"

namespace world {

using tests::Layout;

void Judge::see_writes(const Applied& applied) {
  const std::string text =
      value_after(applied.request.body, R"("name":{"S":"w-)");
  if (text.empty()) return;
  const auto number = static_cast<std::size_t>(std::stoul(text));
  if (number >= writes_.size()) return;
  Write& write = writes_[number];
  const std::string row = Network::the().service().item("ledger", "w-" + text);
  const std::string count = value_after(row, R"("n":{"N":")");
  const int times = count.empty() ? 0 : std::stoi(count);
  if (times == write.applied) return;  // The same request again.
  write.applied = times;
  const std::string whom = "w-" + text + " of " + whose(*write.mutex);
  // DynamoDB remembers a request's token for 10 minutes, and the library
  // retries for at most 9.  Only a copy that the network delays is carried out
  // again.
  const bool is_late_copy =
      World::the().now() - applied.request.sent_at > std::chrono::minutes(1);
  if (times > 1 && !is_late_copy) wrong("a guarded write is made twice", whom);
  const bool kept = write.mutex->keep_row && plan_.layout == Layout::ddblock;
  if (write.failed && (kept || !row_came_back(write))) {
    wrong("a guarded write is made after it was refused", whom);
  }
  const std::string token =
      value_after(row_of(write.mutex->lock), R"("token":{"N":")");
  if (kept && token != std::to_string(write.token) && !is_of_a_later(write)) {
    wrong("a stale guarded write is made", whom + ": its token is " +
                                               std::to_string(write.token) +
                                               ", the row's is " + token);
  }
}

// Whether the write may belong to a later lease of its mutex than its token:
// other threads have unlocked the mutex meanwhile; or they have locked it, and
// have the lock now.
bool Judge::is_of_a_later(const Write& write) {
  const WatchedMutex& mutex = *write.mutex;
  if (mutex.gone || mutex.unlocked >= write.began) return true;
  look();
  const bool was_locked = write.token != 0;
  return mutex.owned &&
         lock_of(mutex.lock).versions.back().proof == mutex.proof &&
         (!was_locked || mutex.owned_since > write.began);
}

// DdbMutex::guarded_write(): "Without it, a request of ours that reaches
// DynamoDB late can bring back a row that was deleted".
bool Judge::row_came_back(const Write& write) {
  const Version& version = lock_of(write.mutex->lock).versions.back();
  return version.held && version.sent.at < write.began &&
         version.at > write.began;
}

int Judge::write_begins(const WatchedMutex& mutex, std::uint64_t token) {
  writes_.push_back({});
  writes_.back().mutex = &mutex;
  writes_.back().token = token;
  writes_.back().began = World::the().now();
  return static_cast<int>(writes_.size()) - 1;
}

void Judge::write_ends(int number, const Result& result) {
  using ddbmutex::Errc;
  Write& write = writes_[static_cast<std::size_t>(number)];
  const std::string whom =
      "w-" + std::to_string(number) + " of " + whose(*write.mutex);
  if (!result.code && write.applied == 0) {
    wrong("a guarded write is reported and not made", whom);
  }
  if (result.code == Errc::lease_lost || result.code == Errc::not_held ||
      result.code == Errc::condition_failed) {
    write.failed = true;
    if (write.applied > 0) {
      wrong("a guarded write is made and reported as refused",
            whom + ": " + result.text);
    }
  }
}

}  // namespace world
