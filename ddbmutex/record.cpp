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

// The words of expressions, see request_body.hpp.
struct Words {
  static constexpr char kList[][13] = {
      "uuid",       "owner",   "seen_uuid", "string",    "zero",
      "one",        "expires", "lease",     "ttl",       "token",
      "earliest",   "longest", "shortest",  "uuid_size", "seen_expires",
      "last_token", "data",    "name"};

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

constexpr std::size_t word(const char* name) { return place_of<Words>(name); }

std::string_view Words::name(std::size_t of, const Place& place) {
  return of == word("name") ? place.key_name : std::string_view();
}

void Words::value(Text& text, std::size_t of, const Place& place,
                  const Request& request) {
  constexpr std::chrono::milliseconds kLongest = kLongestLease;
  switch (of) {
    case word("uuid"):
      return append_text(text, request.uuid);
    case word("owner"):
      return append_text(text, place.owner);
    case word("seen_uuid"):
      return append_text(text, request.seen->uuid);
    case word("expires"):
      return append_number(text, request.stamp.count());
    case word("lease"):
      return append_number(text, request.lease.count());
    case word("ttl"):
      return append_number(text, clean_up_at(request.stamp));
    case word("token"):
      return append_number(text, request.token);
    case word("earliest"):
      return append_number(text, request.earliest.count());
    case word("seen_expires"):
      return append_number(text, request.seen->expires.count());
    case word("string"):
      text += R"({"S":"S"})";
      return;
    case word("one"):
      text += R"({"N":"1"})";
      return;
    case word("longest"):
      static_assert(kLongest.count() == 31'622'400'000);
      text += R"({"N":"31622400000"})";
      return;
    case word("shortest"):
      static_assert(kShortestLease.count() == 1);
      text += R"({"N":"1"})";
      return;
    case word("uuid_size"):
      static_assert(kLongestUuid == 1024);
      text += R"({"N":"1024"})";
      return;
    case word("last_token"):
      return append_number(text, kLastToken - 2);  // One is added.
    default:
      text += R"({"N":"0"})";  // "zero"
  }
}

// That whoever kept the row has counted in whole numbers cannot be asked.
constexpr Part kCanCount =
    "(attribute_not_exists(#token) OR #token BETWEEN :zero AND :last_token)";

// A row of others' attributes alone, none of which has a name of ours.
constexpr Part kBare =
    "(attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl) AND ";

constexpr Part kIsOver =
    "(#expires >= :zero AND #expires < :earliest"
    " AND attribute_type(#uuid, :string) AND size(#uuid) <= :uuid_size AND ";

constexpr Part kLeaseIsGood =
    " AND (attribute_not_exists(#lease)"
    " OR #lease BETWEEN :shortest AND :longest))";

constexpr Part kNoToken = "attribute_not_exists(#token)";
constexpr Part kAndNoToken = " AND attribute_not_exists(#token)";
constexpr Part kNothing = "";
constexpr Part kIsFree = "attribute_not_exists(#name) OR ";
constexpr Part kExists = "(attribute_exists(#name) AND ";
constexpr Part kNotReleased = " AND #uuid <> :uuid";
constexpr Part kIsSeen = " OR (#uuid = :seen_uuid AND #expires = :seen_expires";
constexpr Part kIsOwn = " OR (#uuid = :uuid AND #expires IN (";
constexpr Part kIsOurs = "#uuid = :uuid";
constexpr Part kOneOf = " AND #expires IN (";
constexpr Part kThatVersion = " AND #expires = :expires";
constexpr Part kIsHeld = " AND #expires > :zero";
constexpr Part kThatToken = " AND #token = :token";

constexpr Part kRecord = ":uuid :expires :lease :owner :ttl";
constexpr Part kSetRecord =
    "SET #uuid = :uuid, #expires = :expires, #lease = :lease,"
    " #owner = :owner";
constexpr Part kSetExpires = "SET #expires = :expires";
constexpr Part kSetFree = "SET #expires = :zero";
constexpr Part kAndTtl = ", #ttl = :ttl";
constexpr Part kCount = " ADD #token :one REMOVE #ttl";
constexpr Part kAndData = ", #data";

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
    const bool bare = std::none_of(item.begin(), item.end(), is_ours);
    row.kind = bare ? Row::Kind::bare : Row::Kind::unknown;
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

std::string write_request(const Place& place, const Request& request) {
  RequestBody body(kVocabulary, place, request);
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
