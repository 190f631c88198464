#include "profile.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <utility>
#include <vector>

#include "secret_file.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kCommentMarks = "#;";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

std::string_view trim_left(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  return text;
}

std::string_view trim_right(std::string_view text) {
  // npos + 1 is 0.
  return text.substr(0, text.find_last_not_of(kBlanks) + 1);
}

std::string_view trim(std::string_view text) {
  return trim_left(trim_right(text));
}

// Without regard to the locale.
std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

bool is_name_char(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || is_one_of(c, "_-/.%@:+\\");
}

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_char);
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

bool is_comment(std::string_view line) {
  const std::string_view text = trim_left(line);
  return !text.empty() && is_one_of(text.front(), kCommentMarks);
}

// Up to a blank with a comment mark behind it.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (is_one_of(line[i], kCommentMarks) && is_one_of(line[i - 1], kBlanks)) {
      return line.substr(0, i);
    }
  }
  return line;
}

// The name in a pair of quotes, empty if it is none.
std::string_view unquoted(std::string_view text) {
  if (text.size() < 2 || !is_one_of(text.front(), "\"'")) return {};
  const std::string_view name = text.substr(1, text.size() - 2);
  const bool good = text.back() == text.front() &&
                    name.find(text.front()) == name.npos &&
                    std::none_of(name.begin(), name.end(), is_control);
  return good ? name : std::string_view();
}

// What stands between a section's brackets: the kind is empty if it is one word
// only, the name if it is invalid.
Section parse_heading(std::string_view text) {
  text = trim(text);
  Section section;
  const auto blank = text.find_first_of(kBlanks);
  if (blank != text.npos) {
    section.kind = text.substr(0, blank);
    text = trim_left(text.substr(blank));
  }
  if (is_name(text)) {
    section.name = text;
  } else if (!section.kind.empty()) {
    section.name = unquoted(text);
  }
  return section;
}

class Parser {
 public:
  explicit Parser(FileKind kind) : kind_(kind) {}
  ~Parser() { wipe(value_); }
  Parser(const Parser&) = delete;
  Parser& operator=(const Parser&) = delete;

  // One line without its '\n'.  Returns what is wrong with it, or null.
  const char* add(std::string_view line);
  std::vector<Section> take() {
    end_property();
    return std::move(sections_);
  }

 private:
  // These begin with what is no blank.
  const char* add_section(std::string_view text);
  const char* add_continuation(std::string_view text);
  const char* add_property(std::string_view text);
  void end_property();
  // Makes the kind what it means in this file.  False if it is to be skipped.
  bool is_wanted(Section& section);

  const FileKind kind_;
  std::vector<Section> sections_;
  bool seen_section_ = false;
  bool skipping_ = false;  // The current section.
  bool default_is_prefixed_ = false;
  bool has_property_ = false;  // The section has one, skipped or not.
  // The rest is the last one's.
  std::size_t indent_ = 0;
  std::string name_;  // Empty if it is skipped, or has ended.
  std::string value_;
  bool has_sub_properties_ = false;  // It began with no value.
};

const char* Parser::add(std::string_view line) {
  line = trim_right(line);
  if (line.empty() || is_comment(line)) return nullptr;
  const std::string_view text = trim_left(line);
  const std::size_t indent = line.size() - text.size();
  if (has_property_ && indent > indent_) return add_continuation(text);
  if (text.front() == '[') return add_section(text);
  if (!seen_section_) return "a line before the first section";
  has_property_ = true;
  indent_ = indent;
  return skipping_ ? nullptr : add_property(text);
}

const char* Parser::add_section(std::string_view text) {
  const auto end = text.find(']');
  if (end == text.npos) return "a section without its ']'";
  seen_section_ = true;
  end_property();
  has_property_ = false;
  Section section = parse_heading(text.substr(1, end - 1));
  skipping_ = section.name.empty() || !is_wanted(section);
  if (!skipping_) sections_.push_back(std::move(section));
  return nullptr;
}

