#ifndef DDBMUTEX_NO_LAYOUTS
#include "layouts.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../sigv4/text.hpp"
#include "json.hpp"
#include "protocol.hpp"
#include "request_body.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {
namespace shared {
namespace {

using dynamodb::Attribute;
using dynamodb::Item;
using lock::action_of;
using lock::append_number;
using lock::append_text;
using lock::kBeyondAllClocks;
using lock::kDataAttribute;
using lock::kLongestLease;
using lock::kShortestLease;
using lock::Place;
using lock::Request;
using lock::Row;
using lock::RowUse;
using lock::ServiceTime;
using sigv4::append;
using sigv4::Digits;
using sigv4::join;
using sigv4::Text;
using std::chrono::milliseconds;
using Type = Attribute::Type;
using Verb = Request::Verb;

// --- The table of layouts ----------------------------------------------------

Row read_lockclient(const Item& item);
Row read_lease(const Item& item);
Row read_versions(const Item& item);
void write(const Place& place, const Request& request, Text& text);

// How a lease is told: not at all; as a number of ms; or as text, as Go writes
// a duration or as so many ms.
enum class Form : char { none, number, go, ms };

// A layout.  The name of an attribute that it has not is empty.
struct Kind {
  bool versions() const { return version[0] != '\0'; }

