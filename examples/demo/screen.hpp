// What a person sees.  On a terminal the scene's picture is redrawn while it
// happens; anywhere else there are plain lines, and the picture at the end.
#ifndef DDBMUTEX_EXAMPLES_DEMO_SCREEN_HPP
#define DDBMUTEX_EXAMPLES_DEMO_SCREEN_HPP

#include <string>
#include <vector>

#include "examples/demo/claims.hpp"

namespace demo {

// A process's row of the picture.
struct Lane {
  char process;
  // A cell an instant: '#' at work, '=' a lease whose holder is stopped or
  // dead, '.' waiting, '-' stopped, 'x' dead, ' ' nothing.
  std::string cells;
  std::string status;
};

class Screen {
 public:
  Screen();

  int cells() const { return cells_; }  // That a lane has room for.

  void say(const std::string& line);
  // Below the picture.
  void note(const std::string& line);
  // Of what a terminal shows in the picture.
  void detail(const std::string& line);

  void draw(const std::vector<Lane>& lanes);
  // The picture is complete.
  void finish(const std::vector<Lane>& lanes);

  // True if all claims are right.
  bool judge(const Claims& claims);

 private:
  std::string drawn(const Lane& lane, const std::vector<Lane>& lanes) const;
  void print(const std::string& text);

  bool live_ = false;
  int cells_;
  int height_ = 0;                  // Of the picture that stands there now.
  std::vector<std::string> notes_;  // Of this picture.
};

}  // namespace demo

#endif  // DDBMUTEX_EXAMPLES_DEMO_SCREEN_HPP
