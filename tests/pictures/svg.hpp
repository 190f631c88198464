// The few words of SVG that a picture of ours is made of.
//
//   Svg svg(1400, 300);
//   svg.rect({0, 0, 1400, 300}, "fill='#fff'");
//   svg.text(20, 40, "seed 7", "font-size='20'");
//   out << svg.finished();
//
// Attributes are written as they are given.  Texts are UTF-8 without control
// characters.
#ifndef DDBMUTEX_TESTS_PICTURES_SVG_HPP
#define DDBMUTEX_TESTS_PICTURES_SVG_HPP

#include <cmath>
#include <cstdlib>
#include <string>

namespace pictures {

// To a tenth, which nobody sees on a screen: "12.3", "0.5", "-7".
inline std::string number(double value) {
  const long tenths = std::lround(value * 10);
  std::string text =
      (tenths < 0 ? "-" : "") + std::to_string(std::labs(tenths) / 10);
  if (tenths % 10 != 0) text += "." + std::to_string(std::labs(tenths) % 10);
  return text;
}

inline std::string escaped(const std::string& text) {
  std::string all;
  for (const char c : text) {
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
      all += c;
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

  void rect(const Box& box, const std::string& attributes) {
    text_ += "<rect x='" + number(box.x) + "' y='" + number(box.y) +
             "' width='" + number(box.width) + "' height='" +
             number(box.height) + "' " + attributes + "/>\n";
  }
  void path(const std::string& data, const std::string& attributes) {
    if (data.empty()) return;
    text_ += "<path d='" + data + "' " + attributes + "/>\n";
  }
  void text(double x, double y, const std::string& words,
            const std::string& attributes) {
    text_ += "<text x='" + number(x) + "' y='" + number(y) + "' " + attributes +
             ">" + escaped(words) + "</text>\n";
  }

  std::string finished() { return text_ + "</svg>\n"; }

 private:
  std::string text_;
};

}  // namespace pictures

#endif  // DDBMUTEX_TESTS_PICTURES_SVG_HPP
