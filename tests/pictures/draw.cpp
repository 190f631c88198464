// Draws README's pictures anew:
//
//   draw [RUN]
//
// lease.svg from the protocol's own margins, minute.svg from minute.txt, all in
// tests/pictures.  RUN is the minute.txt of another run (tests/torture leaves
// it in build/torture), to be drawn and kept instead.  Called by
// `make pictures`.
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

pictures::Minute read_file(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot read " + path);
  return pictures::read_minute(file);
}

}  // namespace

int main(int argc, char** argv) try {
  const pictures::Minute minute =
      read_file(argc > 1 ? argv[1] : kFolder + "minute.txt");
  if (argc > 1) write_file("minute.txt", pictures::write(minute));
  write_file("minute.svg", pictures::draw(minute));
  write_file("lease.svg", pictures::draw(pictures::Lease()));
} catch (const std::exception& error) {
  std::fprintf(stderr, "draw: %s\n", error.what());
  return 1;
}
