#include "lock/record.hpp"

#include <rapidjson/memorystream.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace lock {

using dynamodb::Attribute;
using dynamodb::Item;
using Verb = Request::Verb;

namespace {

// How long DynamoDB's own clean-up leaves a row alone after its lease ended.
constexpr std::chrono::hours kCleanUpAfter{24};

// Our uuids have 32 characters.  A foreign one is sent back to DynamoDB when
// its record is taken, so it must not be of any size.
constexpr int kLongestUuid = 1024;

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

Row not_understood(std::string problem) {
  Row row;
  row.kind = Row::Kind::unknown;
  row.problem = std::move(problem);
  return row;
}

// --- Writing ---------------------------------------------------------------

using Writer = rapidjson::Writer<rapidjson::StringBuffer>;

void write_string(Writer& writer, std::string_view text) {
  writer.String(text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

void write_pair(Writer& writer, std::string_view name, std::string_view value) {
  write_string(writer, name);
  write_string(writer, value);
}

// "name":{"S":"value"}
void write_attribute(Writer& writer, std::string_view name,
                     std::string_view type, std::string_view value) {
  write_string(writer, name);
  writer.StartObject();
  write_pair(writer, type, value);
  writer.EndObject();
}

void write_number(Writer& writer, std::string_view name, std::int64_t value) {
  write_attribute(writer, name, "N", std::to_string(value));
}

std::int64_t clean_up_at(ServiceTime expires) {
  return std::chrono::duration_cast<std::chrono::seconds>(expires +
                                                          kCleanUpAfter)
      .count();
}

void write_key(Writer& writer, const Place& place) {
  write_string(writer, "Key");
  writer.StartObject();
  write_attribute(writer, kKeyAttribute, "S", place.key);
  writer.EndObject();
}

// Names of our versions in an expression: ":own0", ":own1" and so on.
std::string own_name(std::size_t index) {
  return ":own" + std::to_string(index);
}

std::string own_list(const Request& request) {
  std::string list;
  for (std::size_t i = 0; i < request.own.size(); ++i) {
    list += (i == 0 ? "" : ", ") + own_name(i);
  }
  return list;
}

// What read_row() would not understand is not over either, so the second clause
// asks for what it can of types and bounds.
std::string take_condition(const Request& request) {
  std::string condition =
      "attribute_not_exists(#name)"
      " OR (#expires >= :zero AND #expires < :earliest"
      " AND attribute_type(#uuid, :string) AND size(#uuid) <= :uuid_size"
      " AND attribute_not_exists(#token)"
      " AND (attribute_not_exists(#lease)"
      " OR #lease BETWEEN :shortest AND :longest))";
  if (request.seen) {
    condition += " OR (#uuid = :seen_uuid AND #expires = :seen_expires)";
  }
  if (!request.own.empty()) {
    condition +=
        " OR (#uuid = :uuid AND #expires IN (" + own_list(request) + "))";
  }
  return condition;
}

void write_names(Writer& writer,
                 std::initializer_list<std::string_view> attributes) {
  write_string(writer, "ExpressionAttributeNames");
  writer.StartObject();
  for (const std::string_view attribute : attributes) {
    write_pair(writer, "#" + std::string(attribute), attribute);
  }
  writer.EndObject();
}

void write_own_values(Writer& writer, const Request& request) {
  for (std::size_t i = 0; i < request.own.size(); ++i) {
    write_number(writer, own_name(i), request.own[i].count());
  }
}

void write_take(Writer& writer, const Place& place, const Request& request) {
  write_string(writer, "Item");
  writer.StartObject();
  write_attribute(writer, kKeyAttribute, "S", place.key);
  write_attribute(writer, "uuid", "S", request.uuid);
  write_number(writer, "expires", request.stamp.count());
  write_number(writer, "lease", request.lease.count());
  write_attribute(writer, "owner", "S", place.owner);
  write_number(writer, kTtlAttribute, clean_up_at(request.stamp));
  writer.EndObject();
  write_pair(writer, "ConditionExpression", take_condition(request));
  write_names(writer, {kKeyAttribute, "uuid", "expires", "lease", "token"});
  write_string(writer, "ExpressionAttributeValues");
  writer.StartObject();
  write_number(writer, ":zero", 0);
  write_number(writer, ":earliest", request.earliest.count());
  write_attribute(writer, ":string", "S", "S");
  write_number(writer, ":uuid_size", kLongestUuid);
  write_number(writer, ":shortest", kShortestLease.count());
  write_number(writer, ":longest",
               std::chrono::milliseconds(kLongestLease).count());
  if (request.seen) {
    write_attribute(writer, ":seen_uuid", "S", request.seen->uuid);
    write_number(writer, ":seen_expires", request.seen->expires.count());
  }
  if (!request.own.empty()) {
    write_attribute(writer, ":uuid", "S", request.uuid);
    write_own_values(writer, request);
  }
  writer.EndObject();
}

void write_renewal(Writer& writer, const Place& place, const Request& request) {
  write_key(writer, place);
  write_pair(writer, "UpdateExpression",
             "SET #expires = :expires, #ttl = :ttl");
  write_pair(writer, "ConditionExpression",
             "#uuid = :uuid AND #expires IN (" + own_list(request) + ")");
  write_names(writer, {"uuid", "expires", kTtlAttribute});
  write_string(writer, "ExpressionAttributeValues");
  writer.StartObject();
  write_number(writer, ":expires", request.stamp.count());
  write_number(writer, ":ttl", clean_up_at(request.stamp));
  write_attribute(writer, ":uuid", "S", request.uuid);
  write_own_values(writer, request);
  writer.EndObject();
}

void write_release(Writer& writer, const Place& place, const Request& request) {
  write_key(writer, place);
  write_pair(writer, "ConditionExpression", "#uuid = :uuid");
  write_names(writer, {"uuid"});
  write_string(writer, "ExpressionAttributeValues");
  writer.StartObject();
  write_attribute(writer, ":uuid", "S", request.uuid);
  writer.EndObject();
}

}  // namespace

Row read_row(const Item& item) {
  if (item.empty()) return {};
  if (dynamodb::find(item, "token") != nullptr) {
    Row row;
    row.kind = Row::Kind::kept;
    return row;
  }
  const Attribute* uuid = dynamodb::find(item, "uuid");
  if (uuid == nullptr) return not_understood("uuid is missing");
  if (!is_uuid(*uuid)) {
    return not_understood("uuid is not a string of 1 to 1,024 bytes");
  }
  const Attribute* expires = dynamodb::find(item, "expires");
  if (expires == nullptr) return not_understood("expires is missing");
  const auto expires_ns = parse_number(*expires);
  if (!expires_ns) {
    return not_understood("expires is no whole number of nanoseconds");
  }
  Row row;
  if (const Attribute* lease = dynamodb::find(item, "lease")) {
    const auto lease_ms = parse_number(*lease);
    const std::chrono::milliseconds longest = kLongestLease;
    if (!lease_ms || *lease_ms < kShortestLease.count() ||
        *lease_ms > longest.count()) {
      return not_understood("lease is no number of milliseconds up to a year");
    }
    row.lease = std::chrono::milliseconds(*lease_ms);
  }
  row.kind = Row::Kind::record;
  row.uuid = uuid->value;
  row.expires = ServiceTime(*expires_ns);
  const Attribute* owner = dynamodb::find(item, "owner");
  if (owner != nullptr && owner->type == Attribute::Type::string) {
    row.owner = owner->value;
  }
  return row;
}

std::string write_request(const Place& place, const Request& request) {
  rapidjson::StringBuffer buffer(nullptr, 2048);
  Writer writer(buffer);
  writer.StartObject();
  write_pair(writer, "TableName", place.table);
  switch (request.verb) {
    case Verb::take:
      write_take(writer, place, request);
      break;
    case Verb::renew:
      write_renewal(writer, place, request);
      break;
    case Verb::release:
      write_release(writer, place, request);
      break;
    case Verb::look:
      write_key(writer, place);
      write_string(writer, "ConsistentRead");
      writer.Bool(request.consistent);
      break;
  }
  if (request.verb != Verb::look) {
    write_pair(writer, "ReturnValuesOnConditionCheckFailure", "ALL_OLD");
  }
  writer.EndObject();
  return {buffer.GetString(), buffer.GetSize()};
}

bool is_utf8(std::string_view text) {
  struct Nowhere {
    void Put(char) {}
  } nowhere;
  rapidjson::MemoryStream stream(text.data(), text.size());
  while (stream.Tell() < text.size()) {
    if (!rapidjson::UTF8<>::Validate(stream, nowhere)) return false;
  }
  return stream.Tell() == text.size();
}

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