  // Where a lease ends:
  char uuid[11];     // S: who holds it.
  char expires[11];  // N, ns: when the lease ends; 0 if it was released.
  // Where a version is seen:
  char version[20];   // S: new with each take and renewal.
  char released[11];  // S "1", where the lock is free.
  char owner[10];     // S, for people.
  char lease[14];     // How long a waiter must have seen the row unchanged.
  Form form;          // Of that.
  bool keeps;         // The row, at a release, unless told otherwise.
  bool must_exist;    // Nobody makes rows.
  RowUse::Take take;
};

constexpr const char* kOfLockclient[] = {"identifier", "expiry", "lease",
                                         "owner", nullptr};
constexpr const char* kOfLease[] = {"ProcessID", "LeaseUntil", nullptr};
// delta-rs marks what nobody is to take so.
constexpr char kBarred[] = "isNonAcquirable";
constexpr const char* kOfVersions[] = {
    "ownerName",  "leaseDuration", "recordVersionNumber",
    "isReleased", kBarred,         nullptr};

// A `lease` of ours is no part of lockclient's layout, but whoever else takes
// the lock there replaces the whole row.  In layout lease it would stay when
// another takes the lock, and tell of his lease what was true of ours; so none
// is written there, and none believed.  The same goes for `ttl` and `token`
// everywhere: dynamolock copies what it does not know.
// In the order of Layout, behind ddblock.
constexpr Kind kKinds[] = {
    {"identifier", "expiry", "", "", "owner", "lease", Form::number, false,
     false, RowUse::Take::usual},
    {"ProcessID", "LeaseUntil", "", "", "", "", Form::none, true, true,
     RowUse::Take::updates},
    {"", "", "recordVersionNumber", "isReleased", "ownerName", "leaseDuration",
     Form::go, true, false, RowUse::Take::updates},
    {"", "", "recordVersionNumber", "isReleased", "ownerName", "leaseDuration",
     Form::ms, false, false, RowUse::Take::puts},
};

const lock::Layout kLayouts[] = {
    {read_lockclient, write, action_of, kOfLockclient},
    {read_lease, write, action_of, kOfLease},
    {read_versions, write, action_of, kOfVersions},
    {read_versions, write, action_of, kOfVersions},
};

// Null for ddblock, and for what is no layout.
const Kind* kind_of(Layout layout) {
  const auto place = static_cast<std::size_t>(layout) - 1;
  return place < std::size(kKinds) ? &kKinds[place] : nullptr;
}

// As much of a foreign version or owner is sent back to DynamoDB.
constexpr std::size_t kLongestId = 1024;

// A lease that is told in text is longer than what its holder counts, see
// told_lease().
constexpr std::chrono::hours kLongestTold = 2 * kLongestLease;

// --- Versions ----------------------------------------------------------------

// The protocol has a version as a uuid and a number beyond all clocks.  Ours
// are "uuid:number"; any other is all uuid, with no number.
constexpr std::size_t kUuidSize = 32;
constexpr std::size_t kMostNumberDigits = 15;

std::string version_text(std::string_view uuid, ServiceTime number) {
  if (number <= kBeyondAllClocks) return std::string(uuid);
  return join({uuid, ":", Digits((number - kBeyondAllClocks).count())});
}

bool all_of(std::string_view text, const char* those) {
  return text.find_first_not_of(those) == text.npos;
}

// What a version of ours has for a number; 0 if it is none of ours.
std::int64_t number_of(std::string_view version) {
  if (version.size() < kUuidSize + 2 || version[kUuidSize] != ':' ||
      !all_of(version.substr(0, kUuidSize), "0123456789abcdef")) {
    return 0;
  }
  const std::string_view digits = version.substr(kUuidSize + 1);
  if (digits.size() > kMostNumberDigits || digits[0] == '0' ||
      !all_of(digits, "0123456789")) {
    return 0;
  }
  std::int64_t number = 0;
  for (const char digit : digits) number = 10 * number + (digit - '0');
  return number;
}

// --- Leases in text ----------------------------------------------------------

// They wait for the lease that they read and no 1 % longer, which is ours to
// allow for.
std::int64_t told_lease(milliseconds ttl) {
  constexpr int kOf = dynamodb::kRateMargin - 1;
  return (ttl.count() * dynamodb::kRateMargin + kOf - 1) / kOf;
}

// "20.203s", as Go's time.ParseDuration reads it.
std::string go_duration(std::int64_t ms) {
  std::string text = sigv4::decimal(ms / 1000);
  if (const std::int64_t rest = ms % 1000; rest != 0) {
    const Digits digits(1000 + rest);
    append(text, {".", std::string_view(digits).substr(1)});
    text.erase(text.find_last_not_of('0') + 1);
  }
  return text + "s";
}

// Takes decimal digits off the front, with one point at the most, and says what
// they are; nothing if there are none.  (Not strtod(), which asks the locale
// what a point is.)
std::optional<double> take_decimal(std::string_view& text) {
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
  return digits ? std::optional<double>(number) : std::nullopt;
}

// Takes a number and a unit off the front, and adds what they are in ns.
// False if there are none.
bool take_part(std::string_view& text, double& ns) {
  constexpr struct {
    char name[4];
    double ns;
  } kUnits[] = {{"ns", 1},   {"us", 1e3}, {"\u00b5s", 1e3}, {"\u03bcs", 1e3},
                {"ms", 1e6}, {"s", 1e9},  {"m", 60e9},      {"h", 3600e9}};
  const auto number = take_decimal(text);
  const std::string_view unit =
      text.substr(0, text.find_first_of("0123456789."));
  for (const auto& [name, in_ns] : kUnits) {
    if (!number || name != unit) continue;
    text.remove_prefix(unit.size());
    ns += *number * in_ns;
    return true;
  }
  return false;
}

// In ms, rounded up; nothing if it is no duration of Go's, or below 0.
std::optional<double> read_go_duration(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (text.empty()) return std::nullopt;
  double ns = 0;
  while (!text.empty()) {
    if (!take_part(text, ns)) return std::nullopt;
  }
  return std::ceil(ns / 1e6);
}

// A lease that was read, and the form it has.
struct Lease {
  std::optional<milliseconds> time;
  Form form = Form::none;
};

// Why that is no lease; empty if it is one.  What is not understood is never
// over: whoever takes it for 0 takes the lock of a holder that lives.
const char* read_lease_text(const Attribute* attribute, Lease& lease) {
  if (attribute == nullptr) return "leaseDuration is missing";
  if (attribute->type != Type::string) return "leaseDuration is no string";
  const std::string_view text = attribute->value;
  const bool digits = !text.empty() && all_of(text, "0123456789");
  std::string_view rest = text;
  const auto ms = digits ? take_decimal(rest) : read_go_duration(text);
  const milliseconds longest = kLongestTold;
  if (!ms || *ms < 1 || *ms > static_cast<double>(longest.count())) {
    return "leaseDuration is neither \"20s\" nor \"20000\"";
  }
  // Old clients of delta-rs wrote seconds there.
  if (digits && *ms < 1000) {
    return "leaseDuration is too short for milliseconds";
  }
  lease.time = milliseconds(static_cast<std::int64_t>(*ms));
  lease.form = digits ? Form::ms : Form::go;
  return "";
}

// --- Reading -----------------------------------------------------------------

bool is_id(const Attribute* attribute) {
  return attribute != nullptr && attribute->type == Type::string &&
         !attribute->value.empty() && attribute->value.size() <= kLongestId;
}

// Each says what is not understood; empty, and the row has it, if all is.

const char* read_end(const Kind& kind, const Item& item, Row& row) {
  const bool lockclient = kind.form != Form::none;
  const Attribute* uuid = dynamodb::find(item, kind.uuid);
  // Work that nobody has done yet has no process.
  const bool nobody = uuid == nullptr && kind.must_exist;
  if (!nobody && !is_id(uuid)) {
    return lockclient ? "identifier is no string of 1 to 1,024 bytes"
                      : "ProcessID is no string of 1 to 1,024 bytes";
  }
  const Attribute* expires = dynamodb::find(item, kind.expires);
  const auto ns =
      expires != nullptr ? lock::parse_number(*expires) : std::nullopt;
  if (!ns) {
    return lockclient
               ? "expiry is missing, or no whole number of nanoseconds"
               : "LeaseUntil is missing, or no whole number of nanoseconds";
  }
  if (lockclient) {
    if (const Attribute* lease = dynamodb::find(item, kind.lease)) {
      const auto ms = lock::parse_number(*lease);
      const milliseconds longest = kLongestLease;
      if (!ms || *ms < kShortestLease.count() || *ms > longest.count()) {
        return "lease is no number of milliseconds up to a year";
      }
      row.lease = milliseconds(*ms);
    }
    const Attribute* owner = dynamodb::find(item, kind.owner);
    if (owner != nullptr && owner->type == Type::string) {
      row.owner = owner->value;
    }
  }
  if (!nobody) row.uuid = uuid->value;
  row.expires = ServiceTime(*ns);
  return "";
}

const char* read_version(const Kind& kind, const Item& item, Row& row) {
  const Attribute* version = dynamodb::find(item, kind.version);
  const Attribute* owner = dynamodb::find(item, kind.owner);
  const Attribute* released = dynamodb::find(item, kind.released);
  const Attribute* data = dynamodb::find(item, kDataAttribute);
  if (!is_id(version)) {
    return "recordVersionNumber is no string of 1 to 1,024 bytes";
  }
  if (owner == nullptr || owner->type != Type::string) {
    return "ownerName is no string";
  }
  Lease lease;
  const char* bad = read_lease_text(dynamodb::find(item, kind.lease), lease);
  if (*bad != '\0') return bad;
  const bool odd = released != nullptr &&
                   (released->type != Type::string || released->value != "1");
  if (odd) return "isReleased is not \"1\"";
  if (data != nullptr && data->type != Type::binary) {
    return "data is not of bytes";
  }
  if (dynamodb::find(item, kBarred) != nullptr) {
    return "isNonAcquirable: nobody is to take it";
  }
  const std::int64_t number = number_of(version->value);
  row.uuid.assign(version->value, 0, number > 0 ? kUuidSize : row.uuid.npos);
  row.expires = released != nullptr ? ServiceTime::zero()
                                    : kBeyondAllClocks + ServiceTime(number);
  row.lease = lease.time;
  row.form = static_cast<char>(lease.form);
  row.owner = owner->value;
  return "";
}

Row read(Layout layout, const Item& item) {
  Row row;
  if (item.empty()) return row;
  const Kind& kind = *kind_of(layout);
  row.problem = kind.versions() ? read_version(kind, item, row)
                                : read_end(kind, item, row);
  row.kind = Row::Kind::unknown;
  if (*row.problem != '\0') return row;
  row.kind = Row::Kind::record;
  for (const Attribute& attribute : item) {
    if (attribute.name == kDataAttribute ||
        !lock::is_of_record(kLayouts[&kind - kKinds], attribute.name)) {
      row.others.push_back(attribute);
    }
  }
  return row;
}

Row read_lockclient(const Item& item) { return read(Layout::lockclient, item); }
Row read_lease(const Item& item) { return read(Layout::lease, item); }
Row read_versions(const Item& item) { return read(Layout::dynamolock, item); }

// --- Writing -----------------------------------------------------------------

const Kind& kind_at(const Place& place) {
  return kKinds[place.layout - kLayouts];
}

// The words of expressions, see request_body.hpp and record.cpp, whose letters
// mean the same here.  Besides: the ve(r)sion; that a row is (f)ree, which "1"
// says (i); what (g)uards a row from all takers; the (p)refix of our versions;
// the version seen (h)ere; binary (c).
struct Words {
  static constexpr char kLetters[] = "ueolrfdgnycipshvbmxwz";

