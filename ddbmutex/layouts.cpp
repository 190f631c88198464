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
#include "item.hpp"
#include "protocol.hpp"
#include "request_body.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace detail {
namespace shared {
namespace {

using dynamodb::Attribute;
using dynamodb::Item;
using lock::append_text;
using lock::either;
using lock::is_id;
using lock::kAndData;
using lock::kBeyondAllClocks;
using lock::kDataAttribute;
using lock::kIsAbsent;
using lock::kLongestLease;
using lock::kNothing;
using lock::kNotOurs;
using lock::kOwnEnd;
using lock::name_of;
using lock::part;
using lock::Place;
using lock::Request;
using lock::Row;
using lock::RowUse;
using lock::ServiceTime;
using sigv4::format;
using sigv4::Text;
using std::chrono::milliseconds;
using Type = Attribute::Type;
using Verb = Request::Verb;

// How a lease is told: not at all; as a number of ms; or as text, as Go writes
// a duration or as so many ms.
enum class Form : char { none, number, go, ms };

// What a layout is besides.
struct Kind : lock::Layout {
  // Rows do not say where a lease ends, but have a version that is new with
  // each take and renewal.
  bool versions() const { return version == 'r'; }

  Form form;        // In which a row says how long its lease is.
  bool keeps;       // The row, at a release, unless told otherwise.
  bool must_exist;  // Nobody makes rows.
  RowUse::Take take;
};

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
  return sigv4::format("%s:%s", uuid, (number - kBeyondAllClocks).count());
}

bool all_of(std::string_view text, const char* those) {
  return text.find_first_not_of(those) == text.npos;
}

// What a version of ours has for a number; 0 if it is none of ours.
std::int64_t number_of(std::string_view version) {
  if (version.size() < kUuidSize + 2 || version[kUuidSize] != ':' ||
      !shared::all_of(version.substr(0, kUuidSize), "0123456789abcdef")) {
    return 0;
  }
  const std::string_view digits = version.substr(kUuidSize + 1);
  if (digits.size() > kMostNumberDigits || digits[0] == '0') return 0;
  return dynamodb::parse_digits(digits).value_or(0);
}

// --- Leases in text ----------------------------------------------------------

// They wait for the lease that they read and no 1 % longer, as ours do, which
// is ours to allow for.
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

// Takes decimal digits off the front, with one point at the most, and says what
// they are; -1 if there are none.  (Not strtod(), which asks the locale what a
// point is.)
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

// Takes a number and a unit off the front, and adds what they are in ns.
// False if there are none.
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

// In ms, rounded up; -1 if it is no duration of Go's, or below 0.
double read_go_duration(std::string_view text) {
  if (!text.empty() && text[0] == '+') text.remove_prefix(1);
  if (text.empty()) return -1;
  double ns = 0;
  while (!text.empty()) {
    if (!take_part(text, ns)) return -1;
  }
  return std::ceil(ns / 1e6);
}

// Why that is no lease; empty if it is one.  What is not understood is never
// over: whoever takes it for 0 takes the lock of a holder that lives.
const char* read_lease_text(const Attribute* attribute, Row& row) {
  if (attribute == nullptr) return "leaseDuration is missing";
  if (attribute->type != Type::string) return "leaseDuration is not a string";
  const std::string_view text = attribute->value;
  const bool digits = !text.empty() && shared::all_of(text, "0123456789");
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
  row.form = static_cast<char>(digits ? Form::ms : Form::go);
  return "";
}

// --- Reading -----------------------------------------------------------------

const char* read_end(const char* names, const Item& item, Row& row) {
  const bool lockclient = !name_of('l', names).empty();
  const Attribute* uuid = dynamodb::find(item, name_of('u', names));
  // Work that nobody has done yet has no process.
  const bool nobody = uuid == nullptr && !lockclient;
  if (!nobody && !is_id(uuid)) {
    return lockclient ? "identifier is not a string of 1 to 1,024 bytes"
                      : "ProcessID is not a string of 1 to 1,024 bytes";
  }
  const Attribute* expires = dynamodb::find(item, name_of('e', names));
  const auto ns =
      expires != nullptr ? lock::parse_number(*expires) : std::nullopt;
  if (!ns) {
    return lockclient
               ? "expiry is missing, or not a whole number of nanoseconds"
               : "LeaseUntil is missing, or not a whole number of nanoseconds";
  }
  const char* bad = lockclient ? lock::read_lease_and_owner(item, row) : "";
  if (*bad != '\0') return bad;
  if (!nobody) row.uuid = uuid->value;
  row.expires = ServiceTime(*ns);
  row.kind = Row::Kind::record;
  return "";
}

const char* read_version(const char* names, const Item& item, Row& row) {
  const auto find = [&](char word) {
    return dynamodb::find(item, name_of(word, names));
  };
  const Attribute* version = find('r');
  const Attribute* owner = find('o');
  const Attribute* released = find('f');
  const Attribute* data = find('d');
  if (!is_id(version)) {
    return "recordVersionNumber is not a string of 1 to 1,024 bytes";
  }
  if (owner == nullptr || owner->type != Type::string) {
    return "ownerName is not a string";
  }
  const char* bad = read_lease_text(find('l'), row);
  if (*bad != '\0') return bad;
  const bool odd = released != nullptr &&
                   (released->type != Type::string || released->value != "1");
  if (odd) return "isReleased is not \"1\"";
  if (data != nullptr && data->type != Type::binary) {
    return "data is not binary";
  }
  if (find('g') != nullptr) {
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

// --- Writing -----------------------------------------------------------------

using Body = lock::RequestBody;

const Kind& kind_at(const Place& place) {
  return static_cast<const Kind&>(*place.layout);
}

std::string lease_text(const Place& place, const Request& request) {
  const std::int64_t told = told_lease(request.lease);
  const auto found = static_cast<Form>(request.form);
  const bool as_found = place.use.looks_first && found != Form::none;
  const Form form = as_found ? found : kind_at(place).form;
  return form == Form::go ? go_duration(told) : sigv4::decimal(told);
}

// Empty if the word stands for the same as in ddblock.
std::string text_of(char word, const Place& place, const Request& request,
                    ServiceTime stamp) {
  switch (word) {
    case 'r':
      return version_text(request.uuid, stamp);
    case 'p':
      return request.uuid + ":";
    case 'h':
      return version_text(request.seen->uuid, request.seen->expires);
    case 'c':
      return "B";
    case 'j':
      return "1";
    case 'l':
      return kind_at(place).versions() ? lease_text(place, request) : "";
    default:
      return "";
  }
}

void append_value(Text& text, char word, const Place& place,
                  const Request& request, ServiceTime stamp) {
  const std::string own = text_of(word, place, request, stamp);
  if (own.empty()) {
    lock::kDdblock.value(text, word, place, request, stamp);
  } else {
    append_text(text, own);
  }
}

// Where a lease ends.
constexpr auto kEnd = part(":u :e :o :l");
constexpr auto kSetEnd = part("SET #u = :u, #e = :e");
constexpr auto kIsOver = part("(#e >= :z AND #e < :b AND ");
constexpr auto kIsId = part("attribute_type(#u, :y) AND size(#u) <= :w");
constexpr auto kIsIdOrNone = part(
    "(attribute_not_exists(#u) OR attribute_type(#u, :y) AND size(#u) <= :w)");
constexpr auto kLeaseIsGood =
    part(" AND (attribute_not_exists(#l) OR #l BETWEEN :m AND :x)");
constexpr auto kIsSeenEnd = part(" OR (#u = :s AND #e = :v)");

// Where a version is seen.
constexpr auto kVersion = part(":r :o :l");
constexpr auto kSetVersion = part("SET #r = :r");
constexpr auto kSetReleased = part("SET #f = :j");
constexpr auto kIsReleased = part(
    "(#f = :j AND attribute_type(#r, :y) AND size(#r) <= :w"
    " AND attribute_type(#o, :y) AND attribute_type(#l, :y)"
    " AND attribute_not_exists(#g)"
    " AND (attribute_not_exists(#d) OR attribute_type(#d, :c))"
    " AND NOT begins_with(#r, :p))");
constexpr auto kIsSeenVersion = part(" OR #r = :h");
constexpr auto kIsThatVersion = part("#r = :r");
constexpr auto kIsOurVersion = part("begins_with(#r, :p)");
constexpr auto kOwnVersion = part("#r IN (");
constexpr auto kAndNotReleased = part(" AND attribute_not_exists(#f)");

constexpr auto kAndLeaseAndOwner = part(", #l = :l, #o = :o");
constexpr auto kRemoveReleased = part(" REMOVE #f");
constexpr auto kRemoveData = part(" REMOVE #d");

// Its version is one of ours that was told.
void write_is_own(const Kind& kind, Body& body) {
  const bool versions = kind.versions();
  body.own_list(either(versions, kOwnVersion, kOwnEnd));
  if (versions) body += kAndNotReleased;
}

// What is not understood is not free either, as far as a condition can ask.  A
// row that this very call has released is not to be taken by one of its own
// takes that comes late.
void write_is_free(const Kind& kind, const RowUse& use, Body& body) {
  body.condition(either(use.must_exist, kNothing, kIsAbsent));
  if (kind.versions()) {
    body += kIsReleased;
    return;
  }
  body += kIsOver;
  body += either(kind.must_exist, kIsIdOrNone, kIsId);
  if (kind.form != Form::none) body += kLeaseIsGood;
  if (use.keep) body += kNotOurs;
  body.put(")");
}

void write_take_update(const Place& place, const Kind& kind, Body& body) {
  const bool versions = kind.versions();
  const bool replaced =
      dynamodb::find(place.attributes, kDataAttribute) != nullptr;
  body.update(either(versions, kSetVersion, kSetEnd));
  if (kind.form != Form::none) body += kAndLeaseAndOwner;
  body.assignments();
  if (versions) body += kRemoveReleased;
  if (place.use.keep_data || replaced) return;
  body += either(versions, kAndData, kRemoveData);
}

void write_take(const Place& place, const Kind& kind, const Request& request,
                Body& body) {
  const bool versions = kind.versions();
  if (place.use.takes_by_update()) {
    write_take_update(place, kind, body);
  } else {
    body.item(either(versions, kVersion, kEnd));
  }
  write_is_free(kind, place.use, body);
  if (request.seen) body += either(versions, kIsSeenVersion, kIsSeenEnd);
  if (!request.own.empty()) {
    body.put(" OR (");
    write_is_own(kind, body);
    body.put(")");
  }
}

// Any attempt of ours will do.
void write_release(const Place& place, const Request& request, Body& body) {
  const bool force = request.verb == Verb::force;
  if (place.use.keep) {
    body.update(kSetReleased);
    if (!force) body.changes();
  }
  body.condition(either(force, kIsThatVersion, kIsOurVersion));
  if (force) body += kAndNotReleased;
}

// Who holds a lease that tells its end writes as in ddblock.
void write(const Place& place, const Request& request, Body& body) {
  const Kind& kind = kind_at(place);
  if (request.verb == Verb::take) return write_take(place, kind, request, body);
  if (!kind.versions()) return lock::kDdblock.write(place, request, body);
  switch (request.verb) {
    case Verb::renew:
      body.update(kSetVersion);
      body.changes();
      body.condition(kNothing);
      return write_is_own(kind, body);
    case Verb::check:
      body.condition(kIsOurVersion);
      body += kAndNotReleased;
      return;
    default:
      return write_release(place, request, body);
  }
}

// --- The table of layouts ----------------------------------------------------

// delta-rs marks what nobody is to take by isNonAcquirable.
constexpr char kOfVersions[] =
    "o:ownerName l:leaseDuration r:recordVersionNumber f:isReleased "
    "g:isNonAcquirable";

// A `lease` of ours is no part of lockclient's layout, but whoever else takes
// the lock there replaces the whole row.  In layout lease it would stay when
// another takes the lock, and tell of his lease what was true of ours; so none
// is written there, and none believed.  The same goes for `ttl` and `token`
// everywhere: dynamolock copies what it does not know.
// In the order of Layout, behind ddblock.
constexpr Kind kKinds[] = {
    {{read_end, write, append_value, 'e',
      "u:identifier e:expiry l:lease o:owner"},
     Form::number,
     false,
     false,
     RowUse::Take::usual},
    {{read_end, write, append_value, 'e', "u:ProcessID e:LeaseUntil"},
     Form::none,
     true,
     true,
     RowUse::Take::updates},
    {{read_version, write, append_value, 'r', kOfVersions},
     Form::go,
     true,
     false,
     RowUse::Take::updates},
    {{read_version, write, append_value, 'r', kOfVersions},
     Form::ms,
     false,
     false,
     RowUse::Take::puts},
};

// Null for ddblock, and for what is no layout.
const Kind* kind_of(Layout layout) {
  const auto place = static_cast<std::size_t>(layout) - 1;
  return place < std::size(kKinds) ? &kKinds[place] : nullptr;
}

}  // namespace
}  // namespace shared

// --- What the public face asks -----------------------------------------------

using std::chrono::milliseconds;

const lock::Layout* find_layout(const TableOptions& table) {
  if (table.layout == Layout::ddblock) return &lock::kDdblock;
  return shared::kind_of(table.layout);
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
      {{"calendar_margin",
        odd ? sigv4::format("%s ms is not from 0 to a day", margin.count())
                  .c_str()
            : ""},
       {"calendar_margin", versions && table.calendar_margin
                               ? "no wall clock matters in this layout"
                               : ""},
       {"lease_as_found", !versions && table.lease_as_found
                              ? "a lease has only one form in this layout"
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
        options.fencing ? "a layout that is shared has no fencing tokens" : ""},
       {"keep_row", kind->must_exist && !keeps_rows(options.keep_row, table)
                        ? "rows are always kept in this layout"
                        : ""},
       {"ttl", brief ? sigv4::format(
                           "%s ms is less than 1 s, the least in this layout",
                           options.ttl.count())
                           .c_str()
                     : ""}});
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
