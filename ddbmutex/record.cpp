#include "record.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <utility>

#include "../sigv4/text.hpp"
#include "json.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::append_form;
using dynamodb::append_string;
using dynamodb::Attribute;
using dynamodb::Item;
using sigv4::append;
using sigv4::Digits;
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

// The words of expressions: "#uuid" stands for the attribute of that name, or
// of the partition key, ":uuid" for a value: the first for texts.  See value().
constexpr char kWords[][13] = {
    "uuid",       "owner",   "seen_uuid", "string",    "zero",
    "one",        "expires", "lease",     "ttl",       "token",
    "earliest",   "longest", "shortest",  "uuid_size", "seen_expires",
    "last_token", "data",    "name"};
constexpr std::size_t kTextWords = 4, kNameWord = std::size(kWords) - 1;

// A part of an expression, and the words in it as bits: found by the compiler,
// which takes no word that is not in the list.
struct Part {
  template <std::size_t kSize>
  constexpr Part(const char (&part)[kSize]) : text(part, kSize - 1) {
    for (std::size_t at = 0; at + 1 < kSize; ++at) {
      if (part[at] == '#') names |= bit(part + at + 1);
      if (part[at] == ':') values |= bit(part + at + 1);
    }
  }
  static constexpr unsigned bit(const char* begin) {
    std::size_t word = 0, same = 0;
    while (is_of_words(begin[same]) || kWords[word][same] != '\0') {
      const bool fits = begin[same] == kWords[word][same];
      word += fits ? 0 : 1;
      same = fits ? same + 1 : 0;
    }
    return 1u << word;
  }
  static constexpr bool is_of_words(char c) {
    return (c >= 'a' && c <= 'z') || c == '_';
  }

  std::string_view text;
  unsigned names = 0, values = 0;
};

// The body of a request, as it grows.  Expressions are plain text; what their
// words stand for is put behind them: of those that occur alone, since DynamoDB
// refuses others.
class Body {
 public:
  Body(const Place& place, const Request& request);

  void key() { key(R"(,"Key":{)"), text_ += '}'; }
  void item();
  // One after the other, if there is an update; both go on with more parts.
  void update(const Part& part);
  void condition(const Part& part);
  Body& operator+=(const Part& part);
  void own_list();     // ":own0, :own1"
  void assignments();  // ", #set0 = :set0, #set1 = :set1"
  void changes();
  void words();  // Behind the condition.
  void put(std::string_view text) { text_ += text; }
  std::string end() { return std::move(text_ += '}'); }

 private:
  void key(std::string_view before);
  // What the request sets beside the record: a take, what every take does.
  const Item& set() const {
    return request_.verb == Verb::take ? place_.attributes
                                       : request_.changes->set;
  }
  void words(std::string_view mark, unsigned bits);
  void value(std::size_t word);

  const Place& place_;
  const Request& request_;
  std::string text_;
  unsigned names_ = 0, values_ = 0;  // Bits of words.
  // How many of those words there are that have a number behind them.
  std::size_t own_ = 0, set_ = 0, gone_ = 0;
};

Body::Body(const Place& place, const Request& request)
    : place_(place), request_(request) {
  text_.reserve(2048);
  append_form(text_, R"({"TableName":$)", {place.table});
}

void Body::key(std::string_view before) {
  text_ += before;
  append_form(text_, R"($:{"S":$})", {place_.key_name, place_.key});
  if (place_.sort_name.empty()) return;
  append_form(text_, R"(,$:{"S":$})", {place_.sort_name, place_.sort_value});
}

void Body::item() {
  constexpr Part kRecord = ":uuid :expires :lease :owner :ttl";
  key(R"(,"Item":{)");
  for (std::size_t word = 0; kRecord.values >> word != 0; ++word) {
    if ((kRecord.values >> word & 1) == 0) continue;
    append(text_, {",\"", kWords[word], "\":"});
    value(word);
  }
  if (!place_.attributes.empty()) text_ += ',';
  append_members(text_, place_.attributes);
  text_ += '}';
}

void Body::update(const Part& part) {
  text_ += R"(,"UpdateExpression":")";
  *this += part;
}

