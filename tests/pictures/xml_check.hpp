// Whether a text is well-formed XML, as far as our pictures use it: elements,
// attributes in single quotes, texts and the five entities.
//
//   XmlCheck check(picture);
//   BOOST_TEST(check.problem() == "");
//   check.texts();  // What a reader sees.
#ifndef DDBMUTEX_TESTS_PICTURES_XML_CHECK_HPP
#define DDBMUTEX_TESTS_PICTURES_XML_CHECK_HPP

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <string>
#include <vector>

namespace pictures {

class XmlCheck {
 public:
  explicit XmlCheck(const std::string& text) : text_(text) {}

  // Empty if nothing is wrong.
  std::string problem() {
    while (at_ < text_.size()) {
      if (text_[at_] != '<') {
        if (!plain(text_.find('<', at_), '<')) return "text at " + place();
      } else if (!element()) {
        return "element at " + place();
      }
    }
    return open_.empty() && elements_ > 0 ? "" : "not closed";
  }
  const std::string& texts() const { return texts_; }

 private:
  std::string place() const { return text_.substr(at_, 60); }

  // Up to there; without what has a meaning in XML.
  bool plain(std::size_t end, char until) {
    const std::string part = text_.substr(at_, end - at_);
    for (std::size_t i = 0; i < part.size(); ++i) {
      const char c = part[i];
      const auto byte = static_cast<unsigned char>(c);
      if (c == '<' || c == '>' || (byte < ' ' && c != '\n')) return false;
      if (c != '&') continue;
      const std::string name = part.substr(i, part.find(';', i) - i);
      if (name != "&amp" && name != "&lt" && name != "&gt" && name != "&apos" &&
          name != "&quot") {
        return false;
      }
    }
    if (until == '<') texts_ += part;
    at_ = std::min(end, text_.size());
    return true;
  }

  std::string name() {
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 ||
            text_[at_] == '-')) {
      ++at_;
    }
    return text_.substr(begin, at_ - begin);
  }

  bool takes(const std::string& token) {
    if (text_.compare(at_, token.size(), token) != 0) return false;
    at_ += token.size();
    return true;
  }

  bool element() {
    ++elements_;
    if (takes("</")) {
      if (open_.empty() || name() != open_.back()) return false;
      open_.pop_back();
      return takes(">");
    }
    takes("<");
    const std::string tag = name();
    std::vector<std::string> seen;
    while (takes(" ")) {
      if (takes("/>")) return true;
      seen.push_back(name());
      if (std::count(seen.begin(), seen.end(), seen.back()) > 1) return false;
      if (!takes("='") || !plain(text_.find('\'', at_), '\'') || !takes("'")) {
        return false;
      }
    }
    if (takes("/>")) return true;
    open_.push_back(tag);
    return !tag.empty() && takes(">");
  }

  const std::string& text_;
  std::size_t at_ = 0;
  std::size_t elements_ = 0;
  std::vector<std::string> open_;
  std::string texts_;
};

}  // namespace pictures

#endif  // DDBMUTEX_TESTS_PICTURES_XML_CHECK_HPP
