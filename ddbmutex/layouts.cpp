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

namespace ddbmutex {
inline namespace v0 {
namespace detail {
namespace shared {

using dynamodb::append_form;
using dynamodb::Attribute;
using dynamodb::Item;
using lock::action_of;
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
using sigv4::join;
using std::chrono::milliseconds;
using Type = Attribute::Type;
using Verb = Request::Verb;

// --- The table of layouts ----------------------------------------------------

Row read_lockclient(const Item& item);
Row read_lease(const Item& item);
Row read_versions(const Item& item);
std::string write(const Place& place, const Request& request);

// How a lease is told: not at all; as a number of ms; or as text, as Go writes
// a duration or as so many ms.
enum class Form : char { none, number, go, ms };

// A layout.  An attribute that it has not is null.
struct Kind {
  // Where a lease ends:
  const char* uuid;     // S: who holds it.
  const char* expires;  // N, ns: when the lease ends; 0 if it was released.
  // Where a version is seen:
  const char* version;   // S: new with each take and renewal.
  const char* released;  // S "1", where the lock is free.
  const char* owner;     // S, for people.
  const char* lease;     // How long a waiter must have seen the row unchanged.
  Form form;             // Of that.
  bool keeps;            // The row, at a release, unless told otherwise.
  bool must_exist;       // Nobody makes rows.
  RowUse::Take take;
  const char* const* attributes;  // All of those above.
  Row (*read)(const Item& item);
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
constexpr Kind kLockclient = {
    "identifier",  "expiry",       nullptr, nullptr, "owner",
    "lease",       Form::number,   false,   false,   RowUse::Take::usual,
    kOfLockclient, read_lockclient};
constexpr Kind kLease = {
    "ProcessID", "LeaseUntil", nullptr, nullptr, nullptr,
    nullptr,     Form::none,   true,    true,    RowUse::Take::updates,
    kOfLease,    read_lease};
constexpr Kind kDynamolock = {nullptr,
                              nullptr,
                              "recordVersionNumber",
                              "isReleased",
                              "ownerName",
                              "leaseDuration",
                              Form::go,
                              true,
                              false,
                              RowUse::Take::updates,
                              kOfVersions,
                              read_versions};
constexpr Kind kAwslabs = {nullptr,
                           nullptr,
                           "recordVersionNumber",
                           "isReleased",
                           "ownerName",
                           "leaseDuration",
                           Form::ms,
                           false,
                           false,
                           RowUse::Take::puts,
                           kOfVersions,
                           read_versions};

constexpr const Kind* kKinds[] = {&kLockclient, &kLease, &kDynamolock,
                                  &kAwslabs};

const lock::Layout kLayouts[] = {
    {read_lockclient, write, action_of, kOfLockclient},
    {read_lease, write, action_of, kOfLease},
    {read_versions, write, action_of, kOfVersions},
    {read_versions, write, action_of, kOfVersions},
};

// Null for ddblock, and for what is no layout.
const Kind* kind_of(Layout layout) {
  const auto place = static_cast<std::size_t>(layout) - 1;
  return place < std::size(kKinds) ? kKinds[place] : nullptr;
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
  return join({uuid, ":", std::to_string((number - kBeyondAllClocks).count())});
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
  return std::stoll(std::string(digits));
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
  std::string text = std::to_string(ms / 1000);
  if (const std::int64_t rest = ms % 1000; rest != 0) {
    const std::string digits = std::to_string(1000 + rest);
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
    std::string_view name;
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

// Why that is no lease; empty if it is one.  What is not understood is never
// over: whoever takes it for 0 takes the lock of a holder that lives.
const char* read_lease_text(const Attribute* attribute, Row& row) {
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
  row.lease = milliseconds(static_cast<std::int64_t>(*ms));
  row.form = static_cast<char>(digits ? Form::ms : Form::go);
  return "";
}

// --- Reading -----------------------------------------------------------------

Row not_understood(const char* problem) {
  Row row;
  row.kind = Row::Kind::unknown;
  row.problem = problem;
  return row;
}

bool is_id(const Attribute* attribute) {
  return attribute != nullptr && attribute->type == Type::string &&
         !attribute->value.empty() && attribute->value.size() <= kLongestId;
}

void read_others(const Kind& kind, const Item& item, Row& row) {
  for (const Attribute& attribute : item) {
    const char* const* name = kind.attributes;
    while (*name != nullptr && *name != attribute.name) ++name;
    if (*name == nullptr) row.others.push_back(attribute);
  }
}

Row read_end(const Kind& kind, const Item& item) {
  Row row;
  if (item.empty()) return row;
  const bool lockclient = kind.lease != nullptr;
  const Attribute* uuid = dynamodb::find(item, kind.uuid);
  // Work that nobody has done yet has no process.
  const bool nobody = uuid == nullptr && kind.must_exist;
  if (!nobody && !is_id(uuid)) {
    return not_understood(lockclient
                              ? "identifier is no string of 1 to 1,024 bytes"
                              : "ProcessID is no string of 1 to 1,024 bytes");
  }
  const Attribute* expires = dynamodb::find(item, kind.expires);
  const auto ns =
      expires != nullptr ? lock::parse_number(*expires) : std::nullopt;
  if (!ns) {
    return not_understood(
        lockclient ? "expiry is missing, or no whole number of nanoseconds"
                   : "LeaseUntil is missing, or no whole number of "
                     "nanoseconds");
  }
  if (lockclient) {
    if (const Attribute* lease = dynamodb::find(item, kind.lease)) {
      const auto ms = lock::parse_number(*lease);
      const milliseconds longest = kLongestLease;
      if (!ms || *ms < kShortestLease.count() || *ms > longest.count()) {
        return not_understood(
            "lease is no number of milliseconds up to a year");
      }
      row.lease = milliseconds(*ms);
    }
    const Attribute* owner = dynamodb::find(item, kind.owner);
    if (owner != nullptr && owner->type == Type::string) {
      row.owner = owner->value;
    }
  }
  row.kind = Row::Kind::record;
  if (!nobody) row.uuid = uuid->value;
  row.expires = ServiceTime(*ns);
  read_others(kind, item, row);
  return row;
}

Row read_lockclient(const Item& item) { return read_end(kLockclient, item); }
Row read_lease(const Item& item) { return read_end(kLease, item); }

Row read_versions(const Item& item) {
  Row row;
  if (item.empty()) return row;
  const Attribute* version = dynamodb::find(item, "recordVersionNumber");
  const Attribute* owner = dynamodb::find(item, "ownerName");
  const Attribute* released = dynamodb::find(item, "isReleased");
  const Attribute* data = dynamodb::find(item, kDataAttribute);
  if (!is_id(version)) {
    return not_understood(
        "recordVersionNumber is no string of 1 to 1,024 bytes");
  }
  if (owner == nullptr || owner->type != Type::string) {
    return not_understood("ownerName is no string");
  }
  const char* bad_lease =
      read_lease_text(dynamodb::find(item, "leaseDuration"), row);
  if (*bad_lease != '\0') return not_understood(bad_lease);
  const bool odd = released != nullptr &&
                   (released->type != Type::string || released->value != "1");
  if (odd) return not_understood("isReleased is not \"1\"");
  if (data != nullptr && data->type != Type::binary) {
    return not_understood("data is not of bytes");
  }
  if (dynamodb::find(item, kBarred) != nullptr) {
    return not_understood("isNonAcquirable: nobody is to take it");
  }
  const std::int64_t number = number_of(version->value);
  row.kind = Row::Kind::record;
  row.uuid =
      version->value.substr(0, number > 0 ? kUuidSize : version->value.npos);
  row.expires = released != nullptr ? ServiceTime::zero()
                                    : kBeyondAllClocks + ServiceTime(number);
  row.owner = owner->value;
  read_others(kAwslabs, item, row);
  return row;
}

// --- Writing -----------------------------------------------------------------

// The body of a request, as it grows.  Expressions are plain text; what their
// words stand for, "#uuid" and ":uuid", is put behind them.
class Text {
 public:
  Text(const Place& place, const Request& request, const Kind& kind)
      : place_(place), request_(request), kind_(kind) {
    append_form(text_, R"({"TableName":$)", {place.table});
  }

  void key() {
    text_ += R"(,"Key":{)";
    key_members();
    text_ += '}';
  }
  void item();
  // No update if that is empty.
  void expressions(std::string_view update, std::string_view condition);
  void add(std::string_view text) { text_ += text; }
  std::string end() { return std::move(text_ += '}'); }

 private:
  void key_members();
  void words(char mark, std::string_view update, std::string_view condition);
  std::string_view name(std::string_view word, std::size_t number) const;
  void value(std::string_view word, std::size_t number);
  void lease();
  void string(std::string_view text) {
    append_form(text_, R"({"S":$})", {text});
  }
  void number(std::int64_t value) {
    append_form(text_, R"({"N":"%"})", {std::to_string(value)});
  }
  const Item& set() const {
    return request_.verb == Verb::take ? place_.attributes
                                       : request_.changes->set;
  }

  const Place& place_;
  const Request& request_;
  const Kind& kind_;
  std::string text_;
};

void Text::key_members() {
  append_form(text_, R"($:{"S":$})", {place_.key_name, place_.key});
  if (place_.sort_name.empty()) return;
  append_form(text_, R"(,$:{"S":$})", {place_.sort_name, place_.sort_value});
}

void Text::item() {
  text_ += R"(,"Item":{)";
  key_members();
  for (const char* word : {"uuid", "expires", "owner", "lease", "version"}) {
    const std::string_view attribute = name(word, 0);
    if (attribute.empty()) continue;
    append_form(text_, ",$:", {attribute});
    value(word, 0);
  }
  if (!place_.attributes.empty()) text_ += ',';
  append_members(text_, place_.attributes);
  text_ += '}';
}

void Text::expressions(std::string_view update, std::string_view condition) {
  if (!update.empty()) {
    append(text_, {R"(,"UpdateExpression":")", update, R"(")"});
  }
  append(text_, {R"(,"ConditionExpression":")", condition,
                 R"(","ExpressionAttributeNames":)"});
  words('#', update, condition);
  // Not all conditions compare with anything.
  const bool compares =
      update.find(':') != update.npos || condition.find(':') != condition.npos;
  if (!compares) return;
  text_ += R"(,"ExpressionAttributeValues":)";
  words(':', update, condition);
}

// {"#uuid":"identifier"} or {":uuid":{"S":"..."}}, each once.
void Text::words(char mark, std::string_view update,
                 std::string_view condition) {
  constexpr char kLetters[] = "abcdefghijklmnopqrstuvwxyz_";
  constexpr char kDigits[] = "0123456789";
  std::vector<std::string_view> seen;
  for (const std::string_view text : {update, condition}) {
    for (std::size_t at = text.find(mark); at != text.npos;
         at = text.find(mark, at + 1)) {
      const std::size_t digits =
          std::min(text.find_first_not_of(kLetters, at + 1), text.size());
      const std::size_t end =
          std::min(text.find_first_not_of(kDigits, digits), text.size());
      const std::string_view word = text.substr(at, end - at);
      if (std::find(seen.begin(), seen.end(), word) != seen.end()) continue;
      append(text_, {seen.empty() ? "{\"" : ",\"", word, "\":"});
      seen.push_back(word);
      const std::size_t number =
          digits == end ? 0 : std::stoul(std::string(text.substr(digits, end)));
      const std::string_view kind = text.substr(at + 1, digits - at - 1);
      if (mark == '#') {
        dynamodb::append_string(text_, name(kind, number));
      } else {
        value(kind, number);
      }
    }
  }
  text_ += '}';
}

// Which attribute "#word" is; empty if the layout has none.
std::string_view Text::name(std::string_view word, std::size_t number) const {
  if (word == "key") return place_.key_name;
  if (word == "data") return kDataAttribute;
  if (word == "set") return set()[number].name;
  if (word == "barred") return kBarred;
  if (word == "gone") return request_.changes->remove[number];
  const char* attribute = word == "uuid"       ? kind_.uuid
                          : word == "expires"  ? kind_.expires
                          : word == "owner"    ? kind_.owner
                          : word == "lease"    ? kind_.lease
                          : word == "version"  ? kind_.version
                          : word == "released" ? kind_.released
                                               : nullptr;
  return attribute != nullptr ? attribute : std::string_view();
}

// What ":word" stands for, or the attribute of that name is to be.
void Text::value(std::string_view word, std::size_t index) {
  const bool versions = kind_.version != nullptr;
  const std::string& uuid = request_.uuid;
  if (word == "set") return append_value(text_, set()[index]);
  if (word == "lease") return lease();
  if (word == "version") return string(version_text(uuid, request_.stamp));
  if (word == "own" && versions) {
    return string(version_text(uuid, request_.own[index]));
  }
  if (word == "seen") {
    return string(version_text(request_.seen->uuid, request_.seen->expires));
  }
  if (word == "mine") return string(uuid + ":");
  if (word == "uuid") return string(uuid);
  if (word == "owner") return string(place_.owner);
  if (word == "seen_uuid") return string(request_.seen->uuid);
  if (word == "one") return string("1");
  if (word == "string") return string("S");
  if (word == "binary") return string("B");
  const milliseconds longest = kLongestLease;
  number(word == "expires"        ? request_.stamp.count()
         : word == "own"          ? request_.own[index].count()
         : word == "seen_expires" ? request_.seen->expires.count()
         : word == "earliest"     ? request_.earliest.count()
         : word == "shortest"     ? kShortestLease.count()
         : word == "longest"      ? longest.count()
         : word == "size"         ? std::int64_t{kLongestId}
                                  : 0);  // "zero"
}

void Text::lease() {
  if (kind_.form == Form::number) return number(request_.lease.count());
  const std::int64_t told = told_lease(request_.lease);
  const auto found = static_cast<Form>(request_.form);
  const bool as_found = place_.use.looks_first && found != Form::none;
  const Form form = as_found ? found : kind_.form;
  string(form == Form::go ? go_duration(told) : std::to_string(told));
}

// --- Conditions --------------------------------------------------------------

std::string own_versions(const Request& request) {
  std::string list;
  for (std::size_t i = 0; i < request.own.size(); ++i) {
    append(list, {i == 0 ? ":own" : ", :own", std::to_string(i)});
  }
  return list;
}

// What is not understood is not free either, as far as a condition can ask.  A
// row that this very call has released is not to be taken by one of its own
// takes that comes late.
std::string is_free(const Kind& kind, const RowUse& use) {
  constexpr std::string_view kIsId =
      "attribute_type(#uuid, :string) AND size(#uuid) <= :size";
  constexpr std::string_view kIsReleased =
      "(#released = :one AND attribute_type(#version, :string)"
      " AND size(#version) <= :size AND attribute_type(#owner, :string)"
      " AND attribute_type(#lease, :string)"
      " AND attribute_not_exists(#barred)"
      " AND (attribute_not_exists(#data) OR attribute_type(#data, :binary))"
      " AND NOT begins_with(#version, :mine))";
  const std::string_view absent =
      use.must_exist ? "" : "attribute_not_exists(#key) OR ";
  if (kind.version != nullptr) return join({absent, kIsReleased});
  return join({absent, "(#expires >= :zero AND #expires < :earliest AND ",
               kind.must_exist ? "(attribute_not_exists(#uuid) OR " : "", kIsId,
               kind.must_exist ? ")" : "",
               kind.lease != nullptr
                   ? " AND (attribute_not_exists(#lease)"
                     " OR #lease BETWEEN :shortest AND :longest)"
                   : "",
               use.keep ? " AND #uuid <> :uuid)" : ")"});
}

// Its version is one of ours that was told.
std::string is_own(const Kind& kind, const Request& request) {
  return kind.version != nullptr
             ? join({"#version IN (", own_versions(request),
                     ") AND attribute_not_exists(#released)"})
             : join({"#uuid = :uuid AND #expires IN (", own_versions(request),
                     ")"});
}

// Any attempt of ours will do.
std::string_view is_ours(const Kind& kind) {
  return kind.version != nullptr ? "begins_with(#version, :mine)"
                                 : "#uuid = :uuid";
}

std::string take_condition_of(const Kind& kind, const RowUse& use,
                              const Request& request) {
  std::string text = is_free(kind, use);
  if (request.seen) {
    text += kind.version != nullptr
                ? " OR #version = :seen"
                : " OR (#uuid = :seen_uuid AND #expires = :seen_expires)";
  }
  if (!request.own.empty()) append(text, {" OR (", is_own(kind, request), ")"});
  return text;
}

// ", #set0 = :set0, #set1 = :set1"
std::string set_all(const Item& attributes) {
  std::string text;
  for (std::size_t i = 0; i < attributes.size(); ++i) {
    const std::string number = std::to_string(i);
    append(text, {", #set", number, " = :set", number});
  }
  return text;
}

// Behind the other assignments.
std::string changes_in(const Request& request) {
  if (!request.changes) return "";
  std::string text = set_all(request.changes->set);
  for (std::size_t i = 0; i < request.changes->remove.size(); ++i) {
    append(text, {i == 0 ? " REMOVE #gone" : ", #gone", std::to_string(i)});
  }
  return text;
}

std::string take_changes(const Place& place, const Kind& kind) {
  const bool versions = kind.version != nullptr;
  const bool replaced =
      dynamodb::find(place.attributes, kDataAttribute) != nullptr;
  const bool drops = !place.use.keep_data && !replaced;
  std::string text = versions ? "SET #version = :version"
                              : "SET #uuid = :uuid, #expires = :expires";
  if (kind.lease != nullptr) text += ", #lease = :lease";
  if (kind.owner != nullptr) text += ", #owner = :owner";
  append(text, {set_all(place.attributes), versions ? " REMOVE #released" : "",
                !drops     ? ""
                : versions ? ", #data"
                           : " REMOVE #data"});
  return text;
}

constexpr std::string_view kTellRow = R"(,"ReturnValues":"ALL_NEW")";

void write_take_of(const Place& place, const Request& request, const Kind& kind,
                   Text& body) {
  const std::string condition = take_condition_of(kind, place.use, request);
  if (place.use.takes_by_update()) {
    body.key();
    body.expressions(take_changes(place, kind), condition);
    body.add(kTellRow);
  } else {
    body.item();
    body.expressions("", condition);
  }
}

const Kind& kind_at(const Place& place) {
  return *kKinds[place.layout - kLayouts];
}

std::string write(const Place& place, const Request& request) {
  const Kind& kind = kind_at(place);
  const bool versions = kind.version != nullptr;
  const char* freeing =
      versions ? "SET #released = :one" : "SET #expires = :zero";
  Text body(place, request, kind);
  if (request.verb != Verb::take) body.key();
  switch (request.verb) {
    case Verb::take:
      write_take_of(place, request, kind, body);
      break;
    case Verb::renew:
      body.expressions(join({versions ? "SET #version = :version"
                                      : "SET #expires = :expires",
                             changes_in(request)}),
                       is_own(kind, request));
      if (request.tell) body.add(kTellRow);
      break;
    case Verb::release:
      body.expressions(
          place.use.keep ? join({freeing, changes_in(request)}) : "",
          is_ours(kind));
      break;
    case Verb::force:
      body.expressions(place.use.keep ? freeing : "",
                       versions ? "#version = :version"
                                  " AND attribute_not_exists(#released)"
                                : "#uuid = :uuid AND #expires = :expires");
      break;
    case Verb::check:
      body.expressions("", versions ? "begins_with(#version, :mine)"
                                      " AND attribute_not_exists(#released)"
                                    : "#uuid = :uuid AND #expires > :zero");
      return body.end();
    case Verb::look:
      body.add(request.consistent ? R"(,"ConsistentRead":true)"
                                  : R"(,"ConsistentRead":false)");
      return body.end();
  }
  body.add(R"(,"ReturnValuesOnConditionCheckFailure":"ALL_OLD")");
  return body.end();
}

}  // namespace shared

// --- What the public face asks -----------------------------------------------

using std::chrono::milliseconds;

const lock::Layout* find_layout(const TableOptions& table) {
  if (table.layout == Layout::ddblock) return &lock::kDdblock;
  const auto place = static_cast<std::size_t>(table.layout) - 1;
  return place < std::size(shared::kLayouts) ? &shared::kLayouts[place]
                                             : nullptr;
}

void suit(TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  if (kind == nullptr) return;
  if (table.prefix == TableOptions().prefix) table.prefix.clear();
  if (kind->expires != nullptr && !table.calendar_margin) {
    table.calendar_margin = milliseconds(2000);
  }
}

Failure check_layout(const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  const bool versions = kind != nullptr && kind->version != nullptr;
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

bool keeps_rows(const Options& options, const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  return options.keep_row.value_or(kind != nullptr && kind->keeps);
}

Failure check_shared(const Options& options, const TableOptions& table) {
  const shared::Kind* kind = shared::kind_of(table.layout);
  if (kind == nullptr) return nullptr;
  // Shorter, it would look like seconds in ms: see read_lease_text().
  const bool brief =
      kind->version != nullptr && options.ttl < milliseconds(1000);
  return check_all(
      {{"fencing",
        options.fencing ? "no numbers in a layout that is shared" : ""},
       {"keep_row", kind->must_exist && !keeps_rows(options, table)
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
  use.tells_end = kind->expires != nullptr;
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
