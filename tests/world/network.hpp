// What lies between the hosts and the simulated DynamoDB: a network that
// delays, loses, doubles and cuts messages, and front ends that refuse some.
#ifndef DDBMUTEX_TESTS_WORLD_NETWORK_HPP
#define DDBMUTEX_TESTS_WORLD_NETWORK_HPP

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/world/dynamodb/service.hpp"
#include "tests/world/random.hpp"
#include "tests/world/world.hpp"

namespace world {

// How likely each of these is for a request.
struct Weather {
  double unreachable = 0;  // Nothing leaves the host.
  double lost = 0;         // It never arrives, and nobody says so.
  double answer_lost = 0;  // It is carried out, and nobody hears of it.
  double broken = 0;       // The connection dies: before or after.
  double truncated = 0;    // The connection dies amid the answer.
  double late = 0;         // It arrives later, by up to `longest_delay`.
  double answer_late = 0;  // The answer arrives so much later.
  double doubled = 0;      // It arrives once more, as much later.
  double failed = 0;       // 500 or 503, whether or not it is carried out.
  double throttled = 0;
  double conflict = 0;       // TransactionConflictException.
  double rejected_keys = 0;  // The keys have expired, or are unknown.
  nanoseconds longest_delay = std::chrono::seconds(1);
};

// Each kind of weather, with its name.
struct WeatherKind {
  const char* name;
  double Weather::*chance;
};
inline constexpr WeatherKind kWeatherKinds[] = {
    {"unreachable", &Weather::unreachable},
    {"lost", &Weather::lost},
    {"answer lost", &Weather::answer_lost},
    {"broken", &Weather::broken},
    {"truncated", &Weather::truncated},
    {"late", &Weather::late},
    {"answer late", &Weather::answer_late},
    {"doubled", &Weather::doubled},
    {"failed", &Weather::failed},
    {"throttled", &Weather::throttled},
    {"conflict", &Weather::conflict},
    {"rejected keys", &Weather::rejected_keys},
};

struct FrontEnds {
  // How far each one's clock is ahead of the service's.
  std::vector<nanoseconds> ahead{nanoseconds(0)};
  bool date = true;          // Answers have the header Date.
  nanoseconds page_takes{};  // How long each page of a table takes to be read.
};

// What arrives at a host.
struct Received {
  enum class Kind { complete, unreachable, broken, truncated };
  Kind kind = Kind::complete;
  int status = 0;
  std::string headers;  // Each line with its end.
  std::string body;
};

struct Request {
  Process* process = nullptr;
  std::string operation;  // "PutItem"
  std::string body;
  std::string amz_date;   // "20270115T080000Z"
  std::string signature;  // "AWS4-HMAC-SHA256 Credential=ID/20270115/..."
  std::string token;      // Of the session, if there is one.
  BootTime sent{};        // By the clock of its host,
  Time sent_at{};         // and in truth.
  // The answer before it took seconds: the network, or a stop of the process.
  bool after_slow_answer = false;
};

// A request as the service carried it out.
struct Applied {
  const Request& request;
  const Reply& reply;
  // When the whole reply arrives at the host; kNever: it does not.
  Time answered = kNever;
};

class Network {
 public:
  Network(std::uint64_t seed, Service& service, FrontEnds front_ends);
  static Network& the();

  Service& service() { return service_; }
  // From now on.
  void set_weather(const Weather& weather) { weather_ = weather; }

  // Calls `heard` when an answer, or an end without one, arrives at the host:
  // at most once, perhaps never.  Returns false if nothing has left the host.
  // Then `heard` is told `unreachable` at once or after `connect_timeout`.
  using Heard = std::function<void(Received)>;
  bool send(Request request, nanoseconds connect_timeout, const Heard& heard);
  // Sends a request for the thread itself, without the library.  The thread
  // waits for the answer, `at_most` so long by its boot clock.  Nothing if
  // there was no answer.
  struct Answer {
    Reply reply;
    std::string date;  // The header Date; may be empty.
  };
  std::optional<Answer> ask(const std::string& operation,
                            const std::string& body, nanoseconds at_most);

  // Called after each request that reached the tables.
  void on_applied(std::function<void(const Applied&)> watch) {
    watch_ = std::move(watch);
  }
  // How many messages the weather has done something to.
  std::uint64_t faults() const { return faults_; }

 private:
  // What becomes of a request, drawn when it is sent.
  struct Fate;
  Fate draw(Random& random);
  void arrive(const Request& request, const Fate& fate, const Heard& heard);
  void carry_out(const Request& request, const Fate& fate, const Heard& heard);
  std::optional<Received> refusal(const Request& request, const Fate& fate);
  Received say(int status, const std::string& body, const Fate& fate) const;
  void deliver(const Request& request, nanoseconds time, Received received,
               const Heard& heard) const;
  std::chrono::seconds clock_of(const Fate& fate) const;

  const std::uint64_t seed_;
  Service& service_;
  const FrontEnds front_ends_;
  Weather weather_;
  std::function<void(const Applied&)> watch_;
  std::map<int, std::uint64_t> sent_;  // By process.
  std::uint64_t faults_ = 0;
};

}  // namespace world

#endif  // DDBMUTEX_TESTS_WORLD_NETWORK_HPP
