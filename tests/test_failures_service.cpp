// The failure table, where the service is out of reach, refuses, tells another
// time, or the row or the table is not what it was.  As test_failures_wire.cpp,
// which lists the rows.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/durable_engine.hpp"
#include "tests/support/failure_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::BootClock;
using ddbmutex::BootTime;
using ddbmutex::DdbMutex;
using ddbmutex::Errc;
using ddbmutex::Table;
using ddbmutex::TableOptions;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

const auto kEngines = boost::unit_test::data::make(engine_kinds());

int port_of(const std::string& url) {
  return std::stoi(url.substr(url.rfind(':') + 1));
}

// Has a port of 127.0.0.1, and says nothing.
class SilentPort {
 public:
  enum class At {
    connect,   // Connections are not even made.
    handshake  // They are, and nobody speaks.
  };

  SilentPort(int port, At at) {
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const auto* where = reinterpret_cast<const sockaddr*>(&address);
    const int listener = open();
    const int on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    BOOST_REQUIRE(bind(listener, where, sizeof address) == 0);
    BOOST_REQUIRE(listen(listener, at == At::connect ? 0 : 64) == 0);
    if (at == At::handshake) return;
    // As many as wait there at most: who comes after them hears nothing.
    for (int i = 0; i < 8; ++i) connect(open(), where, sizeof address);
  }
  ~SilentPort() {
    for (const int fd : sockets_) close(fd);
  }
  SilentPort(const SilentPort&) = delete;
  SilentPort& operator=(const SilentPort&) = delete;

 private:
  int open() {
    const int fd =
        socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    BOOST_REQUIRE(fd >= 0);
    sockets_.push_back(fd);
    return fd;
  }

  std::vector<int> sockets_;
};

// By a name that FakeNames has to know.
std::shared_ptr<Table> table_by_name(const Front& front) {
  TableOptions options = front.table_options();
  options.endpoint = "http://somewhere.test:" +
                     std::to_string(port_of(front.gateway.plain_url()));
  return std::make_shared<Table>(options);
}

// The one connection that a table has is another's, who waits for his answer:
// the next request needs a new one, and looks the name up.
class TakenConnection {
 public:
  TakenConnection(Front& front, const std::shared_ptr<Table>& table)
      : gateway_(front.gateway) {
    front.gateway.fault("PutItem", "drop");
    other_.emplace(table, 10min);
    other_->options.request_timeout = 1min;
    other_->make();
    waiter_.emplace([this] { other_->mutex->lock(); });
    BOOST_TEST(
        eventually([&] { return front.gateway.counts().faults("drop") == 1; }));
  }
  ~TakenConnection() {
    other_->mutex->cancel();
    // What is dropped is waited for no longer.
    gateway_.mode("refuse");
    gateway_.mode("open");
    BOOST_TEST(waiter_->thrown() == words(Errc::cancelled));
  }
  TakenConnection(const TakenConnection&) = delete;
  TakenConnection& operator=(const TakenConnection&) = delete;

