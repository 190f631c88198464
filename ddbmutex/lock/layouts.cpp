#ifndef DDBMUTEX_NO_LAYOUTS
// The layouts of other libraries.  There are two families, a class each:
//
//   lockclient, lease     The row says when the lease ends, by the wall clock
//                         of the host that wrote it.
//   dynamolock, awslabs   The row says how long the lease is, and has a version
//                         that each take and renewal replaces: a host that has
//                         seen it unchanged for so long may take the lock.
//
// Attributes that a layout does not know would stay when another program takes
// the lock, and then tell of its lease what was true of ours.  So we write
// none: no `lease` in layout lease, and `ttl` and `token` nowhere.  In layout
// lockclient a take replaces the whole row, so there `lease` and `owner` do no
// harm.
//
// To add a layout, declare it in layouts.hpp and define it at the end of this
// file; if it fits neither family, write a class like these.
#include "layouts.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

#include "../../sigv4/text.hpp"
#include "../dynamodb/item.hpp"
#include "protocol.hpp"
#include "requests.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using std::chrono::milliseconds;

namespace {

// --- Rows that say when the lease ends ---------------------------------------

class CalendarLayout final : public Layout {
 public:
  constexpr CalendarLayout(dynamodb::AttributeNames the_names,
                           Habits the_habits)
      : Layout(the_names, the_habits) {}

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

