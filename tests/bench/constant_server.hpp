// An HTTP server on 127.0.0.1 that answers every DynamoDB write at once with
// the same bytes, as DynamoDB answers one that succeeded, and counts what it
// was sent.  A process of its own, with one thread: what a client costs is seen
// best beside a server that costs next to nothing.
#ifndef DDBMUTEX_TESTS_BENCH_CONSTANT_SERVER_HPP
#define DDBMUTEX_TESTS_BENCH_CONSTANT_SERVER_HPP

#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/listening.hpp"

namespace bench {

[[noreturn]] inline void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

inline std::int64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
}

constexpr std::array<std::string_view, 4> kActionNames = {
    "GetItem", "PutItem", "UpdateItem", "DeleteItem"};

// Shared by the server and the process that started it.
struct Tally {
  std::atomic<std::uint64_t> requests{0};
  std::atomic<std::uint64_t> bytes{0};  // Of whole requests, heads and all.
  std::atomic<std::uint64_t> connections{0};
  std::atomic<std::uint64_t> malformed{0};  // Not a signed call of DynamoDB's.

  // While set, the last request of each action is kept.  The starter reads it
  // when no client is busy.
  std::atomic<bool> recording{false};
  struct Record {
    std::size_t size = 0;
    char bytes[16384];
  };
  std::array<Record, kActionNames.size()> records;
};

// One client's connection: bytes in, answers out.
class ConstantConnection {
 public:
  ConstantConnection(int fd, Tally& tally) : fd_(fd), tally_(tally) {}
  ~ConstantConnection() { close(fd_); }
  ConstantConnection(const ConstantConnection&) = delete;
  ConstantConnection& operator=(const ConstantConnection&) = delete;

  int fd() const { return fd_; }

  // Reads what there is and answers what is whole.  False if the connection is
  // of no more use.
  bool serve(std::string_view answer) {
    const ssize_t got = recv(fd_, in_ + size_, sizeof in_ - 1 - size_, 0);
    if (got <= 0) return false;
    size_ += static_cast<std::size_t>(got);
    in_[size_] = '\0';
    while (const std::size_t whole = request_size()) {
      if (whole > size_) return whole < sizeof in_;
      count({in_, whole});
      if (!send_all(answer)) return false;
      size_ -= whole;
      memmove(in_, in_ + whole, size_ + 1);
    }
    return size_ + 1 < sizeof in_;
  }

 private:
  bool send_all(std::string_view bytes) {
    return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
           static_cast<ssize_t>(bytes.size());
  }

  // 0 while the head is not whole.
  std::size_t request_size() const {
    const char* end = strstr(in_, "\r\n\r\n");
    if (end == nullptr) return 0;
    const char* length = strcasestr(in_, "\r\nContent-Length:");
    const std::size_t head = static_cast<std::size_t>(end - in_) + 4;
    if (length == nullptr || length > end) return head;
    return head + strtoul(length + strlen("\r\nContent-Length:"), nullptr, 10);
  }

  // What follows a header's name, given with what stands around it, any case;
  // nothing if it is not there.  The request is in `in_`, which ends in a NUL.
  static std::string_view behind(const char* name, std::string_view request) {
    const char* const at = strcasestr(request.data(), name);
    if (at == nullptr) return {};
    const std::size_t from =
        static_cast<std::size_t>(at - request.data()) + strlen(name);
    std::string_view value = request.substr(std::min(from, request.size()));
    if (value.substr(0, 1) == " ") value.remove_prefix(1);
    return value;
  }

  void count(std::string_view request) {
    constexpr std::string_view kService = "DynamoDB_20120810.";
    constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256 ";
    const std::string_view target = behind("\r\nX-Amz-Target:", request);
    const std::string_view keys = behind("\r\nAuthorization:", request);
    const bool is_call = request.substr(0, 7) == "POST / " &&
                         target.substr(0, kService.size()) == kService &&
                         keys.substr(0, kAlgorithm.size()) == kAlgorithm;
    if (!is_call) ++tally_.malformed;
    if (is_call && tally_.recording) {
      record(request, target.substr(kService.size()));
    }
    tally_.bytes += request.size();
    ++tally_.requests;  // Last: whoever sees it may look at the others.
  }

