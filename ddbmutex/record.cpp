#include "record.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <limits>

#include "../sigv4/text.hpp"
#include "request_body.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using sigv4::Text;
using Verb = Request::Verb;

std::optional<std::int64_t> parse_number(const Attribute& attribute) {
  if (attribute.type != Attribute::Type::number) return std::nullopt;
  if (attribute.value.empty()) return std::nullopt;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t number = 0;
  for (const char c : attribute.value) {
    if (c < '0' || c > '9') return std::nullopt;
    const int digit = c - '0';
    if (number > (kMax - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// Our uuids have 32 characters.  A foreign one is sent back to DynamoDB when
// its record is taken, so it must not be of any size.
constexpr int kLongestUuid = 1024;

// A token that is told of no acquisition any more.
constexpr std::int64_t kLastToken = 9'000'000'000'000'000'000;

// --- Reading ---------------------------------------------------------------

bool is_uuid(const Attribute& attribute) {
  return attribute.type == Attribute::Type::string &&
         !attribute.value.empty() &&
         attribute.value.size() <= std::size_t{kLongestUuid};
}

void not_understood(Row& row, const char* problem) {
  row.kind = Row::Kind::unknown;
  row.problem = problem;
}

// --- Writing ---------------------------------------------------------------

std::int64_t clean_up_at(ServiceTime expires) {
  using std::chrono::seconds;  // Which cannot overflow.
  return (std::chrono::duration_cast<seconds>(expires) + seconds(kCleanUpAfter))
      .count();
}

// The words of expressions, see request_body.hpp.  Attributes, and their values
// as they are to be: uuid, owner, expires, lease, ttl, data, and the key's
// name; k is the token.  Values besides: the version that was (s)een, its uuid
// and its end (v); the time (b)efore which a lease is over; z, i: 0 and 1; a
// string's t(y)pe and the greatest (w)idth of a uuid; the greatest (x) and the
// least (m) lease; the last token of all (q).
struct Words {
  static constexpr char kLetters[] = "uosyzieltkbxmwvqdn";

  static std::string_view name(std::size_t word, const Place& place);
  static void value(Text& text, std::size_t word, const Place& place,
                    const Request& request);
  static void version(Text& text, ServiceTime stamp, const Place&,
                      const Request&) {
    append_number(text, stamp.count());
  }
};
constexpr Vocabulary kVocabulary = vocabulary_of<Words>();
using Part = PartOf<Words>;

constexpr std::size_t word(char letter) { return place_of<Words>(letter); }

std::string_view Words::name(std::size_t of, const Place& place) {
  switch (of) {
    case word('u'):
      return "uuid";
    case word('o'):
      return "owner";
    case word('e'):
      return "expires";
    case word('l'):
      return "lease";
    case word('t'):
      return kTtlAttribute;
    case word('k'):
      return "token";
    case word('d'):
      return kDataAttribute;
    default:
      return place.key_name;
  }
}

void Words::value(Text& text, std::size_t of, const Place& place,
                  const Request& request) {
  constexpr std::chrono::milliseconds kLongest = kLongestLease;
  switch (of) {
    case word('u'):
      return append_text(text, request.uuid);
    case word('o'):
      return append_text(text, place.owner);
    case word('s'):
      return append_text(text, request.seen->uuid);
    case word('e'):
      return append_number(text, request.stamp.count());
    case word('l'):
      return append_number(text, request.lease.count());
    case word('t'):
      return append_number(text, clean_up_at(request.stamp));
    case word('k'):
      return append_number(text, request.token);
    case word('b'):
      return append_number(text, request.earliest.count());
    case word('v'):
      return append_number(text, request.seen->expires.count());
    case word('y'):
      text += R"({"S":"S"})";
      return;
    case word('i'):
      text += R"({"N":"1"})";
      return;
    case word('x'):
      static_assert(kLongest.count() == 31'622'400'000);
      text += R"({"N":"31622400000"})";
      return;
    case word('m'):
      static_assert(kShortestLease.count() == 1);
      text += R"({"N":"1"})";
      return;
    case word('w'):
      static_assert(kLongestUuid == 1024);
      text += R"({"N":"1024"})";
      return;
    case word('q'):
      return append_number(text, kLastToken - 2);  // One is added.
    default:
      text += R"({"N":"0"})";  // z
  }
}

// That whoever kept the row has counted in whole numbers cannot be asked.
constexpr Part kCanCount = "(attribute_not_exists(#k) OR #k BETWEEN :z AND :q)";

// A row of others' attributes alone, none of which has a name of ours.
constexpr Part kBare =
    "(attribute_not_exists(#u) AND attribute_not_exists(#e)"
    " AND attribute_not_exists(#l) AND attribute_not_exists(#o)"
    " AND attribute_not_exists(#t) AND ";

constexpr Part kIsOver =
    "(#e >= :z AND #e < :b"
    " AND attribute_type(#u, :y) AND size(#u) <= :w AND ";

constexpr Part kLeaseIsGood =
    " AND (attribute_not_exists(#l) OR #l BETWEEN :m AND :x))";

constexpr Part kNoToken = "attribute_not_exists(#k)";
constexpr Part kAndNoToken = " AND attribute_not_exists(#k)";
constexpr Part kNothing = "";
constexpr Part kIsFree = "attribute_not_exists(#n) OR ";
constexpr Part kExists = "(attribute_exists(#n) AND ";
constexpr Part kNotReleased = " AND #u <> :u";
constexpr Part kIsSeen = " OR (#u = :s AND #e = :v";
constexpr Part kIsOwn = " OR (#u = :u AND #e IN (";
constexpr Part kIsOurs = "#u = :u";
constexpr Part kOneOf = " AND #e IN (";
constexpr Part kThatVersion = " AND #e = :e";
constexpr Part kIsHeld = " AND #e > :z";
constexpr Part kThatToken = " AND #k = :k";

constexpr Part kRecord = ":u :e :l :o :t";
constexpr Part kSetRecord = "SET #u = :u, #e = :e, #l = :l, #o = :o";
constexpr Part kSetExpires = "SET #e = :e";
constexpr Part kSetFree = "SET #e = :z";
constexpr Part kAndTtl = ", #t = :t";
constexpr Part kCount = " ADD #k :i REMOVE #t";
constexpr Part kAndData = ", #d";

// What read_row() would not understand is not over either, so kIsOver asks for
// what it can of types and bounds.  A kept row that this very call has released
// is not to be taken by one of its own takes that comes late.
void write_take_condition(const RowUse& use, const Request& request,
                          RequestBody& body) {
  if (use.keep) {
    body.condition(use.must_exist ? kExists : kNothing);
    body += kBare;
    body += kCanCount;
    body.put(use.must_exist ? ")) OR " : ") OR ");
    body += kIsOver;
    body += kCanCount;
    body += kNotReleased;
  } else {
    body.condition(kIsFree);
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
    body += kIsOwn;
    body.own_list();
    body.put("))");
  }
}

// A take that comes late can bring a uuid back after others had the lock, but
// not its token: what the user changes is written by the holder alone.
void write_token(const Place& place, const Request& request,
                 RequestBody& body) {
  if (place.use.keep && request.changes) body += kThatToken;
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

constexpr std::string_view kTellNew = R"(,"ReturnValues":"ALL_NEW")";

void write_take(const Place& place, const Request& request, RequestBody& body) {
  if (place.use.takes_by_update()) {
    body.key();
    write_take_update(place, body);
  } else {
    body.item(kRecord);
  }
  write_take_condition(place.use, request, body);
  body.words();
  if (place.use.takes_by_update()) body.put(kTellNew);
}

void write_renewal(const Place& place, const Request& request,
                   RequestBody& body) {
  body.key();
  body.update(kSetExpires);
  if (!place.use.keep) body += kAndTtl;
  body.changes();
  body.condition(kIsOurs);
  body += kOneOf;
  body.own_list();
  body.put(")");
  write_token(place, request, body);
  body.words();
  if (request.tell) body.put(kTellNew);
}

// Frees the lock of a kept row, or deletes the row.
void write_release(const Place& place, const Request& request,
                   RequestBody& body) {
  body.key();
  if (place.use.keep) {
    body.update(kSetFree);
    if (request.verb == Verb::release) body.changes();
  }
  body.condition(kIsOurs);
  if (request.verb == Verb::force) {
    body += kThatVersion;
  } else {
    write_token(place, request, body);
  }
  body.words();
}

constexpr const char* kOfRecord[] = {"uuid",  "expires",     "lease", "owner",
                                     "token", kTtlAttribute, nullptr};

// Of a record, all but its token.  Says in `problem` what it is not.
void read_record(const Item& item, const Attribute& uuid, Row& row) {
  if (!is_uuid(uuid)) {
    return not_understood(row, "uuid is not a string of 1 to 1,024 bytes");
  }
  const Attribute* expires = dynamodb::find(item, "expires");
  if (expires == nullptr) return not_understood(row, "expires is missing");
  const auto expires_ns = parse_number(*expires);
  if (!expires_ns) {
    return not_understood(row, "expires is no whole number of nanoseconds");
  }
  if (const Attribute* lease = dynamodb::find(item, "lease")) {
    const auto lease_ms = parse_number(*lease);
    const std::chrono::milliseconds longest = kLongestLease;
    if (!lease_ms || *lease_ms < kShortestLease.count() ||
        *lease_ms > longest.count()) {
      return not_understood(row,
                            "lease is no number of milliseconds up to a year");
    }
    row.lease = std::chrono::milliseconds(*lease_ms);
  }
  row.uuid = uuid.value;
  row.expires = ServiceTime(*expires_ns);
  const Attribute* owner = dynamodb::find(item, "owner");
  if (owner != nullptr && owner->type == Attribute::Type::string) {
    row.owner = owner->value;
  }
  row.kind = Row::Kind::record;
}

// Of those that a row without a uuid has no business with.
bool is_ours(const Attribute& attribute) {
  return attribute.name != kDataAttribute && attribute.name != "token" &&
         is_of_record(kDdblock, attribute.name);
}

}  // namespace

bool is_of_record(const Layout& layout, std::string_view attribute) {
  const char* const* name = layout.attributes;
  while (*name != nullptr && *name != attribute) ++name;
  return *name != nullptr || attribute == kDataAttribute;
}

Row read_row(const Item& item) {
  Row row;
  if (item.empty()) return row;
  if (const Attribute* token = dynamodb::find(item, "token")) {
    row.kept = true;
    const auto number = parse_number(*token);
    row.token = number.value_or(0);
    if (!number || *number >= kLastToken) {
      not_understood(row, "token is no whole number, or none is left");
    }
  }
  const Attribute* uuid = dynamodb::find(item, "uuid");
  if (row.kind == Row::Kind::unknown) {
    // Whatever else it has.
  } else if (uuid == nullptr) {
    row.kind = Row::Kind::bare;
    for (const Attribute& attribute : item) {
      if (is_ours(attribute)) row.kind = Row::Kind::unknown;
    }
    row.problem = "uuid is missing";
  } else {
    read_record(item, *uuid, row);
  }
  for (const Attribute& attribute : item) {
    if (attribute.name == kDataAttribute ||
        !is_of_record(kDdblock, attribute.name)) {
      row.others.push_back(attribute);
    }
  }
  return row;
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

void write_request(const Place& place, const Request& request, Text& text) {
  RequestBody body(kVocabulary, place, request, text);
  const bool keep = place.use.keep;
  switch (request.verb) {
    case Verb::take:
      write_take(place, request, body);
      break;
    case Verb::renew:
      write_renewal(place, request, body);
      break;
    case Verb::release:
    case Verb::force:
      write_release(place, request, body);
      break;
    case Verb::check:
      body.key();
      body.condition(kIsOurs);
      body += kIsHeld;
      if (keep) body += kThatToken;
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

const Layout kDdblock = {read_row, write_request, action_of, kOfRecord};

std::string fresh_uuid() {
  std::array<unsigned char, 16> bits;
  // Fails only where the kernel has no randomness to give: no lock can be taken
  // safely there.
  if (getentropy(bits.data(), bits.size()) != 0) std::abort();
  std::string uuid(2 * bits.size(), '\0');
  sigv4::write_hex(bits, uuid.data());
  return uuid;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