  static std::string_view name(std::size_t word, const Place& place);
  static void value(Text& text, std::size_t word, const Place& place,
                    const Request& request);
  static void version(Text& text, ServiceTime stamp, const Place& place,
                      const Request& request);
};
constexpr lock::Vocabulary kVocabulary = lock::vocabulary_of<Words>();
using Body = lock::RequestBody;
using Part = lock::PartOf<Words>;

constexpr std::size_t word(char letter) {
  return lock::place_of<Words>(letter);
}

// None is asked for that the layout has not.
std::string_view Words::name(std::size_t of, const Place& place) {
  const Kind& kind = kind_at(place);
  switch (of) {
    case word('u'):
      return kind.uuid;
    case word('e'):
      return kind.expires;
    case word('o'):
      return kind.owner;
    case word('l'):
      return kind.lease;
    case word('r'):
      return kind.version;
    case word('f'):
      return kind.released;
    case word('d'):
      return kDataAttribute;
    case word('g'):
      return kBarred;
    default:
      return place.key_name;
  }
}

void append_lease(Text& to, const Place& place, const Request& request) {
  const Form own = kind_at(place).form;
  if (own == Form::number) return append_number(to, request.lease.count());
  const std::int64_t told = told_lease(request.lease);
  const auto found = static_cast<Form>(request.form);
  const bool as_found = place.use.looks_first && found != Form::none;
  append_text(to, (as_found ? found : own) == Form::go ? go_duration(told)
                                                       : sigv4::decimal(told));
}

void Words::value(Text& text, std::size_t of, const Place& place,
                  const Request& request) {
  const milliseconds longest = kLongestLease;
  switch (of) {
    case word('u'):
      return append_text(text, request.uuid);
    case word('o'):
      return append_text(text, place.owner);
    case word('r'):
      return append_text(text, version_text(request.uuid, request.stamp));
    case word('p'):
      return append_text(text, request.uuid + ":");
    case word('s'):
      return append_text(text, request.seen->uuid);
    case word('h'):
      return append_text(
          text, version_text(request.seen->uuid, request.seen->expires));
    case word('y'):
      return append_text(text, "S");
    case word('c'):
      return append_text(text, "B");
    case word('i'):
      return append_text(text, "1");
    case word('l'):
      return append_lease(text, place, request);
    case word('e'):
      return append_number(text, request.stamp.count());
    case word('v'):
      return append_number(text, request.seen->expires.count());
    case word('b'):
      return append_number(text, request.earliest.count());
    case word('m'):
      return append_number(text, kShortestLease.count());
    case word('x'):
      return append_number(text, longest.count());
    case word('w'):
      return append_number(text, std::int64_t{kLongestId});
    default:
      return append_number(text, 0);  // z
  }
}

void Words::version(Text& text, ServiceTime stamp, const Place& place,
                    const Request& request) {
  if (!kind_at(place).versions()) {
    append_number(text, stamp.count());
  } else {
    append_text(text, version_text(request.uuid, stamp));
  }
}

constexpr Part kNothing = "";
constexpr Part kIsAbsent = "attribute_not_exists(#n) OR ";

// Where a lease ends.
constexpr Part kEnd = ":u :e :o :l";
constexpr Part kSetEnd = "SET #u = :u, #e = :e";
constexpr Part kSetExpires = "SET #e = :e";
constexpr Part kSetOver = "SET #e = :z";
constexpr Part kIsOver = "(#e >= :z AND #e < :b AND ";
constexpr Part kIsId = "attribute_type(#u, :y) AND size(#u) <= :w";
constexpr Part kIsIdOrNone =
    "(attribute_not_exists(#u) OR attribute_type(#u, :y) AND size(#u) <= :w)";
constexpr Part kLeaseIsGood =
    " AND (attribute_not_exists(#l) OR #l BETWEEN :m AND :x)";
constexpr Part kNotOurs = " AND #u <> :u";
constexpr Part kIsSeenEnd = " OR (#u = :s AND #e = :v)";
constexpr Part kIsOurEnd = "#u = :u";
constexpr Part kAndEndIn = " AND #e IN (";
constexpr Part kAndThatEnd = " AND #e = :e";
constexpr Part kAndNotOver = " AND #e > :z";

// Where a version is seen.
constexpr Part kVersion = ":r :o :l";
constexpr Part kSetVersion = "SET #r = :r";
constexpr Part kSetReleased = "SET #f = :i";
constexpr Part kIsReleased =
    "(#f = :i AND attribute_type(#r, :y) AND size(#r) <= :w"
    " AND attribute_type(#o, :y) AND attribute_type(#l, :y)"
    " AND attribute_not_exists(#g)"
    " AND (attribute_not_exists(#d) OR attribute_type(#d, :c))"
    " AND NOT begins_with(#r, :p))";
constexpr Part kIsSeenVersion = " OR #r = :h";
constexpr Part kIsThatVersion = "#r = :r";
constexpr Part kIsOurVersion = "begins_with(#r, :p)";
constexpr Part kVersionIn = "#r IN (";
constexpr Part kAndNotReleased = " AND attribute_not_exists(#f)";

constexpr Part kAndLeaseAndOwner = ", #l = :l, #o = :o";
constexpr Part kRemoveReleased = " REMOVE #f";
constexpr Part kRemoveData = " REMOVE #d";
constexpr Part kAndData = ", #d";

// Its version is one of ours that was told.
void write_is_own(const Kind& kind, Body& body) {
  const bool versions = kind.versions();
  if (!versions) body += kIsOurEnd;
  body += versions ? kVersionIn : kAndEndIn;
  body.own_list();
  body.put(")");
  if (versions) body += kAndNotReleased;
}

// What is not understood is not free either, as far as a condition can ask.  A
// row that this very call has released is not to be taken by one of its own
// takes that comes late.
void write_is_free(const Kind& kind, const RowUse& use, Body& body) {
  body.condition(use.must_exist ? kNothing : kIsAbsent);
  if (kind.versions()) {
    body += kIsReleased;
    return;
  }
  body += kIsOver;
  body += kind.must_exist ? kIsIdOrNone : kIsId;
  if (kind.lease[0] != '\0') body += kLeaseIsGood;
  if (use.keep) body += kNotOurs;
  body.put(")");
}

void write_take_update(const Place& place, const Kind& kind, Body& body) {
  const bool versions = kind.versions();
  const bool replaced =
      dynamodb::find(place.attributes, kDataAttribute) != nullptr;
  body.update(versions ? kSetVersion : kSetEnd);
  if (kind.lease[0] != '\0') body += kAndLeaseAndOwner;
  body.assignments();
  if (versions) body += kRemoveReleased;
  if (place.use.keep_data || replaced) return;
  body += versions ? kAndData : kRemoveData;
}

constexpr std::string_view kTellRow = R"(,"ReturnValues":"ALL_NEW")";

void write_take(const Place& place, const Kind& kind, const Request& request,
                Body& body) {
  const bool versions = kind.versions();
  if (place.use.takes_by_update()) {
    body.key();
    write_take_update(place, kind, body);
  } else {
    body.item(versions ? kVersion : kEnd);
  }
  write_is_free(kind, place.use, body);
  if (request.seen) body += versions ? kIsSeenVersion : kIsSeenEnd;
  if (!request.own.empty()) {
    body.put(" OR (");
    write_is_own(kind, body);
    body.put(")");
  }
  body.words();
  if (place.use.takes_by_update()) body.put(kTellRow);
}

void write_renewal(const Kind& kind, const Request& request, Body& body) {
  body.key();
  body.update(kind.versions() ? kSetVersion : kSetExpires);
  body.changes();
  body.condition(kNothing);
  write_is_own(kind, body);
  body.words();
  if (request.tell) body.put(kTellRow);
}

// Any attempt of ours will do.
void write_release(const Place& place, const Kind& kind, const Request& request,
                   Body& body) {
  const bool versions = kind.versions();
  const bool force = request.verb == Verb::force;
  body.key();
  if (place.use.keep) {
    body.update(versions ? kSetReleased : kSetOver);
    if (!force) body.changes();
  }
  if (!versions) {
    body.condition(kIsOurEnd);
    if (force) body += kAndThatEnd;
  } else {
    body.condition(force ? kIsThatVersion : kIsOurVersion);
    if (force) body += kAndNotReleased;
  }
  body.words();
}

void write(const Place& place, const Request& request, Text& text) {
  const Kind& kind = kind_at(place);
  const bool versions = kind.versions();
  Body body(kVocabulary, place, request, text);
  switch (request.verb) {
    case Verb::take:
      write_take(place, kind, request, body);
      break;
    case Verb::renew:
      write_renewal(kind, request, body);
      break;
    case Verb::release:
    case Verb::force:
      write_release(place, kind, request, body);
      break;
    case Verb::check:
      body.key();
      body.condition(versions ? kIsOurVersion : kIsOurEnd);
      body += versions ? kAndNotReleased : kAndNotOver;
      body.words();
      return body.end();
    case Verb::look:
      body.key();
      body.put(request.consistent ? R"(,"ConsistentRead":true)"
                                  : R"(,"ConsistentRead":false)");
      return body.end();
  }
  body.put(R"(,"ReturnValuesOnConditionCheckFailure":"ALL_OLD")");
  return body.end();
}

}  // namespace
}  // namespace shared