 private:
  // Of the two, lockclient: where rows must exist, each is work, which nobody
  // may have leased yet, and which has no attributes of ours.
  bool is_lockclient() const { return !habits.must_exist; }
  void add_is_over(const RowPolicy& policy, const Request& request,
                   RequestBody& body) const;
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

// What read() would not understand is not over.  A row that this call has
// released itself must not be taken by one of its own takes that arrives late,
// so a kept row must not have our uuid.
void CalendarLayout::add_is_over(const RowPolicy& policy,
                                 const Request& request,
                                 RequestBody& body) const {
  body.add("(#expires >= :released AND #expires < :earliest")
      .bind(":released", 0)
      .bind(":earliest", request.earliest.count());
  body.add(is_lockclient() ? " AND attribute_type(#uuid, :string)"
                             " AND size(#uuid) <= :longest_uuid"
                           : " AND (attribute_not_exists(#uuid)"
                             " OR attribute_type(#uuid, :string)"
                             " AND size(#uuid) <= :longest_uuid)")
      .bind(":string", "S")
      .bind(":longest_uuid", kLongestId);
  if (is_lockclient()) {
    body.add(
            " AND (attribute_not_exists(#lease)"
            " OR #lease BETWEEN :shortest_lease AND :longest_lease)")
        .bind(":shortest_lease", kShortestLease.count())
        .bind(":longest_lease", milliseconds(kLongestLease).count());
  }
  if (policy.keep) body.add(" AND #uuid <> :uuid").bind(":uuid", request.uuid);
  body.add(")");
}

// The row has our uuid and one of our stamps.
void add_is_own_end(const Request& request, RequestBody& body) {
  body.add("#uuid = :uuid AND #expires IN (").bind(":uuid", request.uuid);
  for (const ServiceTime stamp : request.own) body.element(stamp.count());
  body.add(")");
}

// `data` stays, or the take sets it, or it goes.
bool removes_data(const RowTarget& target) {
  return target.policy.takes_by_update() && !target.policy.keep_data &&
         dynamodb::find(target.attributes, kDataAttribute) == nullptr;
}

void CalendarLayout::take(const RowTarget& target, const Request& request,
                          RequestBody& body) const {
  body.begin_record(target.policy);
  body.set("uuid", request.uuid);
  body.set("expires", request.stamp.count());
  if (is_lockclient()) {
    body.set("lease", request.lease.count());
    body.set("owner", target.owner);
  }
  body.set(target.attributes);
  if (removes_data(target)) body.add(" REMOVE #data");
  body.condition(target.policy.must_exist ? ""
                                          : "attribute_not_exists(#key) OR ");
  add_is_over(target.policy, request, body);
  if (request.seen) {
    body.add(" OR (#uuid = :seen_uuid AND #expires = :seen_expires)")
        .bind(":seen_uuid", request.seen->uuid)
        .bind(":seen_expires", request.seen->expires.count());
  }
  if (!request.own.empty()) {
    body.add(" OR (");
    add_is_own_end(request, body);
    body.add(")");
  }
}

void CalendarLayout::renew(const RowTarget&, const Request& request,
                           RequestBody& body) const {
  body.update();
  body.set("expires", request.stamp.count());
  body.change(request.changes);
  body.condition("");
  add_is_own_end(request, body);
}

void CalendarLayout::release(const RowTarget& target, const Request& request,
                             RequestBody& body) const {
  if (target.policy.keep) {
    body.update("SET #expires = :released").bind(":released", 0);
    body.change(request.changes);
  }
  body.condition("#uuid = :uuid").bind(":uuid", request.uuid);
}

void CalendarLayout::force(const RowTarget& target, const Request& request,
                           RequestBody& body) const {
  if (target.policy.keep) {
    body.update("SET #expires = :released").bind(":released", 0);
  }
  body.condition("#uuid = :seen_uuid AND #expires = :seen_expires")
      .bind(":seen_uuid", request.uuid)
      .bind(":seen_expires", request.stamp.count());
}

void CalendarLayout::check(const RowTarget&, const Request& request,
                           RequestBody& body) const {
  body.condition("#uuid = :uuid AND #expires > :released")
      .bind(":uuid", request.uuid)
      .bind(":released", 0);
}

// --- Versions ----------------------------------------------------------------

// To the protocol, a version is a uuid and a number beyond all clocks.  Ours
// are written as "uuid:number"; any other is all uuid, with no number.
constexpr std::size_t kUuidSize = 32;
constexpr std::size_t kMostNumberDigits = 15;

std::string version_text(std::string_view uuid, ServiceTime number) {
  if (number <= kBeyondAllClocks) return std::string(uuid);
  return sigv4::format("%s:%s", uuid, (number - kBeyondAllClocks).count());
}

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

// --- Leases in text ----------------------------------------------------------

// A lease is told longer than it is counted, see told_lease().
constexpr std::chrono::hours kLongestTold = 2 * kLongestLease;

// The lease as a row tells it, in ms.  Other clients wait exactly that long,
// but ours wait 1 % longer than the lease, so 1 % is added here.
std::int64_t told_lease(milliseconds ttl) {
  constexpr int kOf = dynamodb::kRateMargin - 1;
  return (ttl.count() * dynamodb::kRateMargin + kOf - 1) / kOf;
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

// In ms, rounded up; -1 if it is not a duration as Go writes them, or negative.
double read_go_duration(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (text.empty()) return -1;
  double ns = 0;
  while (!text.empty()) {
    if (!take_part(text, ns)) return -1;
  }
  return std::ceil(ns / 1e6);
}

// Returns why that is no lease; empty if it is one.  A lease that is not
// understood is never over: whoever reads it as 0 takes a lock that is held.
const char* read_lease_text(const Attribute* attribute, Row& row) {
  if (attribute == nullptr) return "leaseDuration is missing";
  if (attribute->type != Attribute::Type::string)
    return "leaseDuration is not a string";
  const std::string_view text = attribute->value;
  const bool digits = !text.empty() && lock::all_of(text, "0123456789");
  std::string_view rest = text;
  const double ms = digits ? take_decimal(rest) : read_go_duration(text);
  const milliseconds longest = kLongestTold;
  if (ms < 1 || ms > static_cast<double>(longest.count())) {
    return "leaseDuration is neither \"20s\" nor \"20000\"";
  }
  // Old clients of delta-rs wrote seconds there.
  if (digits && ms < 1000) {
    return "leaseDuration is too short for milliseconds";
  }
  row.lease = milliseconds(static_cast<std::int64_t>(ms));
  row.form = digits ? LeaseForm::milliseconds : LeaseForm::go_duration;
  return "";
}

// The other direction of read_lease_text().
std::string lease_text(milliseconds ttl, LeaseForm form) {
  const std::int64_t told = told_lease(ttl);
  return form == LeaseForm::go_duration ? go_duration(told)
                                        : sigv4::decimal(told);
}

// --- Rows with a version that each write replaces ----------------------------

class VersionLayout final : public Layout {
 public:
  constexpr VersionLayout(LeaseForm form, Habits the_habits)
      : Layout(kNames, the_habits), form_(form) {}

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

 private:
  // delta-rs marks rows that nobody may take as isNonAcquirable.
  static constexpr dynamodb::AttributeNames kNames = {
      {"owner", "ownerName"},
      {"lease", "leaseDuration"},
      {"version", "recordVersionNumber"},
      {"released", "isReleased"},
      {"barred", "isNonAcquirable"}};

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
  if (owner == nullptr || owner->type != Attribute::Type::string) {
    return "ownerName is not a string";
  }
  const char* bad = read_lease_text(find("lease"), row);
  if (*bad != '\0') return bad;
  const bool odd =
      released != nullptr &&
      (released->type != Attribute::Type::string || released->value != "1");
  if (odd) return "isReleased is not \"1\"";
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

// The version is any of ours.
RequestBody& add_is_ours(const Request& request, RequestBody& body) {
  return body.add("begins_with(#version, :our_prefix)")
      .bind(":our_prefix", request.uuid + ":");
}

// The version is one of ours that may still be there.
void add_is_own_version(const Request& request, RequestBody& body) {
  body.add("#version IN (");
  for (const ServiceTime number : request.own) {
    body.element(version_text(request.uuid, number));
  }
  body.add(") AND attribute_not_exists(#released)");
}

// The row is marked as free.  What read() would not understand is not free, as
// far as a condition can ask.  A row that this call has released itself must
// not be taken by one of its own takes that arrives late.
void add_is_released(const Request& request, RequestBody& body) {
  body.add(
          "(#released = :is_released"
          " AND attribute_type(#version, :string)"
          " AND size(#version) <= :longest_version"
          " AND attribute_type(#owner, :string)"
          " AND attribute_type(#lease, :string)"
          " AND attribute_not_exists(#barred)"
          " AND (attribute_not_exists(#data)"
          " OR attribute_type(#data, :binary)) AND NOT ")
      .bind(":is_released", "1")
      .bind(":string", "S")
      .bind(":longest_version", kLongestId)
      .bind(":binary", "B");
  add_is_ours(request, body).add(")");
}

void VersionLayout::take(const RowTarget& target, const Request& request,
                         RequestBody& body) const {
  const bool as_found =
      target.policy.looks_first && request.form != LeaseForm::unknown;
  body.begin_record(target.policy);
  body.set("version", version_text(request.uuid, request.stamp));
  body.set("lease", lease_text(request.lease, as_found ? request.form : form_));
  body.set("owner", target.owner);
  body.set(target.attributes);
  if (target.policy.takes_by_update()) body.add(" REMOVE #released");
  if (removes_data(target)) body.add(", #data");
  body.condition(target.policy.must_exist ? ""
                                          : "attribute_not_exists(#key) OR ");
  add_is_released(request, body);
  if (request.seen) {
    body.add(" OR #version = :seen_version")
        .bind(":seen_version",
              version_text(request.seen->uuid, request.seen->expires));
  }
  if (!request.own.empty()) {
    body.add(" OR (");
    add_is_own_version(request, body);
    body.add(")");
  }
}

void VersionLayout::renew(const RowTarget&, const Request& request,
                          RequestBody& body) const {
  body.update();
  body.set("version", version_text(request.uuid, request.stamp));
  body.change(request.changes);
  body.condition("");
  add_is_own_version(request, body);
}

void VersionLayout::release(const RowTarget& target, const Request& request,
                            RequestBody& body) const {
  if (target.policy.keep) {
    body.update("SET #released = :is_released").bind(":is_released", "1");
    body.change(request.changes);
  }
  body.condition("");
  add_is_ours(request, body);
}

void VersionLayout::force(const RowTarget& target, const Request& request,
                          RequestBody& body) const {
  if (target.policy.keep) {
    body.update("SET #released = :is_released").bind(":is_released", "1");
  }
  body.condition("#version = :seen_version AND attribute_not_exists(#released)")
      .bind(":seen_version", version_text(request.uuid, request.stamp));
}

void VersionLayout::check(const RowTarget&, const Request& request,
                          RequestBody& body) const {
  body.condition("");
  add_is_ours(request, body).add(" AND attribute_not_exists(#released)");
}

// --- The layouts -------------------------------------------------------------

using Take = RowPolicy::Take;

constexpr dynamodb::AttributeNames kLockclientNames = {{"uuid", "identifier"},
                                                       {"expires", "expiry"},
                                                       {"lease", "lease"},
                                                       {"owner", "owner"}};
constexpr dynamodb::AttributeNames kLeaseNames = {{"uuid", "ProcessID"},
                                                  {"expires", "LeaseUntil"}};

constexpr CalendarLayout lockclient_layout(kLockclientNames, {});
constexpr CalendarLayout lease_layout(kLeaseNames,
                                      {/*tells_end=*/true, /*keeps_rows=*/true,
                                       /*must_exist=*/true, Take::updates});
constexpr VersionLayout dynamolock_layout(
    LeaseForm::go_duration, {/*tells_end=*/false, /*keeps_rows=*/true,
                             /*must_exist=*/false, Take::updates});
constexpr VersionLayout awslabs_layout(LeaseForm::milliseconds,
                                       {/*tells_end=*/false,
                                        /*keeps_rows=*/false,
                                        /*must_exist=*/false, Take::puts});

}  // namespace

const Layout& kLockclient = lockclient_layout;
const Layout& kLease = lease_layout;
const Layout& kDynamolock = dynamolock_layout;
const Layout& kAwslabs = awslabs_layout;

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
#endif
