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
using dynamodb::Attribute;
using dynamodb::Item;
using sigv4::append;
using sigv4::join;
using Verb = Request::Verb;

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// Our uuids have 32 characters.  A foreign one is sent back to DynamoDB when
// its record is taken, so it must not be of any size.
constexpr int kLongestUuid = 1024;

// A token that is told of no acquisition any more.
constexpr std::int64_t kLastToken = 9'000'000'000'000'000'000;

// --- Reading ---------------------------------------------------------------

// A whole number that is not negative.  DynamoDB writes those as plain digits.
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
  return std::chrono::duration_cast<std::chrono::seconds>(expires +
                                                          kCleanUpAfter)
      .count();
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// Whether a word of an expression may have it.
bool is_of_words(char c) {
  return (c >= 'a' && c <= 'z') || c == '_' || is_digit(c);
}

// "own12" is "own" and 12; what has no number is itself and 0.
std::pair<std::string_view, std::size_t> parts_of(std::string_view word) {
  std::size_t end = 0, number = 0;
  while (end < word.size() && !is_digit(word[end])) ++end;
  for (const char c : word.substr(end)) {
    number = 10 * number + static_cast<std::size_t>(c - '0');
  }
  return {word.substr(0, end), number};
}

// The body of a request, as it grows.  Expressions are plain text; what their
// words stand for, "#uuid" and ":uuid", is put behind them: of those that occur
// alone, since DynamoDB refuses others.
class Body {
 public:
  Body(const Place& place, const Request& request);

  void key() { key(R"(,"Key":{)"), text_ += '}'; }
  void item();
  // No update if that is empty.
  void expressions(std::string_view update, std::string_view condition);
  Body& operator+=(std::string_view text) {
    text_ += text;
    return *this;
  }
  std::string end() { return std::move(text_ += '}'); }

 private:
  void key(std::string_view before);
  // What the request sets beside the record: a take, what every take does.
  const Item& set() const {
    return request_.verb == Verb::take ? place_.attributes
                                       : request_.changes->set;
  }
  void words(char mark, std::string_view update, std::string_view condition);
  void name(std::string_view word);
  void value(std::string_view word);

  const Place& place_;
  const Request& request_;
  std::string text_;
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
  key(R"(,"Item":{)");
  for (const char* word : {"uuid", "expires", "lease", "owner", "ttl"}) {
    append_form(text_, ",$:", {word});
    value(word);
  }
  if (!place_.attributes.empty()) text_ += ',';
  append_members(text_, place_.attributes);
  text_ += '}';
}

void Body::expressions(std::string_view update, std::string_view condition) {
  if (!update.empty()) {
    append(text_, {R"(,"UpdateExpression":")", update, R"(")"});
  }
  append(text_, {R"(,"ConditionExpression":")", condition,
                 R"(","ExpressionAttributeNames":)"});
  words('#', update, condition);
  text_ += R"(,"ExpressionAttributeValues":)";
  words(':', update, condition);
}

// {"#uuid":"uuid"} or {":uuid":{"S":"..."}}, each once.
void Body::words(char mark, std::string_view update,
                 std::string_view condition) {
  std::vector<std::string_view> seen;
  seen.reserve(24);
  for (const std::string_view text : {update, condition}) {
    for (std::size_t at = text.find(mark); at != text.npos;
         at = text.find(mark, at + 1)) {
      std::size_t end = at + 1;
      while (end < text.size() && is_of_words(text[end])) ++end;
      const std::string_view word = text.substr(at, end - at);
      std::size_t known = 0;
      while (known < seen.size() && seen[known] != word) ++known;
      if (known < seen.size()) continue;
      append(text_, {seen.empty() ? "{\"" : ",\"", word, "\":"});
      seen.push_back(word);
      mark == '#' ? name(word.substr(1)) : value(word.substr(1));
    }
  }
  text_ += '}';
}

// Which attribute "#word" is.
void Body::name(std::string_view word) {
  const auto [kind, number] = parts_of(word);
  if (kind == "name") {
    word = place_.key_name;
  } else if (kind == "set") {
    word = set()[number].name;
  } else if (kind == "gone") {
    word = request_.changes->remove[number];
  }
  dynamodb::append_string(text_, word);
}

// What ":word" stands for; or what the attribute of that name is to be.
void Body::value(std::string_view word) {
  const auto [kind, index] = parts_of(word);
  if (kind == "set") return append_value(text_, set()[index]);
  const Request::Version* seen = request_.seen ? &*request_.seen : nullptr;
  const std::pair<std::string_view, std::string_view> texts[] = {
      {"uuid", request_.uuid},
      {"owner", place_.owner},
      {"seen_uuid", seen ? seen->uuid : std::string_view()},
      {"string", "S"}};
  for (const auto& [name, text] : texts) {
    if (name == kind) return append_form(text_, R"({"S":$})", {text});
  }
  const std::pair<std::string_view, std::int64_t> numbers[] = {
      {"expires", request_.stamp.count()},
      {"own", kind == "own" ? request_.own[index].count() : 0},
      {"lease", request_.lease.count()},
      {"ttl", kind == "ttl" ? clean_up_at(request_.stamp) : 0},
      {"token", request_.token},
      {"earliest", request_.earliest.count()},
      {"seen_expires", seen ? seen->expires.count() : 0},
      {"one", 1},
      {"last_token", kLastToken - 2},  // One is added.
      {"uuid_size", kLongestUuid},
      {"shortest", kShortestLease.count()},
      {"longest", std::chrono::milliseconds(kLongestLease).count()}};
  std::int64_t found = 0;  // "zero"
  for (const auto& [name, number] : numbers) {
    if (name == kind) found = number;
  }
  append_form(text_, R"({"N":"%"})", {std::to_string(found)});
}

