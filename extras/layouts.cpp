// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// The layouts of other libraries.  There are two families, a class each:
//
//   lockclient, lease     The row says when the lease ends, by the wall clock
//                         of the host that wrote it.
//   dynamolock, awslabs   The row says how long the lease is, and has a version
//                         that each take and renewal replaces: a host that has
//                         seen it unchanged for so long may take the lock.
//
// An attribute that the other library does not know stays in the row when its
// program takes the lock, and would then describe our lease instead of theirs.
// So we write no such attribute: no `lease` in layout lease, and `ttl` and
// `token` nowhere.  In layout lockclient a take replaces the whole row, so
// there `lease` and `owner` do no harm.
//
// To add a layout, declare it in layouts.hpp and define it at the end of this
// file; if it fits neither family, write a class like these.
#include "layouts.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "../ddbmutex/dynamodb/item.hpp"
#include "../ddbmutex/lock/protocol.hpp"
#include "../ddbmutex/lock/requests.hpp"
#include "../ddbmutex/lock/row_format.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using dynamodb::write_number;
using dynamodb::write_text;
using std::chrono::milliseconds;

namespace {

// --- Rows that say when the lease ends ---------------------------------------

constexpr Expressions calendar_rows(const char* record) {
  return {record,
          /*renew=*/"SET #expires = :expires",
          /*release=*/"SET #expires = :released",
          /*take_end=*/"",
          /*release_end=*/"",
          /*wait=*/"",
          /*has_own_version=*/"#uuid = :uuid AND #expires IN (:own)",
          /*is_ours=*/"#uuid = :uuid",
          /*and_held=*/" AND #expires > :released",
          /*and_change=*/"",
          /*or_stale=*/" OR (#uuid = :seen_uuid AND #expires = :seen_expires)",
          /*is_seen=*/"#uuid = :seen_uuid AND #expires = :seen_expires",
          /*may_wait=*/""};
}

constexpr Expressions kLockclientRows = calendar_rows(
    "SET #uuid = :uuid, #expires = :expires, #lease = :lease, #owner = :owner");
constexpr Expressions kLeaseRows =
    calendar_rows("SET #uuid = :uuid, #expires = :expires");

class CalendarLayout final : public RowFormat {
 public:
  constexpr CalendarLayout(dynamodb::AttributeNames the_names,
                           Defaults the_defaults, const Expressions& rows)
      : RowFormat(the_names, the_defaults, rows, rows) {}

  const char* read(const Item& item, Row& row) const override;
  void add_is_free(const RowPolicy& policy, RequestBody& body) const override;

