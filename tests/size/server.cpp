// The server of the measurements: answers every write at once as DynamoDB does
// one that succeeded.
//
//   server
//
// Says its URL, then reads names of directories, a line each: writes the last
// request of each kind into files there, "PutItem" and so on, and says "kept".
// The end of its input ends it.
#include <fstream>
#include <iostream>
#include <string>

#include "tests/bench/constant_server.hpp"

namespace {

void keep(const bench::Tally& tally, const std::string& directory) {
  for (std::size_t i = 0; i < bench::kActionNames.size(); ++i) {
    const bench::Tally::Record& record = tally.records[i];
    if (record.size == 0) continue;
    std::ofstream file(directory + "/" + std::string(bench::kActionNames[i]),
                       std::ios::binary);
    file.write(record.bytes, static_cast<std::streamsize>(record.size));
  }
}

}  // namespace

int main() {
  bench::ConstantServer server;
  server.tally().recording = true;
  std::cout << server.url() << std::endl;
  for (std::string directory; std::getline(std::cin, directory);) {
    keep(server.tally(), directory);
    std::cout << "kept" << std::endl;
  }
}
