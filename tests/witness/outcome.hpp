// What a combination comes to, in a form that can be compared: with
// ddbmutex, botocore or AWS's JavaScript SDK.
#ifndef DDBMUTEX_TESTS_WITNESS_OUTCOME_HPP
#define DDBMUTEX_TESTS_WITNESS_OUTCOME_HPP

#include <map>
#include <ostream>
#include <regex>
#include <string>
#include <vector>

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
  static const std::regex kForm("ASIA[A-Z2-7]{16}");
  return std::regex_match(id, kForm);
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
  static const std::regex kForm(
      "^(https?)://([^/:]*|\\[[^\\]]*\\])(:\\d+)?(.*)$", std::regex::icase);
  std::smatch parts;
  if (!std::regex_match(url, parts, kForm)) return {url};
  std::string start = parts[1].str() + "://" + parts[2].str();
  for (char& c : start) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  const bool tls = start.compare(0, 5, "https") == 0;
  const std::string port = parts[3];
  const std::string path = parts[4];
  return {start + (port == (tls ? ":443" : ":80") ? "" : port) +
          (path == "/" ? "" : path)};
}

}  // namespace witness

#endif  // DDBMUTEX_TESTS_WITNESS_OUTCOME_HPP