 private:
  // Whether it is lockclient, not lease.  In lease rows must exist: each is a
  // piece of work, which nobody may have leased yet.
  bool is_lockclient() const { return !defaults.must_exist; }
};

const char* CalendarLayout::read(const Item& item, Row& row) const {
  const Attribute* uuid = dynamodb::find(item, attribute("uuid"));
  const bool nobody = uuid == nullptr && !is_lockclient();
  if (!nobody && !is_id(uuid)) {
    return is_lockclient() ? "identifier is not a string of 1 to 1,024 bytes"
                           : "ProcessID is not a string of 1 to 1,024 bytes";
  }
  const auto ns = parse_number(dynamodb::find(item, attribute("expires")));
  if (!ns) {
    return is_lockclient()
               ? "expiry is missing, or not a whole number of nanoseconds"
               : "LeaseUntil is missing, or not a whole number of nanoseconds";
  }
  const char* bad = is_lockclient() ? read_lease_and_owner(item, row) : "";
  if (*bad != '\0') return bad;
  if (!nobody) row.uuid = uuid->value;
  row.expires = ServiceTime(*ns);
  row.kind = Row::Kind::record;
  return "";
}

// A row that read() rejects is not free.  A late copy of our take must not take
// the row again that we have released, so a kept row must not have our uuid.
void CalendarLayout::add_is_free(const RowPolicy& policy,
                                 RequestBody& body) const {
  if (!policy.must_exist) body.add("attribute_not_exists(#key) OR ");
  body.add("(#expires >= :released AND #expires < :earliest");
  body.add(is_lockclient()
               ? " AND attribute_type(#uuid, :string)"
                 " AND size(#uuid) <= :longest_uuid"
                 " AND (attribute_not_exists(#lease)"
                 " OR #lease BETWEEN :shortest_lease AND :longest_lease)"
               : " AND (attribute_not_exists(#uuid)"
                 " OR attribute_type(#uuid, :string)"
                 " AND size(#uuid) <= :longest_uuid)");
  body.add(policy.keeps_row ? " AND #uuid <> :uuid)" : ")");
}

// --- Versions ----------------------------------------------------------------

// To the protocol, a version is a uuid and a number beyond all clocks.  Ours
// are written as "uuid:number"; any other is all uuid, with no number.
constexpr std::size_t kUuidSize = 32;
constexpr std::size_t kMostNumberDigits = 15;

bool all_of(std::string_view text, const char* characters) {
  return text.find_first_not_of(characters) == text.npos;
}

// The number in a version of ours; 0 if it is none of ours.
std::int64_t number_of(std::string_view version) {
  if (version.size() < kUuidSize + 2 || version[kUuidSize] != ':' ||
      !lock::all_of(version.substr(0, kUuidSize), "0123456789abcdef")) {
    return 0;
  }
  const std::string_view digits = version.substr(kUuidSize + 1);
  if (digits.size() > kMostNumberDigits || digits[0] == '0') return 0;
  return dynamodb::parse_digits(digits).value_or(0);
}

bool is_string(const Attribute* attribute) {
  return attribute != nullptr && attribute->type == Attribute::Type::string;
}

// --- Leases in text ----------------------------------------------------------

// A row has a longer lease than ours, see stored_lease().
constexpr std::chrono::hours kLongestStored = 2 * kLongestLease;

// The lease to be stored in a row, in ms.  Waiters of ours add 1 % to a lease,
// in case their clock runs fast.  Those of other libraries do not, so 1 % is
// added here.
std::int64_t stored_lease(milliseconds ttl) {
  constexpr int kDivisor = dynamodb::kRateMargin - 1;
  // Rounded up.
  return (ttl.count() * dynamodb::kRateMargin + kDivisor - 1) / kDivisor;
}

// "20.203s", as Go's time.ParseDuration reads it.
std::string go_duration(std::int64_t ms) {
  std::string text = sigv4::decimal(ms / 1000);
  if (const std::int64_t rest = ms % 1000; rest != 0) {
    text += '.' + sigv4::decimal(1000 + rest).substr(1);
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + "s";
}

// Removes a decimal number with at most one point from the front and returns
// it; -1 if there is none.  (strtod() would ask the locale what a point is.)
double take_decimal(std::string_view& text) {
  double number = 0, unit = 1;
  bool digits = false, fraction = false;
  std::size_t end = 0;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '.' && !fraction) {
      fraction = true;
    } else if (c >= '0' && c <= '9') {
      digits = true;
      if (fraction) unit /= 10;
      number = fraction ? number + (c - '0') * unit : number * 10 + (c - '0');
    } else {
      break;
    }
  }
  text.remove_prefix(end);
  return digits ? number : -1;
}

// Removes a number and a unit from the front and adds them to `ns`.  Returns
// false if there are none.
bool take_part(std::string_view& text, double& ns) {
  constexpr struct {
    char name[4];
    double ns;
  } kUnits[] = {{"ns", 1},   {"us", 1e3}, {"\u00b5s", 1e3}, {"\u03bcs", 1e3},
                {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},      {"h", 3600e9}};
  const double number = take_decimal(text);
  const std::string_view unit =
      text.substr(0, text.find_first_of("0123456789."));
  for (const auto& [name, in_ns] : kUnits) {
    if (number < 0 || name != unit) continue;
    text.remove_prefix(unit.size());
    ns += number * in_ns;
    return true;
  }
  return false;
}

// In ms, rounded up; -1 if it is negative, or no duration as Go writes them.
double read_go_duration(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (text.empty()) return -1;
  double ns = 0;
  while (!text.empty()) {
    if (!take_part(text, ns)) return -1;
  }
  return std::ceil(ns / 1e6);
}

