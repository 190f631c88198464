#include "examples/ddbmutex/wait_report.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "examples/ddbmutex/report.hpp"
#include "examples/ddbmutex/terminal.hpp"
#include "examples/ddbmutex/told.hpp"

namespace command {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The time until the first message, and from one message to the next.
constexpr seconds kFirst{1};
constexpr seconds kOnTerminal{2};
constexpr seconds kElsewhere{60};

milliseconds whole(Time time) {
  return std::chrono::duration_cast<milliseconds>(time);
}

std::size_t columns() {
  winsize size = {};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0;
  return known && size.ws_col > 0 ? size.ws_col : 80;
}

std::string cannot_be_seen(const std::exception& error) {
  return std::string("who holds it cannot be seen: ") + error.what();
}

void write_now(const std::string& text) {
  // If the terminal is gone, nobody misses it.
  [[maybe_unused]] const ssize_t written =
      write(STDERR_FILENO, text.data(), text.size());
}

}  // namespace

WaitReport::WaitReport(std::shared_ptr<ddbmutex::Table> table,
                       const Settings& settings)
    : table_(std::move(table)), settings_(settings) {}

WaitReport::~WaitReport() {
  clear();
  if (found_.valid()) table_->close(milliseconds(0));
}

void WaitReport::begin(const std::string& owner) {
  owner_ = owner;
  begun_ = now();
  const bool waits = settings_.wait != milliseconds(0);
  if (waits && !settings_.quiet) next_at_ = begun_ + kFirst;
}

int WaitReport::timeout_ms() const {
  if (found_.valid() || next_at_ == Time::max()) return -1;
  const auto left = std::chrono::ceil<milliseconds>(next_at_ - now());
  return static_cast<int>(std::max(left, milliseconds(0)).count());
}

void WaitReport::proceed() {
  if (found_.valid()) {
    if (found_.wait_for(seconds(0)) != std::future_status::ready) return;
    bell_.hush();
    say(found_.get());
  } else if (now() >= next_at_) {
    begin_look();
  }
}

void WaitReport::begin_look() try {
  found_ = std::async(std::launch::async, [this] {
    std::string text = look();
    bell_.ring();
    return text;
  });
} catch (const std::exception& error) {  // No thread can be started now.
  say(cannot_be_seen(error));
}

void WaitReport::clear() {
  if (std::exchange(has_line_, false)) write_now("\r\x1b[K");
}

// A job in the background would write over what its shell shows, and messages
// of --verbose would end up in our line.
bool WaitReport::is_on_terminal() const {
  return !settings_.verbose && can_redraw(STDERR_FILENO) &&
         tcgetpgrp(STDERR_FILENO) == getpgrp();
}

std::string WaitReport::look() const try {
  const auto info = table_->inspect(settings_.name);
  const bool is_ours = settings_.owner.empty() && info.owner == owner_;
  return is_ours ? "this program has asked for it and awaits the answer"
                 : holder_in_words(info);
} catch (const std::exception& error) {
  return cannot_be_seen(error);
}

void WaitReport::say(const std::string& text) {
  next_at_ = now() + (is_on_terminal() ? kOnTerminal : kElsewhere);
  const std::string line = "waiting for the lock `" + settings_.name +
                           "` for " + in_words(whole(now() - begun_)) + ": " +
                           text;
  if (!is_on_terminal()) {
    clear();
    return complain(line);
  }
  // A terminal may break a line that fills it to the last column.
  write_now("\r" + cut("ddbmutex: " + printable(line), columns() - 1) +
            "\x1b[K");
  has_line_ = true;
}

}  // namespace command
