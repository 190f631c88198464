// A process with mutexes of one Table that does what it is told on its stdin, a
// line a command, and answers each with one line on its stdout (both are one
// socket):
//
//   agent TABLE
//
// Endpoint, region and keys are the environment's; AGENT_LOG names a file for
// what the library logs, all of it, AGENT_PROFILE and AGENT_CA_FILE a profile
// and a CA file for the options.  ID is a word of the teller's.  Commands that
// may fail answer "error " and what the error says.
//
//   new ID NAME [OPTION=VALUE ...]              "done"
//   delete ID                                   "done"
//   lock ID, try ID, try_for ID MS              "true", "false", "error ..."
//   unlock ID                                   "done", once it has returned
//   release ID, renew ID                        "true", "error ..."
//   begin ID COMMAND ...                        "begun": in a thread of its own
//   join ID                                     what that has come to
//   owns ID                                     "true", "false"
//   remaining ID                                nanoseconds
//   events ID                                   callbacks: "danger expired"
//   losses ID                                   on_lost's alone: "expired"
//   why ID                                      the last error in words, or "-"
//   stats                                       all counters, "retries 1 ..."
//   fork SOCKET, daemon SOCKET                  the child's pid; the child goes
//                                               on as another agent at SOCKET
//   reap PID                                    how that child has ended
//   exit N, quick_exit N, _exit N               nothing
//
// OPTION: ttl, patience, request_timeout, safe_time, renew_after
// (milliseconds), auto_renew (0 or 1).
//
// At the end of its input it deletes what there is and returns from main().
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/forked_child.hpp"

namespace {

using ddbmutex::DdbMutex;
using std::chrono::milliseconds;

using Words = std::vector<std::string>;

// What the callbacks of one mutex have told.
class Events {
 public:
  void tell(const std::string& event) {
    const std::lock_guard<std::mutex> guard(mutex_);
    told_.push_back(event);
  }