// Returns why that is no lease; "" if it is one.  A lease that is not
// understood must not count as 0: the lock would be taken while it is held.
const char* read_lease_text(const Attribute* attribute, Row& row) {
  if (attribute == nullptr) return "leaseDuration is missing";
  if (!is_string(attribute)) return "leaseDuration is not a string";
  const std::string_view text = attribute->value;
  const bool digits = !text.empty() && lock::all_of(text, "0123456789");
  std::string_view rest = text;
  const double ms = digits ? take_decimal(rest) : read_go_duration(text);
  const milliseconds longest = kLongestStored;
  if (ms < 1 || ms > static_cast<double>(longest.count())) {
    return "leaseDuration is neither \"20s\" nor \"20000\"";
  }
  // Old clients of delta-rs wrote seconds.
  if (digits && ms < 1000) {
    return "leaseDuration is too short for milliseconds";
  }
  row.lease = milliseconds(static_cast<std::int64_t>(ms));
  row.form = digits ? LeaseForm::milliseconds : LeaseForm::go_duration;
  return "";
}

// The text that read_lease_text() reads.
std::string lease_text(milliseconds ttl, LeaseForm form) {
  const std::int64_t ms = stored_lease(ttl);
  return form == LeaseForm::go_duration ? go_duration(ms) : sigv4::decimal(ms);
}

// --- Rows with a version that each write replaces ----------------------------

// delta-rs marks rows that nobody may take as isNonAcquirable.
constexpr dynamodb::AttributeNames kVersionNames = {
    {"owner", "ownerName"},
    {"lease", "leaseDuration"},
    {"version", "recordVersionNumber"},
    {"released", "isReleased"},
    {"barred", "isNonAcquirable"}};

constexpr Expressions kVersionRows = {
    /*record=*/"SET #version = :version, #lease = :lease, #owner = :owner",
    /*renew=*/"SET #version = :version",
    /*release=*/"SET #released = :is_released",
    /*take_end=*/" REMOVE #released",
    /*release_end=*/"",
    /*wait=*/"",
    /*has_own_version=*/
    "#version IN (:own) AND attribute_not_exists(#released)",
    /*is_ours=*/"begins_with(#version, :our_prefix)",
    /*and_held=*/" AND attribute_not_exists(#released)",
    /*and_change=*/"",
    /*or_stale=*/" OR #version = :seen_version",
    /*is_seen=*/
    "#version = :seen_version AND attribute_not_exists(#released)",
    /*may_wait=*/""};

class VersionLayout final : public RowFormat {
 public:
  constexpr VersionLayout(LeaseForm form, Defaults the_defaults)
      : RowFormat(kVersionNames, the_defaults, kVersionRows, kVersionRows),
        form_(form) {}

  const char* read(const Item& item, Row& row) const override;
  void add_is_free(const RowPolicy& policy, RequestBody& body) const override;
  void write_version(std::string_view uuid, ServiceTime number,
                     dynamodb::JsonWriter& json) const override;
  void write_value(std::string_view word, const RowTarget& target,
                   const Request& request,
                   dynamodb::JsonWriter& json) const override;

 private:
  const LeaseForm form_;
};

const char* VersionLayout::read(const Item& item, Row& row) const {
  const auto find = [&](const char* word) {
    return dynamodb::find(item, attribute(word));
  };
  const Attribute* version = find("version");
  const Attribute* owner = find("owner");
  const Attribute* released = find("released");
  const Attribute* data = find("data");
  if (!is_id(version)) {
    return "recordVersionNumber is not a string of 1 to 1,024 bytes";
  }
  if (!is_string(owner)) return "ownerName is not a string";
  const char* bad = read_lease_text(find("lease"), row);
  if (*bad != '\0') return bad;
  if (released != nullptr && !(is_string(released) && released->value == "1")) {
    return "isReleased is not \"1\"";
  }
  if (data != nullptr && data->type != Attribute::Type::binary) {
    return "data is not binary";
  }
  if (find("barred") != nullptr) {
    return "isNonAcquirable is set: nobody may take it";
  }
  const std::int64_t number = number_of(version->value);
  row.uuid.assign(version->value, 0, number > 0 ? kUuidSize : row.uuid.npos);
  row.expires = released != nullptr ? ServiceTime::zero()
                                    : kBeyondAllClocks + ServiceTime(number);
  row.owner = owner->value;
  row.kind = Row::Kind::record;
  return "";
}

