// Whether the core's parser of profiles reads what the full grammar reads.
//
//   BOOST_TEST(difference("[default]\nregion = x", FileKind::config) == "");
#ifndef DDBMUTEX_TESTS_SUPPORT_PLAIN_PROFILES_HPP
#define DDBMUTEX_TESTS_SUPPORT_PLAIN_PROFILES_HPP

#include <map>
#include <string>
#include <string_view>
#include <tuple>

#include "extras/keys/profile_grammar.hpp"
#include "sigv4/profile_parser.hpp"

namespace tests {

struct ReadProfiles {
  using Place = std::tuple<std::string, std::string, std::string>;
  struct Value {
    std::string text;
    bool whole;
  };

  template <typename Parser>
  ReadProfiles(Parser parse, std::string_view the_text,
               ddbmutex::sigv4::FileKind kind) {
    std::string text(the_text);
    ddbmutex::sigv4::Entries entries;
    error = parse(text, kind, entries);
    for (const ddbmutex::sigv4::Entry& entry : entries) {
      values[{std::string(entry.kind), std::string(entry.section),
              std::string(entry.property)}] = {std::string(entry.value),
                                               entry.whole};
    }
  }

  std::map<Place, Value> values;
  std::string error;
};

// The first difference, for people; empty if there is none.  It is none if the
// core's parser gives an error, or marks a value of several lines.
inline std::string difference(std::string_view text,
                              ddbmutex::sigv4::FileKind kind) {
  const ReadProfiles full(ddbmutex::sigv4::parse_profiles, text, kind);
  const ReadProfiles plain(ddbmutex::sigv4::read_plain_profiles, text, kind);
  if (!plain.error.empty()) return "";
  if (!full.error.empty()) return "only the grammar says " + full.error;
  for (const auto& [place, value] : full.values) {
    const auto found = plain.values.find(place);
    const std::string property = std::get<2>(place);
    if (found == plain.values.end()) return "no \"" + property + "\"";
    const bool several = value.text.find('\n') != std::string::npos;
    if (found->second.whole == several) return property + " is marked wrongly";
    if (!several && found->second.text != value.text) {
      return property + " is \"" + found->second.text + "\"";
    }
  }
  return full.values.size() == plain.values.size() ? "" : "more than there is";
}

}  // namespace tests

#endif  // DDBMUTEX_TESTS_SUPPORT_PLAIN_PROFILES_HPP
