// What the fuzzers of tests/fuzz start from and have found, through every
// target in the ordinary build: no input breaks a promise, none takes long.
#include <boost/test/unit_test.hpp>
#include <exception>
#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tests/fuzz/fuzz.hpp"
#include "tests/support/files.hpp"

namespace {

namespace fs = std::filesystem;
using tests::fuzz::Bytes;
using tests::fuzz::kTargets;
using tests::fuzz::Target;

const fs::path kHome = "tests/fuzz";

// "date/leap-second" and what it holds.
using Corpus = std::map<std::string, std::string>;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(tests::project() / folder)) {
    names.insert(entry.path().filename().string());
  }
  return names;
}

Corpus corpus_of(const std::string& target) {
  Corpus corpus;
  for (const std::string& name : names_in(kHome / "corpus" / target)) {
    corpus[target + "/" + name] =
        tests::read_file(kHome / "corpus" / target / name);
  }
  return corpus;
}

Corpus whole_corpus() {
  Corpus corpus;
  for (const Target& target : kTargets) corpus.merge(corpus_of(target.name));
  return corpus;
}

// Of computing; more with what a sanitizer adds, above all where the mutants
// have the library unoptimized (1.4 s in TSan, for objects a thousand deep).
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::clock_t kLongSeconds = 30;
#else
constexpr std::clock_t kLongSeconds = 1;
#endif

// What is wrong with a target's run; empty if nothing is.
std::string wrong_with(const Target& target, Bytes input) {
  const std::clock_t begin = std::clock();
  try {
    target.run(input);
  } catch (const std::exception& broken) {
    return broken.what();
  }
  const bool quick = std::clock() - begin < kLongSeconds * CLOCKS_PER_SEC;
  return quick ? "" : "took too long";
}

void check(const Target& target, const std::string& name, Bytes input) {
  const std::string wrong = wrong_with(target, input);
  BOOST_TEST(wrong.empty(), target.name << " with " << name << ": " << wrong);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(fuzz)

BOOST_AUTO_TEST_CASE(kept_inputs_break_no_promise_of_any_target) {
  const Corpus corpus = whole_corpus();
  for (const Target& target : kTargets) {
    for (const auto& [name, input] : corpus) check(target, name, input);
  }
}

BOOST_AUTO_TEST_CASE(kept_inputs_cut_anywhere_break_no_promise) {
  for (const Target& target : kTargets) {
    for (const auto& [name, input] : corpus_of(target.name)) {
      const std::size_t step = input.size() / 16 + 1;
      for (std::size_t size = 0; size < input.size(); size += step) {
        check(target, name + " cut to " + std::to_string(size),
              Bytes(input).substr(0, size));
      }
    }
  }
}

// Also where assert() is compiled out.
BOOST_AUTO_TEST_CASE(broken_promise_is_told) {
  const Target breaks = {"breaks", [](Bytes bytes) {
                           tests::fuzz::claim(bytes.empty(), "empty");
                         }};
  BOOST_TEST(wrong_with(breaks, "") == "");
  BOOST_TEST(wrong_with(breaks, "x") == "empty");
}

BOOST_AUTO_TEST_SUITE_END()
