// The failure table, where the service hangs, refuses, or tells another time.
// As test_failures_wire.cpp, which lists the rows.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/test/data/test_case.hpp>
#include <boost/test/unit_test.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "ddbmutex.hpp"
#include "tests/support/failure_kit.hpp"

using namespace std::chrono_literals;
using namespace tests;
using ddbmutex::Errc;
using ddbmutex::Table;
using ddbmutex::TableOptions;
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

BOOST_AUTO_TEST_SUITE_END()