// ":own0, :own1"
std::string own_list(const Request& request) {
  std::string list;
  for (std::size_t i = 0; i < request.own.size(); ++i) {
    append(list, {i == 0 ? ":own" : ", :own", std::to_string(i)});
  }
  return list;
}

// That whoever kept the row has counted in whole numbers cannot be asked.
constexpr std::string_view kCanCount =
    "(attribute_not_exists(#token) OR #token BETWEEN :zero AND :last_token)";

// A row of others' attributes alone, none of which has a name of ours.
constexpr std::string_view kBare =
    "(attribute_not_exists(#uuid) AND attribute_not_exists(#expires)"
    " AND attribute_not_exists(#lease) AND attribute_not_exists(#owner)"
    " AND attribute_not_exists(#ttl) AND ";

constexpr std::string_view kIsOver =
    "(#expires >= :zero AND #expires < :earliest"
    " AND attribute_type(#uuid, :string) AND size(#uuid) <= :uuid_size AND ";

constexpr std::string_view kLeaseIsGood =
    " AND (attribute_not_exists(#lease)"
    " OR #lease BETWEEN :shortest AND :longest))";

constexpr std::string_view kNoToken = "attribute_not_exists(#token)";

// What read_row() would not understand is not over either, so kIsOver asks for
// what it can of types and bounds.  A kept row that this very call has released
// is not to be taken by one of its own takes that comes late.
std::string take_condition(const RowUse& use, const Request& request) {
  std::string text;
  if (use.keep) {
    text = join({use.must_exist ? "(attribute_exists(#name) AND " : "", kBare,
                 kCanCount, use.must_exist ? "))" : ")", " OR ", kIsOver,
                 kCanCount, " AND #uuid <> :uuid"});
  } else {
    text = join({"attribute_not_exists(#name) OR ", kIsOver, kNoToken});
  }
  text += kLeaseIsGood;
  if (request.seen) {
    append(text, {" OR (#uuid = :seen_uuid AND #expires = :seen_expires",
                  use.keep ? "" : " AND ", use.keep ? "" : kNoToken, ")"});
  }
  if (!request.own.empty()) {
    append(text,
           {" OR (#uuid = :uuid AND #expires IN (", own_list(request), "))"});
  }
  return text;
}

// ", #set0 = :set0, #set1 = :set1"
std::string assignments(const Item& attributes) {
  std::string text;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string number = std::to_string(i);
    append(text, {", #set", number, " = :set", number});
  }
  return text;
}

// What the user changes; behind the other assignments.
std::string changes_of(const Request& request) {
  if (!request.changes) return "";
  std::string text = assignments(request.changes->set);
  for (std::size_t i = 0; i < request.changes->remove.size(); ++i) {
    append(text, {i == 0 ? " REMOVE #gone" : ", #gone", std::to_string(i)});
  }
  return text;
}

// A take that comes late can bring a uuid back after others had the lock, but
// not its token: what the user changes is written by the holder alone.
std::string_view if_token(const Place& place, const Request& request) {
  return place.use.keep && request.changes ? " AND #token = :token" : "";
}

std::string take_update(const Place& place) {
  const bool keep = place.use.keep;
  const bool replaced =
      dynamodb::find(place.attributes, kDataAttribute) != nullptr;
  return join(
      {"SET #uuid = :uuid, #expires = :expires, #lease = :lease,"
       " #owner = :owner",
       keep ? "" : ", #ttl = :ttl", assignments(place.attributes),
       keep ? " ADD #token :one REMOVE #ttl" : "",
       keep && !place.use.keep_data && !replaced ? ", #data" : ""});
}

constexpr std::string_view kTellNew = R"(,"ReturnValues":"ALL_NEW")";

void write_take(const Place& place, const Request& request, Body& body) {
  const std::string condition = take_condition(place.use, request);
  if (place.use.takes_by_update()) {
    body.key();
    body.expressions(take_update(place), condition);
    body += kTellNew;
  } else {
    body.item();
    body.expressions("", condition);
  }
}

void write_renewal(const Place& place, const Request& request, Body& body) {
  body.key();
  body.expressions(
      join({"SET #expires = :expires", place.use.keep ? "" : ", #ttl = :ttl",
            changes_of(request)}),
      join({"#uuid = :uuid AND #expires IN (", own_list(request), ")",
            if_token(place, request)}));
  if (request.tell) body += kTellNew;
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
         is_of_record(attribute.name);
}

}  // namespace

bool is_of_record(std::string_view attribute) {
  const char* const* name = kOfRecord;
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
    if (attribute.name == kDataAttribute || !is_of_record(attribute.name)) {
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
      body.key();
      body.expressions(
          keep ? join({"SET #expires = :zero", changes_of(request)}) : "",
          join({"#uuid = :uuid", if_token(place, request)}));
      break;
    case Verb::force:
      body.key();
      body.expressions(keep ? "SET #expires = :zero" : "",
                       "#uuid = :uuid AND #expires = :expires");
      break;
    case Verb::check:
      body.key();
      body.expressions("", join({"#uuid = :uuid AND #expires > :zero",
                                 keep ? " AND #token = :token" : ""}));
      return body.end();
    case Verb::look:
      body.key();
      body += request.consistent ? R"(,"ConsistentRead":true)"
                                 : R"(,"ConsistentRead":false)";
      return body.end();
  }
  body += R"(,"ReturnValuesOnConditionCheckFailure":"ALL_OLD")";
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
