// A lock's record and the item that holds it, in layout `ddblock` (layouts.hpp
// has the others):
//
//   name     S  partition key: "ddblock-" and the mutex's name
//   uuid     S  128 random bits, fresh for every acquisition on the wire
//   expires  N  service time at which the lease ends, ns since the epoch; the
//               record's version too, since no two writes of one uuid agree
//   lease    N  ms; a waiter that saw the record unchanged so long may take it
//   owner    S  for people
//   ttl      N  seconds since the epoch, for DynamoDB's own clean-up; not on
//               kept rows
//   token    N  on kept rows: how often the lock has been taken
//   data     B  the user's, if there is any; beside attributes of his own
//
// A row is deleted when its lock is released, or kept: then `expires` is 0.
// Reading is strict: a record that is not understood is never taken.
#ifndef DDBMUTEX_RECORD_HPP
#define DDBMUTEX_RECORD_HPP

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "answer.hpp"
#include "clock.hpp"
#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::is_utf8;
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
    bare,     // There is, with others' attributes alone, and perhaps a token.
    record,   // A lock record: uuid, expires and, unless foreign, lease.
    unknown,  // Anything else.  `problem` names the attribute.
  };
  Kind kind = Kind::absent;
  // These two are the record's version.  Whose it is; empty if nobody's.
  std::string uuid;
  // When the lease ends, or a time beyond all clocks (protocol.hpp) where rows
  // do not say; 0: released, whatever else has changed.
  ServiceTime expires{};
  // Nothing if a client wrote the record that knows no such attribute.
  std::optional<std::chrono::milliseconds> lease;
  std::string owner;  // Empty if not given.
  bool kept = false;  // It bears a token, of whatever kind.
  std::int64_t token = 0;
  char form = 0;  // In which the lease is told, where a layout has two.
  const char* problem = "";  // "expires is not a whole number of nanoseconds"
  dynamodb::Item others;     // What is no attribute of the record; `data` is.
  std::string unread;  // The first attribute that was left out; may be empty.
};

// How a lock uses its row.
struct RowUse {
  bool keep = false;        // Beyond the release, with a token.
  bool keep_data = false;   // A take leaves `data` where it is.
  bool must_exist = false;  // keep: a take makes no row.

#ifdef DDBMUTEX_NO_LAYOUTS
  static constexpr bool tells_end = true, calendars = false;
  static constexpr bool looks_first = false;
  static constexpr std::chrono::milliseconds margin{};

  bool takes_by_update() const { return keep || keep_data; }
#else
  // In layouts that are shared with other programs.
  enum class Take : char { usual, puts, updates };
  Take take = Take::usual;
  bool tells_end = true;     // The row says when a lease ends.
  bool calendars = false;    // The others compare that with their calendars,
  bool looks_first = false;  // A take: to write what it has found.
  std::chrono::milliseconds margin{};  // so it is later by this.

  // A take is an UpdateItem, whose answer tells the row, not a PutItem.
  bool takes_by_update() const {
    return take == Take::usual ? keep || keep_data : take == Take::updates;
  }
#endif
};

// The attribute of a record that is the user's.
constexpr const char* kDataAttribute = "data";

// What a renewal or a release is to change besides.
struct Changes {
  dynamodb::Item set;
  std::vector<std::string> remove;
};

// Without its part "attributes" the library stores nothing beside the record,
// and keeps nothing of what others have stored there.
constexpr bool kStoresMore = dynamodb::kReadsMembers;
#ifdef DDBMUTEX_NO_ATTRIBUTES
struct ChangesPtr {  // Always null.
  constexpr ChangesPtr(std::nullptr_t = nullptr) {}
  constexpr explicit operator bool() const { return false; }
  constexpr const Changes* operator->() const { return nullptr; }
};
constexpr bool operator!=(ChangesPtr, std::nullptr_t) { return false; }
#else
using ChangesPtr = std::shared_ptr<const Changes>;
#endif

// What one request is to do.  protocol.hpp decides it, a layout writes it as
// JSON.
struct Request {
  enum class Verb {
    take,     // If the lock is free, over, stale or ours already.
    renew,    // UpdateItem of expires, if the record is ours.
    release,  // DeleteItem or UpdateItem, if the record is ours.
    look,     // GetItem.
    force,    // Frees the lock if the row bears just that version: an operator.
    check,    // A ConditionCheck: what holds while the lock is ours.
  };
  struct Version {
    std::string uuid;
    ServiceTime expires;
  };

