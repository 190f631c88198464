#include "from_xml.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

using Code = std::uint32_t;

constexpr std::size_t kMaxAttributes = 32;
constexpr Code kNoCharacter = 0x110000;

struct Named {
  std::string_view name;
  char character;
};
constexpr std::array<Named, 5> kNamed = {
    {{"amp", '&'}, {"lt", '<'}, {"gt", '>'}, {"quot", '"'}, {"apos", '\''}}};

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         c == ':' || static_cast<unsigned char>(c) >= 0x80;
}

bool continues_name(char c) {
  return begins_name(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < ' ' && !is_blank(c);
}

// What XML 1.0 calls a Char.
bool is_character(Code code) {
  if (code < 0x20) return code == '\t' || code == '\n' || code == '\r';
  return code < 0xd800 || (code >= 0xe000 && code <= 0xfffd) ||
         (code >= 0x10000 && code < kNoCharacter);
}

int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 16;
}

// Of "#38" or "#x26"; kNoCharacter if it is no character's.
Code numbered(std::string_view reference) {
  reference.remove_prefix(1);
  Code base = 10;
  if (reference.substr(0, 1) == "x") {
    base = 16;
    reference.remove_prefix(1);
  }
  if (reference.empty()) return kNoCharacter;
  Code code = 0;
  for (const char c : reference) {
    const Code digit = static_cast<Code>(digit_of(c));
    if (digit >= base) return kNoCharacter;
    code = std::min(code * base + digit, kNoCharacter);
  }
  return is_character(code) ? code : kNoCharacter;
}