  void record(std::string_view request, std::string_view action) {
    for (std::size_t i = 0; i < kActionNames.size(); ++i) {
      Tally::Record& record = tally_.records[i];
      if (action.substr(0, kActionNames[i].size()) != kActionNames[i] ||
          request.size() > sizeof record.bytes) {
        continue;
      }
      record.size = request.size();
      request.copy(record.bytes, request.size());
    }
  }

  const int fd_;
  Tally& tally_;
  std::size_t size_ = 0;
  char in_[16384];
};

class ConstantServer {
 public:
  ConstantServer() {
    void* shared = mmap(nullptr, sizeof(Tally), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) give_up("mmap");
    tally_ = new (shared) Tally;
    const int listener = tests::socket_on_loopback(port_);
    if (listener < 0 || listen(listener, 256) != 0) give_up("a listener");
    const pid_t starter = getpid();
    pid_ = fork();
    if (pid_ == -1) give_up("fork");
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (getppid() != starter) _exit(1);
      serve(listener);
    }
    close(listener);
  }

  ~ConstantServer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
    munmap(tally_, sizeof(Tally));
  }

  ConstantServer(const ConstantServer&) = delete;
  ConstantServer& operator=(const ConstantServer&) = delete;

  std::string url() const {
    return "http://127.0.0.1:" + std::to_string(port_) + "/";
  }
  Tally& tally() { return *tally_; }

 private:
  // The 2745614147 is the CRC-32 of "{}".
  static std::string answer_of(time_t now) {
    char date[64];
    tm parts;
    strftime(date, sizeof date, "%a, %d %b %Y %H:%M:%S GMT",
             gmtime_r(&now, &parts));
    return std::string("HTTP/1.1 200 OK\r\nServer: Server\r\nDate: ") + date +
           "\r\nContent-Type: application/x-amz-json-1.0\r\n"
           "Content-Length: 2\r\nConnection: keep-alive\r\n"
           "x-amzn-RequestId: "
           "4KBNVRGD25RG1KEO9UT4V3FQDJVV4KQNSO5AEMVJF66Q9ASUAAJG\r\n"
           "x-amz-crc32: 2745614147\r\n\r\n{}";
  }

  [[noreturn]] void serve(int listener) {
    std::vector<std::unique_ptr<ConstantConnection>> connections;
    std::vector<pollfd> polled = {{listener, POLLIN, 0}};
    time_t second = 0;
    std::string answer;
    // A calendar that is set meanwhile would be a fault of DynamoDB's clock.
    const std::int64_t calendar =
        clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_BOOTTIME);
    for (;;) {
      if (poll(polled.data(), polled.size(), -1) < 0) give_up("poll");
      const time_t now = (calendar + clock_ns(CLOCK_BOOTTIME)) / 1'000'000'000;
      if (now != second) answer = answer_of(second = now);
      for (std::size_t i = polled.size(); --i > 0;) {
        if (polled[i].revents == 0 || connections[i - 1]->serve(answer)) {
          continue;
        }
        const auto at = static_cast<std::ptrdiff_t>(i);
        polled.erase(polled.begin() + at);
        connections.erase(connections.begin() + at - 1);
      }
      if (polled[0].revents == 0) continue;
      connections.push_back(accepted(listener));
      polled.push_back({connections.back()->fd(), POLLIN, 0});
    }
  }

  std::unique_ptr<ConstantConnection> accepted(int listener) {
    const int fd = accept(listener, nullptr, nullptr);
    if (fd == -1) give_up("accept");
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ++tally_->connections;
    return std::make_unique<ConstantConnection>(fd, *tally_);
  }

  int port_ = 0;
  Tally* tally_;
  pid_t pid_;
};

}  // namespace bench

#endif  // DDBMUTEX_TESTS_BENCH_CONSTANT_SERVER_HPP
