#include "tests/pictures/pictures.hpp"

namespace pictures {

const std::vector<Paint>& paints() {
  static const std::vector<Paint> all = {
      {"paper", "#ffffff", "#0d1117", Paint::paper},
      {"ink", "#1f2933", "#e6edf3", Paint::text},
      {"quiet", "#5a6672", "#9aa6b2", Paint::text},
      {"bad", "#c01f33", "#ff7b86", Paint::text},
      {"good", "#1e7a46", "#56c98a", Paint::text},
      {"p0", "#3b72b8", "#5b95df", Paint::mark},
      {"p1", "#c4701a", "#e8963c", Paint::mark},
      {"p2", "#2f8f5d", "#45b57c", Paint::mark},
      {"p3", "#8d63bd", "#ab86d8", Paint::mark},
      {"p4", "#9a8410", "#cbb22f", Paint::mark},
      {"p5", "#1f8a9e", "#45b3c6", Paint::mark},
      {"p6", "#b9648f", "#d283ab", Paint::mark},
      {"p7", "#7d6750", "#a8917a", Paint::mark},
  };
  return all;
}

namespace {

std::string rules(bool dark) {
  std::string text;
  for (const Paint& paint : paints()) {
    const std::string colour = dark ? paint.dark : paint.light;
    const std::string name = std::string(".") + paint.name;
    text += name + "{fill:" + colour + "}" + name + "l{stroke:" + colour +
            ";fill:none}\n";
  }
  return text;
}

}  // namespace

std::string style() {
  return rules(false) + "@media (prefers-color-scheme:dark){\n" + rules(true) +
         "}\n";
}

}  // namespace pictures