void append_utf8(std::string& out, Code code) {
  const auto byte = [&](Code bits) { out += static_cast<char>(bits); };
  const auto tail = [&](int shift) { byte(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) {
    byte(code);
  } else if (code < 0x800) {
    byte(0xc0 | (code >> 6));
    tail(0);
  } else if (code < 0x10000) {
    byte(0xe0 | (code >> 12));
    tail(6);
    tail(0);
  } else {
    byte(0xf0 | (code >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

// "xml" in any case: names that are XML's own.
bool is_reserved(std::string_view target) {
  return target.size() == 3 && (target[0] | 0x20) == 'x' &&
         (target[1] | 0x20) == 'm' && (target[2] | 0x20) == 'l';
}

}  // namespace

// Each function takes what it is named for, or sets the error and returns
// false.  What is kept grows no longer than the document, so it is never
// moved, which would leave a copy behind.
class XmlParser {
 public:
  XmlParser(XmlDocument& document, std::string_view xml)
      : document_(document), xml_(xml) {
    kept_.reserve(xml.size());
  }
  void parse();

 private:
  bool fail(const char* what);
  bool at(std::string_view text) const {
    return xml_.compare(at_, text.size(), text) == 0;
  }
  bool pass(std::string_view text);
  void skip_blanks();
  bool all();
  bool markup();
  bool pass_until(std::string_view end, std::string_view& passed,
                  const char* what);
  bool comment();
  bool instruction();
  bool cdata();
  bool characters();
  bool reference(std::string* out);
  std::string_view name();
  bool attributes();
  bool attribute(std::string_view attribute_name);
  bool begin_element();
  bool end_element();
  void close();
  bool has_child();
  bool take(std::string_view text);
  bool is_inside() const { return is_open_; }
  XmlDocument::Element& current() { return document_.elements_[open_]; }

  XmlDocument& document_;
  const std::string_view xml_;
  std::size_t at_ = 0;
  std::string kept_;      // Names and texts, one behind the other.
  bool is_open_ = false;  // An element is.
  std::size_t open_ = 0;  // Which.
};

void XmlParser::parse() {
  if (xml_.size() > kMaxXmlBytes) {
    fail("the document is too long");
  } else {
    all();
  }
  document_.names_and_texts_ = Secret(std::move(kept_));
  if (!document_.error_.empty()) document_.elements_.clear();
}

bool XmlParser::fail(const char* what) {
  document_.error_ = "byte " + std::to_string(at_) + ": " + what;
  return false;
}

bool XmlParser::pass(std::string_view text) {
  if (!at(text)) return false;
  at_ += text.size();
  return true;
}

void XmlParser::skip_blanks() {
  while (at_ < xml_.size() && is_blank(xml_[at_])) ++at_;
}

bool XmlParser::all() {
  const auto control = std::find_if(xml_.begin(), xml_.end(), is_control);
  if (control != xml_.end()) {
    at_ = static_cast<std::size_t>(control - xml_.begin());
    return fail("a control character");
  }
  pass("\xef\xbb\xbf");
  if (at("<?xml") && at_ + 5 < xml_.size() && is_blank(xml_[at_ + 5])) {
    std::string_view declaration;
    if (!pass_until("?>", declaration, "the declaration has no end")) {
      return false;
    }
  }
  while (at_ < xml_.size()) {
    if (!(xml_[at_] == '<' ? markup() : characters())) return false;
  }
  if (document_.elements_.empty()) return fail("there is no element");
  return !is_inside() || fail("an element has no end");
}

bool XmlParser::markup() {
  if (at("</")) return end_element();
  if (at("<!--")) return comment();
  if (at("<?")) return instruction();
  if (at("<![CDATA[")) return cdata();
  if (at("<!")) return fail("a document type or the like");
  return begin_element();
}

// Up to `end`, which is passed too.
bool XmlParser::pass_until(std::string_view end, std::string_view& passed,
                           const char* what) {
  const std::size_t found = xml_.find(end, at_);
  if (found == xml_.npos) return fail(what);
  passed = xml_.substr(at_, found - at_);
  at_ = found + end.size();
  return true;
}

bool XmlParser::comment() {
  std::string_view passed;
  at_ += 4;
  if (!pass_until("--", passed, "a comment has no end")) return false;
  return pass(">") || fail("'--' in a comment");
}

bool XmlParser::instruction() {
  at_ += 2;
  const std::string_view target = name();
  if (target.empty()) return fail("an instruction has no name");
  if (is_reserved(target)) return fail("a declaration that is not the first");
  if (!at("?>") && (at_ == xml_.size() || !is_blank(xml_[at_]))) {
    return fail("no blank behind the name of an instruction");
  }
  std::string_view passed;
  return pass_until("?>", passed, "an instruction has no end");
}

bool XmlParser::cdata() {
  if (!is_inside()) return fail("text outside of the elements");
  at_ += 9;
  std::string_view text;
  return pass_until("]]>", text, "a CDATA section has no end") && take(text);
}

// Up to the next markup.
bool XmlParser::characters() {
  const std::size_t end = std::min(xml_.find_first_of("<&", at_), xml_.size());
  const std::string_view text = xml_.substr(at_, end - at_);
  if (text.find("]]>") != text.npos) return fail("']]>' in a text");
  if (!is_inside()) {
    skip_blanks();
    return at_ == end && !at("&") ? true : fail("text outside of the elements");
  }
  if (!take(text)) return false;
  at_ = end;
  if (!at("&")) return true;
  std::string character;
  return reference(&character) && take(character);
}

// Text of the element that is open.  Between elements there are but blanks.
bool XmlParser::take(std::string_view text) {
  if (current().has_elements) {
    return std::all_of(text.begin(), text.end(), is_blank) ||
           fail("text beside elements");
  }
  kept_ += text;
  current().text_size += text.size();
  return true;
}

// "&amp;": what it stands for, if anybody wants to know.
bool XmlParser::reference(std::string* out) {
  constexpr std::size_t kLongest = 12;  // More zeros before a number than that
                                        // are nobody's.
  ++at_;
  const std::size_t end = xml_.substr(at_, kLongest).find(';');
  if (end == xml_.npos) return fail("'&' begins no reference");
  const std::string_view what = xml_.substr(at_, end);
  Code code = kNoCharacter;
  if (!what.empty() && what.front() == '#') code = numbered(what);
  for (const Named& named : kNamed) {
    if (named.name == what) code = static_cast<Code>(named.character);
  }
  if (code == kNoCharacter) return fail("a reference to no character");
  at_ += end + 1;
  if (out != nullptr) append_utf8(*out, code);
  return true;
}

// Empty if there is none.
std::string_view XmlParser::name() {
  const std::size_t begin = at_;
  if (at_ < xml_.size() && begins_name(xml_[at_])) ++at_;
  while (at_ > begin && at_ < xml_.size() && continues_name(xml_[at_])) ++at_;
  return xml_.substr(begin, at_ - begin);
}

bool XmlParser::attribute(std::string_view attribute_name) {
  if (attribute_name.empty()) return fail("a tag is not closed");
  skip_blanks();
  if (!pass("=")) return fail("an attribute without a value");
  skip_blanks();
  if (!at("\"") && !at("'")) return fail("a value without quotes");
  const char quote = xml_[at_++];
  for (;;) {
    while (at_ < xml_.size() && xml_[at_] != quote && !at("&") && !at("<")) {
      ++at_;
    }
    if (at("&")) {
      if (!reference(nullptr)) return false;
      continue;
    }
    if (at_ == xml_.size() || at("<")) return fail("a value has no end");
    ++at_;
    return true;
  }
}

// Up to the end of the tag.
bool XmlParser::attributes() {
  std::vector<std::string_view> names;
  for (;;) {
    const std::size_t before = at_;
    skip_blanks();
    if (at(">") || at("/>")) return true;
    if (before == at_) return fail("a tag is not closed");
    const std::string_view next = name();
    if (!attribute(next)) return false;
    if (std::find(names.begin(), names.end(), next) != names.end()) {
      return fail("two attributes of one name");
    }
    if (names.size() == kMaxAttributes) return fail("too many attributes");
    names.push_back(next);
  }
}

// The element that is open has one in it.  Its text so far was but blanks.
bool XmlParser::has_child() {
  const std::string_view text =
      std::string_view(kept_).substr(current().text_at, current().text_size);
  current().has_elements = true;
  current().text_size = 0;
  return take(text);
}

bool XmlParser::begin_element() {
  if (!is_inside() && !document_.elements_.empty()) {
    return fail("more than one outermost element");
  }
  ++at_;
  const std::string_view tag = name();
  if (tag.empty()) return fail("'<' begins no tag");
  if (is_inside() && !has_child()) return false;
  XmlDocument::Element element;
  element.parent = open_;
  element.name_at = kept_.size();
  element.name_size = tag.size();
  kept_ += tag;
  element.text_at = kept_.size();
  open_ = document_.elements_.size();
  is_open_ = true;
  document_.elements_.push_back(element);
  if (!attributes()) return false;
  if (pass(">")) return true;
  at_ += 2;
  close();
  return true;
}

bool XmlParser::end_element() {
  at_ += 2;
  const std::string_view tag = name();
  skip_blanks();
  if (!is_inside() || tag != std::string_view(kept_).substr(
                                 current().name_at, current().name_size)) {
    return fail("a tag closes what is not open");
  }
  if (!pass(">")) return fail("a tag is not closed");
  close();
  return true;
}

void XmlParser::close() {
  is_open_ = open_ != 0;
  open_ = current().parent;
}

XmlDocument::XmlDocument(std::string_view xml) {
  XmlParser(*this, xml).parse();
}

std::string_view XmlDocument::name_of(const Element& element) const {
  const std::string_view kept = names_and_texts_;
  return kept.substr(element.name_at, element.name_size);
}

std::string_view XmlDocument::root() const noexcept {
  return elements_.empty() ? std::string_view() : name_of(elements_.front());
}

// The only one of that name.
std::optional<std::size_t> XmlDocument::child(std::size_t parent,
                                              std::string_view name) const {
  std::optional<std::size_t> found;
  for (std::size_t i = parent + 1; i < elements_.size(); ++i) {
    if (elements_[i].parent != parent || name_of(elements_[i]) != name) {
      continue;
    }
    if (found) return std::nullopt;
    found = i;
  }
  return found;
}

std::optional<std::string_view> XmlDocument::text(std::string_view path) const {
  std::size_t slash = std::min(path.find('/'), path.size());
  if (elements_.empty() || path.substr(0, slash) != root()) {
    return std::nullopt;
  }
  std::optional<std::size_t> at = 0;
  while (slash < path.size()) {
    path.remove_prefix(slash + 1);
    slash = std::min(path.find('/'), path.size());
    at = child(*at, path.substr(0, slash));
    if (!at) return std::nullopt;
  }
  const Element& element = elements_[*at];
  if (element.has_elements) return std::nullopt;
  const std::string_view kept = names_and_texts_;
  return kept.substr(element.text_at, element.text_size);
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
