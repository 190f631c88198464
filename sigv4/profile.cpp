#ifndef DDBMUTEX_NO_PROFILES
#include "profile.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

constexpr std::string_view kBlanks = " \t\r";
constexpr std::string_view kCommentMarks = "#;";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr char kProfiles[] = "profile";
constexpr std::string_view kProfile = kProfiles, kDefault = "default";

bool is_one_of(char c, std::string_view set) { return set.find(c) != set.npos; }

// Without regard to the locale.
char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_name(std::string_view text) {
  return !text.empty() && sigv4::is_alphanumeric(text, "_-/.%@:+\\");
}

bool is_no_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x20 && byte != 0x7F;
}

// Up to a blank with a comment mark behind it.
std::string_view without_comment(std::string_view line) {
  for (std::size_t i = 1; i < line.size(); ++i) {
    if (sigv4::is_one_of(line[i], kCommentMarks) &&
        sigv4::is_one_of(line[i - 1], kBlanks)) {
      return line.substr(0, i);
    }
  }
  return line;
}

// The name in a pair of quotes, empty if it is none.
std::string_view unquoted(std::string_view text) {
  if (text.size() < 2 || !sigv4::is_one_of(text.front(), "\"'")) return {};
  const std::string_view name = text.substr(1, text.size() - 2);
  const bool good = text.back() == text.front() &&
                    name.find(text.front()) == name.npos &&
                    sigv4::consists_of(name, is_no_control);
  return good ? name : std::string_view();
}

class Parser {
 public:
  Parser(FileKind file, Entries& entries) : file_(file), entries_(entries) {}

  // One line without its '\n'.  Returns what is wrong with it, or null.
  const char* add(std::string_view line);

 private:
  // These begin with what is no blank.
  const char* add_section(std::string_view text);
  const char* add_continuation(std::string_view text);
  const char* add_property(std::string_view text);
  // Makes the section's kind what it means in this file.  False if it is to be
  // skipped.
  bool is_wanted();
  void add_entry(std::string_view property, std::string_view value) {
    entries_.push_back({kind_, section_, property, value});
  }

  const FileKind file_;
  Entries& entries_;
  // The current section's; without a name it is skipped.
  std::string_view kind_, section_;
  bool seen_section_ = false;
  bool default_is_prefixed_ = false;
  bool has_property_ = false;  // The section has one, skipped or not.
  // The rest is the last one's.
  std::size_t indent_ = 0;
  bool skipped_ = false;
  bool has_sub_properties_ = false;  // It began with no value.
};

const char* Parser::add(std::string_view line) {
  const std::string_view text = sigv4::trimmed(line);
  if (text.empty() || sigv4::is_one_of(text.front(), kCommentMarks))
    return nullptr;
  const auto indent = static_cast<std::size_t>(text.data() - line.data());
  if (has_property_ && indent > indent_) return add_continuation(text);
  if (text.front() == '[') return add_section(text);
  if (!seen_section_) return "a line before the first section";
  has_property_ = true;
  indent_ = indent;
  skipped_ = section_.empty();
  return skipped_ ? nullptr : add_property(text);
}

const char* Parser::add_section(std::string_view text) {
  const auto end = text.find(']');
  if (end == text.npos) return "a section without its ']'";
  seen_section_ = true;
  has_property_ = false;
  text = sigv4::trimmed(text.substr(1, end - 1));
  kind_ = {};
  const auto blank = text.find_first_of(kBlanks);
  if (blank != text.npos) {
    kind_ = text.substr(0, blank);
    text = sigv4::trimmed(text.substr(blank));
  }
  section_ = is_name(text) ? text : std::string_view();
  if (section_.empty() && !kind_.empty()) section_ = sigv4::unquoted(text);
  if (section_.empty() || !is_wanted()) {
    section_ = {};
  } else {
    add_entry({}, {});
  }
  return nullptr;
}

