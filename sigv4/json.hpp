// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// JSON (RFC 8259).  RapidJSON reads and writes it.
//
//   const Document document(std::move(body));
//   for (Elements each(document.root()["Items"]); each.next();) {
//     use(each.value.text("Name"));
//   }
//
//   Text body;
//   JsonWriter json(body);
//   json.begin_object();
//   json.name("TableName").text(table);
//   json.name("Limit").number(7);
//   json.end_object();
//
// Reading is strict: the text is UTF-8 and has one value.  It has no byte order
// mark, no NUL (but strings may have "\u0000"), and no half of a surrogate
// pair.  Lists and objects may be nested 1,000 levels deep.  Numbers with an
// exponent beyond 308 are refused.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_SIGV4_JSON_HPP
#define DDBMUTEX_SIGV4_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "secret.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// --- Reading ---------------------------------------------------------------

// A value, or the name of a member, in the list of nodes of a Document.
struct JsonNode {
  enum class Kind : std::uint32_t {
    null,
    false_value,
    true_value,
    number,
    string,
    list,
    object,
  };

  bool has_text() const { return kind == Kind::number || kind == Kind::string; }
  std::string_view text() const { return {begin, size}; }
  // The node after this one and all nodes within it.
  const JsonNode* next() const { return this + (has_text() ? 1 : size); }

  Kind kind;
  // The bytes of a string or number.  For any other value, the number of nodes:
  // this one and all within it.
  std::uint32_t size;
  const char* begin;  // Of a string or number.
};

// A value of a Document.  It converts to false if there is none, or a null.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return node_ != nullptr; }

  bool is_list() const { return is(JsonNode::Kind::list); }
  bool is_object() const { return is(JsonNode::Kind::object); }
  bool is_true() const { return is(JsonNode::Kind::true_value); }
  bool is_false() const { return is(JsonNode::Kind::false_value); }
  // Nothing if it is not a string.
  std::optional<std::string_view> text() const;
  // The number without its fraction: 1500 for 1.5e3.  Nothing if it is not a
  // number, or needs more than 63 bits.
  std::optional<std::int64_t> number() const;
  // Counts the elements of a list or the members of an object; else 0.
  std::size_t size() const;
  // The member of an object.  The last one if there are several, as in Python
  // and JavaScript.
  Value operator[](const char* name) const;
  // The text of a member; empty if there is no member that is a string.
  std::string_view text(const char* name) const;

 private:
  friend class Document;
  friend class Elements;
  friend class JsonWriter;
  explicit Value(const JsonNode* node)
      : node_(node->kind == JsonNode::Kind::null ? nullptr : node) {}
  bool is(JsonNode::Kind kind) const {
    return node_ != nullptr && node_->kind == kind;
  }

  const JsonNode* node_ = nullptr;
};

// Iterates over the elements of a list, or the members of an object.
class Elements {
 public:
  explicit Elements(Value of);
  bool next();  // False after the last one.

  std::string_view name;  // Of an object's member.
  Value value;

 private:
  const bool named_;
  const JsonNode* at_ = nullptr;
  const JsonNode* end_ = nullptr;
};

// A text that was read as JSON.  Strings are decoded in place.  The text is
// wiped when this is destroyed, because it may hold keys.
class Document {
 public:
  explicit Document(std::string&& text);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;

  // No value if the text is not JSON, or is a null.
  Value root() const { return is_json() ? Value(nodes_.get()) : Value(); }
  bool is_json() const { return nodes_ != nullptr; }
  // At which byte it is not JSON.
  std::size_t error_offset() const { return error_offset_; }

 private:
  Secret text_;
  // The root first.  Each list is followed by its elements, each object by its
  // members: name, value, name, value.  Null if the text is not JSON.
  std::unique_ptr<JsonNode[]> nodes_;
  std::size_t error_offset_ = 0;
};

// --- Writing ---------------------------------------------------------------

// Appends one value to a text, by calls in the order of the JSON.  REQUIRES:
// strings are UTF-8.
class JsonWriter {
 public:
  explicit JsonWriter(Text& json);  // `json` must outlive this.
  ~JsonWriter();
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;

  void begin_object();
  void end_object();
  void begin_list();
  void end_list();
  // The name of an object's next member.
  JsonWriter& name(std::string_view text);

  void text(std::string_view text);
  // A string in pieces.  REQUIRES: nothing in them needs an escape.
  void begin_text();
  void add_plain(std::string_view piece) { json_ += piece; }
  void end_text() { json_ += '"'; }
  void number(std::int64_t number);
  void boolean(bool value);
  // A value that is JSON already, in pieces; in a list, several with commas
  // between them.
  void json(Pieces pieces);

 private:
  class Impl;
  void begin_value();

  Text& json_;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_JSON_HPP
