// Configurations of AWS's tools, one after the other in a text that people
// read and write (combinations/*.txt):
//
//   # Says what the next ones are about.
//   == profile_of_variable_is_taken
//   env AWS_PROFILE=a
//   option region eu-west-1
//   config
//   | [profile a]
//   | region = eu-north-1
//   file .aws/sso/cache/x.json
//   |= {"a":\r\n
//   differs js region endpoint: why ours is another than JavaScript's,
//     in as many lines as that takes
//   unknown botocore region endpoint: AWS_REGION
//   ours region eu-north-1
//
// `env` sets a variable, `no` takes one away of those that every combination
// has.  `option` is profile or region.  `config`, `credentials`, `file PATH`
// and `script PATH` begin a file of the home directory; its lines follow, "|"
// and a blank before each, and "|= " before one with escapes (\r \n \t \\ \xHH)
// and no end of its own.  `directory PATH` makes one.
//
// A file without a line is empty.  {home}, and for the stand-ins' URLs {sts}
// {imds} {container} {container-by-name}, are replaced wherever they stand.
//
// Keys, region and endpoint should come out as with either witness.  `differs`
// excepts some of a witness's answers, with the reason; `unknown` those that it
// cannot give, with the setting that it does not know.  What is confirmed by
// neither is to be as `ours` says: a key ID, a region, a URL or "refused".
#ifndef DDBMUTEX_TESTS_WITNESS_COMBINATION_HPP
#define DDBMUTEX_TESTS_WITNESS_COMBINATION_HPP

#include <cstdlib>
#include <istream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

namespace witness {

constexpr const char* kFacets[] = {"keys", "region", "endpoint"};

struct HomeFile {
  std::string path;  // Below the home directory.
  std::string text;
  bool is_script = false;
};

struct Exception {
  std::string reason;
  bool is_unknown = false;  // The witness cannot know.
};

struct Combination {
  std::string name;
  std::map<std::string, std::string> environment;
  std::set<std::string> without;  // Of the variables that all have.
  std::string profile;
  std::string region;
  std::vector<HomeFile> files;
  std::vector<std::string> directories;
  // "js keys" and so on.
  std::map<std::string, Exception> exceptions;
  std::map<std::string, std::string> ours;  // By facet.
  std::string text;                         // All of it, as it is written.
};

class CombinationReader {
 public:
  // `place` is for errors: the file's name.
  CombinationReader(std::istream& input, std::string place)
      : input_(input), place_(std::move(place)) {}

  std::vector<Combination> read() {
    for (std::string line; std::getline(input_, line);) {
      ++number_;
      if (!all_.empty()) all_.back().text += line + "\n";
      take(line);
    }
    return std::move(all_);
  }

 private:
  [[noreturn]] void fail(const std::string& what) const {
    throw std::runtime_error(place_ + ":" + std::to_string(number_) + ": " +
                             what);
  }

  static bool cut(std::string& line, const std::string& start) {
    if (line.compare(0, start.size(), start) != 0) return false;
    line.erase(0, start.size());
    return true;
  }

  void take(std::string line) {
    if (line.empty() || line.front() == '#') return;
    if (cut(line, "== ")) {
      all_.emplace_back();
      all_.back().name = line;
      reasons_.clear();
      return;
    }
    if (all_.empty()) fail("before the first combination");
    if (cut(line, "  ")) {
      if (reasons_.empty()) fail("continues no reason");
      for (std::string* reason : reasons_) *reason += " " + line;
    } else if (line.front() == '|') {
      take_text(std::move(line));
    } else {
      reasons_.clear();
      take_setting(std::move(line));
    }
  }

  void take_text(std::string line) {
    if (all_.back().files.empty()) fail("a line of no file");
    std::string& text = all_.back().files.back().text;
    if (cut(line, "|= ")) {
      text += unescaped(line);
    } else if (line == "|" || cut(line, "| ")) {
      text += (line == "|" ? "" : line) + "\n";
    } else {
      fail("'|' without a blank");
    }
  }

  std::string unescaped(const std::string& line) const {
    std::string text;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\\') {
        text += line[i];
        continue;
      }
      const char what = ++i < line.size() ? line[i] : '\0';
      if (what == 'x') {
        text += static_cast<char>(
            std::strtoul(line.substr(i + 1, 2).c_str(), nullptr, 16));
        i += 2;
        continue;
      }
      const std::string known = "rnt\\";
      if (what == '\0' || known.find(what) == known.npos) fail("escape");
      text += "\r\n\t\\"[known.find(what)];
    }
    return text;
  }

  void take_setting(std::string line) {
    Combination& combination = all_.back();
    if (cut(line, "env ")) {
      const auto equals = line.find('=');
      if (equals == line.npos) fail("env without '='");
      combination.environment[line.substr(0, equals)] = line.substr(equals + 1);
    } else if (cut(line, "no ")) {
      combination.without.insert(line);
    } else if (cut(line, "option profile ")) {
      combination.profile = line;
    } else if (cut(line, "option region ")) {
      combination.region = line;
    } else if (cut(line, "directory ")) {
      combination.directories.push_back(line);
    } else if (line == "config" || line == "credentials") {
      combination.files.push_back({".aws/" + line, "", false});
    } else if (cut(line, "file ")) {
      combination.files.push_back({line, "", false});
    } else if (cut(line, "script ")) {
      combination.files.push_back({line, "", true});
    } else {
      take_verdict(std::move(line));
    }
  }

  void take_verdict(std::string line) {
    if (cut(line, "ours ")) {
      const auto blank = line.find(' ');
      if (blank == line.npos) fail("ours without a value");
      all_.back().ours[facet(line.substr(0, blank))] = line.substr(blank + 1);
      return;
    }
    const bool unknown = cut(line, "unknown ");
    if (!unknown && !cut(line, "differs ")) fail("what is " + line + "?");
    const auto colon = line.find(": ");
    if (colon == line.npos) fail("no reason");
    std::istringstream words(line.substr(0, colon));
    std::string who;
    words >> who;
    if (who != "js" && who != "botocore") fail("no witness: " + who);
    for (std::string word; words >> word;) {
      Exception& exception = all_.back().exceptions[who + " " + facet(word)];
      exception = {line.substr(colon + 2), unknown};
      reasons_.push_back(&exception.reason);
    }
  }

  std::string facet(const std::string& word) const {
    for (const char* known : kFacets) {
      if (word == known) return word;
    }
    fail("no facet: " + word);
  }

  std::istream& input_;
  const std::string place_;
  int number_ = 0;
  std::vector<Combination> all_;
  std::vector<std::string*> reasons_;  // The last ones, for the lines to come.
};

}  // namespace witness

#endif  // DDBMUTEX_TESTS_WITNESS_COMBINATION_HPP