bool Parser::is_wanted(Section& section) {
  const bool bare = section.kind.empty();
  if (bare) section.kind = "profile";
  if (kind_ == FileKind::credentials) return bare;
  if (section.kind != "profile") {
    return section.kind == "services" || section.kind == "sso-session";
  }
  if (section.name != "default") return !bare;
  if (bare) return !default_is_prefixed_;
  if (default_is_prefixed_) return true;
  default_is_prefixed_ = true;
  sections_.erase(std::remove_if(sections_.begin(), sections_.end(),
                                 [](const Section& earlier) {
                                   return earlier.kind == "profile" &&
                                          earlier.name == "default";
                                 }),
                  sections_.end());
  return true;
}

const char* Parser::add_continuation(std::string_view text) {
  if (name_.empty()) return nullptr;
  if (has_sub_properties_) {
    const auto equals = text.find('=');
    if (equals == text.npos) return "a sub-property without '='";
    if (equals == 0) return "a sub-property without a name";
  }
  reserve_secret(value_, value_.size() + 1 + text.size());
  value_.append(1, '\n').append(text);
  return nullptr;
}

const char* Parser::add_property(std::string_view text) {
  std::string_view value = without_comment(text);
  if (value.find('=') == value.npos) return "a property without '='";
  const std::string_view name = trim_right(cut(value, '='));
  if (name.empty()) return "a property without a name";
  end_property();
  if (!is_name(name)) return nullptr;
  name_ = lower(name);
  value_ = trim(value);
  has_sub_properties_ = value_.empty();
  return nullptr;
}

// Puts the last property where it belongs.
void Parser::end_property() {
  if (name_.empty()) return;
  sections_.back().properties.emplace_back(std::move(name_), std::move(value_));
  name_.clear();
}

bool holds_keys(const std::vector<Section>& sections) {
  for (const Section& section : sections) {
    for (const auto& [name, value] : section.properties) {
      const bool secret =
          name == "aws_secret_access_key" || name == "aws_session_token";
      if (secret && section.kind == "profile" && !value.empty()) return true;
    }
  }
  return false;
}

// Reads `file.path`; returns why it is unusable, empty if it is not.
std::string read_profiles(ProfileFile& file, FileKind kind) {
  if (!file.absence.empty()) return "";
  const SecretFile read = read_secret_file(file.path, kMaxProfileFileBytes);
  if (read.too_long) return in_quotes(file.path) + ": longer than 1 MiB";
  file.absence = read.failure;
  if (!file.absence.empty()) return "";
  ParsedFile parsed = parse_profiles(read.text, kind);
  file.sections = std::move(parsed.sections);
  if (kind == FileKind::credentials || holds_keys(file.sections)) {
    file.warning = read.warning;
  }
  if (parsed.error.empty()) return "";
  return join({in_quotes(file.path), ", ", parsed.error});
}

// `option`, or the variable, or `otherwise`; with HOME for a leading '~'.
ProfileFile locate(const std::string& option, const char* variable,
                   const char* otherwise, const Environment& environment) {
  ProfileFile file;
  file.path = !option.empty()
                  ? option
                  : set_in(environment, variable).value_or(otherwise);
  if (file.path != "~" && !begins_with(file.path, "~/")) return file;
  const auto home = set_in(environment, "HOME");
  if (home) {
    file.path.replace(0, 1, *home);
  } else {
    file.absence = "cannot be found (HOME is not set)";
  }
  return file;
}

// As the system's list of users has it, for those without HOME: services that
// are started by systemd, say.
std::optional<std::string> home_by_name() {
  std::array<char, 4096> buffer;
  passwd entry = {};
  passwd* found = nullptr;
  if (getpwuid_r(getuid(), &entry, buffer.data(), buffer.size(), &found) != 0 ||
      found == nullptr || entry.pw_dir == nullptr) {
    return std::nullopt;
  }
  return entry.pw_dir;
}

}  // namespace

std::optional<std::string> process_environment(const char* name) {
  const char* value = std::getenv(name);
  if (value != nullptr) return value;
  return std::string_view(name) == "HOME" ? home_by_name() : std::nullopt;
}

std::optional<std::string> set_in(const Environment& environment,
                                  const char* name) {
  auto value = environment(name);
  if (value && value->empty()) return std::nullopt;
  return value;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kMost = 200;
  std::string result = "\"";
  for (const char c : text.substr(0, kMost)) {
    const bool visible = c >= ' ' && c <= '~';
    result += visible ? c : '?';
  }
  return result + (text.size() > kMost ? "...\"" : "\"");
}

