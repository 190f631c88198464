#include "examples/ddbmutex/names.hpp"

#include <chrono>
#include <cstdio>
#include <exception>
#include <future>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include "ddbmutex.hpp"
#include "examples/ddbmutex/told.hpp"
#include "extras/admin.hpp"

namespace command {
namespace {

using Words = std::vector<std::string>;

constexpr std::chrono::seconds kPatience{2};

// The settings of the command line `words` and `name`, if it is a valid one in
// which `name` is the NAME.
std::optional<Settings> settings_for(Words words, const std::string& name,
                                     const Environment& environment) try {
  const bool is_run = !words.empty() && words[0] == about(Command::run).name;
  words.push_back(name);
  if (is_run) words.push_back("COMMAND");
  Settings settings = parse(words, environment);
  if (settings.name != name) return {};
  return settings;
} catch (const UsageError&) {
  return {};
}

std::set<std::string> names_in(const Settings& settings) {
  ddbmutex::TableOptions options = table_of(settings);
  options.patience = kPatience;
  ddbmutex::Table table(std::move(options));
  std::set<std::string> names;
  const auto read = std::async(std::launch::async, [&] {
    std::error_code ignored;
    list_locks(
        table,
        [&](const ddbmutex::LockInfo& info) {
          names.insert(info.name);
          return true;
        },
        ignored);
  });
  // Many pages may come without a lock on them: only this ends the reading.
  if (read.wait_for(kPatience) != std::future_status::ready) {
    table.close(std::chrono::milliseconds(0));
  }
  read.wait();
  return names;
}

// The names that may follow these words.  A name that begins with a hyphen may
// only follow `--`.
std::set<std::string> names_after(const Words& words,
                                  const Environment& environment) {
  const auto settings = settings_for(words, "NAME", environment);
  if (!settings) return {};
  std::set<std::string> names;
  for (const std::string& name : names_in(*settings)) {
    if (name != printable(name)) continue;
    if (name[0] != '-' || settings_for(words, name, environment)) {
      names.insert(name);
    }
  }
  return names;
}

bool is_plain(char byte) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
      "_./:=@%+,-";
  return kPlain.find(byte) != kPlain.npos ||
         static_cast<unsigned char>(byte) >= 0x80;
}

}  // namespace

TypedLine split_line(const std::string& line, const std::string& breaks) {
  TypedLine typed;
  std::string word;
  bool is_word = false;
  const auto keep = [&] { typed.kept = word.size(); };
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char byte = line[i];
    if (typed.quote == '\0' && (byte == ' ' || byte == '\t')) {
      if (std::exchange(is_word, false)) typed.words.push_back(word);
      word.clear();
      keep();
      continue;
    }
    is_word = true;
    const bool is_escape =
        byte == '\\' && i + 1 < line.size() &&
        (typed.quote == '\0' ||
         (typed.quote == '"' &&
          std::string_view("\"\\$`").find(line[i + 1]) != std::string::npos));
    if (is_escape) {
      word += line[++i];
    } else if (byte == typed.quote) {
      typed.quote = '\0';
      keep();
    } else if (typed.quote == '\0' && (byte == '\'' || byte == '"')) {
      typed.quote = byte;
      keep();
    } else {
      word += byte;
      if (typed.quote == '\0' && breaks.find(byte) != breaks.npos) keep();
    }
  }
  typed.words.push_back(word);
  return typed;
}

std::optional<std::string> offer(const TypedLine& line,
                                 const std::string& name) {
  const std::string& word = line.words.back();
  if (name.compare(0, word.size(), word) != 0) return {};
  std::string text;
  for (const char byte : name.substr(line.kept)) {
    if (line.quote == '\'') {
      text += byte == '\'' ? "'\\''" : std::string(1, byte);
    } else if (line.quote == '"') {
      // bash would look it up in its history, and keep a backslash before it.
      if (byte == '!') return {};
      if (std::string_view("\"\\$`").find(byte) != std::string::npos) {
        text += '\\';
      }
      text += byte;
    } else {
      if (!is_plain(byte)) text += '\\';
      text += byte;
    }
  }
  return text;
}

void complete_names(const Words& arguments, const Environment& environment) {
  if (arguments.empty()) return;
  const bool is_bash = arguments[0] == "bash" && arguments.size() == 3;
  TypedLine line;
  if (is_bash) {
    line = split_line(arguments[1], arguments[2]);
  } else {
    line.words.assign(arguments.begin() + 1, arguments.end());
    line.words.push_back("");  // To be completed.
  }
  if (line.words.size() < 2) return;
  const Words before(line.words.begin() + 1, line.words.end() - 1);
  for (const std::string& name : names_after(before, environment)) {
    const auto text = is_bash ? offer(line, name) : name;
    if (text) std::printf("%s\n", text->c_str());
  }
}

}  // namespace command
