// DynamoDB's JSON: requests and items written, answers and items read.  The
// only place of the lock that knows RapidJSON.
//
//   std::string body;
//   append_form(body, R"({"TableName":$,"Limit":%,"Key":{)", {table, "7"});
//   append_members(body, key);
//   body += "}}";
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_JSON_HPP
#define DDBMUTEX_JSON_HPP

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "item.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace dynamodb {

// --- Writing: each puts something behind `json` -----------------------------

// "text", between quotes.  REQUIRES: UTF-8.
void append_string(std::string& json, std::string_view text);
// The form, with the next of the values in the place of each '$', as a string
// between quotes, and of each '%', as it is.
void append_form(std::string& json, std::string_view form,
                 std::initializer_list<std::string_view> values);
// {"S":"text"}, of any type; without the name.  Of type `other` it is {}, which
// DynamoDB refuses: what it was is not known.
void append_value(std::string& json, const Attribute& attribute);
// "name":{"S":"text"},...: what stands between an object's braces.
void append_members(std::string& json, const Item& item);

// --- Reading ---------------------------------------------------------------

// A value of a Document; it is none where there is nothing, or a null.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return value_ != nullptr; }

  bool is_list() const;
  bool is_object() const;
  // Nothing if it is no string.
  std::optional<std::string_view> text() const;
  // Nothing if it is neither true nor false.
  std::optional<bool> truth() const;
  // Of a list or an object; else 0.
  std::size_t size() const;
  // An element of a list, or what a member of an object is.
  Value operator[](std::size_t place) const;
  // The name of an object's member.
  std::string_view name(std::size_t place) const;
  // Of an object: the first member of that name.  One that is a null is there,
  // though it is none.
  Value operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  // A member that is a string; empty if there is none.
  std::string_view text(std::string_view name) const;

 private:
  friend class Document;
  std::size_t find(std::string_view name) const;
  const void* value_ = nullptr;
};

// A text of RFC 8259 in UTF-8, parsed within itself.  Depth costs no stack.
class Document {
 public:
  explicit Document(std::string text);
  ~Document();
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  // None if the text is not JSON, or a null.
  Value root() const;
  bool is_json() const;
  std::size_t bad_at() const;  // Where it ceases to be so, in bytes.

 private:
  struct Parsed;  // Keeps RapidJSON out of this header.
  std::unique_ptr<Parsed> parsed_;
};

// {"name":{"S":"text"},...}; nothing if it is not of that form, or nested
// deeper than DynamoDB has it (32 levels).
std::optional<Item> read_item(Value value);

bool is_utf8(std::string_view text);

}  // namespace dynamodb
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_JSON_HPP
