// What the lock is measured against: bare libcurl that sends given requests in
// turn, and one signature by bare OpenSSL.
//
//   bare URL CYCLES REQUEST...
//
// Each REQUEST is a file that holds a whole request as it stands on the wire.
// Says "ready" when all is sent, and stays until the end of its input.
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/bare_libcurl.hpp"

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: bare URL CYCLES REQUEST...\n");
    return 2;
  }
  unsigned char signature[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  const auto* text = reinterpret_cast<const unsigned char*>(argv[1]);
  HMAC(EVP_sha256(), "key", 3, text, std::strlen(argv[1]), signature, &size);

  bench::BareCycle bare(argv[1], bench::requests_in(argv + 3, argc - 3));
  for (int cycles = std::atoi(argv[2]); cycles > 0; --cycles) {
    if (!bare.cycle()) return 1;
  }
  std::puts("ready");
  std::fflush(stdout);
  std::getchar();
  return size == 32 ? 0 : 1;
}