bool Parser::is_wanted() {
  const bool bare = kind_.empty();
  if (bare) kind_ = kProfile;
  if (file_ == FileKind::credentials) return bare;
  if (kind_ != kProfile) return sigv4::is_among("services sso-session", kind_);
  if (section_ != kDefault) return !bare;
  if (bare) return !default_is_prefixed_;
  if (default_is_prefixed_) return true;
  default_is_prefixed_ = true;
  for (Entry& earlier : entries_) {
    if (earlier.kind == kProfile && earlier.section == kDefault) {
      earlier.kind = {};
    }
  }
  return true;
}

// Behind the value there is room: a line end at least was cut off.
const char* Parser::add_continuation(std::string_view text) {
  if (skipped_) return nullptr;
  if (has_sub_properties_) {
    const auto equals = text.find('=');
    if (equals == text.npos) return "a sub-property without '='";
    if (equals == 0) return "a sub-property without a name";
  }
  std::string_view& value = entries_.back().value;
  char* const end = const_cast<char*>(value.data()) + value.size();
  *end = '\n';
  std::memmove(end + 1, text.data(), text.size());
  value = {value.data(), value.size() + 1 + text.size()};
  return nullptr;
}

const char* Parser::add_property(std::string_view text) {
  std::string_view value = without_comment(text);
  if (value.find('=') == value.npos) return "a property without '='";
  const std::string_view property = sigv4::trimmed(sigv4::cut(value, '='));
  if (property.empty()) return "a property without a name";
  skipped_ = !is_name(property);
  if (skipped_) return nullptr;
  for (const char& c : property) const_cast<char&>(c) = lower(c);
  value = sigv4::trimmed(value);
  has_sub_properties_ = value.empty();
  add_entry(property, value);
  return nullptr;
}

bool is_below_home(std::string_view path) {
  return path == "~"sv || sigv4::begins_with(path, "~/");
}

// Sets `path`, which is empty, to the variable or `otherwise`; with HOME for a
// leading '~'.
void locate(std::string& path, const char* variable, const char* otherwise,
            const Environment& environment) {
  environment(variable).swap(path);
  if (path.empty()) path = otherwise;
  if (!is_below_home(path)) return;
  const std::string home = environment("HOME");
  if (!home.empty()) path.replace(0, 1, home);
}

}  // namespace

std::string parse_profiles(std::string& text, FileKind kind, Entries& entries) {
  std::string_view rest = text;
  if (sigv4::begins_with(rest, kByteOrderMark)) {
    rest.remove_prefix(kByteOrderMark.size());
  }
  Parser parser(kind, entries);
  for (std::int64_t number = 1; !rest.empty(); ++number) {
    const char* wrong = parser.add(sigv4::cut(rest, '\n'));
    if (wrong == nullptr) continue;
    entries.clear();
    return sigv4::format("line %s: %s", number, wrong);
  }
  return "";
}

std::string_view sub_property(std::string_view value, std::string_view name) {
  std::string_view found;
  if (!sigv4::begins_with(value, "\n")) return found;
  while (!value.empty()) {
    std::string_view line = sigv4::cut(value, '\n');
    const std::string_view own = sigv4::trimmed(sigv4::cut(line, '='));
    const bool same =
        std::equal(own.begin(), own.end(), name.begin(), name.end(),
                   [](char a, char b) { return lower(a) == b; });
    if (same) found = sigv4::trimmed(line);
  }
  return found;
}

ProfileFile::ProfileFile(const std::string& the_path, FileKind kind)
    : path(the_path),
      // `error` is empty yet, and no file is called so.
      file_(is_below_home(path) ? error : path, kMaxProfileFileBytes) {
  if (file_.too_long) {
    sigv4::format_to(error, "%q: longer than 1 MiB", path);
    return;
  }
  if (is_below_home(path)) file_.failure = "cannot be found (HOME is not set)";
  const std::string wrong = parse_profiles(file_.text, kind, entries_);
  if (!wrong.empty()) sigv4::format_to(error, "%q, %s", path, wrong);
  bool warn = kind == FileKind::credentials;
  for (const Entry& entry : entries_) {
    if (entry.kind != kProfile || entry.value.empty()) continue;
    warn = warn || entry.property == "aws_secret_access_key"sv ||
           entry.property == "aws_session_token"sv;
  }
  if (!warn) file_.warning.clear();
}

