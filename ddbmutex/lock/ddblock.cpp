// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Our own layout, `ddblock`.  An item has these attributes:
//
//   name     S  partition key: "ddblock-" and the mutex's name
//   uuid     S  128 random bits, fresh for every acquisition on the wire
//   expires  N  service time at which the lease ends, ns since the epoch; also
//               the record's version: each write of a uuid has another value
//   lease    N  ms; a waiter that saw the record unchanged so long may take it
//   owner    S  for people
//   ttl      N  seconds since the epoch, for DynamoDB's own clean-up; not on
//               kept rows
//   token    N  on kept rows: how often the lock has been taken
//   waiting  S  a waiter has missed its turn; its owner, for people
//   data     B  the user's, if there is any; other attributes may be the user's
//               too
//
// A release deletes the row, or keeps it: then `expires` is 0.
#include <chrono>
#include <cstdint>
#include <string_view>

#include "../dynamodb/item.hpp"
#include "requests.hpp"
#include "row_format.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using dynamodb::write_number;
using std::string_view_literals::operator""sv;

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// A token as large as this says nothing about the number of acquisitions.
constexpr std::int64_t kLastToken = 9'000'000'000'000'000'000;

constexpr dynamodb::AttributeNames kDdblockNames = {
    {"uuid", "uuid"},      {"expires", "expires"}, {"lease", "lease"},
    {"owner", "owner"},    {"token", "token"},     {"ttl", "ttl"},
    {"waiting", "waiting"}};

constexpr Expressions kDeletedRows = {
    /*record=*/
    "SET #uuid = :uuid, #expires = :expires, #lease = :lease,"
    " #owner = :owner, #ttl = :ttl",
    /*renew=*/"SET #expires = :expires, #ttl = :ttl",
    /*release=*/"",  // The row is deleted.
    /*take_end=*/" REMOVE #waiting",
    /*release_end=*/"",
    /*wait=*/"SET #waiting = :owner",
    /*has_own_version=*/"#uuid = :uuid AND #expires IN (:own)",
    /*is_ours=*/"#uuid = :uuid",
    /*and_held=*/" AND #expires > :released",
    /*and_change=*/"",
    /*or_stale=*/
    " OR (#uuid = :seen_uuid AND #expires = :seen_expires"
    " AND attribute_not_exists(#token))",
    // A row with a token is never deleted, even if it has got the token after
    // the operator looked at it.
    /*is_seen=*/
    "#uuid = :seen_uuid AND #expires = :seen_expires"
    " AND attribute_not_exists(#token)",
    /*may_wait=*/"#uuid = :seen_uuid AND attribute_not_exists(#waiting)"};

// A take that arrives late can restore an old uuid after others had the lock,
// but the token has moved on.
constexpr Expressions kKeptRows = {
    /*record=*/
    "SET #uuid = :uuid, #expires = :expires, #lease = :lease, #owner = :owner",
    /*renew=*/"SET #expires = :expires",
    /*release=*/"SET #expires = :released",
    /*take_end=*/" ADD #token :one REMOVE #ttl, #waiting",
    /*release_end=*/" REMOVE #waiting",
    /*wait=*/"SET #waiting = :owner",
    /*has_own_version=*/"#uuid = :uuid AND #expires IN (:own)",
    /*is_ours=*/"#uuid = :uuid",
    /*and_held=*/" AND #expires > :released AND #token = :token",
    /*and_change=*/" AND #token = :token",
    /*or_stale=*/" OR (#uuid = :seen_uuid AND #expires = :seen_expires)",
    /*is_seen=*/"#uuid = :seen_uuid AND #expires = :seen_expires",
    /*may_wait=*/
    "#uuid = :seen_uuid AND #expires > :released"
    " AND attribute_not_exists(#waiting)"};

class Ddblock final : public RowFormat {
 public:
  constexpr Ddblock() : RowFormat(kDdblockNames, {}, kDeletedRows, kKeptRows) {}

  const char* read(const Item& item, Row& row) const override;
  void add_is_free(const RowPolicy& policy, RequestBody& body) const override;
  void write_value(std::string_view word, const RowTarget& target,
                   const Request& request,
                   dynamodb::JsonWriter& json) const override;
};

