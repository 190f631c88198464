#include "tests/world/network.hpp"

#include <cstdio>
#include <ctime>
#include <memory>
#include <utility>

namespace world {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

struct Network::Fate {
  std::size_t front_end = 0;
  bool unreachable = false, at_once = false;
  bool lost = false, answer_lost = false, doubled = false;
  bool broken_before = false, broken_after = false, truncated = false;
  // Which of kRefusals the front end answers with, or -1; and whether the
  // request is carried out all the same.
  int refusal = -1;
  bool carried_out = false;
  nanoseconds there{}, back{}, again{};
  nanoseconds retry_after{};  // The answer asks the client to wait so long.
  std::uint64_t id = 0;       // As DynamoDB's request ID.
};

namespace {

constexpr nanoseconds kOldestRequest = minutes(15);

struct Refusal {
  int status;
  const char* body;
};

// Only with 500 and 503 may a request have been carried out.
constexpr Refusal kRefusals[] = {
    {500, R"({"__type":"com.amazon.coral.service#InternalServerError",)"
          R"("message":"Internal server error"})"},
    {503, R"({"__type":"com.amazon.coral.availability#)"
          R"(ServiceUnavailableException"})"},
    {400, R"({"__type":"com.amazonaws.dynamodb.v20120810#)"
          R"(ProvisionedThroughputExceededException","message":"The level of )"
          R"(configured provisioned throughput for the table was exceeded."})"},
    {400, R"({"__type":"com.amazon.coral.availability#ThrottlingException",)"
          R"("message":"Rate exceeded"})"},
    {400, R"({"__type":"com.amazonaws.dynamodb.v20120810#)"
          R"(TransactionConflictException","message":"Transaction is ongoing )"
          R"(for the item"})"},
    {400,
     R"({"__type":"com.amazon.coral.service#ExpiredTokenException",)"
     R"("message":"The security token included in the request is expired: @"})"},
};
constexpr int kThrottled = 2, kConflict = 4, kRejected = 5;

constexpr Refusal kTooOld = {
    400,
    R"({"__type":"com.amazon.coral.service#InvalidSignatureException",)"
    R"("message":"Signature expired: it is too far from the server's time: @"})"};

// "Credential should be scoped to a valid date": that of the request.
constexpr Refusal kWrongDay = {
    400, R"({"__type":"com.amazon.coral.service#InvalidSignatureException",)"
         R"("message":"Credential should be scoped to a valid date"})"};

// A server may repeat what it was sent.
std::string body_of(const Refusal& refusal, const Request& request) {
  std::string body = refusal.body;
  const std::size_t at = body.find('@');
  if (at != body.npos) {
    body.replace(at, 1, request.signature + ' ' + request.token);
  }
  return body;
}

// "Fri, 15 Jan 2027 08:00:00 GMT"
std::string http_date(seconds time) {
  constexpr const char* kDays[] = {"Sun", "Mon", "Tue", "Wed",
                                   "Thu", "Fri", "Sat"};
  constexpr const char* kMonths[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                     "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  const std::time_t t = time.count();
  std::tm utc{};
  gmtime_r(&t, &utc);
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %d %02d:%02d:%02d GMT",
                kDays[utc.tm_wday], utc.tm_mday, kMonths[utc.tm_mon],
                1900 + utc.tm_year, utc.tm_hour, utc.tm_min, utc.tm_sec);
  return text;
}

// Reads "20270115T080000Z"; nothing if the text is something else.
std::optional<seconds> read_amz_date(const std::string& text) {
  std::tm utc{};
  if (strptime(text.c_str(), "%Y%m%dT%H%M%SZ", &utc) == nullptr) return {};
  return seconds(timegm(&utc));
}

nanoseconds absolute(nanoseconds time) {
  return time < time.zero() ? -time : time;
}

Network* the_network = nullptr;

}  // namespace

Network::Network(std::uint64_t seed, Service& service, FrontEnds front_ends)
    : seed_(seed), service_(service), front_ends_(std::move(front_ends)) {
  the_network = this;
}

Network& Network::the() { return *the_network; }