ProfileFile::~ProfileFile() = default;

const std::string_view* ProfileFile::find(const char* kind,
                                          std::string_view section,
                                          const char* property) const {
  const std::string_view* found = nullptr;
  for (const Entry& entry : entries_) {
    if (entry.property == property && entry.section == section &&
        entry.kind == kind) {
      found = &entry.value;
    }
  }
  return found;
}

ProfilePlace locate_profile(std::string_view name,
                            const Environment& environment) {
  ProfilePlace place;
  place.named = named_profile(name, environment);
  if (!place.named) place.named = {kDefault, {}};
  sigv4::locate(place.credentials_file, "AWS_SHARED_CREDENTIALS_FILE",
                "~/.aws/credentials", environment);
  sigv4::locate(place.config_file, "AWS_CONFIG_FILE", "~/.aws/config",
                environment);
  return place;
}

Profile::Profile(const ProfilePlace& place)
    : name(place.named.value),
      credentials(place.credentials_file, FileKind::credentials),
      config(place.config_file, FileKind::config),
      error(credentials.error.empty() ? config.error : credentials.error) {
  const std::string& chooser = place.named.source;
  missing = error.empty() && !chooser.empty() && !exists();
  if (!missing) return;
  sigv4::format_to(error, "profile %q, named by %s, does not exist: %s", name,
                   chooser, whereabouts());
}

Profile::Found Profile::look(const char* property) const {
  for (const ProfileFile* file : {&credentials, &config}) {
    const std::string_view* value = file->find(kProfiles, name, property);
    if (value != nullptr) return {file, *value};
  }
  return {nullptr, ""};
}

Setting Profile::find(const char* property) const {
  const auto [file, value] = look(property);
  Setting setting;
  if (value.empty()) return setting;
  setting.value = value;
  sigv4::format_to(setting.source, "%s of profile %q in %q", property, name,
                   file->path);
  return setting;
}

Setting Profile::url_of(const char* service, std::string& flaw) const {
  Setting url;
  const Setting services = find("services");
  if (services) {
    const std::string called = sigv4::format("services %s", services.value);
    const auto* own = config.find("services", services.value, service);
    if (own != nullptr) {
      url.value = sub_property(*own, "endpoint_url");
      sigv4::format_to(url.source, "endpoint_url of %s in section %q of %q",
                       service, called, config.path);
    } else if (!config.has("services", services.value)) {
      sigv4::format_to(flaw, "%s names a section %q that does not exist",
                       services.source, called);
    }
  }
  return url ? url : find("endpoint_url");
}

std::string_view Profile::value_of(const char* property) const {
  return look(property).value;
}

std::string Profile::place_of(const char* property) const {
  const ProfileFile* file = look(property).file;
  return sigv4::format("profile %q%[ in %q%]", name,
                       file != nullptr ? file->path.c_str() : "");
}

std::string Profile::whereabouts() const {
  std::string told;
  for (const ProfileFile* file : {&credentials, &config}) {
    const bool known = file->has(kProfiles, name);
    sigv4::format_to(told, "%s%q %s", told.empty() ? "" : ", ", file->path,
                     !file->absence().empty() ? file->absence().c_str()
                     : known                  ? "has it"
                                              : "has no such profile");
  }
  return told;
}

Setting find_setting(const Environment& environment,
                     std::initializer_list<const char*> variables,
                     const Profile& profile, const char* property) {
  Setting setting = find_variable(environment, variables);
  if (!setting) setting = profile.find(property);
  return setting;
}

}  // namespace sigv4
}  // namespace v0
}  // namespace ddbmutex
#endif
