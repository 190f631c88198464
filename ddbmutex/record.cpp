#include "record.hpp"

#include <array>
#include <iterator>

#include "../sigv4/system.hpp"
#include "../sigv4/text.hpp"
#include "request_body.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using std::string_view_literals::operator""sv;

using dynamodb::Attribute;
using dynamodb::Item;
using sigv4::Text;
using Verb = Request::Verb;

std::optional<std::int64_t> parse_number(const Attribute& attribute) {
  if (attribute.type != Attribute::Type::number) return std::nullopt;
  return dynamodb::parse_digits(attribute.value);
}

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// A token that is told of no acquisition any more.
constexpr std::int64_t kLastToken = 9'000'000'000'000'000'000;

// --- Writing ---------------------------------------------------------------

std::int64_t clean_up_at(ServiceTime expires) {
  using std::chrono::seconds;  // Which cannot overflow.
  return (std::chrono::duration_cast<seconds>(expires) + seconds(kCleanUpAfter))
      .count();
}

// The words of expressions, see request_body.hpp.

void append_value(Text& text, char word, const Place& place,
                  const Request& request, ServiceTime stamp) {
  std::int64_t number = 0;  // z
  switch (word) {
    case 'u':
      return append_text(text, request.uuid);
    case 'o':
      return append_text(text, place.owner);
    case 's':
      return append_text(text, request.seen->uuid);
    case 'y':
      return append_text(text, "S");
    case 'e':
      number = stamp.count();
      break;
    case 'l':
      number = request.lease.count();
      break;
    case 't':
      number = clean_up_at(stamp);
      break;
    case 'k':
      number = request.token;
      break;
    case 'b':
      number = request.earliest.count();
      break;
    case 'v':
      number = request.seen->expires.count();
      break;
    case 'i':
      number = 1;
      break;
    case 'x':
      number = std::chrono::milliseconds(kLongestLease).count();
      break;
    case 'm':
      number = kShortestLease.count();
      break;
    case 'w':
      number = kLongestId;
      break;
    case 'q':
      number = kLastToken - 2;  // One is added.
      break;
  }
  append_number(text, number);
}

// That whoever kept the row has counted in whole numbers cannot be asked.
constexpr auto kCanCount =
    part("(attribute_not_exists(#k) OR #k BETWEEN :z AND :q)");

// A row of others' attributes alone, none of which has a name of ours.
constexpr auto kBare = part(
    "(attribute_not_exists(#u) AND attribute_not_exists(#e)"
    " AND attribute_not_exists(#l) AND attribute_not_exists(#o)"
    " AND attribute_not_exists(#t) AND ");

constexpr auto kIsOver = part(
    "(#e >= :z AND #e < :b"
    " AND attribute_type(#u, :y) AND size(#u) <= :w AND ");

constexpr auto kLeaseIsGood =
    part(" AND (attribute_not_exists(#l) OR #l BETWEEN :m AND :x))");

constexpr auto kNoToken = part("attribute_not_exists(#k)");
constexpr auto kAndNoToken = part(" AND attribute_not_exists(#k)");
constexpr auto kExists = part("(attribute_exists(#n) AND ");
constexpr auto kIsSeen = part(" OR (#u = :s AND #e = :v");
constexpr auto kIsOurs = part("#u = :u");
constexpr auto kThatVersion = part(" AND #e = :e");
constexpr auto kIsHeld = part(" AND #e > :z");
constexpr auto kThatToken = part(" AND #k = :k");

constexpr auto kRecord = part(":u :e :l :o :t");
constexpr auto kSetRecord = part("SET #u = :u, #e = :e, #l = :l, #o = :o");
constexpr auto kSetExpires = part("SET #e = :e");
constexpr auto kSetFree = part("SET #e = :z");
constexpr auto kAndTtl = part(", #t = :t");
constexpr auto kCount = part(" ADD #k :i REMOVE #t");

// What read_row() would not understand is not over either, so kIsOver asks for
// what it can of types and bounds.  A kept row that this very call has released
// is not to be taken by one of its own takes that comes late.
void write_take_condition(const RowUse& use, const Request& request,
                          RequestBody& body) {
  if (use.keep) {
    body.condition(either(use.must_exist, kExists, kNothing));
    body += kBare;
    body += kCanCount;
    body.put(use.must_exist ? ")) OR " : ") OR ");
    body += kIsOver;
    body += kCanCount;
    body += kNotOurs;
  } else {
    body.condition(kIsAbsent);
    body += kIsOver;
    body += kNoToken;
  }
  body += kLeaseIsGood;
  if (request.seen) {
    body += kIsSeen;
    if (!use.keep) body += kAndNoToken;
    body.put(")");
  }
  if (!request.own.empty()) {
    body.put(" OR (");
    body.own_list(kOwnEnd);
    body.put(")");
  }
}

