// The few words of SVG that a picture of ours is made of.
//
//   Svg svg(1400, 300);
//   svg.rect({0, 0, 1400, 300}, "fill='#fff'");
//   svg.text(20, 40, "seed 7", "font-size='20'");
//   out << svg.finished();
//
// Attributes are written as they are given; texts may be anything.
#ifndef DDBMUTEX_TESTS_TORTURE_SVG_HPP
#define DDBMUTEX_TESTS_TORTURE_SVG_HPP

#include <cmath>
#include <cstdlib>
#include <string>

#include "ddbmutex/item.hpp"
#include "ddbmutex/record.hpp"

namespace torture {

// To a tenth, which nobody sees on a screen: "12.3", "0.5", "-7".
inline std::string number(double value) {
  const long tenths = std::lround(value * 10);
  std::string text =
      (tenths < 0 ? "-" : "") + std::to_string(std::labs(tenths) / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(std::labs(tenths) % 10);
  return text;
}

// As text of XML.  What XML has no way to say becomes a question mark.
inline std::string escaped(const std::string& text) {
  const bool plain = !ddbmutex::dynamodb::is_utf8(text);
  std::string all;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '&') {
      all += "&amp;";
    } else if (c == '<') {
      all += "&lt;";
    } else if (c == '>') {
      all += "&gt;";
    } else if (c == '\'') {
      all += "&apos;";
    } else if (c == '"') {
      all += "&quot;";
    } else {
      all += byte < 0x20 || byte == 0x7f || (plain && byte > 0x7f) ? '?' : c;
    }
  }
  return all;
}

class Svg {
 public:
  struct Box {
    double x, y, width, height;
  };

  Svg(double width, double height) {
    text_ = "<svg xmlns='http://www.w3.org/2000/svg' width='" + number(width) +
            "' height='" + number(height) + "' viewBox='0 0 " + number(width) +
            " " + number(height) + "' font-family='sans-serif'>\n";
  }

  // Of the whole picture; CSS without what has a meaning in XML.
  void style(const std::string& css) {
    text_ += "<style>\n" + css + "</style>\n";
  }

  // With a tip that viewers show when pointed at; empty: none.
  void rect(const Box& box, const std::string& attributes,
            const std::string& tip = {}) {
    text_ += "<rect x='" + number(box.x) + "' y='" + number(box.y) +
             "' width='" + number(box.width) + "' height='" +
             number(box.height) + "' " + attributes;
    close("rect", tip);
  }
  void path(const std::string& data, const std::string& attributes,
            const std::string& tip = {}) {
    if (data.empty()) return;
    text_ += "<path d='" + data + "' " + attributes;
    close("path", tip);
  }
  void text(double x, double y, const std::string& words,
            const std::string& attributes) {
    text_ += "<text x='" + number(x) + "' y='" + number(y) + "' " + attributes +
             ">" + escaped(words) + "</text>\n";
  }

  std::string finished() { return text_ + "</svg>\n"; }

 private:
  void close(const char* element, const std::string& tip) {
    if (tip.empty()) {
      text_ += "/>\n";
    } else {
      text_ += "><title>" + escaped(tip) + "</title></" + element + ">\n";
    }
  }

  std::string text_;
};

}  // namespace torture

#endif  // DDBMUTEX_TESTS_TORTURE_SVG_HPP