 private:
  Gateway& gateway_;
  std::optional<Watched> other_;
  std::optional<Aside> waiter_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(failure_table_service)

// --- Out of reach ------------------------------------------------------------

namespace {

// From when on nobody answers the holder, until another has the lock.
void must_be_lost_in_time(Front& front, Watched& x) {
  const Stalls stalls;
  const BootTime end = x.ends_from();
  OtherHost rival(front, x.name);
  bool both = false;
  Aside other([&] {
    rival.mutex.lock();
    both = x.mutex->owns_lock();
  });
  BOOST_TEST(x.told.wait_for(2));
  BOOST_TEST(x.told.text() == "danger expired");
  BOOST_TEST((x.lost_at.load() >= end));
  BOOST_TEST((x.lost_at.load() < end + kSlack + stalls.total()));
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(other.thrown() == "none");
  BOOST_TEST(!both);
  const std::string row = rival.row();
  BOOST_TEST(
      returns_within(*x.options.request_timeout, [&] { x.mutex->unlock(); }));
  front.gateway.mode("open");
  x.mutex.reset();
  front.gateway.wait_until_quiet();
  BOOST_TEST(rival.row() == row);
  BOOST_TEST(x.told.text() == "danger expired");
  rival.mutex.unlock();
}

}  // namespace

BOOST_DATA_TEST_CASE(service_out_of_reach_is_danger_and_then_the_end,
                     boost::unit_test::data::make({"refuse", "hang"}), mode) {
  Front front;
  Watched x(front, 4s);
  x.options.request_timeout = kHasty;
  x.options.safe_time = 1900ms;
  x.lock();
  front.gateway.mode(mode);
  must_be_lost_in_time(front, x);
}

BOOST_AUTO_TEST_CASE(resolver_that_hangs_is_danger_and_then_the_end) {
  Front front;
  std::optional<Watched> x;
  std::optional<TakenConnection> taken;
  std::optional<FakeNames> names;
  // Not if a renewal came between: it has a connection of its own then.
  for (int attempt = 0; attempt < 5; ++attempt) {
    names.reset();
    taken.reset();
    x.reset();
    front.gateway.forget();
    names.emplace(std::vector<std::string>{"127.0.0.1"});
    x.emplace(with_clock(table_by_name(front)), 5s);
    x->options.request_timeout = kHasty;
    x->options.safe_time = 2400ms;
    x->lock();
    taken.emplace(front, x->table);
    names.reset();
    names.emplace(FakeNames::hanging);
    if (front.gateway.counts().requests("UpdateItem") == 0) break;
  }
  must_be_lost_in_time(front, *x);
  BOOST_TEST(front.gateway.counts().requests("UpdateItem") == 0);
}

BOOST_AUTO_TEST_CASE(service_that_is_back_within_the_lease_is_not_missed) {
  Front front;
  const auto failed = std::make_shared<Event>();
  TableOptions options = front.table_options();
  options.logger = [failed](ddbmutex::LogLevel level, const std::string&) {
    if (level == ddbmutex::LogLevel::debug) failed->set();
  };
  Watched x(std::make_shared<Table>(options), 1min);
  x.options.renew_after = 1s;
  x.lock();
  const BootTime first_end = x.ends_by();
  front.gateway.mode("refuse");
  BOOST_TEST(failed->wait());  // A renewal.
  front.gateway.mode("open");
  BOOST_TEST(eventually([&] { return x.ends_from() > first_end + 100ms; }));
  BOOST_TEST(x.released() == "none");
  BOOST_TEST(!has(x.told.text(), "expired"));
}

BOOST_AUTO_TEST_CASE(engine_that_restarts_behind_its_front_end_is_waited_for) {
  DurableEngine engine;
  Gateway gateway(engine.where().url);
  const auto table =
      std::make_shared<Table>(gateway.table_options(engine.where().table));
  // Nobody knows how long an engine takes to start.
  Watched x(table, 5min);
  x.lock();
  engine.kill();
  Watched other(table, 5min);
  other.options.patience = 5min;
  other.make();
  Aside waiter([&] { other.mutex->lock(); });
  // By resets, and by a load balancer's pages with 502.
  BOOST_TEST(eventually([&] { return gateway.counts().without_engine() > 3; }));
  BOOST_TEST(!waiter.done());
  engine.start();
  BOOST_TEST(waiter.thrown() == "none");
  BOOST_TEST(x.released() == "none");
  BOOST_TEST(other.released() == "none");
  BOOST_TEST(x.told.text() + other.told.text() == "");
}

// --- Unlocking while it hangs ------------------------------------------------

namespace {

enum class Stage { connect, handshake, answer, name };
std::ostream& operator<<(std::ostream& out, Stage stage) {
  constexpr const char* kNames[] = {"connect", "handshake", "answer", "name"};
  return out << kNames[static_cast<std::size_t>(stage)];
}

std::shared_ptr<Table> table_for(const Front& front, Stage stage) {
  return stage == Stage::name ? table_by_name(front) : front.table();
}

// From now on all of a table's requests hang there, until the end.
class Hanging {
 public:
  Hanging(Front& front, const std::shared_ptr<Table>& table, Stage stage)
      : gateway_(front.gateway) {
    if (stage == Stage::name) {
      taken_.emplace(front, table);
      names_.emplace(FakeNames::hanging);
      return;
    }
    gateway_.mode(stage == Stage::answer ? "hang" : "refuse");
    if (stage == Stage::answer) return;
    port_.emplace(port_of(gateway_.url()), stage == Stage::connect
                                               ? SilentPort::At::connect
                                               : SilentPort::At::handshake);
  }
  ~Hanging() {
    port_.reset();
    names_.reset();
    taken_.reset();
    gateway_.mode("open");
  }
  Hanging(const Hanging&) = delete;
  Hanging& operator=(const Hanging&) = delete;