void Body::condition(const Part& part) {
  const bool updates = names_ != 0;
  append(text_, {updates ? "\"" : "", R"(,"ConditionExpression":")"});
  *this += part;
}

Body& Body::operator+=(const Part& part) {
  text_ += part.text;
  names_ |= part.names;
  values_ |= part.values;
  return *this;
}

void Body::own_list() {
  for (; own_ < request_.own.size(); ++own_) {
    append(text_, {own_ == 0 ? ":own" : ", :own", Digits(own_)});
  }
}

void Body::assignments() {
  for (; set_ < set().size(); ++set_) {
    const Digits number(set_);
    append(text_, {", #set", number, " = :set", number});
  }
}

// What the user changes; behind the other assignments.
void Body::changes() {
  if (!request_.changes) return;
  assignments();
  for (; gone_ < request_.changes->remove.size(); ++gone_) {
    append(text_, {gone_ == 0 ? " REMOVE #gone" : ", #gone", Digits(gone_)});
  }
}

void Body::words() {
  text_ += R"(","ExpressionAttributeNames":)";
  words("#", names_);
  text_ += R"(,"ExpressionAttributeValues":)";
  words(":", values_);
}

// {"#uuid":"uuid"} or {":uuid":{"S":"..."}}
void Body::words(std::string_view mark, unsigned bits) {
  const bool names = mark == "#";
  std::string_view before = "{\"";
  const auto next = [&](std::string_view kind, std::string_view number) {
    append(text_, {std::exchange(before, ",\""), mark, kind, number, "\":"});
  };
  for (std::size_t word = 0; bits >> word != 0; ++word) {
    if ((bits >> word & 1) == 0) continue;
    next(kWords[word], "");
    if (names) {
      append_string(text_, word == kNameWord ? place_.key_name : kWords[word]);
    } else {
      value(word);
    }
  }
  for (std::size_t i = 0; i < set_; ++i) {
    next("set", Digits(i));
    if (names) {
      append_string(text_, set()[i].name);
    } else {
      append_value(text_, set()[i]);
    }
  }
  for (std::size_t i = 0; names && i < gone_; ++i) {
    next("gone", Digits(i));
    append_string(text_, request_.changes->remove[i]);
  }
  for (std::size_t i = 0; !names && i < own_; ++i) {
    next("own", Digits(i));
    append(text_, {R"({"N":")", Digits(request_.own[i].count()), "\"}"});
  }
  text_ += '}';
}

// What ":word" stands for; or what the attribute of that name is to be.
void Body::value(std::size_t word) {
  const Request::Version* seen = request_.seen ? &*request_.seen : nullptr;
  if (word < kTextWords) {
    const std::string_view texts[kTextWords] = {
        request_.uuid, place_.owner, seen ? seen->uuid : std::string_view(),
        "S"};
    return append_form(text_, R"({"S":$})", {texts[word]});
  }
  const std::int64_t numbers[] = {
      0,
      1,
      request_.stamp.count(),
      request_.lease.count(),
      clean_up_at(request_.stamp),
      request_.token,
      request_.earliest.count(),
      std::chrono::milliseconds(kLongestLease).count(),
      kShortestLease.count(),
      kLongestUuid,
      seen ? seen->expires.count() : 0,
      kLastToken - 2};  // One is added.
  append(text_, {R"({"N":")", Digits(numbers[word - kTextWords]), "\"}"});
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
                          Body& body) {
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
void write_token(const Place& place, const Request& request, Body& body) {
  if (place.use.keep && request.changes) body += kThatToken;
}

void write_take_update(const Place& place, Body& body) {
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

void write_take(const Place& place, const Request& request, Body& body) {
  if (place.use.takes_by_update()) {
    body.key();
    write_take_update(place, body);
  } else {
    body.item();
  }
  write_take_condition(place.use, request, body);
  body.words();
  if (place.use.takes_by_update()) body.put(kTellNew);
}

void write_renewal(const Place& place, const Request& request, Body& body) {
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
void write_release(const Place& place, const Request& request, Body& body) {
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
  Body body(place, request);
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
  constexpr char kDigits[] = "0123456789abcdef";
  std::string uuid;
  uuid.reserve(2 * bits.size());
  for (const unsigned char byte : bits) {
    uuid += kDigits[byte >> 4];
    uuid += kDigits[byte & 15];
  }
  return uuid;
}

}  // namespace lock
}  // namespace v0
}  // namespace ddbmutex
