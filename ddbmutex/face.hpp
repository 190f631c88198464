// What a DdbMutex is inside.
#ifndef DDBMUTEX_FACE_HPP
#define DDBMUTEX_FACE_HPP

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "../ddbmutex.hpp"
#include "../sigv4/process.hpp"
#include "failure.hpp"
#include "mutex.hpp"

namespace ddbmutex {
inline namespace v0 {

// What a user asks for.  It lives on while one of its callbacks runs, in which
// the mutex may be destroyed; so that the table may be, too, it owns none.
struct Asked : lock::Listener {
  explicit Asked(const Options& all) : lock::Listener{call}, options(all) {
    options.table.reset();
  }
  static bool call(const lock::Listener& self, lock::News news,
                   lock::Verdict why);

  Options options;  // Without the table.
};

struct DdbMutex::Impl : detail::Calls {
  // REQUIRES: the options name a table.
  Impl(std::string&& the_name, Options&& the_options);

  lock::Mutex& get();
  const std::string& owner() const;
  std::string cannot(const char* what) const;  // "lock"
  // Whose option it is that is bad.
  detail::Failure of_this(detail::Failure bad_one) const;
  detail::Failure failure_of(const lock::Result& result,
                             const char* what) const;
  // With those changes; null: none.
  detail::Failure renew(const lock::ChangesPtr& changes) {
    return with_held(
        [](lock::Mutex& own, const lock::ChangesPtr& with) {
          return own.renew(with);
        },
        changes, "renew");
  }
  detail::Failure release(const lock::ChangesPtr& changes) {
    return with_held(
        [](lock::Mutex& own, const lock::ChangesPtr& with) {
          return own.release(with);
        },
        changes, "release");
  }
  detail::Failure release() {
    return with_held(
        [](lock::Mutex& own, const lock::ChangesPtr&) { return own.release(); },
        nullptr, "release");
  }
  detail::Failure ensure(std::chrono::nanoseconds min_remaining);
  detail::Failure require(std::chrono::nanoseconds min_remaining) const;
  std::chrono::nanoseconds remaining() const;

  const std::string name;
  const std::shared_ptr<Table> table;
  const std::shared_ptr<const Asked> asked;
  const Options& options;  // Of `asked`.
  // What a forked child must make anew, on first use.
  sigv4::PerProcess<lock::Mutex> state;

 private:
  detail::Failure with_held(
      lock::Result (*call)(lock::Mutex& own, const lock::ChangesPtr& changes),
      const lock::ChangesPtr& changes, const char* what);
};

}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_FACE_HPP
