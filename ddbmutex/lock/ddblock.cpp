// Our own layout, `ddblock`.  An item has these attributes:
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
//   data     B  the user's, if there is any; other attributes may be the user's
//               too
//
// A release deletes the row, or keeps it: then `expires` is 0.
#include <chrono>
#include <cstdint>
#include <string_view>

#include "../dynamodb/item.hpp"
#include "layouts.hpp"
#include "requests.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using std::string_view_literals::operator""sv;

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// A token as large as this says nothing about the number of acquisitions.
constexpr std::int64_t kLastToken = 9'000'000'000'000'000'000;

constexpr dynamodb::AttributeNames kDdblockNames = {
    {"uuid", "uuid"},   {"expires", "expires"}, {"lease", "lease"},
    {"owner", "owner"}, {"token", "token"},     {"ttl", "ttl"}};

class Ddblock final : public Layout {
 public:
  constexpr Ddblock() : Layout(kDdblockNames, {}) {}

  const char* read(const Item& item, Row& row) const override;
  void take(const RowTarget& target, const Request& request,
            RequestBody& body) const override;
  void renew(const RowTarget& target, const Request& request,
             RequestBody& body) const override;
  void release(const RowTarget& target, const Request& request,
               RequestBody& body) const override;
  void force(const RowTarget& target, const Request& request,
             RequestBody& body) const override;
  void check(const RowTarget& target, const Request& request,
             RequestBody& body) const override;
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
         is_of_record(kDdblock, name);
}

const char* Ddblock::read(const Item& item, Row& row) const {
  if (const Attribute* token = dynamodb::find(item, "token")) {
    row.kept = true;
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

std::int64_t clean_up_at(ServiceTime expires) {
  using std::chrono::seconds;  // Nanoseconds might overflow.
  return (std::chrono::duration_cast<seconds>(expires) + seconds(kCleanUpAfter))
      .count();
}

// The row has attributes of others only, none of which has a name of ours.
constexpr char kIsBare[] =
    "attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl)";

// The lease of a record is over.  What read() would not understand is not over,
// so this asks for types and bounds as far as a condition can.
void add_is_over(const Request& request, RequestBody& body) {
  body.add(
          "#expires >= :released AND #expires < :earliest"
          " AND attribute_type(#uuid, :string) AND size(#uuid) <= :longest_uuid"
          " AND (attribute_not_exists(#lease)"
          " OR #lease BETWEEN :shortest_lease AND :longest_lease)")
      .bind(":released", 0)
      .bind(":earliest", request.earliest.count())
      .bind(":string", "S")
      .bind(":longest_uuid", kLongestId)
      .bind(":shortest_lease", kShortestLease.count())
      .bind(":longest_lease", std::chrono::milliseconds(kLongestLease).count());
}

// One can be added to the token.  (A condition cannot ask whether it is whole.)
void add_can_count(RequestBody& body) {
  body.add(
          " AND (attribute_not_exists(#token)"
          " OR #token BETWEEN :no_token AND :last_token)")
      .bind(":no_token", 0)
      .bind(":last_token", kLastToken - 2);
}

// A row that this call has released itself must not be taken by one of its own
// takes that arrives late, so a kept row must not have our uuid.
void add_is_free(const RowPolicy& policy, const Request& request,
                 RequestBody& body) {
  if (!policy.keep) {
    body.condition("attribute_not_exists(#key) OR (");
    add_is_over(request, body);
    body.add(" AND attribute_not_exists(#token))");
    return;
  }
  body.condition("(");
  if (policy.must_exist) body.add("attribute_exists(#key) AND ");
  body.add(kIsBare);
  add_can_count(body);
  body.add(") OR (");
  add_is_over(request, body);
  add_can_count(body);
  body.add(" AND #uuid <> :uuid)").bind(":uuid", request.uuid);
}

// The row bears our uuid and one of our stamps.
void add_is_own(const Request& request, RequestBody& body) {
  body.add("#uuid = :uuid AND #expires IN (").bind(":uuid", request.uuid);
  for (const ServiceTime stamp : request.own) body.element(stamp.count());
  body.add(")");
}

// A take that arrives late can bring a uuid back after others had the lock, but
// not its token.
void add_has_token(const Request& request, RequestBody& body) {
  body.add(" AND #token = :token").bind(":token", request.token);
}

void write_record(const RowTarget& target, const Request& request,
                  RequestBody& body) {
  const RowPolicy& policy = target.policy;
  body.set("uuid", request.uuid);
  body.set("expires", request.stamp.count());
  body.set("lease", request.lease.count());
  body.set("owner", target.owner);
  if (!policy.keep) body.set("ttl", clean_up_at(request.stamp));
  body.set(target.attributes);
  if (!policy.keep) return;
  body.add(" ADD #token :one REMOVE #ttl").bind(":one", 1);
  const bool replaced =
      dynamodb::find(target.attributes, kDataAttribute) != nullptr;
  if (!policy.keep_data && !replaced) body.add(", #data");
}

void Ddblock::take(const RowTarget& target, const Request& request,
                   RequestBody& body) const {
  body.begin_record(target.policy);
  write_record(target, request, body);
  add_is_free(target.policy, request, body);
  if (request.seen) {
    body.add(" OR (#uuid = :seen_uuid AND #expires = :seen_expires")
        .bind(":seen_uuid", request.seen->uuid)
        .bind(":seen_expires", request.seen->expires.count());
    if (!target.policy.keep) body.add(" AND attribute_not_exists(#token)");
    body.add(")");
  }
  if (!request.own.empty()) {
    body.add(" OR (");
    add_is_own(request, body);
    body.add(")");
  }
}

void Ddblock::renew(const RowTarget& target, const Request& request,
                    RequestBody& body) const {
  const bool keep = target.policy.keep;
  body.update();
  body.set("expires", request.stamp.count());
  if (!keep) body.set("ttl", clean_up_at(request.stamp));
  body.change(request.changes);
  body.condition("");
  add_is_own(request, body);
  if (keep && request.changes) add_has_token(request, body);
}

void Ddblock::release(const RowTarget& target, const Request& request,
                      RequestBody& body) const {
  const bool keep = target.policy.keep;
  if (keep) {
    body.update("SET #expires = :released").bind(":released", 0);
    body.change(request.changes);
  }
  body.condition("#uuid = :uuid").bind(":uuid", request.uuid);
  if (keep && request.changes) add_has_token(request, body);
}

// A row with a token is never deleted, whatever the operator was told about it.
void Ddblock::force(const RowTarget& target, const Request& request,
                    RequestBody& body) const {
  const bool keep = target.policy.keep;
  if (keep) body.update("SET #expires = :released").bind(":released", 0);
  body.condition("#uuid = :seen_uuid AND #expires = :seen_expires")
      .bind(":seen_uuid", request.uuid)
      .bind(":seen_expires", request.stamp.count());
  if (!keep) body.add(" AND attribute_not_exists(#token)");
}

void Ddblock::check(const RowTarget& target, const Request& request,
                    RequestBody& body) const {
  body.condition("#uuid = :uuid AND #expires > :released")
      .bind(":uuid", request.uuid)
      .bind(":released", 0);
  if (target.policy.keep) add_has_token(request, body);
}

constexpr Ddblock ddblock_layout;

}  // namespace

const Layout& kDdblock = ddblock_layout;

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