// --- What the public face asks -----------------------------------------------

using std::chrono::milliseconds;

const lock::Layout* find_layout(const TableOptions& table) {
  if (table.layout == Layout::ddblock) return &lock::kDdblock;
  const auto place = static_cast<std::size_t>(table.layout) - 1;
  return place < std::size(shared::kLayouts) ? &shared::kLayouts[place]
                                             : nullptr;
}

constexpr char kUsualPrefix[] = "ddblock-";  // In TableOptions.

void suit(TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  if (kind == nullptr) return;
  if (table.prefix == kUsualPrefix) table.prefix.clear();
  if (!kind->versions() && !table.calendar_margin) {
    table.calendar_margin = milliseconds(2000);
  }
}

Failure check_layout(const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  const bool versions = kind != nullptr && kind->versions();
  const milliseconds margin = table.calendar_margin.value_or(milliseconds(0));
  const bool odd = margin < milliseconds(0) || margin > std::chrono::hours(24);
  return check_all(
      {{"calendar_margin", odd ? "not from 0 to a day" : ""},
       {"calendar_margin", versions && table.calendar_margin
                               ? "no calendar counts in this layout"
                               : ""},
       {"lease_as_found", !versions && table.lease_as_found
                              ? "a lease has one form in this layout"
                              : ""}});
}