// The row is marked as free.  A row that read() rejects is not free, as far as
// a condition can ask.  A late copy of our take must not take the row again
// that we have released.
void VersionLayout::add_is_free(const RowPolicy& policy,
                                RequestBody& body) const {
  if (!policy.must_exist) body.add("attribute_not_exists(#key) OR ");
  body.add(
      "(#released = :is_released"
      " AND attribute_type(#version, :string)"
      " AND size(#version) <= :longest_version"
      " AND attribute_type(#owner, :string)"
      " AND attribute_type(#lease, :string)"
      " AND attribute_not_exists(#barred)"
      " AND (attribute_not_exists(#data) OR attribute_type(#data, :binary))"
      " AND NOT begins_with(#version, :our_prefix))");
}

void VersionLayout::write_version(std::string_view uuid, ServiceTime number,
                                  dynamodb::JsonWriter& json) const {
  if (number <= kBeyondAllClocks) return write_text(json, uuid);
  write_text(json,
             sigv4::join({uuid, ":",
                          sigv4::Digits((number - kBeyondAllClocks).count())}));
}

void VersionLayout::write_value(std::string_view word, const RowTarget& target,
                                const Request& request,
                                dynamodb::JsonWriter& json) const {
  if (word == "version") {
    return write_version(request.uuid, request.stamp, json);
  }
  if (word == "seen_version") {
    return write_version(request.seen->uuid, request.seen->expires, json);
  }
  if (word == "our_prefix") return write_text(json, request.uuid + ":");
  if (word == "is_released") return write_text(json, "1");
  if (word == "binary") return write_text(json, "B");
  if (word == "longest_version") return write_number(json, kLongestId);
  if (word != "lease")
    return RowFormat::write_value(word, target, request, json);
  const bool as_found =
      target.policy.looks_first && request.form != LeaseForm::unknown;
  write_text(json, lease_text(request.lease, as_found ? request.form : form_));
}

// --- The layouts -------------------------------------------------------------

using Take = RowPolicy::Take;

constexpr dynamodb::AttributeNames kLockclientNames = {{"uuid", "identifier"},
                                                       {"expires", "expiry"},
                                                       {"lease", "lease"},
                                                       {"owner", "owner"}};
constexpr dynamodb::AttributeNames kLeaseNames = {{"uuid", "ProcessID"},
                                                  {"expires", "LeaseUntil"}};

constexpr CalendarLayout kLockclient(kLockclientNames, {}, kLockclientRows);
constexpr CalendarLayout kLease(kLeaseNames,
                                {/*stores_end=*/true, /*keeps_rows=*/true,
                                 /*must_exist=*/true, Take::updates},
                                kLeaseRows);

constexpr RowFormat::Defaults dynamolock_defaults(bool lease_as_found) {
  return {/*stores_end=*/false, /*keeps_rows=*/true, /*must_exist=*/false,
          Take::updates, lease_as_found};
}
constexpr VersionLayout kDynamolock(LeaseForm::go_duration,
                                    dynamolock_defaults(false));
constexpr VersionLayout kDynamolockAsFound(LeaseForm::go_duration,
                                           dynamolock_defaults(true));

constexpr RowFormat::Defaults awslabs_defaults(bool lease_as_found) {
  return {/*stores_end=*/false, /*keeps_rows=*/false, /*must_exist=*/false,
          Take::puts, lease_as_found};
}
constexpr VersionLayout kAwslabs(LeaseForm::milliseconds,
                                 awslabs_defaults(false));
constexpr VersionLayout kAwslabsAsFound(LeaseForm::milliseconds,
                                        awslabs_defaults(true));

}  // namespace
}  // namespace lock

namespace layouts {

const lock::RowFormat& lockclient = lock::kLockclient;
const lock::RowFormat& lease = lock::kLease;
const lock::RowFormat& dynamolock = lock::kDynamolock;
const lock::RowFormat& dynamolock_as_found = lock::kDynamolockAsFound;
const lock::RowFormat& awslabs = lock::kAwslabs;
const lock::RowFormat& awslabs_as_found = lock::kAwslabsAsFound;

}  // namespace layouts
}  // namespace v0
}  // namespace ddbmutex
