// Entry of one target's fuzzer: compiled once for each with its name, as in
// -DFUZZ_TARGET=answer, and linked with libFuzzer.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/fuzz.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  try {
    tests::fuzz::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  } catch (const tests::fuzz::Broken& promise) {
    std::fprintf(stderr, "BROKEN: %s\n", promise.what());
    std::abort();  // libFuzzer then keeps the input.
  }
  return 0;
}
