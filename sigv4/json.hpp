// JSON (RFC 8259), read and written.
//
//   const Document document(std::move(body));
//   for (Elements each(document.root()["Items"]); each.next();) {
//     use(each.value.text("Name"));
//   }
//
//   Text json;
//   append_form(json, R"({"TableName":$,"Limit":%})", {table, "7"});
//   send(json.take());
//
// Reading is strict: one value and nothing behind it but blanks; no byte order
// mark, no NUL (in a string "\u0000" is one), no half of a surrogate pair.
// Depth costs no stack.
//
// Thread safety: any thread may call anything here.
#ifndef DDBMUTEX_SIGV4_JSON_HPP
#define DDBMUTEX_SIGV4_JSON_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "secret.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// --- Reading ---------------------------------------------------------------

// A value, or the name of a member.  What kind of value it is shows in its
// first character: one of {["tfn, a digit or a '-'.
struct JsonNode {
  char first() const { return *begin; }
  // REQUIRES: a string.
  std::string_view string() const { return {begin + 1, count}; }
  const JsonNode* after() const { return this + (first() == '"' ? 1 : count); }

  const char* begin;
  std::uint32_t size;  // As it is written, with its quotes or brackets.
  // Of a string: the bytes that it stands for, which are behind its quote.
  // Else of nodes: it, and all within it.
  std::uint32_t count;
};

// A value of a Document; it is none where there is nothing, or a null.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return node_ != nullptr; }

  bool is_list() const { return first() == '['; }
  bool is_object() const { return first() == '{'; }
  bool is_true() const { return first() == 't'; }
  bool is_false() const { return first() == 'f'; }
  // Nothing if it is no string.
  std::optional<std::string_view> text() const;
  // What stands before the point, also of one that is written as 1.5e3; nothing
  // if it is no number, or takes more than 63 bits.
  std::optional<std::int64_t> number() const;
  // Of a list or an object, counted; else 0.
  std::size_t size() const;
  // Of an object: the last member of that name, as Python and JavaScript have
  // it.
  Value operator[](const char* name) const;
  // A member that is a string; empty if there is none.
  std::string_view text(const char* name) const;

 private:
  friend class Document;
  friend class Elements;
  explicit Value(const JsonNode* node)
      : node_(node->first() == 'n' ? nullptr : node) {}
  char first() const { return node_ != nullptr ? node_->first() : '\0'; }

  const JsonNode* node_ = nullptr;
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
  const JsonNode* at_ = nullptr;
  const JsonNode* end_ = nullptr;
};

// Members that are strings, by their names.
using JsonTexts =
    std::initializer_list<std::pair<std::string_view, std::string_view>>;

// Strings are decoded where they stand, and all of it is wiped with it: it may
// hold keys.
class Document {
 public:
  // What strings may be of, beyond ASCII.
  enum class Strings { utf8, any_bytes };

  explicit Document(std::string&& text, Strings strings = Strings::utf8);
  Document(const Document&) = delete;
  Document& operator=(const Document&) = delete;
  ~Document();

  // None if the text is not JSON, or a null.
  Value root() const;
  bool is_json() const { return nodes_ != nullptr; }
  std::size_t bad_at() const { return bad_at_; }  // In bytes, if it is not.

 private:
  friend std::string with_texts(std::string_view, JsonTexts, std::string_view,
                                JsonTexts);

  Secret text_;
  // The root, and behind each list its elements, behind each object its
  // members: name, value, name, value.  Null if it is not JSON.
  std::unique_ptr<JsonNode[]> nodes_;
  std::size_t bad_at_ = 0;
};

// --- Writing ---------------------------------------------------------------

// Puts "text", between quotes, behind `json`.  REQUIRES: UTF-8.
void append_string(Text& json, std::string_view text);
// The form, with the next of the values in the place of each '$', as a string
// between quotes, and of each '%', as it is.
void append_form(Text& json, std::string_view form,
                 std::initializer_list<std::string_view> values);

// The object with `texts` as members: they replace members of these names, or
// are added.  All other members stay as they are written.  If its member
// `inner_name` is an object, the same is done there with `inner`.  The caller
// wipes the result.  REQUIRES: an object.
std::string with_texts(std::string_view object, JsonTexts texts,
                       std::string_view inner_name = {}, JsonTexts inner = {});

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_JSON_HPP
