// A lock's record and the item that holds it, in layout `ddblock`:
//
//   name     S  partition key: "ddblock-" and the mutex's name
//   uuid     S  128 random bits, fresh for every acquisition on the wire
//   expires  N  service time at which the lease ends, ns since the epoch; the
//               record's version too, since no two writes of one uuid agree
//   lease    N  ms; a waiter that saw the record unchanged so long may take it
//   owner    S  for people
//   ttl      N  seconds since the epoch, for DynamoDB's own clean-up
//
// Reading is strict: a record that is not understood is never taken.
#ifndef DDBMUTEX_LOCK_RECORD_HPP
#define DDBMUTEX_LOCK_RECORD_HPP

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dynamodb/clock.hpp"
#include "dynamodb/item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::ServiceTime;

// The table's partition key, and the attribute for DynamoDB's own clean-up.
constexpr const char* kKeyAttribute = "name";
constexpr const char* kTtlAttribute = "ttl";

// A lease that is not within these is a mistake of whoever wrote it.
constexpr std::chrono::milliseconds kShortestLease{1};
constexpr std::chrono::hours kLongestLease{24 * 366};

// What an item says of the lock.
struct Row {
  enum class Kind {
    absent,   // There is no item.
    record,   // A lock record: uuid, expires and, unless foreign, lease.
    kept,     // A record with a fencing token: its row must outlive the lock.
    unknown,  // Anything else.  `problem` names the attribute.
  };
  Kind kind = Kind::absent;
  std::string uuid;
  ServiceTime expires{};
  // Nothing if a client wrote the record that knows no such attribute.
  std::optional<std::chrono::milliseconds> lease;
  std::string owner;    // Empty if not given.
  std::string problem;  // "expires is not a whole number of nanoseconds"
};

Row read_row(const dynamodb::Item& item);

// What one request of the protocol is to do.  protocol.hpp decides it, the
// functions below write it as JSON.
struct Request {
  enum class Verb {
    take,     // PutItem, if the lock is free, over, stale or ours already.
    renew,    // UpdateItem of expires, if the record is ours.
    release,  // DeleteItem, if the record is ours.
    look,     // GetItem.
  };
  struct Version {
    std::string uuid;
    ServiceTime expires;
  };

  Verb verb = Verb::look;
  std::string uuid;                   // All but look.
  ServiceTime stamp{};                // take, renew: `expires` as it will be.
  std::chrono::milliseconds lease{};  // take: how long waiters must wait.
  ServiceTime earliest{1};      // take: a lease that ended before is over.
  std::optional<Version> seen;  // take: seen unchanged for its lease.
  // take: our own versions that the row may bear; renew: one of them it must.
  std::vector<ServiceTime> own;
  bool consistent = false;  // look
};

// Where a lock lives and what else its item says.  All UTF-8.
struct Place {
  std::string table;
  std::string key;  // Value of `name`, prefix and all.
  std::string owner;
};

// The body of the request: JSON for PutItem, UpdateItem, DeleteItem or GetItem.
std::string write_request(const Place& place, const Request& request);

bool is_utf8(std::string_view text);

// 32 hexadecimal digits from 128 bits of the operating system's randomness
// (not of a generator in this process, which a VM snapshot would clone).
std::string fresh_uuid();

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_LOCK_RECORD_HPP