// Of the layouts that tell when a lease ends ours alone has tokens, and times
// for DynamoDB's clean-up.
bool counts(const Place& place) {
  return place.use.keep && place.layout == &kDdblock;
}

// A take that comes late can bring a uuid back after others had the lock, but
// not its token: what the user changes is written by the holder alone.
void write_token(const Place& place, const Request& request,
                 RequestBody& body) {
  if (counts(place) && request.changes) body += kThatToken;
}

void write_take_update(const Place& place, RequestBody& body) {
  const bool keep = place.use.keep;
  const bool replaced =
      dynamodb::find(place.attributes, kDataAttribute) != nullptr;
  body.update(kSetRecord);
  if (!keep) body += kAndTtl;
  body.assignments();
  if (keep) body += kCount;
  if (keep && !place.use.keep_data && !replaced) body += kAndData;
}

void write_take(const Place& place, const Request& request, RequestBody& body) {
  if (place.use.takes_by_update()) {
    write_take_update(place, body);
  } else {
    body.item(kRecord);
  }
  write_take_condition(place.use, request, body);
}

void write_renewal(const Place& place, const Request& request,
                   RequestBody& body) {
  body.update(kSetExpires);
  const bool is_ours = place.layout == &kDdblock;
  if (is_ours && !place.use.keep) body += kAndTtl;
  body.changes();
  body.condition(kNothing);
  body.own_list(kOwnEnd);
  write_token(place, request, body);
}

// Frees the lock of a kept row, or deletes the row.
void write_release(const Place& place, const Request& request,
                   RequestBody& body) {
  if (place.use.keep) {
    body.update(kSetFree);
    if (request.verb != Verb::force) body.changes();
  }
  body.condition(kIsOurs);
  if (dynamodb::kManages && request.verb == Verb::force) {
    body += kThatVersion;
    // None with a token is deleted, whatever the operator was told of it.
    if (!place.use.keep) body += kAndNoToken;
  } else {
    write_token(place, request, body);
  }
}

void write_expressions(const Place& place, const Request& request,
                       RequestBody& body) {
  if (request.verb == Verb::take) return write_take(place, request, body);
  if (request.verb == Verb::renew) return write_renewal(place, request, body);
  if (!dynamodb::kTransacts || request.verb != Verb::check) {
    return write_release(place, request, body);
  }
  body.condition(kIsOurs);
  body += kIsHeld;
  if (counts(place)) body += kThatToken;
}

// --- Reading ---------------------------------------------------------------

// Of a record, all but its token.
const char* read_record(const Item& item, const Attribute* uuid, Row& row) {
  if (!is_id(uuid)) return "uuid is not a string of 1 to 1,024 bytes";
  const Attribute* expires = dynamodb::find(item, "expires");
  if (expires == nullptr) return "expires is missing";
  const auto expires_ns = parse_number(*expires);
  if (!expires_ns) return "expires is not a whole number of nanoseconds";
  const char* bad = read_lease_and_owner(item, row);
  if (*bad != '\0') return bad;
  row.uuid = uuid->value;
  row.expires = ServiceTime(*expires_ns);
  row.kind = Row::Kind::record;
  return "";
}

// Of those that a row without a uuid has no business with.
bool is_ours(std::string_view name) {
  return name != kDataAttribute && name != "token"sv &&
         is_of_record(kDdblock, name);
}

const char* read_item(const char*, const Item& item, Row& row) {
  if (const Attribute* token = dynamodb::find(item, "token")) {
    row.kept = true;
    const auto number = parse_number(*token);
    row.token = number.value_or(0);
    if (!number || *number >= kLastToken) {
      return "token is not a whole number, or is too large";
    }
  }
  const Attribute* uuid = dynamodb::find(item, "uuid");
  if (uuid != nullptr) return read_record(item, uuid, row);
  row.kind = Row::Kind::bare;
  for (const Attribute& attribute : item) {
    if (is_ours(attribute.name)) row.kind = Row::Kind::unknown;
  }
  return "uuid is missing";
}

}  // namespace

bool is_id(const Attribute* attribute) {
  return attribute != nullptr && attribute->type == Attribute::Type::string &&
         !attribute->value.empty() &&
         attribute->value.size() <= std::size_t{kLongestId};
}