 private:
  Gateway& gateway_;
  std::optional<SilentPort> port_;
  std::optional<TakenConnection> taken_;
  std::optional<FakeNames> names_;
};

}  // namespace

BOOST_DATA_TEST_CASE(unlock_returns_in_time_whatever_hangs,
                     boost::unit_test::data::make({Stage::connect,
                                                   Stage::handshake,
                                                   Stage::answer, Stage::name}),
                     stage) {
  const std::vector<std::string> here = {"127.0.0.1"};
  Front front;
  std::optional<FakeNames> names(here);
  Watched x(with_clock(table_for(front, stage)), 1min);
  x.options.request_timeout = 200ms;
  x.lock();
  names.reset();
  {
    const Hanging hanging(front, x.table, stage);
    BOOST_TEST(returns_within(200ms, [&] { x.mutex->unlock(); }));
    BOOST_TEST(!x.mutex->owns_lock());
    BOOST_TEST(x.mutex->last_error() != "");
    BOOST_TEST(!front.is_free(x.name));
  }
  names.emplace(here);
  // It goes on behind.
  BOOST_TEST(eventually([&] { return front.is_free(x.name); }));
  BOOST_TEST(x.told.text() == "");
}

// --- Another time ------------------------------------------------------------

namespace {

// The machine stood still, say: DynamoDB's clock is ahead of what was known.
// By seconds only, requests are still signed well; by hours, they are refused.
const auto kAhead = boost::unit_test::data::make({90, 3 * 3600});

}  // namespace

BOOST_DATA_TEST_CASE(any_answer_shows_that_the_machine_stood_still, kAhead,
                     ahead) {
  Front front;
  Watched x(with_clock(front.table()), 1min);
  x.lock();
  front.gateway.clock_offset(seconds(ahead));
  BOOST_TEST(x.mutex->owns_lock());  // Nobody could know.
  x.table->inspect("nobody's");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(eventually([&] { return has(x.told.text(), "expired"); }));
  BOOST_TEST(x.released() == words(Errc::lease_lost));
}

BOOST_AUTO_TEST_CASE(renewal_shows_that_the_machine_stood_still) {
  Front front;
  Watched x(front, 1min);
  x.options.on_danger = nullptr;
  x.options.renew_after = 1s;
  x.lock();
  front.gateway.clock_offset(3h);
  // By a renewal, not at the end of the lease.
  const BootTime end = x.ends_from();
  BOOST_TEST(x.told.wait_for(1));
  BOOST_TEST(x.told.text() == "expired");
  BOOST_TEST((x.lost_at.load() < end));
  BOOST_TEST(!x.mutex->owns_lock());
}

BOOST_DATA_TEST_CASE(
    clock_too_far_out_is_corrected_and_asked_again_once,
    boost::unit_test::data::make({-11 * 3600, -400, 400, 11 * 3600}) * kEngines,
    offset, kind) {
  Front front(kind);
  front.gateway.clock_offset(seconds(offset));
  Watched x(front, 1min);
  Watched other(front.table(), 1min, x.name);
  x.lock();
  const Gateway::Counts counts = front.gateway.counts();
  BOOST_TEST(counts.bad_signatures() == 0);
  BOOST_TEST(counts.early_signatures() == (offset > 0 ? 1 : 0));
  BOOST_TEST(counts.late_signatures() == (offset < 0 ? 1 : 0));
  BOOST_TEST(counts.good_signatures() >= 1);
  other.make();
  BOOST_TEST(!other.mutex->try_lock());
  BOOST_TEST(x.released() == "none");
}

BOOST_AUTO_TEST_CASE(clock_too_far_out_without_a_date_is_an_error_at_once) {
  Front front;
  front.gateway.clock_offset(3h);
  front.gateway.dates(false);
  Watched x(front, 1min);
  x.make();
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(Errc::bad_keys));
  BOOST_TEST(front.gateway.counts().early_signatures() == 1);
  BOOST_TEST(!x.mutex->owns_lock());
}

