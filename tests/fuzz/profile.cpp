// The config and credentials files, and the keys they give: the profile's name,
// the config file, the credentials file, with record separators between.
#include "sigv4/profile.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string>

#include "ddbmutex/dynamodb/client.hpp"
#include "ddbmutex/dynamodb/endpoint.hpp"
#include "extras/keys/profile_grammar.hpp"
#include "extras/parts.hpp"
#include "sigv4/keys/credentials.hpp"
#include "sigv4/keys/sources.hpp"
#include "tests/fuzz/fuzz.hpp"
#include "tests/support/plain_profiles.hpp"

namespace tests {
namespace fuzz {
namespace {

using namespace ddbmutex;
using sigv4::FileKind;
using sigv4::Secret;

// What was read, with equal sections and properties put together.
using SectionsByName = std::map<std::string, std::map<std::string, Secret>>;
struct Sections {
  SectionsByName profiles, services;
};
struct ParsedFile {
  Sections sections;
  std::string error;
};

ParsedFile parse(Bytes text, FileKind kind) {
  std::string rewritten(text);
  sigv4::Entries entries;
  ParsedFile parsed;
  parsed.error = sigv4::parse_profiles(rewritten, kind, entries);
  for (const sigv4::Entry& entry : entries) {
    if (entry.kind.empty()) continue;  // There is a [profile default].
    claim(entry.kind == "profile" || entry.kind == "services",
          "a section is of a kind that is known");
    auto& of_kind = entry.kind == "profile" ? parsed.sections.profiles
                                            : parsed.sections.services;
    auto& all = of_kind[std::string(entry.section)];
    if (entry.property.empty()) continue;
    all[std::string(entry.property)] = entry.value;
  }
  return parsed;
}

constexpr Bytes kByteOrderMark = "\xEF\xBB\xBF";

// --- One text --------------------------------------------------------------

std::string replaced(Bytes text, char what, Bytes with) {
  std::string result;
  for (const char c : text) {
    if (c == what) {
      result += with;
    } else {
      result += c;
    }
  }
  return result;
}

bool same(const ParsedFile& a, const ParsedFile& b) {
  return a.error == b.error && a.sections.profiles == b.sections.profiles &&
         a.sections.services == b.sections.services;
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

void check_value(Bytes value) {
  for (Bytes rest = value;;) {
    const Bytes line = rest.substr(0, rest.find('\n'));
    constexpr Bytes kBlanks = " \t\r";
    claim(line.empty() || (kBlanks.find(line.front()) == Bytes::npos &&
                           kBlanks.find(line.back()) == Bytes::npos),
          "every line of a value is trimmed");
    claim(!line.empty() || rest.data() == value.data(),
          "no line but a value's first is empty");
    if (line.size() == rest.size()) break;
    rest.remove_prefix(line.size() + 1);
  }
  const auto sub = sigv4::sub_property(value, "endpoint_url");
  claim(sub.empty() || (sub.find('\n') == sub.npos && !value.empty() &&
                        value.front() == '\n'),
        "a sub-property is one line of a value that begins with none");
}

void check_sections(const SectionsByName& sections) {
  for (const auto& [name, properties] : sections) {
    claim(!name.empty() && std::none_of(name.begin(), name.end(), is_control),
          "a section has a name, which is one line");
    for (const auto& [property, value] : properties) {
      claim(!property.empty() && is_visible(property) &&
                property.find_first_of(" =#;[]\"'") == property.npos &&
                std::none_of(property.begin(), property.end(),
                             [](char c) { return c >= 'A' && c <= 'Z'; }),
            "a property's name is one word in lower case");
      check_value(value.str());
    }
  }
}

void check_error(const ParsedFile& parsed, Bytes text) {
  claim(parsed.sections.profiles.empty() && parsed.sections.services.empty(),
        "an unusable text has no sections");
  claim(is_one_line(parsed.error), "an error is a text for people");
  claim(parsed.error.rfind("line ", 0) == 0, "an error names its line");
  const auto line = std::stoul(parsed.error.substr(5));
  const auto lines =
      static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  claim(line >= 1 && line <= lines, "an error names a line there is");
}

// What does not change what a text says.
void check_form(const ParsedFile& parsed, const std::string& text,
                FileKind kind) {
  claim(same(parse(replaced(text, '\n', "\r\n"), kind), parsed),
        "a line may end in CR LF");
  claim(same(parse(text + "\n  # secret\n;\n \t\r\n", kind), parsed),
        "comments and empty lines are nothing");
  if (Bytes(text).substr(0, 3) == kByteOrderMark) return;
  claim(same(parse(std::string(kByteOrderMark) + text, kind), parsed),
        "a byte order mark is nothing");
  claim(same(parse(" " + replaced(text, '\n', "\n "), kind), parsed),
        "all lines may be indented alike");
}

ParsedFile check_text(const std::string& text, FileKind kind) {
  ParsedFile parsed = parse(text, kind);
  check_sections(parsed.sections.profiles);
  check_sections(parsed.sections.services);
  claim(kind == FileKind::config || parsed.sections.services.empty(),
        "only the config file has services");
  check_form(parsed, text, kind);
  claim(difference(text, kind).empty(),
        "the core's parser gives the same values, or says that it cannot");
  if (!parsed.error.empty()) check_error(parsed, text);
  return parsed;
}

// --- Both files ------------------------------------------------------------

// A file without a directory: nothing is left of it, and it costs little.
class MemoryFile {
 public:
  MemoryFile() : fd_(memfd_create("profile", MFD_CLOEXEC)) {
    claim(fd_ >= 0, "there is memory for a file");
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }
  void write(Bytes text) {
    const auto size = static_cast<ssize_t>(text.size());
    claim(ftruncate(fd_, 0) == 0 &&
              pwrite(fd_, text.data(), text.size(), 0) == size,
          "a file in memory can be written");
  }

 private:
  const int fd_;
};

struct Files {
  MemoryFile config, credentials;
};

Files& files() {
  static Files both;
  return both;
}

// Of the two files alone; no region comes later.
struct FilesAlone {
  std::string operator()(const char* variable) const {
    const Bytes name = variable;
    if (name == "AWS_CONFIG_FILE") return files().config.path();
    if (name == "AWS_SHARED_CREDENTIALS_FILE") {
      return files().credentials.path();
    }
    return name == "AWS_EC2_METADATA_DISABLED" ? "true" : "";
  }
};
constexpr FilesAlone files_alone{};

// The keys that stand in the profile itself.
sigv4::KeyOutcome keys_of(Bytes name) {
  const sigv4::Profile profile(sigv4::locate_profile(name, files_alone),
                               sigv4::all_parts());
  if (!profile.error.empty()) return sigv4::broken_keys({profile.error});
  sigv4::KeyOutcome outcome = sigv4::keys_in_file(profile, profile.credentials);
  if (outcome.state == sigv4::KeyOutcome::State::none) {
    outcome = sigv4::keys_in_file(profile, profile.config);
  }
  if (outcome.state == sigv4::KeyOutcome::State::none) {
    outcome = sigv4::no_keys({"no keys in ", profile.whereabouts()});
  }
  return outcome;
}

void check_keys(const sigv4::KeyOutcome& outcome) {
  using State = sigv4::KeyOutcome::State;
  const auto& keys = outcome.keys;
  if (outcome.state != State::found) {
    claim(!outcome.reason.empty() && is_one_line(outcome.reason),
          "without keys there is a reason for people");
    claim(keys.secret_access_key.empty(), "no keys but found ones");
    return;
  }
  claim(outcome.reason.empty(), "keys that were found need no reason");
  claim(!keys.access_key_id.empty() && !keys.secret_access_key.empty(),
        "keys are pairs");
  for (const Bytes key :
       {Bytes(keys.access_key_id), Bytes(keys.secret_access_key),
        Bytes(keys.session_token)}) {
    claim(is_visible(key) && key.find(' ') == key.npos,
          "a key has no blank and no line break");
  }
}

void check_target(Bytes profile) {
  dynamodb::TargetOptions options;
  options.profile = profile;
  const auto target =
      dynamodb::find_target(options, sigv4::all_parts(), files_alone);
  if (target.error.empty()) {
    claim(sigv4::is_host_label(target.region) &&
              sigv4::is_endpoint_url(target.endpoint),
          "a target is a region and an endpoint");
  } else {
    claim(is_one_line(target.error) && target.endpoint.empty(),
          "without a target there is a reason for people");
  }
}

}  // namespace

void profile(Bytes bytes) {
  Input input(bytes);
  const Bytes name = input.part();
  const std::string config(input.part());
  const std::string credentials(input.rest());
  const ParsedFile in_config = check_text(config, FileKind::config);
  const ParsedFile in_credentials =
      check_text(credentials, FileKind::credentials);
  files().config.write(config);
  files().credentials.write(credentials);
  const auto outcome = keys_of(name);
  check_keys(outcome);
  check_target(name);
  const bool usable = in_config.error.empty() && in_credentials.error.empty();
  claim(usable || outcome.state == sigv4::KeyOutcome::State::broken,
        "no keys are taken beside an unusable file");
}

}  // namespace fuzz
}  // namespace tests
