// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// A lock's row: what an item of the table says about the lock, where the item
// is stored, and what a request does to it.
//
//   Row row = read_row(std::move(item), *target.format);
//   if (row.kind == Row::Kind::unknown) return row.problem;
//
// The layout (row_format.hpp) decides how a row is stored as an item and how a
// request is written as JSON.  Reading is strict: a record that is not
// understood is never taken.
#ifndef DDBMUTEX_ROW_HPP
#define DDBMUTEX_ROW_HPP

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../dynamodb/answer.hpp"
#include "../dynamodb/clock.hpp"
#include "../dynamodb/item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::ServiceTime;

// The table's partition key, and the attribute for DynamoDB's own clean-up.
constexpr const char* kKeyAttribute = "name";
constexpr const char* kTtlAttribute = "ttl";

// A record whose lease is outside these bounds is malformed.
constexpr std::chrono::milliseconds kShortestLease{1};
constexpr std::chrono::hours kLongestLease{24 * 366};

// How a row stores its lease, in layouts that know two forms.
enum class LeaseForm : char { unknown, go_duration, milliseconds };

// What an item says about the lock.
struct Row {
  enum class Kind {
    absent,   // There is no item.
    bare,     // No record, only other attributes and perhaps a token.
    record,   // A lock record.
    unknown,  // Anything else.  `problem` names the attribute.
  };
  Kind kind = Kind::absent;
  // `uuid` identifies the holder; with `expires` it is the record's version. In
  // layout `lease` it is empty until somebody takes the row.
  std::string uuid;
  // When the lease ends; 0 once it is released.  At least kBeyondAllClocks
  // (protocol.hpp) in layouts whose rows do not say when it ends.
  ServiceTime expires{};
  // No value if the record lacks the attribute.
  std::optional<std::chrono::milliseconds> lease;
  LeaseForm form = LeaseForm::unknown;
  std::string owner;        // Empty if not given.
  bool waited_for = false;  // A waiter of another host has said so.
  bool has_token = false;   // It has a token, even if the token is malformed.
  std::int64_t token = 0;
  const char* problem = "";  // "expires is missing"
  dynamodb::Item others;     // All attributes but the record's; `data` is here.
  std::string unread;  // The first attribute that was left out; often empty.
};

// How a lock uses its row.
struct RowPolicy {
  bool keeps_row = false;   // A release keeps the row.
  bool keep_data = false;   // A take leaves `data` where it is.
  bool must_exist = false;  // A take never creates the row.

  // The rest differs only in layouts that are shared with other programs.
  enum class Take : char { usual, puts, updates };
  Take take = Take::usual;
  bool stores_end = true;  // The row says when a lease ends.
  // Other programs compare the stored end with their wall clocks, so nothing is
  // stored before DynamoDB has told the date.
  bool needs_date = false;
  // The stored end is this much later than the end that we rely on.
  std::chrono::milliseconds margin{};
  // A take looks at the row first, to write the lease in the form it finds.
  bool looks_first = false;

  // Whether a take is an UpdateItem, whose answer includes the row.  Otherwise
  // it is a PutItem.
  bool takes_by_update() const {
    return take == Take::usual ? keeps_row || keep_data : take == Take::updates;
  }
};

// The one attribute of a record that belongs to the user.
constexpr const char* kDataAttribute = "data";

// What a renewal or a release changes for the user.
struct Changes {
  dynamodb::Item set;
  std::vector<std::string> remove;
};

using ChangesPtr = std::shared_ptr<const Changes>;

// What one request does.  protocol.hpp decides it, a layout writes it as JSON.
struct Request {
  enum class Verb {
    take,     // PutItem or UpdateItem, if nobody else holds the lock.
    renew,    // UpdateItem of expires, if the record is ours.
    release,  // DeleteItem or UpdateItem, if the record is ours.
    look,     // GetItem.
    force,    // An operator frees the lock, if the row has that version.
    check,    // ConditionCheck, which fails unless the record is ours.
    wait,     // UpdateItem: tells the holder of that uuid that a host waits.
  };
  struct Version {
    std::string uuid;
    ServiceTime expires;
  };

  Verb verb = Verb::look;
  std::string uuid;                     // take, renew, release, check
  ServiceTime stamp{};                  // take, renew: the new `expires`.
  std::chrono::milliseconds lease{};    // take: stored for waiters.
  LeaseForm form = LeaseForm::unknown;  // take: the form that a look found.
  // take: the lock is free if its stored end is before this.
  ServiceTime earliest{1};
  // take: the version that was seen unchanged for its lease.
  // force: the version that the operator saw.  wait: of the holder; only its
  // uuid counts.
  std::optional<Version> seen;
  // Our own versions.  A renewal requires one of them; a take accepts them.
  std::vector<ServiceTime> own;
  bool consistent = false;  // look
  bool wants_row = false;   // renew: the answer must include the row.
  ChangesPtr changes;       // renew, release; null: none.
  // check, and changes of a kept row: the token that the row must have.
  std::int64_t token = 0;
};

class RowFormat;
extern const RowFormat& kDdblock;

// Where a lock is stored, and what every take writes.  All text is UTF-8.
struct RowTarget {
  std::string table;
  std::string key;  // Value of the partition key, with its prefix.
  std::string owner{};
  RowPolicy policy{};
  dynamodb::Item attributes{};  // Written by every take; may include `data`.
  std::string key_name = kKeyAttribute;
  std::string sort_name{};  // Empty: there is no sort key.
  std::string sort_value{};
  const RowFormat* format = &kDdblock;
};

Row read_row(dynamodb::Item item, const RowFormat& layout = kDdblock);
// Which attributes of an item to read: the record's, and on demand also those
// that are stored beside it.
dynamodb::Wanted wanted_of(const RowFormat& layout, bool with_others);
// Whether a record has an attribute of that name; `data` is one.
bool is_record_attribute(const RowFormat& layout, std::string_view attribute);

// --- For layouts that read an item -------------------------------------------

// Parses a whole number that is not negative, which DynamoDB writes as plain
// digits.  Nothing if the attribute is null or anything else.
std::optional<std::int64_t> parse_number(const dynamodb::Attribute* attribute);
// Whether the attribute is a string of 1 to kLongestId bytes.  There is a limit
// because takes send it back to DynamoDB.
constexpr int kLongestId = 1024;
bool is_id(const dynamodb::Attribute* attribute);
// Reads `lease` and `owner`, in layouts that have them under these names.
// Returns the first problem; "" if there is none.
const char* read_lease_and_owner(const dynamodb::Item& item, Row& row);

// 32 hexadecimal digits from 128 bits of the operating system's randomness
// (not of a generator in this process, which a VM snapshot would clone).
std::string fresh_uuid();

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_ROW_HPP
