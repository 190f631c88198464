// Copyright (c) 2026 The ddbmutex authors.  SPDX-License-Identifier: MIT

// Finds and reads the two files, and looks up what they say about a profile.
#include "profile.hpp"

#include <algorithm>
#include <functional>
#include <iterator>

#include "parts.hpp"
#include "text.hpp"

namespace ddbmutex {
inline namespace v0 {
namespace sigv4 {

using std::string_view_literals::operator""sv;

namespace {

bool is_secret(const Entry& entry) {
  return entry.kind == kProfileKind && !entry.value.empty() &&
         (entry.property == "aws_secret_access_key"sv ||
          entry.property == "aws_session_token"sv);
}

bool is_below_home(std::string_view path) {
  return path == "~"sv || sigv4::begins_with(path, "~/");
}

bool is_of_a_variable(char c) {
  return is_letter(c) || is_digit(c) || c == '_';
}

// Removes the NAME or {NAME} that follows a '$' from the front of `rest`.
// Returns the name; empty if there is none.
std::string take_variable(std::string_view& rest) {
  std::string_view name;
  if (sigv4::begins_with(rest, "{")) {
    const std::size_t end = rest.find('}');
    if (end == rest.npos) return "";
    name = rest.substr(1, end - 1);
    rest.remove_prefix(end + 1);
  } else {
    std::size_t size = 0;
    while (size < rest.size() && is_of_a_variable(rest[size])) ++size;
    name = rest.substr(0, size);
    rest.remove_prefix(size);
  }
  return std::string(name);
}

// Replaces variables by their values.  Those that are not set stay as written.
std::string with_variables(std::string_view path,
                           const Environment& environment) {
  std::string expanded;
  while (!path.empty()) {
    const std::size_t mark = std::min(path.find('$'), path.size());
    expanded += path.substr(0, mark);
    path.remove_prefix(mark);
    if (path.empty()) break;
    std::string_view rest = path.substr(1);
    const std::string name = take_variable(rest);
    const std::string value =
        name.empty() ? std::string() : environment(name.c_str());
    const std::size_t written = path.size() - rest.size();
    expanded += value.empty() ? path.substr(0, written) : value;
    path.remove_prefix(written);
  }
  return expanded;
}

// Equal entries keep the order of the file, whose text they are views of.
// (clang++ 19 warns of std::stable_sort in libstdc++ 12.)
bool comes_first(const Entry& a, const Entry& b) {
  if (by_property(a, b) || by_property(b, a)) return by_property(a, b);
  return std::less<>()(a.property.data(), b.property.data());
}

}  // namespace

ProfileFile::ProfileFile(const std::string& the_path, FileKind kind,
                         const Parts& parts)
    : path(the_path) {
  if (is_below_home(path)) {
    file_.failure = join({"cannot be found (", why_no_home(), ")"});
    return;
  }
  file_.read(path, kMaxProfileFileBytes);
  if (file_.too_long) {
    error = in_quotes(path) + ": longer than 1 MiB";
    return;
  }
  const std::string wrong = parts.read_profile(file_.text, kind, entries_);
  if (!wrong.empty()) error = join({in_quotes(path), ", ", wrong});
  std::sort(entries_.begin(), entries_.end(), comes_first);
  bool is_for_secrets = kind == FileKind::credentials;
  for (const Entry& entry : entries_) {
    is_for_secrets = is_for_secrets || is_secret(entry);
  }
  if (!is_for_secrets) file_.warning.clear();
}

ProfileFile::~ProfileFile() = default;

const std::string_view* ProfileFile::find(std::string_view kind,
                                          std::string_view section,
                                          std::string_view property) const {
  const Entry wanted = {kind, section, property, {}};
  const auto end =
      std::upper_bound(entries_.begin(), entries_.end(), wanted, by_property);
  const bool found =
      end != entries_.begin() && !by_property(*std::prev(end), wanted);
  return found ? &std::prev(end)->value : nullptr;
}

std::string_view ProfileFile::unread_setting(std::string_view profile) const {
  for (const Entry& entry : entries_) {
    if (!entry.whole && entry.section == profile &&
        sigv4::is_among(kSettings, entry.property)) {
      return entry.property;
    }
  }
  return {};
}

std::string locate(const char* variable, const char* otherwise,
                   const Environment& environment) {
  std::string path = with_variables(environment(variable), environment);
  if (path.empty()) path = otherwise;
  if (!is_below_home(path)) return path;
  const std::string home = environment("HOME");
  if (!home.empty()) path.replace(0, 1, home);
  return path;
}

ProfilePlace locate_profile(std::string_view name,
                            const Environment& environment) {
  ProfilePlace place;
  place.named = named_profile(name, environment);
  if (!place.named) place.named = {kDefaultProfile, {}};
  place.credentials_file = sigv4::locate("AWS_SHARED_CREDENTIALS_FILE",
                                         "~/.aws/credentials", environment);
  place.config_file =
      sigv4::locate("AWS_CONFIG_FILE", "~/.aws/config", environment);
  return place;
}

Profile::Profile(const ProfilePlace& place, const Parts& parts)
    : name(place.named.value),
      credentials(place.credentials_file, FileKind::credentials, parts),
      config(place.config_file, FileKind::config, parts),
      error(credentials.error.empty() ? config.error : credentials.error),
      parts_(parts) {
  const std::string& chooser = place.named.source;
  missing = error.empty() && !chooser.empty() && !exists();
  if (missing) {
    error = join({"profile ", in_quotes(name), ", named by ", chooser,
                  ", does not exist: ", whereabouts()});
  }
  for (const ProfileFile* file : {&credentials, &config}) {
    const std::string_view unread = file->unread_setting(name);
    if (!error.empty() || unread.empty()) continue;
    error =
        join({unread, " of profile ", in_quotes(name), " in ",
              in_quotes(file->path), " has more than one line", kNeedsKeys});
  }
}

Profile::Found Profile::look(std::string_view property) const {
  for (const ProfileFile* file : {&credentials, &config}) {
    const std::string_view* value = file->find(kProfileKind, name, property);
    if (value != nullptr) return {file, *value};
  }
  return {nullptr, ""};
}

Setting Profile::find(const char* property) const {
  const auto [file, value] = look(property);
  Setting setting;
  if (value.empty()) return setting;
  setting.value = value;
  setting.source = join({property, " of profile ", in_quotes(name), " in ",
                         in_quotes(file->path), comment_hint(value)});
  return setting;
}

Setting Profile::url_of(const char* service, std::string& flaw) const {
  const Setting services = find("services");
  Setting url;
  if (services && parts_.url_in_services == nullptr) {
    flaw = services.source + kNeedsKeys;
  } else if (services) {
    url = parts_.url_in_services(*this, services, service, flaw);
  }
  return url ? url : find("endpoint_url");
}

std::string_view Profile::value_of(std::string_view property) const {
  return look(property).value;
}

std::string Profile::place_of(const char* property) const {
  const ProfileFile* file = look(property).file;
  return join({"profile ", in_quotes(name), file != nullptr ? " in " : "",
               file != nullptr ? in_quotes(file->path) : ""});
}

// The config file has "[profile x]", and the credentials file "[x]".
std::string Profile::heading_hint(const ProfileFile& file) const {
  const std::string prefixed = join({kProfileKind, " ", name});
  if (file.has({}, name)) {
    return join({" (its [", name, "] lacks the prefix: [", prefixed, "])"});
  }
  if (file.has(kProfileKind, prefixed)) {
    return join(
        {" (its [", prefixed, "] should have no prefix: [", name, "])"});
  }
  return "";
}

std::string Profile::whereabouts() const {
  std::string files;
  for (const ProfileFile* file : {&credentials, &config}) {
    const std::string_view state = !file->absence().empty() ? file->absence()
                                   : file->has(kProfileKind, name)
                                       ? "has it"sv
                                       : "has no such profile"sv;
    append(files, {files.empty() ? "" : ", ", in_quotes(file->path), " ", state,
                   file->has(kProfileKind, name) ? "" : heading_hint(*file)});
  }
  return files;
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