ParsedFile parse_profiles(std::string_view text, FileKind kind) {
  if (begins_with(text, kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  Parser parser(kind);
  for (std::int64_t number = 1; !text.empty(); ++number) {
    const char* wrong = parser.add(cut(text, '\n'));
    if (wrong != nullptr) {
      return {{}, join({"line ", decimal(number), ": ", wrong})};
    }
  }
  return {parser.take(), ""};
}

std::optional<std::string> sub_property(std::string_view value,
                                        std::string_view name) {
  std::optional<std::string> found;
  if (!begins_with(value, "\n")) return found;
  while (!value.empty()) {
    std::string_view line = cut(value, '\n');
    const std::string_view line_name = trim_right(cut(line, '='));
    if (lower(line_name) == name) found = trim(line);
  }
  return found;
}

bool ProfileFile::has(std::string_view kind, std::string_view section) const {
  return std::any_of(sections.begin(), sections.end(), [&](const Section& one) {
    return one.kind == kind && one.name == section;
  });
}

const Secret* ProfileFile::find(std::string_view kind, std::string_view section,
                                std::string_view property) const {
  const Secret* found = nullptr;
  for (const Section& one : sections) {
    if (one.kind != kind || one.name != section) continue;
    for (const auto& [name, value] : one.properties) {
      if (name == property) found = &value;
    }
  }
  return found;
}

std::optional<Profile::Property> Profile::find(
    std::string_view property) const {
  for (const ProfileFile* file : {&credentials, &config}) {
    const Secret* value = file->find("profile", name, property);
    if (value == nullptr) continue;
    if (value->empty()) return std::nullopt;
    return Property{value->str(), join({property, " of ", described(), " in ",
                                        in_quotes(file->path)})};
  }
  return std::nullopt;
}

bool Profile::has(std::string_view property) const {
  for (const ProfileFile* file : {&credentials, &config}) {
    const Secret* value = file->find("profile", name, property);
    if (value != nullptr) return !value->empty();
  }
  return false;
}

std::string Profile::described() const { return "profile " + in_quotes(name); }

std::string Profile::whereabouts() const {
  const auto tell = [this](const ProfileFile& file) {
    const std::string_view known =
        is_in(file) ? "has it" : "has no such profile";
    return join({in_quotes(file.path), " ",
                 file.absence.empty() ? known : file.absence});
  };
  return join({tell(credentials), ", ", tell(config)});
}

std::vector<std::string> Profile::warnings() const {
  std::vector<std::string> all;
  for (const ProfileFile* file : {&credentials, &config}) {
    if (!file->warning.empty()) all.push_back(file->warning);
  }
  return all;
}

Profile locate_profile(const ProfileOptions& options,
                       const Environment& environment) {
  Profile profile;
  profile.name = options.name;
  if (!profile.name.empty()) profile.chooser = "the options";
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    if (!profile.name.empty()) break;
    profile.name = set_in(environment, variable).value_or("");
    if (!profile.name.empty()) profile.chooser = variable;
  }
  if (profile.name.empty()) profile.name = "default";
  profile.credentials =
      locate(options.credentials_file, "AWS_SHARED_CREDENTIALS_FILE",
             "~/.aws/credentials", environment);
  profile.config = locate(options.config_file, "AWS_CONFIG_FILE",
                          "~/.aws/config", environment);
  return profile;
}

Profile load_profile(Profile profile) {
  profile.error = read_profiles(profile.credentials, FileKind::credentials);
  if (profile.error.empty()) {
    profile.error = read_profiles(profile.config, FileKind::config);
  }
  if (!profile.error.empty() || profile.chooser.empty() ||
      profile.is_in(profile.credentials) || profile.is_in(profile.config)) {
    return profile;
  }
  profile.missing = true;
  profile.error = join({profile.described(), ", named by ", profile.chooser,
                        ", does not exist: ", profile.whereabouts()});
  return profile;
}

Profile load_profile(const ProfileOptions& options,
                     const Environment& environment) {
  return load_profile(locate_profile(options, environment));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
