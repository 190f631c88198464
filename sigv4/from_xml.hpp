// A small, strict reader of XML, for the answers of services that speak it.
//
//   const XmlDocument document(http.body);
//   if (!document.error().empty()) return refuse(document.error());
//   auto id = document.text("AssumeRoleResponse/AssumeRoleResult/Credentials/"
//                           "AccessKeyId");
//
// It reads elements and their text, with the five named references, numeric
// ones and CDATA sections.  Comments, processing instructions and attributes
// are looked at for their form and passed over, the XML declaration up to its
// end; names are taken with their prefix, as they stand.  There is no document
// type, and so no entity that would grow: a '<!DOCTYPE' is refused, as are text
// beside elements (no service answers so, but web pages look so), a document
// of more than 64 KiB and all that is not well-formed.
//
// Bytes beyond ASCII are taken as they are, whatever encoding is declared, and
// so are line ends.  Takes time and memory in proportion to the document, and
// does not recurse.  What it holds is wiped when it goes; errors say where
// something is wrong, never what stands there.
#ifndef DDBMUTEX_SIGV4_FROM_XML_HPP
#define DDBMUTEX_SIGV4_FROM_XML_HPP

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "secret.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

constexpr std::size_t kMaxXmlBytes = 64 * 1024;

class XmlDocument {
 public:
  // Pure.  Keeps nothing of `xml`.
  explicit XmlDocument(std::string_view xml);

  // "byte 17: a tag is not closed"; empty if all is well.  Of a bad document
  // nothing else is to be had.
  const std::string& error() const noexcept { return error_; }

  // The name of the outermost element.
  std::string_view root() const noexcept;

  // The text of the one element of that path ("root/child/grandchild");
  // nothing if there is none, if it has elements in it, or if it is not the
  // only one: then nobody can say which is meant.  Good for as long as the
  // document is.
  std::optional<std::string_view> text(std::string_view path) const;

 private:
  friend class XmlParser;

  struct Element {
    std::size_t parent = 0;  // Index; the root is its own.
    std::size_t name_at = 0, name_size = 0;
    std::size_t text_at = 0, text_size = 0;
    bool has_elements = false;
  };

  std::string_view name_of(const Element& element) const;
  std::optional<std::size_t> child(std::size_t parent,
                                   std::string_view name) const;

  Secret names_and_texts_;
  std::vector<Element> elements_;  // As they begin.
  std::string error_;
};

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex

#endif  // DDBMUTEX_SIGV4_FROM_XML_HPP
