// Draws README's pictures anew:
//
//   draw [RUN]
//
// lease.svg from the protocol's own margins, minute.svg from minute.txt,
// race.svg from the table of tests/README.md, all in tests/pictures.  RUN is
// the minute.txt of another run (tests/torture leaves it in build/torture), to
// be drawn and kept instead.  Called by `make pictures`, and by `make bench`.
#include <cstdio>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>

#include "tests/pictures/pictures.hpp"

namespace {

const std::string kFolder = "tests/pictures/";

void write_file(const std::string& name, const std::string& text) {
  std::ofstream file(kFolder + name);
  file << text;
  if (!file.flush()) throw std::runtime_error("cannot write " + name);
}

std::ifstream opened(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return file;
}

}  // namespace

int main(int argc, char** argv) try {
  std::ifstream run = opened(argc > 1 ? argv[1] : kFolder + "minute.txt");
  const pictures::Minute minute = pictures::read_minute(run);
  if (argc > 1) write_file("minute.txt", pictures::write(minute));
  write_file("minute.svg", pictures::draw(minute));
  write_file("lease.svg", pictures::draw(pictures::Lease()));
  std::ifstream page = opened("tests/README.md");
  write_file("race.svg", pictures::draw(pictures::read_race(page)));
} catch (const std::exception& error) {
  std::fprintf(stderr, "draw: %s\n", error.what());
  return 1;
}
