// JSON, read: what stands where in a text.
//
//   JsonNodes nodes;
//   if (!read_json(text, nodes)) return "not JSON";
//   // {"a":[1,"x"]} is six nodes: {...}, "a", [...], 1, "x".
//
// Strict: RFC 8259, one value and nothing behind it but blanks; no byte order
// mark, no NUL (in a string "\u0000" is one), no half of a surrogate pair.
// Bytes beyond ASCII are taken as they are, within strings.  Depth costs no
// stack, and numbers are left as they are written.
//
// Pure functions.
#ifndef DDBMUTEX_SIGV4_JSON_NODES_HPP
#define DDBMUTEX_SIGV4_JSON_NODES_HPP

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

// A value, or the name of a member.
struct JsonNode {
  // What kind of value it is shows in its first character: one of {["tfn, a
  // digit or a '-'.
  char first() const { return *text; }
  std::string_view raw() const { return {text, size}; }
  const JsonNode* after() const { return this + count; }

  const char* text;  // As it is written, with its quotes or brackets.
  std::uint32_t size;
  std::uint32_t count;  // Of nodes: it, and all within it.
};

// The root, and behind each list its elements, behind each object its members:
// name, value, name, value.
using JsonNodes = std::vector<JsonNode>;

// The nodes of the text, which are views of it, behind none.  False if it is no
// JSON; `bad_at`: where it ceases to be so, in bytes.
bool read_json(std::string_view text, JsonNodes& nodes,
               std::size_t* bad_at = nullptr);

// Writes what a string stands for, which may be where it stands itself, and
// returns the end.  `quoted`: with its quotes, out of a node.
char* decode_json(std::string_view quoted, char* out);

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_JSON_NODES_HPP