const char* read_lease_and_owner(const Item& item, Row& row) {
  if (const Attribute* lease = dynamodb::find(item, "lease")) {
    const auto lease_ms = parse_number(*lease);
    const std::chrono::milliseconds longest = kLongestLease;
    if (!lease_ms || *lease_ms < kShortestLease.count() ||
        *lease_ms > longest.count()) {
      return "lease is not a number of milliseconds up to a year";
    }
    row.lease = std::chrono::milliseconds(*lease_ms);
  }
  const Attribute* owner = dynamodb::find(item, "owner");
  if (owner != nullptr && owner->type == Attribute::Type::string) {
    row.owner = owner->value;
  }
  return "";
}

// Of the layout that most use: a look at it is no search.
constexpr char kNames[] = "u:uuid e:expires l:lease o:owner k:token t:ttl";

// Where each word's name stands in them, by its letter.
struct NamePlace {
  unsigned char begin = 0, size = 0;
};
constexpr auto kNamePlaces = [] {
  std::array<NamePlace, 'z' - 'a' + 1> all{};
  for (unsigned char at = 0; at < sizeof kNames;) {
    unsigned char end = at;
    while (kNames[end] != ' ' && kNames[end] != '\0') ++end;
    NamePlace& place = all[static_cast<std::size_t>(kNames[at] - 'a')];
    place.begin = static_cast<unsigned char>(at + 2);
    place.size = static_cast<unsigned char>(end - place.begin);
    at = static_cast<unsigned char>(end + 1);
  }
  return all;
}();

std::string_view name_of(char word, const char* names) {
  const NamePlace& place = kNamePlaces[static_cast<std::size_t>(word - 'a')];
  if (names == kNames && place.size > 0) {
    return {kNames + place.begin, place.size};
  }
  for (std::string_view rest = names; !rest.empty();) {
    const std::string_view one = sigv4::cut(rest, ' ');
    if (one[0] == word) return one.substr(2);
  }
  return word == 'd' ? kDataAttribute : "";
}

bool is_of_record(const Layout& layout, std::string_view attribute) {
  return attribute == kDataAttribute ||
         wanted_of(layout, false).is_of_record(attribute);
}

void read_row(Item&& item, const Layout& layout, Row& row) {
  if (item.empty()) return;
  row.kind = Row::Kind::unknown;
  row.problem = layout.read(layout.names, item, row);
  if (!kStoresMore) return;
  for (Attribute& attribute : item) {
    const std::string_view name = attribute.name;
    if (attribute.type == Attribute::Type::unread) {
      row.unread = name;
    } else if (name == kDataAttribute || !is_of_record(layout, name)) {
      row.others.push_back(std::move(attribute));
    }
  }
}

dynamodb::Action action_of(Verb verb, const RowUse& use) {
  using dynamodb::Action;
  switch (verb) {
    case Verb::take:
      return use.takes_by_update() ? Action::update_item : Action::put_item;
    case Verb::renew:
      return Action::update_item;
    case Verb::release:
    case Verb::force:
      return use.keep ? Action::update_item : Action::delete_item;
    case Verb::check:
      return Action::transact_write_items;
    case Verb::look:
      break;
  }
  return Action::get_item;
}

void write_request(const Place& place, const Request& request, Text& text,
                   dynamodb::TheseParts) {
  RequestBody body(place, request, text);
  const bool takes = request.verb == Verb::take;
  const bool updates = takes && place.use.takes_by_update();
  if (!takes || updates) body.key();
  if (request.verb == Verb::look) {
    body.put(request.consistent ? R"(,"ConsistentRead":true)"
                                : R"(,"ConsistentRead":false)");
    return body.end();
  }
  place.layout->write(place, request, body);
  body.words();
  if (dynamodb::kTransacts && request.verb == Verb::check) return body.end();
  if (updates || request.tell) body.put(R"(,"ReturnValues":"ALL_NEW")");
  body.put(R"(,"ReturnValuesOnConditionCheckFailure":"ALL_OLD")");
  return body.end();
}

const Layout kDdblock = {read_item, write_expressions, append_value, 'e',
                         kNames};

std::string fresh_uuid() {
  std::array<unsigned char, 16> bits;
  sigv4::fill_with_randomness(bits.data(), bits.size());
  std::string uuid(2 * bits.size(), '\0');
  sigv4::write_hex(bits, uuid.data());
  return uuid;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
