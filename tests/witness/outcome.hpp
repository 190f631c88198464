// What a combination comes to, in a form that can be compared: with
// ddbmutex, botocore or AWS's JavaScript SDK.
#ifndef DDBMUTEX_TESTS_WITNESS_OUTCOME_HPP
#define DDBMUTEX_TESTS_WITNESS_OUTCOME_HPP

#include <map>
#include <ostream>
#include <string>
#include <vector>

#include "tests/support/files.hpp"

namespace witness {

// Of one facet.  What is hidden is compared, and never shown.
struct Outcome {
  std::string shown = "refused";
  std::string hidden{};
};

inline bool operator==(const Outcome& a, const Outcome& b) {
  return a.shown == b.shown && a.hidden == b.hidden;
}

inline std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << (outcome.shown.empty() ? "(empty)" : outcome.shown);
}

// Keys, region and endpoint.
using Outcomes = std::map<std::string, Outcome>;

// Keys that a stand-in gave out are others each time: what counts of them is
// how they were come by.
inline bool is_issued(const std::string& id) {
  return !tests::all_matches(id, "^(ASIA[A-Z2-7]{16})$").empty();
}

inline Outcome of_keys(const std::string& id, const std::string& secret,
                       const std::string& token,
                       const std::vector<std::string>& way) {
  if (!is_issued(id)) return {id, secret + "\n" + token};
  std::string shown = "issued";
  for (const std::string& step : way) shown += " <- " + step;
  return {shown, ""};
}

// "HTTP://Host:80/" is "http://host".
inline Outcome of_endpoint(const std::string& url) {
  const std::vector<std::string> starts =
      tests::all_matches(url, R"(^(\w+://(?:\[[^\]]*\]|[^/:]*)))");
  if (starts.empty()) return {url};
  std::string start = starts[0];
  for (char& c : start) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const std::string usual = start.compare(0, 6, "https:") == 0 ? ":443" : ":80";
  std::string rest = url.substr(start.size());
  rest = tests::replaced(rest, "^" + usual + "(?![0-9])", "");
  return {start + tests::replaced(rest, "^(:[0-9]+)?/$", "$1")};
}

}  // namespace witness

#endif  // DDBMUTEX_TESTS_WITNESS_OUTCOME_HPP