  std::string all_but(const std::string& left_out) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::string text;
    for (const std::string& event : told_) {
      if (event != left_out) text += (text.empty() ? "" : " ") + event;
    }
    return text;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> told_;  // GUARDED_BY(mutex_)
};

// What a call in a thread of its own has come to.
class Result {
 public:
  void set(const std::string& text) {
    const std::lock_guard<std::mutex> guard(mutex_);
    text_ = text;
    changed_.notify_all();
  }
  std::string await() {
    std::unique_lock<std::mutex> guard(mutex_);
    changed_.wait(guard, [this] { return text_.has_value(); });
    return *text_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> text_;  // GUARDED_BY(mutex_)
};

struct Held {
  std::shared_ptr<Events> events = std::make_shared<Events>();
  std::unique_ptr<DdbMutex> mutex;
  std::shared_ptr<Result> begun;
};

std::string told(bool result, const std::error_code& ec) {
  if (ec) return "error " + ec.message();
  return result ? "true" : "false";
}

milliseconds ms(const std::string& text) {
  return milliseconds(std::stoll(text));
}

// "NAME=VALUE"
std::pair<std::string, std::string> assignment(const std::string& word) {
  const std::size_t at = word.find('=');
  return {word.substr(0, at), word.substr(at + 1)};
}

// --- Commands that another thread may carry out ------------------------------

std::string lock(DdbMutex& mutex, const Words&) {
  std::error_code ec;
  mutex.lock(ec);
  return told(true, ec);
}

std::string try_lock(DdbMutex& mutex, const Words&) {
  std::error_code ec;
  const bool ours = mutex.try_lock(ec);
  return told(ours, ec);
}

std::string try_lock_for(DdbMutex& mutex, const Words& words) {
  std::error_code ec;
  const bool ours = mutex.try_lock_for(ms(words.at(2)), ec);
  return told(ours, ec);
}

std::string unlock(DdbMutex& mutex, const Words&) {
  mutex.unlock();
  return "done";
}

std::string release(DdbMutex& mutex, const Words&) {
  std::error_code ec;
  mutex.release(ec);
  return told(true, ec);
}

std::string renew(DdbMutex& mutex, const Words&) {
  std::error_code ec;
  mutex.renew(ec);
  return told(true, ec);
}

std::string owns(DdbMutex& mutex, const Words&) {
  return mutex.owns_lock() ? "true" : "false";
}

std::string why(DdbMutex& mutex, const Words&) {
  const std::string error = mutex.last_error();
  return error.empty() ? "-" : error;
}

std::string remaining(DdbMutex& mutex, const Words&) {
  return std::to_string(mutex.remaining().count());
}

using MutexCommand = std::string (*)(DdbMutex&, const Words&);

MutexCommand mutex_command(const std::string& name) {
  static const std::map<std::string, MutexCommand> kCommands = {
      {"lock", lock},     {"try", try_lock},        {"try_for", try_lock_for},
      {"unlock", unlock}, {"release", release},     {"renew", renew},
      {"owns", owns},     {"remaining", remaining}, {"why", why}};
  const auto found = kCommands.find(name);
  return found == kCommands.end() ? nullptr : found->second;
}

// --- Options ---

bool set_time(ddbmutex::Options& options, const std::string& name,
              const std::string& value) {
  using Time = std::optional<milliseconds> ddbmutex::Options::*;
  static const std::map<std::string, Time> kTimes = {
      {"request_timeout", &ddbmutex::Options::request_timeout},
      {"safe_time", &ddbmutex::Options::safe_time},
      {"renew_after", &ddbmutex::Options::renew_after}};
  const auto found = kTimes.find(name);
  if (found != kTimes.end()) options.*found->second = ms(value);
  if (name == "ttl") options.ttl = ms(value);
  if (name == "patience") options.patience = ms(value);
  return name == "ttl" || name == "patience" || found != kTimes.end();
}

// False if there is none of that name.
bool set(ddbmutex::Options& options, const std::string& name,
         const std::string& value) {
  if (name == "auto_renew") options.auto_renew = value == "1";
  return name == "auto_renew" || set_time(options, name, value);
}

// --- The agent ---------------------------------------------------------------

std::function<void(ddbmutex::LogLevel, const std::string&)> to(
    const std::string& file) {
  return [file](ddbmutex::LogLevel level, const std::string& text) {
    const std::string line = std::string(name_of(level)) + ": " + text + "\n";
    const int fd = open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT, 0600);
    const ssize_t written = write(fd, line.data(), line.size());
    static_cast<void>(written);
    close(fd);
  };
}

// The child's stdin and stdout from now on.
void call_back(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    _exit(120);
  }
  dup2(fd, STDIN_FILENO);
  dup2(fd, STDOUT_FILENO);
  close(fd);
}

// As daemons do that know nothing of the libraries they use.
void close_all_but_the_standard_ones() {
  for (int fd = 3; fd < static_cast<int>(sysconf(_SC_OPEN_MAX)); ++fd) {
    close(fd);
    if (fd > 4096) break;
  }
}

class Agent {
 public:
  explicit Agent(const std::string& table) {
    ddbmutex::TableOptions options;
    options.name = table;
    if (const char* log = std::getenv("AGENT_LOG")) options.logger = to(log);
    if (const char* profile = std::getenv("AGENT_PROFILE")) {
      options.profile = profile;
    }
    if (const char* file = std::getenv("AGENT_CA_FILE")) options.ca_file = file;
    table_ = std::make_shared<ddbmutex::Table>(options);
  }

  void serve() {
    while (const std::optional<std::string> line = next_line()) {
      const std::string answer = obey(words_of(*line)) + "\n";
      if (write(STDOUT_FILENO, answer.data(), answer.size()) < 0) return;
    }
  }

 private:
  static Words words_of(const std::string& line) {
    std::istringstream stream(line);
    Words words;
    for (std::string word; stream >> word;) words.push_back(word);
    return words;
  }

  // Bytes that were read ahead are not seen again by a forked child, since
  // whoever forks has been given no other command.
  std::optional<std::string> next_line() {
    std::size_t end;
    while ((end = received_.find('\n')) == std::string::npos) {
      std::array<char, 512> bytes;
      const ssize_t size = read(STDIN_FILENO, bytes.data(), bytes.size());
      if (size <= 0) return std::nullopt;
      received_.append(bytes.data(), static_cast<std::size_t>(size));
    }
    std::string line = received_.substr(0, end);
    received_.erase(0, end + 1);
    return line;
  }

