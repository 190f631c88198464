#include "item.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <limits>

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

using sigv4::Text;
using Type = Attribute::Type;

namespace {

// How deep DynamoDB nests lists and maps, according to its documentation.  It
// bounds the recursion here too.
constexpr int kDeepest = 32;

// In the order of the enumeration.
constexpr char kTags[][5] = {"S",  "N",  "B",  "BOOL", "NULL",
                             "SS", "NS", "BS", "L",    "M"};
static_assert(std::size(kTags) == static_cast<std::size_t>(Type::other));

// The enumeration begins with these, and has their sets in the same order.
bool is_text(Type type) { return type <= Type::binary; }

// What all members of a set are; `other` if it is no set.
Type member_of(Type set) {
  if (set < Type::string_set || set > Type::binary_set) return Type::other;
  return static_cast<Type>(static_cast<int>(set) -
                           static_cast<int>(Type::string_set));
}

// `other` if it is none of those known.
Type type_of(std::string_view tag) {
  std::size_t type = 0;
  while (type < std::size(kTags) && kTags[type] != tag) ++type;
  return static_cast<Type>(type);
}

// --- Reading ---------------------------------------------------------------

enum class Outcome {
  done,
  malformed,  // Not of DynamoDB's form.
  too_much,   // There are too many values or levels.
};

// Reads a value into an attribute.  `levels`: how many more levels of lists and
// maps it may have.
class ValueReader {
 public:
  // `room`: how many more values may be read, at every level.
  explicit ValueReader(std::size_t& room) : room_(room) {}

  // {"S":"text"}
  Outcome value(Value value, int levels, Attribute& attribute);
  // The same, but sets, lists and maps are not read.  Without `with_text`, only
  // the type is.
  Outcome scalar(Value value, bool with_text, Attribute& attribute);

 private:
  // "text", for an attribute whose type is set.
  Outcome typed(Value value, int levels, Attribute& attribute);
  // The members of a set, a list or a map.
  Outcome members(Value value, int levels, Type type, Item& members);

  std::size_t& room_;
};

Outcome ValueReader::members(Value value, int levels, Type type,
                             Item& members) {
  const std::size_t count = value.size();
  if (count > room_) return Outcome::too_much;
  room_ -= count;
  members = Item(count);
  auto member = members.begin();
  for (Elements each(value); each.next(); ++member) {
    member->name = each.name;
    member->type = type;
    const Outcome outcome = type == Type::other
                                ? this->value(each.value, levels, *member)
                                : typed(each.value, levels, *member);
    if (outcome != Outcome::done) return outcome;
  }
  return Outcome::done;
}

Outcome done_if(bool well) { return well ? Outcome::done : Outcome::malformed; }

Outcome ValueReader::typed(Value value, int levels, Attribute& attribute) {
  const Type type = attribute.type;
  if (type == Type::other) return Outcome::done;
  if (is_text(type)) {
    const auto text = value.text();
    attribute.value = text.value_or("");
    return done_if(text.has_value());
  }
  if (type == Type::null) return done_if(value.is_true());
  if (type == Type::boolean) {
    attribute.value = value.is_true() ? "true" : "false";
    return done_if(value.is_true() || value.is_false());
  }
  if (type >= Type::list && --levels < 0) return Outcome::too_much;
  const bool fits = type == Type::map ? value.is_object() : value.is_list();
  if (!fits) return Outcome::malformed;
  return members(value, levels, member_of(type), attribute.members);
}

Outcome ValueReader::value(Value value, int levels, Attribute& attribute) {
  Elements only(value);
  if (!value.is_object() || !only.next()) return Outcome::malformed;
  attribute.type = dynamodb::type_of(only.name);
  const Outcome outcome = typed(only.value, levels, attribute);
  return outcome == Outcome::done ? done_if(!only.next()) : outcome;
}

Outcome ValueReader::scalar(Value value, bool with_text, Attribute& attribute) {
  Elements only(value);
  if (!value.is_object() || !only.next()) return Outcome::malformed;
  attribute.type = dynamodb::type_of(only.name);
  const bool has_text = attribute.type < Type::string_set;
  const Outcome outcome =
      has_text && with_text ? typed(only.value, 0, attribute) : Outcome::done;
  return outcome == Outcome::done ? done_if(!only.next()) : outcome;
}

// A record has fewer attributes.  Only an answer that is not DynamoDB's repeats
// one of them.
constexpr std::size_t kMostOfRecord = 16;

// Reads the wanted attributes into an item.
class ItemReader {
 public:
  ItemReader(Item& item, const Wanted& wanted) : item_(item), wanted_(wanted) {}