Network::Fate Network::draw(Random& random) {
  const Weather& w = weather_;
  Fate fate;
  const auto happens = [&](double probability) {
    const bool so = random.chance(probability);
    if (so) ++faults_;
    return so;
  };
  const auto late = [&](double probability) {
    const bool so = happens(probability);
    const nanoseconds time = random.spread(milliseconds(1), w.longest_delay);
    return so ? time : nanoseconds(0);
  };
  fate.front_end = random.below(front_ends_.ahead.size());
  fate.id = random.next();
  fate.unreachable = happens(w.unreachable);
  fate.at_once = random.chance(0.5);
  fate.lost = happens(w.lost);
  fate.answer_lost = happens(w.answer_lost);
  const bool broken = happens(w.broken);
  fate.broken_before = broken && random.chance(0.5);
  fate.broken_after = broken && !fate.broken_before;
  fate.truncated = happens(w.truncated);
  fate.there = late(w.late);
  fate.back = late(w.answer_late);
  fate.again = late(w.doubled);
  fate.doubled = fate.again != nanoseconds(0);
  fate.carried_out = random.chance(0.5);
  if (random.chance(0.2)) {
    fate.retry_after = random.spread(milliseconds(1), std::chrono::hours(1));
  }
  if (happens(w.failed)) fate.refusal = random.chance(0.5) ? 0 : 1;
  if (happens(w.throttled)) fate.refusal = kThrottled + random.chance(0.5);
  // A client that meets contention is not asked to wait.
  if (happens(w.conflict)) {
    fate.refusal = kConflict;
    fate.retry_after = nanoseconds::zero();
  }
  if (happens(w.rejected_keys)) fate.refusal = kRejected;
  return fate;
}

bool Network::send(Request request, nanoseconds connect_timeout,
                   const Heard& heard) {
  const Outside outside;
  World& world = World::the();
  Process& process = *request.process;
  request.sent = process.host->boot(world.now());
  request.sent_at = world.now();
  request.after_slow_answer =
      process.answered - process.answered_sent > seconds(1);
  const auto number = static_cast<std::uint64_t>(process.number);
  Random random(seed_ ^ number, 'n', ++sent_[process.number]);
  Fate fate = draw(random);
  const bool cut_off = process.host->cut_off_until > world.now();
  if (fate.unreachable || cut_off) {
    deliver(request, fate.at_once ? nanoseconds(0) : connect_timeout,
            {Received::Kind::unreachable, 0, {}, {}}, heard);
    return false;
  }
  const auto leg = [&] {
    const nanoseconds usual = process.host->latency;
    const int slow = random.below(64) == 0 ? 8 : 1;
    return random.between(usual / 2, usual * 3 / 2) * slow;
  };
  fate.there += leg();
  if (request.operation == "Scan") fate.there += front_ends_.page_takes;
  fate.back += leg();
  if (fate.lost) return true;
  const auto sent = std::make_shared<const Request>(std::move(request));
  world.at(world.now() + fate.there,
           [this, sent, fate, heard] { arrive(*sent, fate, heard); });
  if (fate.doubled) {
    Fate second = fate;
    second.refusal = -1;
    second.answer_lost = true;  // The first copy is answered.
    world.at(world.now() + fate.there + fate.again,
             [this, sent, second, heard] { arrive(*sent, second, heard); });
  }
  return true;
}

void Network::arrive(const Request& request, const Fate& fate,
                     const Heard& heard) {
  if (fate.broken_before) {
    return deliver(request, fate.back, {Received::Kind::broken, 0, {}, {}},
                   heard);
  }
  const std::optional<Received> refused = refusal(request, fate);
  // Not a bad signature, which is refused before anything else.
  const bool failed = refused && refused->status >= 500;
  if (failed && fate.carried_out) {
    carry_out(request, fate, [](const Received&) {});
  }
  if (refused) return deliver(request, fate.back, *refused, heard);
  carry_out(request, fate, heard);
}