// --- Reading -----------------------------------------------------------------

// Reads all of a record but its token.
const char* read_record(const Item& item, const Attribute* uuid, Row& row) {
  if (!is_id(uuid)) return "uuid is not a string of 1 to 1,024 bytes";
  const Attribute* expires = dynamodb::find(item, "expires");
  if (expires == nullptr) return "expires is missing";
  const auto expires_ns = parse_number(expires);
  if (!expires_ns) return "expires is not a whole number of nanoseconds";
  const char* bad = read_lease_and_owner(item, row);
  if (*bad != '\0') return bad;
  row.uuid = uuid->value;
  row.expires = ServiceTime(*expires_ns);
  row.kind = Row::Kind::record;
  return "";
}

// An attribute that a row without a uuid must not have.
bool needs_uuid(std::string_view name) {
  return name != kDataAttribute && name != "token"sv &&
         is_record_attribute(kDdblock, name);
}

const char* Ddblock::read(const Item& item, Row& row) const {
  row.waited_for = dynamodb::find(item, "waiting") != nullptr;
  if (const Attribute* token = dynamodb::find(item, "token")) {
    row.has_token = true;
    const auto number = parse_number(token);
    row.token = number.value_or(0);
    if (!number || *number >= kLastToken) {
      return "token is not a whole number, or is too large";
    }
  }
  const Attribute* uuid = dynamodb::find(item, "uuid");
  if (uuid != nullptr) return read_record(item, uuid, row);
  row.kind = Row::Kind::bare;
  for (const Attribute& attribute : item) {
    if (needs_uuid(attribute.name)) row.kind = Row::Kind::unknown;
  }
  return "uuid is missing";
}

// --- Writing -----------------------------------------------------------------

// The row has attributes of others only, none of which has a name of ours.
constexpr char kIsBare[] =
    "attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl) AND attribute_not_exists(#waiting)";

// The lease of a record is over.  A row that read() rejects never counts as
// over, so this asks for types and bounds as far as it can.
constexpr char kIsOver[] =
    "#expires >= :released AND #expires < :earliest"
    " AND attribute_type(#uuid, :string) AND size(#uuid) <= :longest_uuid"
    " AND (attribute_not_exists(#lease)"
    " OR #lease BETWEEN :shortest_lease AND :longest_lease)";

// The token can still be incremented.  (A condition cannot ask whether it is
// whole.)
constexpr char kAndCanCount[] =
    " AND (attribute_not_exists(#token)"
    " OR #token BETWEEN :no_token AND :last_token)";

// A late copy of our take must not take the row again that we have released, so
// a kept row must not have our uuid.
void Ddblock::add_is_free(const RowPolicy& policy, RequestBody& body) const {
  if (!policy.keeps_row) {
    body.add("attribute_not_exists(#key) OR (");
    body.add(kIsOver);
    body.add(" AND attribute_not_exists(#token))");
    return;
  }
  body.add("(");
  if (policy.must_exist) body.add("attribute_exists(#key) AND ");
  body.add(kIsBare);
  body.add(kAndCanCount);
  body.add(") OR (");
  body.add(kIsOver);
  body.add(kAndCanCount);
  body.add(" AND #uuid <> :uuid)");
}

std::int64_t clean_up_at(ServiceTime expires) {
  using std::chrono::seconds;  // Nanoseconds might overflow.
  return (std::chrono::duration_cast<seconds>(expires) + seconds(kCleanUpAfter))
      .count();
}

void Ddblock::write_value(std::string_view word, const RowTarget& target,
                          const Request& request,
                          dynamodb::JsonWriter& json) const {
  if (word == "ttl") return write_number(json, clean_up_at(request.stamp));
  if (word == "token") return write_number(json, request.token);
  if (word == "one") return write_number(json, 1);
  if (word == "no_token") return write_number(json, 0);
  // Below the last, so that an increment does not reach it.
  if (word == "last_token") return write_number(json, kLastToken - 2);
  RowFormat::write_value(word, target, request, json);
}

constexpr Ddblock ddblock_layout;

}  // namespace

const RowFormat& kDdblock = ddblock_layout;

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