// Stamps that no clock reaches: taken over by observation alone.
BOOST_AUTO_TEST_CASE(lock_without_dates_is_a_lock) {
  Front front;
  front.gateway.dates(false);
  Watched x(front, 4s);
  Watched other(front.table(), 1min, x.name);
  x.lock();
  other.make();
  BOOST_TEST(!other.mutex->try_lock());
  const BootTime first_end = x.ends_by();
  BOOST_TEST(eventually([&] { return x.ends_from() > first_end + 100ms; }));
  // All answers to x are lost, until its lease ends.
  front.gateway.add(always("UpdateItem", "drop"));
  Aside waiter([&] { other.mutex->lock(); });
  BOOST_TEST(waiter.thrown() == "none");
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(eventually([&] { return has(x.told.text(), "expired"); }));
  front.gateway.clear();
  BOOST_TEST(other.released() == "none");
}

// --- Strangers ---------------------------------------------------------------

// Theirs is of yesterday: who believed it would sign by it, and stamp a row
// that everybody else takes for long dead.
BOOST_DATA_TEST_CASE(date_of_a_stranger_is_not_believed,
                     boost::unit_test::data::make({"portal", "empty",
                                                   "garbage"}),
                     stranger) {
  Front front;
  Watched x(front, 1min);
  x.make();
  front.gateway.fault("PutItem", stranger);
  BOOST_TEST(x.mutex->try_lock_for(kPlenty));
  BOOST_TEST(front.gateway.counts().faults(stranger) == 1);
  BOOST_TEST(front.gateway.counts().refused_signatures() == 0);
  OtherHost rival(front, x.name);
  BOOST_TEST(!rival.mutex.try_lock());
  BOOST_TEST(x.released() == "none");
}

// --- Refused -----------------------------------------------------------------

namespace {

struct Mistake {
  const char* what;
  Errc code;
  int requests;
  std::function<void(TableOptions&)> make;
};
std::ostream& operator<<(std::ostream& out, const Mistake& mistake) {
  return out << mistake.what;
}

const std::vector<Mistake>& mistakes() {
  static const std::vector<Mistake> kAll = {
      {"wrong secret", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.secret_access_key += "x";
       }},
      {"unknown keys", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.access_key_id = "AKIDNOBODY";
       }},
      {"a token that is none", Errc::bad_keys, 1,
       [](TableOptions& options) {
         options.credentials.session_token = "token";
       }},
      {"no keys", Errc::no_keys, 0,
       [](TableOptions& options) {
         options.credentials_source = [] { return std::nullopt; };
       }},
      {"no such table", Errc::no_table, 1,
       [](TableOptions& options) { options.name = "no-such-table"; }}};
  return kAll;
}

}  // namespace

BOOST_DATA_TEST_CASE(mistake_is_told_at_once_and_is_no_lock,
                     boost::unit_test::data::make(mistakes()) * kEngines,
                     mistake, kind) {
  Front front(kind);
  TableOptions options = front.table_options();
  mistake.make(options);
  Watched x(std::make_shared<Table>(options), 1min);
  x.make();
  BOOST_TEST(thrown_by([&] { x.mutex->lock(); }) == words(mistake.code));
  BOOST_TEST(front.gateway.counts().all_requests() == mistake.requests);
  BOOST_TEST(!x.mutex->owns_lock());
  BOOST_TEST(front.is_free(x.name));
  BOOST_TEST(thrown_by([&] { BOOST_TEST(!x.mutex->try_lock()); }) ==
             words(mistake.code));
}

// --- Rows and tables ---------------------------------------------------------