  std::string obey(const Words& words) {
    if (const MutexCommand command = mutex_command(words.at(0))) {
      return command(*held_.at(words.at(1)).mutex, words);
    }
    using Command = std::string (Agent::*)(const Words&);
    static const std::map<std::string, Command> kCommands = {
        {"new", &Agent::make},          {"delete", &Agent::destroy},
        {"begin", &Agent::begin},       {"join", &Agent::join},
        {"events", &Agent::events},     {"losses", &Agent::losses},
        {"stats", &Agent::stats},       {"fork", &Agent::fork_child},
        {"daemon", &Agent::fork_child}, {"reap", &Agent::reap},
        {"exit", &Agent::end},          {"quick_exit", &Agent::end},
        {"_exit", &Agent::end}};
    const auto found = kCommands.find(words.at(0));
    if (found == kCommands.end()) return "unknown command";
    return (this->*found->second)(words);
  }

  std::string make(const Words& words) {
    Held& held = held_[words.at(1)];
    ddbmutex::Options options;
    options.table = table_;
    options.request_timeout = std::chrono::seconds(20);  // However slow it is.
    for (std::size_t i = 3; i < words.size(); ++i) {
      const auto [name, value] = assignment(words[i]);
      if (!set(options, name, value)) return "unknown option " + name;
    }
    options.on_danger = [events = held.events] { events->tell("danger"); };
    options.on_lost = [events = held.events](ddbmutex::Loss loss) {
      events->tell(name_of(loss));
    };
    held.mutex = std::make_unique<DdbMutex>(words.at(2), options);
    return "done";
  }

  std::string destroy(const Words& words) {
    held_.erase(words.at(1));
    return "done";
  }

  // Detached, since a forked child has not the thread but its object.
  std::string begin(const Words& words) {
    Held& held = held_.at(words.at(1));
    Words rest = {words.at(2), words.at(1)};
    rest.insert(rest.end(), words.begin() + 3, words.end());
    const MutexCommand command = mutex_command(rest.at(0));
    if (command == nullptr) return "unknown command";
    held.begun = std::make_shared<Result>();
    std::thread([command, rest, &mutex = *held.mutex, result = held.begun] {
      result->set(command(mutex, rest));
    }).detach();
    return "begun";
  }

  std::string join(const Words& words) {
    return held_.at(words.at(1)).begun->await();
  }

  std::string events(const Words& words) {
    return held_.at(words.at(1)).events->all_but("");
  }

  std::string losses(const Words& words) {
    return held_.at(words.at(1)).events->all_but("danger");
  }

  std::string stats(const Words&) {
    const ddbmutex::Stats stats = table_->stats();
    std::ostringstream text;
    text << "requests " << stats.requests() << " throttled " << stats.throttled
         << " failed " << stats.failed << " retries " << stats.retries
         << " held " << stats.held;
    return text.str();
  }

  std::string fork_child(const Words& words) {
    const pid_t child = fork();
    if (child != 0) return std::to_string(child);
    tests::begin_as_child();
    call_back(words.at(1));
    if (words.at(0) == "daemon") {
      setsid();
      close_all_but_the_standard_ones();
    }
    return "here";
  }

  std::string reap(const Words& words) {
    int status = 0;
    if (waitpid(std::stoi(words.at(1)), &status, 0) < 0) return "not mine";
    return WIFEXITED(status) ? std::to_string(WEXITSTATUS(status))
                             : "signal " + std::to_string(WTERMSIG(status));
  }

  [[noreturn]] std::string end(const Words& words) {
    const int status = std::stoi(words.at(1));
    if (words.at(0) == "exit") std::exit(status);
    if (words.at(0) == "quick_exit") std::quick_exit(status);
    _exit(status);
  }

  std::shared_ptr<ddbmutex::Table> table_;
  std::map<std::string, Held> held_;
  std::string received_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  Agent(argv[1]).serve();
  return 0;
}