  Verb verb = Verb::look;
  std::string uuid;  // All but look.
  ServiceTime
      stamp{};  // take, renew: `expires` as it will be; force: as it is.
  std::chrono::milliseconds lease{};  // take: how long waiters must wait.
  ServiceTime earliest{1};      // take: a lease that ended before is over.
  std::optional<Version> seen;  // take: seen unchanged for its lease.
  // take: our own versions that the row may bear; renew: one of them it must.
  std::vector<ServiceTime> own;
  char form = 0;            // take: of the lease, as Row has it.
  bool consistent = false;  // look
  bool tell = false;        // renew: answer with the row as it is then.
  ChangesPtr changes;       // renew, release; null: none.
  // With changes of a kept row, check: the token that it must bear besides.
  std::int64_t token = 0;
};

struct Place;
class RequestBody;

// How rows are written and read: all that is known of it but here is what Row
// and Request say.
struct Layout {
  // Of an item that is there.  Says what is not understood, else sets the kind.
  const char* (*read)(const char* names, const dynamodb::Item& item, Row& row);
  // What update and condition are, or the item; of all but a look.
  void (*write)(const Place& place, const Request& request, RequestBody& body);
  // Puts {"S":"..."} or the like behind the text: what the word stands for that
  // ":" is before, in the attempt that bears the stamp.
  void (*value)(sigv4::Text& text, char word, const Place& place,
                const Request& request, ServiceTime stamp);
  char version;  // The word for what each write changes.
  // Of a row, all but the key and what is the user's: each behind its word,
  // with blanks between.
  const char* names;
};
// What the word stands for that "#" is before in expressions, see
// request_body.hpp; empty if there is none.
std::string_view name_of(char word, const char* names);
extern const Layout kDdblock;

// Where a lock lives and what else its item says.  All UTF-8.
struct Place {
  std::string table;
  std::string key;  // Value of the partition key, prefix and all.
  std::string owner{};
  RowUse use{};
  dynamodb::Item attributes{};  // Every take sets these; `data` may be there.
  std::string key_name = kKeyAttribute;
  std::string sort_name{};  // Empty: there is no sort key.
  std::string sort_value{};
#ifdef DDBMUTEX_NO_LAYOUTS
  static constexpr const Layout* layout = &kDdblock;
#else
  const Layout* layout = &kDdblock;
#endif
};

// What is read of an item with such a record: the record, and with `others` all
// that is stored beside it.
inline dynamodb::Wanted wanted_of(const Layout& layout, bool others) {
  return {layout.names, kDataAttribute, others && kStoresMore};
}
// Moves what it needs out of the item.  REQUIRES: the row is as a new one.
void read_row(dynamodb::Item&& item, const Layout& layout, Row& row);
inline Row read_row(dynamodb::Item item, const Layout& layout = kDdblock) {
  Row row;
  read_row(std::move(item), layout, row);
  return row;
}
// Appends the body of the request: JSON for action_of() it.
void write_request(const Place& place, const Request& request,
                   sigv4::Text& body, dynamodb::TheseParts = {});
dynamodb::Action action_of(Request::Verb verb, const RowUse& use);
// Whether a record has an attribute of that name; `data` is one.
bool is_of_record(const Layout& layout, std::string_view attribute);

// A whole number that is not negative.  DynamoDB writes those as plain digits.
std::optional<std::int64_t> parse_number(const dynamodb::Attribute& attribute);
// Whether it is a string of 1 to 1,024 bytes: what is taken is sent back to
// DynamoDB, and must not be of any size.
constexpr int kLongestId = 1024;
bool is_id(const dynamodb::Attribute* attribute);
// Lease and owner, as they are called in both layouts that tell the end of a
// lease in this form.  Says what is not understood.
const char* read_lease_and_owner(const dynamodb::Item& item, Row& row);

// 32 hexadecimal digits from 128 bits of the operating system's randomness
// (not of a generator in this process, which a VM snapshot would clone).
std::string fresh_uuid();

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_RECORD_HPP
