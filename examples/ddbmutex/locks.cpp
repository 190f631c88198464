#include "examples/ddbmutex/locks.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <string>
#include <tuple>
#include <vector>

#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/told.hpp"
#include "extras/admin.hpp"

namespace command {
namespace {

using ddbmutex::LockInfo;
using ddbmutex::Table;

void print(const std::string& text) { std::fputs(text.c_str(), stdout); }

// Only a "y" or a "yes" is one.
bool confirmed() {
  if (isatty(STDIN_FILENO) == 0) {
    throw UsageError("unlock: there is no terminal to ask on; give --yes");
  }
  std::fflush(stdout);
  std::fputs("Free it? [y/N] ", stderr);
  std::string answer;
  std::getline(std::cin, answer);
  return answer == "y" || answer == "Y" || answer == "yes";
}

}  // namespace

int show(const Settings& settings) {
  Table table(table_of(settings));
  const LockInfo info = table.inspect(settings.name);
  print(settings.json ? json_of(info, "", settings.layout) + "\n"
                      : lines_of(info, settings.layout));
  return kDone;
}

std::vector<LockInfo> all_locks(Table& table) {
  std::vector<LockInfo> infos;
  list_locks(table, [&infos](const LockInfo& info) {
    infos.push_back(info);
    return true;
  });
  std::sort(
      infos.begin(), infos.end(), [](const LockInfo& a, const LockInfo& b) {
        return std::tie(a.name, a.sort_value) < std::tie(b.name, b.sort_value);
      });
  return infos;
}

int list(const Settings& settings) {
  Table table(table_of(settings));
  const std::vector<LockInfo> infos = all_locks(table);
  if (!settings.json) {
    for (const std::string& line :
         rows_of(infos, std::string::npos, settings.layout)) {
      print(line + "\n");
    }
    return kDone;
  }
  const char* before = "[";
  for (const LockInfo& info : infos) {
    print(before + json_of(info, "", settings.layout));
    before = ",\n ";
  }
  print(infos.empty() ? "[]\n" : "]\n");
  return kDone;
}

namespace {

// A living holder may renew its lease between the look and the answer: it is
// still the one that was shown.
bool force(Table& table, LockInfo info) {
  constexpr int kTries = 10;
  const std::string shown = info.uuid;
  for (int i = 0; i < kTries && info.uuid == shown && !info.released; ++i) {
    if (force_unlock(table, info)) return true;
    info = table.inspect(info.name);
  }
  return false;
}

}  // namespace

int unlock(const Settings& settings) {
  Table table(table_of(settings));
  const LockInfo info = table.inspect(settings.name);
  const bool is_held = info.exists && !info.released;
  const bool asks = is_held && !settings.yes;
  const std::string lines = lines_of(info, settings.layout);
  if (!settings.json) print(lines);
  if (asks && settings.json) std::fputs(lines.c_str(), stderr);
  if (asks && !confirmed()) {
    complain("left as it is");
    return kRefused;
  }
  const bool is_freed = is_held && force(table, info);
  if (settings.json) {
    print(json_of(info, is_freed ? "\"freed\":true" : "\"freed\":false",
                  settings.layout) +
          "\n");
  } else {
    print(is_freed ? "Freed.\n" : is_held ? "" : "Nobody holds it.\n");
  }
  if (is_freed || !is_held) return kDone;
  complain(
      "the lock has changed meanwhile and was not freed; look again with `"
      "ddbmutex show`");
  return kBusy;
}

int create_table(const Settings& settings) {
  Table table(table_of(settings));
  const ddbmutex::Created done =
      ddbmutex::create_table(table, creation_of(settings));
  if (settings.json) {
    print("{\"table\":" + json_of(settings.table) +
          ",\"created\":" + (done.made ? "true" : "false") +
          ",\"clean_up\":" + (done.cleans_up ? "true" : "false") + "}\n");
    return kDone;
  }
  std::string text = "Table " + printable(settings.table);
  text += done.made ? " is created." : " exists, and is fit for locks.";
  const bool may_clean_up =
      settings.layout == Layout::ddblock && settings.clean_up.value_or(true);
  if (done.cleans_up) {
    text += "  Its clean-up of old items is on.";
  } else if (may_clean_up && !done.made && !settings.clean_up) {
    text += "  Its clean-up of old items is not turned on (see --clean-up).";
  } else if (may_clean_up) {
    text += "  This DynamoDB has no clean-up of old items.";
  }
  print(text + "\n");
  return kDone;
}

}  // namespace command
