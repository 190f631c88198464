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

// What stands between a section's brackets.
struct Heading {
  std::string_view type;  // Empty if there is one word only.
  std::string_view name;  // Empty if invalid.
};

// The name in a pair of quotes, empty if it is none.
std::string_view unquoted(std::string_view text) {
  if (text.size() < 2 || !is_one_of(text.front(), "\"'")) return {};
  const std::string_view name = text.substr(1, text.size() - 2);
  const bool good = text.back() == text.front() &&
                    name.find(text.front()) == name.npos &&
                    std::none_of(name.begin(), name.end(), is_control);
  return good ? name : std::string_view();
}

Heading parse_heading(std::string_view text) {
  text = trim(text);
  const auto blank = text.find_first_of(kBlanks);
  Heading heading;
  if (blank != text.npos) {
    heading.type = text.substr(0, blank);
    text = trim_left(text.substr(blank));
  }
  const bool quotes = !heading.type.empty() && !is_name(text);
  heading.name = quotes ? unquoted(text) : text;
  if (!quotes && !is_name(text)) heading.name = {};
  return heading;
}

class Parser {
 public:
  explicit Parser(FileKind kind) : kind_(kind) {}

  // One line without its '\n'.  Returns what is wrong with it, or null.
  const char* add(std::string_view line);
  Sections take() {
    end_property();
    return std::move(sections_);
  }

 private:
  // These begin with what is no blank.
  const char* add_section(std::string_view text);
  const char* add_continuation(std::string_view text);
  const char* add_property(std::string_view text);
  // Puts the last property's value where it belongs.
  void end_property();
  // Where a section's properties go; null if it is to be skipped.
  Properties* section_of(const Heading& heading);
  Properties* default_of_config(bool prefixed);

  const FileKind kind_;
  Sections sections_;
  bool seen_section_ = false;
  bool default_is_prefixed_ = false;
  Properties* section_ = nullptr;  // The current one; null while skipping.
  bool has_property_ = false;      // The section has one, skipped or not.
  // The rest is the last one's.
  std::size_t indent_ = 0;
  Secret* property_ = nullptr;           // Its value; null if it is skipped.
  std::vector<std::string_view> lines_;  // Of that value, until it ends.
  bool has_sub_properties_ = false;      // It began with no value.
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
  return section_ == nullptr ? nullptr : add_property(text);
}

const char* Parser::add_section(std::string_view text) {
  const auto end = text.find(']');
  if (end == text.npos) return "a section without its ']'";
  seen_section_ = true;
  end_property();
  has_property_ = false;
  section_ = section_of(parse_heading(text.substr(1, end - 1)));
  return nullptr;
}

Properties* Parser::section_of(const Heading& heading) {
  if (heading.name.empty()) return nullptr;
  const std::string name(heading.name);
  if (kind_ == FileKind::credentials) {
    return heading.type.empty() ? &sections_.profiles[name] : nullptr;
  }
  if (heading.type == "services") return &sections_.services[name];
  if (heading.type == "sso-session") return &sections_.sso_sessions[name];
  const bool prefixed = heading.type == "profile";
  if (!prefixed && !heading.type.empty()) return nullptr;
  if (name == "default") return default_of_config(prefixed);
  return prefixed ? &sections_.profiles[name] : nullptr;
}

Properties* Parser::default_of_config(bool prefixed) {
  if (!prefixed && default_is_prefixed_) return nullptr;
  Properties& section = sections_.profiles["default"];
  if (prefixed && !default_is_prefixed_) section.clear();
  default_is_prefixed_ = prefixed;
  return &section;
}

const char* Parser::add_continuation(std::string_view text) {
  if (property_ == nullptr) return nullptr;
  if (has_sub_properties_) {
    const auto equals = text.find('=');
    if (equals == text.npos) return "a sub-property without '='";
    if (equals == 0) return "a sub-property without a name";
  }
  lines_.push_back(text);
  return nullptr;
}

const char* Parser::add_property(std::string_view text) {
  std::string_view value = without_comment(text);
  if (value.find('=') == value.npos) return "a property without '='";
  const std::string_view name = trim_right(cut(value, '='));
  if (name.empty()) return "a property without a name";
  end_property();
  if (!is_name(name)) return nullptr;
  value = trim(value);
  property_ = &(*section_)[lower(name)];
  lines_.push_back(value);
  has_sub_properties_ = value.empty();
  return nullptr;
}

