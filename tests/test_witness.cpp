// The same configurations, read by ddbmutex, by botocore and by AWS's own
// JavaScript SDK: each finds the same keys, region and endpoint, or all refuse.
// tests/witness/combinations/ has them, with what differs and why.
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "tests/support/aws.hpp"
#include "tests/support/files.hpp"
#include "tests/support/home.hpp"
#include "tests/support/json_string.hpp"
#include "tests/support/login_kit.hpp"
#include "tests/witness/answers.hpp"
#include "tests/witness/combination.hpp"
#include "tests/witness/ours.hpp"

namespace {

namespace fs = std::filesystem;
using witness::Combination;
using witness::Outcome;
using witness::Outcomes;
using witness::Placed;
using witness::Witness;
using namespace std::chrono_literals;

constexpr std::size_t kFewest = 60;

// What is excepted is so of these versions: Debian 12's, and that which the
// lock file has.  Later ones of botocore know more and differ elsewhere; these
// are heard, but decide nothing.
const std::map<std::string, std::string> kVersions = {{"botocore", "1.29."},
                                                      {"js", "3.967."}};

struct Testimony {
  std::string who;
  Outcomes outcomes;
  bool is_binding;
};

Testimony testify(const std::string& who, Witness& witness,
                  const Placed& placed, const tests::Aws& aws) {
  Outcomes outcomes = witness.ask(placed, aws);
  const std::string& known = kVersions.at(who);
  const bool is_known = witness.version().compare(0, known.size(), known) == 0;
  BOOST_TEST((is_known || who == "botocore"), who << " is of another version");
  return {who, std::move(outcomes), is_known};
}

std::vector<Combination> read_all() {
  std::vector<fs::path> paths;
  const fs::path directory = tests::project() / "tests/witness/combinations";
  for (const auto& entry : fs::directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  std::vector<Combination> all;
  for (const fs::path& path : paths) {
    std::ifstream file(path);
    witness::CombinationReader reader(file, path.filename().string());
    for (Combination& one : reader.read()) all.push_back(std::move(one));
  }
  return all;
}

// `text` with what stands for {home} and so on.
std::string filled_in(std::string text,
                      const std::map<std::string, std::string>& places) {
  for (const auto& [name, place] : places) {
    for (auto at = text.find(name); at != text.npos; at = text.find(name)) {
      text.replace(at, name.size(), place);
    }
  }
  return text;
}

void write(const fs::path& path, const std::string& text, bool is_script) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
  BOOST_TEST_REQUIRE(chmod(path.c_str(), is_script ? 0700 : 0600) == 0);
}

// In a home directory of its own, made anew: who has read a token may have
// written another one.
Placed placed(const Combination& combination, const fs::path& root,
              std::map<std::string, std::string> places) {
  const fs::path home = root / combination.name;
  fs::remove_all(home);
  fs::create_directories(home);
  places["{home}"] = home.string();
  for (const witness::HomeFile& file : combination.files) {
    write(home / file.path, filled_in(file.text, places), file.is_script);
  }
  for (const std::string& path : combination.directories) {
    fs::create_directories(home / path);
  }
  Placed result{combination, {}};
  const char* path = std::getenv("PATH");
  result.variables = {{"HOME", home.string()},
                      {"PATH", path == nullptr ? "/usr/bin:/bin" : path},
                      // To botocore, which else calls STS in us-east-1; later
                      // versions do so by themselves.
                      {"AWS_STS_REGIONAL_ENDPOINTS", "regional"},
                      // Seconds, for the metadata service.
                      {"AWS_METADATA_SERVICE_TIMEOUT", "20"},
                      {"AWS_EC2_METADATA_DISABLED", "true"}};
  for (const std::string& name : combination.without) {
    result.variables.erase(name);
  }
  for (const auto& [name, value] : combination.environment) {
    result.variables[name] = filled_in(value, places);
  }
  return result;
}

// In PEM, of whoever has signed on with `aws login`.
const std::string& login_key() {
  static const std::string pem = tests::pem_of("P-256");
  return pem;
}

// Whom the combinations mean.
void introduce(tests::Aws& aws) {
  aws.user({"AKIASOURCE", "secret-source"});
  aws.role({"arn:aws:iam::123456789012:role/locker"});
  aws.role({"arn:aws:iam::123456789012:role/second"});
  aws.role({"arn:aws:iam::123456789012:role/guarded", "from-outside"});
  aws.web_identity("web-token", 1h);
  aws.sso_token("sso-access", 1h);
  aws.sso_client("sso-client", "sso-client-secret", 1h);
  aws.refresh_token("sso-refresh", "sso-client", 1h);
  aws.login_token("login-refresh", "arn:aws:signin:::devtools/same-device",
                  login_key(), 1h);
  // One for whoever asks.
  aws.control("POST", "/oidc", R"({"rotate": false})");
  aws.control("POST", "/container", R"({"authorization": "container-token"})");
}

std::map<std::string, std::string> places_of(const tests::Aws& aws) {
  std::map<std::string, std::string> places;
  for (const char* service :
       {"sts", "sso", "oidc", "signin", "imds", "container"}) {
    places["{" + std::string(service) + "}"] = aws.plain_url(service);
  }
  const std::string container = aws.plain_url("container");
  places["{container-by-name}"] =
      "http://localhost" + container.substr(container.rfind(':'));
  // Within a text of JSON.
  const std::string key = tests::json_string(login_key());
  places["{login-key}"] = key.substr(1, key.size() - 2);
  return places;
}

std::string script(const std::string& name) {
  return (tests::project() / "tests/witness" / name).string();
}

// Whether that witness agrees; it has to, unless it is excepted, and then it
// must not.
bool confirms(const Combination& combination, const Testimony& testimony,
              const std::string& facet, const Outcome& ours) {
  const auto& [who, outcomes, is_binding] = testimony;
  const Outcome& theirs = outcomes.at(facet);
  const bool same = ours == theirs;
  if (!is_binding) return same;
  const auto exception = combination.exceptions.find(who + " " + facet);
  if (exception == combination.exceptions.end()) {
    BOOST_TEST(same, combination.name << ", " << facet << ": here " << ours
                                      << ", " << who << " " << theirs
                                      << (ours.shown == theirs.shown
                                              ? " (secret or token differs)"
                                              : ""));
    return same;
  }
  BOOST_TEST(!same, combination.name
                        << ", " << facet << ": " << who << " agrees (" << ours
                        << "), although: " << exception->second.reason);
  return false;
}

// By how many witnesses a facet is confirmed; how often each.
using Tally = std::array<int, 3>;

void compare(const Combination& combination, const Outcomes& ours,
             const std::vector<Testimony>& testimonies, Tally& tally) {
  const bool are_binding =
      std::all_of(testimonies.begin(), testimonies.end(),
                  [](const Testimony& one) { return one.is_binding; });
  for (const char* facet : witness::kFacets) {
    const Outcome& found = ours.at(facet);
    std::size_t confirmed = 0;
    for (const Testimony& one : testimonies) {
      confirmed += confirms(combination, one, facet, found);
    }
    ++tally.at(confirmed);
    const auto said = combination.ours.find(facet);
    const bool is_said = said != combination.ours.end();
    if (is_said) {
      BOOST_TEST(found.shown == said->second,
                 combination.name << ", " << facet << ": here " << found
                                  << ", should be " << said->second);
    }
    if (!are_binding) continue;
    BOOST_TEST((confirmed > 0) != is_said,
               combination.name << ", " << facet << ": here " << found
                                << (is_said ? ", confirmed, so needs no ours"
                                            : ", which nobody confirms"));
  }
}

// Half of them, by the seed of `make test`; `make soak` has all.
std::vector<Combination> by_lot(const std::vector<Combination>& all) {
  BOOST_TEST(all.size() >= kFewest);
  if (std::getenv("DDBMUTEX_WITNESS_WHOLE") != nullptr) return all;
  const char* seed = std::getenv("DDBMUTEX_SEED");
  std::vector<Combination> some;
  for (std::size_t i = seed == nullptr ? 0
                                       : std::strtoul(seed, nullptr, 10) % 2;
       i < all.size(); i += 2) {
    some.push_back(all[i]);
  }
  return some;
}

void report(const std::vector<Combination>& all, const Tally& tally) {
  int differ = 0;
  int unknown = 0;
  for (const Combination& one : all) {
    for (const auto& [what, exception] : one.exceptions) {
      ++(exception.is_unknown ? unknown : differ);
    }
  }
  std::cout << "witnesses: of " << all.size() << " combinations, " << tally[2]
            << " facets as both have them, " << tally[1] << " as one, "
            << tally[0] << " as neither; " << differ
            << " answers of theirs differ, " << unknown
            << " are of settings that they do not know\n";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(witness_of_configurations)

BOOST_AUTO_TEST_CASE(keys_region_and_endpoint_are_those_of_the_witnesses) {
  const tests::Home home;
  tests::Aws aws({false});
  introduce(aws);
  const auto places = places_of(aws);
  Witness botocore({"/usr/bin/python3", script("witness.py")});
  Witness js({"/usr/bin/env", "node", script("witness.js")});
  const std::vector<Combination> all = by_lot(read_all());
  Tally tally = {};
  for (const Combination& one : all) {
    const auto anew = [&] {
      aws.forget();
      return placed(one, home.root, places);
    };
    std::vector<Testimony> testimonies;
    testimonies.push_back(testify("botocore", botocore, anew(), aws));
    testimonies.push_back(testify("js", js, anew(), aws));
    compare(one, witness::ours(anew(), aws), testimonies, tally);
  }
  report(all, tally);
}

BOOST_AUTO_TEST_SUITE_END()