bool keeps_rows(std::optional<bool> keep_row, const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  return keep_row.value_or(kind != nullptr && kind->keeps);
}

Failure check_shared(const Options& options, const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  if (kind == nullptr) return nullptr;
  // Shorter, it would look like seconds in ms: see read_lease_text().
  const bool brief = kind->versions() && options.ttl < milliseconds(1000);
  return check_all(
      {{"fencing",
        options.fencing ? "no numbers in a layout that is shared" : ""},
       {"keep_row", kind->must_exist && !keeps_rows(options.keep_row, table)
                        ? "rows are always kept in this layout"
                        : ""},
       {"ttl", brief ? "below 1 s, in this layout" : ""}});
}

void suit(lock::RowUse& use, const Options& options,
          const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  use.margin = table.calendar_margin.value_or(use.margin);
  use.calendars = use.margin > milliseconds(0);
  if (kind == nullptr) return;
  using Take = lock::RowUse::Take;
  use.tells_end = !kind->versions();
  use.calendars = use.tells_end;
  use.must_exist = use.must_exist || kind->must_exist;
  use.looks_first = table.lease_as_found;
  use.take = kind->take;
  if (use.take == Take::updates) {
    use.keep_data = options.keep_data.value_or(true);
  } else if (use.take == Take::puts) {  // Unless something is to stay.
    use.keep_data = options.keep_data.value_or(false);
    if (use.keep_data) use.take = Take::updates;
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace ddbmutex
#endif