void Parser::end_property() {
  if (property_ == nullptr) return;
  std::size_t size = lines_.size();
  for (const std::string_view line : lines_) size += line.size();
  std::string value;
  value.reserve(size);  // So that it leaves no copies behind.
  for (const std::string_view line : lines_) {
    value.append(line).append(1, '\n');
  }
  value.pop_back();
  *property_ = std::move(value);
  property_ = nullptr;
  lines_.clear();
}

bool holds_keys(const Sections& sections) {
  for (const auto& [name, properties] : sections.profiles) {
    for (const char* key : {"aws_secret_access_key", "aws_session_token"}) {
      const auto found = properties.find(key);
      if (found != properties.end() && !found->second.empty()) return true;
    }
  }
  return false;
}

// Reads `file.path`; returns why it is unusable, empty if it is not.
std::string read_profiles(ProfileFile& file, FileKind kind) {
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
  return in_quotes(file.path) + ", " + parsed.error;
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

// The profile's name, and who asked for it; nobody if it is the default's.
std::pair<std::string, const char*> choose(const ProfileOptions& options,
                                           const Environment& environment) {
  if (!options.name.empty()) return {options.name, "the options"};
  for (const char* variable : {"AWS_PROFILE", "AWS_DEFAULT_PROFILE"}) {
    if (auto name = set_in(environment, variable)) return {*name, variable};
  }
  return {"default", nullptr};
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
  for (std::size_t number = 1; !text.empty(); ++number) {
    const char* wrong = parser.add(cut(text, '\n'));
    if (wrong != nullptr) {
      return {{}, "line " + std::to_string(number) + ": " + wrong};
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

const Properties* Profile::in(const ProfileFile& file) const {
  const auto found = file.sections.profiles.find(name);
  return found == file.sections.profiles.end() ? nullptr : &found->second;
}

std::optional<Profile::Property> Profile::find(
    const std::string& property) const {
  for (const ProfileFile* file : {&credentials, &config}) {
    const Properties* section = in(*file);
    if (section == nullptr) continue;
    const auto found = section->find(property);
    if (found == section->end()) continue;
    if (found->second.empty()) return std::nullopt;
    return Property{found->second.str(), property + " of " + described() +
                                             " in " + in_quotes(file->path)};
  }
  return std::nullopt;
}

std::string Profile::described() const { return "profile " + in_quotes(name); }

std::string Profile::whereabouts() const {
  std::string text;
  for (const ProfileFile* file : {&credentials, &config}) {
    if (!text.empty()) text += ", ";
    text += in_quotes(file->path) + " ";
    if (!file->absence.empty()) {
      text += file->absence;
    } else {
      text += in(*file) != nullptr ? "has it" : "has no such profile";
    }
  }
  return text;
}

std::vector<std::string> Profile::warnings() const {
  std::vector<std::string> all;
  for (const ProfileFile* file : {&credentials, &config}) {
    if (!file->warning.empty()) all.push_back(file->warning);
  }
  return all;
}

ProfilePlace locate_profile(const ProfileOptions& options,
                            const Environment& environment) {
  ProfilePlace place;
  const auto [name, chooser] = choose(options, environment);
  place.name = name;
  if (chooser != nullptr) place.chooser = chooser;
  place.credentials =
      locate(options.credentials_file, "AWS_SHARED_CREDENTIALS_FILE",
             "~/.aws/credentials", environment);
  place.config = locate(options.config_file, "AWS_CONFIG_FILE", "~/.aws/config",
                        environment);
  return place;
}

Profile load_profile(const ProfilePlace& place) {
  Profile profile;
  profile.name = place.name;
  profile.credentials = place.credentials;
  profile.config = place.config;
  for (const auto& [file, kind] :
       {std::pair(&profile.credentials, FileKind::credentials),
        std::pair(&profile.config, FileKind::config)}) {
    if (!file->absence.empty()) continue;
    profile.error = read_profiles(*file, kind);
    if (!profile.error.empty()) return profile;
  }
  const bool exists = profile.in(profile.credentials) != nullptr ||
                      profile.in(profile.config) != nullptr;
  profile.missing = !place.chooser.empty() && !exists;
  if (profile.missing) {
    profile.error = profile.described() + ", named by " + place.chooser +
                    ", does not exist: " + profile.whereabouts();
  }
  return profile;
}

Profile load_profile(const ProfileOptions& options,
                     const Environment& environment) {
  return load_profile(locate_profile(options, environment));
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