void Network::carry_out(const Request& request, const Fate& fate,
                        const Heard& heard) {
  service_.set_time(std::chrono::floor<seconds>(World::the().now()));
  const Reply reply = service_.call(request.operation, request.body);
  if (World::the().tells()) {
    World::the().tell("  DynamoDB: " + request.operation + " of " +
                      request.process->name + " " + request.body + " -> " +
                      std::to_string(reply.status) + " " + reply.body);
  }
  const bool answers = !fate.answer_lost && !fate.broken_after &&
                       !fate.truncated && fate.refusal < 0;
  const Time arrives = World::the().now() + fate.back;
  if (watch_) watch_({request, reply, answers ? arrives : kNever});
  if (fate.answer_lost) return;
  Received received = say(reply.status, reply.body, fate);
  if (fate.broken_after) received.kind = Received::Kind::broken;
  if (fate.truncated) received.kind = Received::Kind::truncated;
  deliver(request, fate.back, std::move(received), heard);
}

std::optional<Received> Network::refusal(const Request& request,
                                         const Fate& fate) {
  const auto refused = [&](const Refusal& why) {
    if (World::the().tells()) {
      World::the().tell("  DynamoDB refuses " + request.operation + " of " +
                        request.process->name + ": " + why.body);
    }
    Received received = say(why.status, body_of(why, request), fate);
    if (fate.retry_after > nanoseconds::zero()) {
      const auto ms = std::chrono::ceil<milliseconds>(fate.retry_after);
      received.headers +=
          "x-amz-retry-after: " + std::to_string(ms.count()) + "\r\n";
    }
    return received;
  };
  const auto signed_at = read_amz_date(request.amz_date);
  if (signed_at && absolute(clock_of(fate) - *signed_at) > kOldestRequest) {
    return refused(kTooOld);
  }
  const std::string day = '/' + request.amz_date.substr(0, 8) + '/';
  if (signed_at && request.signature.find(day) == std::string::npos) {
    return refused(kWrongDay);
  }
  if (fate.refusal < 0) return std::nullopt;
  return refused(kRefusals[fate.refusal]);
}

seconds Network::clock_of(const Fate& fate) const {
  return std::chrono::floor<seconds>(kEpoch + World::the().now() +
                                     front_ends_.ahead[fate.front_end]);
}

Received Network::say(int status, const std::string& body,
                      const Fate& fate) const {
  char id[32];
  std::snprintf(id, sizeof id, "%016llX",
                static_cast<unsigned long long>(fate.id));
  Received received;
  received.status = status;
  received.body = body;
  received.headers = "x-amzn-RequestId: " + std::string(id) +
                     "\r\nContent-Type: application/x-amz-json-1.0\r\n";
  if (front_ends_.date) {
    received.headers += "Date: " + http_date(clock_of(fate)) + "\r\n";
  }
  return received;
}

void Network::deliver(const Request& request, nanoseconds time,
                      Received received, const Heard& heard) const {
  World& world = World::the();
  const Host* const host = request.process->host;
  world.at(world.now() + time,
           [&world, host, received = std::move(received), heard] {
             const bool arrives = host->cut_off_until <= world.now() ||
                                  received.kind == Received::Kind::unreachable;
             if (arrives) heard(received);
           });
}

std::optional<Network::Answer> Network::ask(const std::string& operation,
                                            const std::string& body,
                                            nanoseconds at_most) {
  World& world = World::the();
  const BootTime end = world.host().boot(world.now()) + at_most;
  const auto heard = std::make_shared<std::optional<Received>>();
  Request request;
  request.process = &world.process();
  request.operation = operation;
  request.body = body;
  send(std::move(request), at_most, [heard](Received received) {
    *heard = std::move(received);
    World::the().notify(heard.get());
  });
  while (!*heard && world.host().boot(world.now()) < end) {
    world.wait({heard.get()}, end);
  }
  if (!*heard || (*heard)->kind != Received::Kind::complete) return {};
  Answer answer;
  answer.reply = {(*heard)->status, (*heard)->body};
  const std::string& headers = (*heard)->headers;
  const std::size_t at = headers.find("Date: ");
  if (at != headers.npos) {
    answer.date = headers.substr(at + 6, headers.find('\r', at) - at - 6);
  }
  return answer;
}

}  // namespace world
