#include "examples/ddbmutex/watch.hpp"

#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#include "examples/ddbmutex/locks.hpp"
#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/terminal.hpp"
#include "examples/ddbmutex/told.hpp"

namespace command {
namespace {

using ddbmutex::LockInfo;
using Locks = std::vector<LockInfo>;

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts = {};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// Writes at once, not when a buffer is full.
void print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() ||
      std::fflush(stdout) != 0) {
    throw std::system_error(errno, std::generic_category(), "cannot write");
  }
}

// --- In a terminal -----------------------------------------------------------

// To the terminal's alternate screen, without a cursor, and back.
constexpr char kEnter[] = "\x1b[?1049h\x1b[?25l";
constexpr char kLeave[] = "\x1b[?25h\x1b[?1049l";

void write_all(const char* text, std::size_t size) {
  // If the terminal is gone, nobody misses it.
  [[maybe_unused]] const ssize_t written = write(STDOUT_FILENO, text, size);
}
void enter() { write_all(kEnter, sizeof kEnter - 1); }
void leave() { write_all(kLeave, sizeof kLeave - 1); }

// These run as signal handlers.
void leave_and_end(int number) {
  leave();
  signal(number, SIG_DFL);
  raise(number);
}
void leave_and_stop(int) {
  const int before = errno;
  leave();
  raise(SIGSTOP);
  enter();
  errno = before;
}

void handle(int number, void (*handler)(int)) {
  struct sigaction how = {};
  how.sa_handler = handler;
  how.sa_flags = SA_RESTART;
  sigaction(number, &how, nullptr);
}

// While one exists, the terminal shows nothing but what is drawn.
class Screen {
 public:
  Screen() {
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
      handle(number, leave_and_end);
    }
    handle(SIGTSTP, leave_and_stop);
    enter();
  }
  ~Screen() { leave(); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  void draw(const std::string& heading, const Locks& locks,
            Layout layout) const;
};

void Screen::draw(const std::string& heading, const Locks& locks,
                  Layout layout) const {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  const std::size_t height = known && size.ws_row > 0 ? size.ws_row : 24;
  const std::size_t width = known && size.ws_col > 0 ? size.ws_col : 80;
  std::vector<std::string> lines = rows_of(locks, width, layout);
  lines.insert(lines.begin(), cut(heading, width));
  if (lines.size() > height) {
    const std::size_t hidden = lines.size() - (height - 1);
    lines.resize(height - 1);
    lines.push_back("... " + std::to_string(hidden) + " more");
  }
  std::string text = "\x1b[H";
  for (const std::string& line : lines) {
    text += (&line == &lines.front() ? "" : "\r\n") + line + "\x1b[K";
  }
  print(text + "\x1b[J");
}

// --- Elsewhere ---------------------------------------------------------------

// Prints what differs from what was seen before.
class Changes {
 public:
  explicit Changes(const Settings& settings)
      : json_(settings.json), layout_(settings.layout) {}

  void tell(const Locks& locks);

 private:
  // What is compared to find a change.
  struct Seen {
    State state;
    std::string need;
    std::string uuid;
  };
  using Key = std::pair<std::string, std::string>;

  std::string line_of(const LockInfo& info) const;

  const bool json_;
  const Layout layout_;
  std::map<Key, Seen> before_;
};

void Changes::tell(const Locks& locks) {
  std::string text;
  std::map<Key, Seen> now;
  for (const LockInfo& info : locks) {
    const Key key = {info.name, info.sort_value};
    const Seen seen = {state_of(info), need_of(info, layout_), info.uuid};
    const auto before = before_.find(key);
    if (before == before_.end() || before->second.state != seen.state ||
        before->second.need != seen.need ||
        (seen.state != State::free && before->second.uuid != seen.uuid)) {
      text += line_of(info);
    }
    now.emplace(key, seen);
  }
  for (const auto& [key, seen] : before_) {
    if (now.count(key) != 0 || seen.state == State::free) continue;
    LockInfo gone;
    std::tie(gone.name, gone.sort_value) = key;
    text += line_of(gone);
  }
  before_ = std::move(now);
  if (!text.empty()) print(text);
}

std::string Changes::line_of(const LockInfo& info) const {
  const std::string now = utc_now();
  if (json_) {
    return json_of(info, "\"time\":\"" + now + "\"", layout_) + "\n";
  }
  return now + " " + label_of(info) + " " + sentence_of(info, layout_) + "\n";
}

// --- Who reads ---------------------------------------------------------------

// Waits for so long, or until nobody can read what is written any more.
bool has_reader_for(std::chrono::milliseconds time) {
  pollfd output = {STDOUT_FILENO, 0, 0};
  return poll(&output, 1, static_cast<int>(time.count())) <= 0;
}

// Ends the program as a write to the closed pipe would.  If SIGPIPE is ignored,
// it ends without a word: whoever closed the pipe knows.
[[noreturn]] void end_as_by_a_pipe() {
  raise(SIGPIPE);
  std::exit(kFailed);
}

// --- Looking -----------------------------------------------------------------

Locks look(ddbmutex::Table& table, const Settings& settings) {
  if (settings.name.empty()) return all_locks(table);
  std::error_code ec;
  const LockInfo info = table.inspect(settings.name, ec);
  // An item that is not a lock may become one, or go away.
  if (ec && ec != ddbmutex::Errc::bad_record) {
    throw ddbmutex::Error(ec, table.last_error());
  }
  return {info};
}

// Nothing after a transient error: `why` then says which.
std::optional<Locks> look_again(ddbmutex::Table& table,
                                const Settings& settings, std::string& why) {
  try {
    return look(table, settings);
  } catch (const ddbmutex::Error& error) {
    if (!is_transient(error.code())) throw;
    why = error.what();
    return {};
  }
}

}  // namespace

void watch(const Settings& settings) {
  ddbmutex::Table table(table_of(settings));
  // An error of the first look is reported as by the other subcommands.
  Locks locks = look(table, settings);
  std::optional<Screen> screen;
  if (!settings.json && can_redraw(STDOUT_FILENO)) screen.emplace();
  Changes changes(settings);
  std::string why;
  for (;;) {
    if (screen) {
      const std::string state =
          why.empty() ? "every " + in_words(settings.interval) : why;
      screen->draw(utc_now() + "  table " + printable(settings.table) + ", " +
                       printable(state),
                   locks, settings.layout);
    } else if (why.empty()) {
      changes.tell(locks);
    } else {
      complain(why);
    }
    if (!has_reader_for(settings.interval)) end_as_by_a_pipe();
    why.clear();
    if (auto seen = look_again(table, settings, why)) locks = std::move(*seen);
  }
}

}  // namespace command