namespace {

// What somebody at a console does, and what its holder is told.
struct Robbery {
  const char* what;
  const char* told;
};
constexpr Robbery kRobberies[] = {{"row deleted", "deleted"},
                                  {"table deleted", "deleted"},
                                  {"row taken", "taken"},
                                  {"row spoiled", "taken"}};

void rob(const std::string& how, Engine& engine, const std::string& table,
         const std::string& name) {
  const std::string in_table = R"({"TableName":")" + table + R"(",)";
  const std::string key = R"("name":{"S":"ddblock-)" + name + R"("})";
  if (how == "row deleted") {
    engine.must_call("DeleteItem", in_table + R"("Key":{)" + key + "}}");
  } else if (how == "table deleted") {
    engine.delete_table(table);
  } else {
    const std::string attributes =
        how == "row taken" ? live_record()
                           : R"("uuid":{"N":"7"},"expires":{"L":[]})";
    engine.must_call("PutItem",
                     in_table + R"("Item":{)" + key + "," + attributes + "}}");
  }
}

}  // namespace

BOOST_DATA_TEST_CASE(renewal_finds_what_was_done_to_the_row, kEngines, kind) {
  Front front(kind);
  std::list<Watched> all;
  for (const Robbery& robbery : kRobberies) {
    TableOptions options = front.table_options();
    options.name = front.engine.create_table();
    Watched& x = all.emplace_back(std::make_shared<Table>(options), 1min);
    x.options.renew_after = 1s;
    x.lock();
    rob(robbery.what, front.engine, options.name, x.name);
  }
  const Robbery* robbery = kRobberies;
  for (Watched& x : all) {
    BOOST_TEST_CONTEXT(robbery->what) {
      BOOST_TEST(x.told.wait_for(1));
      BOOST_TEST(x.told.text() == robbery->told);
      BOOST_TEST(!x.mutex->owns_lock());
      BOOST_TEST(x.released() == words(Errc::lease_lost));
    }
    ++robbery;
  }
  // The losers have left what stands there alone.
  BOOST_TEST(front.gateway.counts().requests("DeleteItem") == 0);
}

namespace {

const std::string kAll = R"("uuid":{"S":"u"},"expires":{"N":"1"},)";

// By what is wrong; all of them over long ago, for who does not look closely.
const std::vector<std::string> kNoRecords = {
    R"("uuid":{"N":"1"},"expires":{"N":"1"},"lease":{"N":"60000"})",
    R"("uuid":{"L":[]},"expires":{"N":"1"},"lease":{"N":"60000"})",
    R"("uuid":{"S":"u"},"expires":{"S":"1"},"lease":{"N":"60000"})",
    R"("uuid":{"S":"u"},"expires":{"N":"-1"},"lease":{"N":"60000"})",
    R"("uuid":{"S":"u"},"expires":{"N":"1E+125"},"lease":{"N":"60000"})",
    kAll + R"("lease":{"N":"0"})",
    kAll + R"("lease":{"N":"1000000000000000"})",
    kAll + R"("lease":{"S":"60000"})",
    R"("data":{"S":")" + std::string(380'000, '[') + R"("})",
};

}  // namespace

// Whether or not DynamoDB's clock is known yet.
BOOST_DATA_TEST_CASE(item_that_is_no_record_is_never_taken, kEngines, kind) {
  Front front(kind);
  const auto old = with_clock(front.table());
  for (const std::string& attributes : kNoRecords) {
    const std::string name = fresh_name();
    write_row(front.engine, name, attributes);
    const std::string before = raw_row(front.engine, name);
    for (const auto& table : {front.table(), old}) {
      DdbMutex mutex(name, on_table(table));
      BOOST_TEST(thrown_by([&] { (void)mutex.try_lock_for(kPlenty); }) ==
                     words(Errc::bad_record),
                 attributes.substr(0, 100));
      // What does not claim to be a record is no bad one to who only looks.
      std::error_code ec;
      BOOST_TEST(!table->inspect(name, ec).exists);
      const bool claims = attributes.find("uuid") != std::string::npos;
      BOOST_TEST((claims ? ec == Errc::bad_record : !ec));
      BOOST_TEST(!mutex.owns_lock());
    }
    BOOST_TEST(raw_row(front.engine, name) == before);
  }
  BOOST_TEST(front.gateway.counts().requests("DeleteItem") == 0);
}

BOOST_AUTO_TEST_SUITE_END()