  // False if the value is not of DynamoDB's form.
  bool add(std::string_view name, Value value);
  // Adds the attribute with type `unread`, if there must be one.
  void end();

 private:
  bool is_data(std::string_view name) const {
    return !wanted_.data.empty() && name == wanted_.data;
  }
  Outcome read(std::string_view name, Value value, Attribute& attribute);
  void leave_out(std::string_view name) {
    if (!left_out_) left_out_ = name;
  }

  Item& item_;
  const Wanted wanted_;
  std::size_t room_ = kMostOthers;
  std::size_t of_record_ = 0;
  std::optional<std::string_view> left_out_;  // The first that did not fit.
  std::optional<std::string_view> unwanted_;  // The first that is not wanted.
};

Outcome ItemReader::read(std::string_view name, Value value,
                         Attribute& attribute) {
  std::size_t room = room_;
  ValueReader reader(room);
  if (wanted_.is_of_record(name)) return reader.scalar(value, true, attribute);
  if (is_data(name)) return reader.scalar(value, wanted_.others, attribute);
  if (room-- == 0) return Outcome::too_much;
  const Outcome outcome = reader.value(value, kDeepest, attribute);
  if (outcome == Outcome::done) room_ = room;
  return outcome;
}

bool ItemReader::add(std::string_view name, Value value) {
  const bool always = wanted_.is_of_record(name) || is_data(name);
  if (always && ++of_record_ > kMostOfRecord) return true;
  if (!always && !wanted_.others) {
    if (!unwanted_) unwanted_ = name;
    return true;
  }
  Attribute& attribute = item_.emplace_back();
  const Outcome outcome = read(name, value, attribute);
  attribute.name = name;
  if (outcome == Outcome::too_much) {
    leave_out(name);
    item_.pop_back();
  }
  return outcome != Outcome::malformed;
}

void ItemReader::end() {
  if (!left_out_ && item_.empty()) left_out_ = unwanted_;
  if (!left_out_) return;
  Attribute& attribute = item_.emplace_back();
  attribute.name = *left_out_;
  attribute.type = Type::unread;
}

}  // namespace

void append_value(Text& json, const Attribute& attribute) {
  const Type type = attribute.type;
  if (type >= Type::other) {
    json += "{}";
    return;
  }
  append_form(json, "{$:", {kTags[static_cast<std::size_t>(type)]});
  if (is_text(type)) {
    append_string(json, attribute.value);
  } else if (type == Type::boolean || type == Type::null) {
    json += type == Type::null || attribute.value == "true" ? "true" : "false";
  } else if (type == Type::map) {
    json += '{';
    append_members(json, attribute.members);
    json += '}';
  } else {
    json += '[';
    for (const Attribute& member : attribute.members) {
      if (&member != &attribute.members.front()) json += ',';
      if (type == Type::list) {
        append_value(json, member);
      } else {
        append_string(json, member.value);
      }
    }
    json += ']';
  }
  json += '}';
}

void append_members(Text& json, const Item& item) {
  for (const Attribute& attribute : item) {
    append_form(json,
                &attribute == &item.front() ? "$:" : ",$:", {attribute.name});
    append_value(json, attribute);
  }
}

const Attribute* find(const Item& item, std::string_view name) {
  for (const Attribute& attribute : item) {
    if (attribute.name == name) return &attribute;
  }
  return nullptr;
}

const Attribute* find(const Item& item, const char* name) {
  return dynamodb::find(item, std::string_view(name));
}

bool Wanted::is_of_record(std::string_view name) const {
  for (const AttributeName& one : record) {
    if (name == one.attribute) return true;
  }
  return false;
}

bool read_item(Value value, Item& item, const Wanted& wanted) {
  if (!value.is_object()) return false;
  const std::size_t most = kMostOfRecord + (wanted.others ? kMostOthers : 0);
  item.reserve(std::min(value.size() + 1, most + 1));
  ItemReader reader(item, wanted);
  for (Elements each(value); each.next();) {
    if (!reader.add(each.name, each.value)) return false;
  }
  reader.end();
  return true;
}

std::optional<std::int64_t> parse_digits(std::string_view text) {
  if (text.empty()) return std::nullopt;
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  std::int64_t number = 0;
  for (const char c : text) {
    if (c < '0' || c > '9') return std::nullopt;
    const int digit = c - '0';
    if (number > (kMax - digit) / 10) return std::nullopt;
    number = number * 10 + digit;
  }
  return number;
}

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex
