// DynamoDB's JSON: requests and items written, answers and items read.
//
//   sigv4::Text body;
//   append_form(body, R"({"TableName":$,"Limit":%,"Key":{)", {table, "7"});
//   append_members(body, key);
//   body += "}}";
//   send(body.take());
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_JSON_HPP
#define DDBMUTEX_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../sigv4/json_nodes.hpp"
#include "../sigv4/text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// --- An item: names and typed values ----------------------------------------

struct Attribute {
  enum class Type {
    string,      // "S"
    number,      // "N": `value` holds the decimal text.
    binary,      // "B": `value` holds the base64 text.
    boolean,     // "BOOL": `value` is "true" or "false".
    null,        // "NULL"
    string_set,  // "SS", and so on: `members` without names.
    number_set,
    binary_set,
    list,   // "L": the same.
    map,    // "M"
    other,  // None of those.
  };
  std::string name;
  Type type = Type::other;
  std::string value{};
  std::vector<Attribute> members{};
};

using Item = std::vector<Attribute>;

// Without its part "attributes" the library has no use for what is in sets,
// lists and maps, and does not read it.
#ifdef DDBMUTEX_NO_ATTRIBUTES
constexpr bool kReadsMembers = false;
#else
constexpr bool kReadsMembers = true;
#endif

// The attribute of that name; null if there is none.
const Attribute* find(const Item& item, std::string_view name);
const Attribute* find(const Item& item, const char* name);

// --- Writing: each puts something behind `json` -----------------------------

// "text", between quotes.  REQUIRES: UTF-8.
void append_string(sigv4::Text& json, std::string_view text);
// The form, with the next of the values in the place of each '$', as a string
// between quotes, and of each '%', as it is.
void append_form(sigv4::Text& json, std::string_view form,
                 std::initializer_list<std::string_view> values);
// {"S":"text"}, of any type; without the name.  Of type `other` it is {}, which
// DynamoDB refuses: what it was is not known.
void append_value(sigv4::Text& json, const Attribute& attribute);
// "name":{"S":"text"},...: what stands between an object's braces.
void append_members(sigv4::Text& json, const Item& item);

// --- Reading ---------------------------------------------------------------

// A value of a Document; it is none where there is nothing, or a null.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return node_ != nullptr; }

  bool is_list() const { return first() == '['; }
  bool is_object() const { return first() == '{'; }
  // Nothing if it is no string.
  std::optional<std::string_view> text() const;
  // Nothing if it is neither true nor false.
  std::optional<bool> truth() const;
  // Of a list or an object, counted; else 0.
  std::size_t size() const;
  // Of an object: the first member of that name.
  Value operator[](const char* name) const;
  // A member that is a string; empty if there is none.
  std::string_view text(const char* name) const;

 private:
  friend class Document;
  friend class Elements;
  explicit Value(const sigv4::JsonNode* node)
      : node_(node->first() == 'n' ? nullptr : node) {}
  char first() const { return node_ != nullptr ? node_->first() : '\0'; }

  const sigv4::JsonNode* node_ = nullptr;
};

// What is in a list, or in an object, one after the other.
class Elements {
 public:
  explicit Elements(Value of);
  bool next();  // False behind the last.

  std::string_view name;  // Of an object's member.
  Value value;

 private:
  const bool named_;
  const sigv4::JsonNode* at_ = nullptr;
  const sigv4::JsonNode* end_ = nullptr;
};

// A text of RFC 8259 in UTF-8, as strict as sigv4/json_nodes.hpp.  Strings are
// decoded where they stand.
class Document {
 public:
  explicit Document(std::string text);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  // None if the text is not JSON, or a null.
  Value root() const;
  bool is_json() const { return !nodes_.empty(); }
  std::size_t bad_at() const { return bad_at_; }  // In bytes, if it is not.

 private:
  std::string text_;
  sigv4::JsonNodes nodes_;
  std::size_t bad_at_ = 0;
};

// {"name":{"S":"text"},...}; nothing if it is not of that form, or nested
// deeper than DynamoDB has it (32 levels).
std::optional<Item> read_item(Value value);

bool is_utf8(std::string_view text);

// A whole number that is not negative: digits only, no more than 63 bits take.
std::optional<std::int64_t> parse_digits(std::string_view text);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_JSON_HPP
